"""fp8 GEMM with block scales for gfx950 in Gluon: asynchronous copies to a ring of LDS buffers, scales applied in fp32.

    c[m, n] = sum over kb of a_scale[m, kb] * b_scale[n // 128, kb] * (a[m, block kb] @ b[n, block kb].T)

A block kb is 128 columns of K; the last one may be shorter.

Tensors:
    a_ptr:       (M, K) fp8, element strides (stride_am, stride_ak), K contiguous (stride_ak == 1)
    b_ptr:       (N, K) fp8, a weight as stored, element strides (stride_bn, stride_bk), K contiguous (stride_bk == 1)
    c_ptr:       (M, N) bf16, fp16 or fp32, element strides (stride_cm, stride_cn), N contiguous (stride_cn == 1)
    a_scale_ptr: (M, cdiv(K, 128)) fp32, element strides (stride_asm, stride_ask)
    b_scale_ptr: (cdiv(N, 128), cdiv(K, 128)) fp32, element strides (stride_bsn, stride_bsk)

fp8 is what gfx950 multiplies: OCP e4m3fn (fp8e4nv) or e5m2 (fp8e5), the same for a and b. The fnuz formats of gfx942
have other values for the same bytes, and are refused. The scales of a are read best with M contiguous: those of 16
neighbouring rows are then one line of memory.

Assumptions: the row strides of a and b are multiples of 16, and the compiler must see it (a copy to LDS moves 16 bytes
a lane or does not compile). K >= BLOCK_K. M, N and K need not be multiples of the tile; EVEN_K says that K is
(K % BLOCK_K == 0). Each tensor is smaller than 2 GiB (32-bit buffer offsets).

Numbers: executed on a CPU by gluonmap.cdna: 44 configurations drawn at random under Triton 3.6.0 and 44 under 3.9.0, in
both formats, with ragged sizes (K to the byte, padded with NaN) and results in bf16, fp16 and fp32: relative error at
most 8e-8 in fp32 and 1.7e-3 in bf16 (the rounding of the result), nothing found by the sanitizer, the same bits with
waves in a random order. No LDS bank conflicts were counted, for any BLOCK_K and NONKDIM. Not run on an MI355X.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

# 3.6.0 has it as _reinterpret.
REINTERPRET_IS_PUBLIC: gl.constexpr = gl.constexpr(hasattr(gl.shared_memory_descriptor, "reinterpret"))


@gluon.constexpr_function
def load_layout(rows, block_k, num_warps):
    """Return a layout for (rows, BLOCK_K) tiles that fills the LDS of a wave without a gap: 16 bytes a lane, or 4.

    4 where a tile of few rows has no 16 bytes for every lane.
    """
    size = 16 if rows * block_k >= 1024 * num_warps else 4
    lanes_k = min(64, block_k // size)
    return gl.BlockedLayout([1, size], [64 // lanes_k, lanes_k], [num_warps, 1], [1, 0])


@gluon.constexpr_function
def rows_per_phase(block_k):
    """Return how many rows of a tile fit into the 256 bytes of one pass over the 64 banks."""
    return max(1, 256 // block_k)


@gluon.jit
def swizzled_columns(rows: gl.constexpr, BLOCK_K: gl.constexpr, layout: gl.constexpr):
    # Units of 16 bytes change places with the row number, as `swizzled` below reads them: equal columns of neighbouring
    # rows are spread over the banks. A copy writes the lanes of a wave one behind the other, so it is the columns read
    # from global memory that change places. Copying into a swizzled layout instead has the compiler move the offsets
    # between lanes, for each copy anew (8 ds_bpermute in the loop of the default; 3.6.0 and 3.9.0).
    row = gl.arange(0, rows, layout=gl.SliceLayout(1, layout))
    col = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, layout))
    phase = row // rows_per_phase(BLOCK_K) % (BLOCK_K // 16)
    return ((col // 16)[None, :] ^ phase[:, None]) * 16 + (col % 16)[None, :]


@gluon.jit
def swizzled(ring, BLOCK_K: gl.constexpr):
    lds: gl.constexpr = gl.SwizzledSharedLayout(16, rows_per_phase(BLOCK_K), BLOCK_K // 16, [1, 0])
    return (
        ring.reinterpret(ring.dtype, ring.shape, lds)
        if REINTERPRET_IS_PUBLIC
        else ring._reinterpret(ring.dtype, ring.shape, lds)
    )


@gluon.constexpr_function
def mfma_layout(block_m, block_n, nonkdim, lane_k, num_warps):
    """Return the accumulator's layout: waves split the longer side of their share first, so the shares stay square."""
    waves_m, waves_n = 1, 1
    while waves_m * waves_n < num_warps:
        if block_m // waves_m >= block_n // waves_n:
            waves_m *= 2
        else:
            waves_n *= 2
    # LANE_K values of K per lane: 8 are 16x16x32 or 32x32x16; 32 are 16x16x128 or 32x32x64, of twice the rate.
    instr_k = lane_k * 64 // nonkdim
    # The transposed result keeps 4 neighbouring columns in one lane, so c is written 8 bytes at a time; and a lane has
    # few rows, so few scales of a.
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
    # Behind the last whole tile that one is copied again, and never used: so no mask is needed, which would turn each
    # copy into branches. k moves the scalar base and not the offsets: those stay in registers for the whole loop.
    start = gl.minimum(k, K // BLOCK_K - 1) * BLOCK_K
    gl.amd.cdna4.async_copy.buffer_load_to_shared(slot, ptr + start * stride_k, offsets)


@gluon.jit
def load_end(ptr, offsets, offs_k, K, stride_k, BLOCK_K: gl.constexpr):
    # The columns behind the last whole tile, with zeros up to the next.
    start = K // BLOCK_K * BLOCK_K
    return gl.amd.cdna4.buffer_load(ptr + start * stride_k, offsets, mask=offs_k < K - start, other=0.0)


@gluon.jit
def load_scales(ptr, offsets, k, K, stride_k, BLOCK_K: gl.constexpr):
    # Behind the last block, where nothing is left to scale, the last one is read again.
    block = gl.minimum(k * BLOCK_K, K - 1) // 128
    return gl.amd.cdna4.buffer_load(ptr + block * stride_k, offsets)


@gluon.jit
def add_scaled(acc, a, b, a_scale, b_scale, LANE_K: gl.constexpr):
    if LANE_K == 8:
        product = gl.amd.cdna4.mfma(a, b, gl.zeros_like(acc))
    else:
        # The wide instruction could scale groups of 32 by powers of two; None is a scale of one.
        FORMAT: gl.constexpr = "e4m3" if a.dtype == gl.float8e4nv else "e5m2"
        product = gl.amd.cdna4.mfma_scaled(a, None, FORMAT, b, None, FORMAT, gl.zeros_like(acc))
    return acc + product * (a_scale[:, None] * b_scale[None, :])


@gluon.jit
def gemm_fp8_blockscale(
    a_ptr,
    b_ptr,
    c_ptr,
    a_scale_ptr,
    b_scale_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bn,
    stride_bk,
    stride_cm,
    stride_cn,
    stride_asm,
    stride_ask,
    stride_bsn,
    stride_bsk,
    EVEN_K: gl.constexpr,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    GROUP_M: gl.constexpr,
    NUM_BUFFERS: gl.constexpr,
    NONKDIM: gl.constexpr,
    LANE_K: gl.constexpr,
    num_warps: gl.constexpr,
):
    TYPE: gl.constexpr = a_ptr.dtype.element_ty
    gl.static_assert(TYPE == gl.float8e4nv or TYPE == gl.float8e5, "a is in none of gfx950's fp8 formats")
    # 3.6.0 takes the formats of a product's two operands for each other's (seen by executing the assembly on a CPU).
    gl.static_assert(b_ptr.dtype.element_ty == TYPE, "a and b are in different formats")
    # A tile of K has one scale per row: it lies in one block of 128.
    gl.static_assert(BLOCK_K <= 128, "BLOCK_K is longer than a block of the scales")
    gl.static_assert(LANE_K == 8 or LANE_K == 32, "a lane gives a matrix instruction 8 or 32 values of K")
    # Each tile's product waits for its scales beside the accumulators. 3.6.0 computes it whole first, spills where a
    # lane has 256 accumulators, and then loses some of them (64 x 256 on one wave of gfx942, seen in the assembly).
    gl.static_assert(BLOCK_M * BLOCK_N <= 128 * 64 * num_warps, "a lane has more than 128 accumulators")
    # A matrix instruction spreads K over 64 // NONKDIM groups of lanes: a shorter tile would waste it, and does not
    # compile for the wide one.
    gl.static_assert(BLOCK_K * NONKDIM >= 64 * LANE_K, "BLOCK_K is shorter than one matrix instruction")
    # Waves without a piece of a tile skip the copy, and the wait, which counts copies, lets them through too early
    # (3.6.0, seen by executing the assembly on a CPU; 3.9.0 is right).
    gl.static_assert(min(BLOCK_M, BLOCK_N) * BLOCK_K >= 256 * num_warps, "a wave has no piece of a tile to copy")
    a_load: gl.constexpr = load_layout(BLOCK_M, BLOCK_K, num_warps)
    b_load: gl.constexpr = load_layout(BLOCK_N, BLOCK_K, num_warps)
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    mfma: gl.constexpr = mfma_layout(BLOCK_M, BLOCK_N, NONKDIM, LANE_K, num_warps)
    # 16 values along K per lane are one 16-byte read from LDS.
    K_WIDTH: gl.constexpr = min(16, BLOCK_K * NONKDIM // 64)
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, K_WIDTH)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, K_WIDTH)

    pid_m, pid_n = grouped_tile(gl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = pid_m * BLOCK_M
    col = pid_n * BLOCK_N
    # Rows behind the last are read as the last one: what they give is never stored.
    offs_m = gl.minimum(row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_load)), M - 1)
    offs_n = gl.minimum(col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, b_load)), N - 1)
    a_k = swizzled_columns(BLOCK_M, BLOCK_K, a_load)
    b_k = swizzled_columns(BLOCK_N, BLOCK_K, b_load)
    a_offs = offs_m[:, None] * stride_am + a_k * stride_ak
    b_offs = offs_n[:, None] * stride_bn + b_k * stride_bk
    in_m = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mfma))
    in_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mfma))
    # The block of a column is counted from the tile's first: the compiler sees that it is the same for up to 128
    # columns, and reads one scale of b for all of them.
    a_scale_offs = gl.minimum(row + in_m, M - 1) * stride_asm
    b_scale_offs = gl.minimum(col // 128 + in_n // 128, (N - 1) // 128) * stride_bsn

    a_ring = gl.allocate_shared_memory(TYPE, [NUM_BUFFERS, BLOCK_M, BLOCK_K], plain)
    b_ring = gl.allocate_shared_memory(TYPE, [NUM_BUFFERS, BLOCK_N, BLOCK_K], plain)
    a_seen = swizzled(a_ring, BLOCK_K)
    b_seen = swizzled(b_ring, BLOCK_K)

    # One buffer is always being read, so NUM_BUFFERS - 1 copies run ahead; a single buffer is filled between reads.
    # Scales go before copies: the wait counts the copies that may be outstanding, and takes what is older as landed.
    AHEAD: gl.constexpr = NUM_BUFFERS - 1
    a_scale = load_scales(a_scale_ptr, a_scale_offs, 0, K, stride_ask, BLOCK_K)
    b_scale = load_scales(b_scale_ptr, b_scale_offs, 0, K, stride_bsk, BLOCK_K)
    for t in gl.static_range(AHEAD):
        copy_tile(a_ring.index(t), a_ptr, a_offs, t, K, stride_ak, BLOCK_K)
        copy_tile(b_ring.index(t), b_ptr, b_offs, t, K, stride_bk, BLOCK_K)
        gl.amd.cdna4.async_copy.commit_group()

    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=mfma)
    for k in range(K // BLOCK_K):
        slot = k % NUM_BUFFERS
        if NUM_BUFFERS == 1:
            copy_tile(a_ring.index(slot), a_ptr, a_offs, k, K, stride_ak, BLOCK_K)
            copy_tile(b_ring.index(slot), b_ptr, b_offs, k, K, stride_bk, BLOCK_K)
            gl.amd.cdna4.async_copy.commit_group()
            gl.amd.cdna4.async_copy.wait_group(0)
            a_scale_next = load_scales(a_scale_ptr, a_scale_offs, k + 1, K, stride_ask, BLOCK_K)
            b_scale_next = load_scales(b_scale_ptr, b_scale_offs, k + 1, K, stride_bsk, BLOCK_K)
            a = a_seen.index(slot).load(dot_a)
            b = b_seen.index(slot).permute((1, 0)).load(dot_b)
        else:
            # The wait is also the meeting point of all waves: behind it everybody has read tile k - 1, and its buffer
            # may be filled.
            gl.amd.cdna4.async_copy.wait_group(NUM_BUFFERS - 2)
            a_scale_next = load_scales(a_scale_ptr, a_scale_offs, k + 1, K, stride_ask, BLOCK_K)
            b_scale_next = load_scales(b_scale_ptr, b_scale_offs, k + 1, K, stride_bsk, BLOCK_K)
            ahead = (k + AHEAD) % NUM_BUFFERS
            copy_tile(a_ring.index(ahead), a_ptr, a_offs, k + AHEAD, K, stride_ak, BLOCK_K)
            copy_tile(b_ring.index(ahead), b_ptr, b_offs, k + AHEAD, K, stride_bk, BLOCK_K)
            gl.amd.cdna4.async_copy.commit_group()
            # Relaxed: the wait above covers this tile, and a plain load would wait for the copies just issued as well.
            a = gl.amd.cdna4.async_copy.load_shared_relaxed(a_seen.index(slot), dot_a)
            b = gl.amd.cdna4.async_copy.load_shared_relaxed(b_seen.index(slot).permute((1, 0)), dot_b)
        acc = add_scaled(acc, a, b, a_scale, b_scale, LANE_K)
        a_scale, b_scale = a_scale_next, b_scale_next
    if not EVEN_K:
        # The end of K goes through registers, where it can be masked to the byte.
        gl.amd.cdna4.async_copy.wait_group(0)
        a_ring.index(0).store(load_end(a_ptr, a_offs, a_k, K, stride_ak, BLOCK_K))
        b_ring.index(0).store(load_end(b_ptr, b_offs, b_k, K, stride_bk, BLOCK_K))
        a = a_seen.index(0).load(dot_a)
        b = b_seen.index(0).permute((1, 0)).load(dot_b)
        acc = add_scaled(acc, a, b, a_scale, b_scale, LANE_K)

    out_m = row + in_m
    out_n = col + in_n
    offsets = out_m[:, None] * stride_cm + out_n[None, :] * stride_cn
    mask = (out_m[:, None] < M) & (out_n[None, :] < N)
    gl.amd.cdna4.buffer_store(acc.to(c_ptr.dtype.element_ty), c_ptr, offsets, mask=mask)


def matmul(
    a,
    b,
    a_scale,
    b_scale,
    c=None,
    *,
    BLOCK_M=128,
    BLOCK_N=128,
    BLOCK_K=128,
    GROUP_M=8,
    NUM_BUFFERS=3,
    NONKDIM=16,
    LANE_K=32,
    num_warps=4,
    waves_per_eu=0,
):
    """Return c: (M, N), bf16 unless it is given, for fp8 a: (M, K), b: (N, K) and their scales on gfx950."""
    import torch

    (M, K), (N, K_b) = a.shape, b.shape
    if K != K_b:
        raise ValueError(f"a has {K} columns and b has {K_b}: both are stored with K last")
    blocks_n, blocks_k = triton.cdiv(N, 128), triton.cdiv(K, 128)
    if a_scale.shape != (M, blocks_k) or b_scale.shape != (blocks_n, blocks_k):
        raise ValueError(
            f"scales are {tuple(a_scale.shape)} and {tuple(b_scale.shape)}: "
            f"a needs {(M, blocks_k)} and b {(blocks_n, blocks_k)}, one for each block of 128"
        )
    if K < BLOCK_K:
        raise ValueError(f"K is {K} and BLOCK_K is {BLOCK_K}: this kernel needs one whole tile along K")
    if a.stride(0) % 16 or b.stride(0) % 16:
        raise ValueError(f"rows of a and b are {a.stride(0)} and {b.stride(0)} bytes apart, no multiples of 16: pad")
    if c is None:
        c = torch.empty((M, N), device=a.device, dtype=torch.bfloat16)
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), 1, 1)
    gemm_fp8_blockscale[grid](
        a,
        b,
        c,
        a_scale,
        b_scale,
        M,
        N,
        K,
        *a.stride(),
        *b.stride(),
        *c.stride(),
        *a_scale.stride(),
        *b_scale.stride(),
        EVEN_K=K % BLOCK_K == 0,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        GROUP_M=GROUP_M,
        NUM_BUFFERS=NUM_BUFFERS,
        NONKDIM=NONKDIM,
        LANE_K=LANE_K,
        num_warps=num_warps,
        waves_per_eu=waves_per_eu,
    )
    return c
