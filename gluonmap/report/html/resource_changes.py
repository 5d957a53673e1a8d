"""Resources of the programs of equal configurations in both maps, as tables that sort by growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gluonmap.diff.comparison import Difference
from gluonmap.diff.resources import Growth, ProgramPair, distinct_programs, growth
from gluonmap.report.diff.resources import changed
from gluonmap.report.html.programs import MOST_ROWS, Setting
from gluonmap.report.plain_text import config_text, value_label
from gluonmap.report.resources import resource_name

WORST = ("spills", "sgpr_spills", "scratch_bytes", "vgpr")
"""Resources by whose growth the pairs are sorted, the most important first."""
COSTLY = WORST[:3]
"""Resources whose growth costs speed for sure."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure of one pair, or an extreme over all pairs; `by` is the sort key of its column."""

    text: str
    by: int
    alarm: bool = False
    moved: bool = False


@dataclass(frozen=True, slots=True)
class ResourceSummary:
    """A resource over all pairs."""

    name: str
    grew: int
    shrank: int
    most: FigureChange | None
    least: FigureChange | None


@dataclass(frozen=True, slots=True)
class ProgramPairRow:
    """A pair of programs."""

    settings: tuple[Setting, ...]
    figures: tuple[FigureChange | None, ...]


@dataclass(frozen=True, slots=True)
class ProgramPairTable:
    """The pairs in which anything changed."""

    knobs: tuple[str, ...]
    """Knobs that differ between pairs."""
    fixed: str
    heads: tuple[str, ...]
    """Resources with their units."""
    rows: tuple[ProgramPairRow, ...]
    total: int
    still: int
    """Pairs that take the same on both sides."""


def summaries(found: Difference) -> list[ResourceSummary]:
    """Return the resources that are not the same everywhere."""
    return [
        ResourceSummary(
            _head(found, change.resource),
            change.grew,
            change.shrank,
            _change(change.most),
            _change(change.least),
        )
        for change in changed(found)
    ]


def table(found: Difference) -> ProgramPairTable | None:
    """Return the pairs of programs whose resources differ; None if there are none."""
    fields = [change.resource for change in changed(found)]
    pairs = distinct_programs(found.pairs)
    moving = sorted((pair for pair in pairs if _changes(pair, fields)), key=_growth_of_worst)
    if not moving:
        return None
    knobs = [name for name in moving[0].config if len({repr(pair.config[name]) for pair in moving}) > 1]
    return ProgramPairTable(
        knobs=tuple(knobs),
        fixed=config_text({n: v for n, v in moving[0].config.items() if n not in knobs}),
        heads=tuple(_head(found, field) for field in fields),
        rows=tuple(_row(pair, knobs, fields) for pair in moving[:MOST_ROWS]),
        total=len(moving),
        still=len(pairs) - len(moving),
    )


def _head(found: Difference, field: str) -> str:
    head, unit = resource_name(found.after.target, field)
    return f"{head},{unit}" if unit else head


def _row(pair: ProgramPair, knobs: Sequence[str], fields: Sequence[str]) -> ProgramPairRow:
    return ProgramPairRow(
        tuple(Setting(value_label(pair.config[name]), name in pair.moves) for name in knobs),
        tuple(_change(growth(pair, field)) for field in fields),
    )


def _change(change: Growth | None) -> FigureChange | None:
    if change is None:
        return None
    text = f"{change.before:,} → {change.after:,}" if change.amount else f"{change.after:,}"
    return FigureChange(
        text, change.amount, alarm=change.amount > 0 and change.resource in COSTLY, moved=change.amount != 0
    )


def _changes(pair: ProgramPair, fields: Sequence[str]) -> bool:
    return any(change.amount for field in fields if (change := growth(pair, field)))


def _growth_of_worst(pair: ProgramPair) -> tuple[int, ...]:
    return tuple(-change.amount if (change := growth(pair, field)) else 0 for field in WORST)
