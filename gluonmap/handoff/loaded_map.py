"""A map in a user's program: the stored data, with its configurations as `triton.Config`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gluonmap.handoff import conversion
from gluonmap.model.space_map import SpaceMap

if TYPE_CHECKING:
    from triton import Config as TritonConfig


class LoadedMap(SpaceMap, frozen=True, kw_only=True):
    """A map that `gluonmap.load` read. `configs` is not in `SpaceMap`, since the model imports no hand-off."""

    def configs(self, limit: int | None = None) -> list[TritonConfig]:
        """Return the verified configurations for `triton.autotune`, at most `limit`; see `gluonmap.handoff.configs`."""
        return conversion.configs(self, limit)
