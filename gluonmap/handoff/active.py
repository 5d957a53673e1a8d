"""The map of the device that a launch goes to. A map of gfx942 is never used for gfx950, and vice versa."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from gluonmap.handoff.launches import probe_command
from gluonmap.model import codec, targets
from gluonmap.model.errors import UsageError
from gluonmap.model.space_map import SpaceMap

MapOrPath = SpaceMap | str | os.PathLike[str]


class Maps:
    """Maps of one kernel. They are read when the first launch needs one."""

    def __init__(self, maps: MapOrPath | Sequence[MapOrPath]) -> None:
        several = [maps] if isinstance(maps, SpaceMap | str | os.PathLike) else list(maps)
        if not several:
            raise UsageError("no map was given; gluonmap probe KERNEL.py --depth joint writes one for each target.")
        # Paths are made absolute now, because the working directory may change before the first launch.
        self.given = [item if isinstance(item, SpaceMap) else Path(item).absolute() for item in several]

    @cached_property
    def all(self) -> list[SpaceMap]:
        return [item if isinstance(item, SpaceMap) else codec.read_map(item) for item in self.given]

    def active(self) -> SpaceMap:
        """Return the map of the active target.

        Raises:
            UsageError: a map cannot be read, or none or several are of this target.
        """
        target = active_target()
        found = [space for space in self.all if space.target == target]
        if len(found) == 1:
            return found[0]
        first, known = self.all[0], ", ".join(sorted(space.target for space in self.all))
        if found:
            raise UsageError(
                f"{len(found)} maps of {first.kernel!r} are of {target} (given: {known}); give one of them."
            )
        raise UsageError(
            f"no map of {first.kernel!r} is of {target}, the active target (given: {known}). Make one:  "
            f"{probe_command(replace(first, target=target), '--depth joint')}"
        )


def active_target() -> str:
    """Return the name of the target that Triton would launch on."""
    from triton.runtime import driver

    try:
        target = driver.active.get_current_target()
    except RuntimeError as error:
        raise UsageError(
            f"no GPU is active here ({error}), so no map can be chosen. Without one, gluonmap.load(MAP).configs() "
            "gives a map's configurations."
        ) from error
    return targets.name_of(target.backend, target.arch)
