"""fp16 GEMM for sm_90 in Gluon: TMA loads into a ring of shared-memory stages, wgmma, fp32 accumulation.

    c = a @ b.T

Tensors:
    a_desc: host TMA descriptor of a: (M, K) fp16, row-major, box (BLOCK_M, BLOCK_K)
    b_desc: host TMA descriptor of b: (N, K) fp16, row-major (a weight as it is stored), box (BLOCK_N, BLOCK_K)
    c_ptr:  (M, N) fp16, row stride stride_cm, columns contiguous

Assumptions: the rows of a and b start at multiples of 16 bytes, a rule of TMA (K % 8 == 0 for dense tensors). M, N and
K need not be multiples of the tile: TMA fills what lies outside with zeros, and the store to c is masked. c has fewer
than 2**31 elements, because offsets are 32-bit. num_warps is a multiple of 4: four warps issue one wgmma together.

Numbers: checked on an H200 (Triton 3.6.0, torch 2.11) at 6 shapes, four of them no multiples of the tile, with 14
configurations each (tests/gpu/test_bundled_kernels.py).
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# The TMA load was called async_copy_global_to_shared up to 3.7 and is async_load from 3.8 on; 3.9 keeps the old name
# only to raise. So ask for the new name first.
tma_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared


@gluon.constexpr_function
def wgmma_layout(block_m, block_n, num_warps):
    """Return the accumulator's layout: warp groups along M while each has 64 rows of its own, the others along N."""
    groups = num_warps // 4
    groups_m = min(groups, max(1, block_m // 64))
    groups_n = groups // groups_m
    return gl.NVMMADistributedLayout(
        version=[3, 0],
        warps_per_cta=[4 * groups_m, groups_n],
        instr_shape=[16, min(256, block_n // groups_n), 16],
    )


@gluon.constexpr_function
def store_layout(block_n, num_warps):
    """Return a layout whose warps write whole rows of c, 16 bytes a lane."""
    lanes_n = min(32, max(1, block_n // 8))
    return gl.BlockedLayout([1, 8], [32 // lanes_n, lanes_n], [num_warps, 1], [1, 0])


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
def issue_loads(a_desc, b_desc, a_ring, b_ring, full, row, col, k, K, BLOCK_K: gl.constexpr, STAGES: gl.constexpr):
    # The predicate, not a branch, drops the loads behind the last tile: all warps stay in step.
    slot = k % STAGES
    wanted = k * BLOCK_K < K
    bar = full.index(slot)
    mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes, pred=wanted)
    tma_load(a_desc, [row, k * BLOCK_K], bar, a_ring.index(slot), pred=wanted)
    tma_load(b_desc, [col, k * BLOCK_K], bar, b_ring.index(slot), pred=wanted)


@gluon.jit
def gemm_fp16(
    a_desc,
    b_desc,
    c_ptr,
    M,
    N,
    K,
    stride_cm,
    BLOCK_M: gl.constexpr,
    BLOCK_N: gl.constexpr,
    BLOCK_K: gl.constexpr,
    STAGES: gl.constexpr,
    GROUP_M: gl.constexpr,
    num_warps: gl.constexpr,
):
    # Fewer than four warps send the compiler into an endless loop (seen on 3.6.0); this says it in a second.
    gl.static_assert(num_warps % 4 == 0, "wgmma is issued by groups of four warps")
    acc_layout: gl.constexpr = wgmma_layout(BLOCK_M, BLOCK_N, num_warps)
    c_layout: gl.constexpr = store_layout(BLOCK_N, num_warps)

    pid_m, pid_n = grouped_tile(gl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row = pid_m * BLOCK_M
    col = pid_n * BLOCK_N

    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BLOCK_M, BLOCK_K], a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_N, BLOCK_K], b_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(STAGES):
        mbarrier.init(full.index(s), count=1)
    # TMA signals the barriers through the async proxy, which must see them initialised.
    fence_async_shared()

    # One stage is always being read, so STAGES - 1 loads run ahead.
    AHEAD: gl.constexpr = STAGES - 1
    for s in gl.static_range(AHEAD):
        issue_loads(a_desc, b_desc, a_ring, b_ring, full, row, col, s, K, BLOCK_K, STAGES)

    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=acc_layout)
    for k in range(gl.cdiv(K, BLOCK_K)):
        if STAGES == 1:
            issue_loads(a_desc, b_desc, a_ring, b_ring, full, row, col, k, K, BLOCK_K, STAGES)
        slot = k % STAGES
        mbarrier.wait(full.index(slot), (k // STAGES) & 1)
        acc = warpgroup_mma(a_ring.index(slot), b_ring.index(slot).permute((1, 0)), acc, is_async=True)
        if STAGES == 1:
            acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        else:
            # Only the previous wgmma must have ended: its stage is the one that is filled next. This one keeps running.
            acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
            issue_loads(a_desc, b_desc, a_ring, b_ring, full, row, col, k + AHEAD, K, BLOCK_K, STAGES)
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    for s in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(s))

    # The accumulator's own layout would write pieces of 4 bytes; an exchange through the ring, free now, makes them 16.
    c = gl.convert_layout(acc.to(c_ptr.dtype.element_ty), c_layout)
    offs_m = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, c_layout))
    offs_n = col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, c_layout))
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    gl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :], c, mask=mask)


def matmul(a, b, c=None, *, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, STAGES=4, GROUP_M=8, num_warps=8):
    """Return c = a @ b.T for a: (M, K) fp16 and b: (N, K) fp16 on a device of capability 9.0."""
    import torch
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    (M, K), (N, K_b) = a.shape, b.shape
    if K != K_b:
        raise ValueError(f"a has {K} columns and b has {K_b}: both are stored with K last")
    if c is None:
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)

    def describe(tensor, box):
        return TensorDescriptor.from_tensor(tensor, box, gl.NVMMASharedLayout.get_default_for(box, gl.float16))

    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), 1, 1)
    gemm_fp16[grid](
        describe(a, [BLOCK_M, BLOCK_K]),
        describe(b, [BLOCK_N, BLOCK_K]),
        c,
        M,
        N,
        K,
        c.stride(0),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        STAGES=STAGES,
        GROUP_M=GROUP_M,
        num_warps=num_warps,
    )
    return c
