"""The front end leaves its process by the way that HOW names, as if all was done."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime.jit import constexpr_function


@constexpr_function
def leave(how):
    import os
    import signal
    import sys

    way, _, status = how.partition(" ")
    if way == "os._exit":
        os._exit(int(status))
    if way == "sys.exit":
        sys.exit(int(status))
    if way == "KeyboardInterrupt":
        raise KeyboardInterrupt
    if way == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    return 1


@gluon.jit
def add(x, HOW: gl.constexpr, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, gl.load(x + i) + leave(HOW))
