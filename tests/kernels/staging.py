"""BUFFERS tiles of 64 x 128 halves go through shared memory: 16,384 bytes each."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def stage(x, y, BUFFERS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    buffers = gl.allocate_shared_memory(gl.float16, [BUFFERS, 64, 128], shared)
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, 128, layout=gl.SliceLayout(0, layout))
    at = rows[:, None] * 4096 + columns[None, :]
    for b in gl.static_range(BUFFERS):
        buffers.index(b).store(gl.load(x + b * 128 + at))
    for b in gl.static_range(BUFFERS):
        gl.store(y + b * 128 + at, buffers.index(b).load(layout))
