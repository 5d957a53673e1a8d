"""Judgements of a map on many configurations, and disagreements of compiles with them, as plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tabulate import tabulate

from gluonmap.model.joint_map import Standing
from gluonmap.model.outcomes import Feasibility
from gluonmap.query.feasibility import Basis, Judgement
from gluonmap.report.plain_text import first_line, shorten, value_label, visible


class Summary:
    """Counts of judgements, added one at a time."""

    def __init__(self) -> None:
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.constraints: Counter[tuple[str, str]] = Counter()
        self.contradictions = 0

    def add(self, judgement: Judgement) -> None:
        """Count one judgement."""
        self.verdicts[str(judgement.verdict), basis(judgement)] += 1
        self.contradictions += judgement.contradicts
        if judgement.verdict is Feasibility.INFEASIBLE:
            self.constraints.update((item.words, str(item.standing)) for item in judgement.shown_constraints)

    def document(self) -> dict[str, object]:
        """Return the counts, for JSON."""
        return {
            "verdicts": [{"verdict": v, "basis": b, "count": n} for (v, b), n in sorted(self.verdicts.items())],
            "constraints": [{"words": w, "standing": s, "count": n} for (w, s), n in self.constraints.most_common()],
            "contradictions": self.contradictions,
        }

    def render(self) -> str:
        """Return the counts as tables."""
        rows = [(v, b, n) for (v, b), n in sorted(self.verdicts.items())]
        parts = [tabulate([*rows, ("all", "", self.verdicts.total())], ("verdict", "basis", "configurations"))]
        if self.constraints:
            forbidding = [(visible(w), s, n) for (w, s), n in self.constraints.most_common()]
            parts.append(tabulate(forbidding, ("constraint", "standing", "violated by"), disable_numparse=[0, 1]))
        if self.contradictions:
            parts.append(f"{self.contradictions:,} of the compiled ones contradict the map's constraints.")
        return "\n\n".join(parts)


def basis(judgement: Judgement) -> str:
    """Return the kind of evidence for a judgement, in words that many judgements share."""
    if not judgement.forbidden or judgement.basis is not Basis.PREDICTED:
        return str(judgement.basis)
    return str(Standing.GIVEN if any(c.standing is Standing.GIVEN for c in judgement.broken) else Standing.EXECUTED)


def forbidden(judgement: Judgement) -> str:
    """Return who forbids a configuration that no compile can allow: the user, or an execution."""
    given = any(c.standing is Standing.GIVEN for c in judgement.broken)
    return "forbidden by you" if given else "failed when executed"


def why(judgement: Judgement) -> str:
    """Return the evidence for one judgement: the constraints, the outcome, or what is missing."""
    broken = "; ".join(f"{item.words} ({item.standing})" for item in judgement.shown_constraints)
    match judgement.basis:
        case Basis.COMPILED:
            outcome = "compiled" if judgement.verdict is Feasibility.FEASIBLE else f"compiled: {judgement.outcome}"
            found = outcome + (f", {broken}" if broken else "")
        case Basis.PREDICTED:
            found = broken or "predicted"
        case Basis.UNTRIED:
            found = "never tried value " + ", ".join(f"{n}={value_label(v)}" for n, v in judgement.untried.items())
        case Basis.UNSTABLE | Basis.NO_ANSWER:
            found = str(judgement.basis) + (f": {first_line(judgement.reason)}" if judgement.reason else "")
        case Basis.NO_JOINT:
            found = str(judgement.basis)
    return visible(found) + (" (contradicts the constraints)" if judgement.contradicts else "")


def row(number: int, judgement: Judgement) -> str:
    """Return one line of the list."""
    return f"line {number:<6} {judgement.verdict:<11} {why(judgement)}"


def disagreement(number: int, judgement: Judgement, fresh: Judgement, repeat: str) -> str:
    """Return a prediction that a compile has refuted, with the command that repeats it."""
    said = f"{fresh.outcome}: {shorten(first_line(fresh.reason))}" if fresh.reason else fresh.outcome
    place = f" at {visible(fresh.line)}" if fresh.line else ""
    return f"line {number}: {judgement.verdict} by the map ({why(judgement)}), and now {said}{place}\n    {repeat}"


def verified(results: Iterable[tuple[Judgement, Judgement | None, bool | None]]) -> str:
    """Return a table of how many compiles agree with the map. A compile that is None was not asked for."""
    counts: Counter[str] = Counter()
    for judgement, fresh, agreed in results:
        if fresh is None:
            counts[f"{forbidden(judgement)}, not compiled"] += 1
        elif agreed is not None:
            counts["as the map says" if agreed else "not as the map says"] += 1
        elif fresh.verdict is Feasibility.UNKNOWN:
            counts["no answer"] += 1
        else:
            counts[f"unknown to the map ({basis(judgement)}), now {fresh.verdict}"] += 1
    return tabulate(sorted(counts.items()), ("compiled now", "configurations"))
