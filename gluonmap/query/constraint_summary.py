"""Constraints as a reader wants them: which are shown one by one, and which are summarised in one sentence."""

from __future__ import annotations

import msgspec

from gluonmap.model.joint_map import Joint, Standing
from gluonmap.model.relations import Nogood

MOST_LONE_FAILURES = 6
"""Combinations that failed once each and are shown one by one; where there are more, all are summarised."""


class ConstraintSummary(msgspec.Struct, frozen=True):
    """Places in `Joint.constraints`, each in one list."""

    shown: tuple[int, ...]
    lone: tuple[int, ...]
    """Combinations that failed once each, where there are many of them."""
    implied: tuple[int, ...]
    """Demands of the source that add nothing: what breaks them breaks another constraint."""
    untried: tuple[int, ...]
    """Demands of the source that no asked configuration breaks."""


def constraint_summary(joint: Joint) -> ConstraintSummary:
    """Return which constraints to show one by one, and which to summarise."""
    shown = [n for n, item in enumerate(joint.constraints) if item.confirmed or item.standing is not Standing.READ]
    lone = [n for n in shown if isinstance(joint.constraints[n].relation, Nogood) and joint.constraints[n].failed <= 1]
    many = tuple(lone) if len(lone) > MOST_LONE_FAILURES else ()
    rest = [n for n in range(len(joint.constraints)) if n not in shown]
    return ConstraintSummary(
        tuple(n for n in shown if n not in many),
        many,
        tuple(n for n in rest if joint.constraints[n].failing_example),
        tuple(n for n in rest if not joint.constraints[n].failing_example),
    )
