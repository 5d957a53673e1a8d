"""Selection of the constraints that a report shows one by one; the others are summarised in one sentence."""

from __future__ import annotations

import msgspec

from gluonmap.model.joint_map import Joint, Standing
from gluonmap.model.relations import Nogood

MOST_LONE_FAILURES = 6
"""Number of combinations that failed once each up to which they are shown one by one."""


class ConstraintSummary(msgspec.Struct, frozen=True):
    """Places in `Joint.constraints`, each in one list."""

    shown: tuple[int, ...]
    """Constraints to show one by one."""
    lone: tuple[int, ...]
    """Combinations that failed once each, where there are many of them."""
    implied: tuple[int, ...]
    """Constraints read in the source that add nothing: what breaks them breaks another constraint."""
    untried: tuple[int, ...]
    """Constraints read in the source that no asked configuration breaks."""


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
