"""Campaign: one kernel file with its settings and the processes that compile it, shared by all targets."""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
from dataclasses import dataclass
from pathlib import Path

from gluonmap.model import targets
from gluonmap.model.candidate import Candidate
from gluonmap.model.errors import UsageError
from gluonmap.model.events import Event, Listener
from gluonmap.model.inspection import Inspection
from gluonmap.model.targets import Target
from gluonmap.probe.settings import (
    DEADLINE_PER_BASELINE,
    DEVICE_DEADLINE_S,
    IMPORT_DEADLINE_S,
    LEAST_DEADLINE_S,
    Settings,
)
from gluonmap.runner import environment
from gluonmap.runner.oracle import Oracle
from gluonmap.runner.processes import Isolation
from gluonmap.spec import probe_file as probefile
from gluonmap.spec.description_builder import Overrides
from gluonmap.worker.protocol import Job, KernelFile, Limits

_DEVICE_FILES = ("/dev/kfd", "/dev/nvidia0", "/dev/dxg")


@dataclass(frozen=True, slots=True)
class Device:
    """This machine's GPU."""

    target: Target | None = None
    """None: there is no GPU, or gluonmap does not know its target."""
    name: str = ""


class Campaign:
    """One kernel file, mapped on one target after the other with one base server."""

    def __init__(self, settings: Settings, isolation: Isolation, listen: Listener) -> None:
        self.settings, self.isolation, self.listen = settings, isolation, listen
        path = settings.kernel_file
        if not path.is_file() or path.suffix != ".py":
            what = "does not exist" if not path.exists() else "is a folder" if path.is_dir() else "is no .py file"
            raise UsageError(f"the kernel file {path} {what}. Give the Python file that holds the kernel.")
        self.path = Path(os.path.abspath(path))
        triton_folder = environment.triton_folder()
        self.triton = environment.triton_version(triton_folder)
        self.installation = environment.identity(triton_folder)

    def with_listener(self, listen: Listener) -> Campaign:
        """Return the same campaign with another listener."""
        campaign = copy.copy(self)
        campaign.listen = listen
        return campaign

    # -- this machine --------------------------------------------------------------------------------------------

    @functools.cached_property
    def device(self) -> Device:
        """This machine's GPU, looked for at the first access."""
        target, name = self.find_device()
        try:
            return Device(targets.find(target) if target else None, name)
        except UsageError:
            return Device(None, name)

    def find_device(self) -> tuple[str, str]:
        """Return target and name of this machine's GPU, empty where there is none; a child looks for it."""
        if not any(Path(p).exists() for p in _DEVICE_FILES):
            return "", ""
        ending = self.isolation.ask(Job("device", targets.TARGETS[0].name), Limits(IMPORT_DEADLINE_S, 0))
        return (ending.evidence.device, ending.evidence.device_name) if ending.evidence else ("", "")

    # -- what the user said --------------------------------------------------------------------------------------

    def probe_file(self, target: str = "") -> probefile.ProbeFile:
        """Return the kernel's probe file as it is for `target`; an empty one where there is none."""
        path = self.settings.probe_file or probefile.find_probe(self.path, self.settings.root)
        if path is None:
            return probefile.ProbeFile()
        probe = probefile.read_probe(path, target)
        if target and probe.targets and target not in probe.targets:
            self.listen(Event("note", f"{path} is written for {', '.join(probe.targets)}, not for {target}"))
        return probe.for_kernel(self.settings.overrides.kernel or probe.kernel)

    def overrides(self, probe: probefile.ProbeFile) -> Overrides:
        """Return the user's overrides, with the configuration file that the user named."""
        overrides = self.settings.overrides
        if not self.settings.config_file:
            return overrides
        sizes = {n: v for shape in list(probe.shapes.values())[:1] for n, v in shape.items()} | overrides.args
        config, entry = probefile.read_config(self.settings.config_file, sizes)
        name = self.settings.config_file.partition("#")[0] + (f"#{entry}" if entry else "")
        return dataclasses.replace(overrides, config=config, config_name=Path(name).name)

    # -- candidates ----------------------------------------------------------------------------------------------

    def kernel_file(self, kernel: str) -> KernelFile:
        """Return a kernel of the file as jobs name it."""
        return KernelFile(str(self.path), kernel, self.settings.stubs)

    def limits(self, deadline_s: float = LEAST_DEADLINE_S) -> Limits:
        """Return the limits of a child whose compile may take `deadline_s`, where the user names no deadline.

        On a device the user's deadline counts again from the start: the compile before has nothing to do with it.
        """
        return Limits(
            self.settings.deadline_s or deadline_s,
            self.settings.memory_bytes,
            self.settings.deadline_s or DEVICE_DEADLINE_S,
        )

    def after_baseline(self, oracle: Oracle, baseline: Candidate, seconds: float) -> Oracle:
        """Return the oracle for the candidates around a baseline that compiled in `seconds`."""
        limits = self.limits(max(LEAST_DEADLINE_S, DEADLINE_PER_BASELINE * seconds))
        return oracle.with_baseline(baseline).with_limits(limits)

    # -- files ---------------------------------------------------------------------------------------------------

    def journal_path(self, target: Target) -> Path:
        below = probefile.below_kernels(self.path).with_suffix("")
        return self.settings.root / "probes" / below / f"{target.name}.jsonl"

    def map_path(self, target: Target, inspection: Inspection) -> Path:
        """Return where the map is stored; the kernel's name is part of it where the file holds several kernels."""
        below = probefile.below_kernels(self.path).with_suffix("")
        name = below.name if inspection.entries == (inspection.kernel,) else f"{below.name}.{inspection.kernel}"
        return self.settings.root / "reports" / below.with_name(f"{name}.{target.name}.json")
