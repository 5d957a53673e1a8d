"""Writer of a map: its identity and path, the API that the target lacks, and notes on the map that it replaces."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gluonmap.model import codec, targets
from gluonmap.model.errors import UsageError
from gluonmap.model.events import Event
from gluonmap.model.inspection import Inspection
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import Target
from gluonmap.probe import map_fold
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.current_lines import current_lines
from gluonmap.probe.inspection import current_paths, relative_files
from gluonmap.probe.target_choice import api_uses, lacks, predecessors_of_api
from gluonmap.runner.journal import Head
from gluonmap.source import target_api


@dataclass(frozen=True, slots=True)
class StoredMap:
    """A map and the file that holds it."""

    space: SpaceMap
    path: Path


def identity_of(campaign: Campaign, target: Target, head: Head, probe_file: str) -> map_fold.MapIdentity:
    """Return what the map says about itself."""
    inspection = head.inspection
    return map_fold.MapIdentity(
        file=_shown(campaign.path),
        triton=campaign.triton,
        stubs=campaign.settings.stubs,
        map_path=_shown(campaign.map_path(target, inspection)),
        probe_file=_shown(Path(probe_file)) if probe_file else "",
        source={file.path: file.ast for file in relative_files(inspection.files, Path(head.folder))},
    )


def with_missing_api(campaign: Campaign, space: SpaceMap, inspection: Inspection, target: Target) -> SpaceMap:
    """Return the map with the API that the target lacks as its reason, if the baseline's failure confirms that."""
    if space.outcome == Outcome.PASS:
        return space
    uses = api_uses(campaign, inspection)
    excluded = target_api.excluded_targets(uses)
    use = excluded.get(target.name)
    if use is None:
        if target in predecessors_of_api(uses):
            api = target.predates_api
            step = f"the kernel is written with {api}'s API: probe it there with --target {api}"
            return msgspec.structs.replace(space, next_step=step)
        return space
    line = current_lines(inspection, current_paths(campaign, inspection))(use.location)
    allowed = [t.name for t in targets.TARGETS if t.name not in excluded]
    step = f"probe it where the API exists: --target {', '.join(allowed) or 'none of the known ones'}"
    reason = f"{lacks(target.name, use, line)}; the compile confirms it: {space.reason}"
    return msgspec.structs.replace(space, reason=reason, next_step=step)


def store(campaign: Campaign, space: SpaceMap, target: Target, inspection: Inspection) -> StoredMap:
    """Write the map to its file; note it where a map of something else was there."""
    path = campaign.map_path(target, inspection)
    if note := _replacement_note(path, space):
        campaign.listen(Event("note", note))
    codec.write(path, codec.dumps(space))
    return StoredMap(space, path)


def _replacement_note(path: Path, new: SpaceMap) -> str:
    """Return how the map in a file differs from the one that replaces it; empty: in nothing, or there is none."""
    try:
        old = codec.read_map(path)
    except UsageError:
        return ""
    pairs = {
        "kernel": (f"{old.file}:{old.kernel}", f"{new.file}:{new.kernel}"),
        "Triton": (old.triton, new.triton),
        "shape": (old.shape, new.shape),
        "outcome of the baseline": (old.outcome, new.outcome),
    }
    shown = _shown(path)
    for what, (before, after) in pairs.items():
        if before != after:
            return f"{shown} replaces a map of another {what} ({before} before, {after} now); --out DIR keeps both"
    if old.execution and not new.execution:
        stage = old.execution.stage.value.lower()
        return f"{shown} had answers of executions (--stage {stage}), and now has compiles only; --out DIR keeps both"
    if old.joint is not None and new.joint is None:
        note = f"{shown} knew all knobs together, and now knows single values only"
        return f"{note}; without --depth singles it is as it was, and little is asked again"
    return ""


def _shown(path: Path) -> str:
    """Return the path relative to the working directory, as a user would type it, where it lies below."""
    with contextlib.suppress(ValueError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)
