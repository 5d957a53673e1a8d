"""Effects of values, and the class of a knob that has them."""

from __future__ import annotations

from collections.abc import Sequence

from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import ValueMap
from gluonmap.model.verdict import Program, Verdict

FORBIDDING = (Effect.ABORTING, Effect.CHANGES_RESULT)
"""Effects of values that a tuner must not choose."""


def changes_result(verdict: Verdict) -> bool:
    """Return whether the results differ from the baseline's, where no reference says which are right."""
    return verdict.outcome is Outcome.WRONG and verdict.check is not None and verdict.check.against == "baseline"


def program_difference(base: Program, other: Program) -> str:
    """Return in what two programs with different digests differ."""
    if base.code != other.code:
        return "instructions"
    # The digest also covers what a launch sets: threads, dynamic shared memory and clusters.
    return "descriptor only" if base.descriptor != other.descriptor else "launch only"


def classify(moved: Sequence[ValueMap]) -> KnobClass:
    """Return the class of a knob from the effects of its values other than the baseline."""
    effects = [v.effect for v in moved if v.effect is not Effect.UNKNOWN]
    if not effects:
        return KnobClass.UNKNOWN
    if all(e in FORBIDDING for e in effects):
        return KnobClass.PINNED if len(effects) == len(moved) else KnobClass.BOUNDED
    if any(e in FORBIDDING for e in effects):
        return KnobClass.BOUNDED
    if any(e in (Effect.LIVE, Effect.LIVE_HOST) for e in effects):
        return KnobClass.LIVE
    return KnobClass.INERT if len(effects) == len(moved) else KnobClass.UNKNOWN
