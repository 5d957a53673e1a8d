"""A layout written as a literal: its bases of 64 rows and 128 columns need a tile larger than that, or LLVM aborts."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def transpose_tile(x, y, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    flat: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    literal: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[0, 1], [0, 2], [0, 4], [0, 64], [0, 128], [32, 0], [64, 0]],
        lane_bases=[[1, 0], [2, 0], [4, 0], [0, 8], [0, 16], [0, 32]],
        warp_bases=[[8, 0], [16, 0]],
        block_bases=[],
        shape=[ROWS, COLUMNS],
    )
    rows = gl.arange(0, ROWS, layout=gl.SliceLayout(1, flat))
    columns = gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, flat))
    at = rows[:, None] * 4096 + columns[None, :]
    tile = gl.convert_layout(gl.load(x + at), literal)
    gl.store(y + at, gl.convert_layout(tile + tile, flat))
