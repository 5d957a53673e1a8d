"""Vector opcodes that compute each lane separately.

Kinds of operands: u, i, f are 32 bits as unsigned, signed, float; w, s, h are 16 bits likewise (the low half of a
register, unless op_sel says otherwise); q, l, d are 64 bits in two registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gluonmap.cdna.arithmetic import (
    DIVISION_F32,
    DIVISION_F64,
    Array,
    bf16_bits,
    classify,
    count_bits,
    f16,
    f16_bits,
    f16_bits_toward_zero,
    f32,
    f64,
    fma,
    fma_f16,
    fma_f64,
    i32,
    i64,
    ldexp,
    leading_signs,
    leading_zeros,
    permute_bytes,
    reverse_bits,
    trailing_zeros,
    truncated,
    u32,
    u64,
)


@dataclass(frozen=True, slots=True)
class Lanes:
    """`result` = `compute`(`sources`), lane by lane."""

    result: str
    sources: str
    compute: Callable[..., Any]
    keeps_high: bool = False
    """A 16-bit result keeps the other half of its register. Most opcodes of gfx9 write zeros there."""


def _field(x: Array, offset: Array, width: Array) -> Any:
    return (x >> (offset & u32(31))) & ((u32(1) << (width & u32(31))) - u32(1))


def _signed_field(x: Array, offset: Array, width: Array) -> Any:
    # An arithmetic shift fills with the sign, so a field that would reach beyond bit 31 ends there.
    size = (width & u32(31)).astype(i64)
    value = (x >> (offset & u32(31)).astype(i32)).astype(i64) & ((i64(1) << size) - 1)
    return np.where(size == 0, 0, value - ((value >> np.maximum(size - 1, 0) & 1) << size)).astype(i32)


def _low24(x: Array) -> Any:
    return x & u32(0xFFFFFF)


def _signed24(x: Array) -> Any:
    return (x << i32(8)) >> i32(8)


def _high(a: Array, b: Array, wide: Any, narrow: Any) -> Any:
    return (np.multiply(a, b, dtype=wide) >> wide(32)).astype(narrow)


def _median(a: Array, b: Array, c: Array) -> Any:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _median_float(a: Array, b: Array, c: Array) -> Any:
    lowest = np.fmin(np.fmin(a, b), c)
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), lowest, _median(a, b, c))


def _maximum(a: Array, b: Array) -> Any:
    """Return the maximum of IEEE 754-2019: NaN if one is NaN, and +0 is above -0."""
    return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))


def _minimum(a: Array, b: Array) -> Any:
    return -_maximum(-a, -b)


def _dot_halves(value: Callable[[Array], Array]) -> Callable[..., Any]:
    """Return c + a[0] b[0] + a[1] b[1] over the halves of a register, added in this order."""

    def dot(a: Array, b: Array, c: Array) -> Any:
        total = c + value(a & u32(0xFFFF)) * value(b & u32(0xFFFF))
        return total + value(a >> u32(16)) * value(b >> u32(16))

    return dot


def _f16_value(bits_: Array) -> Any:
    return bits_.astype(np.uint16).view(f16).astype(f32)


def _bf16_value(bits_: Array) -> Any:
    return (bits_ << u32(16)).view(f32)


def _dot_bytes(a: Array, b: Array, c: Array) -> Any:
    for shift in (0, 8, 16, 24):
        left, right = ((x << u32(24 - shift)).view(i32) >> i32(24) for x in (a, b))
        c = c + left * right
    return c


def _sin(x: Array) -> Any:
    return np.sin(2 * np.pi * x.astype(f64)).astype(f32)


def _cos(x: Array) -> Any:
    return np.cos(2 * np.pi * x.astype(f64)).astype(f32)


def _byte(k: int) -> Callable[[Array], Array]:
    return lambda x: ((x >> u32(8 * k)) & u32(255)).astype(f32)


def _first(a: Array) -> Any:
    return a


def _reversed(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: function(b, a)


def _legacy_multiply(a: Array, b: Array) -> Any:
    return np.where((a == 0) | (b == 0), f32(0), a * b)


TABLE: dict[str, Lanes] = {
    # Moves and bits
    "v_mov_b32": Lanes("u", "u", np.positive),
    "v_mov_b64": Lanes("q", "q", _first),
    "v_accvgpr_write_b32": Lanes("u", "u", np.positive),
    "v_accvgpr_read_b32": Lanes("u", "u", np.positive),
    "v_accvgpr_mov_b32": Lanes("u", "u", np.positive),
    "v_not_b32": Lanes("u", "u", np.invert),
    "v_and_b32": Lanes("u", "uu", np.bitwise_and),
    "v_or_b32": Lanes("u", "uu", np.bitwise_or),
    "v_xor_b32": Lanes("u", "uu", np.bitwise_xor),
    "v_xnor_b32": Lanes("u", "uu", lambda a, b: ~(a ^ b)),
    "v_or3_b32": Lanes("u", "uuu", lambda a, b, c: a | b | c),
    "v_and_or_b32": Lanes("u", "uuu", lambda a, b, c: (a & b) | c),
    "v_lshl_or_b32": Lanes("u", "uuu", lambda a, b, c: (a << (b & u32(31))) | c),
    "v_bfi_b32": Lanes("u", "uuu", lambda a, b, c: (a & b) | (~a & c)),
    "v_bfe_u32": Lanes("u", "uuu", _field),
    "v_bfe_i32": Lanes("i", "iuu", _signed_field),
    "v_bfm_b32": Lanes("u", "uu", lambda a, b: ((u32(1) << (a & u32(31))) - u32(1)) << (b & u32(31))),
    "v_bfrev_b32": Lanes("u", "u", reverse_bits),
    "v_bcnt_u32_b32": Lanes("u", "uu", lambda a, b: count_bits(a) + b),
    "v_ffbh_u32": Lanes("u", "u", leading_zeros),
    "v_ffbh_i32": Lanes("u", "i", leading_signs),
    "v_ffbl_b32": Lanes("u", "u", trailing_zeros),
    "v_perm_b32": Lanes("u", "uuu", permute_bytes),
    "v_alignbit_b32": Lanes(
        "u", "uuu", lambda a, b, c: (((a.astype(u64) << u64(32)) | b) >> (c & u32(31)).astype(u64)).astype(u32)
    ),
    "v_alignbyte_b32": Lanes(
        "u",
        "uuu",
        lambda a, b, c: (((a.astype(u64) << u64(32)) | b) >> ((c & u32(3)) * u32(8)).astype(u64)).astype(u32),
    ),
    # Shifts
    "v_lshlrev_b32": Lanes("u", "uu", lambda a, b: b << (a & u32(31))),
    "v_lshrrev_b32": Lanes("u", "uu", lambda a, b: b >> (a & u32(31))),
    "v_ashrrev_i32": Lanes("i", "ui", lambda a, b: b >> (a & u32(31)).astype(i32)),
    "v_lshlrev_b64": Lanes("q", "uq", lambda a, b: b << (a & u32(63)).astype(u64)),
    "v_lshrrev_b64": Lanes("q", "uq", lambda a, b: b >> (a & u32(63)).astype(u64)),
    "v_ashrrev_i64": Lanes("l", "ul", lambda a, b: b >> (a & u32(63)).astype(i64)),
    # Integers
    "v_add_u32": Lanes("u", "uu", np.add),
    "v_sub_u32": Lanes("u", "uu", np.subtract),
    "v_subrev_u32": Lanes("u", "uu", _reversed(np.subtract)),
    "v_add3_u32": Lanes("u", "uuu", lambda a, b, c: a + b + c),
    "v_lshl_add_u32": Lanes("u", "uuu", lambda a, b, c: (a << (b & u32(31))) + c),
    "v_add_lshl_u32": Lanes("u", "uuu", lambda a, b, c: (a + b) << (c & u32(31))),
    "v_xad_u32": Lanes("u", "uuu", lambda a, b, c: (a ^ b) + c),
    "v_lshl_add_u64": Lanes("q", "quq", lambda a, b, c: (a << (b & u32(7)).astype(u64)) + c),
    "v_mul_lo_u32": Lanes("u", "uu", np.multiply),
    "v_mul_hi_u32": Lanes("u", "uu", lambda a, b: _high(a, b, u64, u32)),
    "v_mul_hi_i32": Lanes("i", "ii", lambda a, b: _high(a, b, i64, i32)),
    "v_mul_u32_u24": Lanes("u", "uu", lambda a, b: _low24(a) * _low24(b)),
    "v_mul_i32_i24": Lanes("i", "ii", lambda a, b: _signed24(a) * _signed24(b)),
    "v_mad_u32_u24": Lanes("u", "uuu", lambda a, b, c: _low24(a) * _low24(b) + c),
    "v_mad_i32_i24": Lanes("i", "iii", lambda a, b, c: _signed24(a) * _signed24(b) + c),
    "v_max_i32": Lanes("i", "ii", np.maximum),
    "v_min_i32": Lanes("i", "ii", np.minimum),
    "v_max_u32": Lanes("u", "uu", np.maximum),
    "v_min_u32": Lanes("u", "uu", np.minimum),
    "v_max3_i32": Lanes("i", "iii", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_min3_i32": Lanes("i", "iii", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_max3_u32": Lanes("u", "uuu", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_min3_u32": Lanes("u", "uuu", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_med3_i32": Lanes("i", "iii", _median),
    "v_med3_u32": Lanes("u", "uuu", _median),
    # 16-bit integers
    "v_add_u16": Lanes("w", "ww", np.add),
    "v_sub_u16": Lanes("w", "ww", np.subtract),
    "v_subrev_u16": Lanes("w", "ww", _reversed(np.subtract)),
    "v_mul_lo_u16": Lanes("w", "ww", np.multiply),
    "v_max_u16": Lanes("w", "ww", np.maximum),
    "v_min_u16": Lanes("w", "ww", np.minimum),
    "v_max_i16": Lanes("s", "ss", np.maximum),
    "v_min_i16": Lanes("s", "ss", np.minimum),
    "v_lshlrev_b16": Lanes("w", "ww", lambda a, b: b << (a & np.uint16(15))),
    "v_lshrrev_b16": Lanes("w", "ww", lambda a, b: b >> (a & np.uint16(15))),
    "v_ashrrev_i16": Lanes("s", "ws", lambda a, b: b >> (a & np.uint16(15)).astype(np.int16)),
    # float32
    "v_add_f32": Lanes("f", "ff", np.add),
    "v_sub_f32": Lanes("f", "ff", np.subtract),
    "v_subrev_f32": Lanes("f", "ff", _reversed(np.subtract)),
    "v_mul_f32": Lanes("f", "ff", np.multiply),
    "v_mul_legacy_f32": Lanes("f", "ff", _legacy_multiply),
    "v_fma_f32": Lanes("f", "fff", fma),
    "v_max_f32": Lanes("f", "ff", np.fmax),
    "v_min_f32": Lanes("f", "ff", np.fmin),
    "v_max3_f32": Lanes("f", "fff", lambda a, b, c: np.fmax(np.fmax(a, b), c)),
    "v_min3_f32": Lanes("f", "fff", lambda a, b, c: np.fmin(np.fmin(a, b), c)),
    "v_maximum3_f32": Lanes("f", "fff", lambda a, b, c: _maximum(_maximum(a, b), c)),
    "v_minimum3_f32": Lanes("f", "fff", lambda a, b, c: _minimum(_minimum(a, b), c)),
    "v_med3_f32": Lanes("f", "fff", _median_float),
    # Hardware may differ by one unit in the last place; these round to nearest.
    "v_exp_f32": Lanes("f", "f", np.exp2),
    "v_log_f32": Lanes("f", "f", np.log2),
    "v_rcp_f32": Lanes("f", "f", lambda a: f32(1) / a),
    "v_rcp_iflag_f32": Lanes("f", "f", lambda a: f32(1) / a),
    "v_rsq_f32": Lanes("f", "f", lambda a: (1 / np.sqrt(a.astype(f64))).astype(f32)),
    "v_sqrt_f32": Lanes("f", "f", np.sqrt),
    "v_sin_f32": Lanes("f", "f", _sin),
    "v_cos_f32": Lanes("f", "f", _cos),
    "v_rndne_f32": Lanes("f", "f", np.rint),
    "v_floor_f32": Lanes("f", "f", np.floor),
    "v_ceil_f32": Lanes("f", "f", np.ceil),
    "v_trunc_f32": Lanes("f", "f", np.trunc),
    "v_ldexp_f32": Lanes("f", "fi", ldexp),
    "v_frexp_mant_f32": Lanes("f", "f", lambda a: np.where(np.isfinite(a), np.frexp(a)[0], a)),
    "v_frexp_exp_i32_f32": Lanes("i", "f", lambda a: np.where(np.isfinite(a), np.frexp(a)[1], i32(0))),
    "v_div_fixup_f32": Lanes("f", "fff", DIVISION_F32.fixup),
    # Dot products of the parts of a register
    "v_dot2_f32_f16": Lanes("f", "uuf", _dot_halves(_f16_value)),
    "v_dot2c_f32_bf16": Lanes("f", "uuf", _dot_halves(_bf16_value)),
    "v_dot4_i32_i8": Lanes("i", "uui", _dot_bytes),
    # float16
    "v_add_f16": Lanes("h", "hh", np.add),
    "v_sub_f16": Lanes("h", "hh", np.subtract),
    "v_subrev_f16": Lanes("h", "hh", _reversed(np.subtract)),
    "v_mul_f16": Lanes("h", "hh", np.multiply),
    "v_max_f16": Lanes("h", "hh", np.fmax),
    "v_min_f16": Lanes("h", "hh", np.fmin),
    "v_max3_f16": Lanes("h", "hhh", lambda a, b, c: np.fmax(np.fmax(a, b), c), keeps_high=True),
    "v_min3_f16": Lanes("h", "hhh", lambda a, b, c: np.fmin(np.fmin(a, b), c), keeps_high=True),
    "v_med3_f16": Lanes("h", "hhh", _median_float, keeps_high=True),
    "v_fma_f16": Lanes("h", "hhh", fma_f16, keeps_high=True),
    "v_exp_f16": Lanes("h", "h", lambda a: np.exp2(a.astype(f32)).astype(f16)),
    "v_log_f16": Lanes("h", "h", lambda a: np.log2(a.astype(f32)).astype(f16)),
    "v_rcp_f16": Lanes("h", "h", lambda a: (f32(1) / a.astype(f32)).astype(f16)),
    "v_sqrt_f16": Lanes("h", "h", lambda a: np.sqrt(a.astype(f32)).astype(f16)),
    "v_rndne_f16": Lanes("h", "h", np.rint),
    "v_floor_f16": Lanes("h", "h", np.floor),
    "v_trunc_f16": Lanes("h", "h", np.trunc),
    # float64
    "v_add_f64": Lanes("d", "dd", np.add),
    "v_mul_f64": Lanes("d", "dd", np.multiply),
    "v_fma_f64": Lanes("d", "ddd", fma_f64),
    "v_rcp_f64": Lanes("d", "d", lambda a: f64(1) / a),
    "v_div_fixup_f64": Lanes("d", "ddd", DIVISION_F64.fixup),
    "v_ldexp_f64": Lanes("d", "di", lambda a, b: np.ldexp(a, np.clip(b, -4000, 4000))),
    "v_frexp_mant_f64": Lanes("d", "d", lambda a: np.where(np.isfinite(a), np.frexp(a)[0], a)),
    "v_frexp_exp_i32_f64": Lanes("i", "d", lambda a: np.where(np.isfinite(a), np.frexp(a)[1], i32(0))),
    "v_max_f64": Lanes("d", "dd", np.fmax),
    "v_min_f64": Lanes("d", "dd", np.fmin),
    # Conversions
    "v_cvt_f32_f16": Lanes("f", "h", lambda a: a.astype(f32)),
    "v_cvt_f16_f32": Lanes("h", "f", lambda a: a.astype(f16)),
    "v_cvt_f32_i32": Lanes("f", "i", lambda a: a.astype(f32)),
    "v_cvt_f32_u32": Lanes("f", "u", lambda a: a.astype(f32)),
    "v_cvt_i32_f32": Lanes("i", "f", lambda a: truncated(a, i32)),
    "v_cvt_u32_f32": Lanes("u", "f", lambda a: truncated(a, u32)),
    "v_cvt_f16_i16": Lanes("h", "s", lambda a: a.astype(f16)),
    "v_cvt_f16_u16": Lanes("h", "w", lambda a: a.astype(f16)),
    "v_cvt_i16_f16": Lanes("s", "h", lambda a: truncated(a, np.int16)),
    "v_cvt_u16_f16": Lanes("w", "h", lambda a: truncated(a, np.uint16)),
    "v_cvt_f64_f32": Lanes("d", "f", lambda a: a.astype(f64)),
    "v_cvt_f32_f64": Lanes("f", "d", lambda a: a.astype(f32)),
    "v_cvt_f64_i32": Lanes("d", "i", lambda a: a.astype(f64)),
    "v_cvt_f64_u32": Lanes("d", "u", lambda a: a.astype(f64)),
    "v_cvt_i32_f64": Lanes("i", "d", lambda a: truncated(a, i32)),
    "v_cvt_u32_f64": Lanes("u", "d", lambda a: truncated(a, u32)),
    "v_cvt_f32_ubyte0": Lanes("f", "u", _byte(0)),
    "v_cvt_f32_ubyte1": Lanes("f", "u", _byte(1)),
    "v_cvt_f32_ubyte2": Lanes("f", "u", _byte(2)),
    "v_cvt_f32_ubyte3": Lanes("f", "u", _byte(3)),
    "v_cvt_pk_bf16_f32": Lanes("u", "ff", lambda a, b: bf16_bits(a) | (bf16_bits(b) << u32(16))),
    "v_cvt_pk_f16_f32": Lanes("u", "ff", lambda a, b: f16_bits(a) | (f16_bits(b) << u32(16))),
    "v_cvt_pkrtz_f16_f32": Lanes(
        "u", "ff", lambda a, b: f16_bits_toward_zero(a) | (f16_bits_toward_zero(b) << u32(16))
    ),
}

ACCUMULATE: dict[str, str] = {
    "v_fmac_f32": "v_fma_f32",
    "v_fmac_f64": "v_fma_f64",
    "v_dot2c_f32_f16": "v_dot2_f32_f16",
    "v_dot2c_f32_bf16": "v_dot2c_f32_bf16",
    "v_dot4c_i32_i8": "v_dot4_i32_i8",
}
"""Opcodes whose destination is also their third source → the equivalent opcode of the table."""

CONSTANT: dict[str, str] = {
    "v_fmamk_f32": "v_fma_f32",
    "v_fmaak_f32": "v_fma_f32",
}
"""Opcodes with a constant in their encoding, which the text has among the operands → the equivalent opcode."""

SATURATE: dict[str, Callable[[Array, Array], Any]] = {
    "v_add_u32": lambda a, b: np.minimum(np.add(a, b, dtype=u64), u64(0xFFFFFFFF)).astype(u32),
    "v_sub_u32": lambda a, b: np.where(a < b, u32(0), a - b),
    "v_subrev_u32": lambda a, b: np.where(b < a, u32(0), b - a),
}
"""Integer opcode → its function with `clamp`."""

COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "ne": np.not_equal,
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: (a == a) & (b == b),
    "u": lambda a, b: (a != a) | (b != b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": np.not_equal,
    "nlt": lambda a, b: ~(a < b),
    "class": classify,
}
"""v_cmp_<name>_<type>."""

COMPARED_KINDS = {
    "f32": "f",
    "i32": "i",
    "u32": "u",
    "f16": "h",
    "i16": "s",
    "u16": "w",
    "f64": "d",
    "i64": "l",
    "u64": "q",
}

PACKED: dict[str, Lanes] = {
    "v_pk_add_f16": Lanes("h", "hh", np.add),
    "v_pk_mul_f16": Lanes("h", "hh", np.multiply),
    "v_pk_fma_f16": Lanes("h", "hhh", fma_f16),
    "v_pk_max_f16": Lanes("h", "hh", np.fmax),
    "v_pk_min_f16": Lanes("h", "hh", np.fmin),
    "v_pk_add_u16": Lanes("w", "ww", np.add),
    "v_pk_sub_u16": Lanes("w", "ww", np.subtract),
    "v_pk_sub_i16": Lanes("s", "ss", np.subtract),
    "v_pk_add_i16": Lanes("s", "ss", np.add),
    "v_pk_mul_lo_u16": Lanes("w", "ww", np.multiply),
    "v_pk_mad_u16": Lanes("w", "www", lambda a, b, c: a * b + c),
    "v_pk_max_i16": Lanes("s", "ss", np.maximum),
    "v_pk_min_i16": Lanes("s", "ss", np.minimum),
    "v_pk_max_u16": Lanes("w", "ww", np.maximum),
    "v_pk_min_u16": Lanes("w", "ww", np.minimum),
    "v_pk_lshlrev_b16": Lanes("w", "ww", lambda a, b: b << (a & np.uint16(15))),
    "v_pk_lshrrev_b16": Lanes("w", "ww", lambda a, b: b >> (a & np.uint16(15))),
    "v_pk_ashrrev_i16": Lanes("s", "ws", lambda a, b: b >> (a & np.uint16(15)).astype(np.int16)),
    "v_pk_add_f32": Lanes("f", "ff", np.add),
    "v_pk_mul_f32": Lanes("f", "ff", np.multiply),
    "v_pk_fma_f32": Lanes("f", "fff", fma),
    "v_pk_mov_b32": Lanes("u", "u", np.positive),
}
"""Opcodes with two results: for the halves of a register (16 bits), or the registers of a pair (32 bits)."""
