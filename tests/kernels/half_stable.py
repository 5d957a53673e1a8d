"""With one value the code depends on the hash seed, with another on chance; with the first it is always the same."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime.jit import constexpr_function


@constexpr_function
def draw(source):
    if source == "hash seed":
        import os

        return 3 if os.environ.get("PYTHONHASHSEED") == "0" else 5
    if source == "chance":
        import random

        return random.SystemRandom().randrange(1 << 20)
    return 3


@gluon.jit
def add(x, SOURCE: gl.constexpr, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, gl.load(x + i) + draw(SOURCE))
