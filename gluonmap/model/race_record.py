"""The record of a race, as frozen data: its circumstances, times and comparisons."""

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
    """Least time of a round; `high_us` is the greatest."""
    high_us: float
    against_baseline: Comparison
    resources: Resources
    leads: bool
    """The program does not lose to the fastest one."""
    error: float | None = None
    """The worst relative error of an output against the reference, at this size; None: not checked."""


class RaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One race: its circumstances, times and comparisons."""

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
    """Measured share by which identical programs differ in these rounds."""
    floor_from: str
    autotuner: Config
    """Configuration that the autotuner chose by itself."""
    winner: Config
    verdict: str
    """Result in words, against the baseline."""
    finalists: tuple[Finalist, ...]
    """The baseline first."""
    raced_us: tuple[tuple[Config, float | None], ...]
    failures: tuple[tuple[Config, str], ...] = ()
    """Configurations that did not race, or were fast and wrong, each with the reason."""
    unchecked: str = ""
    """Reason why the finalists' numbers were not checked; "": they were."""


class Penalty(msgspec.Struct, frozen=True):
    """The cost of serving a size with the configuration that was chosen for another size, or for all."""

    served: str
    """Name of the size whose winner is used; or "one for all"."""
    config: Config
    at: str
    """The size that is served."""
    comparison: Comparison
    """Against the size's own winner: a ratio of 2 is twice its time."""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """A race of several sizes in one process, and the answer to whether one configuration can serve them all."""

    schema: str = SPLIT_SCHEMA
    kernel: str
    file: str
    target: str
    device: str
    triton: str
    shapes: dict[str, dict[str, Value]]
    winners: dict[str, Config]
    """Size -> its winner, raced alone."""
    one_for_all: Config
    """Among the configurations that ran at every size, the one with the smallest worst-case slowdown."""
    penalties: tuple[Penalty, ...]
    serves: dict[str, Config]
    """Size -> its own winner, or an earlier size's winner that does not lose to it there."""
    split: bool
    """No single configuration ties with the winner of every size."""
    verdict: str
