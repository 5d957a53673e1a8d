"""The reduce of a split-K product in Gluon: one kernel text for waves of 64 lanes and warps of 32.

    y[m, n] = sum over s of x[s, m, n]

Tensors:
    x_ptr: (NUM_KSPLIT, M, N) fp32 (or bf16, fp16), element strides (stride_xk, stride_xm, 1)
    y_ptr: (M, N) bf16 (or fp16, fp32), element strides (stride_ym, 1)

The shares are added in order, in fp32: every run gives the same bits, which atomic additions would not. The loop over
the shares is unrolled, so that the loads of all shares are under way together.

Assumptions: none on M and N, loads and stores are masked; strides that are multiples of 16 keep the accesses whole.
BLOCK_M and BLOCK_N are powers of two.

Numbers: executed on a CPU by gluonmap.cdna (Triton 3.6.0 and 3.9.0) for gfx942 and gfx950: 30 configurations each,
drawn over the space, ragged sizes, 1 to 16 shares; bit for bit the sum in fp32 in this order, rounded once; clean under
the sanitizer, the same bits in a random order of waves. Not run on an MI300X or MI355X, not yet checked on gfx1250,
sm_90 and sm_100.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def tile_layout(block_m, vec, warp_size, num_warps):
    """Return the layout of a (rows, columns) tile: lanes along a row; a warp per row, or several if rows are fewer."""
    warps_m = min(block_m, num_warps)
    return gl.BlockedLayout([1, vec], [1, warp_size], [warps_m, num_warps // warps_m], [1, 0])


@gluon.jit
def splitk_reduce(
    x_ptr,
    y_ptr,
    M,
    N,
    stride_xk,
    stride_xm,
    stride_ym,
    NUM_KSPLIT: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    VEC: gl.constexpr,
    WARP_SIZE: gl.constexpr,
    num_warps: gl.constexpr,
):
    layout: gl.constexpr = tile_layout(BLOCK_M, VEC, WARP_SIZE, num_warps)
    tiles_n = gl.cdiv(N, BLOCK_N)
    m = (gl.program_id(0) // tiles_n) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    n = (gl.program_id(0) % tiles_n) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, layout))
    mask = (m[:, None] < M) & (n[None, :] < N)
    # 64-bit: the shares together may pass 2**31 elements where one does not.
    x = x_ptr + m.to(gl.int64)[:, None] * stride_xm + n[None, :]

    total = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=layout)
    for _ in gl.static_range(NUM_KSPLIT):
        total += gl.load(x, mask=mask, other=0.0).to(gl.float32)
        x += stride_xk

    y = y_ptr + m.to(gl.int64)[:, None] * stride_ym + n[None, :]
    gl.store(y, total.to(y_ptr.dtype.element_ty), mask=mask)


def add_splits(x, y=None, *, BLOCK_M=1, BLOCK_N=1024, VEC=4, num_warps=4):
    """Return the sum of x: (NUM_KSPLIT, M, N) over its first dimension as y: (M, N), bf16 if it is made here."""
    import torch

    splits, M, N = x.shape
    if y is None:
        y = torch.empty((M, N), device=x.device, dtype=torch.bfloat16)
    warp_size = triton.runtime.driver.active.get_current_target().warp_size
    splitk_reduce[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), 1, 1)](
        x,
        y,
        M,
        N,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        NUM_KSPLIT=splits,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        VEC=VEC,
        WARP_SIZE=warp_size,
        num_warps=num_warps,
    )
    return y
