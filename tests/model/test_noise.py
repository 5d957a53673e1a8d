"""Wins, ties and losses: what drifts together cancels, what is identical never wins."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gluonmap.model.noise import LEAST_ROUNDS, RaceStanding, compare, floor_of, leaders, ratio_of


def rounds(count: int, seed: int, *factors: float, noise: float = 0.003, drift: float = 0.3) -> list[list[float]]:
    """Times of several programs over rounds in which a clock drifts by up to 30 %."""
    chance = random.Random(seed)
    clocks = [1 + drift * chance.random() for _ in range(count)]
    return [[f * c * (1 + chance.gauss(0, noise)) for c in clocks] for f in factors]


@pytest.mark.parametrize("seed", range(50))
def test_a_program_against_itself_is_a_tie_once_the_floor_is_known(seed: int) -> None:
    one, twin, other = rounds(15, seed, 1.0, 1.0, 1.0)
    floor = floor_of([(one, twin)])
    assert compare(one, twin, floor).standing is RaceStanding.TIE
    assert compare(other, one, floor).standing is RaceStanding.TIE


@pytest.mark.parametrize("seed", range(20))
def test_three_percent_are_seen_through_a_drift_of_thirty(seed: int) -> None:
    slow, twin, fast = rounds(15, seed, 1.0, 1.0, 0.97)
    floor = floor_of([(slow, twin)])
    assert compare(fast, slow, floor).standing is RaceStanding.WIN
    assert compare(slow, fast, floor).standing is RaceStanding.LOSS
    assert leaders({"slow": slow, "fast": fast}, floor) == ["fast"]


def test_a_difference_within_the_floor_is_a_tie_however_sure_it_is() -> None:
    base = [1.0] * 20
    assert compare([0.99] * 20, base, floor=0.02).standing is RaceStanding.TIE
    assert compare([0.97] * 20, base, floor=0.02).standing is RaceStanding.WIN


def test_too_few_rounds_prove_nothing() -> None:
    few = LEAST_ROUNDS - 1
    assert compare([0.5] * few, [1.0] * few, floor=0.0).standing is RaceStanding.TIE
    assert compare([0.5] * LEAST_ROUNDS, [1.0] * LEAST_ROUNDS, floor=0.0).standing is RaceStanding.WIN


def test_all_that_do_not_lose_to_the_fastest_lead() -> None:
    assert leaders({"a": [1.0] * 8, "b": [1.001] * 8, "c": [1.2] * 8}, floor=0.01) == ["a", "b"]
    assert leaders({}, floor=0.01) == []


def test_what_loses_to_any_other_does_not_lead_though_it_ties_with_the_fastest() -> None:
    noisy = [0.9, 1.1, 0.9, 1.1, 0.9, 1.1, 0.9, 0.9]
    assert leaders({"noisy": noisy, "base": [1.0] * 8, "better": [0.99] * 8}, floor=0.001) == ["noisy", "better"]


def test_rounds_that_do_not_pair_are_refused() -> None:
    for times, others in (([1.0], [1.0, 2.0]), ([], [])):
        with pytest.raises(ValueError, match="rounds cannot be paired"):
            ratio_of(times, others)


patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Hypothesis measures wall time, which says nothing on a machine that other tests share."""
times = st.lists(st.floats(0.1, 10), min_size=1, max_size=40)


@patient
@given(times, st.floats(0.1, 10))
def test_the_interval_holds_the_median_and_scales_with_the_times(values: list[float], scale: float) -> None:
    interval = ratio_of([v * scale for v in values], values)
    assert interval.low <= interval.ratio <= interval.high
    assert interval.ratio == pytest.approx(scale)


@given(st.integers(LEAST_ROUNDS, 60))
def test_the_interval_is_as_sure_as_it_says(count: int) -> None:
    assert ratio_of([1.0] * count, [1.0] * count).confidence >= 0.95


@patient
@given(st.lists(st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)), min_size=LEAST_ROUNDS, max_size=30))
def test_a_pair_never_wins_against_its_own_floor(pairs: list[tuple[float, float]]) -> None:
    one, other = [p[0] for p in pairs], [p[1] for p in pairs]
    floor = floor_of([(one, other)])
    assert compare(one, other, floor).standing is RaceStanding.TIE
    assert compare(other, one, floor).standing is RaceStanding.TIE
