"""The whole spaces of two maps: the configurations that each allows, over the values that both tried together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from gluonmap.constraints.counting import Elimination, Factor, relation_factor
from gluonmap.constraints.semantics import scope_of
from gluonmap.diff.bridge import Bridge
from gluonmap.diff.regressions import handed_over_keys
from gluonmap.handoff.launches import verified
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Constraint, Joint, Standing
from gluonmap.model.relations import Relation
from gluonmap.query.equivalence import place_of
from gluonmap.query.feasibility import Judge

FEW_ROWS = 100_000
"""Number of configurations up to which all are searched for an example; of more, `DRAWN` are drawn."""
DRAWN = 4096
PROGRAMS = "distinct programs"
SIZES = ("configurations of the signature", "feasible configurations", PROGRAMS)
"""Names of counts that depend on the kernel alone, where both maps have them."""
EFFORTS = ("configurations asked", "programs compiled and passed", "configurations handed over")
"""Names of counts that also depend on how much was asked."""


class FormulaChange(msgspec.Struct, frozen=True):
    """A change of the formula for the bytes of shared memory, or of the target's limit in bytes."""

    before: str
    before_limit: int
    after: str
    after_limit: int


class SpaceCount(msgspec.Struct, frozen=True):
    """A count in both maps. None: the map does not have it."""

    name: str
    before: int | None
    after: int | None
    effort: bool = False
    """It also depends on how much was asked, so a difference alone is no change of the kernel."""
    before_at_most: bool = False
    """`before` is an upper bound by rules: not every program was compiled."""
    after_at_most: bool = False
    """`after` is an upper bound by rules."""


class SharedSpace(msgspec.Struct, frozen=True):
    """Numbers of configurations over the values that both maps tried together."""

    signature: int
    """Configurations that no user of either map ruled out."""
    before: int
    """Configurations that are feasible by the first map."""
    after: int
    """Configurations that are feasible by the second map."""
    both: int
    """Configurations that are feasible by both maps."""
    proved: bool
    """Each map asked every configuration: these are facts, not predictions."""
    lost_example: Config | None = None
    """A configuration that is feasible by the first map alone, with the fewest moves from the first baseline."""
    gained_example: Config | None = None
    """A configuration that is feasible by the second map alone, with the fewest moves from the second baseline."""

    @property
    def lost(self) -> int:
        """Return the number of configurations that are feasible by the first map alone."""
        return self.before - self.both

    @property
    def gained(self) -> int:
        """Return the number of configurations that are feasible by the second map alone."""
        return self.after - self.both


class ConstraintTables(NamedTuple):
    """Constraints as tables over the values that both maps tried."""

    given: list[Factor]
    """Restrictions by the users of both maps."""
    before: list[Factor]
    """Other constraints of the first map."""
    after: list[Factor]
    """Other constraints of the second map."""


class CommonDomains:
    """Domains with the values that both maps tried together. A knob that one map alone turns has one value.

    They are `empty` where some knob has no value in common.
    """

    def __init__(self, bridge: Bridge, before: Joint, after: Joint) -> None:
        self.bridge, self.joints = bridge, (before, after)
        self.domains: dict[str, tuple[Value, ...]] = {n: (v,) for n, v in bridge.held.items()}
        for name in bridge.shared:
            other = after.domains[name]
            self.domains[name] = tuple(v for v in before.domains[name] if place_of(other, v) is not None)
        self.empty = not all(self.domains.values())

    def tables(self) -> ConstraintTables:
        """Return the constraints of both maps as tables, without those that read something else than these knobs.

        Raises:
            TooEntangled: one has too many cells.
        """
        before, after = (joint.constraints for joint in self.joints)
        return ConstraintTables(
            self._tables(c for c in (*before, *after) if c.standing is Standing.GIVEN),
            self._tables(c for c in before if c.standing is not Standing.GIVEN),
            self._tables(c for c in after if c.standing is not Standing.GIVEN),
        )

    def _tables(self, constraints: Iterable[Constraint]) -> list[Factor]:
        return [table for item in constraints if (table := self.table(item.relation))]

    def table(self, relation: Relation) -> Factor | None:
        """Return a relation as a table; None where it reads something else than these knobs.

        Raises:
            TooEntangled: it has too many cells.
        """
        if not scope_of(relation) <= self.domains.keys():
            return None
        return relation_factor(tuple(self.domains), tuple(self.domains.values()), relation)

    def allowed(self, tables: Iterable[Factor]) -> Elimination:
        """Return the configurations that all tables allow."""
        return Elimination([len(domain) for domain in self.domains.values()], tables)

    def count(self, tables: Iterable[Factor]) -> int:
        """Return the number of configurations that all tables allow."""
        return self.allowed(tables).count


def negated(table: Factor) -> Factor:
    """Return the table that allows what `table` forbids."""
    return Factor(table.columns, 1.0 - table.table)


def shared_space(common: CommonDomains, tables: ConstraintTables) -> SharedSpace | None:
    """Return the sizes of both spaces over the values that both maps tried; None: there are no such values.

    Raises:
        TooEntangled: they cannot be counted.
    """
    if common.empty:
        return None
    bridge, (given, before, after) = common.bridge, tables
    return SharedSpace(
        signature=common.count(given),
        before=common.count([*given, *before]),
        after=common.count([*given, *after]),
        both=common.count([*given, *before, *after]),
        proved=all(joint.enumerated or joint.sizes.complete for joint in common.joints),
        lost_example=_example(common, [*given, *before], after, bridge.before.baseline),
        gained_example=_example(common, [*given, *after], before, bridge.after.baseline),
    )


def _example(common: CommonDomains, allowed: list[Factor], refused: list[Factor], baseline: Config) -> Config | None:
    """Return the configuration nearest to the baseline that `allowed` allow and one of `refused` forbids, if any."""
    home = {**baseline, **common.bridge.held}
    start = [-1 if (place := place_of(d, home[n])) is None else place for n, d in common.domains.items()]
    found: list[tuple[int, list[int]]] = []
    for table in refused:
        lost = common.allowed([*allowed, negated(table)])
        if lost.count:
            rows = lost.rows() if lost.count <= FEW_ROWS else lost.sample(DRAWN, np.random.default_rng(0))
            moves = (rows != np.array(start, np.int16)).sum(1)
            found.append((int(moves.min()), rows[moves.argmin()].tolist()))
    if not found:
        return None
    _, nearest = min(found, key=lambda item: item[0])
    config = {n: d[i] for (n, d), i in zip(common.domains.items(), nearest, strict=True)}
    return {name: config[name] for name in baseline}


def formula_change(bridge: Bridge) -> FormulaChange | None:
    """Return the formulas of shared memory and their limits; None if they are equal or a map has no formula."""
    spaces = bridge.before, bridge.after
    one, other = (space.joint.formula if space.joint else "" for space in spaces)
    limit, moved = (targets.find(space.target).shared_bytes for space in spaces)
    return FormulaChange(one, limit, other, moved) if one and other and (one, limit) != (other, moved) else None


def space_counts(bridge: Bridge) -> Iterator[SpaceCount]:
    """Yield the counts that at least one map has, the equal ones too."""
    before, after = (_numbers(judge) for judge in bridge.judges)
    bounds = [space.joint is not None and space.joint.at_most for space in (bridge.before, bridge.after)]
    for name, one, other in zip((*SIZES, *EFFORTS), before, after, strict=True):
        if one is not None or other is not None:
            bound = bounds if name == PROGRAMS else (False, False)
            yield SpaceCount(name, one, other, name in EFFORTS or one is None or other is None, *bound)


def _numbers(judge: Judge) -> tuple[int | None, ...]:
    space = judge.space
    size = space.joint.sizes if space.joint else None
    sizes = (size.signature, size.feasible, size.programs) if size else (None, None, None)
    return *sizes, len(judge.observations), len(verified(space)), len(handed_over_keys(space))
