"""Changed constraints, read or learned: pairs of the two maps' constraints, and the effect of each change."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial

import msgspec
import numpy as np

from gluonmap.constraints.counting import Factor, TooEntangled
from gluonmap.constraints.semantics import words
from gluonmap.diff.bridge import Bridge
from gluonmap.diff.spaces import CommonDomains, ConstraintTables, negated
from gluonmap.model import targets
from gluonmap.model.joint_map import Constraint, Joint, Standing
from gluonmap.model.outcomes import Outcome
from gluonmap.query.equivalence import shape_of, table_over


class ConstraintTransition(StrEnum):
    """Kinds of change of one constraint."""

    GONE = "gone"
    NEW = "new"
    LIMIT = "limit moved"
    """The same terms with other numbers."""
    OTHER = "changed"
    """Another relation for the same reason, or over the same single knob."""


class Direction(StrEnum):
    """Change of the set of allowed configurations, over the values that both maps tried."""

    LOOSER = "looser"
    TIGHTER = "tighter"
    SHIFTED = "shifted"
    """It allows some configurations more, and forbids others."""


class Budget(msgspec.Struct, frozen=True):
    """The hardware limit behind a constraint, in both targets."""

    unit: str
    before: int
    after: int


class ConstraintChange(msgspec.Struct, frozen=True):
    """A constraint, read or learned, that differs between the maps."""

    move: ConstraintTransition
    before: Constraint | None
    after: Constraint | None
    direction: Direction | None = None
    """None: a knob is not in both maps or has no value in common, or the tables are too large."""
    budget: Budget | None = None
    """Set if the hardware limit behind it changed too."""
    freed: int | None = None
    """Configurations that `before` forbids and the second map allows. None: not counted."""
    forbidden: int | None = None
    """Configurations that the first map allows and `after` forbids. None: not counted."""


BUDGETS = {"bytes of shared memory": "shared_bytes", "threads": "threads", "columns": "tensor_columns"}
"""Words of a reason -> the field of `Target` that holds the limit."""


def constraint_changes(common: CommonDomains, tables: ConstraintTables | None) -> list[ConstraintChange]:
    """Return the constraints that differ between the maps, those with an effect first.

    Without `tables` the spaces are too entangled to count the configurations that each change frees and forbids.
    """
    found = []
    for move, before, after in _paired(common):
        direction, budget, freed, forbidden = None, None, None, None
        if before and after:
            direction, budget = _direction(common, before, after), _budget(common.bridge, before, after)
        else:
            direction = Direction.LOOSER if before else Direction.TIGHTER
        if tables and before:
            freed = _breaking_count(common, [*tables.given, *tables.after], before)
        if tables and after:
            forbidden = _breaking_count(common, [*tables.given, *tables.before], after)
        found.append(ConstraintChange(move, before, after, direction, budget, freed, forbidden))
    return sorted(found, key=lambda c: (not (c.freed or c.forbidden), list(ConstraintTransition).index(c.move)))


def _breaking_count(common: CommonDomains, allowed: list[Factor], constraint: Constraint) -> int | None:
    """Return how many allowed configurations break a constraint; None: they cannot be counted."""
    try:
        table = common.table(constraint.relation)
        return common.count([*allowed, negated(table)]) if table else None
    except TooEntangled:
        return None


# ---- pairs of constraints -------------------------------------------------------------------------------------------


_Pairing = tuple[ConstraintTransition, Constraint | None, Constraint | None]


def _paired(common: CommonDomains) -> list[_Pairing]:
    """Return the constraints of both maps in pairs, without the pairs that are equal."""
    before, after = map(_own_constraints, common.joints)
    found: list[_Pairing] = []
    for move, became in (
        (None, partial(_equal, common)),
        (ConstraintTransition.LIMIT, _differ_in_numbers),
        (ConstraintTransition.OTHER, _share_cause),
    ):
        for first in list(before):
            second = next((item for item in after if became(first, item)), None)
            if second is not None:
                before.remove(first)
                after.remove(second)
                found += [(move, first, second)] if move else []
    return [
        *found,
        *((ConstraintTransition.GONE, item, None) for item in before),
        *((ConstraintTransition.NEW, None, item) for item in after),
    ]


def _own_constraints(joint: Joint) -> list[Constraint]:
    """Return the confirmed constraints that were read or learned, without those that users gave or others imply."""
    return [c for c in joint.constraints if c.confirmed and c.standing in (Standing.READ, Standing.LEARNED)]


def _equal(common: CommonDomains, before: Constraint, after: Constraint) -> bool:
    return before.relation == after.relation or _compared(common, before, after) == (False, False)


def _differ_in_numbers(before: Constraint, after: Constraint) -> bool:
    """Return whether both are the same relation up to its numbers."""
    one, other = (re.sub(r"(?<![\w.])\d[\d.]*(?![\w.])", "#", words(item.relation)) for item in (before, after))
    return one == other


def _share_cause(before: Constraint, after: Constraint) -> bool:
    """Return whether both have the same reason up to its numbers, or read the same single knob."""
    one, other = ((c.outcome, c.stage, re.sub(r"\d[\d,.]*", "#", c.reason)) for c in (before, after))
    return (one == other and bool(before.reason)) or (before.scope == after.scope and len(before.scope) == 1)


# ---- the effect of a change -----------------------------------------------------------------------------------------


def _direction(common: CommonDomains, before: Constraint, after: Constraint) -> Direction | None:
    match _compared(common, before, after):
        case (True, True):
            return Direction.SHIFTED
        case (True, False):
            return Direction.LOOSER
        case (False, True):
            return Direction.TIGHTER
        case _:
            return None


def _compared(common: CommonDomains, before: Constraint, after: Constraint) -> tuple[bool, bool] | None:
    """Return whether `after` allows rows that `before` forbids, and forbids rows that it allows.

    None: the tables are too large, or the maps have no values in common.
    """
    try:
        tables = [table for item in (before, after) if (table := common.table(item.relation))]
        columns = tuple(sorted({column for table in tables for column in table.columns}))
        shape = shape_of(tuple(common.domains.values()), columns)
    except TooEntangled:
        return None
    if common.empty or len(tables) < 2:
        return None
    one, other = (np.broadcast_to(table_over(table, columns), shape) > 0 for table in tables)
    return bool((other & ~one).any()), bool((one & ~other).any())


def _budget(bridge: Bridge, before: Constraint, after: Constraint) -> Budget | None:
    """Return the hardware limit behind both constraints, if it changed; else None."""
    if not before.outcome == after.outcome == Outcome.NO_RESOURCES:
        return None
    unit = next((unit for unit in BUDGETS if unit in before.reason and unit in after.reason), None)
    if unit is None:
        return None
    old, new = (int(getattr(targets.find(space.target), BUDGETS[unit])) for space in (bridge.before, bridge.after))
    return Budget(unit, old, new) if old != new else None
