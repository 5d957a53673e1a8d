"""Statements of a map on all knobs together, shared by terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator

from gluonmap.constraints.semantics import holds
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Constraint, Joint
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.wording import listed
from gluonmap.query import coverage
from gluonmap.query.constraint_summary import constraint_summary
from gluonmap.query.observations import Observations, observations
from gluonmap.report.knobs import source_demand
from gluonmap.report.plain_text import Statement, config_text, plural, shorten, value_label, visible

MOST_FREED = 8
MOST_MOVED = 3
"""Largest number of differing knobs in an example of a failing and a passing configuration."""
MOST_EXAMPLES = 5


def title(joint: Joint) -> str:
    """Return the heading, with the number of questions."""
    asked = f"{plural(joint.learning, 'question')} to learn"
    if joint.validating:
        asked += f", {joint.validating:,} to certify"
    return f"All knobs together ({asked})"


def sizes(joint: Joint) -> str:
    """Return the sizes: configurations, feasible ones, distinct programs, and programs that failed when executed."""
    failed = f" {plural(len(joint.refused), 'program')} did not pass when executed." if joint.refused else ""
    return _sizes(joint) + failed


def _sizes(joint: Joint) -> str:
    size = joint.sizes
    if size.feasible is None:
        return f"{size.signature:,} configurations; the constraints are too entangled to count the feasible ones."
    text = f"{size.signature:,} configurations → {size.feasible:,} feasible"
    if size.programs is None:
        return f"{text}; {plural(len(joint.programs), 'distinct program')} compiled."
    counted = plural(size.programs, "distinct program")
    if size.complete:
        return f"{text} → {counted}; every feasible configuration was compiled."
    if not joint.at_most:
        return f"{text} → {counted} by the rules below, each compiled."
    asked = sum(program.same for program in joint.programs)
    return f"{text} → at most {counted} by the rules below; of {asked:,} compiled ones {len(joint.programs):,} differ."


def sections(space: SpaceMap, joint: Joint) -> Iterator[tuple[str, list[Statement]]]:
    """Yield headings with their statements; empty ones are left out."""
    for heading, lines in (
        ("", notes(joint)),
        ("A configuration is feasible where", constraints(space, joint)),
        ("Values that fail alone and pass with others", freed(space)),
        ("When a knob matters", conditions(space)),
        ("Bytes of shared memory", formula(space)),
        (f"Certificate, at {joint.certificate.confidence:.0%} confidence", certificate(joint)),
        ("Answered in two ways, or not at all: no evidence", doubts(joint)),
    ):
        if lines:
            yield heading, lines


def constraints(space: SpaceMap, joint: Joint) -> list[Statement]:
    """Return the constraints; demands of the source that add nothing to the others share one statement."""
    shown, found = [joint.constraints[n] for n in constraint_summary(joint).shown], observations(space)
    return [Statement(visible(item.words), tuple(_behind(found, item))) for item in shown] + summed_up(joint)


def summed_up(joint: Joint) -> list[Statement]:
    """Return the statements that sum up constraints: many single failures, and demands that add nothing."""
    groups = constraint_summary(joint)
    many, implied, untried = (
        [joint.constraints[n] for n in places] for places in (groups.lone, groups.implied, groups.untried)
    )
    said = {joint.constraints[n].words for n in (*groups.shown, *groups.lone)}
    found = []
    if many:
        text = f"{len(many)} combinations that failed once each, which no rule explains: there are likely more of them"
        found.append(Statement(text, tuple(visible(item.words) for item in many[:MOST_EXAMPLES])))
    if implied:
        texts = {f"{item.words}{_at(item.line)}" for item in implied if item.words not in said} or {
            f"{item.reason}{_at(item.line)}" for item in implied
        }
        found.append(Statement("what else the source demands follows from these", (", ".join(sorted(texts)),)))
    if untried:
        texts = {f"{item.words}{_at(item.line)}" for item in untried}
        found.append(
            Statement("demanded by the source, and broken by no configuration here", (", ".join(sorted(texts)),))
        )
    return found


def _behind(found: Observations, item: Constraint) -> Iterator[str]:
    demand, seen = source_demand(found.space, item), coverage.constraint_example(found, item)
    counts = f"{item.failed:,} failed, {item.passed:,} got past it" if item.failed or item.passed else ""
    if demand:
        yield f"{item.standing}: {demand}"
        yield from filter(None, [counts])
    else:
        yield f"{item.standing}{_at(item.line)}" + (f": {counts}" if counts else "")
    if why := " ".join(part for part in (seen.outcome, seen.stage and f"({seen.stage})", seen.reason) if part):
        elsewhere = demand or seen.line != item.line
        yield shorten(why).rstrip(":") + _at(seen.line) if elsewhere else shorten(why)
    if seen.failing and seen.passing:
        one, other = seen.failing, seen.passing
        moved = [name for name in one if one[name] != other[name] or type(one[name]) is not type(other[name])]
        if len(moved) <= MOST_MOVED:
            common = [name for name in one if name in item.scope and name not in moved]
            where = f", both with {_at_values(one, common)}" if common else ""
            yield f"for example {_at_values(one, moved)} fails where {_at_values(other, moved)} passes{where}"
    if item.alternatives:
        yield f"cannot be told apart here from: {'; '.join(item.alternatives[:3])}"


def _at_values(config: Config, names: list[str]) -> str:
    return ", ".join(f"{name} = {value_label(config[name])}" for name in names)


def _at(line: str) -> str:
    return f" ({_line_words(line)})" if line else ""


def _line_words(line: str) -> str:
    file, _, number = line.rpartition(":")
    return f"line {number}" if file else line


def freed(space: SpaceMap) -> list[Statement]:
    """Return the values that fail alone and pass together with other moves."""
    joint = space.joint
    if joint is None:
        return []
    observed, found = observations(space), []
    for name, knob in space.knobs.items():
        failing = [
            v.value
            for v in knob.values
            # A value that fails on a device passed its compile, so a pass next to other moves frees nothing.
            if v.effect is Effect.ABORTING and not v.measured and v.value in joint.domains.get(name, ())
        ]
        for value in failing:
            if moves := _moves_that_free(observed, joint, name, value):
                others = listed(f"{n} = {value_label(v)}" for n, v in moves.items())
                found.append(Statement(f"{name} = {value_label(value)} fails alone, and passes with {others}"))
    more = [Statement(f"and {len(found) - MOST_FREED} more")] if len(found) > MOST_FREED else []
    return [*found[:MOST_FREED], *more]


def _moves_that_free(observed: Observations, joint: Joint, knob: str, value: Value) -> Config:
    """Return the fewest other moves with which a value was seen passing, without those that no constraint requires."""
    baseline = observed.space.baseline
    passing = (item.config for item in observed.joint if item.outcome == Outcome.PASS and item.config[knob] == value)
    moves = ({n: v for n, v in config.items() if n != knob and v != baseline[n]} for config in passing)
    best = min(moves, key=len, default={})
    for name in list(best):
        fewer = {n: v for n, v in best.items() if n != name}
        if all(holds(item.relation, {**baseline, knob: value, **fewer}) for item in joint.constraints):
            best = fewer
    return best


def conditions(space: SpaceMap) -> list[Statement]:
    """Return the conditions under which knobs matter, and the values that are one program."""
    joint = space.joint
    if joint is None:
        return []
    found = []
    for item in joint.inertness:
        if item.condition not in ("", "always"):
            pairs = (
                f"{item.changed:,} pairs of configurations that differ in it alone are two programs, {item.same:,} one"
            )
            found.append(Statement(item.words, (pairs,)))
    idle = [item for item in joint.inertness if item.condition == ""]
    if idle:
        fewest = min(item.same for item in idle)
        names = listed([item.knob for item in idle])
        found.append(Statement(f"{names} changed nothing in any context tried ({fewest} comparisons at least, each)"))
    settled = {item.knob for item in joint.inertness if item.condition == "" or item.relation is not None}
    for classes in joint.value_classes:
        groups = [" = ".join(value_label(v) for v in group) for group in classes.classes if len(group) > 1]
        if groups and not (classes.knob in settled and (classes.where or len(classes.classes) == 1)):
            where = f" where {classes.where}" if classes.where else " wherever they were compared"
            found.append(Statement(f"{classes.knob}: {', '.join(groups)} {_are_one(groups)}{where}"))
    return found


def _are_one(groups: list[str]) -> str:
    return "are one program" if len(groups) == 1 else "are one program each"


def formula(space: SpaceMap) -> list[Statement]:
    """Return the formula of the bytes of shared memory, with the target's limit."""
    if space.joint is None or not space.joint.formula:
        return []
    return [Statement(f"{space.joint.formula} ≤ {targets.find(space.target).shared_bytes:,}")]


def certificate(joint: Joint) -> list[Statement]:
    """Return the statements of the certificate, and how many values, pairs and triples were seen passing."""
    names = {1: "values", 2: "value pairs", 3: "value triples"}
    found = [Statement(statement) for statement in joint.certificate.statements]
    found += [
        Statement(
            f"{names.get(c.order, f'combinations of {c.order}')} seen passing: {c.seen:,} of {c.possible:,} possible"
        )
        for c in joint.coverage
    ]
    return found


def doubts(joint: Joint) -> list[Statement]:
    """Return the answers that are no evidence: unstable ones and missing ones."""
    found = [
        Statement(f"{_settings(item.config)}: {' and '.join(item.outcomes)}") for item in joint.unstable[:MOST_EXAMPLES]
    ]
    if joint.unknown:
        examples = tuple(_settings(config) for config in joint.unknown[:MOST_EXAMPLES])
        found.append(Statement(f"{plural(len(joint.unknown), 'configuration')} without an answer", examples))
    return found


def _settings(config: Config) -> str:
    return config_text(config)


def notes(joint: Joint) -> list[Statement]:
    """Return the notes on learning; if it ended early, that comes first."""
    found = [Statement(note) for note in joint.notes]
    if joint.stopped:
        found.insert(
            0, Statement(f"Learning ended before its time ({joint.stopped}); the same command goes on from there.")
        )
    return found


def commands(space: SpaceMap) -> list[tuple[str, str]]:
    """Return possible next steps with the map, each with its command."""
    path = space.repeat.removeprefix("gluonmap repeat ")
    if space.joint is None or not path or not space.joint.programs:
        return []
    return [
        ("the configurations for triton.autotune", f"gluonmap space {path} --configs"),
        ("why a configuration fails, and the nearest that pass", f"gluonmap explain {path} KNOB=VALUE …"),
    ]
