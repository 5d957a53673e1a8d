"""The bundled fp8 GEMMs with block scales, executed: their numbers against numpy's. All scales differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiling import bundled, compiled
from results import outputs, relative, unwritten

from gluonmap import cdna

triton = pytest.importorskip("triton")
RNG = np.random.default_rng(0)

BASELINES: dict[str, dict[str, Any]] = {
    "gfx942": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 8, "NUM_BUFFERS": 1}
    | {"NONKDIM": 16, "num_warps": 4},
    "gfx950": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 8, "NUM_BUFFERS": 3}
    | {"NONKDIM": 16, "LANE_K": 32, "num_warps": 4},
}
FOLDERS = {"gfx942": "cdna3", "gfx950": "cdna4"}


def code_of(target: str, dtypes: tuple[str, str], config: dict[str, Any], numbers: dict[str, int], out: str) -> Any:
    types = {"a_ptr": f"*{dtypes[0]}", "b_ptr": f"*{dtypes[1]}", "c_ptr": f"*{out}"}
    return compiled(
        bundled(f"{FOLDERS[target]}/gemm_fp8_blockscale").gemm_fp8_blockscale,
        target,
        types | {"a_scale_ptr": "*fp32", "b_scale_ptr": "*fp32"} | numbers,
        {**config, "EVEN_K": numbers["K"] % config["BLOCK_K"] == 0},
    )


def sizes(M: int, N: int, K: int) -> dict[str, int]:
    """Return the run-time numbers of a launch: rows padded to 16 bytes, the scales of a with M contiguous."""
    stride = -(-K // 16) * 16
    numbers = {"M": M, "N": N, "K": K, "stride_am": stride, "stride_ak": 1, "stride_bn": stride, "stride_bk": 1}
    numbers |= {"stride_cm": N, "stride_cn": 1, "stride_asm": 1, "stride_ask": M}
    return numbers | {"stride_bsn": -(-K // 128), "stride_bsk": 1}


@pytest.mark.parametrize(
    ("target", "dtype", "out", "move", "size"),
    [
        # Two blocks of columns, the second cut short; K ends inside a block, and is no multiple of 16.
        ("gfx942", "fp8e4b8", "bf16", {"BLOCK_M": 32, "BLOCK_N": 64}, (40, 136, 203)),
        ("gfx942", "fp8e5b16", "fp32", {"BLOCK_M": 32, "BLOCK_N": 256, "BLOCK_K": 64, "NONKDIM": 32}, (40, 272, 256)),
        ("gfx942", "fp8e4b8", "fp16", {"BLOCK_M": 16, "BLOCK_N": 32, "NUM_BUFFERS": 3, "num_warps": 2}, (17, 150, 272)),
        ("gfx950", "fp8e4nv", "bf16", {"BLOCK_M": 32, "BLOCK_N": 64}, (40, 136, 203)),
        ("gfx950", "fp8e5", "fp32", {"BLOCK_M": 32, "BLOCK_N": 256, "BLOCK_K": 64, "NONKDIM": 32}, (40, 272, 256)),
        # 16 rows on 4 waves: copies of 4 bytes a lane.
        ("gfx950", "fp8e4nv", "fp16", {"BLOCK_M": 16, "BLOCK_N": 64, "NUM_BUFFERS": 1, "LANE_K": 8}, (17, 150, 272)),
    ],
)
def test_blockscale_gemm(target: str, dtype: str, out: str, move: dict[str, int], size: tuple[int, int, int]) -> None:
    M, N, K = size
    config, numbers = BASELINES[target] | move, sizes(M, N, K)
    code = code_of(target, (dtype, dtype), config, numbers, out)
    stride, blocks = numbers["stride_am"], (-(-N // 128), -(-K // 128))
    a, b = (cdna.encode(RNG.standard_normal((rows, stride)), dtype) for rows in (M, N))
    # The padding of a row is NaN: 0x80 in the fnuz formats, 0x7f in the others.
    a[:, K:] = b[:, K:] = 0x80 if target == "gfx942" else 0x7F
    a_scale, b_scale = (np.exp2(RNG.uniform(-3, 3, shape)).astype(np.float32) for shape in ((M, blocks[1]), blocks))
    got = outputs(
        code,
        (-(-M // config["BLOCK_M"]) * -(-N // config["BLOCK_N"]),),
        {"a_ptr": a, "b_ptr": b, "c_ptr": unwritten((M, N), out), "a_scale_ptr": np.ascontiguousarray(a_scale.T)}
        | {"b_scale_ptr": b_scale, **numbers},
    )
    left, right = (cdna.decode(x, dtype).reshape(len(x), stride)[:, :K].astype(np.float64) for x in (a, b))
    left *= np.repeat(a_scale, 128, axis=1)[:, :K]
    right *= np.repeat(np.repeat(b_scale, 128, axis=0)[:N], 128, axis=1)[:, :K]
    limit = {"bf16": 3e-3, "fp16": 4e-4, "fp32": 1e-6}[out]
    assert relative(cdna.decode(got["c_ptr"], out).reshape(M, N), left @ right.T) < limit


@pytest.mark.parametrize(
    ("target", "dtypes", "move", "message"),
    [
        ("gfx942", ("fp8e4nv", "fp8e4nv"), {}, "a is in none of gfx942's fp8 formats"),
        ("gfx950", ("fp8e5b16", "fp8e5b16"), {}, "a is in none of gfx950's fp8 formats"),
        ("gfx942", ("fp8e5b16", "fp8e4b8"), {}, "a and b are in different formats"),
        ("gfx950", ("fp8e4nv", "fp8e5"), {}, "a and b are in different formats"),
        ("gfx942", ("fp8e4b8", "fp8e4b8"), {"BLOCK_K": 256}, "BLOCK_K is longer than a block of the scales"),
        ("gfx942", ("fp8e4b8", "fp8e4b8"), {"BLOCK_K": 16}, "BLOCK_K is shorter than one matrix instruction"),
        ("gfx942", ("fp8e4b8", "fp8e4b8"), {"num_warps": 1}, "a lane has more than 128 accumulators"),
        ("gfx950", ("fp8e4nv", "fp8e4nv"), {"BLOCK_K": 64}, "BLOCK_K is shorter than one matrix instruction"),
        ("gfx950", ("fp8e4nv", "fp8e4nv"), {"LANE_K": 16}, "a lane gives a matrix instruction 8 or 32 values of K"),
        ("gfx950", ("fp8e4nv", "fp8e4nv"), {"BLOCK_M": 16, "num_warps": 16}, "a wave has no piece of a tile to copy"),
    ],
)
def test_what_cannot_be_right_or_good_is_refused(
    target: str, dtypes: tuple[str, str], move: dict[str, int], message: str
) -> None:
    with pytest.raises(triton.compiler.errors.CompileTimeAssertionFailure, match=message):
        code_of(target, dtypes, BASELINES[target] | move, sizes(256, 256, 256), "bf16")
