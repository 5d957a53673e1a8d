"""Settings of a run: everything that the command line decides, and the default deadlines, memory and jobs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from gluonmap.model.candidate import Stage, Watch
from gluonmap.spec.description_builder import Overrides

IMPORT_DEADLINE_S = 120.0
LEAST_DEADLINE_S = 120.0
DEVICE_DEADLINE_S = 60.0
"""Time of inputs, launches, references and timing together. A launch that takes longer does not come back."""
REPAIR_DEADLINE_S = 30.0
"""Time of one change of a failing baseline, where the user names none. A slower one is no default to start from."""
DEADLINE_PER_BASELINE = 30.0
"""A candidate may take this many times as long as the baseline's compile."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of the search over all knobs together.

    The journal's conclusions are keyed by a hash over these fields: a renamed field loses them.
    """

    depth: str = "joint"
    budget: int | None = None
    validate: int | None = None
    seconds: float | None = None
    """Wall time for learning; None: no limit."""
    confidence: float = 0.95
    restrict: tuple[str, ...] = ()
    seed: int = 0
    deadline_s: float | None = None
    """Deadline of one candidate that the user named; None: the user named none."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the command line decides about a run."""

    kernel_file: Path
    root: Path
    """Folder that gets `probes/` and `reports/`."""
    overrides: Overrides = field(default_factory=Overrides)
    config_file: str = ""
    probe_file: Path | None = None
    stubs: tuple[str, ...] = ()
    jobs: int = 2
    deadline_s: float | None = None
    memory_bytes: int = 0
    retry: bool = False
    """Ask again what had no answer in an earlier run."""
    afresh: bool = False
    """Use no answer of an earlier run."""
    effort: Effort = field(default_factory=Effort)
    stage: Stage = Stage.COMPILE
    """The last stage of the baseline, of single values and of the programs that are handed over."""
    watch: Watch = Watch()
    """Checks of the stage RUN."""
    modules: tuple[str, ...] = ("torch",)
    """Modules that servers import for candidates that are executed."""


def default_jobs() -> int:
    return len(os.sched_getaffinity(0))


def default_memory_bytes(jobs: int) -> int:
    """Return the memory limit of a child: an equal share of the machine's memory, 8 GiB at least."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(8 << 30, total // jobs)
