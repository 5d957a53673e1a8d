"""An unrolled loop whose trip count decides how long the compile runs; a long one starts a process beside it."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime.jit import constexpr_function


@constexpr_function
def start_companions(trips):
    import subprocess

    if trips > 1000:
        subprocess.Popen(["sleep", "1000"])
        subprocess.Popen(["sleep", "1001"], start_new_session=True)
    return 0


@gluon.jit
def powers(x, TRIPS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, 256, layout=layout)
    value = gl.load(x + i)
    sum = value + start_companions(TRIPS)
    for trip in gl.static_range(TRIPS):
        sum = sum * value + trip % 7
    gl.store(x + i, sum)
