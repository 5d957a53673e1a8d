"""Counting, drawing and listing without walking the product: equal to brute force, and fast."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from spaces import NAMES, RULES_A, RULES_B, SPACE_A, SPACE_B, spaces

from gluonmap.constraints import counting
from gluonmap.constraints.counting import TooEntangled, feasible_set
from gluonmap.constraints.semantics import holds
from gluonmap.model.relations import Compare, KnobTerm, Member, Number, Op, Product, Relation, Sum, Written


def walked(domains: dict[str, tuple[int, ...]], relations: list[Relation]) -> list[dict[str, Any]]:
    found = [dict(zip(domains, values, strict=True)) for values in itertools.product(*domains.values())]
    return [config for config in found if all(holds(relation, config) for relation in relations)]


@settings(max_examples=60, deadline=None)
@given(spaces())
def test_count_and_list_equal_a_walk_over_the_product(case: tuple[dict[str, tuple[int, ...]], list[Relation]]) -> None:
    domains, relations = case
    expected = walked(domains, relations)
    found = feasible_set(domains, relations)
    assert found.count == len(expected)
    assert list(found.enumerate()) == expected


def test_draws_are_uniform() -> None:
    domains = {"A": (1, 2, 4, 8), "B": (1, 2, 4, 8), "C": (0, 1)}
    relations: list[Relation] = [Compare(Product((KnobTerm("A"), KnobTerm("B"))), Op.AT_MOST, Number(8))]
    found = feasible_set(domains, relations)
    draws = Counter(tuple(config.values()) for config in found.sample(20_000, seed=3))
    assert set(draws) == {tuple(config.values()) for config in walked(domains, relations)}
    expected = 20_000 / found.count
    chi_square = sum((count - expected) ** 2 / expected for count in draws.values())
    assert chi_square < 2 * found.count  # mean: count - 1, deviation: about sqrt(2 count)


def test_nothing_allowed_is_an_empty_set() -> None:
    found = feasible_set({"A": (1, 2)}, [Member("A", (3,))])
    assert (found.count, found.sample(5), list(found.enumerate())) == (0, [], [])


def test_too_many_knobs_in_one_relation_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_CELLS", 1000)
    domains = {name: tuple(range(10)) for name in NAMES}
    with pytest.raises(TooEntangled, match="4 knobs"):
        feasible_set(domains, [Compare(Sum(tuple(KnobTerm(name) for name in NAMES)), Op.AT_MOST, Number(9))])


@pytest.mark.parametrize(
    ("domains", "rules", "count", "seconds"),
    [(SPACE_A, RULES_A, 265_216, 0.1), (SPACE_B, RULES_B, 110_432, 0.5)],
    ids=["A", "B"],
)
def test_the_two_spaces_of_the_construction_benchmark(
    domains: dict[str, tuple[int, ...]], rules: tuple[str, ...], count: int, seconds: float
) -> None:
    relations = [Written(rule) for rule in rules]
    times = []
    for _ in range(3):
        start = time.process_time()
        found = feasible_set(domains, relations)
        times.append(time.process_time() - start)
    assert found.count == count
    assert min(times) < seconds
    tracemalloc.start()
    feasible_set(domains, relations)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_ten_billion_configurations_are_counted_in_a_moment() -> None:
    domains = SPACE_B | {f"x{i}": (0, 1, 2, 3) for i in range(4)}
    start = time.process_time()
    found = feasible_set(domains, [Written(rule) for rule in RULES_B])
    assert time.process_time() - start < 1
    assert found.count == 110_432 * 4**4
    assert np.prod([len(values) for values in domains.values()], dtype=float) > 1e10
