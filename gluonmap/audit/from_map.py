"""The audit of what a map alone tells: nothing is imported, compiled or run."""

from __future__ import annotations

import msgspec

from gluonmap.audit import bound_entries as binding
from gluonmap.audit import entry_findings, rules
from gluonmap.audit.bound_entries import Bound
from gluonmap.audit.entry_findings import Context, Told
from gluonmap.audit.findings import Audit, RuleChecked
from gluonmap.audit.request import Wanted
from gluonmap.audit.rules import MOST_SHOWN, Ground
from gluonmap.model.candidate import Config, same
from gluonmap.model.errors import UsageError
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.space_map import SpaceMap
from gluonmap.probe import rebuild
from gluonmap.query.feasibility import Basis, Judge
from gluonmap.query.observations import config_key
from gluonmap.query.reduced_space import ReducedSpace, reduced_space_of


def audit(space: SpaceMap, wanted: Wanted) -> Audit:
    """Everything that the map says of the files and restrictions.

    Raises:
        UsageError: nothing to audit; a pruning function, which would have to be run; a map that cannot judge a rule.
    """
    if not wanted.sources and not wanted.rules:
        raise UsageError("--no-compile cannot read the kernel's own list: name files with --configs FILE.")
    names, judge, description = binding.names_of_map(space), Judge(space), rebuild.description_of(space)
    reduced = reduced_space_of(space)
    told: dict[str, list[Told]] = {}
    for source in wanted.sources:
        bound = [binding.bind(entry, names, {}, whole=source.form.whole) for entry in source.entries]
        bounds = [binding.with_defaults(item, description, names) for item in bound]
        told[source.file] = [_told(bound, judge, reduced) for bound in bounds]
    context = Context(target=space.target, triton=space.triton, names=names, space=space)
    findings = [found for s in wanted.sources for found in entry_findings.findings_of(s, told[s.file], context)]
    checked: list[RuleChecked] = []
    for rule in wanted.rules:
        texts = [rules.plain(text, space) for text in rule.restrictions]
        if not texts or not all(rules.is_spoken(text, space) for text in texts):
            raise UsageError(f"{rule.name} has to be run: leave --no-compile out.")
        found = rules.counted(rule, texts, Ground(space, judge).within(rule.domains)) if space.joint else None
        if found is None:
            raise UsageError(f"{rule.name} needs a map that knows all knobs together: gluonmap probe {space.file}")
        result, alone = found
        result = msgspec.structs.replace(result, drops=result.drops[:MOST_SHOWN], admits=result.admits[:MOST_SHOWN])
        checked.append(result)
        findings += rules.findings_of(rule, result, space, alone)
    return Audit(
        kernel=space.kernel,
        file=space.file,
        target=space.target,
        triton=space.triton,
        map=wanted.map,
        files=tuple(entry_findings.in_numbers(s, told[s.file]) for s in wanted.sources),
        entries=tuple(entry_findings.checked(item) for rows in told.values() for item in rows),
        rules=tuple(checked),
        findings=entry_findings.ordered(findings),
        notes=(*(note for s in wanted.sources for note in s.notes), "nothing was compiled: the map alone is asked"),
    )


_DEFAULTS: Config = {"num_ctas": 1, "maxnreg": None}
"""What `triton.Config` says where nobody does: it is the compilers' own default, so every map was made with it."""


def _told(bound: Bound, judge: Judge, reduced: ReducedSpace) -> Told:
    space = judge.space
    config = binding.full(bound, space.baseline)
    fixed = {**space.recipe.fixed, **space.recipe.args, **space.shape}
    strange = [n for n, v in bound.moves.items() if n not in config and not same(fixed.get(n), v)]
    strange = [n for n in strange if n not in bound.sizes and repr(bound.moves[n]) != repr(_DEFAULTS.get(n, bound))]
    if strange:
        why = f"the map does not turn {', '.join(strange)}"
        return Told(bound=bound, verdict=Feasibility.UNKNOWN, basis="no answer", config=config, reason=why)
    found = judge(config)
    passing, unknown = found.verdict is Feasibility.FEASIBLE, found.verdict is Feasibility.UNKNOWN
    basis = "no answer" if unknown else "map" if found.basis is Basis.COMPILED else "predicted"
    untried = ", ".join(entry_findings.shown(name, value) for name, value in found.untried.items())
    return Told(
        bound=bound,
        verdict=found.verdict,
        basis=basis,
        config=config,
        outcome=found.outcome or ("PASS" if passing else "unknown"),
        reason=found.reason or (f"{found.basis} {untried}".rstrip() if unknown else ""),
        at=found.line,
        digest=found.digest,
        resources=found.resources,
        launch=repr(config_key(reduced.canonical(config))) if passing and space.joint is not None else "",
        because=tuple(f"{item.words} ({item.standing})" for item in found.shown_constraints),
    )
