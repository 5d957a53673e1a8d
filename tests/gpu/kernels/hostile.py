"""A copy kernel for sm_90 that does its worst to the device, one value of HOW at a time.

    y[i] = 2 * x[i] for i < n, fp32

x: (n,), y: (n,), both fp32 and contiguous. "right" is right.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier

copy = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared  # the name up to 3.7


@gluon.jit
def hostile(x, y, n, HOW: gl.constexpr, BLOCK: gl.constexpr, num_warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [num_warps], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    v = gl.load(x + i, mask=i < n, other=0.0) * 2
    if HOW == "right":
        gl.store(y + i, v, mask=i < n)
    if HOW == "hangs":
        # Nobody ever arrives at this barrier.
        bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
        mbarrier.init(bar, count=1)
        fence_async_shared()
        mbarrier.wait(bar, 0)
        gl.store(y + i, v, mask=i < n)
    if HOW == "far out of bounds":
        gl.store(y + i.to(gl.int64) + (1 << 40), v, mask=i < n)
    if HOW == "wrong mask":
        gl.store(y + i, v, mask=i < n - 3)
    if HOW == "no mask":
        gl.store(y + i, v)
    if HOW == "before its output":
        gl.store(y + i, v, mask=i < n)
        gl.store(y - 1 - i, v, mask=i < 4)
    if HOW == "one bad element":
        gl.store(y + i, gl.where(i == 7, v + 0.001, v), mask=i < n)
    if HOW == "NaN":
        gl.store(y + i, gl.where(i == 7, v / (v - v), v), mask=i < n)
    if HOW == "misaligned":
        # Eight bytes at an address that only four divide.
        pair = (y + 1).cast(gl.pointer_type(gl.int64), bitcast=True)
        gl.store(pair + i, v.to(gl.int64), mask=i < n // 2 - 1)
    if HOW == "no barrier":
        # The copy into shared memory is begun and never waited for.
        shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
        room = gl.allocate_shared_memory(gl.float32, [BLOCK], shared)
        copy(room, x + i, mask=i < n)
        async_copy.commit_group()
        gl.store(y + i, room.load(layout) * 2, mask=i < n)
        async_copy.wait_group(0)
