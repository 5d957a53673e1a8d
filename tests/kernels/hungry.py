"""The front end takes as many gigabytes of host memory as GIGABYTES says."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime.jit import constexpr_function


@constexpr_function
def eat(gigabytes):
    eaten = []
    for _ in range(gigabytes * 64):
        eaten.append(bytearray(1 << 24))
    return len(eaten) * 0


@gluon.jit
def add(x, GIGABYTES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, 256, layout=layout)
    gl.store(x + i, gl.load(x + i) + eat(GIGABYTES))
