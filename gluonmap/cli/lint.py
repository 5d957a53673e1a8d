"""`gluonmap lint`: find the traps of tuning in the text of Triton and Gluon files."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(short_help="The traps of tuning in a kernel's text.")
@click.argument("paths", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path))
@click.option("--select", default="", metavar="CODES", help="Report these findings only: GM101,GM2; GM selects all.")
@click.option("--ignore", default="", metavar="CODES", help="Leave these findings out.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="Largest number of configurations of one tuner (GM106).  [default: 200]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def lint(paths: tuple[Path, ...], select: str, ignore: str, budget: int | None, as_json: bool) -> None:
    """Find code in Triton and Gluon files that makes a tuner fail, mislead, or race one program against itself.

    The command reads text: it imports, compiles and runs nothing. In a folder it reads all *.py files that mention
    Triton. A comment `# gluonmap: ignore[GM101]` on a line, or alone above it, hides the finding there. docs/lint.md
    has an example of each code. In GitHub Actions each finding is an annotation, and the page of the run lists them.

    Exit codes: 0 nothing found, 1 findings, 2 usage, 3 fault.

    \b
    gluonmap lint kernels/
    """
    from gluonmap.lint import MOST_CONFIGS, LintSettings, chosen_codes
    from gluonmap.lint import lint as read
    from gluonmap.model import codec
    from gluonmap.report import github
    from gluonmap.report import lint as linted

    settings = LintSettings(chosen_codes(select, ignore), MOST_CONFIGS if budget is None else budget)
    found = read(paths, settings)
    click.echo(codec.dumps(found).decode() if as_json else linted.render(found), nl=False)
    for item in found.findings:
        level = github.Level.ERROR if item.code == "GM001" else github.Level.WARNING
        github.annotate(
            level, f"{item.message}.\n{linted.advice(item)}", file=item.path, line=item.line, title=item.code
        )
    github.summarise(linted.markdown(found))
    sys.exit(1 if found.findings else 0)
