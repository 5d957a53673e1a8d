"""Races of configurations, for the terminal."""

from __future__ import annotations

import click
from tabulate import tabulate

from gluonmap.model.candidate import Config, same
from gluonmap.model.noise import RaceStanding
from gluonmap.model.race_record import Penalty, RaceRecord, Split
from gluonmap.report.plain_text import config_text, plural, value_label, visible


def render(record: RaceRecord) -> None:
    """Print the verdict, then the finalists, then the circumstances."""
    click.echo(f"{visible(record.kernel)} on {visible(record.device)}, {config_text(record.shape)}")
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
    click.echo(f"numbers: {numbers(record)}")
    for config, text in record.failures[:5]:
        click.echo(f"left out: {_moves(config, base)}: {visible(text)}")


def numbers(record: RaceRecord) -> str:
    """Return whether the finalists' numbers were checked, and how well they agree."""
    if record.unchecked:
        return f"not checked: {visible(record.unchecked)}"
    worst = max((item.error for item in record.finalists if item.error is not None), default=0.0)
    return f"all finalists agree with the reference at this size, relative error {worst:.1e} at most"


def _moves(config: Config, base: Config) -> str:
    moved = {n: v for n, v in config.items() if n not in base or not same(v, base[n])}
    return ", ".join(f"{visible(n)}={value_label(v)}" for n, v in moved.items()) or "the same"


def render_split(split: Split) -> None:
    """Print whether one configuration can serve all sizes, and what each one's winner costs the others."""
    click.echo(visible(split.verdict))
    names = list(split.shapes)
    served: dict[str, dict[str, str]] = {}
    for item in split.penalties:
        served.setdefault(item.served, {})[item.at] = "" if item.at == item.served else _cost(item)
    rows = [(visible(name), *(costs[at] for at in names)) for name, costs in served.items()]
    heads = ("time with the winner of", *(f"at {visible(name)}" for name in names))
    click.echo(f"\n{tabulate(rows, heads, disable_numparse=True)}\n")
    click.echo("ratios to the time of the size's own winner; = no difference above the noise")
    base = split.one_for_all
    click.echo(f"one for all: {config_text(base)}")
    for name, config in split.serves.items():
        click.echo(f"{visible(name)} ({config_text(split.shapes[name])}): {_moves(config, base)}")


def _cost(item: Penalty) -> str:
    """Return a ratio with its interval: "2.45× (2.41-2.50)"; "=" where it is within the noise."""
    ratio = item.comparison.ratio
    if item.comparison.standing is RaceStanding.TIE:
        return "="
    return f"{ratio.ratio:.2f}× ({ratio.low:.2f}-{ratio.high:.2f})"
