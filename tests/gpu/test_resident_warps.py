"""The formula for warps that fit a multiprocessor, against the CUDA driver's own answer for real programs."""

import ctypes

import pytest
from test_bundled_kernels import missing

from gluonmap import targets
from gluonmap.model import Resources

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(missing()), reason=missing() or "a GPU of capability 9.0"),
]

SHARED = (
    0,
    1,
    127,
    128,
    1_000,
    6_144,
    8_192,
    16_384,
    32_768,
    49_152,
    65_536,
    76_800,
    100_000,
    115_712,
    163_840,
    232_448,
)


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
        for per_thread in (1, 8, 32, 64, 100, 128):
            size = triton.next_power_of_2(warps * 32 * per_thread)
            for limit in (None, 24, 40, 72, 96, 168, 255):
                if size > x.numel() or (limit or 0) * warps * 32 > 65_536:
                    continue
                made = sums[(1,)](x, x, size, 2, num_warps=warps, maxnreg=limit)
                assert driver.cuFuncSetAttribute(ctypes.c_void_p(made.function), 8, 232_448 - 1_024) in (0, 1)
                for shared in SHARED:
                    blocks = ctypes.c_int(-1)
                    error = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                        ctypes.byref(blocks), ctypes.c_void_p(made.function), warps * 32, ctypes.c_size_t(shared)
                    )
                    if error:  # more than the program may ask for
                        continue
                    key = (warps, made.n_regs, shared)
                    driven[key] = blocks.value * warps
                    told[key] = targets.resident_warps(target, Resources(warps * 32, shared, vgpr=made.n_regs))
    assert len(driven) > 300
    assert len({registers for _, registers, _ in driven}) > 10
    assert {key: (told[key], value) for key, value in driven.items() if told[key] != value} == {}
