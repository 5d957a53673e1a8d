"""Opcodes against AMD's own pseudo-code, which tinygrad (0.14) extracts from the ISA document of CDNA 4.

Skipped where tinygrad is not installed; the pseudo-code is computed by `pcode`, which shares nothing with the executor.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from assembly import execute
from pcode import Machine, NotRead, Value

from gluonmap.cdna.opcodes import scalar, vector
from gluonmap.cdna.operands import EXEC

tables = pytest.importorskip("tinygrad.runtime.autogen.amd.cdna.str_pcode")

CODE: dict[str, str] = {}
for _opcode, _text in tables.PCODE.items():
    CODE.setdefault(_opcode.name.lower().removesuffix("_e32").removesuffix("_e64"), _text)
MACHINE = Machine(CODE)

WIDTH = {**dict.fromkeys("uif", 32), **dict.fromkeys("wsh", 16), **dict.fromkeys("qld", 64)}
CASES = 32
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 3.5, -2.5, math.inf, -math.inf, math.nan, 65504.0, 1e-7, -3e5, 255.0, 2.0**31]
RNG = np.random.default_rng(0)


def inputs(kind: str, width: int) -> list[int]:
    """Return the bits of special and random values."""
    if kind in "fhd":
        dtype: Any = {16: np.float16, 32: np.float32, 64: np.float64}[width]
        spread = RNG.standard_normal(CASES) * np.exp2(RNG.integers(-12, 12, CASES))
        # Denormals, the largest, and whatever bits there are; no signalling NaN.
        raw = RNG.integers(0, 1 << min(width, 63), CASES, dtype=np.uint64).astype(
            {2: "u2", 4: "u4", 8: "u8"}[width // 8]
        )
        with np.errstate(all="ignore"):
            values = np.concatenate([np.array(FLOATS).astype(dtype), spread.astype(dtype), raw.view(dtype)])
        values[np.isnan(values)] = np.nan
        bits = values.view(raw.dtype).tolist()
    else:
        edge = [0, 1, 2, 31, 32, 63, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, 0x00FF00FF, 0xAAAAAAAA]
        small = RNG.integers(0, 70, CASES // 2).tolist()
        wide = [int(x) << 32 | int(y) for x, y in RNG.integers(0, 1 << 32, (CASES, 2)).tolist()]
        bits = [b & ((1 << width) - 1) for b in edge + small + wide]
    return [int(b) for b in bits]


def drawn(kinds: str) -> list[tuple[int, ...]]:
    """Return CASES tuples, one value for each kind. Among several sources two are often equal."""
    columns = [inputs(kind, WIDTH[kind]) for kind in kinds]
    rows = [tuple(int(RNG.choice(np.array(c, object))) for c in columns) for _ in range(CASES)]
    if len(kinds) > 1:
        rows[::7] = [(a, a & ((1 << WIDTH[kinds[1]]) - 1), *rest) for a, _, *rest in rows[::7]]
    # All special values of the first source are seen.
    return [(first, *row[1:]) for first, row in zip(columns[0], itertools.cycle(rows), strict=False)][:48]


def same(got: int, expected: int, kind: str, ulps: int, error: float = 0.0) -> bool:
    width = WIDTH[kind]
    if kind in "fhd":
        dtype: Any = {16: np.float16, 32: np.float32, 64: np.float64}[width]
        raw: Any = {16: np.uint16, 32: np.uint32, 64: np.uint64}[width]
        a, b = (np.array([x & ((1 << width) - 1)], raw).view(dtype)[0] for x in (got, expected))
        if np.isnan(a) or np.isnan(b):
            return bool(np.isnan(a) and np.isnan(b))
        if ulps or error:
            with np.errstate(all="ignore"):
                return bool(a == b or abs(float(a) - float(b)) <= max(ulps * float(np.spacing(abs(b))), error))
        # -0 and +0 are distinguished only where the text does so: its sums and roundings write either.
        if a == 0 and b == 0:
            return True
    return (got ^ expected) & ((1 << width) - 1) == 0


APPROXIMATE = {"exp": 1, "log": 1, "rcp": 1, "rsq": 2, "sqrt": 1}
"""Units in the last place."""
UNREADABLE = {
    "v_accvgpr_write_b32": "no pseudo-code",
    "v_accvgpr_read_b32": "no pseudo-code",
    "v_accvgpr_mov_b32": "no pseudo-code",
    "v_perm_b32": "a function in the text",
    "v_maximum3_f32": "v_maximum_f32 has none on its own",
    "v_minimum3_f32": "v_minimum_f32 has none on its own",
    "v_div_fixup_f32": "UNDERFLOW_F32 is not said",
    "v_div_fixup_f64": "UNDERFLOW_F64 is not said",
    "v_pk_mov_b32": "reads the encoding",
}


def compare(name: str, lanes: vector.Lanes, kinds: str, rows: list[tuple[int, ...]], packed: bool = False) -> None:
    """Run `name` on a lane for each row. The sources begin at v0, v2, v4; the result is v6, and the last where there is
    one more kind than sources."""
    registers: dict[int, list[int]] = {}
    widths = [64 if packed and k in "uif" else 32 if packed else WIDTH[k] for k in kinds]
    for k in range(len(kinds)):
        column = [row[k] for row in rows]
        registers[2 * k] = [bits & 0xFFFFFFFF for bits in column]
        registers[2 * k + 1] = [bits >> 32 for bits in column]
    accumulates = name in vector.ACCUMULATE
    result_width = 64 if packed and lanes.result in "uif" else 32 if packed else WIDTH[lanes.result]
    places = [f"v[{2 * k}:{2 * k + 1}]" if w == 64 else f"v{2 * k}" for k, w in enumerate(widths)]
    if accumulates:
        text = f"{name} {places[2]}, {places[0]}, {places[1]}"
    else:
        text = f"{name} {'v[6:7]' if result_width == 64 else 'v6'}, {', '.join(places)}"
    waves = execute(
        text, {r: np.array(v + [0] * (64 - len(v)), np.uint32) for r, v in registers.items()}, target="gfx950"
    )
    at = 4 if accumulates else 6
    ulps = next((u for word, u in APPROXIMATE.items() if name.startswith(f"v_{word}_")), 0)
    # The text multiplies by a rounded 2 pi first.
    error = 1e-5 if name.startswith(("v_sin", "v_cos")) else 0.0
    part = WIDTH[lanes.result]
    for lane, row in enumerate(rows):
        got = int(waves.U[at][0, lane]) | int(waves.U[at + 1][0, lane]) << 32
        names = {f"S{k}": Value(bits, "b", w) for k, (bits, w) in enumerate(zip(row, widths, strict=True))}
        names["D0"] = Value(row[2] if accumulates else 0, "b", 64)
        want = MACHINE.run(name, names)["D0"].bits
        for shift in range(0, result_width if packed else part, part):
            assert same(got >> shift, want >> shift, lanes.result, ulps, error), (
                f"{name} of {[hex(x) for x in row]}: {got:#x}, by the pseudo-code {want:#x}"
            )


def readable(name: str, row: tuple[int, ...]) -> bool:
    """Return whether the text is right for these values: its roundings go through sums that are rounded themselves."""
    if name.startswith("v_rndne_f"):
        dtype: Any = np.float16 if name.endswith("16") else np.float32
        x = float(np.array([row[0]], np.uint16 if name.endswith("16") else np.uint32).view(dtype)[0])
        return not math.isfinite(x) or 0.5 <= abs(x) < (512 if name.endswith("16") else 1 << 20) or x == 0
    if name.startswith("v_frexp"):
        return row[0] << 1 & ((1 << (64 if name.endswith("64") else 32)) - 1) != 0
    if name.startswith("v_ldexp"):
        return row[1] < 200
    if name.startswith(("v_sin", "v_cos")):
        return abs(float(np.array([row[0]], np.uint32).view(np.float32)[0])) < 8
    return True


@pytest.mark.parametrize("name", [n for n in (*vector.TABLE, *vector.ACCUMULATE) if n not in UNREADABLE])
def test_vector_opcodes_do_what_the_pseudo_code_says(name: str) -> None:
    lanes = vector.TABLE[vector.ACCUMULATE.get(name, name)]
    rows = [row for row in drawn(lanes.sources) if readable(name, row)]
    assert len(rows) >= 8
    compare(name, lanes, lanes.sources, rows)


@pytest.mark.parametrize("name", [n for n in vector.PACKED if n not in UNREADABLE])
def test_packed_opcodes_do_what_the_pseudo_code_says(name: str) -> None:
    lanes = vector.PACKED[name]
    part = WIDTH[lanes.result]
    pairs = zip(drawn(lanes.sources), drawn(lanes.sources)[::-1], strict=False)
    compare(
        name, lanes, lanes.sources, [tuple(a | b << part for a, b in zip(*two, strict=True)) for two in pairs], True
    )


@pytest.mark.parametrize("name", [*scalar.TABLE, *scalar.IN_PLACE, *scalar.SAVE_EXEC])
@pytest.mark.parametrize("scc", [False, True])
def test_scalar_opcodes_do_what_the_pseudo_code_says(name: str, scc: bool) -> None:
    short = name in ("s_movk_i32", *scalar.IN_PLACE)
    saves = name in scalar.SAVE_EXEC
    opcode = scalar.TABLE.get(name) or scalar.IN_PLACE.get(name) or scalar.Scalar("q", "q", np.positive)
    kinds = "i" if short else opcode.sources
    rows = [(value,) for value in (0, 1, 0x7FFF, 0x8000, 0xFFFF, 1234)] if short else drawn(kinds)
    before = 0x7FFFFFF0
    for group in [[row] for row in rows] if short else [rows]:
        registers: dict[int, Any] = {}
        for k, kind in enumerate(kinds):
            registers[2 * k] = [row[k] & 0xFFFFFFFF for row in group]
            if WIDTH[kind] == 64:
                registers[2 * k + 1] = [row[k] >> 32 for row in group]
        registers[8] = before
        places = [f"s[{2 * k}:{2 * k + 1}]" if WIDTH[kind] == 64 else f"s{2 * k}" for k, kind in enumerate(kinds)]
        wide = WIDTH[opcode.result] == 64
        sources = f"{group[0][0]:#x}" if short else ", ".join(places)
        exec_ = 0xF0F0F0F0F0F0F0F0
        waves = execute(f"{name} {'s[8:9]' if wide else 's8'}, {sources}", None, registers, scc=scc, exec_=exec_)
        for wave, row in enumerate(group):
            got = int(waves.SU[8][wave, 0]) | (int(waves.SU[9][wave, 0]) << 32 if wide else 0)
            names = {
                f"S{k}": Value(bits, "b", WIDTH[kind]) for k, (bits, kind) in enumerate(zip(row, kinds, strict=True))
            }
            names |= {"D0": Value(before, "b", 64 if wide else 32), "SCC": Value(int(scc), "u", 1)}
            names["EXEC"] = Value(exec_, "b", 64)
            after = MACHINE.run(name, names)
            words = f"{name} of {[hex(x) for x in row]}"
            assert hex(got) == hex(after["D0"].bits & ((1 << (64 if wide else 32)) - 1)), words
            assert bool(waves.scc[wave, 0]) == bool(after["SCC"].bits), words
            if saves:
                assert int(waves.SQ[EXEC][wave, 0]) == after["EXEC"].bits, words


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_what_is_left_out_cannot_be_read(name: str) -> None:
    # So that a table that says more, or a reader that can do more, is used.
    lanes = vector.TABLE.get(name) or vector.PACKED[name]
    with pytest.raises(NotRead):
        for row in drawn("uuu"):
            MACHINE.run(
                name, {**{f"S{k}": Value(bits, "b", 64) for k, bits in enumerate(row)}, "D0": Value(0, "b", 64)}
            )
    assert lanes


COMPARED = [f"s_cmp_{how}_{kind}" for how in scalar.COMPARE for kind in ("i32", "u32")] + [
    "s_cmp_eq_u64",
    "s_cmp_lg_u64",
]
SCALAR_REST = [*COMPARED, "s_addc_u32", "s_subb_u32", "s_cselect_b32", "s_cselect_b64", "s_cmov_b32", "s_cmov_b64"]
SCALAR_REST += ["s_bitcmp0_b32", "s_bitcmp1_b32"]


@pytest.mark.parametrize("name", SCALAR_REST)
@pytest.mark.parametrize("scc", [False, True])
def test_scalar_comparisons_and_choices_do_what_the_pseudo_code_says(name: str, scc: bool) -> None:
    width = 64 if name.endswith("64") else 32
    rows = drawn("qq" if width == 64 else "uu")
    compares = name.startswith(("s_cmp_", "s_bitcmp"))
    count = 1 if name.startswith("s_cmov") else 2
    places = ["s[0:1]", "s[2:3]"] if width == 64 else ["s0", "s2"]
    operands = places[:count] if compares else ["s[8:9]" if width == 64 else "s8", *places[:count]]
    registers: dict[int, Any] = {2 * k + j: [row[k] >> 32 * j for row in rows] for k in range(2) for j in range(2)}
    waves = execute(f"{name} {', '.join(operands)}", None, {**registers, 8: 7, 9: 9}, scc=scc)
    before = 9 << 32 | 7
    for wave, row in enumerate(rows):
        names = {f"S{k}": Value(bits, "b", width) for k, bits in enumerate(row)}
        after = MACHINE.run(name, {**names, "SCC": Value(int(scc), "u", 1), "D0": Value(before, "b", 64)})
        got = int(waves.SU[8][wave, 0]) | int(waves.SU[9][wave, 0]) << 32
        if width == 32:
            got, after["D0"] = got & 0xFFFFFFFF, Value(after["D0"].bits & 0xFFFFFFFF, "b", 32)
        words = f"{name} of {[hex(x) for x in row]}"
        assert hex(got) == hex(after["D0"].bits), words
        assert bool(waves.scc[wave, 0]) == bool(after["SCC"].bits), words
