"""Kernel launches of a program, counted while it runs unchanged, and compared with the program's maps.

This package runs the program with a recorder on its PYTHONPATH, reads the records and compares them with maps. It may
import `export.heading`, `handoff`, `query` and `model`. `recorder` runs inside the watched program and needs only the
standard library.

Begin with `watched_program.py`, then `recorder` (the counts), `records` (the counts of all processes as one) and
`comparison`.
"""

from gluonmap.launches.comparison import LaunchStanding, MapVerdict, compare
from gluonmap.launches.records import Launched, Recorded
from gluonmap.launches.watched_program import Ended, run

__all__ = ["Ended", "LaunchStanding", "Launched", "MapVerdict", "Recorded", "compare", "run"]
