"""Modules with `early_config_prune` for `triton.autotune` that run without gluonmap."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gluonmap.constraints.semantics import scope_of
from gluonmap.export import pruner
from gluonmap.export.expressions import expression_of
from gluonmap.export.heading import (
    PREDICTED,
    check_names,
    evidence,
    heading,
    launch_defaults,
    literal,
    one_line,
    refuse_spelled,
)
from gluonmap.handoff.launches import launches, options_of
from gluonmap.model.candidate import Config, Value
from gluonmap.model.dtypes import DTYPES, POINTER
from gluonmap.model.joint_map import Constraint
from gluonmap.model.knobs import KnobKind
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import LAUNCH_OPTIONS
from gluonmap.query.feasibility import Judge, Judgement, domains_of, moves_of
from gluonmap.query.observations import Observations
from gluonmap.query.reduced_space import reduced_space_of

_LINE = "# ---- what follows"
_USE = 'Give it to the tuner: triton.autotune(…, prune_configs_by={"early_config_prune": early_config_prune}).'
_INSTEAD = "gluonmap.early_config_prune(MAP) knows such values."


def render(space: SpaceMap, limit: int | None = None) -> str:
    """Return a module whose `early_config_prune` decides as `gluonmap.early_config_prune` does with this one map.

    `limit`: the largest number of the map's own configurations, which replace a list of which nothing is left.

    Raises:
        UsageError: nothing passed; Triton is not installed; a value is not plain.
    """
    check_names(space)
    domains = domains_of(space)
    for name, values in domains.items():
        for value in values:
            refuse_spelled(space, {name: value}, _INSTEAD)
    own, judge = launches(space, limit), Judge(space)
    comments = [*heading(space, "A pruning function for"), PREDICTED, _USE]
    unsaid = {**launch_defaults(space), **space.recipe.fixed}
    lines = [f"# {line}" for line in comments]
    lines += ["", "import sys", "import warnings", "from collections.abc import Callable", "from typing import Any", ""]
    lines += [f"KERNEL, TARGET = {space.kernel!r}, {space.target!r}"]
    lines += ["", "# Whether what the map cannot tell (a value that was never tried, …) stays.", "KEEP_UNKNOWN = False"]
    lines += ["", "# The value of a knob that neither configuration nor call nor compiler sets.", "BASELINE = {"]
    lines += [*(f"    {name!r}: {literal(value)}," for name, value in space.baseline.items()), "}"]
    lines += ["", "# The values that some answered configuration had, as text.", "SEEN = {"]
    lines += [f"    {name!r}: {tuple(map(repr, _seen(judge, domains[name], name)))!r}," for name in space.baseline]
    lines += ["}", "", "# The compiler's options where nobody sets them.", "DEFAULTS = {"]
    lines += [*(f"    {name!r}: {value!r}," for name, value in unsaid.items() if _is_plain(value)), "}"]
    knobs = tuple(name for name, knob in space.knobs.items() if knob.kind is KnobKind.OPTION)
    lines += [f"OPTION_KNOBS = {knobs!r}", "", "# The types and the fixed values that the map holds for."]
    lines += [f"ARGUMENTS = {_arguments(space)!r}", f"FIXED = {_fixed(space)!r}"]
    given = [c for c in judge.constraints if c.standing.binding]
    learned = [c for c in judge.constraints if not c.standing.binding]
    lines += [
        "",
        "# What its author demands of a configuration, and what failed when it was executed.",
        *_rules("GIVEN", given, space),
    ]
    lines += ["", "# What the compiler demands, as far as the map knows.", *_rules("RULES", learned, space)]
    lines += [f"ONE_MOVE_ONLY = {space.joint is None}", ""]
    lines += ["# Answers that the rules do not give: what is moved from the baseline -> whether it passes."]
    lines += ["ANSWERED = {", *_answered(judge), "}"]
    lines += ["", "# Values that are one program: knob, what decides, and there: value -> the one that stands for it."]
    lines += ["EQUAL = [", *_equal(space), "]"]
    lines += ["", "# The map's own configurations, where nothing is left of a list.", "OWN = ["]
    lines += [f"    {_launch(launch, unsaid)}," for launch in own]
    lines += ["]", "", *_code()]
    return "\n".join(lines) + "\n"


def _code() -> Iterator[str]:
    text = Path(pruner.__file__).read_text(encoding="utf-8")
    after = text[text.index(_LINE) :].partition("\n")[2]
    yield after.strip("\n").replace("  # type: ignore[union-attr]", "")


def _seen(judge: Judge, domain: Sequence[Value], name: str) -> list[Value]:
    base = judge.space.baseline
    return [value for value in domain if name not in judge.untried({**base, name: value})]


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or type(value) in (bool, int, float, str)


def _arguments(space: SpaceMap) -> dict[str, tuple[str, ...]]:
    """Return the accepted names of each argument's type: a dtype by Triton's and torch's name, int, float or None."""
    found: dict[str, tuple[str, ...]] = {}
    for name, known in space.specialisation.items():
        if pointer := POINTER.match(known):
            named = [(short, full) for short, (full, _) in DTYPES.items() if pointer["dtype"] in (short, full)]
            found[name] = named[0] if named else (pointer["dtype"],)
        elif not known.startswith("tensordesc"):
            found[name] = ("None",) if known == "None" else ("float",) if known.startswith("fp") else ("int",)
    return found


def _fixed(space: SpaceMap) -> Config:
    options = options_of(space.target)
    return {name: value for name, value in space.recipe.fixed.items() if name not in options}


def _rules(name: str, constraints: Iterable[Constraint], space: SpaceMap) -> Iterator[str]:
    domains = domains_of(space)
    yield f"{name}: list[Callable[[dict[str, Any]], bool]] = ["
    for constraint in constraints:
        if scope_of(constraint.relation) <= domains.keys():
            yield f"    # {evidence(constraint)}"
            yield f"    lambda c: {expression_of(constraint.relation, domains, lambda knob: f'c[{knob!r}]')},"
    yield "]"


def _answered(judge: Judge) -> Iterator[str]:
    """Yield the moves of configurations whose recorded answer differs from the answer of the rules."""
    space, done = judge.space, set()
    for config in _configurations(judge.observations):
        moves = tuple((name, repr(value)) for name, value in moves_of(space, config).items())
        judgement = judge(config)
        if moves in done or (verdict := _truth(judgement)) == _by_rule(space, config, judgement):
            continue
        done.add(moves)
        answer = judgement.outcome or judgement.basis
        answer = f"{answer}: {judgement.reason}" if judgement.reason else answer
        yield f"    # {one_line(answer)}" + (f" ({one_line(judgement.line)})" if judgement.line else "")
        yield f"    {moves!r}: {verdict},"


def _configurations(found: Observations) -> Iterator[Config]:
    """Yield every configuration that the map has an entry for."""
    singles = (item for items in found.values.values() for item in items)
    yield from (item.config for item in (found.baseline, *singles, *found.joint, *found.programs))
    if joint := found.space.joint:
        yield from ({**found.space.baseline, **unstable.config} for unstable in joint.unstable)
        yield from ({**found.space.baseline, **config} for config in joint.unknown)


def _truth(judgement: Judgement) -> bool | None:
    match judgement.verdict:
        case Feasibility.FEASIBLE:
            return True
        case Feasibility.INFEASIBLE:
            return False
        case Feasibility.UNKNOWN:
            return None


def _by_rule(space: SpaceMap, config: Config, judgement: Judgement) -> bool | None:
    """Return the verdict of the exported function for a configuration that has no recorded answer."""
    if judgement.forbidden:
        return False
    if (space.joint is None and len(moves_of(space, config)) > 1) or judgement.untried:
        return None
    return not judgement.broken


def _equal(space: SpaceMap) -> Iterator[str]:
    if space.joint is None:
        for name, knob in space.knobs.items():
            first = {
                repr(value): knob.baseline if knob.baseline in group else group[0]
                for group in knob.equivalent
                for value in group
            }
            if first:
                yield f"    # {one_line(knob.why)}"
                yield f"    ({name!r}, (), {{(): {first!r}}}),"
        return
    reduced = reduced_space_of(space)
    why = {item.knob: item.words for item in space.joint.inertness if item.relation or not item.condition}
    for step in reduced.steps:
        reads = [column for column in step.columns if column != step.column]
        domain, cases = reduced.domains[step.column], dict[tuple[str, ...], dict[str, Value]]()
        for places in itertools.product(*(range(len(reduced.domains[column])) for column in reads)):
            at: dict[int, Any] = {**dict(zip(reads, places, strict=True)), step.column: slice(None)}
            canonical = step.table[tuple(at[column] for column in step.columns)]
            case = {repr(domain[i]): domain[int(to)] for i, to in enumerate(canonical) if i != int(to)}
            if case:
                cases[tuple(repr(reduced.domains[c][p]) for c, p in zip(reads, places, strict=True))] = case
        name = reduced.names[step.column]
        yield f"    # {one_line(why.get(name, '')) or f'values of {name} that gave one program'}"
        yield f"    ({name!r}, {tuple(reduced.names[c] for c in reads)!r}, {cases!r}),"


def _launch(launch: Config, unsaid: dict[str, Any]) -> str:
    own = {name: value for name, value in launch.items() if name not in LAUNCH_OPTIONS}
    options = {name: launch.get(name, unsaid.get(name)) for name in LAUNCH_OPTIONS}
    return repr((own, {name: value for name, value in options.items() if value is not None}))
