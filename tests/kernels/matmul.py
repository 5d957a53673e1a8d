"""A small matrix product in plain Triton, for the options of the AMD back end."""

import triton
import triton.language as tl


@triton.jit
def multiply(a, b, c, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    sum = tl.zeros([BLOCK, BLOCK], tl.float32)
    for k in range(0, K, BLOCK):
        left = tl.load(a + i[:, None] * 4096 + (k + i)[None, :])
        right = tl.load(b + (k + i)[:, None] * 4096 + i[None, :])
        sum = tl.dot(left, right, sum)
    tl.store(c + i[:, None] * 4096 + i[None, :], sum.to(tl.float16))
