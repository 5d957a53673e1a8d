"""Domains that are inferred around a baseline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gluonmap.model.candidate import Value
from gluonmap.spec.domains import CACHE_MODIFIERS, infer_domain


@pytest.mark.parametrize(
    ("name", "value", "domain"),
    [
        ("BLOCK_M", 128, (32, 64, 128, 256)),
        ("BLOCK_M", 16, (4, 8, 16, 32)),
        ("GROUP", 8, (1, 2, 4, 8)),
        ("GROUP", 1, (1, 2, 4, 8)),
        ("EVEN_K", True, (False, True)),
        ("EVEN_K", False, (False, True)),
        ("cache_modifier", None, CACHE_MODIFIERS),
        ("CACHE", ".cg", (None, ".ca", ".cg", ".cv")),
        ("CACHE", ".cs", (".cs", None, ".ca", ".cg", ".cv")),
        ("SPLIT", 3, None),
        ("SPLIT", 0, None),
        ("SPLIT", -4, None),
        ("SCALE", 1.5, None),
        ("ACTIVATION", "silu", None),
        ("ACTIVATION", None, None),
    ],
)
def test_a_domain_is_inferred_around_a_value_that_tells(
    name: str, value: Value, domain: tuple[Value, ...] | None
) -> None:
    assert infer_domain(name, value) == domain


@given(st.sampled_from(["BLOCK_M", "CACHE", "EVEN"]), st.one_of(st.integers(), st.booleans(), st.none(), st.text()))
def test_an_inferred_domain_holds_its_baseline_once_and_no_value_twice(name: str, value: Value) -> None:
    domain = infer_domain(name, value)
    if domain is not None:
        kinds = [(type(v), v) for v in domain]
        assert kinds.count((type(value), value)) == 1
        assert len(set(kinds)) == len(kinds)
