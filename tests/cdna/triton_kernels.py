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
