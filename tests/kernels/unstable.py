"""The code holds an offset that is drawn anew in every compile."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime.jit import constexpr_function


@constexpr_function
def draw():
    import os

    return int.from_bytes(os.urandom(3), "little")


@gluon.jit
def add(x, UNREAD: gl.constexpr, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, gl.load(x + i + draw()))
