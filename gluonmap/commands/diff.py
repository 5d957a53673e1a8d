"""gluonmap diff: what differs between two maps, and whether something has become worse."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gluonmap.difference import Difference, Regression

MOST_ANNOTATIONS = 10
"""GitHub shows no more of one step."""


@click.command()
@click.argument("before", type=click.Path(path_type=Path), metavar="A")
@click.argument("after", type=click.Path(path_type=Path), metavar="B")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="What is printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "change"]),
    help="Exit with 1 if B is worse than A, or if it is any different.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="How much registers and spills of one configuration may grow; 8 registers always may.",
)
def diff(before: Path, after: Path, form: str, as_json: bool, fail_on: str | None, tolerance: float) -> None:
    """Tell what differs from map A to map B: another target, another Triton, another state of the kernel.

    A regression is a configuration that was compiled and passed for A and that fails in B, is no longer handed over
    there, begins to spill, or takes more registers or spills than the tolerance allows. docs/diff.md has it exactly.

    Exit codes: 0 compared, 1 only with --fail-on: it was found, 2 usage, 3 fault.

    \b
    gluonmap diff before.json reports/my_kernel.gfx942.json --fail-on regression
    """
    import msgspec

    from gluonmap import codec
    from gluonmap.diff import difference
    from gluonmap.difference import Tolerance
    from gluonmap.report import differences, github

    names = str(before), str(after)
    found = difference(codec.read_map(before), codec.read_map(after), Tolerance(percent=tolerance))
    match "json" if as_json else form:
        case "json":
            document = {"A": names[0], "B": names[1], "changed": found.changed, **msgspec.to_builtins(found)}
            click.echo(codec.dumps(document), nl=False)
        case "markdown":
            click.echo(differences.render_markdown(found, names), nl=False)
        case _:
            from rich.console import Console

            differences.render(found, names, Console())
    if github.active():
        github.summarise(differences.render_markdown(found, names))
        _annotate(found, severe=fail_on is not None)
    sys.exit(1 if fails(found, fail_on) else 0)


def fails(found: Difference, fail_on: str | None) -> bool:
    """Whether what the user asked to be told of was found."""
    return bool(found.regressions) if fail_on == "regression" else fail_on == "change" and found.changed


def _annotate(found: Difference, *, severe: bool) -> None:
    """Each regression at its line, alike ones once."""
    from gluonmap.report import differences
    from gluonmap.report.github import Level, annotate

    level = Level.ERROR if severe else Level.WARNING
    groups: dict[tuple[str, int | None, str], list[Regression]] = {}
    for item in found.regressions:
        what = str(item.kind) if item.after is None else differences.why_failing(item.after)
        groups.setdefault((item.file, item.line, what), []).append(item)
    for (file, line, _), items in list(groups.items())[:MOST_ANNOTATIONS]:
        annotate(level, differences.annotation(found, items), file=file, line=line, title="gluonmap diff: regression")
