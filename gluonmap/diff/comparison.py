"""What differs between two maps. "Before" is the first map, "after" the second: A → B.

Configurations are compared, not settings: where a knob is turned by one map alone, the two are compared at the value
that the other map holds it at. What a map says of a configuration that it was not asked is the judgement of `judge`.
"""

from __future__ import annotations

import msgspec

from gluonmap.constraints.counting import TooEntangled
from gluonmap.diff.bridge import Bridge
from gluonmap.diff.circumstances import Circumstance, MapSide, circumstances, notes, side
from gluonmap.diff.constraints import ConstraintChange, constraint_changes
from gluonmap.diff.flips import ComparedCount, Flip, compared_count, flips
from gluonmap.diff.knobs import KnobChange, ValueChange, knobs, values
from gluonmap.diff.regressions import Regression, regressions
from gluonmap.diff.resources import ProgramPair, ResourceChange, Tolerance, pairs, resource_changes
from gluonmap.diff.spaces import Common, FormulaChange, Shared, SpaceCount, counts, formula, shared
from gluonmap.model.errors import UsageError
from gluonmap.model.space_map import SpaceMap

__all__ = ["Difference", "Tolerance", "difference"]

DIFF_SCHEMA = "gluonmap.diff/1"
DEFAULT = Tolerance()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """All that differs between two maps. Empty parts differ in nothing."""

    schema: str = DIFF_SCHEMA
    before: MapSide
    after: MapSide
    circumstances: tuple[Circumstance, ...]
    notes: tuple[str, ...]
    """What a reader must know to trust the comparison."""
    regressions: tuple[Regression, ...]
    values: tuple[ValueChange, ...]
    knobs: tuple[KnobChange, ...]
    constraints: tuple[ConstraintChange, ...]
    formula: FormulaChange | None
    """None: the bytes and their limit are the same, or one map has no formula."""
    counts: tuple[SpaceCount, ...]
    """All of them, the equal ones too."""
    shared: Shared | None
    """None: one of the maps knows single values only, or its constraints are too entangled to count."""
    asked: ComparedCount
    flips: tuple[Flip, ...]
    pairs: tuple[ProgramPair, ...]
    resources: tuple[ResourceChange, ...]
    tolerance: Tolerance

    @property
    def changed(self) -> bool:
        """Whether the maps say anything different of the kernel. Circumstances alone are no change."""
        facts = (self.values, self.knobs, self.constraints, self.flips, self.regressions)
        return (
            any(facts)
            or self.formula is not None
            or any(count.before != count.after for count in self.counts if not count.effort)
            or any(change.grew or change.shrank for change in self.resources)
            or any(not pair.one_program for pair in self.pairs)
            or (self.before.outcome, self.before.stable) != (self.after.outcome, self.after.stable)
        )


def difference(before: SpaceMap, after: SpaceMap, tolerance: Tolerance = DEFAULT) -> Difference:
    """Return what differs from `before` to `after`.

    Raises:
        UsageError: the maps have no knob in common, so nothing can be compared.
    """
    if before.baseline and after.baseline and not before.baseline.keys() & after.baseline.keys():
        raise UsageError(
            f"the maps of {before.kernel!r} and {after.kernel!r} have no knob in common ({', '.join(before.baseline)}; "
            f"{', '.join(after.baseline)}): give two maps of one kernel."
        )
    bridge = Bridge(before, after)
    judgements = bridge.paired_judgements()
    flipped, paired = flips(bridge, judgements), pairs(bridge, judgements)
    found = tuple(circumstances(bridge))
    whole, constraints = _together(bridge)
    return Difference(
        before=side(before),
        after=side(after),
        circumstances=found,
        notes=tuple(notes(bridge, found)),
        regressions=tuple(regressions(bridge, judgements, flipped, paired, tolerance)),
        values=tuple(values(bridge)),
        knobs=tuple(knobs(bridge)),
        constraints=tuple(constraints),
        formula=formula(bridge),
        counts=tuple(counts(bridge)),
        shared=whole,
        asked=compared_count(judgements, paired),
        flips=tuple(flipped),
        pairs=tuple(paired),
        resources=tuple(resource_changes(paired)),
        tolerance=tolerance,
    )


def _together(bridge: Bridge) -> tuple[Shared | None, list[ConstraintChange]]:
    if bridge.before.joint is None or bridge.after.joint is None:
        return None, []
    common = Common(bridge, bridge.before.joint, bridge.after.joint)
    try:
        tables = common.tables()
        return shared(common, tables), constraint_changes(common, tables)
    except TooEntangled:
        return None, constraint_changes(common, None)
