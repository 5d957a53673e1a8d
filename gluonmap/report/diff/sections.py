"""The sections of a comparison, for every form of report: headings with statements, tables and commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gluonmap.diff.comparison import Difference
from gluonmap.report.diff import constraints, knobs, regressions, resources, run_figures, spaces
from gluonmap.report.plain_text import Statement, plural, shorten, visible


@dataclass(frozen=True, slots=True)
class SectionTable:
    """Rows of text; the last `right` columns are figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: int = 0


@dataclass(frozen=True, slots=True)
class DiffSection:
    """A heading with its statements, table and commands."""

    title: str
    lines: tuple[Statement, ...] = ()
    table: SectionTable | None = None
    commands: tuple[str, ...] = ()
    bad: bool = False
    """The section lists regressions."""


def sections(found: Difference, names: tuple[str, str]) -> Iterator[DiffSection]:
    """Yield the sections in the order of a reader's questions; empty ones are left out."""
    if found.regressions:
        yield DiffSection(regressions_title(found), tuple(regressions.regressions(found)), bad=True)
    if found.circumstances:
        yield DiffSection("Circumstances that differ", table=SectionTable(("", "A", "B"), tuple(circumstances(found))))
    if found.notes:
        yield DiffSection("Notes", tuple(Statement(note) for note in found.notes))
    if found.values:
        yield DiffSection("Single values", tuple(knobs.values(found)))
    if found.knobs:
        yield DiffSection("Knobs", tuple(line for change in found.knobs for line in knobs.knob(change)))
    if found.constraints or found.formula:
        yield DiffSection("Constraints on all knobs together", tuple(constraints.constraints(found)))
    yield DiffSection(
        "Sizes", tuple(spaces.sizes(found)), SectionTable(("", "A", "B"), tuple(spaces.counts(found)), right=2)
    )
    yield from flips(found)
    if rows := tuple(resources.resources(found)):
        yield DiffSection(
            resources_title(found), tuple(resources.costlier(found)), SectionTable(resources.HEADS, rows, right=4)
        )
    if lines := tuple(run_figures.lines(found)):
        yield DiffSection(run_figures.TITLE, lines)
    if commands := tuple(regressions.next_steps(found, names[1])):
        yield DiffSection("Look closer", commands=commands)


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


def flips(found: Difference) -> Iterator[DiffSection]:
    """Yield the configurations that changed sides and that no other section lists."""
    gained, lost = regressions.gained(found), regressions.lost(found)
    deeper = [flip for flip in found.flips if flip.deeper]
    for title, items in (
        (f"Combinations that fail in A and pass in B ({len(gained):,} of those that were asked)", gained),
        (f"Combinations that fail in B and were only predicted to pass in A ({len(lost):,})", lost),
        (f"Failing when executed, by a check that the other map did not make ({len(deeper):,})", deeper),
    ):
        if items:
            yield DiffSection(title, tuple(regressions.flipped(items)))
