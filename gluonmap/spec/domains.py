"""Domains of knobs: inferred around a baseline, in order, without repeats."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gluonmap.model.candidate import Value

FLAG = re.compile(r"(use|has|is|enable|with|allow|do|even|apply)_", re.IGNORECASE)
"""Names of knobs that are tested for truth."""

CACHE_MODIFIERS: tuple[Value, ...] = (None, ".ca", ".cg", ".cv")


def infer_domain(name: str, value: Value) -> tuple[Value, ...] | None:
    """Return values worth trying around a baseline; None if neither the name nor the value suggests any."""
    if isinstance(value, bool):
        return (False, True)
    if value in (0, 1) and FLAG.match(name):
        return (0, 1)
    if isinstance(value, int) and value > 0 and value & (value - 1) == 0:
        if value >= 16:
            return (value // 4, value // 2, value, value * 2)
        return with_baseline((1, 2, 4, 8), value)
    if (value is None or isinstance(value, str)) and "cache" in name.lower():
        return with_baseline(CACHE_MODIFIERS, value)
    return None


def in_order(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return numbers in ascending order, and any other values as they are."""
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return tuple(sorted(values))  # type: ignore[type-var]
    return values


def distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return the values in order, without repeats. True and 1 are different values."""
    return tuple({repr(v): v for v in values}.values())


def with_baseline(domain: tuple[Value, ...], baseline: Value) -> tuple[Value, ...]:
    """Return the domain without repeats and with the baseline: in its place among numbers, else in front."""
    domain = distinct(domain)
    if repr(baseline) in map(repr, domain):
        return domain
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (*domain, baseline))
    return in_order((*domain, baseline)) if numeric else (baseline, *domain)
