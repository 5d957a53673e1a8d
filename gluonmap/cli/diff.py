"""`gluonmap diff`: compare two maps, and report regressions."""

from __future__ import annotations

import io
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gluonmap.diff.comparison import Difference

FORMATS = ("text", "markdown", "html", "json")
MOST_ANNOTATIONS = 10
"""Annotations that GitHub shows for one step."""


@click.command(short_help="What differs between two maps.")
@click.argument("before", type=click.Path(path_type=Path), metavar="A")
@click.argument("after", type=click.Path(path_type=Path), metavar="B")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Format of the comparison."
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write; by default the comparison is printed.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "change"]),
    help="Exit with 1 if B has a regression, or any change.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="Allowed growth of registers and spills of one configuration; growth by 8 registers is always allowed.",
)
def diff(
    before: Path, after: Path, form: str, as_json: bool, out: Path | None, fail_on: str | None, tolerance: float
) -> None:
    """Compare map A with map B: of another target, another Triton, or another state of the kernel.

    A regression is a configuration that was compiled and passed for A and that fails in B, is no longer handed over
    there, begins to spill, or takes more registers or spills than the tolerance allows. docs/diff.md has the details.

    Exit codes: 0 compared, 1 with --fail-on if there is such a difference, 2 usage, 3 fault.

    \b
    gluonmap diff before.json reports/my_kernel.gfx942.json --fail-on regression
    gluonmap diff before.json reports/my_kernel.gfx942.json --format html --out diff.html
    """
    from gluonmap.diff.comparison import Tolerance, difference
    from gluonmap.model import codec
    from gluonmap.report import github
    from gluonmap.report.diff.rendered import render, render_markdown

    names = str(before), str(after)
    found = difference(codec.read_map(before), codec.read_map(after), Tolerance(percent=tolerance))
    form = "json" if as_json else form
    if out is not None:
        codec.write(out, _document(found, names, form))
        click.echo(f"gluonmap: {out} written", err=True)
    elif form == "text":
        from rich.console import Console

        render(found, names, Console())
    else:
        click.echo(_document(found, names, form), nl=False)
    if github.active():
        github.summarise(render_markdown(found, names))
        _annotate(found, severe=fail_on is not None)
    sys.exit(1 if fails(found, fail_on) else 0)


def _document(found: Difference, names: tuple[str, str], form: str) -> bytes:
    """Return the comparison in one of `FORMATS`; text is plain and 80 columns wide."""
    import msgspec

    from gluonmap.model import codec
    from gluonmap.report.diff.rendered import render, render_markdown

    match form:
        case "json":
            document = {"A": names[0], "B": names[1], "changed": found.changed, **msgspec.to_builtins(found)}
            return codec.dumps(document)
        case "markdown":
            return render_markdown(found, names).encode()
        case "html":
            from gluonmap.report.html import diff_page

            return diff_page.render(found, names)
        case _:
            from rich.console import Console

            page = io.StringIO()
            render(found, names, Console(file=page, width=80))
            return page.getvalue().encode()


def fails(found: Difference, fail_on: str | None) -> bool:
    """Return whether the comparison has a difference of the kind that --fail-on names."""
    return bool(found.regressions) if fail_on == "regression" else fail_on == "change" and found.changed


def _annotate(found: Difference, *, severe: bool) -> None:
    """Annotate each regression at its line; equal annotations appear once."""
    from gluonmap.report.diff.regressions import at_lines
    from gluonmap.report.github import Level, annotate

    level = Level.ERROR if severe else Level.WARNING
    for file, line, text in itertools.islice(at_lines(found), MOST_ANNOTATIONS):
        annotate(level, text, file=file, line=line, title="gluonmap diff: regression")
