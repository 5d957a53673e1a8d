"""Sizes for a run on the CPU: small, and of the same program."""

from __future__ import annotations

from typing import Any

import pytest

from gluonmap.model.candidate import Call, Value
from gluonmap.model.errors import UsageError
from gluonmap.spec import small_problems


def gemm(m: int = 128, n: int = 128, k: int = 64, **more: int) -> small_problems.CallAt:
    config = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, **more}

    def call(shape: dict[str, Value]) -> Call:
        sizes = {name: int(str(value)) for name, value in shape.items()}
        groups = -(-sizes["M"] // m) * -(-sizes["N"] // n)
        args: dict[str, Value] = {"a_ptr": "*bf16", **sizes, "stride": sizes["K"]}
        return Call(shape, args, {**config, "EVEN_K": sizes["K"] % k == 0}, (groups, 1, 1))

    return call


LARGE: dict[str, Value] = {"M": 4096, "N": 8192, "K": 4096}
RAGGED: dict[str, Value] = {"M": 1000, "N": 777, "K": 528}


@pytest.mark.parametrize(
    ("calls", "shape", "how", "expected"),
    [
        # M and N differ, so they stay different: an exchange of strides would show.
        ([gemm()], LARGE, {}, {"M": 256, "N": 512, "K": 256}),
        ([gemm()], LARGE, {"groups": 3}, {"M": 512, "N": 1024, "K": 256}),
        ([gemm(m=32, k=32)], LARGE, {}, {"M": 64, "N": 256, "K": 128}),
        # Six tiles in flight need eight rounds.
        ([gemm(NUM_BUFFERS=6)], LARGE, {}, {"M": 256, "N": 512, "K": 1024}),
        # Both calls have two work-groups.
        ([gemm(m=32), gemm(m=256)], LARGE, {}, {"M": 512, "N": 256, "K": 512}),
        # A size with fewer work-groups stays.
        ([gemm(m=512)], {**LARGE, "M": 16}, {}, {"M": 16, "N": 256, "K": 512}),
        # The powers of two that divide the sizes stay: 8 of 1000, 1 of 777, 16 of 528.
        ([gemm()], RAGGED, {"whole": False}, {"M": 136, "N": 129, "K": 272}),
        ([gemm(k=16)], RAGGED, {"whole": False}, {"M": 136, "N": 129, "K": 80}),
    ],
)
def test_sizes_are_small_and_of_the_same_program(
    calls: list[small_problems.CallAt], shape: dict[str, Value], how: dict[str, Any], expected: dict[str, Value]
) -> None:
    assert small_problems.shrink(calls, shape, **how) == expected


def persistent(most: int) -> small_problems.CallAt:
    """Rows of 256, each work-group every `most`-th tile of 4 of them."""

    def call(shape: dict[str, Value]) -> Call:
        tiles = -(-int(str(shape["M"])) // 4)
        return Call(shape, {"M": shape["M"], "N": shape["N"]}, {"ROWS": 4}, (min(most, tiles), 1, 1))

    return call


@pytest.mark.parametrize(
    ("most", "how", "expected"),
    [
        (64, {}, {"M": 512, "N": 256}),  # two tiles for each of 64
        (1024, {}, {"M": 16, "N": 256}),  # 8,192 rows are too many to execute
        (1024, {"affordable": 1 << 21}, {"M": 8192, "N": 256}),
    ],
)
def test_a_persistent_kernel_keeps_two_tiles_for_each_work_group(
    most: int, how: dict[str, int], expected: dict[str, Value]
) -> None:
    shape: dict[str, Value] = {"M": 65536, "N": 256}
    found = small_problems.shrink([persistent(most)], shape, **how)
    assert found == expected
    assert small_problems.work_group_cap(persistent(most), shape, found) == (0 if found["M"] != 16 else 1024)


def test_a_kernel_with_a_constant_grid_keeps_two_rounds() -> None:
    def call(shape: dict[str, Value]) -> Call:
        return Call(shape, {"n": shape["n"]}, {"TILE": 256, "num_warps": 4}, (32, 1, 1))

    assert small_problems.shrink([call], {"n": 1 << 24}) == {"n": 2 * 32 * 256}


def test_a_size_that_a_constexpr_is_computed_from_stays() -> None:
    def call(shape: dict[str, Value]) -> Call:
        if shape["K"] == 1:
            raise UsageError("no such split")
        return Call(shape, {"K": shape["K"]}, {"SPLIT": int(str(shape["K"])) // 4}, (4,))

    assert small_problems.shrink([call], {"K": 4096}) == {"K": 4096}
