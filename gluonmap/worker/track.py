"""What a race is told and what it tells: JSON files, between the tool and the one process that races."""

from __future__ import annotations

import msgspec

from gluonmap.model.candidate import Candidate, Value
from gluonmap.worker.protocol import KernelFile


class Heat(msgspec.Struct, frozen=True):
    """One size of the problem, at which all runners race."""

    name: str
    shape: dict[str, Value]
    runners: tuple[Candidate, ...]
    """The same configurations in the same order in every heat; the baseline is the first."""


class Track(msgspec.Struct, frozen=True):
    """Everything that a race needs. Each runner was compiled and passed on this target."""

    target: str
    file: KernelFile
    probe_file: str
    """Absolute path of the file with `inputs`."""
    heats: tuple[Heat, ...]
    """Their runners are the same programs: one compile serves all heats."""
    hosts: tuple[dict[str, Value], ...]
    """Values of host-only knobs, by runner: what `inputs` and the grid may read besides."""
    twins: tuple[int, ...]
    """Runners, beyond those that race, that are the very program of the baseline under another configuration."""
    rounds: int
    finalists: int
    """At most so many of each heat go on to the rounds, besides the baseline and its twins."""
    jobs: int
    """Compiles at once, before the device is touched."""
    deadline_s: float
    """Of each compile; what takes longer does not race."""
    order: tuple[int, ...]
    """Runners in the order of their compiles: what takes long begins first."""
    cache: str
    """Folder of Triton's cache: what the race compiles is found there by the user's own program."""
    tolerance: dict[str, float] = {}
    """The probe file's, by output."""
    plain: bool = False
    """Let Triton time each configuration in its own way."""
    seed: int = 0


class Leg(msgspec.Struct, frozen=True):
    """What came of one heat. Times in microseconds; lists by runner."""

    race_seconds: float
    """Of the standard autotuner, its own launches included."""
    raced_us: tuple[float | None, ...]
    """What the autotuner measured; None: it did not race, or failed."""
    winner: int
    """The autotuner's own choice."""
    rounds_us: dict[int, tuple[float, ...]]
    """Of all heats' finalists, the baseline and its twins: one time for each round, interleaved."""
    clocks_mhz: tuple[int | None, int | None]
    """Before the autotuner and after the rounds."""
    errors: dict[int, float] = {}
    """The worst relative error of an output, by runner that was checked."""


class Finish(msgspec.Struct, frozen=True):
    """What came of it."""

    device: str
    driver: str
    torch: str
    triton: str
    compile_seconds: float
    """From an empty or a full cache to one that has all programs."""
    legs: tuple[Leg, ...]
    """By heat."""
    failures: dict[int, str] = {}
    """Runners that could not be compiled here, or whose numbers are wrong."""
    unchecked: str = ""
    """Why no numbers were checked; empty: those of all that ran in the rounds were."""
