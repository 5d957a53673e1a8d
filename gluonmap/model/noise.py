"""Is one program faster than another, or is it noise? Paired rounds, and a floor measured on identical programs.

Clocks drift, so times of one program are compared with times of another only within a round, in which each ran once.
The floor is what two runs of one program were seen to differ by: a difference that does not exceed it is a tie.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

LEAST_ROUNDS = 6
"""Below it no interval of the median has 95 % confidence."""


class Standing(StrEnum):
    """Of a challenger against whatever it is compared with."""

    WIN = "win"
    TIE = "tie"
    LOSS = "loss"


class Interval(msgspec.Struct, frozen=True):
    """A ratio of times, as the median over rounds with an interval that needs no distribution."""

    ratio: float
    """Below 1: faster."""
    low: float
    high: float
    confidence: float
    rounds: int


class Comparison(msgspec.Struct, frozen=True):
    """What can be said of a challenger."""

    standing: Standing
    ratio: Interval
    floor: float
    """Share by which identical programs were seen to differ: 0.004 is 0.4 %."""


def ratio_of(times: Sequence[float], others: Sequence[float], confidence: float = 0.95) -> Interval:
    """The ratio of two programs' times, paired by round.

    The interval lies between two order statistics of the rounds' ratios, by the sign test: the narrowest whose
    confidence is at least `confidence`; all rounds where there are too few for that.

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
    """How likely the median lies beyond the order statistics `cut` places from each end."""
    return min(1.0, math.ldexp(sum(math.comb(count, k) for k in range(cut + 1)), 1 - count))


def floor_of(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], confidence: float = 0.95) -> float:
    """By how much identical programs differ: the farthest end of any pair's interval; 0 where there is no pair."""
    found = 0.0
    for times, others in pairs:
        interval = ratio_of(times, others, confidence)
        found = max(found, interval.high - 1, 1 / interval.low - 1)
    return found


def compare(times: Sequence[float], others: Sequence[float], floor: float, confidence: float = 0.95) -> Comparison:
    """Whether the first is faster: a win or a loss only where the whole interval lies beyond the floor."""
    interval = ratio_of(times, others, confidence)
    enough = interval.rounds >= LEAST_ROUNDS
    if enough and interval.high < 1 / (1 + floor):
        standing = Standing.WIN
    elif enough and interval.low > 1 + floor:
        standing = Standing.LOSS
    else:
        standing = Standing.TIE
    return Comparison(standing, interval, floor)


def leaders(times: Mapping[str, Sequence[float]], floor: float, confidence: float = 0.95) -> list[str]:
    """The programs that lose to no other one, the one with the least median first."""
    ordered = sorted(times, key=lambda name: statistics.median(times[name]))
    lead = [n for n in ordered if not any(_loses(times[n], times[m], floor, confidence) for m in ordered if m != n)]
    return lead or ordered[:1]


def _loses(times: Sequence[float], others: Sequence[float], floor: float, confidence: float) -> bool:
    return compare(times, others, floor, confidence).standing is Standing.LOSS
