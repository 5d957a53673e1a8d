"""Values that both maps tried and on which they differ, as cells of two halves."""

from __future__ import annotations

from dataclasses import dataclass

from gluonmap.diff.comparison import Difference
from gluonmap.diff.knobs import ValueChange, ValueTransition
from gluonmap.model.space_map import ValueMap
from gluonmap.report.diff.knobs import why_turned
from gluonmap.report.diff.regressions import alike
from gluonmap.report.html import knob_table
from gluonmap.report.marks import EFFECT_MARKS, OUTCOME_MARKS, Mark, fails, value_mark
from gluonmap.report.plain_text import value_label
from gluonmap.report.resources import Figure

BAD = (ValueTransition.ABORTING, ValueTransition.FAILING)


@dataclass(frozen=True, slots=True)
class ValueSide:
    """The result of a value in one map."""

    letter: str
    mark: Mark
    tone: str
    note: str
    """Signal or exception of a value that fails."""
    facts: tuple[knob_table.Fact, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class ChangedValueCell:
    """A value with its two results."""

    id: str
    label: str
    was: ValueSide
    now: ValueSide
    said: str
    """Text for screen readers: "256, A over a resource limit, B live"."""
    headline: str


@dataclass(frozen=True, slots=True)
class ChangedValuesRow:
    """Values of one knob with the same kind of change."""

    turn: str
    bad: bool
    knob: str
    aside: str
    cells: tuple[ChangedValueCell, ...]
    reasons: tuple[str, ...]


def rows(found: Difference) -> list[ChangedValuesRow]:
    """Return the values by kind of change, the worst first."""
    groups = alike(found.values, lambda change: (change.turn, change.knob))
    return [_row(found, f"v{number}", changes) for number, changes in enumerate(groups, 1)]


def _row(found: Difference, anchor: str, changes: list[ValueChange]) -> ChangedValuesRow:
    first = changes[0]
    return ChangedValuesRow(
        str(first.turn),
        first.turn in BAD,
        first.knob,
        "" if first.one_configuration else "with different baselines",
        tuple(_cell(found, f"{anchor}-{number}", change) for number, change in enumerate(changes, 1)),
        tuple(dict.fromkeys(filter(None, map(why_turned, changes)))),
    )


def _cell(found: Difference, anchor: str, change: ValueChange) -> ChangedValueCell:
    label = value_label(change.value)
    was = _half("A", change.before, found.before.file, found.before.target)
    now = _half("B", change.after, found.after.file, found.after.target)
    halves = (f"{half.letter} {half.mark.word} {half.note}".rstrip() for half in (was, now))
    return ChangedValueCell(anchor, label, was, now, f"{label}, {', '.join(halves)}", f"{change.knob} = {label}")


def _half(letter: str, value: ValueMap, file: str, target: str) -> ValueSide:
    mark = value_mark(value)
    note = value.kind if fails(value) and mark.word != knob_table.CHANGES else ""
    facts = tuple(knob_table.facts(value, file))
    figures = knob_table.figures(target, value.resources) + knob_table.counted(value.measured)
    return ValueSide(letter, mark, knob_table.TONES[mark.word], note, facts, figures)


def legend(found: list[ChangedValuesRow]) -> list[tuple[Mark, str]]:
    """Return the marks that the cells use, with their tones."""
    used = {half.mark: half.tone for row in found for cell in row.cells for half in (cell.was, cell.now)}
    marks = (*EFFECT_MARKS.values(), *OUTCOME_MARKS.values())
    return [(mark, used[mark]) for mark in marks if mark in used]
