"""A row minus its mean, in plain Triton: compiles with any number of warps."""

import triton
import triton.language as tl


@triton.jit
def center(x, y, stride, COLUMNS: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    row = tl.load(x + tl.program_id(0) * stride + column)
    tl.store(y + tl.program_id(0) * stride + column, row - tl.sum(row, 0) / COLUMNS)
