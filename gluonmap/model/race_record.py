"""The record of a race, as frozen data: circumstances, times, and what can be said of them."""

from __future__ import annotations

import msgspec

from gluonmap.model.candidate import Config, Value
from gluonmap.model.noise import Comparison
from gluonmap.model.verdict import Resources

RACE_SCHEMA = "gluonmap.race/1"
SPLIT_SCHEMA = "gluonmap.split/1"


class Finalist(msgspec.Struct, frozen=True):
    """One program of the rounds, against the baseline."""

    config: Config
    digest: str
    median_us: float
    low_us: float
    """Least and most of its rounds."""
    high_us: float
    against_baseline: Comparison
    resources: Resources
    leads: bool
    """It does not lose to the fastest."""
    error: float | None = None
    """The worst relative error of an output against the reference, at this size; None: not checked."""


class RaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One race: its circumstances, its times, and what can be said."""

    schema: str = RACE_SCHEMA
    kernel: str
    file: str
    target: str
    shape: dict[str, Value]
    device: str
    driver: str
    triton: str
    torch: str
    clocks_mhz: tuple[int | None, int | None]
    configurations: int
    compile_seconds: float
    compile_jobs: int
    race_seconds: float
    timed_by: str
    """"gluonmap" or "triton": whose `do_bench` the autotuner used."""
    rounds: int
    floor: float
    """Share by which identical programs were seen to differ in these rounds."""
    floor_from: str
    autotuner: Config
    """What the autotuner chose by itself."""
    winner: Config
    verdict: str
    """In words, against the baseline."""
    finalists: tuple[Finalist, ...]
    """The baseline first."""
    raced_us: tuple[tuple[Config, float | None], ...]
    failures: tuple[tuple[Config, str], ...] = ()
    """What did not race, or was fast and wrong."""
    unchecked: str = ""
    """Why the finalists' numbers were not checked."""


class Penalty(msgspec.Struct, frozen=True):
    """What it costs a size to be served the configuration that was chosen for another one, or for all."""

    served: str
    """Whose winner: the name of a size; or "one for all"."""
    config: Config
    at: str
    """The size that is served."""
    comparison: Comparison
    """Against the size's own winner: a ratio of 2 is twice its time."""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """Several sizes raced in one process, and whether one configuration can serve them all."""

    schema: str = SPLIT_SCHEMA
    kernel: str
    file: str
    target: str
    device: str
    triton: str
    shapes: dict[str, dict[str, Value]]
    winners: dict[str, Config]
    """By size, each raced alone."""
    one_for_all: Config
    """Of what ran at every size, the configuration that is least behind where it is farthest behind."""
    penalties: tuple[Penalty, ...]
    serves: dict[str, Config]
    """By size: its own winner, or an earlier size's that does not lose to it there."""
    split: bool
    """No single configuration ties with the winner of every size."""
    verdict: str
