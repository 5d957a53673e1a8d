"""Apply a rule to the space of a map, and compile its counterexamples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from gluonmap.audit.compiles import AuditCompiles
from gluonmap.audit.findings import AuditFinding, CheckedRule, Counterexample
from gluonmap.audit.judged_entry import JudgedEntry
from gluonmap.audit.reference_map import Reference
from gluonmap.audit.request import PruningRule
from gluonmap.audit.rule_check import MOST_SHOWN, check_selection, count_mistakes, filled_in, is_expression
from gluonmap.audit.rule_findings import failed_rule, findings_on_rule
from gluonmap.audit.rule_space import RuleSpace
from gluonmap.model.outcomes import Feasibility, feasibility
from gluonmap.model.verdict import Verdict
from gluonmap.query.feasibility import Judge
from gluonmap.worker.protocol import Choice


def check_rule(
    rule: PruningRule, compiles: AuditCompiles, reference: Reference, entries: Iterable[JudgedEntry], samples: int
) -> tuple[CheckedRule | None, list[AuditFinding]]:
    """Check a rule on the space of the map, or, if the map has no joint part, on the compiled configurations alone.

    The result is None if the rule gave no answer; a finding then says why.

    Raises:
        UsageError: a restriction is no expression, or reads a name that the map does not have.
    """
    space = reference.space
    if space is None:
        return None, [failed_rule(rule, "no entry passes and there is no map, so nothing can judge it")]
    compiled = [
        (item.config, item.outcome)
        for item in entries
        if item.basis in ("compiled", "map") and item.bound.moves.keys() <= space.baseline.keys()
    ]
    rule_space = RuleSpace(space, Judge(space), compiled).within(rule.domains)
    texts = [filled_in(text, space) for text in rule.restrictions]
    countable = bool(texts) and all(is_expression(text, space) for text in texts)
    exact = count_mistakes(rule, texts, rule_space) if countable and space.joint is not None else None
    alone: Sequence[int | None] = ()
    if exact is not None:
        result, alone = exact
    else:
        pool = rule_space.pool(samples)
        call = reference.description.candidate({})
        fixed = {name: value for name, value in call.config.items() if name not in space.baseline}
        file = str(Path(rule.file).resolve()) if rule.file else ""
        chosen = compiles.choose(Choice(pool.configs, tuple(texts), file, rule.function, call.args, fixed))
        if isinstance(chosen, str):
            return None, [failed_rule(rule, chosen)]
        result = check_selection(rule, pool, chosen[0], rule_space, chosen[1])
    result = _verified(result, compiles, reference)
    return result, findings_on_rule(rule, result, space, alone)


def _verified(result: CheckedRule, compiles: AuditCompiles, reference: Reference) -> CheckedRule:
    """Compile the counterexamples; count and drop those that a compile refutes."""
    drops, wrong = _compiled(result.drops, compiles, reference, passes=True)
    admits, also_wrong = _compiled(result.admits, compiles, reference, passes=False)
    return msgspec.structs.replace(result, drops=drops, admits=admits, refuted=wrong + also_wrong)


def _compiled(
    examples: Sequence[Counterexample], compiles: AuditCompiles, reference: Reference, *, passes: bool
) -> tuple[tuple[Counterexample, ...], int]:
    """Return the examples that a compile confirms to pass (or to fail), and the number that it refutes."""
    kept = [example for example in examples if example.compiled][:MOST_SHOWN]
    unsure = [example for example in examples if not example.compiled]
    unsure = unsure[: MOST_SHOWN + 1 - len(kept)] if len(kept) < MOST_SHOWN else []
    candidates = [reference.description.candidate(example.moves) for example in unsure]
    refuted = 0
    for example, answer in zip(unsure, compiles.ask(candidates, "counterexamples to compile"), strict=True):
        if not isinstance(answer, Verdict) or (verdict := feasibility(answer.outcome)) is Feasibility.UNKNOWN:
            continue
        if (verdict is Feasibility.FEASIBLE) is not passes:
            refuted += 1
            continue
        why = example.why or (answer.reason.text if answer.reason else "")
        kept.append(msgspec.structs.replace(example, compiled=True, outcome=answer.outcome.value, why=why))
    return tuple(kept[:MOST_SHOWN]), refuted
