"""Shared bytes: exact formulas, and no formula where one datum disagrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gluonmap.constraints.semantics import value_of, words
from gluonmap.constraints.shared_memory import budget_relation, fit_bytes, likely_limit

DOMAINS: dict[str, tuple[Any, ...]] = {
    "BM": (32, 64, 128, 256),
    "BN": (32, 64, 128, 256),
    "BK": (16, 32, 64),
    "STAGES": (1, 2, 3, 4),
    "out": ("bf16", "fp32"),
    "SPLIT": (1, 2, 4),
}
BYTES = {"bf16": 2, "fp32": 4}


def columns(count: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: np.array(domain)[random.integers(0, len(domain), count)] for name, domain in DOMAINS.items()}


def size(column: Any) -> Any:
    return np.array([BYTES[item] for item in column.tolist()])


FORMULAS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pipelined tiles and barriers": lambda c: 2 * c["STAGES"] * (c["BM"] + c["BN"]) * c["BK"] + 8 * c["STAGES"],
    "the larger of the pipeline and the epilogue": lambda c: np.maximum(
        2 * c["STAGES"] * (c["BM"] + c["BN"]) * c["BK"] + 8 * c["STAGES"], 2 * c["BM"] * c["BN"]
    ),
    "one stage less": lambda c: 2 * (c["STAGES"] - 1) * (c["BM"] + c["BN"]) * c["BK"] + 64,
    "element size": lambda c: c["BM"] * c["BN"] * size(c["out"]),
    "slices": lambda c: c["BM"] * c["BN"] // c["SPLIT"] * size(c["out"]) + 16,
    "rounded up": lambda c: -(-(c["BM"] * c["BK"] * 2 + c["BN"] * c["STAGES"]) // 128) * 128,
}


@pytest.mark.long
@pytest.mark.parametrize("shape", FORMULAS)
def test_the_formula_holds_on_configurations_it_never_saw(shape: str) -> None:
    seen, fresh = columns(60), columns(500, seed=1)
    formula = fit_bytes(DOMAINS, seen, FORMULAS[shape](seen))
    assert formula is not None
    assert np.array_equal(value_of(formula.term, fresh), FORMULAS[shape](fresh))


def test_one_datum_that_does_not_fit_leaves_no_formula() -> None:
    seen = columns(60)
    needed = FORMULAS["pipelined tiles and barriers"](seen)
    needed[17] += 4
    assert fit_bytes(DOMAINS, seen, needed) is None


def test_few_data_are_no_formula() -> None:
    seen = columns(6)
    assert fit_bytes(DOMAINS, seen, FORMULAS["element size"](seen)) is None


def test_a_constant_is_a_formula() -> None:
    formula = fit_bytes(DOMAINS, columns(20), np.full(20, 4096))
    assert formula is not None and formula.words() == "4096"


def test_the_budget_is_said_in_words() -> None:
    seen = columns(60)
    formula = fit_bytes(DOMAINS, seen, FORMULAS["element size"](seen))
    assert formula is not None
    assert words(budget_relation(formula, 65_536)) == "BM * BN * bytes(out) <= 65536"


@pytest.mark.parametrize(
    ("passing", "failing", "limit"),
    [
        ([1024, 65_000], [70_000], 65_536),
        ([160_000], [170_000], 163_840),
        ([1000], [1001], 1000),
        ([1024], [], None),
        ([2000], [1000], None),
    ],
)
def test_the_limit_is_a_known_target_where_one_fits(passing: list[int], failing: list[int], limit: int | None) -> None:
    assert likely_limit(passing, failing) == limit
