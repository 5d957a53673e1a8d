"""The formula for warps that fit a multiprocessor, against the CUDA driver's own answer for real programs."""

import ctypes

import pytest
from device_needed import missing

from gluonmap.model import targets
from gluonmap.model.verdict import Resources

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(missing()), reason=missing() or "a GPU of capability 9.0"),
]

SHARED = (0, 1, 127, 128, 1_000, 6_144, 8_192, 32_768, 49_152, 65_536, 76_800, 100_000, 115_712, 115_713, 230_000)
STATIC_SHARED, MOST_DYNAMIC_SHARED = 1, 8
"""Attributes of a function, as cuda.h numbers them."""


def test_every_program_and_size_of_shared_memory_gets_the_drivers_answer():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def sums(x, out, N: tl.constexpr, ROUNDS: tl.constexpr):
        kept = tl.zeros((N,), tl.float32)
        for _ in range(ROUNDS):
            values = tl.load(x + tl.arange(0, N))
            kept += values * tl.sum(values)
        tl.store(out + tl.arange(0, N), kept)

    x = torch.ones(1 << 15, device="cuda")
    driver = ctypes.CDLL("libcuda.so.1")
    target, told, driven = targets.find("sm_90"), {}, {}
    for warps in (1, 2, 4, 8, 16, 32):
        for per_thread in (1, 8, 32, 64, 128):
            for most in (None, 24, 40, 72, 96, 168, 255):
                size = warps * 32 * per_thread
                if size > x.numel() or (most or 0) * warps * 32 > 65_536:
                    continue
                made = sums[(1,)](x, x, size, 2, num_warps=warps, maxnreg=most)
                function, found = ctypes.c_void_p(made.function), ctypes.c_int()
                driver.cuFuncSetAttribute(function, MOST_DYNAMIC_SHARED, 232_448 - 1_024)
                assert driver.cuFuncGetAttribute(ctypes.byref(found), STATIC_SHARED, function) == 0
                static = found.value
                for dynamic in SHARED:
                    error = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                        ctypes.byref(found), function, warps * 32, ctypes.c_size_t(dynamic)
                    )
                    if not error:  # else it is more than the program may ask for
                        key = (warps, made.n_regs, static + dynamic)
                        used = Resources(warps * 32, static + dynamic, vgpr=made.n_regs)
                        told[key], driven[key] = targets.resident_warps(target, used), found.value * warps
    assert len(driven) > 300
    assert {key: (told[key], value) for key, value in driven.items() if told[key] != value} == {}
