"""Knobs that depend on each other: a budget, an assertion over two knobs, a knob behind another one."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def copy(x, y, BUFFERS: gl.constexpr, ROWS: gl.constexpr, COLS: gl.constexpr, GROUP: gl.constexpr, SPLIT: gl.constexpr):
    gl.static_assert(ROWS * COLS >= 1024, "a tile has four elements per thread at least")
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    buffers = gl.allocate_shared_memory(gl.float16, [BUFFERS, ROWS, COLS], shared)
    pid = gl.program_id(0)
    if SPLIT == 1:
        pid = pid // GROUP
    rows = pid * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, COLS, layout=gl.SliceLayout(0, layout))
    at = rows[:, None] * (4096 * SPLIT) + columns[None, :]
    one = buffers.index(BUFFERS - 1)
    one.store(gl.load(x + at))
    gl.store(y + at, one.load(layout))
