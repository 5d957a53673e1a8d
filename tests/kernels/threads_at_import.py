"""The import starts a daemon thread and a thread that never ends."""

import threading
import time

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
threading.Thread(target=threading.Event().wait).start()


@gluon.jit
def add(x, TILE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(x + i, gl.load(x + i) + 1)
