"""Statistics of a race: paired rounds, and a noise floor measured on identical programs.

Clocks drift, so the times of two programs are compared only within a round, in which each program ran once. The noise
floor is the difference between two runs of one program: a difference that does not exceed it is a tie.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

LEAST_ROUNDS = 6
"""With fewer rounds no interval of the median has 95 % confidence."""


class RaceStanding(StrEnum):
    """The result of a challenger against the program that it is compared with."""

    WIN = "win"
    TIE = "tie"
    LOSS = "loss"


class Interval(msgspec.Struct, frozen=True):
    """A ratio of times: the median over rounds, with a distribution-free confidence interval."""

    ratio: float
    """Median of the rounds' ratios; below 1: faster."""
    low: float
    high: float
    confidence: float
    rounds: int


class Comparison(msgspec.Struct, frozen=True):
    """The comparison of a challenger with another program."""

    standing: RaceStanding
    ratio: Interval
    floor: float
    """Measured share by which identical programs differ: 0.004 is 0.4 %."""


def ratio_of(times: Sequence[float], others: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the ratio of two programs' times, paired by round.

    The interval lies between two order statistics of the rounds' ratios, by the sign test: the narrowest whose
    confidence is at least `confidence`. With too few rounds it spans all of them.

    Raises:
        ValueError: rounds that do not pair, or none.
    """
    if len(times) != len(others) or not times:
        raise ValueError(f"{len(times)} rounds cannot be paired with {len(others)}")
    ratios = sorted(one / other for one, other in zip(times, others, strict=True))
    count = len(ratios)
    cut = max((k for k in range((count + 1) // 2) if _outside(count, k) <= 1 - confidence), default=0)
    return Interval(statistics.median(ratios), ratios[cut], ratios[count - 1 - cut], 1 - _outside(count, cut), count)


def _outside(count: int, cut: int) -> float:
    """Return the probability that the median lies beyond the order statistics `cut` places from each end."""
    return min(1.0, math.ldexp(sum(math.comb(count, k) for k in range(cut + 1)), 1 - count))


def floor_of(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], confidence: float = 0.95) -> float:
    """Return the share by which identical programs differ: the farthest end of any pair's interval; 0 without pairs."""
    found = 0.0
    for times, others in pairs:
        interval = ratio_of(times, others, confidence)
        found = max(found, interval.high - 1, 1 / interval.low - 1)
    return found


def compare(times: Sequence[float], others: Sequence[float], floor: float, confidence: float = 0.95) -> Comparison:
    """Compare the first program with the second: a win or a loss only if the whole interval lies beyond the floor."""
    interval = ratio_of(times, others, confidence)
    enough = interval.rounds >= LEAST_ROUNDS
    if enough and interval.high < 1 / (1 + floor):
        standing = RaceStanding.WIN
    elif enough and interval.low > 1 + floor:
        standing = RaceStanding.LOSS
    else:
        standing = RaceStanding.TIE
    return Comparison(standing, interval, floor)


def leaders(times: Mapping[str, Sequence[float]], floor: float, confidence: float = 0.95) -> list[str]:
    """Return the programs that lose to no other one, ordered by their medians, the least first."""
    ordered = sorted(times, key=lambda name: statistics.median(times[name]))
    lead = [n for n in ordered if not any(_loses(times[n], times[m], floor, confidence) for m in ordered if m != n)]
    return lead or ordered[:1]


def _loses(times: Sequence[float], others: Sequence[float], floor: float, confidence: float) -> bool:
    return compare(times, others, floor, confidence).standing is RaceStanding.LOSS
