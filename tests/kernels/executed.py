"""Doubles numbers, right or wrong in as many ways as a run on the CPU tells apart."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def executed(x_ptr, y_ptr, n, HOW: gl.constexpr, TILE: gl.constexpr, num_warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [num_warps], [0])
    i = gl.program_id(0) * TILE + gl.arange(0, TILE, layout=layout)
    x = gl.load(x_ptr + i, mask=i < n, other=0.0)
    y = x + x
    if HOW == "wrong":
        y = x * 2.1
    if HOW == "wrong when ragged":
        y = x + x + (n % 16).to(gl.float32)
    if HOW == "unknown instruction":
        y = gl.inline_asm_elementwise("v_msad_u8 $0, $1, $1, $1", "=v,v", [x], dtype=gl.float32, is_pure=True, pack=1)
    if HOW == "reads its output":
        y += gl.load(y_ptr + i, mask=i < n, other=0.0) * 0.0
    if HOW == "reads past the end":
        y += gl.load(x_ptr + i + 64, mask=i < n, other=0.0) * 0.0
    if HOW == "endless":
        while gl.load(x_ptr) < 1e30:
            gl.store(y_ptr + i, y, mask=i < n)
    if HOW == "writes its input":
        gl.store(x_ptr + i, y, mask=i < n)
    if HOW == "crosses groups":
        gl.store(y_ptr + i * 0, gl.program_id(0).to(gl.float32), mask=i < 1 + gl.program_id(0) * TILE)
    if HOW == "writes past the end":
        gl.store(y_ptr + i + 16, y, mask=i < n)
    elif HOW == "leaves one out":
        gl.store(y_ptr + i, y, mask=i < n - 1)
    else:
        gl.store(y_ptr + i, y, mask=i < n)
