"""Modules for Kernel Tuner: parameters with their values, and restrictions as Python expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gluonmap.constraints.semantics import scope_of
from gluonmap.export.expressions import Domains, expression_of
from gluonmap.export.heading import PREDICTED, check_names, evidence, heading, is_spelled, literal
from gluonmap.model.candidate import Value
from gluonmap.model.joint_map import Standing
from gluonmap.model.outcomes import COMPILED
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.feasibility import domains_of, execution_constraints


class Restriction(NamedTuple):
    """A Python expression that a configuration must meet, with its evidence in words."""

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
    """Return the values of each knob; where knobs were mapped one at a time, those that passed alone."""
    if space.joint is not None:
        return domains_of(space)
    found = {name: (value,) for name, value in space.baseline.items()}
    passed = {n: tuple(v.value for v in k.values if v.outcome in COMPILED) for n, k in space.knobs.items()}
    return {**found, **{name: values for name, values in passed.items() if values}}


def restrictions(space: SpaceMap) -> Iterator[Restriction]:
    """Yield the map's constraints as expressions that are equal to them on the domains.

    Constraints over anything but the knobs are left out.
    """
    domains: Domains = tune_params(space)
    for constraint in (*(space.joint.constraints if space.joint else ()), *execution_constraints(space)):
        if scope_of(constraint.relation) <= domains.keys():
            expression = expression_of(constraint.relation, domains)
            # A constraint from executions may forbid only values that `tune_params` leaves out: then it is "True".
            if expression != "True" or constraint.standing is not Standing.EXECUTED:
                yield Restriction(expression, evidence(constraint))
