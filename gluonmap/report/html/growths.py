"""What the programs of equal configurations take in the one map and in the other, as tables that sort by growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gluonmap.diff.comparison import Difference
from gluonmap.diff.resources import Growth, ProgramPair, distinct, growth
from gluonmap.report.diff.resources import changed
from gluonmap.report.html.programs import MOST_ROWS, Setting
from gluonmap.report.plain_text import config_text, value_label
from gluonmap.report.resources import resource_name

WORST = ("spills", "sgpr_spills", "scratch_bytes", "vgpr")
"""Resources by whose growth the pairs are ordered."""
COSTLY = WORST[:3]
"""Their growth costs speed for sure."""


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one pair, or an extreme over all of them; `by` is what a table sorts it by."""

    text: str
    by: int
    alarm: bool = False
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """One resource over all pairs."""

    name: str
    grew: int
    shrank: int
    most: Change | None
    least: Change | None


@dataclass(frozen=True, slots=True)
class Row:
    """One pair of programs."""

    settings: tuple[Setting, ...]
    figures: tuple[Change | None, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The pairs in which anything changed."""

    knobs: tuple[str, ...]
    """Those that differ between pairs."""
    fixed: str
    heads: tuple[str, ...]
    """Resources with their units."""
    rows: tuple[Row, ...]
    total: int
    still: int
    """Pairs that take the same on both sides."""


def summaries(found: Difference) -> list[Summary]:
    """Return the resources that are not the same everywhere."""
    return [
        Summary(
            _head(found, change.resource),
            change.grew,
            change.shrank,
            _change(change.most),
            _change(change.least),
        )
        for change in changed(found)
    ]


def table(found: Difference) -> Table | None:
    """Return the pairs of programs of equal configurations that take something else; None where there are none."""
    fields = [change.resource for change in changed(found)]
    pairs = distinct(found.pairs)
    moving = sorted((pair for pair in pairs if _moves(pair, fields)), key=_growth_of_worst)
    if not moving:
        return None
    knobs = [name for name in moving[0].config if len({repr(pair.config[name]) for pair in moving}) > 1]
    return Table(
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


def _row(pair: ProgramPair, knobs: Sequence[str], fields: Sequence[str]) -> Row:
    return Row(
        tuple(Setting(value_label(pair.config[name]), name in pair.moves) for name in knobs),
        tuple(_change(growth(pair, field)) for field in fields),
    )


def _change(told: Growth | None) -> Change | None:
    if told is None:
        return None
    text = f"{told.before:,} → {told.after:,}" if told.amount else f"{told.after:,}"
    return Change(text, told.amount, alarm=told.amount > 0 and told.resource in COSTLY, moved=told.amount != 0)


def _moves(pair: ProgramPair, fields: Sequence[str]) -> bool:
    return any(told.amount for field in fields if (told := growth(pair, field)))


def _growth_of_worst(pair: ProgramPair) -> tuple[int, ...]:
    return tuple(-told.amount if (told := growth(pair, field)) else 0 for field in WORST)
