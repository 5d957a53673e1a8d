"""Which kernels a program really launches, and whether with configurations of a map: the program runs unchanged."""

from gluonmap.launches.comparison import MapVerdict, Standing, compare
from gluonmap.launches.records import Launched, Recorded
from gluonmap.launches.watched_program import Ended, run

__all__ = ["Ended", "Launched", "MapVerdict", "Recorded", "Standing", "compare", "run"]
