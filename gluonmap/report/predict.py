"""What a map says of many configurations, and where compiles disagree, as plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tabulate import tabulate

from gluonmap.model.joint_map import Standing
from gluonmap.model.outcomes import Feasibility
from gluonmap.query.feasibility import Basis, Judgement
from gluonmap.report.plain_text import first_line, shorten, value_label, visible


class Summary:
    """Counts of judgements, taken in one at a time."""

    def __init__(self) -> None:
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.constraints: Counter[tuple[str, str]] = Counter()
        self.contradictions = 0

    def add(self, told: Judgement) -> None:
        """Count one."""
        self.verdicts[str(told.verdict), basis(told)] += 1
        self.contradictions += told.contradicts
        if told.verdict is Feasibility.INFEASIBLE:
            self.constraints.update((item.words, str(item.standing)) for item in told.shown_constraints)

    def document(self) -> dict[str, object]:
        """The counts, for JSON."""
        return {
            "verdicts": [{"verdict": v, "basis": b, "count": n} for (v, b), n in sorted(self.verdicts.items())],
            "constraints": [{"words": w, "standing": s, "count": n} for (w, s), n in self.constraints.most_common()],
            "contradictions": self.contradictions,
        }

    def render(self) -> str:
        """The counts as tables."""
        rows = [(v, b, n) for (v, b), n in sorted(self.verdicts.items())]
        parts = [tabulate([*rows, ("all", "", self.verdicts.total())], ("verdict", "basis", "configurations"))]
        if self.constraints:
            forbidding = [(visible(w), s, n) for (w, s), n in self.constraints.most_common()]
            parts.append(tabulate(forbidding, ("constraint", "standing", "violated by"), disable_numparse=[0, 1]))
        if self.contradictions:
            parts.append(f"{self.contradictions:,} of the compiled ones contradict the map's constraints.")
        return "\n\n".join(parts)


def basis(told: Judgement) -> str:
    """What a judgement rests on, in few words that many share."""
    if not told.forbidden or told.basis is not Basis.PREDICTED:
        return str(told.basis)
    return str(Standing.GIVEN if any(c.standing is Standing.GIVEN for c in told.broken) else Standing.EXECUTED)


def forbidden(told: Judgement) -> str:
    """By whom, of what no compile can change."""
    given = any(c.standing is Standing.GIVEN for c in told.broken)
    return "forbidden by you" if given else "failed when executed"


def why(told: Judgement) -> str:
    """What one judgement rests on: the constraints, the outcome, or what is missing."""
    broken = "; ".join(f"{item.words} ({item.standing})" for item in told.shown_constraints)
    match told.basis:
        case Basis.COMPILED:
            outcome = "compiled" if told.verdict is Feasibility.FEASIBLE else f"compiled: {told.outcome}"
            found = outcome + (f", {broken}" if broken else "")
        case Basis.PREDICTED:
            found = broken or "predicted"
        case Basis.UNTRIED:
            found = "never tried value " + ", ".join(f"{n}={value_label(v)}" for n, v in told.untried.items())
        case Basis.UNSTABLE | Basis.NO_ANSWER:
            found = str(told.basis) + (f": {first_line(told.reason)}" if told.reason else "")
        case Basis.NO_JOINT:
            found = str(told.basis)
    return visible(found) + (" (contradicts the constraints)" if told.contradicts else "")


def row(number: int, told: Judgement) -> str:
    """One line of the list."""
    return f"line {number:<6} {told.verdict:<11} {why(told)}"


def disagreement(number: int, told: Judgement, fresh: Judgement, repeat: str) -> str:
    """A prediction that a compile has refuted, and the command that repeats it."""
    said = f"{fresh.outcome}: {shorten(first_line(fresh.reason))}" if fresh.reason else fresh.outcome
    place = f" at {visible(fresh.line)}" if fresh.line else ""
    return f"line {number}: {told.verdict} by the map ({why(told)}), and now {said}{place}\n    {repeat}"


def verified(results: Iterable[tuple[Judgement, Judgement | None, bool | None]]) -> str:
    """How many compiles agree with the map, as a table. None for a compile: it was not asked for."""
    counts: Counter[str] = Counter()
    for told, fresh, agreed in results:
        if fresh is None:
            counts[f"{forbidden(told)}, not compiled"] += 1
        elif agreed is not None:
            counts["as the map says" if agreed else "not as the map says"] += 1
        elif fresh.verdict is Feasibility.UNKNOWN:
            counts["no answer"] += 1
        else:
            counts[f"unknown to the map ({basis(told)}), now {fresh.verdict}"] += 1
    return tabulate(sorted(counts.items()), ("compiled now", "configurations"))
