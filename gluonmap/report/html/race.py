"""The section on a race: times with their spread, the noise floor, and ties."""

from __future__ import annotations

from dataclasses import dataclass

from gluonmap.model.candidate import Config, same
from gluonmap.model.race_record import Finalist, RaceRecord
from gluonmap.model.space_map import SpaceMap
from gluonmap.report.html import knob_table
from gluonmap.report.html.drawing import RaceChart, race_chart
from gluonmap.report.plain_text import config_text, plural
from gluonmap.report.race import numbers
from gluonmap.report.resources import Figure


@dataclass(frozen=True, slots=True)
class FinalistRow:
    """A finalist as a row of the table."""

    what: str
    baseline: bool
    median: str
    rounds: str
    ratio: str
    interval: str
    standing: str
    leads: bool
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class RaceSection:
    """One race as the page shows it."""

    title: str
    verdict: str
    facts: tuple[tuple[str, str], ...]
    heads: tuple[str, ...]
    laps: tuple[FinalistRow, ...]
    track: RaceChart | None
    raced: tuple[tuple[str, str], ...]
    """Every configuration of the autotuner's race, the fastest first, with its time in µs."""
    failures: tuple[tuple[str, str], ...]


def race_section(space: SpaceMap, record: RaceRecord) -> RaceSection:
    """Return the section on one race."""
    base = record.finalists[0].config if record.finalists else dict(space.baseline)
    finalists = sorted(record.finalists, key=lambda item: (item.against_baseline.ratio.ratio, item.median_us))
    names = [_moves(item.config, base) for item in finalists]
    figures = [knob_table.figures(record.target, item.resources) for item in finalists]
    heads = tuple(dict.fromkeys(figure.head for row in figures for figure in row))
    heads = tuple(h for h in heads if len({_of(row, h).text for row in figures}) > 1)
    timed = sorted((us, number) for number, (_, us) in enumerate(record.raced_us) if us is not None)
    return RaceSection(
        title=f"{config_text(record.shape)} on {record.device}",
        verdict=record.verdict,
        facts=tuple(_facts(record, base)),
        heads=heads,
        laps=tuple(
            _finalist_row(item, name, item.config == base, tuple(_of(row, head) for head in heads))
            for item, name, row in zip(finalists, names, figures, strict=True)
        ),
        track=race_chart(finalists, record.floor, names) if finalists else None,
        raced=tuple((_moves(record.raced_us[number][0], base), f"{us:,.1f}") for us, number in timed),
        failures=tuple((_moves(config, base), text) for config, text in record.failures),
    )


def _finalist_row(item: Finalist, name: str, baseline: bool, figures: tuple[Figure, ...]) -> FinalistRow:
    ratio = item.against_baseline.ratio
    return FinalistRow(
        what=name,
        baseline=baseline,
        median=f"{item.median_us:,.1f}",
        rounds=f"{item.low_us:,.1f} – {item.high_us:,.1f}",
        ratio=f"{ratio.ratio:.3f}",
        interval=f"{ratio.low:.3f} – {ratio.high:.3f}",
        standing="" if baseline else str(item.against_baseline.standing),
        leads=item.leads,
        figures=figures,
    )


def _of(row: tuple[Figure, ...], head: str) -> Figure:
    return next((figure for figure in row if figure.head == head), Figure(head, "–"))


def _moves(config: Config, base: Config) -> str:
    moved = {n: v for n, v in config.items() if n not in base or not same(v, base[n])}
    return config_text(moved) or "baseline"


def _facts(record: RaceRecord, base: Config) -> list[tuple[str, str]]:
    before, after = record.clocks_mhz
    clocks = f"{before} MHz before, {after} MHz after" if before and after else ""
    confidence = record.finalists[0].against_baseline.ratio.confidence if record.finalists else 0.0
    found = [
        ("noise floor", f"{record.floor:.2%}, from {record.floor_from}: a smaller difference is a tie"),
        ("rounds", f"{record.rounds} interleaved; intervals hold the median ratio at {confidence:.0%} confidence"),
        ("numbers", numbers(record)),
        ("autotuner chose", _moves(record.autotuner, base)),
        (
            "before the rounds",
            f"{plural(record.configurations, 'configuration')} compiled in {record.compile_seconds:.1f} s by "
            f"{record.compile_jobs} processes, raced in {record.race_seconds:.1f} s, timed by {record.timed_by}",
        ),
        ("versions", f"Triton {record.triton}, torch {record.torch}"),
        ("clock", clocks),
    ]
    return [(name, text) for name, text in found if text]
