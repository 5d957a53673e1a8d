"""Functions that generated blocks call: halves and pairs of registers, and moves of values between lanes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.arithmetic import count_bits
from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.operands import OVERFLOW
from gluonmap.cdna.state import LANES, Waves
from gluonmap.cdna.text import Instruction

Array = npt.NDArray[Any]
u8, u16, u32, u64 = np.uint8, np.uint16, np.uint32, np.uint64
i16, i64, f16, f32 = np.int16, np.int64, np.float16, np.float32
LANE = np.arange(LANES)


def put(register: Array, value: Any, where: Any) -> None:
    """Write a value to the active lanes."""
    np.copyto(register, value, where=where, casting="unsafe")


def half(register: Array, which: int, dtype: Any) -> Any:
    """Return the lower (0) or upper (1) half of each lane without a copy."""
    if register.ndim == 1:
        return register.view(dtype)[which::2]
    return register.view(dtype)[:, which::2]


def put_half(register: Array, value: Any, which: int, where: Any) -> None:
    """Write 16 bits to one half of the active lanes and keep the other half."""
    np.copyto(half(register, which, u16), as_bits16(value), where=where)


def as_bits16(value: Any) -> Array:
    return np.asarray(value).view(u16)


def pair(registers: list[Array], index: int) -> Any:
    """Return two registers as uint64."""
    return registers[index].astype(u64) | (registers[index + 1].astype(u64) << u64(32))


def put_pair(registers: list[Array], index: int, value: Any, where: Any) -> None:
    """Write 64 bits to two registers of the active lanes."""
    value = np.ascontiguousarray(np.broadcast_to(value, registers[index].shape)).view(u64)
    np.copyto(registers[index], value.astype(u32), where=where)
    np.copyto(registers[index + 1], (value >> u64(32)).astype(u32), where=where)


def not_overflowed(w: Waves, value: Array) -> Array:
    """Return a float16 result, in a program that sets the mode in which float16 saturates.

    Raises:
        NotExecuted: it is infinite in that mode. Which values stay infinite there is not known.
    """
    if (np.isinf(value) & (w.SU[OVERFLOW] != 0)).any():
        raise NotExecuted("float16 overflows in saturating mode")
    return value


def power_of(w: Waves, scale: Array, text: str) -> Array:
    """Return 2 to the exponent of a float32, as float64. `scale` holds the bits of the float32."""
    exponent = (scale >> u32(23)) & u32(255)
    if (w.active & (exponent == 255)).any():
        raise NotExecuted(f"{text}: a scale that is infinite or no number")
    return np.exp2(exponent.astype(np.float64) - 127)


def exactly(w: Waves, value: Array, kind: str, text: str) -> Array:
    """Return float64 as float32 if a float of `kind` represents it exactly.

    Raises:
        NotExecuted: the value must be rounded. The rounding is not known.
    """
    wide = value.astype(f32)
    narrow = value.astype(f16) if kind == "f16" else wide
    bad = np.asarray((narrow != value) & ~np.isnan(value))
    if kind == "bf16":
        bad |= (wide.view(u32) & u32(0xFFFF)) != 0
    if (w.active & bad).any():
        raise NotExecuted(f"{text}: a result that has to be rounded")
    return wide


def clamped(value: Array) -> Any:
    """Return the value clamped to 0 … 1. NaN becomes 0."""
    return np.fmin(np.fmax(value, value.dtype.type(0)), value.dtype.type(1))


def mixed(register: Array, is_half: int, which: int) -> Any:
    """Return a source of v_fma_mix: float32, or one float16 half as float32."""
    if is_half:
        return half(register, which, f16).astype(f32)
    return register.view(f32)


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A DPP pattern: for each lane the source lane, whether the source exists, and whether the lane is written."""

    source: Array
    valid: Array
    enabled: Array
    zero_fill: bool


_ROWS = ("row_shl", "row_shr", "row_ror", "row_mirror", "row_half_mirror", "row_bcast", "row_newbcast")
_DPP = frozenset(("quad_perm", *_ROWS, "wave_shl", "wave_shr"))


def shuffle(instruction: Instruction) -> Shuffle:
    """Return the pattern of a DPP instruction.

    Raises:
        NotExecuted: the pattern is not known.
    """
    row, place = LANE // 16, LANE % 16
    valid = np.ones(LANES, bool)
    names = [m for m in instruction.modifiers if m in _DPP]
    if len(names) != 1:
        raise NotExecuted(instruction.text)
    name = names[0]
    n = instruction.modifiers[name]
    if isinstance(n, tuple):
        source = (LANE & ~3) + np.array(n)[LANE % 4]
    elif not isinstance(n, int):
        raise NotExecuted(instruction.text)
    elif name == "row_shl":
        source, valid = LANE + n, place + n < 16
    elif name == "row_shr":
        source, valid = LANE - n, place >= n
    elif name == "row_ror":
        source = row * 16 + (place - n) % 16
    elif name == "row_mirror":
        source = row * 16 + 15 - place
    elif name == "row_half_mirror":
        source = (LANE & ~7) + 7 - LANE % 8
    elif name == "row_bcast" and n == 15:
        source, valid = row * 16 - 1, row > 0
    elif name == "row_bcast" and n == 31:
        source, valid = np.full(LANES, 31), LANE >= 32
    elif name == "row_newbcast":
        source = row * 16 + n
    elif name == "wave_shl" and n == 1:
        source, valid = LANE + 1, LANE < LANES - 1
    elif name == "wave_shr" and n == 1:
        source, valid = LANE - 1, LANE > 0
    else:
        raise NotExecuted(instruction.text)
    rows, banks = instruction.number("row_mask", 15), instruction.number("bank_mask", 15)
    enabled = ((rows >> row) & 1).astype(bool) & ((banks >> (place // 4)) & 1).astype(bool)
    # If the bit is set, LLVM writes bound_ctrl:1; older versions write bound_ctrl:0.
    return Shuffle(np.clip(source, 0, LANES - 1), valid, enabled, "bound_ctrl" in instruction.modifiers)


def shuffled(w: Waves, value: Array, pattern: Shuffle) -> tuple[Array, Any]:
    """Return the values that the lanes get, and a mask of the written lanes. An inactive source counts as none."""
    found = pattern.valid & w.active[:, pattern.source]
    moved = np.ascontiguousarray(np.broadcast_to(value, (w.count, LANES))[:, pattern.source])
    written = w.active & pattern.enabled
    if pattern.zero_fill:
        return np.where(found, moved, u32(0)), written
    return moved, written & found


def read_lane(w: Waves, value: Array, lane: Any) -> Array:
    """Return (n, 1): the value of one lane, active or not."""
    index = np.broadcast_to(np.asarray(lane, i64) & 63, (w.count, 1))
    return np.take_along_axis(value, index, 1)


def write_lane(w: Waves, register: Array, value: Any, lane: Any) -> None:
    index = np.broadcast_to(np.asarray(lane, i64) & 63, (w.count, 1))
    np.put_along_axis(register, index, np.broadcast_to(value, (w.count, 1)), 1)


def first_lane(w: Waves, value: Array) -> Array:
    """Return (n, 1): the value of the first active lane; of lane 0 if none is active."""
    return np.take_along_axis(value, np.argmax(w.active, 1)[:, None], 1)


def count_below(w: Waves, mask: Any, high: bool) -> Any:
    """v_mbcnt: return, for each lane, how many of the 32 bits of `mask` belong to lower lanes."""
    below = np.clip(LANE - 32 if high else LANE, 0, 32).astype(u64)
    bits = ((u64(1) << below) - u64(1)).astype(u32)
    return count_bits(np.broadcast_to(np.asarray(mask, u32), (w.count, LANES)) & bits)


def swap_rows(w: Waves, first: int, second: int, rows: int, text: str) -> None:
    """v_permlane<rows>_swap: swap the odd rows of the first register with the even rows of the second."""
    if w.mask is not True:
        raise NotExecuted(f"{text}: with inactive lanes")
    a = w.U[first].reshape(w.count, -1, 2, rows)
    b = w.U[second].reshape(w.count, -1, 2, rows)
    kept = a[:, :, 1].copy()
    a[:, :, 1] = b[:, :, 0]
    b[:, :, 0] = kept


def pull(w: Waves, address: Array, value: Array, offset: int) -> Array:
    """ds_bpermute: return for each lane the value of the lane that it addresses; 0 if that one is inactive."""
    source = ((address + u32(offset)) >> u32(2)) & u32(63)
    return np.take_along_axis(np.where(w.active, value, u32(0)), source.astype(i64), 1)


def push(w: Waves, address: Array, value: Array, offset: int) -> Array:
    """ds_permute: each active lane sends its value to a lane. The last sender wins; lanes without a sender get 0."""
    target = (((address + u32(offset)) >> u32(2)) & u32(63)).astype(i64)
    result = np.zeros((w.count, LANES), u32)
    for lane in range(LANES):
        sends = w.active[:, lane]
        result[sends, target[sends, lane]] = value[sends, lane]
    return result


def swizzled(w: Waves, value: Array, source: Array) -> Array:
    """ds_swizzle: return the value of each lane's source lane; 0 if that one is inactive."""
    return np.where(w.active, value, u32(0))[:, source]


_SWIZZLE = re.compile(r"swizzle\((\w+),(.*)\)$")


def swizzle(instruction: Instruction) -> Any:
    """Return the source lane of each lane in a ds_swizzle_b32.

    Raises:
        NotExecuted: the pattern is not known.
    """
    match = _SWIZZLE.match(str(instruction.modifiers.get("offset", "")).replace(" ", ""))
    if match is None:
        raise NotExecuted(instruction.text)
    mode, rest = match.groups()
    if mode == "BITMASK_PERM" and re.fullmatch(r'"[01pi]{5}"', rest):
        source = LANE & ~31
        for k, how in enumerate(reversed(rest.strip('"'))):
            bit = (LANE >> k) & 1
            source = source | ({"0": 0 * bit, "1": 0 * bit + 1, "p": bit, "i": 1 - bit}[how] << k)
        return source
    numbers = [int(part) for part in rest.split(",")]
    if mode == "SWAP":
        return LANE ^ numbers[0]
    if mode == "REVERSE":
        return LANE ^ (numbers[0] - 1)
    if mode == "BROADCAST":
        return (LANE & ~(numbers[0] - 1)) + numbers[1]
    if mode == "QUAD_PERM":
        return (LANE & ~3) + np.array(numbers)[LANE % 4]
    raise NotExecuted(instruction.text)


_SELECT = {
    "BYTE_0": (0, 8),
    "BYTE_1": (8, 8),
    "BYTE_2": (16, 8),
    "BYTE_3": (24, 8),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
}


def selected(value: Array, which: str, signed: bool) -> Any:
    """Return an SDWA source: a byte or word of each lane, extended to 32 bits."""
    if which == "DWORD":
        return value
    shift, width = _SELECT[which]
    part = (value >> u32(shift)) & u32((1 << width) - 1)
    if signed:
        top = u32(1 << (width - 1))
        return (part ^ top) - top
    return part


def placed(register: Array, value: Array, which: str, unused: str) -> Any:
    """Return an SDWA result: `value` as a byte or word of the destination. `unused` decides on the other bits."""
    if which == "DWORD":
        return value
    shift, width = _SELECT[which]
    mask = (1 << width) - 1
    part = (value & u32(mask)) << u32(shift)
    if unused == "UNUSED_PRESERVE":
        return part | (register & u32(0xFFFFFFFF ^ (mask << shift)))
    if unused == "UNUSED_SEXT":
        if shift + width == 32:
            return part
        top = u32(1 << (shift + width - 1))
        return ((part & ~u32(0)) ^ top) - top
    return part
