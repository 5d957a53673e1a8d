"""Each program walks over many tiles: how many programs there are is the launch's business alone."""

import triton
import triton.language as tl


@triton.jit
def add_one(x, y, n, TILE: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, TILE), tl.num_programs(0)):
        i = tile * TILE + tl.arange(0, TILE)
        tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
