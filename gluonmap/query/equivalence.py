"""Equivalence of a knob's values: rules that some values are one program, as a table for each knob.

A rule says that some values of a knob are one program, everywhere or where a condition holds. The table maps a value,
and the knobs that the conditions read, to its canonical value. Knobs are replaced one after the other, and conditions
read values that are already replaced. Two configurations are merged if both have the same canonical form.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gluonmap.constraints.counting import MOST_CELLS, Factor, Rows, TooEntangled, relation_factor
from gluonmap.constraints.semantics import scope_of
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Inertness, ValueClasses
from gluonmap.model.relations import Relation

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class EquivalenceRule:
    """Values of a knob that are one program where `condition` holds, or where it does not (`holds` is false)."""

    knob: str
    values: tuple[Value, ...] | None
    """None: all of them."""
    condition: Relation | None
    """None: they are one program everywhere."""
    holds: bool = True


@dataclass(frozen=True)
class MergingStep:
    """The replacement of one knob by its canonical value."""

    column: int
    """Column of the replaced knob."""
    columns: tuple[int, ...]
    """Ascending columns of the knobs that conditions read, and `column` itself: the axes of `table`."""
    table: Rows
    """For each of the knob's values, the place of its canonical value in the domain."""
    order: tuple[int, ...]
    """Places of the knob's values by priority: the canonical value of a class is its first in this order."""


def place_of(domain: Sequence[Value], value: object) -> int | None:
    """Return the place of a value in its domain, where True is not 1; None if it is not in the domain."""
    return next((i for i, v in enumerate(domain) if type(v) is type(value) and v == value), None)


def merging_steps(
    domains: Mapping[str, Sequence[Value]],
    baseline: Config,
    inertness: Iterable[Inertness],
    value_classes: Iterable[ValueClasses],
) -> tuple[MergingStep, ...]:
    """Return the replacements of knobs, in an order in which conditions read values that are already replaced.

    The canonical value of a class is the baseline's if it is in the class, else the first of the domain. Knobs whose
    conditions read each other in a cycle come in the order of the domains, so some equivalent values stay apart. So do
    the values of a knob whose table would have more than ten million cells.
    """
    rules = [rule for item in inertness if (rule := _rule(item))]
    rules += [
        EquivalenceRule(c.knob, group, c.relation) for c in value_classes for group in c.classes if len(group) > 1
    ]
    names, values = tuple(domains), tuple(domains.values())
    rules = [rule for rule in rules if rule.condition is None or scope_of(rule.condition) <= set(names)]
    steps = []
    for column, name in enumerate(names):
        mine = [rule for rule in rules if rule.knob == name]
        with contextlib.suppress(TooEntangled):
            step = _step(names, values, column, place_of(values[column], baseline[name]) or 0, mine)
            steps += [] if step is None else [step]
    return tuple(_ordered(steps))


def _rule(item: Inertness) -> EquivalenceRule | None:
    if item.relation is not None:
        return EquivalenceRule(item.knob, None, item.relation, holds=False)
    return EquivalenceRule(item.knob, None, None) if item.condition == "" else None


def _step(
    names: Sequence[str], domains: Sequence[Sequence[Value]], column: int, first: int, rules: Sequence[EquivalenceRule]
) -> MergingStep | None:
    """Return the rules of one knob as a table; None if they merge nothing."""
    size = len(domains[column])
    order = (first, *(place for place in range(size) if place != first))
    tables = [relation_factor(names, domains, rule.condition) if rule.condition else None for rule in rules]
    columns = tuple(sorted({column, *(c for table in tables if table for c in table.columns)}))
    shape = shape_of(domains, columns)
    axis = columns.index(column)
    masks = []
    for rule, table in zip(rules, tables, strict=True):
        members = np.array(
            [rule.values is None or place_of(rule.values, value) is not None for value in domains[column]]
        )
        where = True if table is None else (table_over(table, columns) > 0) == rule.holds
        masks.append(np.moveaxis(np.broadcast_to(where, shape), axis, -1) & members)
    # Rules that share a value form one class: the lowest rank spreads until nothing changes.
    ranks = np.moveaxis(np.broadcast_to(_along(np.argsort(order), columns, column), shape), axis, -1)
    while True:
        before = ranks
        for mask in masks:
            ranks = np.where(mask, np.where(mask, ranks, size).min(-1, keepdims=True), ranks)
        if (ranks == before).all():
            break
    replaced = np.moveaxis(np.array(order, np.int16)[ranks], -1, axis)
    if (replaced == _along(np.arange(size), columns, column)).all():
        return None
    return MergingStep(column, columns, replaced, order)


def _ordered(steps: Sequence[MergingStep]) -> list[MergingStep]:
    left, found = list(steps), []
    while left:
        waiting = {step.column for step in left}
        ready = (step for step in left if not (waiting & set(step.columns)) - {step.column})
        found.append(next(ready, left[0]))
        left.remove(found[-1])
    return found


# ---- tables over several knobs -------------------------------------------------------------------------------------


def shape_of(domains: Sequence[Sequence[Value]], columns: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a table over some knobs.

    Raises:
        TooEntangled: the table would have more than ten million cells.
    """
    shape = tuple(len(domains[c]) for c in columns)
    if math.prod(shape) > MOST_CELLS:
        raise TooEntangled(f"what is known ties {len(columns)} knobs together: a table of {math.prod(shape):,} cells.")
    return shape


def table_over(factor: Factor, columns: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return a factor's table with an axis for each of `columns`, of length 1 where it does not read the knob."""
    sizes = dict(zip(factor.columns, factor.table.shape, strict=True))
    return factor.table.reshape([sizes.get(c, 1) for c in columns])


def _along(values: npt.NDArray[np.int_], columns: Sequence[int], column: int) -> npt.NDArray[np.int_]:
    return values.reshape([-1 if c == column else 1 for c in columns])
