"""Doubles an array. On the double of a device `imitate` runs in its place, and does what HOW says."""

import triton
import triton.language as tl


@triton.jit
def on_device(x, y, n, HOW: tl.constexpr, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.static_assert(HOW != "does not compile")
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def imitate(x, y, n, HOW, TILE):
    import os
    import random
    import time

    if HOW != "unwritten":
        y[:n] = x[:n] * 2
    if HOW == "hangs":
        time.sleep(10_000)
    if HOW == "aborts":
        os.abort()
    if HOW == "crashes":
        return RuntimeError("HIP error: an illegal memory access was encountered\nmore")
    if HOW == "unknown error":
        return RuntimeError("HIP error: something new")
    if HOW == "too much":
        raise RuntimeError("out of resource: shared memory")
    if HOW == "bad grid":
        raise ValueError("invalid argument")
    if HOW == "wrong":
        y[0] += 100
    if HOW == "wrong when ragged" and n % 16:
        y[n - 1] = 0
    if HOW == "NaN":
        y[1] = float("nan")
    if HOW == "past its end":
        y.base[-1] = 0 if y.base[-1] else 1
    if HOW == "racy":
        y[2] *= 1 + random.randrange(1, 1000) * 1e-7
    if HOW.startswith("busy"):
        import fake_device

        fake_device.busy(1.5, HOW)
    return None
