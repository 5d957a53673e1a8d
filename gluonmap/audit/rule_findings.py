"""Findings about a rule, from the counts of its mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gluonmap.audit.findings import (
    AuditFinding,
    CheckedRule,
    Counterexample,
    FindingKind,
    Severity,
    ShippedPlace,
    Tally,
    new_finding,
)
from gluonmap.audit.request import PruningRule
from gluonmap.audit.wording import shown
from gluonmap.model.candidate import same
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.wording import listed_briefly
from gluonmap.query.feasibility import domains_of


def findings_on_rule(
    rule: PruningRule, result: CheckedRule, space: SpaceMap, alone: Sequence[int | None] = ()
) -> list[AuditFinding]:
    """Return the findings about one rule. `alone`: number of feasible configurations that each restriction drops."""
    findings = list(_unjudged(rule, space))
    if result.infeasible.mistaken:
        sure = any(example.compiled for example in result.admits)
        text = f"{_of(result.infeasible, 'infeasible')} are kept by {rule.name}"
        severity = None if sure or not result.refuted else Severity.WARNING
        details = [f"{_example_text(e)}{f': {e.why}' if e.why else ''}" for e in result.admits]
        findings.append(
            new_finding(
                FindingKind.ADMITS_INFEASIBLE,
                text,
                *rule.places,
                severity=severity,
                details=(*details, *_refuted(result)),
            )
        )
    if result.feasible.mistaken and result.lost != 0:
        lost = (
            f", and {result.lost:,} of {result.programs:,} programs are lost" if result.lost and result.programs else ""
        )
        text = f"{_of(result.feasible, 'feasible')} are dropped by {rule.name}{lost}"
        blame = sorted(zip(alone, rule.restrictions, rule.places or [None] * len(alone), strict=False), key=_most)
        details = [f"{words!r} alone drops {count:,}" for count, words, _ in blame if count and len(alone) > 1]
        details += [_example_text(e) for e in result.drops]
        places = [place for _, _, place in blame if place is not None] or rule.places
        findings.append(new_finding(FindingKind.DROPS_FEASIBLE, text, *places, details=(*details, *_refuted(result))))
    return findings


def _unjudged(rule: PruningRule, space: SpaceMap) -> Iterator[AuditFinding]:
    """Yield the knobs and values of a rule's own domains that the map does not have."""
    known = domains_of(space)
    for name, values in rule.domains.items():
        if name not in known:
            text = f"tune_params has {name}, which is no knob of the map"
            yield new_finding(FindingKind.UNKNOWN_KEY, text, *rule.places[:1], knob=name)
        elif strange := [repr(v) for v in values if not any(same(v, other) for other in known[name])]:
            text = (
                f"tune_params has {name} = {listed_briefly(strange, word='or')}, which the map never tried: not judged"
            )
            yield new_finding(FindingKind.NO_ANSWER, text, *rule.places[:1], severity=Severity.NOTICE, knob=name)


def _most(blame: tuple[int | None, str, ShippedPlace | None]) -> int:
    return -(blame[0] or 0)


def _refuted(result: CheckedRule) -> tuple[str, ...]:
    if not result.refuted:
        return ()
    return (f"{result.refuted} more that the map predicts so were compiled, and there the map is wrong",)


def _of(tally: Tally, word: str) -> str:
    """ "12 of 2,304 feasible configurations", "12 of 4,096 … drawn from 440,064", "1 of 3 … that were compiled"."""
    many = f"{tally.mistaken:,} of {tally.looked_at:,} {word} configurations"
    if tally.size == tally.looked_at:
        return many
    return f"{many} drawn from {tally.size:,}" if tally.size else f"{many} that were compiled"


def _example_text(example: Counterexample) -> str:
    moves = listed_briefly([shown(name, value) for name, value in example.moves.items()], 12) or "the baseline"
    if not example.compiled:
        return f"{moves} (predicted)"
    return f"{moves} ({example.outcome})"


def failed_rule(rule: PruningRule, why: str) -> AuditFinding:
    """Return the finding about a rule that gave no answer."""
    return new_finding(FindingKind.RULE_FAILS, f"{rule.name} fails: {why}", *rule.places)
