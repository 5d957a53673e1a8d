"""Matrix instructions: shapes, the layout of operands and results in the registers, and the products.

Operands: a lane holds consecutive k of one row of A or one column of B. Lane l holds row l % M; its group is
g = l // M, of 64 // M groups. Result: lane l holds column l % M. Its registers come in fours of consecutive rows:
register 4 b + q is row 4 (b (64 // M) + g) + q. A float64 fills two registers, and the pair q is row 4 q + g.

Instructions with sixteen products of 4 x 4 (4x4x…_16b): lane l belongs to block l // 4 and row or column l % 4, and
holds all of its k. Register q of the result is row q. One block of A may serve 2**cbsz consecutive blocks: the block
with the number abid among them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.formats import BF8, E2M1, FP8
from gluonmap.cdna.state import LANES, Waves
from gluonmap.cdna.text import Instruction

Array = npt.NDArray[Any]
u8, u16, u32, f16, f32, f64, i32 = np.uint8, np.uint16, np.uint32, np.float16, np.float32, np.float64, np.int32

_NAME = re.compile(r"v_mfma_(scale_)?([fi]32|f64)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_(\w+)$")
_BOTH = ("gfx942", "gfx950")
_NEW = ("gfx950",)
_BYTES = {f"{a}_{b}" for a in ("fp8", "bf8") for b in ("fp8", "bf8")}

SHAPES: dict[tuple[int, int, str], tuple[str, ...]] = {
    (32, 8, "f16"): _BOTH,
    (16, 16, "f16"): _BOTH,
    (32, 8, "bf16"): _BOTH,
    (16, 16, "bf16"): _BOTH,
    (32, 8, "bf16_1k"): _BOTH,
    (16, 16, "bf16_1k"): _BOTH,
    (32, 2, "f32"): _BOTH,
    (16, 4, "f32"): _BOTH,
    (4, 4, "f16"): _BOTH,
    (4, 4, "bf16"): _BOTH,
    (4, 4, "i8"): _BOTH,
    (4, 1, "f32"): _BOTH,
    (16, 4, "f64"): _BOTH,
    (32, 4, "xf32"): ("gfx942",),
    (16, 8, "xf32"): ("gfx942",),
    (32, 16, "i8"): _BOTH,
    (16, 32, "i8"): _BOTH,
    **{(32, 16, t): _BOTH for t in _BYTES},
    **{(16, 32, t): _BOTH for t in _BYTES},
    (32, 16, "f16"): _NEW,
    (16, 32, "f16"): _NEW,
    (32, 16, "bf16"): _NEW,
    (16, 32, "bf16"): _NEW,
    (32, 32, "i8"): _NEW,
    (16, 64, "i8"): _NEW,
    (32, 64, "f8f6f4"): _NEW,
    (16, 128, "f8f6f4"): _NEW,
}
"""(rows and columns, k, type) → targets. Those of two or four blocks are not executed."""
_BLOCKS = 16
_SMALL = 4
"""Blocks of a 4 x 4 product, and its side."""

_F8F6F4 = {0: "fp8", 1: "bf8", 4: "fp4"}
"""cbsz and blgp of f8f6f4 → format; 2 and 3 are the formats of 6 bits."""
_RUN = 16
"""An 8-bit operand of f8f6f4 has two runs of 16 k. The second is 16 * groups after the first."""
_BLOCK = 32
"""Number of k with one scale."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The registers of one operand, and its format."""

    register: int
    count: int
    form: str
    runs: bool = False
    scale: int = -1
    """Register of the scales, or -1."""
    scale_byte: int = 0


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """One matrix instruction: D = A B + C, both of `side` rows and columns."""

    side: int
    destination: int
    a: Matrix
    b: Matrix
    addend: int
    """First register of C; -1 means that C is zero."""
    integer: bool
    fnuz: bool
    double: bool = False
    shared_by: int = 1
    """Number of consecutive blocks that take A from one of them."""
    shared: int = 0
    """Number of that block among them."""

    @property
    def results(self) -> int:
        """Number of registers of C and of D."""
        return max(self.side * self.side // LANES, _SMALL) * (2 if self.double else 1)


def decode(instruction: Instruction, target: str) -> MatrixProduct | None:
    """Return the product of `instruction`; None if it is not a matrix instruction.

    Raises:
        NotExecuted: its shape, type or modifier is not known.
    """
    if not instruction.name.startswith(("v_mfma", "v_smfmac")):
        return None
    match = _NAME.match(instruction.name)
    if match is None:
        raise NotExecuted(instruction.text)
    scaled, result, rows, columns, k, blocks, form = match.groups()
    side = int(rows)
    several = side == _SMALL
    if blocks != (str(_BLOCKS) if several else None):
        raise NotExecuted(instruction.text)
    if rows != columns or (result == "f64") != (form == "f64") or target not in SHAPES.get((side, int(k), form), ()):
        raise NotExecuted(instruction.text)
    small = form == "f8f6f4"
    cbsz, blgp = instruction.number("cbsz"), instruction.number("blgp")
    if not small and (blgp or (not several and (cbsz or "abid" in instruction.modifiers))):
        raise NotExecuted(instruction.text)
    if several and (cbsz > 4 or instruction.number("abid") >= 1 << cbsz):
        raise NotExecuted(instruction.text)
    forms: list[str]
    if small:
        if cbsz not in _F8F6F4 or blgp not in _F8F6F4:
            raise NotExecuted(instruction.text)
        forms = [_F8F6F4[cbsz], _F8F6F4[blgp]]
    elif form in _BYTES:
        forms = form.split("_")
    else:
        forms = [form.split("_")[0]] * 2
    destination, a, b, c = instruction.operands[:4]
    if c.kind != "v" and (c.kind != "int" or c.value != 0):
        raise NotExecuted(instruction.text)
    scales = [(-1, 0), (-1, 0)]
    if scaled:
        if any(o.kind != "v" for o in instruction.operands[4:6]):
            raise NotExecuted(instruction.text)
        low, high = instruction.numbers("op_sel", (0, 0, 0)), instruction.numbers("op_sel_hi", (1, 1, 1))
        scales = [(instruction.operands[4 + s].index, low[s] + 2 * high[s]) for s in range(2)]
    a_matrix, b_matrix = (
        Matrix(o.index, o.count, f, small and f != "fp4", *s) for o, f, s in zip((a, b), forms, scales, strict=True)
    )
    return MatrixProduct(
        side,
        destination.index,
        a_matrix,
        b_matrix,
        c.index if c.kind == "v" else -1,
        result == "i32",
        target == "gfx942",
        form == "f64",
        1 << cbsz if several else 1,
        instruction.number("abid") if several else 0,
    )


def matrix(w: Waves, operand: Matrix, side: int, fnuz: bool) -> Array:
    """Return the rows of A, or the columns of B, scaled: (n, side, k) float32; for 4 x 4 blocks (n, 16, 4, k).

    int8 is returned as float64.
    """
    groups = LANES // side
    if operand.form == "f64":
        pairs = np.stack([w.U[operand.register], w.U[operand.register + 1]], axis=-1).view(f64)
        return pairs.reshape(w.count, groups, side).transpose(0, 2, 1)
    values = _elements(w, operand, (operand.count, w.count, groups, side), fnuz)
    if side == _SMALL:
        return values.transpose(1, 2, 3, 0, 4).reshape(w.count, groups, side, -1)
    rows = values.transpose(1, 3, 2, 0, 4).reshape(w.count, side, -1)
    if operand.runs:
        rows = rows.reshape(w.count, side, groups, 2, _RUN).transpose(0, 1, 3, 2, 4).reshape(w.count, side, -1)
    if operand.scale >= 0:
        codes = (w.U[operand.scale] >> u32(8 * operand.scale_byte)) & u32(255)
        scales = _POWERS.take(codes).reshape(w.count, groups, side).transpose(0, 2, 1)
        rows = (rows.reshape(w.count, side, groups, _BLOCK) * scales[..., None]).reshape(w.count, side, -1)
    return rows


def _elements(w: Waves, operand: Matrix, lanes: tuple[int, ...], fnuz: bool) -> Array:
    """Return the numbers in the operand's registers: (*lanes, elements of a register)."""
    registers = w.vector[operand.register : operand.register + operand.count]
    match operand.form:
        case "f16":
            return registers.view(f16).reshape(*lanes, 2).astype(f32)
        case "bf16":
            wide: Array = (registers.view(u16).astype(u32) << u32(16)).view(f32)
            return wide.reshape(*lanes, 2)
        case "f32":
            return registers.view(f32).reshape(*lanes, 1)
        case "xf32":
            if (registers & u32(0x1FFF)).any():
                raise NotExecuted(
                    "xf32 of values with more than 10 bits of mantissa: how they are rounded is not known"
                )
            return registers.view(f32).reshape(*lanes, 1)
        case "i8":
            return registers.view(np.int8).reshape(*lanes, 4).astype(f64)
        case "fp8":
            return FP8[fnuz].take(registers.view(u8)).reshape(*lanes, 4)
        case "bf8":
            return BF8[fnuz].take(registers.view(u8)).reshape(*lanes, 4)
        case "fp4":
            return _PAIRS.take(registers.view(u8), axis=0).reshape(*lanes, 8)
    raise NotExecuted(f"matrix operand of {operand.form}")


def multiply(w: Waves, product: MatrixProduct, a: Array, b: Array) -> None:
    """Write A B + C to the destination, in all lanes: a matrix instruction ignores exec."""
    side, count = product.side, product.results
    groups = LANES // side
    if product.double:
        _multiply_double(w, product, a, b)
        return
    if side == _SMALL:
        of = np.arange(_BLOCKS) // product.shared_by * product.shared_by + product.shared
        shape: tuple[int, ...] = (_SMALL, w.count, _BLOCKS, _SMALL)
        lanes = np.matmul(a[:, of], b.transpose(0, 1, 3, 2)).transpose(2, 0, 1, 3)
    else:
        blocks = side // 4 // groups
        shape = (blocks, 4, w.count, groups, side)
        result = np.matmul(a, b.transpose(0, 2, 1))
        lanes = result.reshape(w.count, blocks, groups, 4, side).transpose(1, 3, 0, 2, 4)
    target = w.vector[product.destination : product.destination + count]
    if product.integer:
        whole = lanes.astype(np.int64)
        if product.addend >= 0:
            whole = whole + w.vector[product.addend : product.addend + count].view(i32).reshape(shape)
        target.reshape(shape)[...] = whole.astype(i32).view(u32)
        return
    out = target.view(f32).reshape(shape)
    if product.addend < 0:
        out[...] = lanes
        return
    addend = w.vector[product.addend : product.addend + count].view(f32).reshape(shape)
    np.add(addend, lanes, out=out)


def _multiply_double(w: Waves, product: MatrixProduct, a: Array, b: Array) -> None:
    count = product.results
    total = np.matmul(a, b.transpose(0, 2, 1)).reshape(w.count, count // 2, LANES).transpose(1, 0, 2)
    if product.addend >= 0:
        words = w.vector[product.addend : product.addend + count].reshape(count // 2, 2, w.count, LANES)
        total = total + np.ascontiguousarray(words.transpose(0, 2, 3, 1)).view(f64)[..., 0]
    words = np.ascontiguousarray(total).view(u32).reshape(count // 2, w.count, LANES, 2)
    w.vector[product.destination : product.destination + count] = words.transpose(0, 3, 1, 2).reshape(
        count, w.count, LANES
    )


_PAIRS = np.stack([E2M1[np.arange(256) & 15], E2M1[np.arange(256) >> 4]], axis=-1)
"""Byte → its two fp4 values, the lower four bits first."""
_POWERS = np.concatenate([np.exp2(np.arange(255, dtype=f64) - 127), [np.nan]]).astype(f32)
"""e8m0 → float32; 2**-127 is a denormal, 255 is NaN."""
