"""The import asks which GPU is there and chooses a layout for it."""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

LANES = gl.constexpr(triton.runtime.driver.active.get_current_target().warp_size)


@gluon.jit
def add(x, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [LANES], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, gl.load(x + i) + 1)
