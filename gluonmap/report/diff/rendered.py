"""Comparisons of two maps, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from gluonmap.diff.comparison import Difference
from gluonmap.report import markdown, terminal_pieces
from gluonmap.report.diff.headline import headline, sides
from gluonmap.report.diff.sections import DiffSection, sections
from gluonmap.report.plain_text import visible


def render(found: Difference, names: tuple[str, str], console: Console) -> None:
    """Print a comparison. Colour and width are the console's; into a file or a pipe it is plain and 80 columns wide."""
    terminal_pieces.show(console, lambda: _print(found, names, console))


def _print(found: Difference, names: tuple[str, str], console: Console) -> None:
    for letter, said in sides(found, names):
        console.print(Text(f"{letter}  ", "bold").append(said, "not bold"), soft_wrap=True)
    console.print()
    console.print(Text(f"A → B: {headline(found)}", "bold red" if found.regressions else "bold"))
    if found.changed or found.circumstances:
        for section in sections(found, names):
            _print_section(section, console)


def _print_section(section: DiffSection, console: Console) -> None:
    terminal_pieces.heading(console, section.title, "red" if section.bad else "")
    if section.table and section.table.rows:
        console.print(
            terminal_pieces.figures_table(console, section.table.heads, section.table.rows, section.table.right)
        )
    if section.lines:
        console.print(terminal_pieces.statements(section.lines))
    for command in section.commands:
        console.print(Text(f"   {visible(command)}", "dim"), soft_wrap=True)


def render_markdown(found: Difference, names: tuple[str, str]) -> str:
    """Return a comparison as Markdown. No text of the maps can end a table cell, open a tag or run as Markdown."""
    title = f"# {markdown.code(found.after.kernel)}: A → B"
    blocks = [title, "\n".join(f"- **{letter}**: {markdown.text(said)}" for letter, said in sides(found, names))]
    blocks.append(f"**{markdown.text(headline(found))}**")
    if found.changed or found.circumstances:
        for section in sections(found, names):
            blocks += [f"## {markdown.text(section.title)}", *_blocks(section)]
    return "\n\n".join(blocks) + "\n"


def _blocks(section: DiffSection) -> Iterator[str]:
    if section.table and section.table.rows:
        rows = [tuple(map(markdown.text, row)) for row in section.table.rows]
        yield markdown.table(section.table.heads, rows, section.table.right)
    if section.lines:
        yield markdown.statements(section.lines)
    if section.commands:
        yield markdown.fence(map(visible, section.commands), "sh")
