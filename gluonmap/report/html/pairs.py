"""Tables of the pairs of knobs that bear on each other: feasible shares, and equal programs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gluonmap.model.space_map import SpaceMap
from gluonmap.query import interactions
from gluonmap.query.feasibility import domains_of
from gluonmap.report.plain_text import value_label

MOST_PAIRS = 12
LEVELS = 5


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A pair of values of two knobs."""

    text: str
    """Feasible share in per cent, "✗" for none; empty if it could not be counted."""
    level: str
    """"0" for none, "1" to "5" for the table's largest share, "n" if it could not be counted."""
    asked: str
    """Asked configurations with the pair: passed / answered. In a table of programs: how the program is known."""
    said: str


@dataclass(frozen=True, slots=True)
class PairHeatMap:
    """Two knobs as a table of their values."""

    down: str
    across: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]
    reason: str = ""


def heat_maps(space: SpaceMap) -> tuple[list[PairHeatMap], int]:
    """Return the pairs of knobs that constrain each other, the most constrained first, and the number left out."""
    found = interactions.feasible_pairs(space)
    return [_heat(space, table) for table in found[:MOST_PAIRS]], max(0, len(found) - MOST_PAIRS)


def _heat(space: SpaceMap, table: interactions.PairTable) -> PairHeatMap:
    domains = domains_of(space)
    labels = [value_label(value) for value in domains[table.down]]
    most = max((cell.share or 0.0 for row in table.cells for cell in row), default=0.0)
    rows = tuple(
        (label, tuple(_heat_cell(cell, most) for cell in row)) for label, row in zip(labels, table.cells, strict=True)
    )
    return PairHeatMap(table.down, table.across, tuple(map(value_label, domains[table.across])), rows)


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


def program_maps(space: SpaceMap) -> list[PairHeatMap]:
    """Return the pairs of knobs of which one matters only under values of the other. Equal letters: one program."""
    domains = domains_of(space)
    found = []
    for table in interactions.program_pairs(space)[:MOST_PAIRS]:
        labels = [value_label(value) for value in domains[table.down]]
        rows = tuple((label, tuple(map(_letter, row))) for label, row in zip(labels, table.cells, strict=True))
        columns = tuple(map(value_label, domains[table.across]))
        found.append(PairHeatMap(table.down, table.across, columns, rows, table.reason))
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
