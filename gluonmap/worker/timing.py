"""The time of a launch: warm-up, then many launches, each after a flush of the caches; median and spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from gluonmap.model.verdict import Timing

WARM_UP_US = 25_000.0
MEASURE_US = 100_000.0
FEWEST, MOST = 20, 1000
"""Least and largest number of launches."""
_FIRST = 5


def measure(times_us: Callable[[int], Sequence[float]], clock_mhz: Callable[[], int | None]) -> Timing:
    """Return the timing of a launch. `times_us(n)` launches n times and returns n times in microseconds.

    It measures as many launches as fill 0.1 s of the device, at least 20 and at most 1000, after 25 ms of warm-up.
    The warm-up is needed: clocks rise with the first work, and the very first launch loads the program.
    """
    typical = max(0.1, statistics.median(times_us(_FIRST)[1:]))
    times_us(_clamped(WARM_UP_US / typical))
    before = clock_mhz()
    found = sorted(times_us(_clamped(MEASURE_US / typical)))
    after = clock_mhz()
    return Timing(
        median_us=round(statistics.median(found), 3),
        low_us=round(found[len(found) // 5], 3),
        high_us=round(found[len(found) - 1 - len(found) // 5], 3),
        repeats=len(found),
        clock_before_mhz=before,
        clock_after_mhz=after,
    )


def _clamped(count: float) -> int:
    return max(FEWEST, min(MOST, int(count)))
