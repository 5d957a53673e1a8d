"""Whole kernels, compiled by the installed Triton and executed: their numbers against numpy's.

Each runs three times: all waves in step under the sanitizer, in step on other initial registers, and wave by wave in a
random order. All must give the same bytes, and the sanitizer must have nothing to say.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import bundled, compiled
from results import outputs, relative, unwritten

from gluonmap import cdna

pytest.importorskip("triton")
BOTH = pytest.mark.parametrize("target", ["gfx942", "gfx950"])
RNG = np.random.default_rng(0)


def before_3_8() -> bool:
    import triton

    return tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 8)


@BOTH
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "i32", "i8"])
def test_vector_add_with_a_ragged_end(target: str, dtype: str) -> None:
    import gluon_kernels

    n = 1001
    code = compiled(
        gluon_kernels.add_vectors,
        target,
        {"x_ptr": f"*{dtype}", "y_ptr": f"*{dtype}", "out_ptr": f"*{dtype}", "n": n},
        {"BLOCK": 512, "VEC": 4, "num_warps": 4},
    )
    x, y = (RNG.integers(-50, 50, n).astype(np.float64) for _ in range(2))
    got = outputs(
        code,
        (2,),
        {"x_ptr": cdna.encode(x, dtype), "y_ptr": cdna.encode(y, dtype), "out_ptr": unwritten((n,), dtype), "n": n},
    )
    np.testing.assert_array_equal(cdna.decode(got["out_ptr"], dtype), x + y)


@BOTH
def test_softmax(target: str) -> None:
    import gluon_kernels

    rows, columns = 3, 1001
    code = compiled(
        gluon_kernels.softmax_rows,
        target,
        {"x_ptr": "*fp32", "y_ptr": "*fp32", "columns": columns},
        {"BLOCK": 1024, "num_warps": 4},
    )
    x = RNG.standard_normal((rows, columns)).astype(np.float32)
    got = outputs(code, (rows,), {"x_ptr": x, "y_ptr": unwritten((rows, columns), "fp32"), "columns": columns})
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(got["y_ptr"], e / e.sum(axis=1, keepdims=True), rtol=2e-6)


@BOTH
def test_reductions_across_lanes_and_waves(target: str) -> None:
    import gluon_kernels

    code = compiled(
        gluon_kernels.subtract_from_column_sums,
        target,
        {"x_ptr": "*fp32", "y_ptr": "*fp32"},
        {"ROWS": 32, "COLUMNS": 32, "num_warps": 4},
    )
    x = RNG.integers(-50, 50, (32, 32)).astype(np.float32)
    got = outputs(code, (1,), {"x_ptr": x, "y_ptr": unwritten((32, 32), "fp32")})
    np.testing.assert_array_equal(got["y_ptr"], x.sum(axis=0) - x)


@BOTH
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "i8"])
def test_transposing_through_lds(target: str, dtype: str) -> None:
    import gluon_kernels

    code = compiled(
        gluon_kernels.transpose,
        target,
        {"x_ptr": f"*{dtype}", "y_ptr": f"*{dtype}"},
        {"ROWS": 64, "COLUMNS": 64, "num_warps": 4},
    )
    x = cdna.encode(RNG.integers(-50, 50, (64, 64)), dtype)
    got = outputs(code, (1,), {"x_ptr": x, "y_ptr": unwritten((64, 64), dtype)})
    np.testing.assert_array_equal(got["y_ptr"], x.T)


@BOTH
def test_atomics(target: str) -> None:
    import gluon_kernels

    n = 1001
    code = compiled(
        gluon_kernels.histogram,
        target,
        {"x_ptr": "*i32", "bins_ptr": "*i32", "sums_ptr": "*fp32", "n": n},
        {"BLOCK": 256, "num_warps": 4},
    )
    x = RNG.integers(0, 1000, n).astype(np.int32)
    bins, sums = np.zeros(20, np.int32), np.zeros(8, np.float32)
    result = cdna.run(code, (4,), {"x_ptr": x, "bins_ptr": bins, "sums_ptr": sums, "n": n}, sanitize=True)
    assert result.findings == ()
    expected = np.zeros(20, np.int32)
    np.add.at(expected, x & 15, x)
    np.maximum.at(expected, 16 + (np.arange(n) & 3), x)
    np.testing.assert_array_equal(bins, expected)
    np.testing.assert_array_equal(sums, np.bincount(x & 7, x, 8))


GEMMS = {
    "gfx942": [
        # dtype, result, nonkdim, instruction's k, k width, waves
        ("fp16", "fp32", 32, 8, 4, (2, 2), True),
        ("bf16", "bf16", 16, 16, 4, (2, 2), False),
        ("fp8e4b8", "fp32", 32, 16, 8, (2, 2), True),
        ("fp8e5b16", "fp32", 16, 32, 8, (4, 1), True),
    ],
    "gfx950": [
        ("fp16", "fp32", 32, 16, 8, (2, 2), True),
        ("bf16", "bf16", 16, 32, 8, (2, 2), False),
        ("fp8e4nv", "fp32", 32, 16, 8, (2, 2), True),
        ("fp8e5", "fp32", 16, 32, 8, (4, 1), True),
    ],
}


@pytest.mark.parametrize(("target", "case"), [(t, c) for t, cases in GEMMS.items() for c in cases])
def test_gemm_is_exact_on_small_integers(target: str, case: tuple[Any, ...]) -> None:
    import gluon_kernels

    dtype, result, nonkdim, instr_k, k_width, (waves_m, waves_n), transposed = case
    M, N, K = 80, 96, 112
    code = compiled(
        gluon_kernels.gemm,
        target,
        {"a_ptr": f"*{dtype}", "b_ptr": f"*{dtype}", "c_ptr": f"*{result}"}
        | {"M": M, "N": N, "K": K, "stride_a": K, "stride_b": N, "stride_c": N},
        {
            "BLOCK_M": 64,
            "BLOCK_N": 64,
            "BLOCK_K": 64,
            "VERSION": 3 if target == "gfx942" else 4,
            "NONKDIM": nonkdim,
            "INSTR_K": instr_k,
            "K_WIDTH": k_width,
            "WAVES_M": waves_m,
            "WAVES_N": waves_n,
            "TRANSPOSED": transposed,
            "num_warps": waves_m * waves_n,
        },
    )
    a, b = (RNG.integers(-4, 5, shape).astype(np.float64) for shape in ((M, K), (K, N)))
    got = outputs(
        code,
        (2, 2),
        {"a_ptr": cdna.encode(a, dtype), "b_ptr": cdna.encode(b, dtype), "c_ptr": unwritten((M, N), result)}
        | {"M": M, "N": N, "K": K, "stride_a": K, "stride_b": N, "stride_c": N},
    )
    expected = cdna.decode(cdna.encode(a @ b, result), result)
    np.testing.assert_array_equal(cdna.decode(got["c_ptr"], result), expected)


FORMATS = ("e2m1", "e4m3", "e5m2")


def operand(form: str, rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random codes along k, packed if they have 4 bits, and their values (rows, k)."""
    if form == "e2m1":
        codes = RNG.integers(0, 256, (rows, k // 2)).astype(np.uint8)
        return codes, cdna.decode(codes, "e2m1").reshape(rows, k)
    codes = (RNG.integers(30, 60, (rows, k)) | RNG.integers(0, 2, (rows, k)) << 7).astype(np.uint8)
    return codes, cdna.decode(codes, "fp8e4nv" if form == "e4m3" else "fp8e5").reshape(rows, k)


@pytest.mark.parametrize(
    ("a_format", "b_format", "nonkdim", "instr_k"),
    [(a, b, 16, 128) for a in FORMATS for b in FORMATS]
    + [(a, b, 32, 64) for a, b in zip(FORMATS, FORMATS[::-1], strict=True)],
)
def test_scaled_gemm_of_all_pairs_of_formats(a_format: str, b_format: str, nonkdim: int, instr_k: int) -> None:
    import gluon_kernels

    M, N, K = 64, 64, 256
    types = {"e2m1": "*u8", "e4m3": "*fp8e4nv", "e5m2": "*fp8e5"}
    code = compiled(
        gluon_kernels.gemm_scaled,
        "gfx950",
        {"a_ptr": types[a_format], "b_ptr": types[b_format]}
        | {"a_scales_ptr": "*u8", "b_scales_ptr": "*u8", "c_ptr": "*fp32"},
        {"M": M, "N": N, "K": K, "NONKDIM": nonkdim, "INSTR_K": instr_k}
        | {"A_FORMAT": a_format, "B_FORMAT": b_format, "K_WIDTH": 16, "num_warps": 4},
    )
    a_codes, a = operand(a_format, M, K)
    b_codes, b = operand(b_format, N, K)
    a_scales, b_scales = (RNG.integers(120, 135, (rows, K // 32)).astype(np.uint8) for rows in (M, N))
    got = outputs(
        code,
        (1,),
        {"a_ptr": a_codes, "b_ptr": np.ascontiguousarray(b_codes.T), "a_scales_ptr": a_scales}
        | {"b_scales_ptr": b_scales, "c_ptr": unwritten((M, N), "fp32")},
    )
    wide_a = a.astype(np.float64) * np.repeat(np.exp2(a_scales.astype(np.float64) - 127), 32, axis=1)
    wide_b = b.astype(np.float64) * np.repeat(np.exp2(b_scales.astype(np.float64) - 127), 32, axis=1)
    assert relative(got["c_ptr"], wide_a @ wide_b.T) < 1e-6


def test_asynchronous_copies_land_before_they_are_read() -> None:
    import gluon_kernels

    code = compiled(
        gluon_kernels.copy_through_lds,
        "gfx950",
        {"x_ptr": "*fp16", "y_ptr": "*fp16"},
        {"TILES": 5, "WAIT": 1, "LAST": 0, "num_warps": 4},
    )
    x = RNG.standard_normal((5, 64, 64)).astype(np.float16)
    got = outputs(code, (1,), {"x_ptr": x, "y_ptr": unwritten((5, 64, 64), "fp16")})
    np.testing.assert_array_equal(got["y_ptr"], x.transpose(0, 2, 1))


@pytest.mark.parametrize("pointers", [True, False])
@pytest.mark.parametrize("padded", [False, True])
def test_masked_asynchronous_copies(pointers: bool, padded: bool) -> None:
    from triton.experimental.gluon import language as gl

    # A wave writes 1 KiB in one piece: padding may stand between such pieces only.
    layout = (
        gl.PaddedSharedLayout.with_identity_for([[256, 4]], [64, 64], [1, 0])
        if padded
        else gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    )
    if not pointers and before_3_8():
        # 3.6 stores `other` in the branch of the copy, where the mask holds.
        with pytest.raises(AssertionError, match="LDS read before it was written"):
            check_masked_copy(layout, pointers)
    else:
        check_masked_copy(layout, pointers)


def check_masked_copy(layout: Any, pointers: bool) -> None:
    import gluon_kernels

    code = compiled(
        gluon_kernels.copy_masked,
        "gfx950",
        {"x_ptr": "*fp32", "y_ptr": "*fp32"},
        {"ROWS_IN": 40, "SHARED": layout, "POINTERS": pointers, "num_warps": 4},
    )
    x = RNG.standard_normal((64, 64)).astype(np.float32)
    got = outputs(code, (1,), {"x_ptr": x, "y_ptr": unwritten((64, 64), "fp32")})
    np.testing.assert_array_equal(got["y_ptr"], np.where(np.arange(64)[:, None] < 40, x, 0))


SHARED = {
    "plain": lambda gl: gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
    "swizzled": lambda gl: gl.SwizzledSharedLayout(4, 2, 8, [1, 0]),
    "swizzled by columns": lambda gl: gl.SwizzledSharedLayout(4, 1, 4, [0, 1]),
    "padded": lambda gl: gl.PaddedSharedLayout.with_identity_for([[64, 4]], [64, 32], [1, 0]),
    "padded twice": lambda gl: gl.PaddedSharedLayout.with_identity_for([[32, 4], [256, 8]], [64, 32], [1, 0]),
}


@pytest.mark.parametrize("layout", SHARED)
@pytest.mark.parametrize(("target", "dtype"), [("gfx942", "fp32"), ("gfx950", "fp16")])
def test_layouts_of_lds(layout: str, target: str, dtype: str) -> None:
    import gluon_kernels
    from triton.experimental.gluon import language as gl

    code = compiled(
        gluon_kernels.through_lds,
        target,
        {"x_ptr": f"*{dtype}", "y_ptr": f"*{dtype}"},
        {"SHARED": SHARED[layout](gl), "ROWS": 64, "COLUMNS": 32, "num_warps": 4},
    )
    x = cdna.encode(RNG.standard_normal((64, 32)), dtype)
    got = outputs(code, (1,), {"x_ptr": x, "y_ptr": unwritten((32, 64), dtype)})
    np.testing.assert_array_equal(got["y_ptr"], x.T)


@pytest.mark.parametrize(
    ("target", "dtype", "load", "store"),
    [
        ("gfx942", "fp32", "", ""),
        ("gfx942", "i8", ".cg", ".wt"),
        ("gfx950", "fp16", ".cv", ".cs"),
        ("gfx950", "i32", ".ca", ".wb"),
    ],
)
def test_masked_buffer_accesses_with_cache_modifiers(target: str, dtype: str, load: str, store: str) -> None:
    import gluon_kernels

    n = 1503
    code = compiled(
        gluon_kernels.buffer_copy,
        target,
        {"x_ptr": f"*{dtype}", "y_ptr": f"*{dtype}", "n": n},
        {"LOAD": load, "STORE": store, "num_warps": 4},
    )
    x = cdna.encode(RNG.integers(-50, 50, n), dtype)
    got = outputs(code, (2,), {"x_ptr": x, "y_ptr": unwritten((n,), dtype), "n": n})
    np.testing.assert_array_equal(got["y_ptr"], np.where(np.arange(n) % 2 == 0, x, 7))


INTEGER = {"max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@pytest.mark.parametrize(
    ("target", "dtype", "operation"),
    [
        *(("gfx942", "i32", operation) for operation in (*INTEGER, "xchg")),
        ("gfx942", "u32", "max"),
        ("gfx942", "u32", "add"),
        ("gfx942", "fp16", "add"),
        ("gfx950", "bf16", "add"),
        ("gfx950", "fp32", "add"),
        ("gfx950", "fp64", "add"),
    ],
)
def test_buffer_atomics(target: str, dtype: str, operation: str) -> None:
    import gluon_kernels

    if operation in ("max", "min", "xchg") and before_3_8():
        pytest.skip("its LLVM does not know the intrinsic before 3.8")
    # Floats of 16 bits are added in pairs, whose mask must be one: otherwise Triton 3.9 emits no atomic at all.
    n = 496
    code = compiled(
        gluon_kernels.buffer_atomic,
        target,
        {"x_ptr": f"*{dtype}", "y_ptr": f"*{dtype}", "old_ptr": f"*{dtype}", "n": n},
        {"OP": operation, "CDNA4": target == "gfx950", "num_warps": 4},
    )
    x, y = (cdna.encode(RNG.integers(0 if dtype == "u32" else -50, 50, n), dtype) for _ in range(2))
    after, old = y.copy(), cdna.Unwritten(np.zeros_like(y))
    result = cdna.run(code, (1,), {"x_ptr": x, "y_ptr": after, "old_ptr": old, "n": n}, sanitize=True)
    assert result.findings == ()
    a, b = (cdna.decode(v, dtype) for v in (y, x))
    expected = b if operation == "xchg" else a + b if operation == "add" else INTEGER[operation](a, b)
    np.testing.assert_array_equal(cdna.decode(after, dtype), expected)
    np.testing.assert_array_equal(old.array, y)


@BOTH
def test_products_of_float64(target: str) -> None:
    import gluon_kernels

    code = compiled(
        gluon_kernels.product_of_doubles,
        target,
        {"a_ptr": "*fp64", "b_ptr": "*fp64", "c_ptr": "*fp64"},
        {"K": 16, "VERSION": 3 if target == "gfx942" else 4, "num_warps": 4},
    )
    a, b = RNG.standard_normal((32, 16)), RNG.standard_normal((16, 32))
    got = outputs(code, (1,), {"a_ptr": a, "b_ptr": b, "c_ptr": unwritten((32, 32), "fp64")})
    np.testing.assert_allclose(got["c_ptr"], a @ b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("target", "plain", "form"), [("gfx942", "bf16", "e2m1"), ("gfx950", "bf16", "e2m1"), ("gfx950", "fp16", "e4m3")]
)
def test_products_of_a_plain_and_a_scaled_operand(target: str, plain: str, form: str) -> None:
    # gfx950 converts with v_cvt_scalef32_pk_…, by scales other than 1.
    import triton_kernels

    K = 128
    code = compiled(
        triton_kernels.product_scaled,
        target,
        {"a_ptr": f"*{plain}", "b_ptr": "*u8" if form == "e2m1" else "*fp8e4nv", "scales_ptr": "*u8", "c_ptr": "*fp32"},
        {"K": K, "FORMAT": form, "PLAIN": plain, "num_warps": 4},
    )
    a = cdna.encode(RNG.standard_normal((64, K)), plain)
    codes, b = operand(form, 64, K)
    scales = RNG.integers(124, 131, (64, K // 32)).astype(np.uint8)
    got = outputs(
        code,
        (1,),
        {
            "a_ptr": a,
            "b_ptr": np.ascontiguousarray(codes.T),
            "scales_ptr": scales,
            "c_ptr": unwritten((64, 64), "fp32"),
        },
    )
    wide = b.astype(np.float64) * np.repeat(np.exp2(scales.astype(np.float64) - 127), 32, axis=1)
    assert relative(got["c_ptr"], cdna.decode(a, plain).reshape(64, K).astype(np.float64) @ wide.T) < 1e-6


def philox(seed: int, counters: np.ndarray) -> np.ndarray:
    """Return the first word of Philox 4x32-10."""
    c = [counters.astype(np.uint64), *(np.zeros(len(counters), np.uint64) for _ in range(3))]
    keys = [seed, 0]
    for _ in range(10):
        high, low = (np.uint64(m) * c[k] for m, k in ((0xCD9E8D57, 2), (0xD2511F53, 0)))
        word = np.uint64(0xFFFFFFFF)
        c = [
            (high >> np.uint64(32)) ^ c[1] ^ np.uint64(keys[0]),
            high & word,
            (low >> np.uint64(32)) ^ c[3] ^ np.uint64(keys[1]),
            low & word,
        ]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32)


@BOTH
def test_dropout(target: str) -> None:
    import triton_kernels

    numbers = {"n": 1000, "p": 0.5, "seed": 123}
    code = compiled(
        triton_kernels.dropout,
        target,
        {"x_ptr": "*fp32", "out_ptr": "*fp32", **numbers},
        {"BLOCK": 512, "num_warps": 4},
    )
    x = RNG.standard_normal(1000).astype(np.float32)
    got = outputs(code, (2,), {"x_ptr": x, "out_ptr": unwritten((1000,), "fp32"), **numbers})
    draw = philox(123, np.arange(1000)).view(np.int32)
    uniform = np.where(draw < 0, -draw - 1, draw).astype(np.float32) * np.float32(4.6566127342e-10)
    np.testing.assert_array_equal(got["out_ptr"], np.where(uniform > 0.5, 2 * x, 0))


@BOTH
def test_sums_under_locks(target: str) -> None:
    import triton_kernels

    code = compiled(
        triton_kernels.sum_rows_under_locks,
        target,
        {"x_ptr": "*fp32", "sums_ptr": "*fp32", "locks_ptr": "*i32", "N": 500},
        {"SUMS": 2, "BLOCK": 512, "num_warps": 4},
    )
    x = RNG.integers(-50, 50, (6, 500)).astype(np.float32)
    for how in ({"sanitize": True}, {"sanitize": True, "order": 1}):
        sums, locks = np.full((2, 500), 99, np.float32), np.zeros(4, np.int32)
        result = cdna.run(code, (6,), {"x_ptr": x, "sums_ptr": sums, "locks_ptr": locks, "N": 500}, **how)
        assert [str(f) for f in result.findings] == []
        np.testing.assert_array_equal(sums, x.reshape(3, 2, 500).sum(axis=0))


@BOTH
@pytest.mark.parametrize("dtype", ["fp16", "i8"])
@pytest.mark.parametrize("block_m", [1, 4, 16])
def test_products_of_few_rows(target: str, dtype: str, block_m: int) -> None:
    # Dot products lane by lane, sixteen products of 4 x 4 with one block of A for all, and the usual ones.
    import triton_kernels

    M, N, K = 9, 72, 100
    result = "i32" if dtype == "i8" else "fp32"
    numbers = {"M": M, "N": N, "K": K}
    code = compiled(
        triton_kernels.product,
        target,
        {"a_ptr": f"*{dtype}", "b_ptr": f"*{dtype}", "c_ptr": f"*{result}", **numbers},
        {"BLOCK_M": block_m, "BLOCK_N": 64, "BLOCK_K": 64, "num_warps": 4},
    )
    a, b = (RNG.integers(-4, 5, shape) for shape in ((M, K), (K, N)))
    got = outputs(
        code,
        (-(-M // block_m), 2),
        {"a_ptr": cdna.encode(a, dtype), "b_ptr": cdna.encode(b, dtype), "c_ptr": unwritten((M, N), result), **numbers},
    )
    np.testing.assert_array_equal(got["c_ptr"], a @ b)


@BOTH
def test_causal_attention(target: str) -> None:
    import triton_kernels

    S, D = 150, 64
    code = compiled(
        triton_kernels.attention,
        target,
        {"q_ptr": "*bf16", "k_ptr": "*bf16", "v_ptr": "*bf16", "o_ptr": "*bf16", "S": S, "scale": 0.18},
        {"BLOCK": 64, "D": D, "num_warps": 4},
    )
    q, k, v = (cdna.encode(RNG.standard_normal((S, D)), "bf16") for _ in range(3))
    got = outputs(
        code, (3,), {"q_ptr": q, "k_ptr": k, "v_ptr": v, "o_ptr": unwritten((S, D), "bf16"), "S": S, "scale": 0.18}
    )
    left, right, values = (cdna.decode(x, "bf16").reshape(S, D).astype(np.float64) for x in (q, k, v))
    score = np.where(np.tril(np.ones((S, S), bool)), left @ right.T * 0.18, -np.inf)
    p = np.exp2(score - score.max(axis=1, keepdims=True))
    assert relative(cdna.decode(got["o_ptr"], "bf16").reshape(S, D), p / p.sum(axis=1, keepdims=True) @ values) < 6e-3


RMSNORM = {"BLOCK_N": 1024, "ROWS_PER_PROGRAM": 1, "VEC": 8, "num_warps": 4}


def check_rmsnorm(target: str, dtype: str, config: dict[str, Any], M: int = 9, N: int = 1337) -> None:
    numbers = {"M": M, "N": N, "stride_xm": N, "stride_ym": N, "eps": 1e-6}
    code = compiled(
        bundled("rmsnorm").rmsnorm,
        target,
        {"x_ptr": f"*{dtype}", "w_ptr": f"*{dtype}", "y_ptr": f"*{dtype}", **numbers},
        {"WARP_SIZE": 64, **config},
    )
    x = cdna.encode(RNG.standard_normal((M, N)) * np.exp2(RNG.integers(-4, 5, (M, 1))), dtype)
    w = cdna.encode(RNG.standard_normal(N), dtype)
    got = outputs(code, (2,), {"x_ptr": x, "w_ptr": w, "y_ptr": unwritten((M, N), dtype), **numbers})
    wide = cdna.decode(x, dtype).reshape(M, N).astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * cdna.decode(w, dtype)
    limit = {"bf16": 3e-3, "fp16": 4e-4, "fp32": 1e-6}[dtype]
    assert relative(cdna.decode(got["y_ptr"], dtype).reshape(M, N), expected) < limit


@BOTH
@pytest.mark.parametrize(
    ("dtype", "config"),
    [
        ("bf16", {}),
        ("fp16", {"ROWS_PER_PROGRAM": 2, "BLOCK_N": 512}),
        ("fp32", {"num_warps": 2, "VEC": 4, "ROWS_PER_PROGRAM": 4, "BLOCK_N": 256}),
    ],
)
def test_rmsnorm(target: str, dtype: str, config: dict[str, int]) -> None:
    check_rmsnorm(target, dtype, RMSNORM | config)


BF16_GEMM = {
    "BLOCK_M": 128,
    "BLOCK_N": 128,
    "BLOCK_K": 64,
    "GROUP_M": 8,
    "NUM_BUFFERS": 2,
    "NONKDIM": 16,
    "num_warps": 4,
}
OTHER = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "NUM_BUFFERS": 1, "NONKDIM": 32, "num_warps": 2}
BF16_CONFIGS = [
    ("cdna3", {}),
    ("cdna3", OTHER),
    ("cdna3", {"BLOCK_M": 32, "NUM_BUFFERS": 3, "GROUP_M": 1, "waves_per_eu": 2}),
    ("cdna4", {"NUM_BUFFERS": 3}),
    ("cdna4", OTHER),
    ("cdna4", {"BLOCK_M": 32, "NUM_BUFFERS": 2, "GROUP_M": 1, "waves_per_eu": 2}),
]


def check_bf16_gemm(folder: str, target: str, config: dict[str, Any], M: int, N: int, K: int) -> None:
    if folder == "cdna4":
        config = {**config, "EVEN_K": K % config["BLOCK_K"] == 0}
    numbers = {"M": M, "N": N, "K": K, "stride_am": K, "stride_ak": 1, "stride_bn": K, "stride_bk": 1}
    numbers |= {"stride_cm": N, "stride_cn": 1}
    code = compiled(
        bundled(f"{folder}/gemm_bf16").gemm_bf16,
        target,
        {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16", **numbers},
        config,
    )
    a, b = (cdna.encode(RNG.standard_normal(shape), "bf16") for shape in ((M, K), (N, K)))
    grid = -(-M // config["BLOCK_M"]) * -(-N // config["BLOCK_N"])
    got = outputs(code, (grid,), {"a_ptr": a, "b_ptr": b, "c_ptr": unwritten((M, N), "bf16"), **numbers})
    left, right = (cdna.decode(x, "bf16").reshape(x.shape).astype(np.float64) for x in (a, b))
    assert relative(cdna.decode(got["c_ptr"], "bf16").reshape(M, N), left @ right.T) < 3e-3


@pytest.mark.parametrize(
    ("folder", "config", "K"),
    [(folder, config, 208) for folder, config in BF16_CONFIGS] + [("cdna4", {"NUM_BUFFERS": 3}, 256)],
)
def test_bundled_bf16_gemm(folder: str, config: dict[str, int], K: int) -> None:
    check_bf16_gemm(folder, "gfx942" if folder == "cdna3" else "gfx950", BF16_GEMM | config, 200, 136, K)


MXFP4_GEMM = {
    "BLOCK_SIZE_M": 256,
    "BLOCK_SIZE_N": 256,
    "BLOCK_SIZE_K": 256,
    "GROUP_SIZE_M": 2,
    "NUM_KSPLIT": 1,
    "num_warps": 8,
    "num_stages": 2,
    "waves_per_eu": 0,
    "matrix_instr_nonkdim": 32,
    "cache_modifier": None,
}


def check_mxfp4_gemm(config: dict[str, Any], M: int = 300, N: int = 272, K: int = 608) -> None:
    splits = config["NUM_KSPLIT"]
    share = -(-K // (splits * 256)) * 256
    numbers = {"M": M, "N": N, "K": K, "stride_am": K // 2, "stride_ak": 1, "stride_bk": 1, "stride_bn": K // 2}
    numbers |= {"stride_ck": M * N, "stride_cm": N, "stride_cn": 1, "stride_asm": K // 32, "stride_ask": 1}
    numbers |= {"stride_bsn": K // 32, "stride_bsk": 1}
    result = "bf16" if splits == 1 else "fp32"
    code = compiled(
        bundled("cdna4/gemm_mxfp4").gemm_mxfp4,
        "gfx950",
        {
            "a_ptr": "*u8",
            "b_ptr": "*u8",
            "c_ptr": f"*{result}",
            "a_scales_ptr": "*u8",
            "b_scales_ptr": "*u8",
            **numbers,
        },
        {**config, "SPLITK_BLOCK_SIZE": share},
    )
    a, b = (RNG.integers(0, 256, (rows, K // 2)).astype(np.uint8) for rows in (M, N))
    a_scales, b_scales = (RNG.integers(124, 131, (rows, K // 32)).astype(np.uint8) for rows in (M, N))
    got = outputs(
        code,
        (splits * -(-M // 256) * -(-N // 256),),
        {"a_ptr": a, "b_ptr": b, "c_ptr": unwritten((splits, M, N), result)}
        | {"a_scales_ptr": a_scales, "b_scales_ptr": b_scales, **numbers},
    )

    def wide(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
        values = cdna.decode(codes, "e2m1").reshape(len(codes), K).astype(np.float64)
        return values * np.repeat(np.exp2(scales.astype(np.float64) - 127), 32, axis=1)

    left, right = wide(a, a_scales), wide(b, b_scales)
    shares = [left[:, s * share : (s + 1) * share] @ right[:, s * share : (s + 1) * share].T for s in range(splits)]
    limit = 3e-3 if splits == 1 else 1e-6
    assert relative(cdna.decode(got["c_ptr"], result).reshape(splits, M, N), np.stack(shares)) < limit


@pytest.mark.parametrize("splits", [1, 2])
def test_bundled_mxfp4_gemm(splits: int) -> None:
    check_mxfp4_gemm(MXFP4_GEMM | {"NUM_KSPLIT": splits})


# The programs that the committed maps hand over: a sample of each, set by GLUONMAP_CDNA_EVERY.

REPORTS = Path(__file__).resolve().parents[2] / "reports"
EVERY = int(os.environ.get("GLUONMAP_CDNA_EVERY", "40"))


def programs(report: str) -> list[dict[str, Any]]:
    """Return every EVERY-th configuration of a map's reduced space."""
    return [p["config"] for p in json.loads((REPORTS / report).read_text()).get("joint", {}).get("programs", [])][
        ::EVERY
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "target", "config"),
    [
        (folder, target, config)
        for folder, target in (("cdna3", "gfx942"), ("cdna4", "gfx950"))
        for config in programs(f"{folder}/gemm_bf16.{target}.json")
    ],
)
def test_bf16_gemm_is_right_on_its_reduced_space(folder: str, target: str, config: dict[str, Any]) -> None:
    check_bf16_gemm(folder, target, config, 2 * config["BLOCK_M"] - 40, config["BLOCK_N"] + 8, 272)


@pytest.mark.slow
@pytest.mark.parametrize("config", programs("cdna4/gemm_mxfp4.gfx950.json"))
def test_mxfp4_gemm_is_right_on_its_reduced_space(config: dict[str, Any]) -> None:
    check_mxfp4_gemm(config)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("config", programs("rmsnorm.gfx942.json"))
def test_rmsnorm_is_right_on_its_reduced_space(target: str, config: dict[str, Any]) -> None:
    config = {name: value for name, value in config.items() if name != "NUM_PROGRAMS"}
    check_rmsnorm(target, "bf16", config, M=config["ROWS_PER_PROGRAM"] + 3)
