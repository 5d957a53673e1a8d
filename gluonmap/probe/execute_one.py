"""Execution of one configuration on the CPU, without a journal."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import OracleFault, UnknownKnob
from gluonmap.model.events import Event
from gluonmap.model.inspection import Inspection
from gluonmap.model.targets import Target
from gluonmap.model.verdict import Verdict
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.current_lines import current_lines
from gluonmap.probe.inspection import current_paths, inspect
from gluonmap.probe.session import require_grid
from gluonmap.probe.target_choice import execution_request
from gluonmap.runner import diagnostics
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import describe
from gluonmap.spec.probe_file import RUN, ProbeFile
from gluonmap.worker.protocol import Bench, Job


@dataclass(frozen=True, slots=True)
class ExecutedConfiguration:
    """One configuration that was compiled and executed on the CPU."""

    kernel: str
    target: str
    triton: str
    config: Config
    """Values of the knobs."""
    shape: dict[str, Value]
    """Sizes that the program was compiled for."""
    verdict: Verdict
    place: str
    """Line that the reason points to: "gemm.py:78"; empty: it points to none."""


def execute_configuration(
    campaign: Campaign, target: Target, sizes: Mapping[str, Value], trace: Path | None
) -> ExecutedConfiguration:
    """Compile the baseline and execute it on the CPU. No journal is read or written: a probe may be running.

    `sizes` replace the small ones that are chosen otherwise. `trace` is a file that gets every instruction.

    Raises:
        OracleFault: the configuration has no answer.
        UsageError: nothing here can execute it.
    """
    probe = campaign.probe_file(target.name)
    inspection, description = _described(campaign, target, probe, sizes)
    if note := description.second_tile_note():
        campaign.listen(Event("note", note))
    candidate = description.candidate({})
    bench = Bench(os.path.abspath(probe.path), "", str(trace.absolute()) if trace else "")
    job = Job("compile", target.name, campaign.kernel_file(inspection.kernel), candidate, bench=bench)
    campaign.listen(Event("plan", "compile and run", 1))
    limits = campaign.limits()
    ending = campaign.isolation.ask(job, limits)
    answer = diagnostics.answer_from(ending, inspection.functions, limits.deadline_s, candidate.stage)
    if not isinstance(answer, Verdict):
        raise OracleFault(f"there is no answer: {answer.text}.")
    campaign.listen(Event("answer", answer=answer))
    return ExecutedConfiguration(
        inspection.kernel,
        target.name,
        campaign.triton,
        description.baseline,
        description.shape,
        answer,
        _place(campaign, inspection, answer),
    )


def _described(
    campaign: Campaign, target: Target, probe: ProbeFile, sizes: Mapping[str, Value]
) -> tuple[Inspection, Description]:
    request = execution_request(campaign, probe)
    assert request
    inspection, _ = inspect(campaign, target, probe)
    description = describe(inspection, target, probe, campaign.overrides(probe))
    require_grid(description)
    sized = {*description.shape, *(n for n, p in description.parameters.items() if not p.constexpr)}
    if unknown := next((name for name in sizes if name not in sized), ""):
        raise UnknownKnob(f"kernel {inspection.kernel!r}", unknown, sized, "--shape takes sizes of SHAPES.")
    if sizes:
        request = dataclasses.replace(request, shapes={RUN: {**description.shape, **sizes}})
    return inspection, dataclasses.replace(description, execution=request)


def _place(campaign: Campaign, inspection: Inspection, verdict: Verdict) -> str:
    location = verdict.reason.location if verdict.reason else None
    line = current_lines(inspection, current_paths(campaign, inspection))(location) if location else None
    return f"{Path(location.file).name}:{line}" if location and line else ""
