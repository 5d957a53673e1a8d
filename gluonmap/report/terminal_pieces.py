"""Building blocks of printed reports: plain output into pipes, headings, lists, tables, flowing text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.box import Box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from gluonmap.model.outcomes import Outcome
from gluonmap.report.plain_text import Statement, visible

NARROW = 80
"""Columns below which names and figures are folded too, so that nothing is cut off."""

RULE = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


def show(console: Console, report: Callable[[], None]) -> None:
    """Print a report: unchanged to a terminal, else without trailing blanks, and in ASCII if the encoding needs it."""
    if console.is_terminal and not console.options.ascii_only:
        report()
        return
    with console.capture() as captured:
        report()
    plain = "".join(line.rstrip() + "\n" for line in captured.get().split("\n")[:-1])
    if console.options.ascii_only:
        plain = as_ascii(plain)
    console.out(plain, end="", highlight=False)


_ASCII = str.maketrans(
    {
        "→": "->",
        "≤": "<=",
        "●": "*",
        "○": "o",
        "Δ": "D",
    }
    | {"⌂": "h", "◇": "R", "≡": "=", "×": "x", "…": "..."}
    | {outcome.info.glyph: outcome.info.ascii_glyph for outcome in Outcome}
)


def as_ascii(text: str) -> str:
    """Return `text` in ASCII: each mark has a letter or sign of its own."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()


def heading(console: Console, title: str, colour: str = "") -> None:
    """Print a blank line and a heading."""
    console.print()
    console.print(Text(title, f"bold underline {colour}" if console.is_terminal else colour))


def section(console: Console, title: str, *body: RenderableType) -> None:
    """Print a heading and what belongs below it."""
    heading(console, title)
    for part in body:
        console.print(part)


def statements(lines: Iterable[Statement]) -> RenderableType:
    """Return statements as a list, each with its details below it."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column()
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(Text(" -"), Text(visible(line.text)))
        for detail in line.details:
            grid.add_row("", Text(visible(detail), "dim"))
    return grid


def bullets(lines: Iterable[str]) -> RenderableType:
    """Return a list of lines."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column()
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(Text(" -"), Text(visible(line)))
    return grid


def facts_table(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Return names in a first column and their values next to them; empty values are left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        if value:
            grid.add_row(Text(name), Text(value) if isinstance(value, str) else value)
    return grid


def empty_table(console: Console, *columns: tuple[str, int]) -> Table:
    """Return an empty table; a column's number is the width that it must not fall below (0: it may shrink)."""
    table = Table(box=RULE, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for head, width in columns:
        table.add_column(Text(head), overflow="fold", min_width=width if width and console.width >= NARROW else None)
    return table


def figures_table(console: Console, heads: Sequence[str], rows: Iterable[Sequence[str]], right: int) -> Table:
    """Return a table of text; the last `right` columns are run_figures."""
    table = empty_table(console, *((head, 0) for head in heads[: len(heads) - right]))
    for head in heads[len(heads) - right :]:
        table.add_column(Text(head), overflow="fold", justify="right")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def stack(*parts: RenderableType) -> RenderableType:
    """Return the parts that are not empty, one below the other."""
    kept = [part for part in parts if part]
    return kept[0] if len(kept) == 1 else Group(*kept)


def column_width(texts: Iterable[str], most: int = 24) -> int:
    """Return the width of the widest text, in columns, and `most` at most."""
    return min(most, max((Text(text).cell_len for text in texts), default=0))


class TextFlow:
    """Pieces of text in running lines; a line breaks between pieces only."""

    def __init__(self, pieces: Sequence[Text], gap: int) -> None:
        self.pieces = pieces
        self.gap = gap

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [piece.cell_len for piece in self.pieces] or [0]
        longest = min(max(widths), options.max_width)
        return Measurement(longest, min(sum(widths) + self.gap * (len(widths) - 1), options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Text(overflow="fold")
        for piece in self.pieces:
            if line and line.cell_len + self.gap + piece.cell_len > options.max_width:
                yield line
                line = Text(overflow="fold")
            line.append(" " * self.gap if line else "").append_text(piece)
        yield line
