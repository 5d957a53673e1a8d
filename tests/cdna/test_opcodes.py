"""The result of each opcode, with values of the pseudo-code in the public ISA guides."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from assembly import execute

from gluonmap import cdna
from gluonmap.cdna.access import ATOMICS
from gluonmap.cdna.emit.vector import _SPECIAL
from gluonmap.cdna.lds import _UPDATES
from gluonmap.cdna.opcodes import scalar, vector

NAN, INF = math.nan, math.inf
TINY = 2.0**-149

# Opcode → rows: the sources in order, then the result, of the kinds in the table: numbers of u, w, q are bits,
# of i, s, l signed, of f, h, d floats.
LANES = {
    "v_mov_b32": [(0x12345678, 0x12345678)],
    "v_mov_b64": [(0x1122334455667788, 0x1122334455667788)],
    "v_accvgpr_write_b32": [(7, 7)],
    "v_accvgpr_read_b32": [(7, 7)],
    "v_accvgpr_mov_b32": [(7, 7)],
    "v_not_b32": [(0, 0xFFFFFFFF), (0xF0F0F0F0, 0x0F0F0F0F)],
    "v_and_b32": [(0xFF00FF00, 0x0FF00FF0, 0x0F000F00)],
    "v_or_b32": [(0xFF000000, 0x000000FF, 0xFF0000FF)],
    "v_xor_b32": [(0xFF00FF00, 0x0FF00FF0, 0xF0F0F0F0)],
    "v_xnor_b32": [(0xFF00FF00, 0x0FF00FF0, 0x0F0F0F0F)],
    "v_or3_b32": [(1, 2, 4, 7)],
    "v_and_or_b32": [(0xFF, 0x3C, 0x80000000, 0x8000003C)],
    "v_lshl_or_b32": [(3, 4, 1, 0x31), (1, 33, 0, 2)],
    "v_bfi_b32": [(0xFFFF0000, 0x12345678, 0x9ABCDEF0, 0x1234DEF0)],
    "v_bfe_u32": [(0xABCD1234, 8, 8, 0x12), (0xABCD1234, 16, 16, 0xABCD), (5, 0, 0, 0)],
    # The last one reaches beyond bit 31.
    "v_bfe_i32": [(0x0000F000, 12, 4, -1), (0x00007000, 12, 4, 7), (5, 0, 0, 0), (-0x55555556, 14, 31, -0x15556)],
    "v_bfm_b32": [(4, 8, 0xF00)],
    "v_bfrev_b32": [(1, 0x80000000), (0x12345678, 0x1E6A2C48)],
    "v_bcnt_u32_b32": [(0xFF, 10, 18)],
    "v_ffbh_u32": [(1, 31), (0x80000000, 0), (0, 0xFFFFFFFF), (0x00FFFFFF, 8), (0xFFFFFFFF, 0)],
    "v_ffbh_i32": [(0x10000000, 3), (0xFFFFFFFF, 0xFFFFFFFF), (0xFFFF0000, 16), (0, 0xFFFFFFFF)],
    "v_ffbl_b32": [(1, 0), (0x80000000, 31), (0, 0xFFFFFFFF), (12, 2)],
    "v_perm_b32": [
        (0x77665544, 0x33221100, 0x07060504, 0x77665544),
        (0x77665544, 0x33221100, 0x03020100, 0x33221100),
        (0x77665544, 0x33221100, 0x05040100, 0x55441100),
        (0x77665544, 0x33221100, 0x0C0D0700, 0x00FF7700),
        (0x80000000, 0x00008000, 0x0B0A0908, 0xFF0000FF),
    ],
    "v_alignbit_b32": [(0x00000001, 0x80000000, 31, 3), (0xAAAA5555, 0x12345678, 16, 0x55551234)],
    "v_alignbyte_b32": [(0x44332211, 0x88776655, 1, 0x11887766)],
    "v_lshlrev_b32": [(4, 1, 16), (36, 1, 16)],
    "v_lshrrev_b32": [(4, 0x80000000, 0x08000000)],
    "v_ashrrev_i32": [(4, -16, -1), (31, 5, 0)],
    "v_lshlrev_b64": [(33, 1, 1 << 33), (65, 1, 2)],
    "v_lshrrev_b64": [(33, 1 << 40, 1 << 7)],
    "v_ashrrev_i64": [(40, -(1 << 40), -1)],
    "v_add_u32": [(0xFFFFFFFF, 2, 1)],
    "v_sub_u32": [(1, 2, 0xFFFFFFFF)],
    "v_subrev_u32": [(1, 2, 1)],
    "v_add3_u32": [(0xFFFFFFFF, 1, 5, 5)],
    "v_lshl_add_u32": [(3, 2, 5, 17)],
    "v_add_lshl_u32": [(3, 2, 4, 80)],
    "v_xad_u32": [(6, 3, 10, 15)],
    "v_lshl_add_u64": [(3, 2, 5, 17), (1 << 40, 3, 1, (1 << 43) + 1)],
    "v_mul_lo_u32": [(0x10001, 0x10001, 0x00020001)],
    "v_mul_hi_u32": [(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE)],
    "v_mul_hi_i32": [(-1, 5, -1), (1 << 30, 8, 2)],
    "v_mul_u32_u24": [(0xFF000002, 3, 6)],
    "v_mul_i32_i24": [(0xFFFFFF, 3, -3)],
    "v_mad_u32_u24": [(0xFF000002, 3, 10, 16)],
    "v_mad_i32_i24": [(0xFFFFFF, 3, 10, 7)],
    "v_max_i32": [(-1, 1, 1)],
    "v_min_i32": [(-1, 1, -1)],
    "v_max_u32": [(0xFFFFFFFF, 1, 0xFFFFFFFF)],
    "v_min_u32": [(0xFFFFFFFF, 1, 1)],
    "v_max3_i32": [(-5, 3, 1, 3)],
    "v_min3_i32": [(-5, 3, 1, -5)],
    "v_max3_u32": [(5, 3, 0xFFFFFFFF, 0xFFFFFFFF)],
    "v_min3_u32": [(5, 3, 0xFFFFFFFF, 3)],
    "v_med3_i32": [(-5, 3, 1, 1), (3, 1, 9, 3)],
    "v_med3_u32": [(5, 3, 0xFFFFFFFF, 5)],
    "v_add_u16": [(0xFFFF, 2, 1)],
    "v_sub_u16": [(1, 2, 0xFFFF)],
    "v_subrev_u16": [(1, 2, 1)],
    "v_mul_lo_u16": [(0x101, 0x101, 0x0201)],
    "v_max_u16": [(0xFFFF, 1, 0xFFFF)],
    "v_min_u16": [(0xFFFF, 1, 1)],
    "v_max_i16": [(-1, 1, 1)],
    "v_min_i16": [(-1, 1, -1)],
    "v_lshlrev_b16": [(4, 0x1234, 0x2340)],
    "v_lshrrev_b16": [(4, 0x1234, 0x0123)],
    "v_ashrrev_i16": [(4, -32, -2)],
    "v_add_f32": [(1.5, 2.25, 3.75), (INF, -INF, NAN), (1.0, 2.0**-24, 1.0), (1.0, 2.0**-23, 1.0 + 2.0**-23)],
    "v_sub_f32": [(1.5, 2.25, -0.75)],
    "v_subrev_f32": [(1.5, 2.25, 0.75)],
    "v_mul_f32": [(1.5, -2.0, -3.0), (0.0, INF, NAN), (2.0**-100, 2.0**-49, TINY)],
    "v_mul_legacy_f32": [(0.0, INF, 0.0), (1.5, 2.0, 3.0)],
    "v_fma_f32": [
        (2.0, 3.0, 4.0, 10.0),
        # The product alone would round to 1 + 2**-11: the last bit shows that there is one rounding.
        (1.0 + 2.0**-12, 1.0 + 2.0**-12, -1.0, 2.0**-11 + 2.0**-24),
        # A tie in float32 but for a bit below float64: up, not to even.
        (1.0 + 2.0**-23, 2.0**-24, 1.0, 1.0 + 2.0**-23),
    ],
    "v_max_f32": [(1.0, -2.0, 1.0), (NAN, 3.0, 3.0)],
    "v_min_f32": [(1.0, -2.0, -2.0), (NAN, 3.0, 3.0)],
    "v_max3_f32": [(1.0, 5.0, NAN, 5.0)],
    "v_min3_f32": [(1.0, 5.0, NAN, 1.0)],
    "v_maximum3_f32": [(1.0, 5.0, 3.0, 5.0), (NAN, 5.0, 3.0, NAN), (-0.0, 0.0, -0.0, 0.0), (-0.0, -0.0, -0.0, -0.0)],
    "v_minimum3_f32": [(1.0, 5.0, 3.0, 1.0), (1.0, NAN, 3.0, NAN), (0.0, -0.0, 0.0, -0.0)],
    "v_med3_f32": [(1.0, 5.0, 3.0, 3.0), (NAN, 5.0, 3.0, 3.0)],
    "v_exp_f32": [(3.0, 8.0), (-INF, 0.0), (0.0, 1.0)],
    "v_log_f32": [(8.0, 3.0), (0.0, -INF), (-1.0, NAN)],
    "v_rcp_f32": [(4.0, 0.25), (0.0, INF), (-INF, -0.0)],
    "v_rcp_iflag_f32": [(4.0, 0.25)],
    "v_rsq_f32": [(4.0, 0.5), (0.0, INF)],
    "v_sqrt_f32": [(9.0, 3.0), (-1.0, NAN)],
    "v_sin_f32": [(0.25, 1.0), (0.0, 0.0)],
    "v_cos_f32": [(0.5, -1.0), (0.0, 1.0)],
    "v_rndne_f32": [(2.5, 2.0), (3.5, 4.0), (-0.5, -0.0)],
    "v_floor_f32": [(-1.5, -2.0)],
    "v_ceil_f32": [(-1.5, -1.0)],
    "v_trunc_f32": [(-1.5, -1.0)],
    "v_ldexp_f32": [(1.5, 3, 12.0), (1.0, -149, TINY), (1.0, 2000, INF), (1.0, -2000, 0.0)],
    "v_frexp_mant_f32": [(12.0, 0.75), (INF, INF)],
    "v_frexp_exp_i32_f32": [(12.0, 4), (INF, 0)],
    "v_div_fixup_f32": [
        (0.5, 4.0, 2.0, 0.5),
        (0.5, -4.0, 2.0, -0.5),
        (1.0, 0.0, 0.0, NAN),
        (1.0, INF, INF, NAN),
        (1.0, 0.0, -1.0, -INF),
        (1.0, INF, 1.0, 0.0),
    ],
    "v_dot2_f32_f16": [(0x40003C00, 0x44004200, 0.5, 11.5)],
    "v_dot2c_f32_bf16": [],
    "v_dot4_i32_i8": [(0xFF020304, 0x05060708, 100, 100 - 5 + 12 + 21 + 32), (0x80808080, 0x80808080, 0, 65536)],
    "v_add_f16": [(1.5, 2.25, 3.75), (65504.0, 65504.0, INF)],
    "v_sub_f16": [(1.5, 2.25, -0.75)],
    "v_subrev_f16": [(1.5, 2.25, 0.75)],
    "v_mul_f16": [(1.5, 2.0, 3.0)],
    "v_max_f16": [(1.0, NAN, 1.0)],
    "v_min_f16": [(1.0, NAN, 1.0)],
    "v_max3_f16": [(1.0, 2.0, 3.0, 3.0)],
    "v_min3_f16": [(1.0, 2.0, 3.0, 1.0)],
    "v_med3_f16": [(1.0, 5.0, 3.0, 3.0)],
    "v_fma_f16": [(1.0 + 2.0**-10, 1.0 + 2.0**-10, -1.0, 2.0**-9 + 2.0**-20)],
    "v_exp_f16": [(3.0, 8.0)],
    "v_log_f16": [(8.0, 3.0)],
    "v_rcp_f16": [(4.0, 0.25)],
    "v_sqrt_f16": [(9.0, 3.0)],
    "v_rndne_f16": [(2.5, 2.0)],
    "v_floor_f16": [(-1.5, -2.0)],
    "v_trunc_f16": [(-1.5, -1.0)],
    "v_add_f64": [(1.0, 2.0**-50, 1.0 + 2.0**-50)],
    "v_mul_f64": [(1.5, 2.0, 3.0)],
    # Halfway between two, where the smallest addend decides.
    "v_fma_f64": [
        (1.0 + 2.0**-52, 1.0 + 2.0**-52, -1.0, 2.0**-51 + 2.0**-104),
        (2.0, 3.0, INF, INF),
        (1.5, 1 + 2.0**-52, 2.0**-200, 1.5 + 2.0**-51),
        (1.5, 1 + 2.0**-52, -(2.0**-200), 1.5 + 2.0**-52),
        (2.0**1000, 2.0**1000, -INF, -INF),
        (2.0**1000, 2.0**100, -(2.0**1023), INF),
        (2.0**-1000, 2.0**-74, 2.0**-1074, 2.0**-1073),
    ],
    "v_rcp_f64": [(4.0, 0.25)],
    "v_div_fixup_f64": [(0.5, 4.0, -2.0, -0.5), (1.0, 0.0, 0.0, NAN)],
    "v_ldexp_f64": [(1.5, 3, 12.0)],
    "v_frexp_mant_f64": [(12.0, 0.75)],
    "v_frexp_exp_i32_f64": [(12.0, 4)],
    "v_max_f64": [(1.5, NAN, 1.5)],
    "v_min_f64": [(1.5, -2.0, -2.0)],
    "v_cvt_f32_f16": [(1.5, 1.5), (2.0**-24, 2.0**-24)],
    "v_cvt_f16_f32": [(1.0 + 2.0**-11, 1.0), (1.0 + 3 * 2.0**-11, 1.0 + 2.0**-9), (1e6, INF), (2.0**-25, 0.0)],
    "v_cvt_f32_i32": [(-3, -3.0), (2**24 + 1, 16777216.0)],
    "v_cvt_f32_u32": [(0xFFFFFFFF, 2.0**32)],
    "v_cvt_i32_f32": [(-1.9, -1), (3e9, 2**31 - 1), (-3e9, -(2**31)), (NAN, 0)],
    "v_cvt_u32_f32": [(1.9, 1), (-1.0, 0), (5e9, 0xFFFFFFFF), (NAN, 0)],
    "v_cvt_f16_i16": [(-3, -3.0)],
    "v_cvt_f16_u16": [(3, 3.0)],
    "v_cvt_i16_f16": [(-1.5, -1)],
    "v_cvt_u16_f16": [(-1.5, 0), (3.5, 3)],
    "v_cvt_f64_f32": [(1.5, 1.5)],
    "v_cvt_f32_f64": [(1.0 + 2.0**-30, 1.0)],
    "v_cvt_f64_i32": [(-3, -3.0)],
    "v_cvt_f64_u32": [(0xFFFFFFFF, 4294967295.0)],
    "v_cvt_i32_f64": [(-1.5, -1)],
    "v_cvt_u32_f64": [(5e9, 0xFFFFFFFF)],
    "v_cvt_f32_ubyte0": [(0x04030201, 1.0)],
    "v_cvt_f32_ubyte1": [(0x04030201, 2.0)],
    "v_cvt_f32_ubyte2": [(0x04030201, 3.0)],
    "v_cvt_f32_ubyte3": [(0xFF030201, 255.0)],
    "v_cvt_pk_bf16_f32": [
        (1.0, -2.0, 0xC0003F80),
        (1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, 0x3F823F80),
        (NAN, 0.0, 0x00007FC0),
    ],
    "v_cvt_pk_f16_f32": [(1.0, -2.0, 0xC0003C00)],
    "v_cvt_pkrtz_f16_f32": [(1.0 + 2.0**-10 + 2.0**-11, -1.0 - 2.0**-11, 0xBC003C01)],
}
ONE_TARGET = {"v_cvt_pk_bf16_f32": "gfx950", "v_cvt_pk_f16_f32": "gfx950"}
SIZES = {**dict.fromkeys("uif", 1), **dict.fromkeys("wsh", 1), **dict.fromkeys("qld", 2)}
DTYPES = {
    "u": np.uint32,
    "i": np.int32,
    "f": np.float32,
    "w": np.uint16,
    "s": np.int16,
    "h": np.float16,
    "q": np.uint64,
    "l": np.int64,
    "d": np.float64,
}


def words(value: float, kind: str) -> list[int]:
    """Return the registers that hold a value, the lower first. Signed numbers may be given as their bits."""
    dtype = np.dtype(DTYPES[kind])
    if kind in "fhd":
        raw = np.array([value], dtype).tobytes()
    else:
        raw = (int(value) & ((1 << 8 * dtype.itemsize) - 1)).to_bytes(dtype.itemsize, "little")
    raw += bytes(-len(raw) % 4)
    return [int.from_bytes(raw[k : k + 4], "little") for k in range(0, len(raw), 4)]


def register(first: int, kind: str) -> str:
    return f"v{first}" if SIZES[kind] == 1 else f"v[{first}:{first + 1}]"


@pytest.mark.parametrize("name", sorted(LANES))
def test_lane_opcodes(name: str) -> None:
    lanes = vector.TABLE[name]
    for row in LANES[name]:
        *sources, expected = row
        given = {
            2 * k + j: word
            for k, (value, kind) in enumerate(zip(sources, lanes.sources, strict=True))
            for j, word in enumerate(words(value, kind))
        }
        operands = [register(2 * k, kind) for k, kind in enumerate(lanes.sources)]
        waves = execute(f"{name} {', '.join([register(8, lanes.result), *operands])}", given)
        got = [int(waves.U[8 + k][0, 0]) for k in range(SIZES[lanes.result])]
        want = words(expected, lanes.result)
        if lanes.keeps_high:
            want[0] |= 0xDEAD0000
        if isinstance(expected, float) and math.isnan(expected):
            dtype = DTYPES[lanes.result]
            assert np.isnan(np.array(got, np.uint32).view(dtype)[0]), row
        else:
            assert [hex(w) for w in got] == [hex(w) for w in want], row


def test_every_lane_opcode_has_a_vector() -> None:
    assert LANES.keys() == vector.TABLE.keys()


SCALAR = {
    # Sources, result, SCC afterwards (None: as it was).
    "s_mov_b32": [(5, 5, None)],
    "s_mov_b64": [(1 << 40, 1 << 40, None)],
    "s_brev_b32": [(1, 0x80000000, None)],
    "s_not_b32": [(0xFFFFFFFF, 0, 0), (0, 0xFFFFFFFF, 1)],
    "s_not_b64": [(0, 2**64 - 1, 1)],
    "s_and_b32": [(12, 10, 8, 1), (1, 2, 0, 0)],
    "s_and_b64": [(1 << 40, 1 << 40, 1 << 40, 1)],
    "s_or_b32": [(12, 10, 14, 1)],
    "s_or_b64": [(1 << 40, 1, (1 << 40) + 1, 1)],
    "s_xor_b32": [(12, 12, 0, 0)],
    "s_xor_b64": [(1 << 40, 1, (1 << 40) + 1, 1)],
    "s_andn2_b32": [(12, 10, 4, 1)],
    "s_andn2_b64": [(3 << 40, 1 << 40, 2 << 40, 1)],
    "s_orn2_b32": [(0, 0xFFFFFFFE, 1, 1)],
    "s_orn2_b64": [(0, 2**64 - 2, 1, 1)],
    "s_nand_b32": [(0xFFFFFFFF, 0xFFFFFFFF, 0, 0)],
    "s_nand_b64": [(2**64 - 1, 2**64 - 2, 1, 1)],
    "s_nor_b32": [(0, 0xFFFFFFFE, 1, 1)],
    "s_nor_b64": [(0, 2**64 - 2, 1, 1)],
    "s_xnor_b32": [(5, 5, 0xFFFFFFFF, 1)],
    "s_xnor_b64": [(5, 5, 2**64 - 1, 1)],
    "s_lshl_b32": [(1, 33, 2, 1), (0x80000000, 1, 0, 0)],
    "s_lshr_b32": [(0x80000000, 31, 1, 1)],
    "s_ashr_i32": [(-8, 2, -2, 1)],
    "s_lshl_b64": [(1, 40, 1 << 40, 1)],
    "s_lshr_b64": [(1 << 40, 40, 1, 1)],
    "s_ashr_i64": [(-(1 << 40), 40, -1, 1)],
    "s_bfe_u32": [(0xABCD1234, 0x00080008, 0x12, 1), (5, 0, 0, 0)],
    "s_bfe_i32": [(0xF000, 0x0004000C, -1, 1)],
    "s_bfe_u64": [(0xAB << 40, 0x00080028, 0xAB, 1)],
    "s_bfm_b32": [(4, 8, 0xF00, None)],
    "s_add_u32": [(0xFFFFFFFF, 1, 0, 1), (1, 2, 3, 0)],
    "s_sub_u32": [(1, 2, 0xFFFFFFFF, 1), (2, 1, 1, 0)],
    "s_add_i32": [(2**31 - 1, 1, -(2**31), 1), (-1, 1, 0, 0)],
    "s_sub_i32": [(-(2**31), 1, 2**31 - 1, 1), (1, 2, -1, 0)],
    "s_mul_i32": [(0x10001, 0x10001, 0x20001, None)],
    "s_mul_hi_u32": [(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE, None)],
    "s_mul_hi_i32": [(-1, 5, -1, None)],
    "s_lshl1_add_u32": [(3, 1, 7, 0)],
    "s_lshl2_add_u32": [(0x40000000, 1, 1, 1)],
    "s_lshl3_add_u32": [(1, 1, 9, 0)],
    "s_lshl4_add_u32": [(1, 1, 17, 0)],
    "s_min_i32": [(-1, 1, -1, 1), (1, -1, -1, 0)],
    "s_min_u32": [(0xFFFFFFFF, 1, 1, 0)],
    "s_max_i32": [(-1, 1, 1, 0)],
    "s_max_u32": [(0xFFFFFFFF, 1, 0xFFFFFFFF, 1)],
    "s_abs_i32": [(-5, 5, 1), (0, 0, 0)],
    "s_sext_i32_i16": [(0x8000, -32768, None)],
    "s_sext_i32_i8": [(0x80, -128, None)],
    "s_pack_ll_b32_b16": [(0x11112222, 0x33334444, 0x44442222, None)],
    "s_pack_lh_b32_b16": [(0x11112222, 0x33334444, 0x33332222, None)],
    "s_pack_hh_b32_b16": [(0x11112222, 0x33334444, 0x33331111, None)],
    "s_bcnt1_i32_b32": [(0xFF, 8, 1)],
    "s_bcnt1_i32_b64": [(0xFF << 40, 8, 1), (0, 0, 0)],
    "s_ff1_i32_b32": [(8, 3, None), (0, 0xFFFFFFFF, None)],
    "s_ff1_i32_b64": [(1 << 40, 40, None)],
    "s_flbit_i32_b32": [(1, 31, None)],
    "s_flbit_i32_b64": [(1, 63, None), (1 << 40, 23, None), (0, 0xFFFFFFFF, None)],
    "s_flbit_i32": [(1, 31, None), (0xFFFFFFF0, 28, None), (0, 0xFFFFFFFF, None), (0xFFFFFFFF, 0xFFFFFFFF, None)],
    "s_flbit_i32_i64": [(1 << 40, 23, None), (0xFFFFFFFF00000000, 32, None), (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF, None)],
}


@pytest.mark.parametrize("name", sorted(SCALAR))
def test_scalar_opcodes(name: str) -> None:
    entry = scalar.TABLE[name]
    for *sources, expected, condition in SCALAR[name]:
        given = {
            2 * k + j: word
            for k, (value, kind) in enumerate(zip(sources, entry.sources, strict=True))
            for j, word in enumerate(words(value, kind))
        }
        operands = [register(2 * k, kind).replace("v", "s") for k, kind in enumerate(entry.sources)]
        for before in (False, True):
            text = f"{name} {', '.join([register(8, entry.result).replace('v', 's'), *operands])}"
            waves = execute(text, s=given, scc=before)
            got = [int(waves.SU[8 + k][0, 0]) for k in range(SIZES[entry.result])]
            assert got == words(expected, entry.result), sources
            assert bool(waves.scc[0, 0]) == (before if condition is None else bool(condition)), sources


def test_every_scalar_opcode_has_a_vector() -> None:
    assert SCALAR.keys() | {"s_movk_i32"} == scalar.TABLE.keys()


def test_short_constants_are_sign_extended() -> None:
    waves = execute("s_movk_i32 s4, 0xff00\ns_addk_i32 s5, 0xffff\ns_mulk_i32 s6, 0xfffe", s={5: 3, 6: 5})
    assert [int(waves.SI[k][0, 0]) for k in (4, 5, 6)] == [-256, 2, -10]


def test_carry_goes_through_scc() -> None:
    waves = execute("s_add_u32 s4, s0, s2\ns_addc_u32 s5, s1, s3", s={0: 0xFFFFFFFF, 1: 1, 2: 1, 3: 2})
    assert [int(waves.SU[k][0, 0]) for k in (4, 5)] == [0, 4]
    waves = execute("s_sub_u32 s4, s0, s2\ns_subb_u32 s5, s1, s3", s={0: 0, 1: 5, 2: 1, 3: 2})
    assert [int(waves.SU[k][0, 0]) for k in (4, 5)] == [0xFFFFFFFF, 2]


def test_vector_carry_goes_through_a_bit_per_lane() -> None:
    text = "v_add_co_u32_e32 v4, vcc, v0, v2\nv_addc_co_u32_e32 v5, vcc, v1, v3, vcc"
    waves = execute(text, {0: [0xFFFFFFFF, 1], 1: [1, 1], 2: [1, 1], 3: [2, 2]})
    assert waves.U[4][0, :2].tolist() == [0, 2]
    assert waves.U[5][0, :2].tolist() == [4, 3]
    text = "v_sub_co_u32_e32 v4, vcc, v0, v2\nv_subb_co_u32_e32 v5, vcc, v1, v3, vcc"
    waves = execute(text, {0: [0, 1], 1: [5, 5], 2: [1, 1], 3: [2, 2]})
    assert waves.U[4][0, :2].tolist() == [0xFFFFFFFF, 0]
    assert waves.U[5][0, :2].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("lt", [1, 0, 0, 0]),
        ("eq", [0, 1, 0, 0]),
        ("le", [1, 1, 0, 0]),
        ("gt", [0, 0, 1, 0]),
        ("ge", [0, 1, 1, 0]),
        ("lg", [1, 0, 1, 0]),
        ("o", [1, 1, 1, 0]),
        ("u", [0, 0, 0, 1]),
        ("nge", [1, 0, 0, 1]),
        ("nlg", [0, 1, 0, 1]),
        ("ngt", [1, 1, 0, 1]),
        ("nle", [0, 0, 1, 1]),
        ("neq", [1, 0, 1, 1]),
        ("nlt", [0, 1, 1, 1]),
    ],
)
def test_float_comparisons_with_nan(how: str, expected: list[int]) -> None:
    a = np.array([1, 2, 3, NAN], np.float32).view(np.uint32)
    b = np.array([2, 2, 2, 2], np.float32).view(np.uint32)
    waves = execute(f"v_cmp_{how}_f32_e64 s[4:5], v0, v1", {0: a, 1: b}, exec_=15)
    assert int(waves.SQ[4][0, 0]) == sum(bit << k for k, bit in enumerate(expected))


def test_classes_of_floats() -> None:
    values = [NAN, INF, -INF, 1.0, -1.0, TINY, -TINY, 0.0, -0.0]
    raw = np.array([0x7F800001, *(int(np.float32(v).view(np.uint32)) for v in values)], np.uint32)
    bits = [0, 1, 9, 2, 8, 3, 7, 4, 6, 5]
    for k, bit in enumerate(bits):
        waves = execute(f"v_cmp_class_f32_e64 s[4:5], v0, {1 << bit:#x}", {0: raw}, exec_=(1 << len(raw)) - 1)
        assert int(waves.SQ[4][0, 0]) == 1 << k


def test_comparison_writes_zero_for_inactive_lanes() -> None:
    waves = execute("v_cmp_eq_u32_e32 vcc, 0, v0", {0: 0}, exec_=0xF0)
    assert int(waves.SQ[106][0, 0]) == 0xF0


def test_inactive_lanes_keep_their_registers() -> None:
    waves = execute("v_mov_b32_e32 v1, 7", {1: 3}, exec_=0b101)
    assert waves.U[1][0, :4].tolist() == [7, 3, 7, 3]


def test_division_is_rounded_correctly_over_the_whole_range() -> None:
    rng = np.random.default_rng(0)
    n, d = (np.ldexp(rng.uniform(1, 2, 64), rng.integers(-140, 128, 64)).astype(np.float32) for _ in range(2))
    d[:4], n[:4] = [2.0**-149, 3.0, 2.0**127, -0.0], [2.0**-149, 2.0**-149, 2.0**-149, 1.0]
    # The sequence that LLVM makes of n / d.
    waves = execute(
        """
        v_div_scale_f32 v2, s[0:1], v1, v1, v0
        v_rcp_f32_e32 v3, v2
        v_fma_f32 v4, -v2, v3, 1.0
        v_fmac_f32_e32 v3, v4, v3
        v_div_scale_f32 v4, vcc, v0, v1, v0
        v_mul_f32_e32 v5, v4, v3
        v_fma_f32 v6, -v2, v5, v4
        v_fmac_f32_e32 v5, v6, v3
        v_fma_f32 v2, -v2, v5, v4
        v_div_fmas_f32 v2, v2, v3, v5
        v_div_fixup_f32 v2, v2, v1, v0
        """,
        {0: n.view(np.uint32), 1: d.view(np.uint32)},
    )
    with np.errstate(all="ignore"):
        expected = (n.astype(np.float64) / d.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(waves.F[2][0], expected)


def test_division_of_float64() -> None:
    rng = np.random.default_rng(0)
    n, d = (np.ldexp(rng.uniform(1, 2, 64), rng.integers(-900, 900, 64)) for _ in range(2))
    words_ = {k: x.view(np.uint32)[j::2] for k, (x, j) in enumerate([(n, 0), (n, 1), (d, 0), (d, 1)])}
    # The sequence that LLVM makes of n / d.
    waves = execute(
        """
        v_div_scale_f64 v[4:5], s[0:1], v[2:3], v[2:3], v[0:1]
        v_rcp_f64_e32 v[6:7], v[4:5]
        v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0
        v_fmac_f64_e32 v[6:7], v[6:7], v[8:9]
        v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0
        v_fmac_f64_e32 v[6:7], v[6:7], v[8:9]
        v_div_scale_f64 v[8:9], vcc, v[0:1], v[2:3], v[0:1]
        v_mul_f64 v[10:11], v[8:9], v[6:7]
        v_fma_f64 v[4:5], -v[4:5], v[10:11], v[8:9]
        s_nop 1
        v_div_fmas_f64 v[4:5], v[4:5], v[6:7], v[10:11]
        v_div_fixup_f64 v[0:1], v[4:5], v[2:3], v[0:1]
        """,
        words_,
    )
    got = np.stack([waves.U[0][0], waves.U[1][0]], axis=-1).copy().view(np.float64)[:, 0]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, n / d)


def test_source_signs_clamp_and_output_scaling() -> None:
    one, three = 0x3F800000, 0x40400000
    assert execute("v_add_f32_e64 v2, -v0, |v1|", {0: one, 1: three | 0x80000000}).F[2][0, 0] == 2.0
    assert execute("v_add_f32_e64 v2, v0, v1 clamp", {0: one, 1: three}).F[2][0, 0] == 1.0
    assert execute("v_add_f32_e64 v2, v0, v1 mul:2", {0: one, 1: three}).F[2][0, 0] == 8.0
    assert execute("v_add_f32_e64 v2, v0, v1 div:2", {0: one, 1: three}).F[2][0, 0] == 2.0


def test_integers_saturate_under_clamp() -> None:
    assert int(execute("v_add_u32_e64 v2, v0, v1 clamp", {0: 0xFFFFFFFF, 1: 2}).U[2][0, 0]) == 0xFFFFFFFF
    assert int(execute("v_sub_u32_e64 v2, v0, 5 clamp", {0: 3}).U[2][0, 0]) == 0
    assert int(execute("v_subrev_u32_e64 v2, 5, v0 clamp", {0: 3}).U[2][0, 0]) == 0


def test_multiply_add_with_a_constant() -> None:
    two, three = (int(np.float32(x).view(np.uint32)) for x in (2, 3))
    assert execute("v_fmamk_f32 v2, v0, 0x41200000, v1", {0: two, 1: three}).F[2][0, 0] == 23.0
    assert execute("v_fmaak_f32 v2, v0, v1, 0x41200000", {0: two, 1: three}).F[2][0, 0] == 16.0
    waves = execute("v_fmac_f32_e32 v2, v0, v1", {0: two, 1: three, 2: two})
    assert waves.F[2][0, 0] == 8.0


def test_dot_products_that_accumulate() -> None:
    three = int(np.float32(3).view(np.uint32))
    assert execute("v_dot2c_f32_f16_e32 v2, v0, v1", {0: 0x40003C00, 1: 0x44004200, 2: three}).F[2][0, 0] == 14.0
    assert execute("v_dot2c_f32_bf16_e32 v2, v0, v1", {0: 0x40003F80, 1: 0x40804040, 2: three}).F[2][0, 0] == 14.0
    assert int(execute("v_dot4c_i32_i8_e32 v2, v0, v1", {0: 0xFF020304, 1: 0x05060708, 2: 100}).I[2][0, 0]) == 160
    with pytest.raises(cdna.NotExecuted, match="op_sel_hi"):
        execute("v_dot2_f32_f16 v2, v0, v1, v2 op_sel_hi:[0,1,1]", {0: 0, 1: 0})


ONE, TWO, THREE = 0x3C00, 0x4000, 0x4200
"""float16."""
PAIRS = {
    # Sources and result, the lower half last: of 16 bits in one register, of 32 in two.
    "v_pk_add_f16": [(ONE << 16 | TWO, TWO << 16 | ONE, THREE << 16 | THREE)],
    "v_pk_mul_f16": [(ONE << 16 | TWO, THREE << 16 | ONE, THREE << 16 | TWO)],
    "v_pk_fma_f16": [(ONE << 16 | TWO, TWO << 16 | ONE, ONE << 16 | ONE, THREE << 16 | THREE)],
    "v_pk_max_f16": [(ONE << 16 | TWO, TWO << 16 | 0x7E00, TWO << 16 | TWO)],
    "v_pk_min_f16": [(ONE << 16 | TWO, 0xC000 << 16 | 0x7E00, 0xC000 << 16 | TWO)],
    "v_pk_add_u16": [(0xFFFF0001, 0x00020003, 0x00010004)],
    "v_pk_add_i16": [(0xFFFF0001, 0x00020003, 0x00010004)],
    "v_pk_sub_u16": [(0x00010005, 0x00020003, 0xFFFF0002)],
    "v_pk_sub_i16": [(0x00010005, 0x00020003, 0xFFFF0002)],
    "v_pk_mul_lo_u16": [(0x01000003, 0x01010005, 0x0100000F)],
    "v_pk_mad_u16": [(0x01000003, 0x01010005, 0x00010002, 0x01010011)],
    "v_pk_max_i16": [(0xFFFF0001, 0x00010002, 0x00010002)],
    "v_pk_max_u16": [(0xFFFF0001, 0x00010002, 0xFFFF0002)],
    "v_pk_min_i16": [(0xFFFF0001, 0x00010002, 0xFFFF0001)],
    "v_pk_min_u16": [(0xFFFF0001, 0x00010002, 0x00010001)],
    "v_pk_lshlrev_b16": [(0x00110004, 0x80010001, 0x00020010)],
    "v_pk_lshrrev_b16": [(0x00040011, 0x80018001, 0x08004000)],
    "v_pk_ashrrev_i16": [(0x00040001, 0x80008002, 0xF800C001)],
    "v_pk_add_f32": [(0x3F80000040000000, 0x400000003F800000, 0x4040000040400000)],
    "v_pk_mul_f32": [(0x3F80000040000000, 0x404000003F800000, 0x4040000040000000)],
    "v_pk_fma_f32": [(0x3F80000040000000, 0x400000003F800000, 0x3F8000003F800000, 0x4040000040400000)],
    "v_pk_mov_b32": [(0x1111111122222222, 0x3333333344444444, 0x4444444422222222)],
}


@pytest.mark.parametrize("name", sorted(vector.PACKED))
def test_packed_opcodes(name: str) -> None:
    wide = vector.PACKED[name].result in "uif"
    for *sources, expected in PAIRS[name]:
        given = {2 * k + j: bits >> 32 * j & 0xFFFFFFFF for k, bits in enumerate(sources) for j in range(2)}
        places = [f"v[{2 * k}:{2 * k + 1}]" if wide else f"v{2 * k}" for k in range(len(sources))]
        # The default takes the lower register of each source for the lower result, the upper ones for the upper.
        how = " op_sel_hi:[0,1]" if name == "v_pk_mov_b32" else ""
        waves = execute(f"{name} {'v[8:9]' if wide else 'v8'}, {', '.join(places)}{how}", given)
        got = int(waves.U[8][0, 0]) | (int(waves.U[9][0, 0]) << 32 if wide else 0)
        assert hex(got) == hex(expected)


def test_packed_opcodes_take_halves_by_op_sel() -> None:
    pair = int.from_bytes(np.array([1.0, 2.0], np.float16).tobytes(), "little")
    more = int.from_bytes(np.array([10.0, 20.0], np.float16).tobytes(), "little")

    def result(text: str) -> list[float]:
        return execute(text, {0: pair, 1: more}).U[2][0, :1].view(np.float16).tolist()

    assert result("v_pk_add_f16 v2, v0, v1") == [11.0, 22.0]
    assert result("v_pk_add_f16 v2, v0, v1 op_sel:[1,0] op_sel_hi:[0,1]") == [12.0, 21.0]
    assert result("v_pk_mul_f16 v2, v0, v1 neg_lo:[1,0]") == [-10.0, 40.0]


def test_packed_float32_works_on_pairs_of_registers() -> None:
    one, two, three, four = (np.float32(x).view(np.uint32) for x in (1, 2, 3, 4))
    waves = execute("v_pk_mul_f32 v[4:5], v[0:1], v[2:3] op_sel_hi:[1,0]", {0: one, 1: two, 2: three, 3: four})
    assert [waves.F[4][0, 0], waves.F[5][0, 0]] == [3.0, 6.0]
    waves = execute("v_pk_mov_b32 v[4:5], v[0:1], v[2:3] op_sel:[1,0]", {0: one, 1: two, 2: three, 3: four})
    assert [waves.F[4][0, 0], waves.F[5][0, 0]] == [2.0, 3.0]


def test_mixed_fma_reads_float16_where_op_sel_hi_says_so() -> None:
    halves = int.from_bytes(np.array([1.5, 4.0], np.float16).tobytes(), "little")
    two = np.float32(2).view(np.uint32)
    waves = execute("v_fma_mix_f32 v2, v0, v1, neg(0) op_sel:[1,0,0] op_sel_hi:[1,0,0]", {0: halves, 1: two})
    assert waves.F[2][0, 0] == 8.0
    waves = execute("v_fma_mixhi_f16 v2, v0, v1, v1 op_sel_hi:[1,0,0]", {0: halves, 1: two})
    assert int(waves.U[2][0, 0]) == 0x4500BEEF


def test_sdwa_selects_and_places_parts() -> None:
    waves = execute(
        "v_add_u32_sdwa v2, v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:WORD_1",
        {0: 0x0000AA00, 1: 0x00110000, 2: 0x5555},
    )
    assert int(waves.U[2][0, 0]) == 0x00BB5555
    waves = execute("v_mov_b32_sdwa v2, sext(v0) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0", {0: 0x80})
    assert int(waves.I[2][0, 0]) == -128


def test_8_bit_floats_by_target() -> None:
    for target, expected in (("gfx942", 1.0), ("gfx950", 2.0)):
        assert execute("v_cvt_f32_fp8_e32 v1, v0", {0: 0x40}, target=target).F[1][0, 0] == expected
    waves = execute("v_cvt_pk_fp8_f32 v1, v0, v2 op_sel:[0,0,1]", {0: 0x3F800000, 2: 0xC0000000}, target="gfx950")
    assert int(waves.U[1][0, 0]) == 0xC038BEEF
    with pytest.raises(cdna.NotExecuted, match="beyond its range"):
        execute("v_cvt_pk_fp8_f32 v1, v0, v0", {0: 0x7F000000})
    mode = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n"
    waves = execute(mode + "v_cvt_pk_fp8_f32 v1, v0, v0", {0: 0x7F000000}, target="gfx950")
    assert int(waves.U[1][0, 0]) == 0xDEAD7E7E
    waves = execute("v_cvt_scalef32_pk_fp8_f32 v1, v0, v2, 1.0", {0: 0x3F800000, 2: 0xC0000000}, target="gfx950")
    assert int(waves.U[1][0, 0]) == 0xDEADC038
    waves = execute("v_cvt_scalef32_pk_fp8_f16 v1, v0, 1.0 op_sel:[0,0,1]", {0: 0xC0003C00}, target="gfx950")
    assert int(waves.U[1][0, 0]) == 0xC038BEEF
    waves = execute("v_cvt_scalef32_pk_f32_fp8 v[2:3], v0, 1.0 op_sel:[1,0,0]", {0: 0xC0380000}, target="gfx950")
    assert [waves.F[2][0, 0], waves.F[3][0, 0]] == [1.0, -2.0]
    waves = execute("v_cvt_scalef32_pk_bf16_fp8 v2, v0, 1.0", {0: 0xC038}, target="gfx950")
    assert int(waves.U[2][0, 0]) == 0xC0003F80


def test_8_bit_floats_and_fp4_with_scales() -> None:
    # Packing divides by the scale, unpacking multiplies. Only the exponent of a scale counts.
    waves = execute("v_cvt_scalef32_pk_fp8_f32 v1, v0, v2, 2.0", {0: 0x40000000, 2: 0xC0800000}, target="gfx950")
    assert int(waves.U[1][0, 0]) == 0xDEADC038
    waves = execute("v_cvt_scalef32_pk_f32_fp8 v[2:3], v0, v1", {0: 0xC038, 1: 0x40400000}, target="gfx950")
    assert [waves.F[2][0, 0], waves.F[3][0, 0]] == [2.0, -4.0]
    for select, expected in (
        ("0,0,0", [1.0, 1.5]),
        ("1,0,0", [2.0, 3.0]),
        ("0,1,0", [4.0, 6.0]),
        ("1,1,0", [-0.5, -6.0]),
    ):
        text = f"v_cvt_scalef32_pk_f32_fp4 v[2:3], v0, 1.0 op_sel:[{select}]"
        waves = execute(text, {0: 0xF9765432}, target="gfx950")
        assert [waves.F[2][0, 0], waves.F[3][0, 0]] == expected
    assert int(execute("v_cvt_scalef32_pk_bf16_fp4 v2, v0, 2.0", {0: 0x32}, target="gfx950").U[2][0, 0]) == 0x40404000
    assert int(execute("v_cvt_scalef32_pk_f16_bf8 v2, v0, 0.5", {0: 0xC03C}, target="gfx950").U[2][0, 0]) == 0xBC003800
    with pytest.raises(cdna.NotExecuted, match="has to be rounded"):
        execute("v_cvt_scalef32_pk_f16_fp8 v2, v0, v1", {0: 0x38, 1: 0x50000000}, target="gfx950")
    with pytest.raises(cdna.NotExecuted, match="infinite or no number"):
        execute("v_cvt_scalef32_pk_f32_fp8 v[2:3], v0, v1", {0: 0x38, 1: 0x7F800000}, target="gfx950")


def test_multiply_add_of_64_bits() -> None:
    waves = execute("v_mad_u64_u32 v[4:5], s[0:1], v0, v1, v[2:3]", {0: 0xFFFFFFFF, 1: 0xFFFFFFFF, 2: 5, 3: 0})
    assert int(waves.U[4][0, 0]) | int(waves.U[5][0, 0]) << 32 == 0xFFFFFFFF**2 + 5
    waves = execute("v_mad_i64_i32 v[4:5], s[0:1], v0, v1, v[2:3]", {0: 0xFFFFFFFF, 1: 7, 2: 5, 3: 0})
    assert int(waves.I[4][0, 0]) == -2 and int(waves.I[5][0, 0]) == -1


def test_bit_table_and_select() -> None:
    assert int(execute("v_bitop3_b32 v3, v0, v1, v2 bitop3:0xe8", {0: 12, 1: 10, 2: 6}).U[3][0, 0]) == 14
    waves = execute("v_cndmask_b32_e64 v2, v0, -v1, s[0:1]", {0: 0x3F800000, 1: 0x40000000}, {0: 2, 1: 0})
    assert waves.F[2][0, :2].tolist() == [1.0, -2.0]


def test_exec_is_saved_and_restored() -> None:
    text = "s_and_saveexec_b64 s[4:5], s[0:1]\nv_mov_b32_e32 v0, 9\ns_or_b64 exec, exec, s[4:5]\nv_mov_b32_e32 v1, 9"
    waves = execute(text, {0: 1, 1: 1}, {0: 6, 1: 0}, exec_=7)
    assert waves.U[0][0, :4].tolist() == [1, 9, 9, 1]
    assert waves.U[1][0, :4].tolist() == [9, 9, 9, 1]
    assert bool(waves.scc[0, 0])


LANE = np.arange(64)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("quad_perm:[1,0,3,2]", LANE ^ 1),
        ("row_ror:4", (LANE & ~15) + (LANE - 4) % 16),
        ("row_mirror", LANE ^ 15),
        ("row_half_mirror", LANE ^ 7),
        ("row_newbcast:3", (LANE & ~15) + 3),
        ("row_shl:1", np.where(LANE % 16 < 15, LANE + 1, 0)),
        ("row_shr:1", np.where(LANE % 16 > 0, LANE - 1, 0)),
        ("wave_shr:1", np.where(LANE > 0, LANE - 1, 0)),
        ("row_bcast:15", np.where(LANE >= 16, (LANE & ~15) - 1, 0)),
        ("row_bcast:31", np.where(LANE >= 32, 31, 0)),
    ],
)
def test_dpp_patterns(pattern: str, expected: np.ndarray) -> None:
    waves = execute(f"v_mov_b32_dpp v1, v0 {pattern} row_mask:0xf bank_mask:0xf bound_ctrl:1", {0: LANE})
    np.testing.assert_array_equal(waves.U[1][0], expected)


def test_dpp_leaves_lanes_without_a_source_and_masked_rows() -> None:
    waves = execute("v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xa bank_mask:0xf", {0: LANE + 100, 1: 5})
    assert waves.U[1][0, 14:18].tolist() == [5, 5, 5, 116]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("SWAP,16", LANE ^ 16),
        ("REVERSE,8", LANE ^ 7),
        ("BROADCAST,4,2", (LANE & ~3) + 2),
        ("QUAD_PERM,3,2,1,0", LANE ^ 3),
        ('BITMASK_PERM,"01pip"', (LANE & ~31) + 8 + (LANE & 4) + (~LANE & 2) + (LANE & 1)),
    ],
)
def test_swizzle_patterns(pattern: str, expected: np.ndarray) -> None:
    waves = execute(f"ds_swizzle_b32 v1, v0 offset:swizzle({pattern})", {0: LANE})
    np.testing.assert_array_equal(waves.U[1][0], expected)


def test_lanes_pull_push_swap_and_read() -> None:
    reverse = 4 * (63 - LANE)
    assert execute("ds_bpermute_b32 v2, v0, v1", {0: reverse, 1: LANE}).U[2][0].tolist() == (63 - LANE).tolist()
    assert execute("ds_permute_b32 v2, v0, v1", {0: reverse, 1: LANE}).U[2][0].tolist() == (63 - LANE).tolist()
    waves = execute("v_permlane32_swap_b32_e32 v0, v1", {0: LANE, 1: LANE + 100}, target="gfx950")
    np.testing.assert_array_equal(waves.U[0][0], np.where(LANE < 32, LANE, LANE + 100 - 32))
    np.testing.assert_array_equal(waves.U[1][0], np.where(LANE < 32, LANE + 32, LANE + 100))
    waves = execute("v_permlane16_swap_b32_e32 v0, v1", {0: LANE, 1: LANE + 100}, target="gfx950")
    np.testing.assert_array_equal(waves.U[0][0], np.where(LANE % 32 < 16, LANE, LANE + 100 - 16))
    waves = execute(
        "v_readlane_b32 s0, v0, 5\nv_readfirstlane_b32 s1, v0\nv_writelane_b32 v0, s0, 3", {0: LANE}, exec_=0xF0
    )
    assert [int(waves.SU[k][0, 0]) for k in (0, 1)] == [5, 4]
    assert int(waves.U[0][0, 3]) == 5
    waves = execute("v_mbcnt_lo_u32_b32 v0, -1, 0\nv_mbcnt_hi_u32_b32 v0, -1, v0", {0: 0})
    np.testing.assert_array_equal(waves.U[0][0], LANE)


@pytest.mark.parametrize(
    "unknown",
    [
        "v_add_f32_foo v0, v1, v2",
        "v_mul_lo_u32 v0, v1, v2 clamp",
        "v_mov_b32_dpp v0, v1 row_share:3",
        "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0 cbsz:1",
        "v_add_f32_e32 v0, src_shared_base, v1",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 1",
        "s_getpc_b64 s[0:1]",
        "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[8:9], v[10:11], 0",
        "scratch_load_short_d16 v0, off, off",
        "v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, 1.0",
    ],
)
def test_what_is_not_known_is_not_executed_and_named(unknown: str) -> None:
    with pytest.raises(cdna.NotExecuted) as error:
        execute(unknown)
    assert unknown.replace("_e32", "").replace("_e64", "").split()[0] in str(error.value).replace("_e32", "").replace(
        "_e64", ""
    )


@pytest.mark.parametrize(
    ("name", "exec_after"),
    [
        ("s_and_saveexec_b64", 0b1000),
        ("s_or_saveexec_b64", 0b1110),
        ("s_xor_saveexec_b64", 0b0110),
        ("s_andn1_saveexec_b64", 0b0010),
        ("s_andn2_saveexec_b64", 0b0100),
    ],
)
def test_opcodes_that_save_exec(name: str, exec_after: int) -> None:
    waves = execute(f"{name} s[4:5], s[0:1]", s={0: 0b1100, 1: 0}, exec_=0b1010)
    assert (int(waves.SQ[126][0, 0]), int(waves.SQ[4][0, 0]), bool(waves.scc[0, 0])) == (exec_after, 0b1010, True)


@pytest.mark.parametrize(
    ("before", "taken", "left"),
    [
        ("s_cmp_eq_u32 s0, s0", "s_cbranch_scc1", "s_cbranch_scc0"),
        ("s_mov_b64 vcc, 0", "s_cbranch_vccz", "s_cbranch_vccnz"),
        ("s_mov_b64 exec, 1", "s_cbranch_execnz", "s_cbranch_execz"),
    ],
)
def test_branches(before: str, taken: str, left: str) -> None:
    for opcode, expected in ((taken, 1), (left, 2)):
        waves = execute(f"s_mov_b32 s4, 1\n{before}\n{opcode} over\ns_mov_b32 s4, 2\nover:\ns_nop 0")
        assert int(waves.SU[4][0, 0]) == expected


def test_constants_added_and_multiplied_in_place() -> None:
    waves = execute("s_addk_i32 s4, 0xffff", s={4: 5})
    assert int(waves.SU[4][0, 0]) == 4 and not waves.scc[0, 0]
    waves = execute("s_addk_i32 s4, 1", s={4: 0x7FFFFFFF})
    assert int(waves.SU[4][0, 0]) == 0x80000000 and waves.scc[0, 0]
    assert int(execute("s_mulk_i32 s4, 0xfffe", s={4: 5}).SI[4][0, 0]) == -10


def test_halves_are_packed_and_mixed() -> None:
    halves = {0: 0x44443C00, 1: 0x40003333}
    assert int(execute("v_pack_b32_f16 v2, v0, v1", halves).U[2][0, 0]) == 0x33333C00
    assert int(execute("v_pack_b32_f16 v2, v0, v1 op_sel:[1,1,0]", halves).U[2][0, 0]) == 0x40004444
    two = int(np.float32(2).view(np.uint32))
    waves = execute("v_fma_mixlo_f16 v2, v0, v1, v1 op_sel_hi:[1,0,0]", {0: 0x00003E00, 1: two})
    assert int(waves.U[2][0, 0]) == 0xDEAD4500
    assert int(execute("v_bitop3_b16 v3, v0, v1, v2 bitop3:0xe8", {0: 12, 1: 10, 2: 6}).U[3][0, 0]) & 0xFFFF == 14


def test_8_bit_floats_of_five_exponent_bits() -> None:
    for target, expected in (("gfx942", 1.0), ("gfx950", 2.0)):
        assert execute("v_cvt_f32_bf8_e32 v1, v0", {0: 0x40}, target=target).F[1][0, 0] == expected
        waves = execute("v_cvt_pk_f32_bf8_e32 v[2:3], v0", {0: 0xC040}, target=target)
        assert [waves.F[2][0, 0], waves.F[3][0, 0]] == [expected, -expected]
    waves = execute("v_cvt_pk_f32_fp8_e32 v[2:3], v0", {0: 0xC038}, target="gfx950")
    assert [waves.F[2][0, 0], waves.F[3][0, 0]] == [1.0, -2.0]
    waves = execute("v_cvt_pk_bf8_f32 v1, v0, v2", {0: 0x3F800000, 2: 0xC0000000}, target="gfx950")
    assert int(waves.U[1][0, 0]) == 0xDEADC03C


def test_an_unknown_instruction_that_is_not_reached_is_no_obstacle() -> None:
    waves = execute("s_branch over\nv_foo v0, v1\nover:\nv_mov_b32_e32 v0, 1")
    assert int(waves.U[0][0, 0]) == 1


NAMED = sorted(
    {*_SPECIAL, *vector.ACCUMULATE, *vector.CONSTANT, *vector.PACKED}
    | {*scalar.SAVE_EXEC, *scalar.IN_PLACE, *scalar.BRANCHES}
    | {*ATOMICS, *_UPDATES}
)


def test_every_opcode_outside_the_tables_is_named_by_a_test() -> None:
    # Those of the tables above have vectors of their own; the rest stand in the text of a test here or in test_memory.
    folder = Path(__file__).parent
    words = set(re.findall(r"\w+", "".join((folder / f"test_{name}.py").read_text() for name in ("opcodes", "memory"))))
    plain = {word.removesuffix("_e32").removesuffix("_e64") for word in words}
    atomics = {word.partition("_atomic_")[2] for word in words} | {word.removeprefix("ds_") for word in words}
    assert [name for name in NAMED if name not in plain | atomics | {w.replace("_rtn", "") for w in atomics}] == []
