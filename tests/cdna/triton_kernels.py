"""Plain Triton kernels, for the layouts and instructions that the compiler chooses by itself."""

import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """c = a @ b, all row-major; int8 gives int32, everything else float32."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_M, BLOCK_N], c_ptr.dtype.element_ty)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, out_dtype=c_ptr.dtype.element_ty)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, S, scale, BLOCK: tl.constexpr, D: tl.constexpr):
    """Causal attention of one head: q, k, v, o: (S, D)."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=(rows < S)[:, None], other=0.0)
    highest = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    for first in range(0, tl.minimum(S, (tl.program_id(0) + 1) * BLOCK), BLOCK):
        columns = first + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + columns[None, :] * D + d[:, None], mask=(columns < S)[None, :], other=0.0)
        score = tl.dot(q, k) * scale
        score = tl.where((columns < S)[None, :] & (rows[:, None] >= columns[None, :]), score, -float("inf"))
        above = tl.maximum(highest, tl.max(score, 1))
        p = tl.math.exp2(score - above[:, None])
        shrink = tl.math.exp2(highest - above)
        v = tl.load(v_ptr + columns[:, None] * D + d[None, :], mask=(columns < S)[:, None], other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        total = total * shrink + tl.sum(p, 1)
        highest = above
    o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + rows[:, None] * D + d[None, :], o, mask=(rows < S)[:, None])


@triton.jit
def product_scaled(a_ptr, b_ptr, scales_ptr, c_ptr, K: tl.constexpr, FORMAT: tl.constexpr, PLAIN: tl.constexpr):
    """c = a @ (b * scales), a: (64, K) of the type PLAIN, b: (K, 64), e2m1 packed along K; scales: (64, K / 32)."""
    PACKED: tl.constexpr = 2 if FORMAT == "e2m1" else 1
    m = tl.arange(0, 64)
    a = tl.load(a_ptr + m[:, None] * K + tl.arange(0, K)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K // PACKED)[:, None] * 64 + m[None, :])
    scales = tl.load(scales_ptr + m[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    tl.store(c_ptr + m[:, None] * 64 + m[None, :], tl.dot_scaled(a, None, PLAIN, b, scales, FORMAT))


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(tl.rand(seed, i) > p, x / (1 - p), 0.0), mask=i < n)


@triton.jit
def sum_rows_under_locks(x_ptr, sums_ptr, locks_ptr, N, SUMS: tl.constexpr, BLOCK: tl.constexpr):
    """sums[r % SUMS] += x[r], one row a work-group, under a lock each; locks: 0 or 1, and whether a sum is begun."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < N
    x = tl.load(x_ptr + row * N + columns, mask=inside)
    lock = locks_ptr + row % SUMS
    to = sums_ptr + row % SUMS * N + columns
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    begun = tl.load(lock + SUMS)
    # Every wave loads it, one sets it: Triton's tutorial on layer norm has no barrier here, nor has the code of 3.6.
    tl.debug_barrier()
    if begun == 0:
        tl.atomic_xchg(lock + SUMS, 1)
    else:
        x += tl.load(to, mask=inside)
    tl.store(to, x, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)
