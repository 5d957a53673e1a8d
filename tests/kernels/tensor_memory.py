"""COPIES accumulators of 128 columns in the tensor memory of a Blackwell multiprocessor, which has 512 columns."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell


@gluon.jit
def round_trip(x, COPIES: gl.constexpr):
    columns: gl.constexpr = blackwell.TensorMemoryLayout([128, 128], col_stride=1)
    layout: gl.constexpr = gl.BlockedLayout([1, 128], [32, 1], [4, 1], [0, 1])
    memory = blackwell.allocate_tensor_memory(gl.float32, [COPIES, 128, 128], columns)
    row = gl.arange(0, 128, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, 128, layout=gl.SliceLayout(0, layout))
    at = row[:, None] * 128 + column[None, :]
    for copy in gl.static_range(COPIES):
        memory.index(copy).store(gl.load(x + copy * 16384 + at))
    for copy in gl.static_range(COPIES):
        gl.store(x + copy * 16384 + at, memory.index(copy).load(layout))
