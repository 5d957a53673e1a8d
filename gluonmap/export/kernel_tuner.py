"""The space for Kernel Tuner: parameters with their values, and restrictions as Python expressions over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gluonmap.constraints.semantics import scope_of
from gluonmap.export.expressions import Domains, expression_of
from gluonmap.export.heading import PREDICTED, check_names, evidence, heading, is_spelled, literal
from gluonmap.model.candidate import Value
from gluonmap.model.joint_map import Standing
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import COMPILED
from gluonmap.query.feasibility import domains_of, execution_constraints


class Restriction(NamedTuple):
    """What a configuration must meet, and what that rests on."""

    expression: str
    evidence: str


def render(space: SpaceMap) -> str:
    """Return a module with `tune_params` and `restrictions`, for `kernel_tuner.tune_kernel`."""
    check_names(space)
    domains = tune_params(space)
    lines = [f"# {line}" for line in (*heading(space, "Parameters and restrictions of"), PREDICTED)]
    if space.joint is None:
        lines.append("# Each value passed alone, beside the baseline; values that failed alone are left out.")
    if any(is_spelled(value) for values in domains.values() for value in values):
        lines.append('# A text that begins with "py:" stands for what it spells in the kernel\'s module.')
    lines += ["", "tune_params = {"]
    lines += [f'    "{name}": [{", ".join(map(literal, values))}],' for name, values in domains.items()]
    lines += ["}", "", "restrictions = ["]
    for restriction in restrictions(space):
        lines += [f"    # {restriction.evidence}", f"    {restriction.expression!r},"]
    return "\n".join([*lines, "]"]) + "\n"


def tune_params(space: SpaceMap) -> dict[str, tuple[Value, ...]]:
    """The values of each knob; without a joint part those that passed alone."""
    if space.joint is not None:
        return domains_of(space)
    found = {name: (value,) for name, value in space.baseline.items()}
    passed = {n: tuple(v.value for v in k.values if v.outcome in COMPILED) for n, k in space.knobs.items()}
    return {**found, **{name: values for name, values in passed.items() if values}}


def restrictions(space: SpaceMap) -> Iterator[Restriction]:
    """The map's constraints as expressions, equal on the domains. What reads more than the knobs is left out."""
    domains: Domains = tune_params(space)
    for constraint in (*(space.joint.constraints if space.joint else ()), *execution_constraints(space)):
        if scope_of(constraint.relation) <= domains.keys():
            expression = expression_of(constraint.relation, domains)
            if expression != "True" or constraint.standing is not Standing.EXECUTED:  # whose values are left out
                yield Restriction(expression, evidence(constraint))
