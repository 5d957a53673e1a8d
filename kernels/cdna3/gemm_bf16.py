"""bf16 GEMM for gfx942 in Gluon: buffer loads through registers into a ring of LDS buffers, MFMA, fp32 accumulation.

    c = a @ b.T

Tensors:
    a_ptr: (M, K) bf16, element strides (stride_am, stride_ak), K contiguous (stride_ak == 1)
    b_ptr: (N, K) bf16, a weight as stored, element strides (stride_bn, stride_bk), K contiguous (stride_bk == 1)
    c_ptr: (M, N) bf16, element strides (stride_cm, stride_cn), N contiguous (stride_cn == 1)

Assumptions: M, N and K need not be multiples of the tile, the loads and the store are masked. K and the row strides
should be multiples of 16: with that the compiler proves that a mask never splits a vector of 16 bytes; without it the
loads fall apart into single elements, still right. Each tensor is smaller than 2 GiB (32-bit buffer offsets).

Numbers: executed on a CPU by a model of gfx942 (Triton 3.9.0): every program of reports/cdna3/gemm_bf16.gfx942.md is
right, and clean under its sanitizer. Not yet run on an MI300X.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def load_layout(block_k, num_warps):
    """Return a layout for (rows, BLOCK_K) tiles: 16 bytes a lane along K, the lanes of a wave over whole rows."""
    lanes_k = min(64, max(1, block_k // 8))
    return gl.BlockedLayout([1, 8], [64 // lanes_k, lanes_k], [num_warps, 1], [1, 0])


@gluon.constexpr_function
def lds_layout(block_k):
    """Return the swizzle that spreads equal columns of neighbouring rows over the banks."""
    row_bytes = 2 * block_k
    per_phase = max(1, 128 // row_bytes)  # rows that fit into the 128 bytes of one pass over the 32 banks
    max_phase = max(1, min(16 // per_phase, block_k // 8))
    return gl.SwizzledSharedLayout(8, per_phase, max_phase, [1, 0])


@gluon.constexpr_function
def mfma_layout(block_m, block_n, nonkdim, num_warps):
    """Return the accumulator's layout: waves split the longer side of their share first, so the shares stay square."""
    waves_m, waves_n = 1, 1
    while waves_m * waves_n < num_warps:
        if block_m // waves_m >= block_n // waves_n:
            waves_m *= 2
        else:
            waves_n *= 2
    # One bf16 instruction takes 4 values of K per lane on gfx942: 16x16x16 or 32x32x8.
    instr_k = 256 // nonkdim
    # The transposed result keeps 4 neighbouring columns in one lane, so c is written 8 bytes at a time.
    return gl.amd.AMDMFMALayout(
        version=3, instr_shape=[nonkdim, nonkdim, instr_k], transposed=True, warps_per_cta=[waves_m, waves_n]
    )


@gluon.jit
def grouped_tile(pid, M, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, GROUP_M: gl.constexpr):
    # Walk down GROUP_M tiles before the next column: the tiles that run at one time then share rows of a and b in L2.
    tiles_m = gl.cdiv(M, BLOCK_M)
    tiles_n = gl.cdiv(N, BLOCK_N)
    per_group = GROUP_M * tiles_n
    first_m = (pid // per_group) * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    inside = pid % per_group
    return first_m + inside % rows, inside // rows


@gluon.jit
def load_tile(ptr, offs_row, offs_k, rows, K, stride_row, stride_k, k, BLOCK_K: gl.constexpr):
    # k moves the scalar base and not the offsets: those stay in registers for the whole loop.
    offsets = offs_row[:, None] * stride_row + offs_k[None, :] * stride_k
    mask = (offs_row[:, None] < rows) & (offs_k[None, :] < K - k * BLOCK_K)
    return gl.amd.cdna3.buffer_load(ptr + k * BLOCK_K * stride_k, offsets, mask=mask, other=0.0)


@gluon.jit
def gemm_bf16(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bn,
    stride_bk,
    stride_cm,
    stride_cn,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GROUP_M: gl.constexpr,
    NUM_BUFFERS: gl.constexpr,
    NONKDIM: gl.constexpr,
    num_warps: gl.constexpr,
):
    # A matrix instruction spreads K over 64 // NONKDIM groups of lanes, 8 values each. A shorter tile compiles
    # without a word and gives wrong numbers (3.6.0 and 3.9.0, seen by executing the assembly on a CPU).
    gl.static_assert(BLOCK_K * NONKDIM >= 512, "BLOCK_K is shorter than one read of a matrix operand")
    load: gl.constexpr = load_layout(BLOCK_K, num_warps)
    lds: gl.constexpr = lds_layout(BLOCK_K)
    mfma: gl.constexpr = mfma_layout(BLOCK_M, BLOCK_N, NONKDIM, num_warps)
    # 8 values along K per lane are one 16-byte read from LDS and feed two instructions.
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, 8)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, 8)

    pid_m, pid_n = grouped_tile(gl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = pid_m * BLOCK_M
    col = pid_n * BLOCK_N
    offs_m = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, load))
    offs_n = col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, load))
    offs_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, load))

    a_ring = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_M, BLOCK_K], lds)
    b_ring = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_N, BLOCK_K], lds)

    # One buffer is always being read, so NUM_BUFFERS - 1 tiles lie ready ahead of it. A single buffer has no tile ahead
    # in LDS; there the next tile waits in registers until all waves have read this one.
    AHEAD: gl.constexpr = max(NUM_BUFFERS - 1, 1)
    for t in gl.static_range(AHEAD):
        a_ring.index(t).store(load_tile(a_ptr, offs_m, offs_k, M, K, stride_am, stride_ak, t, BLOCK_K))
        b_ring.index(t).store(load_tile(b_ptr, offs_n, offs_k, N, K, stride_bn, stride_bk, t, BLOCK_K))

    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=mfma)
    for k in range(gl.cdiv(K, BLOCK_K)):
        # The global loads go out first and are stored last: the matrix instructions hide their way. Behind the last
        # tile the mask is all false, so nothing is read.
        a_next = load_tile(a_ptr, offs_m, offs_k, M, K, stride_am, stride_ak, k + AHEAD, BLOCK_K)
        b_next = load_tile(b_ptr, offs_n, offs_k, N, K, stride_bn, stride_bk, k + AHEAD, BLOCK_K)
        a = a_ring.index(k % NUM_BUFFERS).load(dot_a)
        b = b_ring.index(k % NUM_BUFFERS).permute((1, 0)).load(dot_b)
        acc = gl.amd.cdna3.mfma(a, b, acc)
        a_ring.index((k + AHEAD) % NUM_BUFFERS).store(a_next)
        b_ring.index((k + AHEAD) % NUM_BUFFERS).store(b_next)

    out_m = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mfma))
    out_n = col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mfma))
    offsets = out_m[:, None] * stride_cm + out_n[None, :] * stride_cn
    mask = (out_m[:, None] < M) & (out_n[None, :] < N)
    gl.amd.cdna3.buffer_store(acc.to(c_ptr.dtype.element_ty), c_ptr, offsets, mask=mask)


def matmul(
    a,
    b,
    c=None,
    *,
    BLOCK_M=128,
    BLOCK_N=128,
    BLOCK_K=64,
    GROUP_M=8,
    NUM_BUFFERS=2,
    NONKDIM=16,
    num_warps=4,
    waves_per_eu=0,
):
    """Return c = a @ b.T for a: (M, K) bf16 and b: (N, K) bf16 on gfx942."""
    import torch

    (M, K), (N, K_b) = a.shape, b.shape
    if K != K_b:
        raise ValueError(f"a has {K} columns and b has {K_b}: both are stored with K last")
    if c is None:
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), 1, 1)
    gemm_bf16[grid](
        a,
        b,
        c,
        M,
        N,
        K,
        *a.stride(),
        *b.stride(),
        *c.stride(),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        GROUP_M=GROUP_M,
        NUM_BUFFERS=NUM_BUFFERS,
        NONKDIM=NONKDIM,
        num_warps=num_warps,
        waves_per_eu=waves_per_eu,
    )
    return c
