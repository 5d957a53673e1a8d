"""The audit by a map alone: nothing is imported, compiled or run."""

from __future__ import annotations

import msgspec

from gluonmap.audit.bound_entries import BoundEntry, bind_entry, full_config, names_of_map, with_defaults
from gluonmap.audit.entry_findings import AuditContext, file_in_numbers, findings_on_file, ordered
from gluonmap.audit.findings import Audit, CheckedRule
from gluonmap.audit.judged_entry import JudgedEntry
from gluonmap.audit.request import AuditRequest
from gluonmap.audit.rule_check import MOST_SHOWN, count_mistakes, filled_in, is_expression
from gluonmap.audit.rule_findings import findings_on_rule
from gluonmap.audit.rule_space import RuleSpace
from gluonmap.audit.wording import shown
from gluonmap.model.candidate import Config, same
from gluonmap.model.errors import UsageError
from gluonmap.model.outcomes import Feasibility, Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.probe import rebuild
from gluonmap.query.feasibility import Basis, Judge
from gluonmap.query.observations import config_key
from gluonmap.query.reduced_space import ReducedSpace, reduced_space_of


def audit_from_map(space: SpaceMap, request: AuditRequest) -> Audit:
    """Return the audit of files and restrictions by a map.

    Raises:
        UsageError: there is nothing to audit, a rule has to be run, or the map cannot judge a rule.
    """
    if not request.sources and not request.rules:
        raise UsageError("--no-compile cannot read the kernel's own list: name files with --configs FILE.")
    names, judge, description = names_of_map(space), Judge(space), rebuild.description_of(space)
    reduced = reduced_space_of(space)
    judged: dict[str, list[JudgedEntry]] = {}
    for source in request.sources:
        bound = [bind_entry(entry, names, {}, whole=source.form.whole) for entry in source.entries]
        bounds = [with_defaults(item, description, names) for item in bound]
        judged[source.file] = [_judged(bound, judge, reduced) for bound in bounds]
    context = AuditContext(target=space.target, triton=space.triton, names=names, space=space)
    findings = [found for s in request.sources for found in findings_on_file(s, judged[s.file], context)]
    checked: list[CheckedRule] = []
    for rule in request.rules:
        texts = [filled_in(text, space) for text in rule.restrictions]
        if not texts or not all(is_expression(text, space) for text in texts):
            raise UsageError(f"{rule.name} has to be run: leave --no-compile out.")
        found = count_mistakes(rule, texts, RuleSpace(space, judge).within(rule.domains)) if space.joint else None
        if found is None:
            raise UsageError(f"{rule.name} needs a map that knows all knobs together: gluonmap probe {space.file}")
        result, alone = found
        result = msgspec.structs.replace(result, drops=result.drops[:MOST_SHOWN], admits=result.admits[:MOST_SHOWN])
        checked.append(result)
        findings += findings_on_rule(rule, result, space, alone)
    return Audit(
        kernel=space.kernel,
        file=space.file,
        target=space.target,
        triton=space.triton,
        map=request.map,
        files=tuple(file_in_numbers(s, judged[s.file]) for s in request.sources),
        entries=tuple(item.checked() for rows in judged.values() for item in rows),
        rules=tuple(checked),
        findings=ordered(findings),
        notes=(
            *(note for s in request.sources for note in s.notes),
            "nothing was compiled: all verdicts come from the map",
        ),
    )


_DEFAULTS: Config = {"num_ctas": 1, "maxnreg": None}
"""Defaults of `triton.Config` that are also the compilers' own, so every map was made with them."""


def _judged(bound: BoundEntry, judge: Judge, reduced: ReducedSpace) -> JudgedEntry:
    space = judge.space
    config = full_config(bound, space.baseline)
    fixed = {**space.recipe.fixed, **space.recipe.args, **space.shape}
    strange = [n for n, v in bound.moves.items() if n not in config and not same(fixed.get(n), v)]
    strange = [n for n in strange if n not in bound.sizes and repr(bound.moves[n]) != repr(_DEFAULTS.get(n, bound))]
    if strange:
        why = f"the map does not turn {', '.join(strange)}"
        return JudgedEntry(bound=bound, verdict=Feasibility.UNKNOWN, basis="no answer", config=config, reason=why)
    found = judge(config)
    passing, unknown = found.verdict is Feasibility.FEASIBLE, found.verdict is Feasibility.UNKNOWN
    basis = "no answer" if unknown else "map" if found.basis is Basis.COMPILED else "predicted"
    untried = ", ".join(shown(name, value) for name, value in found.untried.items())
    return JudgedEntry(
        bound=bound,
        verdict=found.verdict,
        basis=basis,
        config=config,
        outcome=found.outcome or (Outcome.PASS.value if passing else "unknown"),
        reason=found.reason or (f"{found.basis} {untried}".rstrip() if unknown else ""),
        at=found.line,
        digest=found.digest,
        resources=found.resources,
        launch=repr(config_key(reduced.canonical(config))) if passing and space.joint is not None else "",
        because=tuple(f"{item.words} ({item.standing})" for item in found.shown_constraints),
    )
