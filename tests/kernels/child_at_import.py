"""The import starts a process in a session of its own, which outlives the import."""

import subprocess

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

subprocess.Popen(["sleep", "1000"], start_new_session=True)


@gluon.jit
def add(x, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, gl.load(x + i) + 1)
