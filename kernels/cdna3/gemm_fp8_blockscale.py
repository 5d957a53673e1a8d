"""fp8 GEMM with block scales for gfx942 in Gluon: loads through registers into LDS buffers, scales applied in fp32.

    c[m, n] = sum over kb of a_scale[m, kb] * b_scale[n // 128, kb] * (a[m, block kb] @ b[n, block kb].T)

A block kb is 128 columns of K; the last one may be shorter.

Tensors:
    a_ptr:       (M, K) fp8, element strides (stride_am, stride_ak), K contiguous (stride_ak == 1)
    b_ptr:       (N, K) fp8, a weight as stored, element strides (stride_bn, stride_bk), K contiguous (stride_bk == 1)
    c_ptr:       (M, N) bf16, fp16 or fp32, element strides (stride_cm, stride_cn), N contiguous (stride_cn == 1)
    a_scale_ptr: (M, cdiv(K, 128)) fp32, element strides (stride_asm, stride_ask)
    b_scale_ptr: (cdiv(N, 128), cdiv(K, 128)) fp32, element strides (stride_bsn, stride_bsk)

fp8 is what gfx942 multiplies: e4m3fnuz (fp8e4b8) or e5m2fnuz (fp8e5b16), the same for a and b. The OCP formats of
gfx950 have other values for the same bytes, and are refused. The scales of a are read best with M contiguous: those of
16 neighbouring rows are then one line of memory.

Assumptions: the row strides of a and b are multiples of 16, and the compiler must see it: otherwise the loads fall
apart into single bytes, and Triton 3.9.0 loses the wait for LDS before a barrier in a loop with more than 63 loads
(seen by executing the assembly on a CPU; 3.6.0 keeps it). K >= BLOCK_K. M, N and K need not be multiples of the tile;
EVEN_K says that K is (K % BLOCK_K == 0). Each tensor is smaller than 2 GiB (32-bit buffer offsets).

Numbers: executed on a CPU by gluonmap.cdna: 44 configurations drawn at random under Triton 3.6.0 and 44 under 3.9.0, in
both formats, with ragged sizes (K to the byte, padded with NaN) and results in bf16, fp16 and fp32: relative error at
most 1e-7 in fp32 and 1.7e-3 in bf16 (the rounding of the result), nothing found by the sanitizer, the same bits with
waves in a random order. No LDS bank conflicts were counted, for any BLOCK_K and NONKDIM. Not run on an MI300X.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def load_layout(block_k, num_warps):
    """Return a layout for (rows, BLOCK_K) tiles: 16 bytes a lane along K, the lanes of a wave over whole rows."""
    lanes_k = block_k // 16
    return gl.BlockedLayout([1, 16], [64 // lanes_k, lanes_k], [num_warps, 1], [1, 0])


@gluon.constexpr_function
def lds_layout(block_k, k_width):
    """Return the swizzle that spreads equal columns of neighbouring rows over the banks, one lane's read at a time."""
    per_phase = max(1, 128 // block_k)  # rows that fit into the 128 bytes of one pass over the 32 banks
    return gl.SwizzledSharedLayout(k_width, per_phase, block_k // k_width, [1, 0])


@gluon.constexpr_function
def mfma_layout(block_m, block_n, nonkdim, num_warps):
    """Return the accumulator's layout: waves split the longer side of their share first, so the shares stay square."""
    waves_m, waves_n = 1, 1
    while waves_m * waves_n < num_warps:
        if block_m // waves_m >= block_n // waves_n:
            waves_m *= 2
        else:
            waves_n *= 2
    # One fp8 instruction takes 8 values of K per lane on gfx942: 16x16x32 or 32x32x16.
    instr_k = 512 // nonkdim
    # The transposed result keeps 4 neighbouring columns in one lane, so c is written 8 bytes at a time; and a lane has
    # few rows, so few scales of a.
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
def load_tile(ptr, offsets, k, K, stride_k, BLOCK_K: gl.constexpr):
    # Behind the last whole tile that one is read again, and never used: so no mask is needed. k moves the scalar base
    # and not the offsets: those stay in registers for the whole loop.
    start = gl.minimum(k, K // BLOCK_K - 1) * BLOCK_K
    return gl.amd.cdna3.buffer_load(ptr + start * stride_k, offsets)


@gluon.jit
def load_end(ptr, offsets, offs_k, K, stride_k, BLOCK_K: gl.constexpr):
    # The columns behind the last whole tile, with zeros up to the next.
    start = K // BLOCK_K * BLOCK_K
    return gl.amd.cdna3.buffer_load(ptr + start * stride_k, offsets, mask=offs_k[None, :] < K - start, other=0.0)


@gluon.jit
def load_scales(ptr, offsets, k, K, stride_k, BLOCK_K: gl.constexpr):
    # Behind the last block, where nothing is left to scale, the last one is read again.
    block = gl.minimum(k * BLOCK_K, K - 1) // 128
    return gl.amd.cdna3.buffer_load(ptr + block * stride_k, offsets)


@gluon.jit
def add_scaled(acc, a, b, a_scale, b_scale):
    product = gl.amd.cdna3.mfma(a, b, gl.zeros_like(acc))
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
    num_warps: gl.constexpr,
):
    TYPE: gl.constexpr = a_ptr.dtype.element_ty
    gl.static_assert(TYPE == gl.float8e4b8 or TYPE == gl.float8e5b16, "a is in none of gfx942's fp8 formats")
    # 3.6.0 takes the formats of a product's two operands for each other's (seen by executing the assembly on a CPU).
    gl.static_assert(b_ptr.dtype.element_ty == TYPE, "a and b are in different formats")
    # A tile of K has one scale per row: it lies in one block of 128.
    gl.static_assert(BLOCK_K <= 128, "BLOCK_K is longer than a block of the scales")
    # Each tile's product waits for its scales beside the accumulators. 3.6.0 computes it whole first, spills where a
    # lane has 256 accumulators, and then loses some of them (64 x 256 on one wave of gfx942, seen in the assembly).
    gl.static_assert(BLOCK_M * BLOCK_N <= 128 * 64 * num_warps, "a lane has more than 128 accumulators")
    # A matrix instruction spreads K over 64 // NONKDIM groups of lanes, 8 values each: a shorter tile would waste it.
    gl.static_assert(BLOCK_K * NONKDIM >= 512, "BLOCK_K is shorter than one matrix instruction")
    load: gl.constexpr = load_layout(BLOCK_K, num_warps)
    mfma: gl.constexpr = mfma_layout(BLOCK_M, BLOCK_N, NONKDIM, num_warps)
    # 16 values along K per lane are one 16-byte read from LDS and feed two instructions.
    K_WIDTH: gl.constexpr = min(16, BLOCK_K * NONKDIM // 64)
    lds: gl.constexpr = lds_layout(BLOCK_K, K_WIDTH)
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, K_WIDTH)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, K_WIDTH)

    pid_m, pid_n = grouped_tile(gl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = pid_m * BLOCK_M
    col = pid_n * BLOCK_N
    # Rows behind the last are read as the last one: what they give is never stored.
    offs_m = gl.minimum(row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, load)), M - 1)
    offs_n = gl.minimum(col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, load)), N - 1)
    offs_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, load))
    a_offs = offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_offs = offs_n[:, None] * stride_bn + offs_k[None, :] * stride_bk
    in_m = gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mfma))
    in_n = gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mfma))
    # The block of a column is counted from the tile's first: the compiler sees that it is the same for up to 128
    # columns, and reads one scale of b for all of them.
    a_scale_offs = gl.minimum(row + in_m, M - 1) * stride_asm
    b_scale_offs = gl.minimum(col // 128 + in_n // 128, (N - 1) // 128) * stride_bsn

    a_ring = gl.allocate_shared_memory(TYPE, [NUM_BUFFERS, BLOCK_M, BLOCK_K], lds)
    b_ring = gl.allocate_shared_memory(TYPE, [NUM_BUFFERS, BLOCK_N, BLOCK_K], lds)

    # One buffer is always being read, so NUM_BUFFERS - 1 tiles lie ready ahead of it. A single buffer has no tile ahead
    # in LDS; there the next tile waits in registers until all waves have read this one.
    AHEAD: gl.constexpr = max(NUM_BUFFERS - 1, 1)
    for t in gl.static_range(AHEAD):
        a_ring.index(t).store(load_tile(a_ptr, a_offs, t, K, stride_ak, BLOCK_K))
        b_ring.index(t).store(load_tile(b_ptr, b_offs, t, K, stride_bk, BLOCK_K))
    a_scale = load_scales(a_scale_ptr, a_scale_offs, 0, K, stride_ask, BLOCK_K)
    b_scale = load_scales(b_scale_ptr, b_scale_offs, 0, K, stride_bsk, BLOCK_K)

    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=mfma)
    for k in range(K // BLOCK_K):
        # The global loads go out first and are stored last: the matrix instructions hide their way.
        a_next = load_tile(a_ptr, a_offs, k + AHEAD, K, stride_ak, BLOCK_K)
        b_next = load_tile(b_ptr, b_offs, k + AHEAD, K, stride_bk, BLOCK_K)
        a_scale_next = load_scales(a_scale_ptr, a_scale_offs, k + 1, K, stride_ask, BLOCK_K)
        b_scale_next = load_scales(b_scale_ptr, b_scale_offs, k + 1, K, stride_bsk, BLOCK_K)
        a = a_ring.index(k % NUM_BUFFERS).load(dot_a)
        b = b_ring.index(k % NUM_BUFFERS).permute((1, 0)).load(dot_b)
        acc = add_scaled(acc, a, b, a_scale, b_scale)
        a_ring.index((k + AHEAD) % NUM_BUFFERS).store(a_next)
        b_ring.index((k + AHEAD) % NUM_BUFFERS).store(b_next)
        a_scale, b_scale = a_scale_next, b_scale_next
    if not EVEN_K:
        a_ring.index(0).store(load_end(a_ptr, a_offs, offs_k, K, stride_ak, BLOCK_K))
        b_ring.index(0).store(load_end(b_ptr, b_offs, offs_k, K, stride_bk, BLOCK_K))
        a = a_ring.index(0).load(dot_a)
        b = b_ring.index(0).permute((1, 0)).load(dot_b)
        acc = add_scaled(acc, a, b, a_scale, b_scale)

    out_m = row + in_m
    out_n = col + in_n
    offsets = out_m[:, None] * stride_cm + out_n[None, :] * stride_cn
    mask = (out_m[:, None] < M) & (out_n[None, :] < N)
    gl.amd.cdna3.buffer_store(acc.to(c_ptr.dtype.element_ty), c_ptr, offsets, mask=mask)


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
    NUM_BUFFERS=1,
    NONKDIM=16,
    num_warps=4,
    waves_per_eu=0,
):
    """Return c: (M, N), bf16 unless it is given, for fp8 a: (M, K), b: (N, K) and their scales on gfx942."""
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
        num_warps=num_warps,
        waves_per_eu=waves_per_eu,
    )
    return c
