"""A user's rule applied to a map's space, and its counterexamples compiled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from gluonmap.audit import rules
from gluonmap.audit.compiles import Asking
from gluonmap.audit.entry_findings import Told
from gluonmap.audit.findings import Example, Finding, RuleChecked
from gluonmap.audit.reference_map import Ready
from gluonmap.audit.rules import MOST_SHOWN, Ground, Rule
from gluonmap.model.outcomes import Feasibility, feasibility
from gluonmap.model.verdict import Verdict
from gluonmap.query.feasibility import Judge
from gluonmap.worker.protocol import Choice


def checked(
    rule: Rule, asking: Asking, ready: Ready, told: Iterable[Told], samples: int
) -> tuple[RuleChecked | None, list[Finding]]:
    """What a rule does on the space of the map, or, where none knows all knobs together, on what was compiled.

    None: it gave no answer, which is a finding.

    Raises:
        UsageError: a restriction that is no expression, or that reads what the map does not have.
    """
    space = ready.space
    if space is None:
        return None, [rules.unreadable(rule, "no entry passes and there is no map, so nothing can judge it")]
    compiled = [
        (item.config, item.outcome)
        for item in told
        if item.basis in ("compiled", "map") and item.bound.moves.keys() <= space.baseline.keys()
    ]
    ground = Ground(space, Judge(space), compiled).within(rule.domains)
    texts = [rules.plain(text, space) for text in rule.restrictions]
    spoken = bool(texts) and all(rules.is_spoken(text, space) for text in texts)
    exact = rules.counted(rule, texts, ground) if spoken and space.joint is not None else None
    alone: Sequence[int | None] = ()
    if exact is not None:
        result, alone = exact
    else:
        pool = ground.pool(samples)
        call = ready.description.candidate({})
        fixed = {name: value for name, value in call.config.items() if name not in space.baseline}
        file = str(Path(rule.file).resolve()) if rule.file else ""
        chosen = asking.choose(Choice(pool.configs, tuple(texts), file, rule.function, call.args, fixed))
        if isinstance(chosen, str):
            return None, [rules.unreadable(rule, chosen)]
        result = rules.decided(rule, pool, chosen[0], ground, chosen[1])
    result = _verified(result, asking, ready)
    return result, rules.findings_of(rule, result, space, alone)


def _verified(result: RuleChecked, asking: Asking, ready: Ready) -> RuleChecked:
    """The same with examples that were all compiled; those that a compile refutes are counted and left out."""
    drops, wrong = _compiled(result.drops, asking, ready, passes=True)
    admits, also_wrong = _compiled(result.admits, asking, ready, passes=False)
    return msgspec.structs.replace(result, drops=drops, admits=admits, refuted=wrong + also_wrong)


def _compiled(
    examples: Sequence[Example], asking: Asking, ready: Ready, *, passes: bool
) -> tuple[tuple[Example, ...], int]:
    """Examples of which a compile says that they do pass, or do not; and how many it refutes."""
    kept = [example for example in examples if example.compiled][:MOST_SHOWN]
    unsure = [example for example in examples if not example.compiled]
    unsure = unsure[: MOST_SHOWN + 1 - len(kept)] if len(kept) < MOST_SHOWN else []
    candidates = [ready.description.candidate(example.moves) for example in unsure]
    refuted = 0
    for example, answer in zip(unsure, asking.ask(candidates, "counterexamples to compile"), strict=True):
        if not isinstance(answer, Verdict) or (verdict := feasibility(answer.outcome)) is Feasibility.UNKNOWN:
            continue
        if (verdict is Feasibility.FEASIBLE) is not passes:
            refuted += 1
            continue
        why = example.why or (answer.reason.text if answer.reason else "")
        kept.append(msgspec.structs.replace(example, compiled=True, outcome=answer.outcome.value, why=why))
    return tuple(kept[:MOST_SHOWN]), refuted
