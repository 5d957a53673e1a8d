"""Scalar opcodes: kinds of operands as in `vector`, 32 bits (u, i) or 64 bits (q, l), and the value of SCC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gluonmap.cdna.arithmetic import (
    Array,
    count_bits,
    i32,
    i64,
    leading_signs,
    leading_signs_64,
    leading_zeros,
    leading_zeros_64,
    reverse_bits,
    trailing_zeros,
    u32,
    u64,
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """`result` = `compute`(`sources`).

    SCC becomes `condition`(`sources`) if there is a condition. With `nonzero` it becomes whether the result differs
    from 0. Otherwise it keeps its value.
    """

    result: str
    sources: str
    compute: Callable[..., Any]
    nonzero: bool = False
    condition: Callable[..., Any] | None = None


def _by(x: Array, mask: int) -> Any:
    return x & u32(mask)


def _signed_sum_overflows(a: Array, b: Array) -> Any:
    total = a.astype(i64) + b
    return total != total.astype(i32)


def _signed_difference_overflows(a: Array, b: Array) -> Any:
    total = a.astype(i64) - b
    return total != total.astype(i32)


def _field(x: Array, control: Array) -> Any:
    width = (control >> u32(16)) & u32(127)
    mask = (u64(1) << np.minimum(width, u32(63)).astype(u64)) - u64(1)
    return ((x >> (control & u32(31))).astype(u64) & mask).astype(u32)


def _signed_field(x: Array, control: Array) -> Any:
    # An arithmetic shift fills with the sign, so a field that would reach beyond bit 31 ends there.
    width = np.minimum((control >> u32(16)) & u32(127), u32(32)).astype(i64)
    value = (x >> (control & u32(31)).astype(i32)).astype(i64) & ((i64(1) << width) - 1)
    return np.where(width == 0, 0, value - (((value >> np.maximum(width - 1, 0)) & 1) << width)).astype(i32)


def _field64(x: Array, control: Array) -> Any:
    width = np.minimum((control >> u32(16)) & u32(127), u32(64)).astype(u64)
    # The shift has two steps, since numpy shifts by at most 63.
    mask = ~((~u64(0) << (width >> u64(1))) << (width - (width >> u64(1))))
    return (x >> (control & u32(63)).astype(u64)) & mask


def _shifted_add(by: int) -> Scalar:
    return Scalar(
        "u",
        "uu",
        lambda a, b: (a << u32(by)) + b,
        condition=lambda a, b: ((a.astype(u64) << u64(by)) + b) > u64(0xFFFFFFFF),
    )


def _logic(function: Callable[..., Any]) -> tuple[Scalar, Scalar]:
    return Scalar("u", "uu", function, nonzero=True), Scalar("q", "qq", function, nonzero=True)


_AND, _AND64 = _logic(np.bitwise_and)
_OR, _OR64 = _logic(np.bitwise_or)
_XOR, _XOR64 = _logic(np.bitwise_xor)
_ANDN2, _ANDN264 = _logic(lambda a, b: a & ~b)
_ORN2, _ORN264 = _logic(lambda a, b: a | ~b)
_NAND, _NAND64 = _logic(lambda a, b: ~(a & b))
_NOR, _NOR64 = _logic(lambda a, b: ~(a | b))
_XNOR, _XNOR64 = _logic(lambda a, b: ~(a ^ b))

TABLE: dict[str, Scalar] = {
    "s_mov_b32": Scalar("u", "u", np.positive),
    "s_mov_b64": Scalar("q", "q", np.positive),
    "s_movk_i32": Scalar("u", "u", np.positive),
    "s_brev_b32": Scalar("u", "u", reverse_bits),
    "s_not_b32": Scalar("u", "u", np.invert, nonzero=True),
    "s_not_b64": Scalar("q", "q", np.invert, nonzero=True),
    "s_and_b32": _AND,
    "s_and_b64": _AND64,
    "s_or_b32": _OR,
    "s_or_b64": _OR64,
    "s_xor_b32": _XOR,
    "s_xor_b64": _XOR64,
    "s_andn2_b32": _ANDN2,
    "s_andn2_b64": _ANDN264,
    "s_orn2_b32": _ORN2,
    "s_orn2_b64": _ORN264,
    "s_nand_b32": _NAND,
    "s_nand_b64": _NAND64,
    "s_nor_b32": _NOR,
    "s_nor_b64": _NOR64,
    "s_xnor_b32": _XNOR,
    "s_xnor_b64": _XNOR64,
    "s_lshl_b32": Scalar("u", "uu", lambda a, b: a << _by(b, 31), nonzero=True),
    "s_lshr_b32": Scalar("u", "uu", lambda a, b: a >> _by(b, 31), nonzero=True),
    "s_ashr_i32": Scalar("i", "iu", lambda a, b: a >> _by(b, 31).astype(i32), nonzero=True),
    "s_lshl_b64": Scalar("q", "qu", lambda a, b: a << _by(b, 63).astype(u64), nonzero=True),
    "s_lshr_b64": Scalar("q", "qu", lambda a, b: a >> _by(b, 63).astype(u64), nonzero=True),
    "s_ashr_i64": Scalar("l", "lu", lambda a, b: a >> _by(b, 63).astype(i64), nonzero=True),
    "s_bfe_u32": Scalar("u", "uu", _field, nonzero=True),
    "s_bfe_i32": Scalar("i", "iu", _signed_field, nonzero=True),
    "s_bfe_u64": Scalar("q", "qu", _field64, nonzero=True),
    "s_bfm_b32": Scalar("u", "uu", lambda a, b: ((u32(1) << _by(a, 31)) - u32(1)) << _by(b, 31)),
    "s_add_u32": Scalar("u", "uu", np.add, condition=lambda a, b: (np.add(a, b, dtype=u64) >> u64(32)) != 0),
    "s_sub_u32": Scalar("u", "uu", np.subtract, condition=np.less),
    "s_add_i32": Scalar("i", "ii", np.add, condition=_signed_sum_overflows),
    "s_sub_i32": Scalar("i", "ii", np.subtract, condition=_signed_difference_overflows),
    "s_mul_i32": Scalar("u", "uu", np.multiply),
    "s_mul_hi_u32": Scalar("u", "uu", lambda a, b: (np.multiply(a, b, dtype=u64) >> u64(32)).astype(u32)),
    "s_mul_hi_i32": Scalar("i", "ii", lambda a, b: (np.multiply(a, b, dtype=i64) >> i64(32)).astype(i32)),
    "s_lshl1_add_u32": _shifted_add(1),
    "s_lshl2_add_u32": _shifted_add(2),
    "s_lshl3_add_u32": _shifted_add(3),
    "s_lshl4_add_u32": _shifted_add(4),
    "s_min_i32": Scalar("i", "ii", np.minimum, condition=np.less),
    "s_min_u32": Scalar("u", "uu", np.minimum, condition=np.less),
    "s_max_i32": Scalar("i", "ii", np.maximum, condition=np.greater_equal),
    "s_max_u32": Scalar("u", "uu", np.maximum, condition=np.greater_equal),
    "s_abs_i32": Scalar("i", "i", np.abs, nonzero=True),
    "s_sext_i32_i16": Scalar("i", "i", lambda a: (a << i32(16)) >> i32(16)),
    "s_sext_i32_i8": Scalar("i", "i", lambda a: (a << i32(24)) >> i32(24)),
    "s_pack_ll_b32_b16": Scalar("u", "uu", lambda a, b: (a & u32(0xFFFF)) | (b << u32(16))),
    "s_pack_lh_b32_b16": Scalar("u", "uu", lambda a, b: (a & u32(0xFFFF)) | (b & u32(0xFFFF0000))),
    "s_pack_hh_b32_b16": Scalar("u", "uu", lambda a, b: (a >> u32(16)) | (b & u32(0xFFFF0000))),
    "s_bcnt1_i32_b32": Scalar("u", "u", count_bits, nonzero=True),
    "s_bcnt1_i32_b64": Scalar("u", "q", count_bits, nonzero=True),
    "s_ff1_i32_b32": Scalar("u", "u", trailing_zeros),
    "s_ff1_i32_b64": Scalar("u", "q", trailing_zeros),
    "s_flbit_i32_b32": Scalar("u", "u", leading_zeros),
    "s_flbit_i32_b64": Scalar("u", "q", leading_zeros_64),
    "s_flbit_i32": Scalar("u", "i", leading_signs),
    "s_flbit_i32_i64": Scalar("u", "q", leading_signs_64),
}

IN_PLACE: dict[str, Scalar] = {
    "s_addk_i32": TABLE["s_add_i32"],
    "s_mulk_i32": TABLE["s_mul_i32"],
}
"""Opcodes whose destination is their first source. The second source is a 16-bit constant."""

SAVE_EXEC: dict[str, Callable[[Array, Array], Array]] = {
    "s_and_saveexec_b64": lambda source, exec_: source & exec_,
    "s_or_saveexec_b64": lambda source, exec_: source | exec_,
    "s_xor_saveexec_b64": lambda source, exec_: source ^ exec_,
    "s_andn1_saveexec_b64": lambda source, exec_: ~source & exec_,
    "s_andn2_saveexec_b64": lambda source, exec_: source & ~exec_,
}
"""Opcode → new exec from the source and the old exec. The destination gets the old exec."""

COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "lg": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
"""s_cmp_<name>_<type>, s_cmpk_<name>_<type>: the new SCC."""

BRANCHES = {
    "s_cbranch_scc0": "~scc",
    "s_cbranch_scc1": "scc",
    "s_cbranch_vccz": "SQ[106] == 0",
    "s_cbranch_vccnz": "SQ[106] != 0",
    "s_cbranch_execz": "SQ[126] == 0",
    "s_cbranch_execnz": "SQ[126] != 0",
}
"""Branch → expression of its condition, one bit per wave."""

NOTHING = frozenset(
    ("s_nop", "s_setprio", "s_sleep", "buffer_wbl2", "buffer_inv", "s_icache_inv", "s_dcache_wb", "s_dcache_inv")
)
"""Opcodes without effect here: hints, and cache maintenance, since memory has no caches here."""
