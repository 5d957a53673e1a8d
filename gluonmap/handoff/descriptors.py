"""Tensor descriptors made by host code: their block follows the configuration, so each configuration sets it.

`triton.Config` has `pre_hook` for it: Triton calls it with all arguments before it launches, in a trial and later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gluonmap.constraints import expressions
from gluonmap.model import targets
from gluonmap.model.candidate import Config
from gluonmap.model.dtypes import DESCRIPTOR
from gluonmap.model.space_map import SpaceMap


@dataclass(frozen=True)
class DescriptorBlock:
    """The block of one descriptor under one configuration."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class SetBlocks:
    """A `pre_hook` that gives descriptors the blocks of its configuration, in the layout that the map was made with."""

    blocks: tuple[DescriptorBlock, ...]
    backend: str

    def __call__(self, call: dict[str, Any]) -> None:
        from gluonmap.worker.arguments import default_layout

        for block in self.blocks:
            call[block.name].block_shape = list(block.shape)
            call[block.name].layout = default_layout(block.dtype, list(block.shape), self.backend)


def blocks_of(space: SpaceMap, config: Config) -> tuple[DescriptorBlock, ...]:
    """The blocks of the descriptors among a kernel's arguments, where they depend on a knob; none for most kernels."""
    found = []
    known = {**space.shape, **space.recipe.fixed, **space.baseline, **config}
    for name, told in space.recipe.args.items():
        match = DESCRIPTOR.match(told.strip()) if isinstance(told, str) else None
        if match and expressions.names_in(f"({match['dims']},)") & space.knobs.keys():
            shape = expressions.evaluate(f"({match['dims']},)", known)
            assert isinstance(shape, tuple)
            found.append(DescriptorBlock(name, match["dtype"], tuple(int(side) for side in shape)))
    return tuple(found)


def hook_of(space: SpaceMap, config: Config) -> SetBlocks | None:
    """What a configuration must do before its launch; None where nothing."""
    blocks = blocks_of(space, config)
    return SetBlocks(blocks, targets.find(space.target).backend) if blocks else None
