"""A kernel whose arithmetic lies in another file."""

from helper import twice
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def apply(x, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, twice(gl.load(x + i)))
