"""Values that both maps tried and of which they say different things, as cells of two halves."""

from __future__ import annotations

from dataclasses import dataclass

from gluonmap.diff.comparison import Difference
from gluonmap.diff.knobs import Turn, ValueChange
from gluonmap.model.space_map import ValueMap
from gluonmap.report.diff.knobs import why_turned
from gluonmap.report.diff.regressions import alike
from gluonmap.report.html import cells
from gluonmap.report.marks import EFFECT_MARKS, OUTCOME_MARKS, Mark, fails, value_mark
from gluonmap.report.plain_text import value_label
from gluonmap.report.resources import Figure

BAD = (Turn.ABORTING, Turn.FAILING)


@dataclass(frozen=True, slots=True)
class Half:
    """What one map says of the value."""

    letter: str
    mark: Mark
    tone: str
    note: str
    """Signal or exception of a value that fails."""
    facts: tuple[cells.Fact, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One value."""

    id: str
    label: str
    was: Half
    now: Half
    said: str
    """For who cannot see the cell: "256, A over a resource limit, B live"."""
    headline: str


@dataclass(frozen=True, slots=True)
class Row:
    """Values of one knob with one turn."""

    turn: str
    bad: bool
    knob: str
    aside: str
    cells: tuple[Cell, ...]
    reasons: tuple[str, ...]


def rows(found: Difference) -> list[Row]:
    """Return the values by what has become of them, the worst first."""
    groups = alike(found.values, lambda change: (change.turn, change.knob))
    return [_row(found, f"v{number}", changes) for number, changes in enumerate(groups, 1)]


def _row(found: Difference, anchor: str, changes: list[ValueChange]) -> Row:
    first = changes[0]
    return Row(
        str(first.turn),
        first.turn in BAD,
        first.knob,
        "" if first.one_configuration else "beside different baselines",
        tuple(_cell(found, f"{anchor}-{number}", change) for number, change in enumerate(changes, 1)),
        tuple(dict.fromkeys(filter(None, map(why_turned, changes)))),
    )


def _cell(found: Difference, anchor: str, change: ValueChange) -> Cell:
    label = value_label(change.value)
    was = _half("A", change.before, found.before.file, found.before.target)
    now = _half("B", change.after, found.after.file, found.after.target)
    halves = (f"{half.letter} {half.mark.word} {half.note}".rstrip() for half in (was, now))
    return Cell(anchor, label, was, now, f"{label}, {', '.join(halves)}", f"{change.knob} = {label}")


def _half(letter: str, value: ValueMap, file: str, target: str) -> Half:
    mark = value_mark(value)
    note = value.kind if fails(value) and mark.word != cells.CHANGES else ""
    facts = tuple(cells.facts(value, file))
    figures = cells.figures(target, value.resources) + cells.counted(value.measured)
    return Half(letter, mark, cells.TONES[mark.word], note, facts, figures)


def legend(found: list[Row]) -> list[tuple[Mark, str]]:
    """Return the marks that the cells use, with their tones."""
    used = {half.mark: half.tone for row in found for cell in row.cells for half in (cell.was, cell.now)}
    marks = (*EFFECT_MARKS.values(), *OUTCOME_MARKS.values())
    return [(mark, used[mark]) for mark in marks if mark in used]
