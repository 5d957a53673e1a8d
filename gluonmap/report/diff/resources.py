"""Resources that programs of equal configurations take more or less of."""

from __future__ import annotations

from collections.abc import Iterator

from gluonmap.diff.comparison import Difference
from gluonmap.diff.resources import ResourceChange
from gluonmap.report.diff.regressions import alike, grew, moved
from gluonmap.report.plain_text import Statement, plural
from gluonmap.report.resources import RESOURCE_FIELDS, resource_name

TELLING = ("vgpr", "spills", "scratch_bytes", "occupancy")
"""Resources that one sentence names."""
HEADS = ("", "grew in", "fell in", "most", "least")


def changed(found: Difference) -> list[ResourceChange]:
    """Return the resources that are not the same everywhere, in the order of the reports."""
    changes = [change for change in found.resources if change.grew or change.shrank]
    return sorted(changes, key=lambda change: RESOURCE_FIELDS.index(change.resource))


def summary(found: Difference) -> str:
    """Return "Of 6 pairs of programs, VGPR fell in 4; spills grew in 1 and fell in 2."; "" where they are alike."""
    parts = []
    for change in changed(found):
        ways = [f"{verb} in {n:,}" for verb, n in (("grew", change.grew), ("fell", change.shrank)) if n]
        if change.resource in TELLING:
            parts.append(f"{resource_name(found.after.target, change.resource)[0]} {' and '.join(ways)}")
    pairs = plural(max((change.compared for change in found.resources), default=0), "pair")
    return f"Of {pairs} of programs, {'; '.join(parts)}." if parts else ""


def resources(found: Difference) -> Iterator[tuple[str, ...]]:
    """Yield rows under `HEADS`."""
    for change in changed(found):
        head, unit = resource_name(found.after.target, change.resource)
        ends = (f"{g.before:,} → {g.after:,}{unit}" if g else "" for g in (change.most, change.least))
        yield head, f"{change.grew:,}", f"{change.shrank:,}", *ends


def costlier(found: Difference) -> Iterator[Statement]:
    """Yield where the largest growths are, by configuration; of the occupancy the largest fall."""
    extremes = (change.least if change.resource == "occupancy" else change.most for change in changed(found))
    for growths in alike(filter(None, extremes), lambda growth: moved(growth.moves)):
        yield Statement(f"{', '.join(grew(found, growth) for growth in growths)} at {moved(growths[0].moves)}")
