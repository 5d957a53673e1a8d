"""bf16 GEMM for gfx950 in Gluon: asynchronous copies to a ring of LDS buffers, MFMA, fp32 accumulation.

    c = a @ b.T

Tensors:
    a_ptr: (M, K) bf16, element strides (stride_am, stride_ak), K contiguous (stride_ak == 1)
    b_ptr: (N, K) bf16, a weight as stored, element strides (stride_bn, stride_bk), K contiguous (stride_bk == 1)
    c_ptr: (M, N) bf16, element strides (stride_cm, stride_cn), N contiguous (stride_cn == 1)

Assumptions: K and the row strides of a and b are multiples of 16, and the compiler must see it (a copy to LDS moves 16
bytes a lane or does not compile); K >= BLOCK_K. M, N and K need not be multiples of the tile; EVEN_K says that K is
(K % BLOCK_K == 0). Each tensor is smaller than 2 GiB (32-bit buffer offsets).

Numbers: executed on a CPU by a model of gfx950 (Triton 3.9.0): every program of reports/cdna4/gemm_bf16.gfx950.md is
right, and clean under its sanitizer. Not yet run on an MI355X.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def load_layout(block_k, num_warps):
    """Return a layout for (rows, BLOCK_K) tiles: 16 bytes a lane, so that one wave fills 1 KiB of LDS without a gap."""
    lanes_k = min(64, max(1, block_k // 8))
    return gl.BlockedLayout([1, 8], [64 // lanes_k, lanes_k], [num_warps, 1], [1, 0])


@gluon.constexpr_function
def lds_layout(block_k):
    """Return the swizzle that spreads equal columns of neighbouring rows over the banks.

    The copy writes a wave's 1 KiB in one piece, so the swizzle may only move 16-byte units inside that piece.
    """
    row_bytes = 2 * block_k
    per_phase = max(1, 256 // row_bytes)  # rows that fit into the 256 bytes of one pass over the 64 banks
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
    # One bf16 instruction takes 8 values of K per lane on gfx950: 16x16x32 or 32x32x16.
    instr_k = 512 // nonkdim
    # The transposed result keeps 4 neighbouring columns in one lane, so c is written 8 bytes at a time.
    return gl.amd.AMDMFMALayout(
        version=4, instr_shape=[nonkdim, nonkdim, instr_k], transposed=True, warps_per_cta=[waves_m, waves_n]
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
def copy_tile(slot, ptr, offsets, k, K, stride_k, BLOCK_K: gl.constexpr):
    # No mask: a tile that would reach over the end of K starts earlier instead, and so does every tile behind the last.
    # The columns that were there before are zeroed when the tile is read. A mask would turn each copy into branches;
    # and with a swizzled destination 3.6 and 3.7 put the store of `other` inside the branch of the copy, so old values
    # stay in LDS where the mask is false (3.8 gives it a branch of its own).
    start = gl.minimum(k * BLOCK_K, K - BLOCK_K)
    gl.amd.cdna4.async_copy.buffer_load_to_shared(slot, ptr + start * stride_k, offsets)


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
    EVEN_K: gl.constexpr,
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
    # Waves without a piece of a tile would skip the copy, and the wait, which counts copies, would let them through too
    # early (3.6.0).
    gl.static_assert(min(BLOCK_M, BLOCK_N) * BLOCK_K >= 512 * num_warps, "a wave has no piece of a tile to copy")
    load: gl.constexpr = load_layout(BLOCK_K, num_warps)
    lds: gl.constexpr = lds_layout(BLOCK_K)
    mfma: gl.constexpr = mfma_layout(BLOCK_M, BLOCK_N, NONKDIM, num_warps)
    # 8 values along K per lane are one 16-byte read from LDS, and what one instruction takes.
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, 8)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, 8)

    pid_m, pid_n = grouped_tile(gl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = pid_m * BLOCK_M
    col = pid_n * BLOCK_N
    # Rows behind the last are read as the last one: what they give is never stored.
    offs_m = gl.minimum(row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, load)), M - 1)
    offs_n = gl.minimum(col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, load)), N - 1)
    offs_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, load))
    # k moves the scalar base and not the offsets: these stay in registers for the whole loop.
    a_offs = offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_offs = offs_n[:, None] * stride_bn + offs_k[None, :] * stride_bk

    a_ring = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_M, BLOCK_K], lds)
    b_ring = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [NUM_BUFFERS, BLOCK_N, BLOCK_K], lds)

    # One buffer is always being read, so NUM_BUFFERS - 1 copies run ahead; a single buffer is filled between reads.
    AHEAD: gl.constexpr = NUM_BUFFERS - 1
    for t in gl.static_range(AHEAD):
        copy_tile(a_ring.index(t), a_ptr, a_offs, t, K, stride_ak, BLOCK_K)
        copy_tile(b_ring.index(t), b_ptr, b_offs, t, K, stride_bk, BLOCK_K)
        gl.amd.cdna4.async_copy.commit_group()

    dot_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, dot_a))
    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=mfma)
    for k in range(gl.cdiv(K, BLOCK_K)):
        slot = k % NUM_BUFFERS
        if NUM_BUFFERS == 1:
            copy_tile(a_ring.index(slot), a_ptr, a_offs, k, K, stride_ak, BLOCK_K)
            copy_tile(b_ring.index(slot), b_ptr, b_offs, k, K, stride_bk, BLOCK_K)
            gl.amd.cdna4.async_copy.commit_group()
            gl.amd.cdna4.async_copy.wait_group(0)
            a = a_ring.index(slot).load(dot_a)
            b = b_ring.index(slot).permute((1, 0)).load(dot_b)
        else:
            # The wait is also the meeting point of all waves: behind it everybody has read tile k - 1, and its buffer
            # may be filled.
            gl.amd.cdna4.async_copy.wait_group(NUM_BUFFERS - 2)
            ahead = (k + AHEAD) % NUM_BUFFERS
            copy_tile(a_ring.index(ahead), a_ptr, a_offs, k + AHEAD, K, stride_ak, BLOCK_K)
            copy_tile(b_ring.index(ahead), b_ptr, b_offs, k + AHEAD, K, stride_bk, BLOCK_K)
            gl.amd.cdna4.async_copy.commit_group()
            # Relaxed: the wait above covers this tile, and a plain load would wait for the copies just issued as well.
            a = gl.amd.cdna4.async_copy.load_shared_relaxed(a_ring.index(slot), dot_a)
            b = gl.amd.cdna4.async_copy.load_shared_relaxed(b_ring.index(slot).permute((1, 0)), dot_b)
        if not EVEN_K:
            # The last tile begins with columns of the tile before. One zero per product is enough: b holds real values.
            seen = k * BLOCK_K - gl.minimum(k * BLOCK_K, K - BLOCK_K)
            a = gl.where(dot_k[None, :] >= seen, a, gl.zeros_like(a))
        acc = gl.amd.cdna4.mfma(a, b, acc)

    out_m = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mfma))
    out_n = col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mfma))
    offsets = out_m[:, None] * stride_cm + out_n[None, :] * stride_cn
    mask = (out_m[:, None] < M) & (out_n[None, :] < N)
    gl.amd.cdna4.buffer_store(acc.to(c_ptr.dtype.element_ty), c_ptr, offsets, mask=mask)


def matmul(
    a,
    b,
    c=None,
    *,
    BLOCK_M=128,
    BLOCK_N=128,
    BLOCK_K=64,
    GROUP_M=8,
    NUM_BUFFERS=3,
    NONKDIM=16,
    num_warps=4,
    waves_per_eu=0,
):
    """Return c = a @ b.T for a: (M, K) bf16 and b: (N, K) bf16 on gfx950."""
    import torch

    (M, K), (N, K_b) = a.shape, b.shape
    if K != K_b:
        raise ValueError(f"a has {K} columns and b has {K_b}: both are stored with K last")
    if K < BLOCK_K:
        raise ValueError(f"K is {K} and BLOCK_K is {BLOCK_K}: this kernel needs one whole tile along K")
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
        EVEN_K=K % BLOCK_K == 0,
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
