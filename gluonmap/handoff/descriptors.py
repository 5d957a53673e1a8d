"""Blocks of tensor descriptors that host code makes: a block depends on the configuration, which therefore sets it.

Triton calls the `pre_hook` of a `triton.Config` with all arguments before each launch, in trials and later.
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
    """Return the blocks of a kernel's descriptor arguments that depend on a knob. Most kernels have none."""
    found = []
    known = {**space.shape, **space.recipe.fixed, **space.baseline, **config}
    for name, spec in space.recipe.args.items():
        match = DESCRIPTOR.match(spec.strip()) if isinstance(spec, str) else None
        if match and expressions.names_in(f"({match['dims']},)") & space.knobs.keys():
            shape = expressions.evaluate(f"({match['dims']},)", known)
            assert isinstance(shape, tuple)
            found.append(DescriptorBlock(name, match["dtype"], tuple(int(side) for side in shape)))
    return tuple(found)


def hook_of(space: SpaceMap, config: Config) -> SetBlocks | None:
    """Return the `pre_hook` of a configuration; None where it has no blocks to set."""
    blocks = blocks_of(space, config)
    return SetBlocks(blocks, targets.find(space.target).backend) if blocks else None
