"""A copy that is doubled; UNREAD is never read, CHECKED is read and changes nothing."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def double(x, TILE: gl.constexpr, UNREAD: gl.constexpr, CHECKED: gl.constexpr):
    gl.static_assert(CHECKED > 0)
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, gl.load(x + i) * 2)
