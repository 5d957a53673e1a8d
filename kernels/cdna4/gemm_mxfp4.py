"""mxfp4 x mxfp4 GEMM for gfx950 in Gluon with literal layouts: one tile, 256 x 256 x 256 on 8 warps, and no other.

    c[m, n] = sum over k of a[m, k] * 2**(a_scales[m, k // 32] - 127) * b[k, n] * 2**(b_scales[n, k // 32] - 127)

Tensors (K counts fp4 values):
    a_ptr:        (M, K // 2) uint8, row-major, two e2m1 values a byte, the lower k in the lower four bits
    b_ptr:        (K // 2, N) uint8 with stride_bk == 1: a weight (N, K // 2) as it is stored
    c_ptr:        (NUM_KSPLIT, M, N) bf16 or fp32, N contiguous: each split's share, to be added by the caller
    a_scales_ptr: (M, K // 32) uint8, e8m0: the exponent plus 127
    b_scales_ptr: (N, K // 32) uint8, e8m0

Assumptions: K % 32 == 0, and the rows of a and b start at multiples of 16 bytes. M, N and K need not be multiples of
the tile. Each tensor, and each split of c, is smaller than 2 GiB (32-bit buffer offsets). SPLITK_BLOCK_SIZE is a
multiple of BLOCK_SIZE_K and covers K in NUM_KSPLIT steps.

Launch options stand in the signature as constexpr parameters, as kernel libraries write them. num_stages, waves_per_eu
and matrix_instr_nonkdim are never read by the body: num_stages and matrix_instr_nonkdim do nothing at all, because a
Gluon kernel has already chosen its pipeline and its instruction; waves_per_eu reaches the register allocator.

Numbers: executed on a CPU by a model of gfx950 (Triton 3.9.0): every program of reports/cdna4/gemm_mxfp4.gfx950.md is
right, and clean under its sanitizer. Not yet run on an MI355X.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def gemm_mxfp4(
    a_ptr,
    b_ptr,
    c_ptr,
    a_scales_ptr,
    b_scales_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_ck,
    stride_cm,
    stride_cn,
    stride_asm,
    stride_ask,
    stride_bsn,
    stride_bsk,
    BLOCK_SIZE_M: gl.constexpr,
    BLOCK_SIZE_N: gl.constexpr,
    BLOCK_SIZE_K: gl.constexpr,
    GROUP_SIZE_M: gl.constexpr,
    NUM_KSPLIT: gl.constexpr,
    SPLITK_BLOCK_SIZE: gl.constexpr,
    num_warps: gl.constexpr,
    num_stages: gl.constexpr,
    waves_per_eu: gl.constexpr,
    matrix_instr_nonkdim: gl.constexpr,
    cache_modifier: gl.constexpr,
):
    PACKED_K: gl.constexpr = BLOCK_SIZE_K // 2
    GROUPS_K: gl.constexpr = BLOCK_SIZE_K // 32
    mfma: gl.constexpr = gl.amd.AMDMFMALayout(
        version=4, instr_shape=[32, 32, 64], transposed=True, warps_per_cta=[2, num_warps // 2]
    )
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, 16)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, 16)

    # Each basis vector says where one bit of a register, lane or warp number leads in the tile. A vector that reaches
    # 128 needs a side above 128, the vectors together must fill the tile, and three warp bits are eight warps: so no
    # other block size and no other num_warps can be built.
    # Global loads of packed values: 16 bytes a lane along K.
    a_load: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[0, 1], [0, 2], [0, 4], [0, 8], [64, 0], [128, 0]],
        lane_bases=[[0, 16], [0, 32], [0, 64], [1, 0], [2, 0], [4, 0]],
        warp_bases=[[8, 0], [16, 0], [32, 0]],
        block_bases=[],
        shape=[BLOCK_SIZE_M, PACKED_K],
    )
    b_load: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[1, 0], [2, 0], [4, 0], [8, 0], [0, 64], [0, 128]],
        lane_bases=[[16, 0], [32, 0], [64, 0], [0, 1], [0, 2], [0, 4]],
        warp_bases=[[0, 8], [0, 16], [0, 32]],
        block_bases=[],
        shape=[PACKED_K, BLOCK_SIZE_N],
    )
    # Scales, where the scaled instruction wants them: two lanes of a row hold its even and odd groups of 32. Warps that
    # share rows of a (or columns of b) hold copies: a vector of zeros.
    a_scale_layout: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[0, 2], [0, 4], [64, 0], [128, 0]],
        lane_bases=[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]],
        warp_bases=[[0, 0], [0, 0], [32, 0]],
        block_bases=[],
        shape=[BLOCK_SIZE_M, GROUPS_K],
    )
    b_scale_layout: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[0, 2], [0, 4], [128, 0]],
        lane_bases=[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]],
        warp_bases=[[32, 0], [64, 0], [0, 0]],
        block_bases=[],
        shape=[BLOCK_SIZE_N, GROUPS_K],
    )
    # c: eight neighbouring columns in a lane, 16 bytes of bf16.
    c_layout: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[0, 1], [0, 2], [0, 4], [0, 16], [0, 128], [64, 0], [128, 0]],
        lane_bases=[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]],
        warp_bases=[[0, 32], [0, 64], [32, 0]],
        block_bases=[],
        shape=[BLOCK_SIZE_M, BLOCK_SIZE_N],
    )
    # One row is 128 bytes, so the swizzle moves its eight pieces of 16 bytes with the row number.
    a_lds_layout: gl.constexpr = gl.SwizzledSharedLayout(16, 1, 8, [1, 0])
    b_lds_layout: gl.constexpr = gl.SwizzledSharedLayout(16, 1, 8, [0, 1])

    # The splits of one tile are neighbours, so they run together and share nothing but c.
    pid = gl.program_id(0)
    split = pid % NUM_KSPLIT
    pid = pid // NUM_KSPLIT
    tiles_m = gl.cdiv(M, BLOCK_SIZE_M)
    tiles_n = gl.cdiv(N, BLOCK_SIZE_N)
    if NUM_KSPLIT == 1:
        # Walk down GROUP_SIZE_M tiles before the next column: the tiles that run at one time then share rows in L2.
        per_group = GROUP_SIZE_M * tiles_n
        first_m = (pid // per_group) * GROUP_SIZE_M
        rows = min(tiles_m - first_m, GROUP_SIZE_M)
        inside = pid % per_group
        pid_m = first_m + inside % rows
        pid_n = inside // rows
    else:
        # Split-K is for few rows, where there is nothing to group.
        pid_m = pid // tiles_n
        pid_n = pid % tiles_n
    row = pid_m * BLOCK_SIZE_M
    col = pid_n * BLOCK_SIZE_N
    first_k = split * SPLITK_BLOCK_SIZE
    end_k = min(K, first_k + SPLITK_BLOCK_SIZE)

    a_row = row + gl.arange(0, BLOCK_SIZE_M, layout=gl.SliceLayout(1, a_load))
    a_k = gl.arange(0, PACKED_K, layout=gl.SliceLayout(0, a_load))
    b_col = col + gl.arange(0, BLOCK_SIZE_N, layout=gl.SliceLayout(0, b_load))
    b_k = gl.arange(0, PACKED_K, layout=gl.SliceLayout(1, b_load))
    as_row = row + gl.arange(0, BLOCK_SIZE_M, layout=gl.SliceLayout(1, a_scale_layout))
    as_k = gl.arange(0, GROUPS_K, layout=gl.SliceLayout(0, a_scale_layout))
    bs_col = col + gl.arange(0, BLOCK_SIZE_N, layout=gl.SliceLayout(1, b_scale_layout))
    bs_k = gl.arange(0, GROUPS_K, layout=gl.SliceLayout(0, b_scale_layout))

    # Offsets stay in registers for the whole loop; k moves the scalar bases.
    a_offs = a_row[:, None] * stride_am + a_k[None, :] * stride_ak
    b_offs = b_k[:, None] * stride_bk + b_col[None, :] * stride_bn
    as_offs = as_row[:, None] * stride_asm + as_k[None, :] * stride_ask
    bs_offs = bs_col[:, None] * stride_bsn + bs_k[None, :] * stride_bsk
    a_in = a_row[:, None] < M
    b_in = b_col[None, :] < N
    as_in = as_row[:, None] < M
    bs_in = bs_col[:, None] < N

    a_lds = gl.allocate_shared_memory(gl.uint8, [BLOCK_SIZE_M, PACKED_K], a_lds_layout)
    b_lds = gl.allocate_shared_memory(gl.uint8, [PACKED_K, BLOCK_SIZE_N], b_lds_layout)

    acc = gl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), gl.float32, layout=mfma)
    for k in range(first_k, end_k, BLOCK_SIZE_K):
        # The end of K is compared in groups of 32 values: K is a multiple of that, and the compiler sees that no mask
        # splits the 16 bytes of one group.
        left = (end_k - k) // 32
        a = gl.amd.cdna4.buffer_load(
            a_ptr + k // 2 * stride_ak, a_offs, mask=a_in & (a_k[None, :] // 16 < left), other=0
        )
        b = gl.amd.cdna4.buffer_load(
            b_ptr + k // 2 * stride_bk, b_offs, mask=b_in & (b_k[:, None] // 16 < left), other=0, cache=cache_modifier
        )
        # Outside, the values are zero and a scale of zero is the small number 2**-127: the product stays zero.
        a_scale = gl.amd.cdna4.buffer_load(
            a_scales_ptr + k // 32 * stride_ask, as_offs, mask=as_in & (as_k[None, :] < left), other=0
        )
        b_scale = gl.amd.cdna4.buffer_load(
            b_scales_ptr + k // 32 * stride_bsk, bs_offs, mask=bs_in & (bs_k[None, :] < left), other=0
        )
        a_lds.store(a)
        b_lds.store(b)
        acc = gl.amd.cdna4.mfma_scaled(a_lds.load(dot_a), a_scale, "e2m1", b_lds.load(dot_b), b_scale, "e2m1", acc)

    c = gl.convert_layout(acc.to(c_ptr.dtype.element_ty), c_layout)
    c_row = row + gl.arange(0, BLOCK_SIZE_M, layout=gl.SliceLayout(1, c_layout))
    c_col = col + gl.arange(0, BLOCK_SIZE_N, layout=gl.SliceLayout(0, c_layout))
    c_offs = c_row[:, None] * stride_cm + c_col[None, :] * stride_cn
    c_in = (c_row[:, None] < M) & (c_col[None, :] < N)
    gl.amd.cdna4.buffer_store(c, c_ptr + split * stride_ck, c_offs, mask=c_in)


def matmul(
    a,
    b,
    a_scales,
    b_scales,
    *,
    BLOCK_SIZE_M=256,
    BLOCK_SIZE_N=256,
    BLOCK_SIZE_K=256,
    GROUP_SIZE_M=2,
    NUM_KSPLIT=1,
    num_warps=8,
    num_stages=2,
    waves_per_eu=0,
    matrix_instr_nonkdim=32,
    cache_modifier=None,
):
    """Return c: (M, N) bf16 for uint8 a: (M, K // 2), b: (N, K // 2), scales (M, K // 32), (N, K // 32) on gfx950."""
    import torch

    M, N, K = a.shape[0], b.shape[0], 2 * a.shape[1]
    if b.shape[1] != a.shape[1]:
        raise ValueError(f"a has {a.shape[1]} bytes a row and b has {b.shape[1]}: both are stored with K last")
    partial = torch.empty(
        (NUM_KSPLIT, M, N), device=a.device, dtype=torch.bfloat16 if NUM_KSPLIT == 1 else torch.float32
    )
    grid = (NUM_KSPLIT * triton.cdiv(M, BLOCK_SIZE_M) * triton.cdiv(N, BLOCK_SIZE_N), 1, 1)
    gemm_mxfp4[grid](
        a,
        b,
        partial,
        a_scales,
        b_scales,
        M,
        N,
        K,
        *a.stride(),
        b.stride(1),
        b.stride(0),
        *partial.stride(),
        *a_scales.stride(),
        *b_scales.stride(),
        BLOCK_SIZE_M=BLOCK_SIZE_M,
        BLOCK_SIZE_N=BLOCK_SIZE_N,
        BLOCK_SIZE_K=BLOCK_SIZE_K,
        GROUP_SIZE_M=GROUP_SIZE_M,
        NUM_KSPLIT=NUM_KSPLIT,
        SPLITK_BLOCK_SIZE=triton.cdiv(K, NUM_KSPLIT * BLOCK_SIZE_K) * BLOCK_SIZE_K,
        num_warps=num_warps,
        num_stages=num_stages,
        waves_per_eu=waves_per_eu,
        matrix_instr_nonkdim=matrix_instr_nonkdim,
        cache_modifier=cache_modifier,
    )
    return partial[0] if NUM_KSPLIT == 1 else partial.sum(dim=0).to(torch.bfloat16)
