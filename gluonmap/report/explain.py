"""Explanation of one configuration, for the terminal: why it fails, what is near it, which knobs matter there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gluonmap.model import outcomes
from gluonmap.model.candidate import Config, same
from gluonmap.model.joint_map import Constraint, Standing
from gluonmap.model.outcomes import Feasibility, Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.wording import listed
from gluonmap.probe.spelling import quoted
from gluonmap.query import coverage
from gluonmap.query.explain import Explanation, FailingPart, KnobRelevance, Neighbour
from gluonmap.query.feasibility import Basis, Judgement, moves_of
from gluonmap.query.observations import observations
from gluonmap.report import execution
from gluonmap.report.knobs import source_demand
from gluonmap.report.map_header import target_name
from gluonmap.report.plain_text import config_text, first_line, location, shorten, value_label, visible
from gluonmap.report.resources import resource_figures

MOST_CONSTRAINTS = 8
RUN_PHASE = "run"
"""The recorded stage of a candidate that was executed on the CPU."""

_COLOURS = {Feasibility.FEASIBLE: "bold green", Feasibility.INFEASIBLE: "bold red", Feasibility.UNKNOWN: "bold magenta"}
_STANDING = {
    Standing.GIVEN: "given by you",
    Standing.READ: "read from the source",
    Standing.LEARNED: "learned",
    Standing.IMPLIED: "implied by the others",
    Standing.EXECUTED: "seen when executed",
}
_MATTERS = {True: ("matters", "green"), False: ("does not", "dim"), None: ("not known", "magenta")}


def render(space: SpaceMap, map_name: str, explanation: Explanation, console: Console) -> None:
    """Print what is known of one configuration of a map, and the commands that go on from there."""
    if console.is_terminal and not console.options.ascii_only:
        _print(space, map_name, explanation, console)
        return
    with console.capture() as captured:
        _print(space, map_name, explanation, console)
    plain = "".join(line.rstrip() + "\n" for line in captured.get().split("\n")[:-1])
    plain = plain.encode(console.encoding, "backslashreplace").decode(console.encoding)
    console.out(plain, end="", highlight=False)


def _print(space: SpaceMap, map_name: str, explanation: Explanation, console: Console) -> None:
    judgement = explanation.judgement
    verdict = Text(judgement.verdict.upper(), _COLOURS[judgement.verdict])
    verdict.append(visible(f": {space.kernel} on {target_name(space.target)} with {_moved(explanation.moves)}"), "bold")
    console.print(verdict)
    _say(how_known(space, judgement, fresh=explanation.fresh), console)
    for line in [] if explanation.fresh else _of_the_execution(space, explanation.config):
        _say(line, console)
    if judgement.contradicts:
        _say("This contradicts the map's constraints: they do not describe this configuration.", console, "yellow")
    if explanation.fresh:
        where = f" at {judgement.line}" if judgement.line else ""
        stage = f" ({judgement.stage})" if judgement.stage else ""
        if judgement.reason:
            _say(f"{judgement.reason}{where}{stage}", console)
    if judgement.resources is not None:
        program = f"program {judgement.digest[:8]}: " if judgement.digest else ""
        figures = resource_figures(space.target, judgement.resources)
        _say(program + ", ".join(f"{f.head} {f.text}" for f in figures), console)
    if judgement.broken:
        _constraints(space, judgement, explanation.config, console)
    if explanation.part is not None:
        _part(explanation.part, console)
    if explanation.nearest:
        _nearest(space, map_name, explanation.nearest, console)
    elif judgement.verdict is not Feasibility.FEASIBLE:
        _head("Nearest feasible configurations", console)
        _say("none is known", console, indent=1)
    if explanation.matters:
        _matters(explanation, console)
    _head("Repeat by hand", console)
    _command(repeat_command(space, map_name, explanation.config), console)


def repeat_command(space: SpaceMap, map_name: str, config: Config) -> str:
    """Return the command that compiles one configuration of a map by hand."""
    moves = "".join(f" {quoted(name, value)}" for name, value in moves_of(space, config).items())
    return f"gluonmap repeat {shlex.quote(map_name)}{moves}"


def how_known(space: SpaceMap, judgement: Judgement, *, fresh: bool = False) -> str:
    """Return one sentence with the evidence for a judgement."""
    outcome = outcomes.named(judgement.outcome)
    did = "passes" if judgement.outcome == "PASS" else f"{judgement.outcome}" if outcome else "no answer"
    match judgement.basis:
        case Basis.COMPILED if fresh:
            return f"Compiled now: {did}."
        case Basis.COMPILED:
            where = f" at {judgement.line}" if judgement.line else ""
            stage = f" ({judgement.stage})" if judgement.stage else ""
            said = f": {shorten(first_line(judgement.reason))}" if judgement.reason else ""
            if outcome is Outcome.NOT_EXECUTED:
                return f"Compiled for the map: passes. It was not executed{said}{where}; its numbers are unknown."
            if judgement.stage == RUN_PHASE:
                return f"Compiled and executed for the map: {did}{said}{where}."
            return f"Compiled for the map: {did}{said}{where}{stage}."
        case Basis.PREDICTED if any(item.standing is Standing.EXECUTED for item in judgement.broken):
            return "Known from the execution of one of its values by itself."
        case Basis.PREDICTED if judgement.verdict is Feasibility.INFEASIBLE:
            return f"Predicted by the constraints; this very configuration was not compiled.{_bound(space, 'fail')}"
        case Basis.PREDICTED:
            count = len(space.joint.constraints) if space.joint else 0
            return f"Predicted: it meets {_all(count)}; it was not compiled itself.{_bound(space, 'pass')}"
        case Basis.UNTRIED:
            values = listed(f"{n}={value_label(v)}" for n, v in judgement.untried.items())
            return f"The map has never tried {values}."
        case Basis.UNSTABLE:
            return f"Unstable: {judgement.reason}."
        case Basis.NO_ANSWER:
            return f"No answer: {shorten(first_line(judgement.reason)) or 'it was asked, and no answer came'}."
        case Basis.NO_JOINT:
            return (
                "The map knows one knob at a time only, and here several are moved. gluonmap probe maps them together."
            )


def _bound(space: SpaceMap, what: str) -> str:
    """Return the bound on mistaken predictions of this kind, if the map's certificate has one."""
    certificate = space.joint.certificate if space.joint else None
    found = (
        [s for s in certificate.strata if s.name == f"predicted to {what}" and s.draws and s.telling]
        if certificate
        else []
    )
    if not certificate or not found:
        return ""
    return (
        f" Of those predicted to {what}, at most {found[0].error_bound:.1%} are mistaken "
        f"({certificate.confidence:.0%} confidence)."
    )


def _all(count: int) -> str:
    return "all constraints" if count > 2 else "the constraint" if count == 1 else f"{count or 'no'} constraints"


def _constraints(space: SpaceMap, judgement: Judgement, config: Config, console: Console) -> None:
    certain = judgement.basis in (Basis.COMPILED, Basis.PREDICTED) and not judgement.contradicts
    _head("Forbidden by" if certain else "Constraints that it violates", console)
    for item in judgement.shown_constraints[:MOST_CONSTRAINTS]:
        _say(f"- {item.words}", console, "bold", indent=1)
        for detail in _evidence(space, item, config):
            _say(detail, console, indent=5)
    if len(judgement.shown_constraints) > MOST_CONSTRAINTS:
        _say(f"and {len(judgement.shown_constraints) - MOST_CONSTRAINTS} more", console, indent=3)


def _evidence(space: SpaceMap, item: Constraint, config: Config) -> list[str]:
    if item.standing is Standing.EXECUTED:
        return list(_executed(space, item, config))
    assert space.joint  # it is one of its constraints
    demand, seen = source_demand(space, item), coverage.constraint_example(observations(space), item, config)
    place = f": {demand}" if demand else f", {item.line}" if item.line else ""
    counts = f"{item.failed} failed, {item.passed} passed" if item.failed or item.passed else ""
    doubt = "" if item.confirmed or item.standing is Standing.GIVEN else "; no failure has confirmed it"
    why = " ".join(part for part in (seen.outcome, seen.stage and f"({seen.stage})", seen.reason) if part)
    why = shorten(first_line(why))
    if why and seen.line and (demand or seen.line != item.line):
        why = f"{why.rstrip(':')} at {seen.line}"
    rests = (f": {counts}" if counts and not demand else "") + doubt
    found = [_STANDING[item.standing] + place + rests, counts if demand else "", why]
    if seen.failing:
        example = f"seen: {_moved(moves_of(space, {**space.baseline, **seen.failing}))} failed"
        other = {n: v for n, v in seen.passing.items() if n in seen.failing and not same(v, seen.failing[n])}
        found.append(example + (f", and passed with {config_text(other)}" if other else ""))
    return [line for line in found if line]


def _executed(space: SpaceMap, item: Constraint, config: Config) -> Iterator[str]:
    """Yield the result of executing a single value."""
    (name,) = item.scope
    value = next(v for v in space.knobs[name].values if same(v.value, config[name]))
    yield f"{name}={value_label(value.value)} {item.reason}"
    at = f" at {location(value.file or space.file, value.line)}" if value.line is not None else ""
    reason = shorten(first_line(value.reason))
    if len(moves_of(space, config)) < 2:
        return  # the first line of the explanation has reported it
    seen = " ".join(filter(None, (value.outcome, value.kind)))
    yield f"seen with the other knobs at the baseline: {seen}: {reason}{at}"


def _of_the_execution(space: SpaceMap, config: Config) -> list[str]:
    """Return the recorded execution of this very configuration, in lines; none if it was only compiled."""
    title, execution_record = execution.title(space), observations(space).get(config)
    if not title or execution_record is None or execution_record.check is None:
        return []
    if execution_record.executed != Outcome.PASS:
        found = execution.findings_of("", execution_record.check)
        return [execution.finding_text(item) for item in found] if len(found) > 1 else []
    right = (
        "right on these inputs"
        if execution_record.check.against == "reference"
        else "the baseline's numbers, up to rounding"
    )
    error = max((e.relative for e in execution_record.check.errors), default=0.0)
    sizes = "".join(f"; {size}" for size in execution_record.check.sizes)
    return [f"{title}: {right} (relative error {error:.1e}{sizes})."]


def _part(part: FailingPart, console: Console) -> None:
    _head("Smallest part that fails by itself", console)
    _say(_moved(part.moves), console, "bold", indent=3)
    judgement = part.judgement
    if judgement.outcome:
        reason = shorten(first_line(judgement.reason))
        said = f"{judgement.outcome}: {reason}" if reason else judgement.outcome
        _say(f"{said}{f' at {judgement.line}' if judgement.line else ''}", console, indent=5)
    if part.proved:
        rest = "; with any one of these moves taken back it passes" if len(part.moves) > 1 else ""
        _say(f"compiled{rest}", console, indent=5)
    elif judgement.basis is not Basis.COMPILED:
        _say("by the constraints; it was not compiled", console, indent=5)


def _nearest(space: SpaceMap, map_name: str, nearest: Sequence[Neighbour], console: Console) -> None:
    _head("Nearest feasible configurations", console)
    for item in nearest:
        known = "compiled: passes" if item.judgement.basis is Basis.COMPILED else "predicted"
        line = Text(f" - {config_text(item.moves)}", "bold")
        line.append(f"   ({known})", "green" if item.judgement.basis is Basis.COMPILED else "dim")
        console.print(line)
        _command(repeat_command(space, map_name, item.config), console)


def _matters(explanation: Explanation, console: Console) -> None:
    _head("Which knobs matter here", console)
    if all(item.matters is None for item in explanation.matters):
        reasons = {item.why for item in explanation.matters}
        _say(f"not known: {reasons.pop() if len(reasons) == 1 else 'no knob was turned here'}", console, indent=1)
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(overflow="fold")
    ordered = sorted(explanation.matters, key=lambda item: (True, None, False).index(item.matters))
    for item in ordered:
        table.add_row(*_row(item, explanation.config))
    console.print(table)


def _row(item: KnobRelevance, config: Config) -> tuple[Text, Text, Text]:
    word, colour = _MATTERS[item.matters]
    name = visible(f" {item.knob}={value_label(config[item.knob])}")
    return Text(name, "bold"), Text(word, colour), Text(visible(item.why))


def _moved(moves: Config) -> str:
    return config_text(moves) if moves else "the baseline"


def _head(text: str, console: Console) -> None:
    console.print()
    console.print(Text(text, "bold underline" if console.is_terminal else ""))


def _say(text: str, console: Console, style: str = "", indent: int = 0) -> None:
    console.print(Padding(Text(visible(text), style), (0, 0, 0, indent), expand=False))


def _command(text: str, console: Console) -> None:
    """Print a command on one unbroken line, so that it can be copied."""
    console.print(Text(visible(f"     {text}"), "dim"), soft_wrap=True)
