"""Choice of targets, and the refusal of stages that this machine or the probe file cannot execute."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from gluonmap.model import codec, targets
from gluonmap.model.candidate import Stage
from gluonmap.model.errors import UsageError
from gluonmap.model.events import Event
from gluonmap.model.inspection import Inspection
from gluonmap.model.targets import Target
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.inspection import current_paths, inspection_for_any_target
from gluonmap.runner import environment
from gluonmap.source import syntax, target_api
from gluonmap.source.target_api import ApiUse
from gluonmap.spec.description import ExecutionRequest
from gluonmap.spec.probe_file import RAGGED, RUN, ProbeFile, below_kernels

CPU_MODEL = "the CPU, by a model of the hardware"
"""Name of the device on which the stage RUN executes."""


class TargetChoice:
    """Targets on which a campaign maps its kernel."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign

    def declared_targets(self) -> tuple[str, ...]:
        """Return the targets of the probe file's TARGETS; none: it names none, or there is no such file."""
        return tuple(targets.find(name).name for name in self.campaign.probe_file().targets)

    def default_targets(self) -> list[Target]:
        """Return this machine's device if it has one, else every target that the kernel's API allows.

        Raises:
            UsageError: the stage needs a device, and there is none here.
        """
        campaign, stage = self.campaign, self.campaign.settings.stage
        if stage is not Stage.RUN and (device := campaign.device.target):
            return [device]
        if stage.on_device:
            raise UsageError(_no_device(stage))
        probe = campaign.probe_file()
        wanted = probe.targets or tuple(target.name for target in targets.TARGETS)
        excluded = self._reasons_to_leave_out(inspection_for_any_target(campaign, probe))
        if stage is Stage.RUN:
            modelled = targets.executed_on_cpu()
            reason = f"--stage run executes code of {' and '.join(modelled)} only"
            excluded |= {name: reason for name in wanted if name not in modelled}
        for name in wanted:
            if name in excluded:
                campaign.listen(Event("note", f"{name} is left out: {excluded[name]}"))
        return [targets.find(name) for name in wanted if name not in excluded]

    def require_stage(self, wanted: Sequence[Target]) -> None:
        """Check that this machine can execute the settings' stage on all these targets, before any compile.

        Raises:
            UsageError: SKIPPED, and what to do instead.
        """
        stage = self.campaign.settings.stage
        if stage is Stage.RUN:
            _require_cpu_model(wanted)
        if stage.on_device:
            found = self.campaign.device.target
            for target in wanted:
                if found is None or target.name != found.name:
                    raise UsageError(_no_device(stage, target.name, found.name if found else ""))

    def _reasons_to_leave_out(self, inspection: Inspection) -> dict[str, str]:
        """Return why the kernel's API keeps it from a target, by target."""
        uses = api_uses(self.campaign, inspection)
        excluded = {name: lacks(name, use, None) for name, use in target_api.excluded_targets(uses).items()}
        for target in predecessors_of_api(uses):
            reason = f"the kernel is written with {target.predates_api}'s API (--target {target.name} tries it)"
            excluded.setdefault(target.name, reason)
        return excluded


def api_uses(campaign: Campaign, inspection: Inspection) -> tuple[ApiUse, ...]:
    """Return the uses of target-specific API in the kernel and in the functions that it reaches."""
    texts = {n: syntax.text_of(p) for n, p in current_paths(campaign, inspection).items() if p.is_file()}
    return target_api.find_api_uses(inspection.functions, texts)


def predecessors_of_api(uses: Sequence[ApiUse]) -> list[Target]:
    """Return the targets whose next generation's API the kernel calls.

    Some functions of that API compile on them, for narrow copies; a kernel that calls them is not meant for these.
    """
    modules = {use.api.partition(".")[0] for use in uses if "." in use.api}
    return [target for target in targets.TARGETS if target.predates_api in modules]


def lacks(target: str, use: ApiUse, line: int | None) -> str:
    """Return the sentence that a target lacks what the kernel uses."""
    where = f" (line {line})" if line else ""
    return f"the kernel uses {use.api}{where}, which {target} lacks"


def execution_request(campaign: Campaign, probe: ProbeFile) -> ExecutionRequest | None:
    """Return what candidates need beyond the compile; None: they are compiled only.

    Raises:
        UsageError: the probe file that a launch needs is missing, or lacks a function.
    """
    settings = campaign.settings
    stage = settings.stage
    if not stage.executes:
        return None
    _require_functions(campaign, probe, stage)
    regime = settings.overrides.regime or next(iter(probe.shapes), "")
    if stage is Stage.RUN:
        # The regime that was compiled is called "default" here, regardless of its name in SHAPES.
        others = {n: dict(shape) for n, shape in probe.shapes.items() if n not in (regime, RUN, "default")}
        run = {RUN: dict(probe.shapes[RUN])} if RUN in probe.shapes else {}
        return ExecutionRequest(
            stage,
            CPU_MODEL,
            codec.digest([probe.tree, environment.model_identity()]),
            probe.tolerance,
            shapes={**run, "default": {}, **others},
            reference="reference" in probe.functions,
            watch=settings.watch,
        )
    ragged = probe.shapes.get(RAGGED, {}) if stage is not Stage.LAUNCH and regime != RAGGED else {}
    return ExecutionRequest(stage, campaign.device.name, probe.tree, probe.tolerance, dict(ragged))


def _require_functions(campaign: Campaign, probe: ProbeFile, stage: Stage) -> None:
    needed = ("inputs",) if stage in (Stage.RUN, Stage.LAUNCH) else ("inputs", "reference")
    if missing := [name for name in needed if name not in probe.functions]:
        signatures = {"inputs": "inputs(shape, config, device, seed)"}
        what = " and ".join(signatures.get(n, f"{n}(inputs, shape)") for n in missing)
        where = probe.path or f"probes/{below_kernels(campaign.path)}"
        raise UsageError(
            f"SKIPPED: --stage {stage.value.lower()} needs {what} in the probe file {where} (docs/probe-files.md)."
        )


def _require_cpu_model(wanted: Sequence[Target]) -> None:
    for target in wanted:
        if not target.executed_on_cpu:
            modelled = " and ".join(targets.executed_on_cpu())
            raise UsageError(f"SKIPPED: --stage run executes code of {modelled}, not of {target.name}.")
    if importlib.util.find_spec("torch") is None:
        raise UsageError(
            "SKIPPED: the probe file makes its inputs with torch, which is not installed here. No GPU is needed: "
            "a torch made for CPUs will do."
        )


def _no_device(stage: Stage, target: str = "", found: str = "") -> str:
    """Return one sentence on why this machine cannot launch, and what to do instead."""
    here = f"this machine's is {found}" if found else "this machine has none that Triton and torch can use"
    if importlib.util.find_spec("torch") is None and not found:
        here = "torch, which launches, is not installed here (pip install 'gluonmap[gpu]')"
    return (
        f"SKIPPED: --stage {stage.value.lower()} runs the kernel on a{f' {target}' if target else ''} GPU, and {here}. "
        "Nothing was asked. A map of compiles needs no GPU: leave --stage out."
    )
