"""What differs between two maps, as headings with statements, tables and commands: what every report shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gluonmap.diff.comparison import Difference
from gluonmap.report.diff import constraints, counts, knobs, regressions, resources, spaces
from gluonmap.report.joint import Line
from gluonmap.report.plain_text import plural, shorten, visible


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; the last `right` columns are figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    title: str
    lines: tuple[Line, ...] = ()
    table: Table | None = None
    commands: tuple[str, ...] = ()
    bad: bool = False
    """It tells of regressions."""


def sections(found: Difference, names: tuple[str, str]) -> Iterator[Section]:
    """Yield headings and what stands below them, in the order of a reader's questions; empty ones are left out."""
    if found.regressions:
        yield Section(regressions_title(found), tuple(regressions.regressions(found)), bad=True)
    if found.circumstances:
        yield Section("Circumstances that differ", table=Table(("", "A", "B"), tuple(circumstances(found))))
    if found.notes:
        yield Section("Mind", tuple(Line(note) for note in found.notes))
    if found.values:
        yield Section("Single values", tuple(knobs.values(found)))
    if found.knobs:
        yield Section("Knobs", tuple(line for change in found.knobs for line in knobs.knob(change)))
    if found.constraints or found.formula:
        yield Section("Constraints on all knobs together", tuple(constraints.constraints(found)))
    yield Section("Sizes", tuple(spaces.sizes(found)), Table(("", "A", "B"), tuple(spaces.counts(found)), right=2))
    yield from flips(found)
    if rows := tuple(resources.resources(found)):
        yield Section(resources_title(found), tuple(resources.costlier(found)), Table(resources.HEADS, rows, right=4))
    if lines := tuple(counts.lines(found)):
        yield Section(counts.TITLE, lines)
    if commands := tuple(regressions.next_steps(found, names[1])):
        yield Section("Look closer", commands=commands)


def regressions_title(found: Difference) -> str:
    """Return "Regressions (3)"."""
    return f"Regressions ({len(found.regressions):,})"


def resources_title(found: Difference) -> str:
    """Return "Resources, 6 pairs of programs of equal configurations"."""
    pairs = plural(max(change.compared for change in found.resources), "pair")
    return f"Resources, {pairs} of programs of equal configurations"


def circumstances(found: Difference) -> Iterator[tuple[str, ...]]:
    """Yield rows: what differs that is no finding."""
    for item in found.circumstances:
        yield item.name, shorten(visible(item.before)), shorten(visible(item.after))


def flips(found: Difference) -> Iterator[Section]:
    """Yield the configurations that changed sides and that nothing else tells of."""
    gained, lost = regressions.gained(found), regressions.lost(found)
    deeper = [flip for flip in found.flips if flip.deeper]
    for title, items in (
        (f"Combinations that fail in A and pass in B ({len(gained):,} of those that were asked)", gained),
        (f"Combinations that fail in B and were only predicted to pass in A ({len(lost):,})", lost),
        (f"Failing when executed, which the other map was not as far ({len(deeper):,})", deeper),
    ):
        if items:
            yield Section(title, tuple(regressions.flipped(items)))
