"""Scalar arithmetic, comparisons and exec."""

from __future__ import annotations

import re

import numpy as np

from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.opcodes.scalar import COMPARE, IN_PLACE, NOTHING, SAVE_EXEC, TABLE, Scalar
from gluonmap.cdna.operands import EXEC, OVERFLOW, Operand
from gluonmap.cdna.text import Instruction
from gluonmap.cdna.writer import Writer

_COMPARE = re.compile(r"s_cmp(k?)_(\w\w)_([iu])(32|64)$")
_SHORT = frozenset(("s_movk_i32", "s_addk_i32", "s_mulk_i32"))


def emit(out: Writer, i: Instruction) -> bool:
    name, operands = i.name, i.operands
    if name in NOTHING:
        return True
    if name in _SHORT:
        constant = _signed16(operands[1])
        if name in IN_PLACE:
            _compute(out, IN_PLACE[name], operands[0], (operands[0], constant))
        else:
            _compute(out, TABLE[name], operands[0], (constant,))
    elif name in TABLE:
        _compute(out, TABLE[name], operands[0], operands[1:])
    elif name in SAVE_EXEC:
        function = out.constant(SAVE_EXEC[name])
        out.line(f"kept = SQ[{EXEC}].copy(); SQ[{EXEC}][...] = {function}({out.source(operands[1], 'q')}, kept)")
        out.line(f"scc[...] = SQ[{EXEC}] != 0; SQ[{operands[0].index}][...] = kept")
        out.line("w.refresh(); W = w.mask")
    elif match := _COMPARE.match(name):
        short, how, sign, width = match.groups()
        if how not in COMPARE:
            return False
        kind = ("u" if sign == "u" else "i") if width == "32" else "q"
        second = operands[1]
        if short:
            second = _signed16(second) if sign == "i" else _unsigned16(second)
        a, b = out.source(operands[0], kind), out.source(second, kind)
        out.line(f"scc[...] = {out.constant(COMPARE[how])}({a}, {b})")
    elif name in ("s_addc_u32", "s_subb_u32"):
        a, b = (f"{out.source(o, 'u')}.astype({out.constant('i8')})" for o in operands[1:3])
        sign = "+" if name == "s_addc_u32" else "-"
        out.line(f"total = {a} {sign} {b} {sign} scc; scc[...] = (total < 0) | (total > 0xFFFFFFFF)")
        out.put_scalar(operands[0], "u", f"total.astype({out.constant('u4')})")
    elif name in ("s_cselect_b32", "s_cselect_b64"):
        kind = "u" if name.endswith("32") else "q"
        a, b = (out.source(o, kind) for o in operands[1:3])
        out.put_scalar(operands[0], kind, f"np.where(scc, {a}, {b})")
    elif name in ("s_cmov_b32", "s_cmov_b64"):
        kind = "u" if name.endswith("32") else "q"
        a, b = out.source(operands[1], kind), out.source(operands[0], kind)
        out.put_scalar(operands[0], kind, f"np.where(scc, {a}, {b})")
    elif name in ("s_bitcmp0_b32", "s_bitcmp1_b32"):
        a, b = (out.source(o, "u") for o in operands)
        out.line(f"scc[...] = (({a} >> ({b} & 31)) & 1) == {name[8]}")
    elif name == "s_setreg_imm32_b32" and operands[0].text.replace(" ", "") == "hwreg(HW_REG_MODE,23,1)":
        out.line(f"SU[{OVERFLOW}][...] = {int(operands[1].value) & 1}")
    elif name in ("s_bitset0_b32", "s_bitset1_b32"):
        bit = f"({out.constant(_ONE)} << ({out.source(operands[1], 'u')} & 31))"
        old = out.source(operands[0], "u")
        out.put_scalar(operands[0], "u", f"{old} | {bit}" if name[8] == "1" else f"{old} & ~{bit}")
    else:
        return False
    return True


def _compute(out: Writer, scalar: Scalar, destination: Operand, sources: tuple[Operand, ...]) -> None:
    if len(sources) != len(scalar.sources):
        raise NotExecuted(destination.text)
    values = ", ".join(out.source(o, kind) for o, kind in zip(sources, scalar.sources, strict=True))
    # SCC is computed before the result is written: the destination may be a source.
    if scalar.condition is not None:
        out.line(f"condition = {out.constant(scalar.condition)}({values})")
    out.put_scalar(destination, scalar.result, f"{out.constant(scalar.compute)}({values})")
    if scalar.condition is not None:
        out.line("scc[...] = condition")
    elif scalar.nonzero:
        name = "SU" if scalar.result in "ui" else "SQ"
        out.line(f"scc[...] = {name}[{destination.index}] != 0")


def _signed16(operand: Operand) -> Operand:
    value = int(operand.value) & 0xFFFF
    return Operand(operand.text, "int", value=value - 0x10000 if value & 0x8000 else value)


def _unsigned16(operand: Operand) -> Operand:
    return Operand(operand.text, "int", value=int(operand.value) & 0xFFFF)


_ONE = np.uint32(1)
