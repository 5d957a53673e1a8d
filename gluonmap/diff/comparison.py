"""The difference between two maps. "Before" is the first map, "after" the second: A → B.

Configurations are compared. Where one map alone turns a knob, the two are compared at the value that the other map
holds it at. For a configuration that a map was not asked, `query.feasibility` gives the map's judgement.
"""

from __future__ import annotations

import msgspec

from gluonmap.constraints.counting import TooEntangled
from gluonmap.diff.bridge import Bridge
from gluonmap.diff.circumstances import Circumstance, MapSide, circumstances, map_side, notes
from gluonmap.diff.constraints import ConstraintChange, constraint_changes
from gluonmap.diff.flips import ComparedCount, Flip, compared_count, flips
from gluonmap.diff.knobs import KnobChange, ValueChange, knob_changes, value_changes
from gluonmap.diff.regressions import Regression, regressions
from gluonmap.diff.resources import ProgramPair, ResourceChange, Tolerance, program_pairs, resource_changes
from gluonmap.diff.spaces import (
    CommonDomains,
    FormulaChange,
    SharedSpace,
    SpaceCount,
    formula_change,
    shared_space,
    space_counts,
)
from gluonmap.model.errors import UsageError
from gluonmap.model.space_map import SpaceMap

__all__ = ["Difference", "Tolerance", "difference"]

DIFF_SCHEMA = "gluonmap.diff/1"
DEFAULT = Tolerance()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs between two maps. In an empty part they agree."""

    schema: str = DIFF_SCHEMA
    before: MapSide
    after: MapSide
    circumstances: tuple[Circumstance, ...]
    notes: tuple[str, ...]
    """Sentences that a reader needs to trust the comparison."""
    regressions: tuple[Regression, ...]
    values: tuple[ValueChange, ...]
    knobs: tuple[KnobChange, ...]
    constraints: tuple[ConstraintChange, ...]
    formula: FormulaChange | None
    """None: the formula and the limit are the same, or one map has no formula."""
    counts: tuple[SpaceCount, ...]
    """All counts, the equal ones too."""
    shared: SharedSpace | None
    """None: one of the maps knows single values only, or its constraints are too entangled to count."""
    asked: ComparedCount
    flips: tuple[Flip, ...]
    pairs: tuple[ProgramPair, ...]
    resources: tuple[ResourceChange, ...]
    tolerance: Tolerance

    @property
    def changed(self) -> bool:
        """Return whether the maps differ in anything about the kernel. Circumstances alone are no change."""
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
    """Return the difference from `before` to `after`.

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
    flipped, paired = flips(bridge, judgements), program_pairs(bridge, judgements)
    found = tuple(circumstances(bridge))
    whole, constraints = _compared_spaces(bridge)
    return Difference(
        before=map_side(before),
        after=map_side(after),
        circumstances=found,
        notes=tuple(notes(bridge, found)),
        regressions=tuple(regressions(bridge, judgements, flipped, paired, tolerance)),
        values=tuple(value_changes(bridge)),
        knobs=tuple(knob_changes(bridge)),
        constraints=tuple(constraints),
        formula=formula_change(bridge),
        counts=tuple(space_counts(bridge)),
        shared=whole,
        asked=compared_count(judgements, paired),
        flips=tuple(flipped),
        pairs=tuple(paired),
        resources=tuple(resource_changes(paired)),
        tolerance=tolerance,
    )


def _compared_spaces(bridge: Bridge) -> tuple[SharedSpace | None, list[ConstraintChange]]:
    if bridge.before.joint is None or bridge.after.joint is None:
        return None, []
    common = CommonDomains(bridge, bridge.before.joint, bridge.after.joint)
    try:
        tables = common.tables()
        return shared_space(common, tables), constraint_changes(common, tables)
    except TooEntangled:
        return None, constraint_changes(common, None)
