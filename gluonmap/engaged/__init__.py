"""Which kernels a program really launches, and whether with configurations of a map: the program runs unchanged."""

from gluonmap.engaged.comparison import MapVerdict, Standing, compare
from gluonmap.engaged.program import Ended, run
from gluonmap.engaged.records import Launched, Recorded

__all__ = ["Ended", "Launched", "MapVerdict", "Recorded", "Standing", "compare", "run"]
