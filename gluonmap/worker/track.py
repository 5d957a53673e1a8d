"""Input and result of a race of configurations: two JSON files, between the tool and the process that races."""

from __future__ import annotations

import msgspec

from gluonmap.model.candidate import Candidate, Value
from gluonmap.worker.protocol import KernelFile


class Heat(msgspec.Struct, frozen=True):
    """One size of the problem, at which all runners race."""

    name: str
    shape: dict[str, Value]
    runners: tuple[Candidate, ...]
    """The same configurations in the same order in every heat. The baseline is the first."""


class Track(msgspec.Struct, frozen=True):
    """Input of a race. Each runner was compiled and passed on this target."""

    target: str
    file: KernelFile
    probe_file: str
    """Absolute path of the file with `inputs`."""
    heats: tuple[Heat, ...]
    """Heats with the same programs: one compile serves all heats."""
    hosts: tuple[dict[str, Value], ...]
    """Values of host-only knobs, by runner: `inputs` and the grid may read them."""
    twins: tuple[int, ...]
    """Further runners that do not race: they are the baseline's program under another configuration."""
    rounds: int
    finalists: int
    """Most runners of each heat that go on to the rounds, not counting the baseline and its twins."""
    jobs: int
    """Number of parallel compiles, before the device is used."""
    deadline_s: float
    """Time limit of each compile in seconds. A runner that takes longer does not race."""
    order: tuple[int, ...]
    """Runners in the order of their compiles: the longest begin first."""
    cache: str
    """Folder of Triton's cache. The user's own program finds the compiled programs there."""
    tolerance: dict[str, float] = {}
    """Tolerances of the probe file, by output."""
    plain: bool = False
    """Let Triton time each configuration with its default `do_bench`."""
    seed: int = 0


class Leg(msgspec.Struct, frozen=True):
    """The result of one heat. Times are in microseconds, lists are by runner."""

    race_seconds: float
    """Seconds of the standard autotuner, its own launches included."""
    raced_us: tuple[float | None, ...]
    """Times that the autotuner measured; None if the runner did not race or failed."""
    winner: int
    """Number of the runner that the autotuner chose."""
    rounds_us: dict[int, tuple[float, ...]]
    """Times of all heats' finalists, the baseline and its twins: one for each round, interleaved."""
    clocks_mhz: tuple[int | None, int | None]
    """Clock before the autotuner and after the rounds; None if it could not be read."""
    errors: dict[int, float] = {}
    """Largest relative error of an output, by checked runner."""


class Finish(msgspec.Struct, frozen=True):
    """Result of a race."""

    device: str
    driver: str
    torch: str
    triton: str
    compile_seconds: float
    """Seconds until the cache had all programs. It may have had some before."""
    legs: tuple[Leg, ...]
    """Results by heat."""
    failures: dict[int, str] = {}
    """Runners that could not be compiled here, or whose results are wrong, with the reason."""
    unchecked: str = ""
    """Why no results were checked; "" if those of all runners in the rounds were."""
