"""`gluonmap learn`: learn the joint constraints of a recorded table of verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gluonmap.cli.option_values import names_of, values_by_name
from gluonmap.model.errors import UnknownKnob, UsageError


@click.command(short_help="The constraints of a recorded table of verdicts.")
@click.option(
    "--from", "table", required=True, type=click.Path(path_type=Path), help="Recorded verdicts, as JSON lines."
)
@click.option("--baseline", default="", metavar="K=V,…", help="Configuration to start from; by default a passing one.")
@click.option(
    "--budget", type=click.IntRange(1), default=300, show_default=True, help="Largest number of rows to learn from."
)
@click.option(
    "--validate", type=click.IntRange(0), default=200, show_default=True, help="Number of rows for the certificate."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Confidence of the certificate.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random draws.")
@click.option(
    "--deep/--no-deep",
    default=True,
    show_default=True,
    help="Use up the budget for rare combinations of three values.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def learn(table: Path, baseline: str, as_json: bool, **settings: Any) -> None:
    """Learn the joint constraints of a recorded table of verdicts; the table answers instead of the compiler.

    A row: {"config": {…}, "outcome": "PASS|REJECTED|CRASHED|NO_RESOURCES|HUNG", "stage": …, "reason": …, "line": …,
    "digest": …, "shared_bytes": …}, all but the first two optional.

    \b
    gluonmap learn --from verdicts.jsonl --baseline BLOCK_M=128,num_warps=4
    """
    from gluonmap.model import codec
    from gluonmap.probe import recorded_table as tables

    read = tables.read_table(table)
    moves = values_by_name(names_of(baseline), "--baseline")
    for name in moves:
        if name not in read.domains:
            raise UnknownKnob(f"the table {read.name!r}", name, read.domains)
    start = {**read.likely_baseline(), **moves}
    if start not in read.configs:
        raise UsageError(f"the table {read.name!r} has no row for the baseline {start}.")
    learned, score = tables.learn_table(read, baseline=start, **settings)
    if as_json:
        click.echo(codec.dumps({"table": read.name, "score": score, "learned": learned}), nl=False)
        return
    from rich.console import Console

    from gluonmap.report import learn as report

    report.render(read.name, learned, score, Console())
