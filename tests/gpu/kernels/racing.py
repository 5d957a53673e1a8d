"""Column sums for sm_90, in an order that is fixed or left to chance.

    y[c] += sum over r of x[r * BLOCK + c]

x: (n,) fp32, n a multiple of BLOCK; y: (BLOCK,) fp32, what is there is added to.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def racing(x, y, n, ORDER: gl.constexpr, BLOCK: gl.constexpr, num_warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [num_warps], [0])
    c = gl.arange(0, BLOCK, layout=layout)
    if ORDER == "fixed":  # noqa: SIM102  the compiler knows this, and only the device knows that
        if gl.program_id(0) == 0:
            total = gl.load(y + c)
            for start in range(0, n, BLOCK):
                total += gl.load(x + start + c)
            gl.store(y + c, total)
    if ORDER == "by chance":
        # Which program adds first is nobody's to say, and float addition is not associative.
        gl.atomic_add(y + c, gl.load(x + gl.program_id(0) * BLOCK + c))
