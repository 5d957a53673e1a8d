"""Inputs of races on this machine's GPU: the map, and the probe file that makes the tensors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.model.space_map import SpaceMap
    from gluonmap.spec.probe_file import ProbeFile


def map_to_race(
    kernel_or_map: Path, kernel: str, probe_file: Path | None, jobs: int | None, *, quiet: bool
) -> tuple[Path, SpaceMap]:
    """Return the file and the map to race: the named map, or a new map of the kernel for this machine's device.

    Raises:
        UsageError: there is no device; another Triton made the map; the baseline does not pass.
    """
    from gluonmap.cli.progress import ProgressDisplay
    from gluonmap.model import codec
    from gluonmap.model.outcomes import COMPILED
    from gluonmap.probe.each_target import probe_this_device
    from gluonmap.probe.settings import Settings, default_jobs, default_memory_bytes
    from gluonmap.runner import environment
    from gluonmap.spec.description_builder import Overrides

    if kernel_or_map.suffix == ".json":
        space = codec.read_map(kernel_or_map)
        here = environment.triton_version(environment.triton_folder())
        if here != space.triton:
            raise UsageError(
                f"the map was made with Triton {space.triton}, and this is {here}: what passed there may abort here. "
                f"gluonmap race {space.file} maps it here first."
            )
        return kernel_or_map, space
    most = jobs or default_jobs()
    settings = Settings(
        kernel_file=kernel_or_map,
        root=Path.cwd(),
        overrides=Overrides(kernel=kernel),
        probe_file=probe_file,
        jobs=most,
        memory_bytes=default_memory_bytes(most),
    )
    with ProgressDisplay(quiet=quiet) as listen:
        stored = probe_this_device(settings, listen)
    if stored.space.outcome not in COMPILED:
        raise UsageError(
            f"the baseline of {stored.space.kernel!r} is {stored.space.outcome} on {stored.space.target}: there is "
            f"nothing to race. gluonmap probe {kernel_or_map} says why."
        )
    return stored.path, stored.space


def inputs_of(space: SpaceMap, given: Path | None) -> tuple[Path, ProbeFile]:
    """Return the probe file that makes the tensors of a race, and its content.

    Raises:
        UsageError: there is no probe file, or it has no `inputs`.
    """
    from gluonmap.spec import probe_file as probefile

    found = given or probefile.find_probe(Path(space.file).absolute(), Path.cwd())
    if found is None:
        raise UsageError(f"no probe file of {space.file} is here: its inputs() makes the tensors of a race.")
    probe = probefile.read_probe(found, space.target)
    if "inputs" not in probe.functions:
        raise UsageError(f"a race needs inputs(shape, config, device, seed) in {found} (docs/probe-files.md).")
    return found, probe
