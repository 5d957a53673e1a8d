"""Matrix instructions, lane by lane: layout of operands and results, formats and scales."""

from __future__ import annotations

import numpy as np
import pytest
from assembly import execute

from gluonmap import cdna
from gluonmap.cdna.mfma import SHAPES

RNG = np.random.default_rng(0)
BITS = {"f16": 16, "bf16": 16, "f32": 32, "xf32": 32, "i8": 8, "fp8": 8, "bf8": 8, "fp4": 4}
PLAIN = sorted((side, k, form) for side, k, form in SHAPES if form not in ("f8f6f4", "f64") and side > 4)
BLOCKS = sorted((k, form) for side, k, form in SHAPES if side == 4)


def codes(form: str, shape: tuple[int, int], fnuz: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return random codes of small numbers, and the numbers."""
    if form == "fp4":
        raw = RNG.integers(0, 16, shape)
        return raw, cdna.decode((raw | raw << 4).astype(np.uint8), "e2m1").reshape(*shape, 2)[..., 0]
    if form in ("fp8", "bf8"):
        tag = {("fp8", True): "fp8e4b8", ("fp8", False): "fp8e4nv", ("bf8", True): "fp8e5b16", ("bf8", False): "fp8e5"}
        numbers = RNG.choice([-3.0, -1.5, -1.0, 0.0, 0.5, 1.0, 2.0], shape)
        return cdna.encode(numbers, tag[form, fnuz]).astype(np.int64), numbers
    numbers = RNG.integers(-5, 6, shape).astype(np.float64)
    if form == "i8":
        return numbers.astype(np.int64) & 255, numbers
    dtype = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "xf32": "fp32"}[form]
    raw = cdna.encode(numbers, dtype)
    return raw.view({2: np.uint16, 4: np.uint32}[raw.itemsize]).astype(np.int64), numbers


def place(k: int, K: int, groups: int, runs: bool) -> tuple[int, int]:
    """Return the (group of lanes, element in the lane) of k. With runs, an 8-bit operand has two runs of 16."""
    if runs:
        run, rest = divmod(k, 16 * groups)
        return rest // 16, run * 16 + rest % 16
    per = K // groups
    return k // per, k % per


def registers(raw: np.ndarray, bits: int, side: int, runs: bool = False) -> np.ndarray:
    """Return the operand with the codes `raw` (rows of A or columns of B, k) as (registers, 64)."""
    K, groups = raw.shape[1], 64 // side
    packed = np.zeros((K // groups * bits // 32, 64), np.uint64)
    for row in range(side):
        for k in range(K):
            group, element = place(k, K, groups, runs)
            at, shift = divmod(element * bits, 32)
            packed[at, group * side + row] |= np.uint64(int(raw[row, k]) << shift)
    return packed.astype(np.uint32)


def result(side: int, D: np.ndarray) -> np.ndarray:
    """Return a result (side, side) as (registers, 64): lane l has column l % side, and rows in fours."""
    groups = 64 // side
    out = np.zeros((side * side // 64, 64), D.dtype)
    for register in range(len(out)):
        for lane in range(64):
            row = 4 * (register // 4 * groups + lane // side) + register % 4
            out[register, lane] = D[row, lane % side]
    return out


def multiplied(
    name: str,
    target: str,
    side: int,
    a: np.ndarray,
    b: np.ndarray,
    more: str = "",
    c: int | None = 64,
    **scales: np.ndarray,
) -> np.ndarray:
    """Return the registers of D, from v0; A is from v100, B from v120, C from v64 or zero."""
    count = side * side // 64
    given = {100 + k: row for k, row in enumerate(a)} | {120 + k: row for k, row in enumerate(b)}
    given |= {64 + k: row for k, row in enumerate(C_ROWS[side])} if c is not None else {}
    given |= {140 + k: row for k, row in enumerate(scales.values())}

    def span(first: int, n: int) -> str:
        return f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"

    addend = span(64, count) if c is not None else "0"
    text = f"{name} {span(0, count)}, {span(100, len(a))}, {span(120, len(b))}, {addend}{more}"
    waves = execute(text, given, target=target)
    return np.stack([waves.U[k][0] for k in range(count)])


C = {side: RNG.integers(-50, 50, (side, side)) for side in (16, 32)}
C_ROWS = {side: result(side, c.astype(np.float32)).view(np.uint32) for side, c in C.items()}


@pytest.mark.parametrize(("side", "K", "form"), PLAIN)
def test_shapes_and_types(side: int, K: int, form: str) -> None:
    target = SHAPES[side, K, form][-1]
    forms = form.removesuffix("_1k").split("_") * 2
    integer = form == "i8"
    (a_raw, a), (b_raw, b) = (codes(f, (side, K), target == "gfx942") for f in forms[:2])
    name = f"v_mfma_{'i32' if integer else 'f32'}_{side}x{side}x{K}_{form}"
    got = multiplied(
        name, target, side, registers(a_raw, BITS[forms[0]], side), registers(b_raw, BITS[forms[1]], side), c=None
    )
    expected = result(side, a @ b.T)
    np.testing.assert_array_equal(got.view(np.int32 if integer else np.float32), expected)


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_products_of_float64(target: str) -> None:
    a, b = (RNG.standard_normal((16, 4)) for _ in range(2))
    c = RNG.standard_normal((16, 16))
    # Lane l holds A[l % 16, l // 16] and B likewise; of the result, pair q is row 4 q + l // 16.
    lane = np.arange(64)
    given = {}
    for first, values in ((100, a[lane % 16, lane // 16]), (102, b[lane % 16, lane // 16])):
        given |= {first + j: values.view(np.uint32)[j::2] for j in range(2)}
    for q in range(4):
        row = np.ascontiguousarray(c[4 * q + lane // 16, lane % 16])
        given |= {64 + 2 * q + j: row.view(np.uint32)[j::2] for j in range(2)}
    for addend, expected in (("0", a @ b.T), ("v[64:71]", a @ b.T + c)):
        waves = execute(f"v_mfma_f64_16x16x4_f64 v[0:7], v[100:101], v[102:103], {addend}", given, target=target)
        for q in range(4):
            got = np.stack([waves.U[2 * q][0], waves.U[2 * q + 1][0]], axis=-1).copy().view(np.float64)[:, 0]
            np.testing.assert_allclose(got, expected[4 * q + lane // 16, lane % 16], rtol=1e-14)


def test_the_addend_is_added() -> None:
    (a_raw, a), (b_raw, b) = (codes("f16", (16, 16), True) for _ in range(2))
    got = multiplied("v_mfma_f32_16x16x16_f16", "gfx942", 16, registers(a_raw, 16, 16), registers(b_raw, 16, 16))
    np.testing.assert_array_equal(got.view(np.float32), result(16, a @ b.T + C[16]))


@pytest.mark.parametrize(("K", "form"), BLOCKS)
@pytest.mark.parametrize(("cbsz", "abid"), [(0, 0), (4, 5), (2, 1)])
def test_sixteen_products_of_4_by_4(K: int, form: str, cbsz: int, abid: int) -> None:
    (a_raw, a), (b_raw, b) = (codes(form, (64, K), True) for _ in range(2))

    def packed(raw: np.ndarray) -> np.ndarray:
        # Lane l holds all k of row l % 4 of block l // 4.
        bits = BITS[form]
        out = np.zeros((max(1, K * bits // 32), 64), np.uint64)
        for lane in range(64):
            for k in range(K):
                at, shift = divmod(k * bits, 32)
                out[at, lane] |= np.uint64(int(raw[lane, k]) << shift)
        return out.astype(np.uint32)

    kind = "i32" if form == "i8" else "f32"
    given = {100 + k: row for k, row in enumerate(packed(a_raw))} | {
        120 + k: row for k, row in enumerate(packed(b_raw))
    }
    n = len(packed(a_raw))
    spans = [f"v{r}" if n == 1 else f"v[{r}:{r + n - 1}]" for r in (100, 120)]
    more = f" cbsz:{cbsz} abid:{abid}" if cbsz else ""
    waves = execute(f"v_mfma_{kind}_4x4x{K}_16b_{form} v[0:3], {spans[0]}, {spans[1]}, 0{more}", given)
    got = np.stack([waves.U[q][0] for q in range(4)]).view(np.int32 if form == "i8" else np.float32)
    for block in range(16):
        source = block >> cbsz << cbsz | abid
        expected = a[4 * source : 4 * source + 4] @ b[4 * block : 4 * block + 4].T
        np.testing.assert_array_equal(got[:, 4 * block : 4 * block + 4], expected)


FORMATS = {"fp8": 0, "bf8": 1, "fp4": 4}


@pytest.mark.parametrize("a_form", FORMATS)
@pytest.mark.parametrize("b_form", FORMATS)
@pytest.mark.parametrize(("side", "K"), [(16, 128), (32, 64)])
def test_scaled_products_of_all_pairs_of_formats(a_form: str, b_form: str, side: int, K: int) -> None:
    (a_raw, a), (b_raw, b) = (codes(f, (side, K), False) for f in (a_form, b_form))
    a_regs, b_regs = (registers(raw, BITS[f], side, f != "fp4") for raw, f in ((a_raw, a_form), (b_raw, b_form)))
    # One scale per lane: of its row, for the block of 32 k that is its group's number; in bytes 2 and 1. All exact.
    scale = RNG.integers(126, 129, (2, 64))
    words = [np.asarray(s << shift, np.uint32) | np.uint32(0x01000001) for s, shift in zip(scale, (16, 8), strict=True)]
    name = f"v_mfma_scale_f32_{side}x{side}x{K}_f8f6f4"
    more = f", v140, v141 op_sel:[0,1,0] op_sel_hi:[1,0,0] cbsz:{FORMATS[a_form]} blgp:{FORMATS[b_form]}"
    got = multiplied(name, "gfx950", side, a_regs, b_regs, more, a_scale=words[0], b_scale=words[1])
    wide = []
    for values, s in zip((a, b), scale, strict=True):
        factors = np.exp2(s.reshape(64 // side, side).T.astype(np.float64) - 127)
        wide.append(values * np.repeat(factors, 32, axis=1))
    np.testing.assert_array_equal(got.view(np.float32), result(side, wide[0] @ wide[1].T + C[side]))


def test_scales_of_the_smallest_exponent_and_nan() -> None:
    one = np.full((16, 128), 0x38)
    regs = registers(one, 8, 16, True)
    for code, expected in ((0, 2.0**-120), (255, np.nan)):
        words = {"a_scale": np.full(64, code, np.uint32), "b_scale": np.full(64, 127, np.uint32)}
        more = ", v140, v141 op_sel_hi:[0,0,0]"
        got = multiplied("v_mfma_scale_f32_16x16x128_f8f6f4", "gfx950", 16, regs, regs, more, None, **words)
        np.testing.assert_array_equal(got.view(np.float32), np.full((4, 64), expected, np.float32))


@pytest.mark.parametrize(
    ("instruction", "target"),
    [
        ("v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], 0", "gfx942"),
        ("v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[34:35], 0", "gfx942"),
        ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[10:15], 0 cbsz:2 blgp:2", "gfx950"),
        ("v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 1.0", "gfx942"),
        ("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", "gfx942"),
    ],
)
def test_shapes_that_are_not_known_are_not_executed(instruction: str, target: str) -> None:
    with pytest.raises(cdna.NotExecuted, match=instruction.split()[0]):
        execute(instruction, target=target)


def test_xf32_takes_values_that_need_no_rounding() -> None:
    near = np.full((1, 64), 0x3F800001, np.uint32)
    with pytest.raises(cdna.NotExecuted, match="xf32"):
        multiplied("v_mfma_f32_16x16x8_xf32", "gfx942", 16, np.repeat(near, 2, 0), np.repeat(near, 2, 0))


def test_operands_may_be_accumulation_registers() -> None:
    ones = dict.fromkeys((4, 5), 1006648320)
    text = "v_accvgpr_write_b32 a4, v4\nv_accvgpr_write_b32 a5, v5\nv_mfma_f32_16x16x16_f16 a[0:3], a[4:5], v[4:5], 0\n"
    waves = execute(text + "v_accvgpr_read_b32 v0, a2", ones)
    assert waves.F[0][0].tolist() == [16.0] * 64


def test_a_product_reads_its_operands_anew_after_they_were_written() -> None:
    text = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[4:5], 0\nv_mov_b32_e32 v5, 0\n"
    text += "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[4:5], v[0:3]"
    waves = execute(text, {4: 0x3C003C00, 5: 0x3C003C00})
    assert waves.F[0][0].tolist() == [24.0] * 64
