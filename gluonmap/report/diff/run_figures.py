"""Counts of runs on the CPU that differ clearly between the maps for equal configurations."""

from __future__ import annotations

from collections.abc import Iterator

from gluonmap.diff.comparison import Difference
from gluonmap.diff.resources import distinct_programs
from gluonmap.report import run_figures
from gluonmap.report.diff.regressions import moved
from gluonmap.report.plain_text import Statement

TITLE = "Counts of a run on the CPU, no times"
MOST = 4
"""Number of configurations that are named for one figure."""


def lines(found: Difference) -> Iterator[Statement]:
    """Yield a line for each figure: "LDS conflicts: 2.50× → 4.50× at VEC=2"; the greatest change first."""
    pairs = [pair for pair in distinct_programs(found.pairs) if pair.before_figures and pair.after_figures]
    for kind in run_figures.RUN_FIGURES:
        changes = []
        for pair in pairs:
            assert pair.before_figures and pair.after_figures  # the others are left out
            factor = run_figures.factor(kind, pair.before_figures, pair.after_figures)
            if factor >= run_figures.NOTABLE_FACTOR:
                change = f"{kind.text(pair.before_figures)} → {kind.text(pair.after_figures)}"
                changes.append((factor, f"{change} at {moved(pair.moves)}"))
        changes.sort(key=lambda item: -item[0])
        if changes:
            more = f", and at {len(changes) - MOST:,} more" if len(changes) > MOST else ""
            yield Statement(f"{kind.head}: {', '.join(text for _, text in changes[:MOST])}{more}")
