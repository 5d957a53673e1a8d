"""Counts of programs that ran on the CPU, shown next to their resources; and remarks on notable ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gluonmap.model.verdict import Figures
from gluonmap.report.resources import Figure
from gluonmap.report.tables import ProgramRow

TERMS = "Counted over one small launch of each under the model; no figure is a time"
NOTABLE_FACTOR = 1.25
"""A figure that differs from the baseline's by this factor or more is remarked on."""
NOTHING = ("0", "0 B", "0.0%", "–")
"""Texts of figures that count nothing."""
MOST_MOVES = 6
"""Number of programs that one line names."""


@dataclass(frozen=True, slots=True)
class RunFigure:
    """One kind of figure: its head, its text, its number, and its cost (None: neither more nor less is better)."""

    head: str
    text: Callable[[Figures], str]
    number: Callable[[Figures], float]
    cost: Callable[[Figures], float] | None = None


def _number(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:,.1f}"


def _counted(head: str, of: Callable[[Figures], int], unit: str = "", *, costs: bool = False) -> RunFigure:
    """Return a count divided by the number of work-groups: launches may differ in how many they have."""

    def number(figures: Figures) -> float:
        return of(figures) / (figures.work_groups or 1)

    return RunFigure(head, lambda f: _number(number(f)) + unit, number, number if costs else None)


def _conflicts(figures: Figures) -> str:
    return f"{figures.lds_conflicts:.2f}×" if figures.lds_ideal else "–"


def _line_use(figures: Figures) -> str:
    return f"{figures.line_use:.0%}" if figures.global_lines else "–"


RUN_FIGURES = (
    _counted("instr/group", lambda f: sum(f.instructions.values())),
    RunFigure("MFMA", lambda f: f"{f.mfma_share:.1%}", lambda f: f.mfma_share),
    RunFigure("LDS conflicts", _conflicts, lambda f: f.lds_conflicts, lambda f: f.lds_conflicts),
    RunFigure("line use", _line_use, lambda f: f.line_use, lambda f: 1 / min(f.line_use or 1, 1)),
    _counted("scratch/group", lambda f: f.scratch_bytes, " B", costs=True),
    _counted("waits/group", lambda f: f.waits),
    _counted("barriers/group", lambda f: f.barriers),
)
"""In the order of the reports."""

LEGEND = (
    ("instr/group", "instructions that the waves of a work-group executed"),
    ("MFMA", "matrix instructions among them"),
    ("LDS conflicts", "passes over the banks against the ideal"),
    ("line use", "distinct bytes asked for against the 64-byte lines touched"),
    ("scratch/group", "bytes read and written in private memory"),
    ("waits/group", "s_waitcnt executed by the waves of a work-group"),
    ("barriers/group", "s_barrier executed by the waves of a work-group"),
)


def run_figures(found: Figures | None, base: Figures | None = None) -> list[Figure]:
    """Return the figures in a fixed order; `worse` are those that cost clearly more than in `base`."""
    if found is None:
        return []
    return [
        Figure(
            kind.head,
            kind.text(found),
            alarm=kind.head == "scratch/group" and found.scratch_bytes > 0,
            worse=base is not None
            and kind.cost is not None
            and kind.cost(found) >= NOTABLE_FACTOR * (kind.cost(base) or 1),
        )
        for kind in RUN_FIGURES
    ]


def factor(kind: RunFigure, one: Figures, other: Figures) -> float:
    """Return by what factor a figure differs, either way; infinite where one of the two is nothing."""
    few, many = sorted((kind.number(one), kind.number(other)))
    return 1.0 if few == many else many / few if few else math.inf


def figure_legend(shown: Sequence[str]) -> str:
    """Return what the figures of these heads mean, in one line; "" where none is shown."""
    meant = [f"{head}: {text}" for head, text in LEGEND if head in shown]
    return f"{TERMS}. {'; '.join(meant)}." if meant else ""


def remarks(programs: Sequence[tuple[str, Figures | None]], base: Figures | None) -> Iterator[str]:
    """Yield a line for each figure that is notably worse or better than the baseline's; moves name the programs.

    "LDS conflicts worse than the baseline's 1.00× with PAD = 64: 16.00×, PAD = 8: 2.00×".
    """
    if base is None:
        return
    for kind in RUN_FIGURES:
        if kind.cost is None:
            continue
        own = kind.cost(base)
        costs = [(kind.cost(found), name, kind.text(found)) for name, found in programs if found is not None]
        worse = sorted((t for t in costs if t[0] >= NOTABLE_FACTOR * (own or 1)), key=lambda t: -t[0])
        better = sorted((t for t in costs if t[0] < own and t[0] * NOTABLE_FACTOR <= own), key=lambda t: t[0])
        for verdict, items in (("worse", worse), ("better", better)):
            if items:
                named = ", ".join(f"{name}: {text}" for _, name, text in items[:MOST_MOVES])
                more = f", and {len(items) - MOST_MOVES} more" if len(items) > MOST_MOVES else ""
                yield f"{kind.head} {verdict} than the baseline's {kind.text(base)} with {named}{more}"


def program_remarks(rows: Sequence[ProgramRow]) -> list[str]:
    """Return the remarks on the table of programs that single values give."""
    base = next((row.counted for row in rows if row.baseline), None)
    return list(remarks([("; ".join(row.moves), row.counted) for row in rows if not row.baseline], base))


def with_run_figures(rows: Sequence[ProgramRow]) -> list[ProgramRow]:
    """Return the rows with the figures behind the resources, less those that say nothing in any."""
    base = next((row.counted for row in rows if row.baseline), None)
    found = without_empty_figures([run_figures(row.counted, base) for row in rows])
    return [dataclasses.replace(row, figures=(*row.figures, *each)) for row, each in zip(rows, found, strict=True)]


def without_empty_figures(rows: Sequence[Sequence[Figure]]) -> list[tuple[Figure, ...]]:
    """Return the rows without the figures of which there is nothing in any: no matrix instruction, no LDS access."""
    kept = {figure.head for row in rows for figure in row if figure.text not in NOTHING}
    return [tuple(figure for figure in row if figure.head in kept) for row in rows]
