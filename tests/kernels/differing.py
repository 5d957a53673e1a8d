"""Built to differ between cdna3 and cdna4: a budget, a demand, and a knob that matters, on one of them alone.

BUFFERS tiles of 64 x 128 halves take 16,384 bytes each: 4 fit into the LDS of gfx942, 10 into that of gfx950.
SCALE is read on cdna4 alone; WIDTH = 8 is refused there.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language import target_info


@gluon.jit
def differ(x, y, BUFFERS: gl.constexpr, SCALE: gl.constexpr, WIDTH: gl.constexpr):
    newer: gl.constexpr = target_info.is_hip_cdna4()
    gl.static_assert(WIDTH < 8 or not newer, "cdna4 takes no eight at once here")
    layout: gl.constexpr = gl.BlockedLayout([1, WIDTH], [8, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    buffers = gl.allocate_shared_memory(gl.float16, [BUFFERS, 64, 128], shared)
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, 128, layout=gl.SliceLayout(0, layout))
    at = rows[:, None] * 4096 + columns[None, :]
    for b in gl.static_range(BUFFERS):
        buffers.index(b).store(gl.load(x + b * 128 + at))
    for b in gl.static_range(BUFFERS):
        tile = buffers.index(b).load(layout)
        if newer:
            tile = tile * SCALE
        gl.store(y + b * 128 + at, tile)
