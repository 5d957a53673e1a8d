"""Constraints with their evidence, and tables of the pairs of knobs that bear on each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gluonmap.model.candidate import Config, same
from gluonmap.model.joint_map import Certificate, Constraint, Joint, Standing
from gluonmap.model.space_map import SpaceMap
from gluonmap.probe.screen import quoted
from gluonmap.query import coverage as tuples
from gluonmap.query import interactions
from gluonmap.query.constraint_summary import constraint_summary
from gluonmap.query.feasibility import domains_of
from gluonmap.query.observations import Observations, observations
from gluonmap.report.html.cells import TONES
from gluonmap.report.knobs import source_demand
from gluonmap.report.marks import OUTCOME_MARKS, Mark, outcome_of
from gluonmap.report.plain_text import config_text, value_label

MOST_PAIRS = 12
LEVELS = 5
MOST_ALTERNATIVES = 3
STANDINGS = {
    Standing.GIVEN: "demanded by --restrict",
    Standing.READ: "read from the source, confirmed by compiles",
    Standing.LEARNED: "learned from compiles",
    Standing.IMPLIED: "follows from the others; a failure names it",
    Standing.EXECUTED: "seen when executed",
}


@dataclass(frozen=True, slots=True)
class Example:
    """A configuration by what matters of it, and the command that repeats it."""

    text: str
    command: str


@dataclass(frozen=True, slots=True)
class Relation:
    """One constraint."""

    id: str
    words: str
    standing: str
    standing_words: str
    demand: str
    """What the source demands, with its lines, where it is read from there."""
    line: str
    """Where the example fails."""
    glyph: str
    tone: str
    outcome: str
    reason: str
    failed: int
    passed: int
    sides: tuples.ConstraintCoverage | None
    proof: str
    failing: Example | None
    passing: Example | None
    beside: str
    """What both examples have that the baseline has not."""
    alternatives: tuple[str, ...]


def relations(space: SpaceMap, joint: Joint) -> list[Relation]:
    """Return the constraints that are shown one by one."""
    found = observations(space)
    return [_relation(found, joint, number) for number in constraint_summary(joint).shown]


def _relation(found: Observations, joint: Joint, number: int) -> Relation:
    space, item = found.space, joint.constraints[number]
    seen = tuples.constraint_example(found, item)
    outcome = outcome_of(seen.outcome)
    mark = OUTCOME_MARKS[outcome] if outcome is not None else Mark("", "", "unknown")
    sides = tuples.constraint_coverage(found, item)
    failing, passing, beside = _examples(space, item, seen)
    return Relation(
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


def _proof(joint: Joint, item: Constraint, sides: tuples.ConstraintCoverage | None) -> str:
    """How sure one constraint is."""
    if item.standing is Standing.GIVEN:
        return "Demanded, not proved: nothing that breaks it was asked."
    if joint.enumerated:
        return "By enumeration: every configuration of the signature was asked."
    settled = sides is not None and sides.exhaustive
    tried = "Every tuple of its knobs' values was tried; beside other knobs' values by sampling" if settled else ""
    return f"{tried or 'By sampling'}: {_bound(joint.certificate)}."


def _bound(certificate: Certificate) -> str:
    """How wrong all constraints together can be."""
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
    space: SpaceMap, item: Constraint, seen: tuples.ConstraintExample
) -> tuple[Example | None, Example | None, str]:
    one, other = seen.failing, seen.passing
    if not one or not other:
        return None, None, ""
    names = [name for name in one if name in space.baseline]
    apart = [name for name in names if not same(one[name], other.get(name))]
    told = {n for n in names if n in item.scope or not same(one[n], space.baseline[n])}
    common = {n: one[n] for n in names if n in told and n not in apart}
    return _example(space, one, apart), _example(space, other, apart), config_text(common)


def _example(space: SpaceMap, config: Config, names: list[str]) -> Example:
    moves = {n: v for n, v in config.items() if n in space.baseline and not same(v, space.baseline[n])}
    text = config_text({name: config[name] for name in names if name in config})
    return Example(text, repeat(space, moves))


def repeat(space: SpaceMap, moves: Config) -> str:
    """Return the command that repeats the baseline with some knobs moved; "" where the map has none."""
    settings = "".join(f" {quoted(name, value)}" for name, value in moves.items())
    return f"{space.repeat}{settings}" if space.repeat else ""


# --- pairs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One pair of values."""

    text: str
    """Feasible share in per cent, "✗" for none; empty where it could not be counted."""
    level: str
    """"0" for none, "1" to "5" for the table's largest share, "n" where it could not be counted."""
    asked: str
    """Asked configurations with the pair: passed / answered."""
    said: str


@dataclass(frozen=True, slots=True)
class Heat:
    """Two knobs, as a table of their values."""

    down: str
    across: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    reason: str = ""


def heat_maps(space: SpaceMap) -> tuple[list[Heat], int]:
    """Return the pairs of knobs that constrain each other, the closest tied first, and how many more there are."""
    found = interactions.feasible_pairs(space)
    return [_heat(space, table) for table in found[:MOST_PAIRS]], max(0, len(found) - MOST_PAIRS)


def _heat(space: SpaceMap, table: interactions.PairTable) -> Heat:
    domains = domains_of(space)
    labels = [value_label(value) for value in domains[table.down]]
    most = max((cell.share or 0.0 for row in table.cells for cell in row), default=0.0)
    rows = tuple(
        (label, tuple(_heat_cell(cell, most) for cell in row)) for label, row in zip(labels, table.cells, strict=True)
    )
    return Heat(table.down, table.across, tuple(map(value_label, domains[table.across])), rows)


def _heat_cell(cell: interactions.PairCell, most: float) -> HeatCell:
    answered = cell.passed + cell.failed
    asked = f"{cell.passed}/{answered}" if answered else "–"
    tried = f"{cell.passed} of {answered} asked passed" if answered else "none asked"
    if cell.share is None:
        return HeatCell("", "n", asked, tried)
    if cell.share <= 0:
        return HeatCell("✗", "0", asked, f"nothing is feasible; {tried}")
    text = f"{cell.share * 100:.0f}" if cell.share >= 0.01 else "<1"
    level = max(1, math.ceil(round(LEVELS * cell.share / most, 6)))
    return HeatCell(text, str(level), asked, f"{text} % feasible; {tried}")


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HUES = 6


def program_maps(space: SpaceMap) -> list[Heat]:
    """Return the pairs of knobs of which one matters only beside values of the other: equal letters, one program."""
    domains = domains_of(space)
    found = []
    for table in interactions.program_pairs(space)[:MOST_PAIRS]:
        labels = [value_label(value) for value in domains[table.down]]
        rows = tuple((label, tuple(map(_letter, row))) for label, row in zip(labels, table.cells, strict=True))
        columns = tuple(map(value_label, domains[table.across]))
        found.append(Heat(table.down, table.across, columns, rows, table.reason))
    return found


def _letter(cell: interactions.ProgramCell) -> HeatCell:
    how = "asked" if cell.asked else "by the rules"
    if cell.fails:
        return HeatCell("✗", "0", how, f"fails, {how}")
    if cell.program < 0:
        return HeatCell("?", "n", "", "not known")
    number, letter = divmod(cell.program, len(LETTERS))
    name = LETTERS[letter] + (str(number) if number else "")
    return HeatCell(name, f"p{cell.program % HUES}", how, f"program {name}, {how}")


# --- coverage --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Coverage:
    """Combinations of values of so many knobs."""

    name: str
    possible: int
    tried: int
    seen: int | None
    feasible: int | None


def coverage(space: SpaceMap, joint: Joint) -> Iterator[Coverage]:
    """Yield single values, pairs and triples: in the signature, really tried, seen passing, possible by the model."""
    names = {1: "single values", 2: "pairs", 3: "triples"}
    by_order = {count.order: count for count in joint.coverage}
    for item in tuples.combinations(observations(space)):
        known = by_order.get(item.order)
        seen, feasible = (known.seen, known.possible) if known else (None, None)
        yield Coverage(names[item.order], item.possible, item.tried, seen, feasible)
