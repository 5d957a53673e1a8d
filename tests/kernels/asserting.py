"""The author's own rules, as static assertions."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def negate(x, TILE: gl.constexpr, PER_LANE: gl.constexpr):
    gl.static_assert(TILE >= PER_LANE * 256, "TILE must cover PER_LANE * 256")
    layout: gl.constexpr = gl.BlockedLayout([PER_LANE], [64], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, -gl.load(x + i))
