"""The front end kills its parent process, or the tool: the nearest ancestor that is run as `python -m gluonmap`."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime.jit import constexpr_function


@constexpr_function
def kill(whom):
    import os
    import signal

    if whom == "the server":
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    pid = os.getppid() if whom == "the tool" else 0
    while pid > 1:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"-m\0gluonmap\0probe" in file.read():
                os.kill(pid, signal.SIGKILL)
                signal.pause()
        with open(f"/proc/{pid}/stat", "rb") as file:
            pid = int(file.read().rpartition(b")")[2].split()[1])
    return 1


@gluon.jit
def add(x, WHOM: gl.constexpr, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, gl.load(x + i) + kill(WHOM))
