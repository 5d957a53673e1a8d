"""Decoded memory instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.operands import Operand
from gluonmap.cdna.text import Instruction

_SIZES = {
    "dword": 4,
    "dwordx2": 8,
    "dwordx3": 12,
    "dwordx4": 16,
    "ubyte": 1,
    "sbyte": 1,
    "byte": 1,
    "ushort": 2,
    "sshort": 2,
    "short": 2,
}
_VECTOR_MEMORY = re.compile(
    r"(global|buffer|scratch|flat)_(load|store)_(lds_)?(dwordx[234]|dword|[us]?byte|[us]?short)(_d16_hi|_d16)?$"
)
_ATOMIC = re.compile(r"(global|buffer|flat)_atomic_(\w+)$")
_DS = re.compile(r"ds_(read|write)(2st64|2)?_(b32|b64|b96|b128|[ui]8|[ui]16|b8|b16)(_d16_hi|_d16)?$")
_DS_TRANSPOSE = re.compile(r"ds_read_b64_tr_b(8|16)$")
_SCALAR_LOAD = re.compile(r"s_load_dword(?:x(\d+))?$")
_DS_ATOMIC = re.compile(r"ds_(add|sub|min|max|and|or|xor)(_rtn)?_(u32|i32|b32|f32|u64)$")

ATOMICS = {
    "add": "u32",
    "sub": "u32",
    "smax": "i32",
    "smin": "i32",
    "umax": "u32",
    "umin": "u32",
    "and": "u32",
    "or": "u32",
    "xor": "u32",
    "swap": "u32",
    "cmpswap": "u32",
    "add_f32": "f32",
    "add_x2": "u64",
    "add_f64": "f64",
    "pk_add_f16": "f16",
    "pk_add_bf16": "bf16",
}
"""Operation → type of its operands. Other operations are not executed."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One memory instruction. Registers are indices into the register file of the program."""

    instruction: Instruction
    space: str
    """global, buffer, flat (whose addresses are those of global memory here), scratch, lds, or scalar."""
    action: str
    """load, store, atomic, or transpose."""
    size: int
    """Bytes that one lane accesses at one address."""
    data: tuple[int, ...] = ()
    """First register of the data, one entry per address (ds_read2_… has two)."""
    offsets: tuple[int, ...] = (0,)
    signed: bool = False
    high: bool = False
    """The data is the upper half of its register."""
    keeps: bool = False
    """A load to one half of its register, which keeps the other half."""
    to_lds: bool = False
    returns: bool = False
    """An atomic that returns the old value."""
    operation: str = ""
    result: int = -1
    """Register of an atomic's old value."""
    address: Operand | None = None
    base: Operand | None = None
    """Scalar base, or the descriptor of a buffer."""
    offset: Operand | None = None
    """Scalar offset of a buffer or scratch access."""


def decode(instruction: Instruction) -> Access | None:
    """Return the memory access of `instruction`; None if it accesses no memory.

    Raises:
        NotExecuted: the access has a form that is not known.
    """
    name = instruction.name
    if match := _VECTOR_MEMORY.match(name):
        return _vector_memory(instruction, match)
    if match := _ATOMIC.match(name):
        return _atomic(instruction, match)
    if match := _DS.match(name):
        return _ds(instruction, match)
    if match := _DS_TRANSPOSE.match(name):
        destination, address = instruction.operands
        offsets = (instruction.number("offset"),)
        return Access(
            instruction, "lds", "transpose", 8, (destination.index,), offsets, operation=match[1], address=address
        )
    if match := _DS_ATOMIC.match(name):
        returns = bool(match[2])
        operands = instruction.operands
        address, data = operands[1:3] if returns else operands[:2]
        return Access(
            instruction,
            "lds",
            "atomic",
            8 if match[3].endswith("64") else 4,
            (data.index,),
            (instruction.number("offset"),),
            returns=returns,
            operation=f"{match[1]}_{match[3]}",
            result=operands[0].index if returns else -1,
            address=address,
        )
    if match := _SCALAR_LOAD.match(name):
        destination, base, offset = instruction.operands
        return Access(
            instruction,
            "scalar",
            "load",
            4 * int(match[1] or 1),
            (destination.index,),
            (instruction.number("offset"),),
            base=base,
            offset=offset,
        )
    return None


def _vector_memory(instruction: Instruction, match: re.Match[str]) -> Access:
    space, action, lds, width, part = match.groups()
    operands = instruction.operands
    to_lds = bool(lds) or "lds" in instruction.modifiers
    keeps = action == "load" and bool(part)
    if "idxen" in instruction.modifiers or (keeps and (to_lds or space == "scratch")):
        raise NotExecuted(instruction.text)
    data: tuple[int, ...] = ()
    base: Operand | None = None
    offset: Operand | None = None
    if space == "flat":
        register, address = operands if action == "load" else operands[::-1]
        data = (register.index,)
    elif space == "buffer":
        if to_lds:
            address, base, offset = operands
        else:
            register, address, base, offset = operands
            data = (register.index,)
    else:
        if to_lds:
            address, base = operands[:2]
        elif action == "load":
            register, address, base = operands
            data = (register.index,)
        else:
            address, register, base = operands
            data = (register.index,)
    return Access(
        instruction,
        space,
        action,
        _SIZES[width],
        data,
        (instruction.number("offset"),),
        signed=width.startswith("s") and not width.startswith("sh"),
        high=part == "_d16_hi",
        keeps=keeps,
        to_lds=to_lds,
        address=address,
        base=base,
        offset=offset,
    )


def _atomic(instruction: Instruction, match: re.Match[str]) -> Access:
    space, operation = match.groups()
    if operation not in ATOMICS:
        raise NotExecuted(instruction.text)
    returns = "sc0" in instruction.modifiers
    operands = list(instruction.operands)
    size = {"u64": 8, "f64": 8}.get(ATOMICS[operation], 4)
    offset: Operand | None = None
    base: Operand | None
    if space == "buffer":
        data, address, base, offset = operands
        result = data.index
    else:
        result = operands.pop(0).index if returns else -1
        address, data, *rest = operands
        if len(rest) != (space == "global"):
            raise NotExecuted(instruction.text)
        base = rest[0] if rest else None
    return Access(
        instruction,
        space,
        "atomic",
        size,
        (data.index,),
        (instruction.number("offset"),),
        returns=returns,
        operation=operation,
        result=result if returns else -1,
        address=address,
        base=base,
        offset=offset,
    )


def _ds(instruction: Instruction, match: re.Match[str]) -> Access:
    action, pair, width, part = match.groups()
    size = int(width[1:]) // 8
    operands = instruction.operands
    offsets: tuple[int, ...]
    if pair:
        unit = size * (64 if pair == "2st64" else 1)
        offsets = (instruction.number("offset0") * unit, instruction.number("offset1") * unit)
    else:
        offsets = (instruction.number("offset"),)
    if action == "read":
        destination, address = operands
        step = max(1, size // 4)
        data = tuple(destination.index + step * k for k in range(len(offsets)))
    else:
        address = operands[0]
        data = tuple(o.index for o in operands[1:])
    return Access(
        instruction,
        "lds",
        "load" if action == "read" else "store",
        size,
        data,
        offsets,
        signed=width.startswith("i"),
        high=part == "_d16_hi",
        keeps=action == "read" and bool(part),
        address=address,
    )
