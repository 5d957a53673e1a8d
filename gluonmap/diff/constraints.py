"""Constraints, read or learned, that one map has and the other has not: which has become which, and what that does."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial

import msgspec
import numpy as np

from gluonmap.constraints.counting import Factor, TooEntangled
from gluonmap.constraints.semantics import words
from gluonmap.diff.bridge import Bridge
from gluonmap.diff.spaces import Common, Tables, negated
from gluonmap.model import targets
from gluonmap.model.joint_map import Constraint, Joint, Standing
from gluonmap.model.outcomes import Outcome
from gluonmap.query.equivalence import shape_of, table_over


class Move(StrEnum):
    """What became of a constraint."""

    GONE = "gone"
    NEW = "new"
    LIMIT = "limit moved"
    """The same terms, other numbers."""
    OTHER = "changed"
    """Another relation for the same reason, or over the same single knob."""


class Direction(StrEnum):
    """What a changed constraint allows, of what both maps tried."""

    LOOSER = "looser"
    TIGHTER = "tighter"
    SHIFTED = "shifted"
    """It allows some more and some less."""


class Budget(msgspec.Struct, frozen=True):
    """A limit of the hardware that a constraint stands for."""

    unit: str
    before: int
    after: int


class ConstraintChange(msgspec.Struct, frozen=True):
    """A constraint, read or learned, that one map has and the other has not."""

    move: Move
    before: Constraint | None
    after: Constraint | None
    direction: Direction | None = None
    """None: its knobs or their values are not the other map's."""
    budget: Budget | None = None
    """Where the limit of the hardware that it stands for has moved too."""
    freed: int | None = None
    """Configurations that `before` forbids and the second map allows. None: not counted."""
    forbidden: int | None = None
    """Configurations that the first map allows and `after` forbids. None: not counted."""


BUDGETS = {"bytes of shared memory": "shared_bytes", "threads": "threads", "columns": "tensor_columns"}
"""Words of a reason -> the limit of a target that it tells of."""


def constraint_changes(common: Common, tables: Tables | None) -> list[ConstraintChange]:
    """Return the constraints that are not the same in both maps, those with an effect first.

    Without `tables` the spaces are too entangled to count what each change frees and forbids.
    """
    found = []
    for move, before, after in _moved(common):
        direction, budget, freed, forbidden = None, None, None, None
        if before and after:
            direction, budget = _direction(common, before, after), _budget(common.bridge, before, after)
        else:
            direction = Direction.LOOSER if before else Direction.TIGHTER
        if tables and before:
            freed = _breaking(common, [*tables.given, *tables.after], before)
        if tables and after:
            forbidden = _breaking(common, [*tables.given, *tables.before], after)
        found.append(ConstraintChange(move, before, after, direction, budget, freed, forbidden))
    return sorted(found, key=lambda c: (not (c.freed or c.forbidden), list(Move).index(c.move)))


def _breaking(common: Common, allowed: list[Factor], constraint: Constraint) -> int | None:
    """How many of the allowed configurations break a constraint; None: it cannot be told."""
    try:
        table = common.table(constraint.relation)
        return common.count([*allowed, negated(table)]) if table else None
    except TooEntangled:
        return None


# ---- which constraint became which ----------------------------------------------------------------------------------


Change = tuple[Move, Constraint | None, Constraint | None]


def _moved(common: Common) -> list[Change]:
    """The constraints of both maps in pairs, less those that say the same."""
    before, after = map(_telling, common.joints)
    found: list[Change] = []
    for move, became in ((None, partial(_equal, common)), (Move.LIMIT, _other_limit), (Move.OTHER, _one_cause)):
        for first in list(before):
            second = next((item for item in after if became(first, item)), None)
            if second is not None:
                before.remove(first)
                after.remove(second)
                found += [(move, first, second)] if move else []
    return [*found, *((Move.GONE, item, None) for item in before), *((Move.NEW, None, item) for item in after)]


def _telling(joint: Joint) -> list[Constraint]:
    """The constraints that say something of their own about the kernel."""
    return [c for c in joint.constraints if c.confirmed and c.standing in (Standing.READ, Standing.LEARNED)]


def _equal(common: Common, before: Constraint, after: Constraint) -> bool:
    return before.relation == after.relation or _compared(common, before, after) == (False, False)


def _other_limit(before: Constraint, after: Constraint) -> bool:
    """Whether they are one relation but for its numbers."""
    one, other = (re.sub(r"(?<![\w.])\d[\d.]*(?![\w.])", "#", words(item.relation)) for item in (before, after))
    return one == other


def _one_cause(before: Constraint, after: Constraint) -> bool:
    """Whether they have one reason but for its numbers, or read one and the same knob."""
    one, other = ((c.outcome, c.stage, re.sub(r"\d[\d,.]*", "#", c.reason)) for c in (before, after))
    return (one == other and bool(before.reason)) or (before.scope == after.scope and len(before.scope) == 1)


# ---- what a change does ---------------------------------------------------------------------------------------------


def _direction(common: Common, before: Constraint, after: Constraint) -> Direction | None:
    match _compared(common, before, after):
        case (True, True):
            return Direction.SHIFTED
        case (True, False):
            return Direction.LOOSER
        case (False, True):
            return Direction.TIGHTER
        case _:
            return None


def _compared(common: Common, before: Constraint, after: Constraint) -> tuple[bool, bool] | None:
    """Whether the second allows what the first forbids, and forbids what it allows; None: it cannot be told."""
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
    """The limit of the hardware behind two forms of one constraint, where it has moved."""
    if not before.outcome == after.outcome == Outcome.NO_RESOURCES:
        return None
    unit = next((unit for unit in BUDGETS if unit in before.reason and unit in after.reason), None)
    if unit is None:
        return None
    old, new = (int(getattr(targets.find(space.target), BUDGETS[unit])) for space in (bridge.before, bridge.after))
    return Budget(unit, old, new) if old != new else None
