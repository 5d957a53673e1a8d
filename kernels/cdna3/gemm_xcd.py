"""bf16 GEMM for gfx942 in Gluon that says which die takes which tile, and how the caches treat each tensor.

    c = a @ b.T

Work-groups go round robin over the dies (XCDs) of an MI300X or MI355X, each with an L2 of its own: neighbouring tiles,
which share rows of a or b, land on eight dies. NUM_XCDS = 8 hands each die one range of neighbours instead, for any
number of tiles; 1 leaves the order alone. Inside a range the tiles go down GROUP_M rows before the next column. One
tile lies in LDS, the next one waits in registers.

Tensors:
    a_ptr: (M, K) bf16, element strides (stride_am, stride_ak), K contiguous (stride_ak == 1)
    b_ptr: (N, K) bf16, a weight as stored, element strides (stride_bn, stride_bk), K contiguous (stride_bk == 1)
    c_ptr: (M, N) bf16, element strides (stride_cm, stride_cn), N contiguous (stride_cn == 1)

Cache modifiers (CACHE_A and CACHE_B of the loads, CACHE_C of the store), seen in the assembly of 3.6.0 and 3.9.0: on a
load .cg sets the bits sc0 and nt, .cv sc0 and sc1, and None, "" and .ca none; .cs does as .cg, and only 3.9.0 takes it.
On the store .cs sets sc0 and nt, .wt sc0 and sc1, and None, "", .wb and .cg none. Others do not compile.

Assumptions: M, N and K need not be multiples of the tile: rows behind the last are read as the last one, the end of K
and the store are masked. K and the row strides should be multiples of 16: with that the compiler proves that a mask
never splits a vector of 16 bytes; without it the loads fall apart into single elements, still right. Each tensor is
smaller than 2 GiB (32-bit offsets).

Numbers: executed on a CPU by gluonmap.cdna (Triton 3.6.0 and 3.9.0): 30 configurations drawn over the space, ragged
sizes, several work-groups, 1 to 8 dies, all modifiers that both take; largest relative error 1.8e-3, which is the
rounding to bf16; clean under the sanitizer, the same bits in a random order of waves. Not run on an MI300X.
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
    per_phase = max(1, 64 // block_k)  # rows that fit into the 128 bytes of one pass over the 32 banks
    max_phase = max(1, min(16 // per_phase, block_k // 8))
    return gl.SwizzledSharedLayout(8, per_phase, max_phase, [1, 0])


@gluon.constexpr_function
def mfma_layout(block_m, block_n, num_warps):
    """Return the accumulator's layout: 16x16 instructions; waves split the longer side of their share first."""
    waves_m, waves_n = 1, 1
    while waves_m * waves_n < num_warps:
        if block_m // waves_m >= block_n // waves_n:
            waves_m *= 2
        else:
            waves_n *= 2
    # The transposed result keeps 4 neighbouring columns in one lane, so c is written 8 bytes at a time.
    return gl.amd.AMDMFMALayout(version=3, instr_shape=[16, 16, 16], transposed=True, warps_per_cta=[waves_m, waves_n])


@gluon.jit
def die_order(pid, programs, NUM_XCDS: gl.constexpr):
    # Programs 0, 8, 16, … run on die 0 and take tiles 0, 1, 2, …; the first `programs % 8` dies have one tile more.
    die = pid % NUM_XCDS
    return die * (programs // NUM_XCDS) + min(die, programs % NUM_XCDS) + pid // NUM_XCDS


@gluon.jit
def grouped_tile(tile, tiles_m, tiles_n, GROUP_M: gl.constexpr):
    # Walk down GROUP_M tiles before the next column: the tiles that run at one time then share rows of a and b in L2.
    per_group = GROUP_M * tiles_n
    first_m = (tile // per_group) * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    inside = tile % per_group
    return first_m + inside % rows, inside // rows


@gluon.jit
def gemm_xcd(
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
    NUM_XCDS: gl.constexpr,
    GROUP_M: gl.constexpr,
    CACHE_A: gl.constexpr,
    CACHE_B: gl.constexpr,
    CACHE_C: gl.constexpr,
    num_warps: gl.constexpr,
):
    # A matrix instruction spreads K over 4 groups of lanes, 8 values each. A shorter tile compiles without a word and
    # gives wrong numbers (gfx942, 3.6.0 and 3.9.0, seen by executing the assembly on a CPU).
    gl.static_assert(BLOCK_K >= 32, "BLOCK_K is shorter than one read of a matrix operand")
    load: gl.constexpr = load_layout(BLOCK_K, num_warps)
    lds: gl.constexpr = lds_layout(BLOCK_K)
    mfma: gl.constexpr = mfma_layout(BLOCK_M, BLOCK_N, num_warps)
    # 8 values along K per lane are one 16-byte read from LDS and feed two instructions.
    dot_a: gl.constexpr = gl.DotOperandLayout(0, mfma, 8)
    dot_b: gl.constexpr = gl.DotOperandLayout(1, mfma, 8)

    tiles_m = gl.cdiv(M, BLOCK_M)
    tiles_n = gl.cdiv(N, BLOCK_N)
    tile = die_order(gl.program_id(0), tiles_m * tiles_n, NUM_XCDS)
    pid_m, pid_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
    row = pid_m * BLOCK_M
    col = pid_n * BLOCK_N
    last = gl.cdiv(K, BLOCK_K) - 1

    # Rows behind the last are read as the last one: what they give is never stored.
    offs_m = gl.minimum(row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, load)), M - 1)
    offs_n = gl.minimum(col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(1, load)), N - 1)
    offs_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, load))
    # k moves the scalar base and not the offsets: these stay in registers for the whole loop.
    a_offs = offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_offs = offs_n[:, None] * stride_bn + offs_k[None, :] * stride_bk
    a_lds = gl.allocate_shared_memory(a_ptr.dtype.element_ty, [BLOCK_M, BLOCK_K], lds)
    b_lds = gl.allocate_shared_memory(b_ptr.dtype.element_ty, [BLOCK_N, BLOCK_K], lds)

    # The last tile, the only one that may reach over the end of K, comes first: the loop is free of masks.
    start = last * BLOCK_K
    mask = offs_k[None, :] < K - start
    a_lds.store(gl.amd.cdna3.buffer_load(a_ptr + start * stride_ak, a_offs, mask=mask, other=0.0, cache=CACHE_A))
    b_lds.store(gl.amd.cdna3.buffer_load(b_ptr + start * stride_bk, b_offs, mask=mask, other=0.0, cache=CACHE_B))
    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=mfma)
    for k in range(last):
        # The global loads go out first and are stored last: the matrix instructions hide their way.
        a_next = gl.amd.cdna3.buffer_load(a_ptr + k * BLOCK_K * stride_ak, a_offs, cache=CACHE_A)
        b_next = gl.amd.cdna3.buffer_load(b_ptr + k * BLOCK_K * stride_bk, b_offs, cache=CACHE_B)
        acc = gl.amd.cdna3.mfma(a_lds.load(dot_a), b_lds.permute((1, 0)).load(dot_b), acc)
        a_lds.store(a_next)
        b_lds.store(b_next)
    acc = gl.amd.cdna3.mfma(a_lds.load(dot_a), b_lds.permute((1, 0)).load(dot_b), acc)

    out_m = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, mfma))
    out_n = col + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, mfma))
    offsets = out_m[:, None] * stride_cm + out_n[None, :] * stride_cn
    mask = (out_m[:, None] < M) & (out_n[None, :] < N)
    gl.amd.cdna3.buffer_store(acc.to(c_ptr.dtype.element_ty), c_ptr, offsets, mask=mask, cache=CACHE_C)


def matmul(
    a,
    b,
    c=None,
    *,
    BLOCK_M=128,
    BLOCK_N=128,
    BLOCK_K=64,
    NUM_XCDS=8,
    GROUP_M=4,
    CACHE_A=None,
    CACHE_B=None,
    CACHE_C=None,
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
    gemm_xcd[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), 1, 1)](
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
        NUM_XCDS=NUM_XCDS,
        GROUP_M=GROUP_M,
        CACHE_A=CACHE_A,
        CACHE_B=CACHE_B,
        CACHE_C=CACHE_C,
        num_warps=num_warps,
        waves_per_eu=waves_per_eu,
    )
    return c
