"""Winners of races, by size M."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gluonmap.handoff.launches import launch_of, verified
from gluonmap.model import codec
from gluonmap.model.candidate import Config
from gluonmap.model.errors import UsageError
from gluonmap.model.space_map import SpaceMap


def read_winners(space: SpaceMap, files: Sequence[Path]) -> dict[int, Config]:
    """Return the launch that won each of the recorded races, by the race's M.

    Raises:
        UsageError: a race of another kernel, target or map; a race without M; two races at one M.
    """
    found: dict[int, Config] = {}
    for path in files:
        record = codec.read_race(path)
        if (record.kernel, record.target) != (space.kernel, space.target):
            raise UsageError(
                f"{path} is a race of {record.kernel} on {record.target}, and the map is of {space.kernel} on "
                f"{space.target}."
            )
        size = record.shape.get("M")
        if not isinstance(size, int) or isinstance(size, bool) or size < 1 or size in found:
            raise UsageError(f"{path} was raced at M={size}: each race needs an M of its own, a whole number.")
        if record.winner.keys() - space.baseline.keys():
            raise UsageError(f"{path} was made with another map: its winner has knobs that this one has not.")
        config = {**space.baseline, **record.winner}
        if repr(config) not in {repr(entry.config) for entry in verified(space)}:
            raise UsageError(
                f"{path} was made with another map: its winner is none of the configurations that passed for this one. "
                f"Race this map:  gluonmap race {space.file}"
            )
        found[size] = launch_of(space, config)
    return found
