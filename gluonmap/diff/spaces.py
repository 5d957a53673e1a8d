"""The whole spaces of two maps: how many configurations each allows, of the values that both tried together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from gluonmap.constraints.counting import Elimination, Factor, relation_factor
from gluonmap.constraints.semantics import scope_of
from gluonmap.diff.bridge import Bridge
from gluonmap.diff.regressions import handed_over
from gluonmap.handoff.launches import verified
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Constraint, Joint, Standing
from gluonmap.model.relations import Relation
from gluonmap.query.equivalence import place_of
from gluonmap.query.feasibility import Judge

FEW_ROWS = 100_000
"""Configurations that an example is looked for among; of more, as many are drawn as `DRAWN` says."""
DRAWN = 4096
PROGRAMS = "distinct programs"
SIZES = ("configurations of the signature", "feasible configurations", PROGRAMS)
"""Counts that are the kernel's own, as far as both maps tell them."""
EFFORTS = ("configurations asked", "programs compiled and passed", "configurations handed over")


class FormulaChange(msgspec.Struct, frozen=True):
    """The bytes of shared memory of a configuration, and the target's limit."""

    before: str
    before_limit: int
    after: str
    after_limit: int


class SpaceCount(msgspec.Struct, frozen=True):
    """A number that both maps tell. None: it is not known."""

    name: str
    before: int | None
    after: int | None
    effort: bool = False
    """It depends on how much was asked, too: no change of the kernel by itself."""
    before_at_most: bool = False
    """`before` is a bound: by rules, with not every program compiled."""
    after_at_most: bool = False


class Shared(msgspec.Struct, frozen=True):
    """The configurations of the values that both maps tried together, by the constraints of each."""

    signature: int
    """Those that no user of either map ruled out."""
    before: int
    """Feasible by the first map."""
    after: int
    both: int
    proved: bool
    """Each map asked every configuration: these are facts, not predictions."""
    lost_example: Config | None = None
    """Feasible by the first map and not by the second; as near to the first baseline as any."""
    gained_example: Config | None = None

    @property
    def lost(self) -> int:
        """Feasible by the first map, and not by the second."""
        return self.before - self.both

    @property
    def gained(self) -> int:
        """Feasible by the second map, and not by the first."""
        return self.after - self.both


class Tables(NamedTuple):
    """Constraints as tables over the values that both maps tried."""

    given: list[Factor]
    """What the users of both maps demand."""
    before: list[Factor]
    """What the first map says of the kernel, beside that."""
    after: list[Factor]


class Common:
    """The values that both maps tried together; a knob that one map alone turns is held.

    Where some knob has no value in common there is no configuration.
    """

    def __init__(self, bridge: Bridge, before: Joint, after: Joint) -> None:
        self.bridge, self.joints = bridge, (before, after)
        self.domains: dict[str, tuple[Value, ...]] = {n: (v,) for n, v in bridge.held.items()}
        for name in bridge.shared:
            other = after.domains[name]
            self.domains[name] = tuple(v for v in before.domains[name] if place_of(other, v) is not None)
        self.empty = not all(self.domains.values())

    def tables(self) -> Tables:
        """The constraints of both maps; those that read something else say nothing here.

        Raises:
            TooEntangled: one has too many cells.
        """
        before, after = (joint.constraints for joint in self.joints)
        return Tables(
            self._tables(c for c in (*before, *after) if c.standing is Standing.GIVEN),
            self._tables(c for c in before if c.standing is not Standing.GIVEN),
            self._tables(c for c in after if c.standing is not Standing.GIVEN),
        )

    def _tables(self, constraints: Iterable[Constraint]) -> list[Factor]:
        return [table for item in constraints if (table := self.table(item.relation))]

    def table(self, relation: Relation) -> Factor | None:
        """A relation as a table; None where it reads something else.

        Raises:
            TooEntangled: it has too many cells.
        """
        if not scope_of(relation) <= self.domains.keys():
            return None
        return relation_factor(tuple(self.domains), tuple(self.domains.values()), relation)

    def allowed(self, tables: Iterable[Factor]) -> Elimination:
        """The configurations that all tables allow."""
        return Elimination([len(domain) for domain in self.domains.values()], tables)

    def count(self, tables: Iterable[Factor]) -> int:
        """How many configurations all tables allow."""
        return self.allowed(tables).count


def negated(table: Factor) -> Factor:
    """What a table forbids."""
    return Factor(table.columns, 1.0 - table.table)


def shared(common: Common, tables: Tables) -> Shared | None:
    """Return the two spaces over the values that both maps tried; None: there are none.

    Raises:
        TooEntangled: they cannot be counted.
    """
    if common.empty:
        return None
    bridge, (given, before, after) = common.bridge, tables
    return Shared(
        signature=common.count(given),
        before=common.count([*given, *before]),
        after=common.count([*given, *after]),
        both=common.count([*given, *before, *after]),
        proved=all(joint.enumerated or joint.sizes.complete for joint in common.joints),
        lost_example=_example(common, [*given, *before], after, bridge.before.baseline),
        gained_example=_example(common, [*given, *after], before, bridge.after.baseline),
    )


def _example(common: Common, allowed: list[Factor], refused: list[Factor], baseline: Config) -> Config | None:
    """A configuration that is allowed and that one of `refused` forbids, as near to the baseline as any."""
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


def formula(bridge: Bridge) -> FormulaChange | None:
    """Return the formulas of shared memory and their limits, where both maps have one and something differs."""
    spaces = bridge.before, bridge.after
    one, other = (space.joint.formula if space.joint else "" for space in spaces)
    limit, moved = (targets.find(space.target).shared_bytes for space in spaces)
    return FormulaChange(one, limit, other, moved) if one and other and (one, limit) != (other, moved) else None


def counts(bridge: Bridge) -> Iterator[SpaceCount]:
    """Yield the numbers that both maps tell, the equal ones too."""
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
    return *sizes, len(judge.observations), len(verified(space)), len(handed_over(space))
