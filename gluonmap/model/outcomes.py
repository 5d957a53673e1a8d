"""What an outcome says of its configuration: whether it can be tuned with, and whether it is evidence."""

from __future__ import annotations

from enum import StrEnum

from gluonmap.model.verdict import Outcome


class Feasibility(StrEnum):
    """Whether a configuration can be compiled and launched, as far as is known."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


def feasibility(outcome: str) -> Feasibility:
    """What an outcome says. A hang counts as infeasible: nobody can tune with it. What was not executed compiled."""
    if outcome not in Outcome.__members__:
        return Feasibility.UNKNOWN
    match Outcome(outcome):
        case Outcome.PASS | Outcome.NOT_EXECUTED:
            return Feasibility.FEASIBLE
        case Outcome.REJECTED | Outcome.CRASHED | Outcome.NO_RESOURCES | Outcome.HUNG | Outcome.WRONG | Outcome.UNSAFE:
            return Feasibility.INFEASIBLE
        case Outcome.SKIPPED:
            return Feasibility.UNKNOWN


def is_evidence(outcome: str) -> bool:
    """An answer that constraints may be learned from: a hang may be the machine's doing."""
    return feasibility(outcome) is not Feasibility.UNKNOWN and outcome != Outcome.HUNG
