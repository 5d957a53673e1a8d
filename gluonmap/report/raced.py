"""A race, for the terminal."""

from __future__ import annotations

import click
from tabulate import tabulate

from gluonmap.model import Config
from gluonmap.raced import RaceRecord
from gluonmap.report.words import label, plural, settings, visible


def render(record: RaceRecord) -> None:
    """Print the verdict, then the finalists, then the circumstances."""
    click.echo(f"{visible(record.kernel)} on {visible(record.device)}, {settings(record.shape)}")
    click.echo(visible(record.verdict))
    base = record.finalists[0].config
    rows = [
        (
            "baseline" if item.config == base else _moves(item.config, base),
            f"{item.median_us:.1f}",
            f"{item.low_us:.1f}-{item.high_us:.1f}",
            f"{item.against_baseline.ratio.ratio:.3f}",
            f"{item.against_baseline.ratio.low:.3f}-{item.against_baseline.ratio.high:.3f}",
            str(item.against_baseline.standing) if item.config != base else "",
            "leads" if item.leads else "",
        )
        for item in sorted(record.finalists, key=lambda item: item.median_us)
    ]
    heads = ("configuration", "median µs", "rounds", "of baseline", "95 %", "", "")
    click.echo(f"\n{tabulate(rows, heads, disable_numparse=True)}\n")
    click.echo(
        f"{plural(record.configurations, 'configuration')}: compiled in {record.compile_seconds:.1f} s by "
        f"{record.compile_jobs} processes, raced in {record.race_seconds:.1f} s (timed by {record.timed_by}), "
        f"then {record.rounds} rounds"
    )
    click.echo(f"noise {record.floor:.2%}, from {visible(record.floor_from)}")
    before, after = record.clocks_mhz
    clocks = f", clock {before} MHz before and {after} MHz after" if before and after else ""
    click.echo(f"Triton {record.triton}, torch {record.torch}{clocks}")
    for config, text in record.failures[:5]:
        click.echo(f"did not race: {_moves(config, base)}: {visible(text)}")


def _moves(config: Config, base: Config) -> str:
    moved = {n: v for n, v in config.items() if n not in base or repr(v) != repr(base[n])}
    return ", ".join(f"{visible(n)}={label(v)}" for n, v in moved.items()) or "baseline"
