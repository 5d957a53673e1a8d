"""Single values: the candidates that move one knob, and what their answers say about the knob's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gluonmap.constraints import expressions
from gluonmap.model.candidate import Candidate, Value, same
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import Inspection, LiteralRule
from gluonmap.model.knobs import KnobKind
from gluonmap.model.verdict import Answer, Verdict
from gluonmap.probe.effects import changes_result
from gluonmap.runner.journal import key_of
from gluonmap.source.literal_rules import read_literal_rules
from gluonmap.source.reads import find_reads
from gluonmap.spec.description import Description

"""Outcomes of an execution that speak against a value."""


def singles(description: Description) -> dict[tuple[str, int], Candidate]:
    """Return the candidates of all moves of one knob, by knob and position in its domain, without the baseline."""
    return {
        (name, place): description.candidate({name: value})
        for name, knob in description.knobs.items()
        for place, value in enumerate(knob.domain)
        if not same(value, knob.baseline)
    }


def result_changing_values(description: Description, answers: Mapping[str, Answer]) -> dict[str, list[Value]]:
    """Return values by knob whose result is not the baseline's, where no reference says which result is right."""
    found: dict[str, list[Value]] = {}
    for (name, place), candidate in singles(description).items():
        answer = answers.get(key_of(candidate))
        if isinstance(answer, Verdict) and changes_result(answer):
            found.setdefault(name, []).append(description.knobs[name].domain[place])
    return found


def values_failing_when_executed(description: Description, answers: Mapping[str, Answer]) -> dict[str, list[Value]]:
    """Return values by knob that compile, and fail when they are executed."""
    found: dict[str, list[Value]] = {}
    for (name, place), candidate in singles(description).items():
        answer = answers.get(key_of(candidate))
        if isinstance(answer, Verdict) and answer.stage.executes and answer.outcome.info.from_running_code:
            found.setdefault(name, []).append(description.knobs[name].domain[place])
    return found


def restrictions_without(problem: Mapping[str, Sequence[Value]]) -> list[str]:
    """Return restrictions that leave these values out."""
    return [f"{name} not in {tuple(values)!r}" for name, values in problem.items()]


def unread_knobs(inspection: Inspection, description: Description) -> Sequence[str]:
    """Return the knobs that neither the kernel nor the compiler nor any host expression reads."""
    texts = [description.grid, *description.derive.values(), *map(str, description.args.values())]
    host_text = " ".join(texts)
    return [
        name
        for name, knob in description.knobs.items()
        if knob.kind is KnobKind.CONSTEXPR
        # A substring match may report a false read. That is safe: it only adds comparisons.
        and name not in host_text
        and not find_reads(inspection.functions, name)
    ]


def demands(inspection: Inspection, description: Description) -> tuple[LiteralRule, ...]:
    """Return what layouts and assertions in the source demand of a configuration."""
    return tuple(read_literal_rules(inspection.functions, inspection.parameters, description.target.warp_size))


def violates(rule: LiteralRule, names: Mapping[str, Value]) -> bool:
    """Return whether a configuration breaks a demand of the source; `names` are its values and all that is derived."""
    try:
        return not expressions.evaluate(rule.expression, names)
    except UsageError:
        return False  # the rule reads a name that this configuration does not have
