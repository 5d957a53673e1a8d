"""The gallery's kernels executed: split-K with its reduce, and the GEMM that remaps dies and sets cache modifiers."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from compiling import bundled, compiled
from results import outputs, relative, unwritten

from gluonmap import cdna

pytest.importorskip("triton")
BOTH = pytest.mark.parametrize(("folder", "target"), [("cdna3", "gfx942"), ("cdna4", "gfx950")])
RNG = np.random.default_rng(0)


def ceiling(n: int, step: int) -> int:
    return -(-n // step)


def wide(raw: np.ndarray, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return cdna.decode(raw, dtype).reshape(shape).astype(np.float64)


def gemm_operands(M: int, N: int, K: int) -> tuple[np.ndarray, np.ndarray, dict[str, int]]:
    a, b = (cdna.encode(RNG.standard_normal(shape), "bf16") for shape in ((M, K), (N, K)))
    numbers = {"M": M, "N": N, "K": K, "stride_am": K, "stride_ak": 1, "stride_bn": K, "stride_bk": 1}
    return a, b, numbers | {"stride_cm": N, "stride_cn": 1}


SPLITK = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 64, "NUM_KSPLIT": 3, "num_warps": 4}


def splitk_shares(
    folder: str, target: str, config: dict[str, Any], M: int, N: int, K: int, result: str = "fp32"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the shares that the kernel wrote (raw), the expected shares, and their sum."""
    a, b, numbers = gemm_operands(M, N, K)
    splits, block_k = config["NUM_KSPLIT"], config["BLOCK_K"]
    numbers["stride_ck"] = M * N
    pointers = {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": f"*{result}"}
    code = compiled(bundled(f"{folder}/gemm_splitk").gemm_splitk, target, {**pointers, **numbers}, config)
    grid = splits * ceiling(M, config["BLOCK_M"]) * ceiling(N, config["BLOCK_N"])
    c = unwritten((splits, M, N), result)
    got = outputs(code, (grid,), {"a_ptr": a, "b_ptr": b, "c_ptr": c, **numbers})
    left, right = wide(a, "bf16", (M, K)), wide(b, "bf16", (N, K))
    share = ceiling(K, splits * block_k) * block_k
    starts = [s * share for s in range(splits)]
    return got["c_ptr"], np.stack([left[:, k : k + share] @ right[:, k : k + share].T for k in starts]), left @ right.T


def check_splitk(
    folder: str, target: str, config: dict[str, Any], M: int, N: int, K: int, result: str = "fp32"
) -> None:
    raw, expected, _ = splitk_shares(folder, target, config, M, N, K, result)
    got = wide(raw, result, expected.shape)
    limit = 1e-6 if result == "fp32" else 3e-3
    assert relative(got, expected) < limit
    assert all(not share.any() for share, right in zip(got, expected, strict=True) if not right.any())


@BOTH
@pytest.mark.parametrize(
    ("config", "K", "result"),
    [
        ({}, 208, "fp32"),  # 4 tiles of K in shares of 2, 2 and none
        ({"BLOCK_M": 16, "BLOCK_K": 128, "NUM_KSPLIT": 5, "num_warps": 2, "waves_per_eu": 2}, 400, "bf16"),
    ],
)
def test_split_k_gemm(folder: str, target: str, config: dict[str, int], K: int, result: str) -> None:
    check_splitk(folder, target, SPLITK | config, 40, 72, K, result)


def test_the_loads_fall_apart_where_k_is_odd() -> None:
    check_splitk("cdna3", "gfx942", SPLITK, 33, 65, 67)


def reduced(target: str, config: dict[str, Any], x: np.ndarray, M: int, N: int, x_type: str, y_type: str) -> np.ndarray:
    numbers = {"M": M, "N": N, "stride_xk": M * N, "stride_xm": N, "stride_ym": N}
    code = compiled(
        bundled("splitk_reduce").splitk_reduce,
        target,
        {"x_ptr": f"*{x_type}", "y_ptr": f"*{y_type}", **numbers},
        {"WARP_SIZE": 64, **config},
    )
    grid = ceiling(M, config["BLOCK_M"]) * ceiling(N, config["BLOCK_N"])
    got = outputs(code, (grid,), {"x_ptr": x, "y_ptr": unwritten((M, N), y_type), **numbers})
    return cdna.decode(got["y_ptr"], y_type).reshape(M, N)


REDUCE = {"NUM_KSPLIT": 4, "BLOCK_M": 1, "BLOCK_N": 512, "VEC": 4, "num_warps": 4}


def check_reduce(target: str, config: dict[str, Any], M: int, N: int, x_type: str, y_type: str) -> None:
    x = cdna.encode(RNG.standard_normal((config["NUM_KSPLIT"], M, N)), x_type)
    got = reduced(target, config, x, M, N, x_type, y_type)
    total = np.zeros((M, N), np.float32)
    for share in cdna.decode(x, x_type).reshape(-1, M, N):
        total += share  # in this order, in fp32
    np.testing.assert_array_equal(got, cdna.decode(cdna.encode(total, y_type), y_type).reshape(M, N))


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("config", "N", "x_type", "y_type"),
    [
        ({}, 777, "fp32", "bf16"),
        ({"NUM_KSPLIT": 3, "BLOCK_M": 2, "VEC": 8, "num_warps": 2}, 1040, "bf16", "fp16"),
    ],
)
def test_the_reduce_adds_in_order(target: str, config: dict[str, int], N: int, x_type: str, y_type: str) -> None:
    check_reduce(target, REDUCE | config, 5, N, x_type, y_type)


@BOTH
def test_split_k_and_its_reduce_are_a_product(folder: str, target: str) -> None:
    M, N, K = 16, 72, 528
    raw, _, product = splitk_shares(folder, target, SPLITK | {"NUM_KSPLIT": 4}, M, N, K)
    c = reduced(target, REDUCE, raw, M, N, "fp32", "bf16")
    assert relative(c, product) < 3e-3


XCD = {
    "BLOCK_M": 64,
    "BLOCK_N": 32,
    "BLOCK_K": 64,
    "NUM_XCDS": 8,
    "GROUP_M": 2,
    "CACHE_A": None,
    "CACHE_B": None,
    "CACHE_C": None,
    "num_warps": 4,
}
XCD_POINTERS = {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16"}


def check_xcd(folder: str, target: str, config: dict[str, Any], M: int, N: int, K: int) -> None:
    a, b, numbers = gemm_operands(M, N, K)
    code = compiled(bundled(f"{folder}/gemm_xcd").gemm_xcd, target, {**XCD_POINTERS, **numbers}, config)
    grid = ceiling(M, config["BLOCK_M"]) * ceiling(N, config["BLOCK_N"])
    got = outputs(code, (grid,), {"a_ptr": a, "b_ptr": b, "c_ptr": unwritten((M, N), "bf16"), **numbers})
    expected = wide(a, "bf16", (M, K)) @ wide(b, "bf16", (N, K)).T
    assert relative(wide(got["c_ptr"], "bf16", (M, N)), expected) < 3e-3


@BOTH
@pytest.mark.parametrize(
    ("config", "N", "K"),
    [
        ({}, 168, 208),  # 3 x 6 tiles: 18 programs on 8 dies
        ({"NUM_XCDS": 1, "GROUP_M": 8, "CACHE_A": ".cv", "CACHE_B": ".cg", "CACHE_C": ".wt", "num_warps": 2}, 72, 64),
    ],
)
def test_gemm_that_remaps_dies(folder: str, target: str, config: dict[str, Any], N: int, K: int) -> None:
    check_xcd(folder, target, XCD | config, 150, N, K)


BF16 = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 1, "NUM_BUFFERS": 2, "NONKDIM": 16, "num_warps": 4}


@BOTH
@pytest.mark.parametrize("kernel", ["gemm_xcd", "gemm_bf16"])
def test_accesses_to_lds_take_no_more_passes_than_they_must(folder: str, target: str, kernel: str) -> None:
    a, b, numbers = gemm_operands(150, 168, 208)
    config = XCD if kernel == "gemm_xcd" else BF16 | ({"EVEN_K": False} if folder == "cdna4" else {})
    function = getattr(bundled(f"{folder}/{kernel}"), kernel)
    code = compiled(function, target, {**XCD_POINTERS, **numbers}, config)
    c = unwritten((150, 168), "bf16")
    figures = cdna.run(code, (1,), {"a_ptr": a, "b_ptr": b, "c_ptr": c, **numbers}, figures=True).figures
    assert figures is not None
    assert figures.lds_cycles == figures.lds_ideal_cycles > 0


@pytest.mark.parametrize("folder", ["cdna3", "cdna4"])
@pytest.mark.parametrize("dies", [1, 4, 6, 8])
def test_each_die_gets_one_range_of_tiles_for_any_number_of_them(folder: str, dies: int) -> None:
    order = bundled(f"{folder}/gemm_xcd").die_order.fn
    for programs in range(1, 50):
        of_die = [[order(pid, programs, dies) for pid in range(die, programs, dies)] for die in range(dies)]
        assert [tile for tiles in of_die for tile in tiles] == list(range(programs))
        assert max(map(len, of_die)) - min(map(len, of_die)) <= 1


def bits(folder: str, target: str, config: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the cache bits of the kernel's buffer loads, each combination once, and those of its stores."""
    _, _, numbers = gemm_operands(16, 16, 64)
    code = compiled(bundled(f"{folder}/gemm_xcd").gemm_xcd, target, {**XCD_POINTERS, **numbers}, XCD | config)

    def of(instruction: str) -> list[str]:
        found = re.findall(rf"^\s+{instruction}\w* .*offen(.*)$", code.asm["amdgcn"], re.MULTILINE)
        return sorted({" ".join(b for b in line.split() if b != "lds") for line in found})

    return of("buffer_load"), of("buffer_store")


@BOTH
def test_cache_modifiers_set_the_bits_that_the_docstring_names(folder: str, target: str) -> None:
    assert bits(folder, target, {"CACHE_A": ".ca", "CACHE_C": ".cg"}) == ([""], [""])
    assert bits(folder, target, {"CACHE_A": ".cg", "CACHE_B": ".cv", "CACHE_C": ".wt"}) == (
        ["sc0 nt", "sc0 sc1"],
        ["sc0 sc1"],
    )
    assert bits(folder, target, {"CACHE_C": ".cs"}) == ([""], ["sc0 nt"])


@BOTH
@pytest.mark.parametrize("kernel", ["gemm_splitk", "gemm_xcd"])
def test_a_tile_shorter_than_one_read_of_an_operand_is_refused(folder: str, target: str, kernel: str) -> None:
    from triton.compiler.errors import CompileTimeAssertionFailure

    _, _, numbers = gemm_operands(16, 16, 64)
    if kernel == "gemm_splitk":
        numbers["stride_ck"] = 256
    config = (SPLITK if kernel == "gemm_splitk" else XCD) | {"BLOCK_K": 16}
    with pytest.raises(CompileTimeAssertionFailure, match="shorter than one read"):
        compiled(getattr(bundled(f"{folder}/{kernel}"), kernel), target, {**XCD_POINTERS, **numbers}, config)


# Random configurations of each kernel's space, with ragged sizes.


def draw(number: int) -> tuple[random.Random, dict[str, int], tuple[int, int, int]]:
    draws = random.Random(number)
    while True:
        config = {
            "BLOCK_M": draws.choice([16, 32, 64, 128]),
            "BLOCK_N": draws.choice([32, 64, 128]),
            "BLOCK_K": draws.choice([32, 64, 128, 256]),
            "num_warps": draws.choice([1, 2, 4, 8]),
            "waves_per_eu": draws.choice([0, 1, 2]),
        }
        sides = config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
        # Within the LDS of both, and with a piece of each tile for every wave.
        if (sides[0] + sides[1]) * sides[2] <= 32_768 and min(sides[:2]) * sides[2] >= 512 * config["num_warps"]:
            M, N = (draws.randint(1, 2 * side + 8) for side in sides[:2])
            return draws, config, (M, 8 * ceiling(N, 8), sides[2] + 16 * draws.randint(0, sides[2] // 4))


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("number", range(30))
def test_split_k_gemm_is_right_over_its_space(folder: str, target: str, number: int) -> None:
    draws, config, sizes = draw(number)
    check_splitk(folder, target, {**config, "NUM_KSPLIT": draws.choice([1, 2, 3, 4, 8, 16])}, *sizes)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("number", range(30))
def test_gemm_that_remaps_dies_is_right_over_its_space(folder: str, target: str, number: int) -> None:
    draws, config, (M, N, K) = draw(number)
    dies = {"NUM_XCDS": draws.choice([1, 4, 6, 8]), "GROUP_M": draws.choice([1, 4, 8, 16])}
    loads = {name: draws.choice([None, ".ca", ".cg", ".cv"]) for name in ("CACHE_A", "CACHE_B")}
    store = {"CACHE_C": draws.choice([None, ".wb", ".cg", ".cs", ".wt"])}
    if config["BLOCK_M"] * config["BLOCK_N"] <= 4096:
        M, N = M + 2 * config["BLOCK_M"], N + 2 * config["BLOCK_N"]
    check_xcd(folder, target, {**config, **dies, **loads, **store}, M, N, K)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
@pytest.mark.parametrize("number", range(30))
def test_the_reduce_is_right_over_its_space(target: str, number: int) -> None:
    draws = random.Random(number)
    config = {
        "NUM_KSPLIT": draws.choice([1, 2, 3, 4, 8, 16]),
        "BLOCK_M": draws.choice([1, 2, 4, 8]),
        "BLOCK_N": draws.choice([256, 512, 1024, 2048]),
        "VEC": draws.choice([1, 2, 4, 8]),
        "num_warps": draws.choice([1, 2, 4, 8]),
    }
    check_reduce(target, config, draws.randint(1, 2 * config["BLOCK_M"] + 1), draws.randint(1, 1500), "fp32", "bf16")
