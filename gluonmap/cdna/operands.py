"""Operands of an instruction in assembly text."""

from __future__ import annotations

import re
from dataclasses import dataclass

ACCUMULATION = 256
"""Index of a0. Vector and accumulation registers form one file: v0 to v255, then a0 to a255."""
VCC, M0, EXEC = 106, 124, 126
"""Indices of these among the scalar registers (the encoding of the ISA)."""

OVERFLOW = 120
"""Index of the mode FP16_OVFL, 0 or 1, among the scalar registers. It is the number of an unused trap register."""

_SPECIAL = {
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1),
}
_REGISTER = re.compile(r"([sva])(?:(\d+)|\[(\d+):(\d+)\])$")
_INTEGER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)$")
_FLOAT = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?$")


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. `kind`: "v" (vector or accumulation), "s" (scalar), "int", "float", or "word" (a label, off, …)."""

    text: str
    kind: str
    index: int = 0
    """Index of the first register."""
    count: int = 0
    """Number of registers."""
    value: int | float = 0
    """Value of an immediate."""
    negative: bool = False
    absolute: bool = False
    extended: bool = False
    """sext(…): an SDWA source that is sign-extended."""

    @property
    def registers(self) -> range:
        return range(self.index, self.index + self.count)

    @property
    def immediate(self) -> bool:
        return self.kind in ("int", "float")


def parse(text: str) -> Operand:
    """Parse an operand, such as "v[0:3]", "-|s4|", "neg(0)", "0x80" or "off"."""
    inner, negative, absolute, extended = text, False, False, False
    if inner.startswith("sext(") and inner.endswith(")"):
        inner, extended = inner[5:-1], True
    if inner.startswith("neg(") and inner.endswith(")"):
        inner, negative = inner[4:-1], True
    elif inner.startswith("-") and inner[1:2] in ("s", "v", "a", "e", "m", "|"):
        inner, negative = inner[1:], True
    if inner.startswith("abs(") and inner.endswith(")"):
        inner, absolute = inner[4:-1], True
    elif len(inner) > 2 and inner.startswith("|") and inner.endswith("|"):
        inner, absolute = inner[1:-1], True
    if match := _REGISTER.match(inner):
        first = int(match[2] if match[2] is not None else match[3])
        last = first if match[2] is not None else int(match[4])
        kind = "s" if match[1] == "s" else "v"
        index = first + (ACCUMULATION if match[1] == "a" else 0)
        return Operand(text, kind, index, last - first + 1, 0, negative, absolute, extended)
    if inner in _SPECIAL:
        index, count = _SPECIAL[inner]
        return Operand(text, "s", index, count, 0, negative, absolute, extended)
    if _INTEGER.match(inner):
        return Operand(text, "int", value=int(inner, 0), negative=negative, absolute=absolute)
    if _FLOAT.match(inner):
        return Operand(text, "float", value=float(inner), negative=negative, absolute=absolute)
    return Operand(text, "word")
