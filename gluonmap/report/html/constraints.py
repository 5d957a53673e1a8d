"""Constraints with their evidence, and the coverage of values, pairs and triples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gluonmap.model import outcomes
from gluonmap.model.candidate import Config, same
from gluonmap.model.joint_map import Certificate, Constraint, Joint, Standing
from gluonmap.model.space_map import SpaceMap
from gluonmap.probe.spelling import quoted
from gluonmap.query import coverage
from gluonmap.query.constraint_summary import constraint_summary
from gluonmap.query.observations import Observations, observations
from gluonmap.report.html.knob_table import TONES
from gluonmap.report.knobs import source_demand
from gluonmap.report.marks import OUTCOME_MARKS, Mark
from gluonmap.report.plain_text import config_text

MOST_ALTERNATIVES = 3
STANDINGS = {
    Standing.GIVEN: "demanded by --restrict",
    Standing.READ: "read from the source, confirmed by compiles",
    Standing.LEARNED: "learned from compiles",
    Standing.IMPLIED: "follows from the others; a failure names it",
    Standing.EXECUTED: "seen when executed",
}


@dataclass(frozen=True, slots=True)
class ConstraintExample:
    """A configuration, shortened to the knobs that differ, and the command that repeats it."""

    text: str
    command: str


@dataclass(frozen=True, slots=True)
class ConstraintEntry:
    """A constraint with its evidence."""

    id: str
    words: str
    standing: str
    standing_words: str
    demand: str
    """The demand of the source with its lines, if the constraint is read from the source."""
    line: str
    """Place where the failing example fails."""
    glyph: str
    tone: str
    outcome: str
    reason: str
    failed: int
    passed: int
    sides: coverage.ConstraintCoverage | None
    proof: str
    failing: ConstraintExample | None
    passing: ConstraintExample | None
    beside: str
    """Settings that both examples share and that differ from the baseline."""
    alternatives: tuple[str, ...]


def constraint_entries(space: SpaceMap, joint: Joint) -> list[ConstraintEntry]:
    """Return the constraints that the page shows one by one."""
    found = observations(space)
    return [_constraint_entry(found, joint, number) for number in constraint_summary(joint).shown]


def _constraint_entry(found: Observations, joint: Joint, number: int) -> ConstraintEntry:
    space, item = found.space, joint.constraints[number]
    seen = coverage.constraint_example(found, item)
    outcome = outcomes.named(seen.outcome)
    mark = OUTCOME_MARKS[outcome] if outcome is not None else Mark("", "", "unknown")
    sides = coverage.constraint_coverage(found, item)
    failing, passing, beside = _examples(space, item, seen)
    return ConstraintEntry(
        id=f"c{number + 1}",
        words=item.words,
        standing=str(item.standing),
        standing_words=STANDINGS[item.standing],
        demand=source_demand(space, item),
        line=seen.line,
        glyph=mark.glyph,
        tone=TONES[mark.word],
        outcome=" ".join(part for part in (seen.outcome, seen.stage and f"in {seen.stage}") if part),
        reason=seen.reason,
        failed=item.failed,
        passed=item.passed,
        sides=sides,
        proof=_proof(joint, item, sides),
        failing=failing,
        passing=passing,
        beside=beside,
        alternatives=item.alternatives[:MOST_ALTERNATIVES],
    )


def _proof(joint: Joint, item: Constraint, sides: coverage.ConstraintCoverage | None) -> str:
    """Return how well a constraint is tested."""
    if item.standing is Standing.GIVEN:
        return "Demanded, not proved: nothing that breaks it was asked."
    if joint.enumerated:
        return "By enumeration: every configuration of the signature was asked."
    settled = sides is not None and sides.exhaustive
    tried = "Every tuple of its knobs' values was tried; beside other knobs' values by sampling" if settled else ""
    return f"{tried or 'By sampling'}: {_bound(joint.certificate)}."


def _bound(certificate: Certificate) -> str:
    """Return the certificate's bound on mistaken predictions of all constraints together."""
    strata = {s.name: s for s in certificate.strata if s.telling}
    found = [
        f"{'none' if stratum.complete else f'at most {stratum.error_bound:.1%}'} of the predicted {plural}"
        for name, plural in (("predicted to pass", "passes"), ("predicted to fail", "failures"))
        if (stratum := strata.get(name)) is not None
    ]
    if not found:
        drawn = any(stratum.draws for stratum in certificate.strata)
        return "too few draws were made to say how sure it is" if drawn else "no draw was made to test it"
    return f"at {certificate.confidence:.0%} confidence {' and '.join(found)} are mistaken"


def _examples(
    space: SpaceMap, item: Constraint, seen: coverage.FailureExample
) -> tuple[ConstraintExample | None, ConstraintExample | None, str]:
    one, other = seen.failing, seen.passing
    if not one or not other:
        return None, None, ""
    names = [name for name in one if name in space.baseline]
    apart = [name for name in names if not same(one[name], other.get(name))]
    relevant = {n for n in names if n in item.scope or not same(one[n], space.baseline[n])}
    common = {n: one[n] for n in names if n in relevant and n not in apart}
    return _example(space, one, apart), _example(space, other, apart), config_text(common)


def _example(space: SpaceMap, config: Config, names: list[str]) -> ConstraintExample:
    moves = {n: v for n, v in config.items() if n in space.baseline and not same(v, space.baseline[n])}
    text = config_text({name: config[name] for name in names if name in config})
    return ConstraintExample(text, repeat(space, moves))


def repeat(space: SpaceMap, moves: Config) -> str:
    """Return the command that repeats the baseline with some knobs moved; "" where the map has none."""
    settings = "".join(f" {quoted(name, value)}" for name, value in moves.items())
    return f"{space.repeat}{settings}" if space.repeat else ""


# --- coverage --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """Counts of combinations of values of one, two or three knobs."""

    name: str
    possible: int
    tried: int
    seen: int | None
    feasible: int | None


def coverage_rows(space: SpaceMap, joint: Joint) -> Iterator[CoverageRow]:
    """Yield counts of single values, pairs and triples: possible, tried, seen passing, feasible by the constraints."""
    names = {1: "single values", 2: "pairs", 3: "triples"}
    by_order = {count.order: count for count in joint.coverage}
    for item in coverage.combinations(observations(space)):
        known = by_order.get(item.order)
        seen, feasible = (known.seen, known.possible) if known else (None, None)
        yield CoverageRow(names[item.order], item.possible, item.tried, seen, feasible)
