"""The writer of a basic block's Python text: expressions for operands, statements for results, named constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.operands import EXEC, Operand
from gluonmap.cdna.text import Instruction

_DTYPES: dict[str, Any] = {
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
LISTS = {"u": "U", "i": "I", "f": "F"}
"""32-bit kind → name of the vector registers as that kind, in a block."""
_FLOATS = "fhd"
_HALVES = "wsh"
_PAIRS = "qld"


class Writer:
    """The statements of one block, and the constants K0, K1, … in them.

    In a block w is the group of waves, W the argument for `where=`, and U, F, I, SU, SF, SI, SQ and scc are registers.
    """

    def __init__(self, values: dict[str, Any], target: str, modal: bool = False) -> None:
        """`modal`: the program changes the overflow mode of float16."""
        self.lines: list[str] = []
        self.values = values
        self.target = target
        self.modal = modal

    def line(self, text: str) -> None:
        self.lines.append("    " + text)

    def constant(self, value: Any) -> str:
        """Return a new name for a value."""
        name = f"K{len(self.values)}"
        self.values[name] = value
        return name

    def source(self, operand: Operand, kind: str, upper: int = 0, modifiers: bool = True) -> str:
        """Return an expression for `operand` as `kind`, with the sign and absolute value of float operands.

        `upper`: 1 selects the upper half for a 16-bit kind, and the second register for a 32-bit kind.
        """
        text = self._raw(operand, kind, upper)
        if not modifiers or not (operand.negative or operand.absolute):
            return text
        if kind not in _FLOATS:
            if operand.immediate and operand.negative and not operand.absolute:
                raise NotExecuted(operand.text)
            raise NotExecuted(f"{operand.text}: a sign on an integer")
        text = f"np.abs({text})" if operand.absolute else text
        return f"(-{text})" if operand.negative else text

    def _raw(self, operand: Operand, kind: str, upper: int) -> str:
        index = operand.index
        if operand.immediate:
            return self.constant(immediate(operand, kind, upper))
        if operand.kind not in "vs":
            raise NotExecuted(operand.text)
        vector = operand.kind == "v"
        if kind in "uif":
            lists = {"u": ("U", "SU"), "i": ("I", "SI"), "f": ("F", "SF")}[kind]
            return f"{lists[0] if vector else lists[1]}[{index + upper}]"
        if kind in _HALVES:
            return f"half({'U' if vector else 'SU'}[{index}], {upper}, {self.constant(_DTYPES[kind])})"
        text = f"pair(U, {index})" if vector else f"SQ[{index}]"
        return text if kind == "q" else f"{text}.view({self.constant(_DTYPES[kind])})"

    def put(
        self, destination: Operand, kind: str, value: str, where: str = "W", upper: int = 0, keep: bool = False
    ) -> None:
        """Write `value` of `kind` to a vector register. A 16-bit kind zeroes the other half unless `keep` is set."""
        index = destination.index
        if destination.kind != "v":
            raise NotExecuted(destination.text)
        if kind == "h" and self.modal:
            value = f"not_overflowed(w, {value})"
        if kind in "uif":
            self.line(f"put({LISTS[kind]}[{index + upper}], {value}, {where})")
        elif kind in _HALVES and (keep or upper):
            self.line(f"put_half(U[{index}], {value}, {upper}, {where})")
        elif kind in _HALVES:
            self.line(f"put(U[{index}], as_bits16({value}), {where})")
        else:
            self.line(f"put_pair(U, {index}, {value}, {where})")

    def put_scalar(self, destination: Operand, kind: str, value: str) -> None:
        """Write `value` of `kind` to a scalar register."""
        if destination.kind != "s":
            raise NotExecuted(destination.text)
        name = {"u": "SU", "i": "SI", "f": "SF", "q": "SQ", "l": "SQ"}[kind]
        value = f"({value}).view({self.constant(np.uint64)})" if kind == "l" else value
        self.line(f"{name}[{destination.index}][...] = {value}")
        self.exec_written(destination)

    def exec_written(self, destination: Operand) -> None:
        """Write the update of the active lanes if `destination` is exec."""
        if destination.kind == "s" and EXEC in range(destination.index & ~1, destination.index + destination.count):
            self.line("w.refresh(); W = w.mask")

    def put_mask(self, destination: Operand, value: str) -> None:
        """Write one bit per lane to a scalar pair."""
        if destination.kind != "s" or destination.count != 2:
            raise NotExecuted(destination.text)
        self.line(f"w.set_lanes({destination.index}, {value})")
        if destination.index == EXEC:
            self.line("W = w.mask")

    def mask(self, operand: Operand) -> str:
        """Return an expression for the bits of a scalar pair, one per lane."""
        if operand.kind != "s" or operand.count != 2:
            raise NotExecuted(operand.text)
        return f"w.lanes({operand.index})"


def immediate(operand: Operand, kind: str, upper: int = 0) -> npt.NDArray[Any]:
    """Return a constant as an array of one element, as the hardware expands it for `kind`."""
    dtype = np.dtype(_DTYPES[kind])
    if operand.kind == "float":
        if kind in _PAIRS and kind != "d":
            raise NotExecuted(operand.text)
        as_float = {2: np.float16, 4: np.float32, 8: np.float64}[dtype.itemsize]
        return np.array([operand.value], as_float).view(dtype)
    if kind == "d" and not -16 <= operand.value <= 64:
        # A literal fills the upper half of a float64.
        return np.array([(int(operand.value) & 0xFFFFFFFF) << 32], np.uint64).view(dtype)
    bits = int(operand.value) & ((1 << 8 * dtype.itemsize) - 1)
    unsigned = {2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    return np.array([bits], unsigned).view(dtype)


def list_modifier(instruction: Instruction, name: str, count: int, default: int) -> tuple[int, ...]:
    """Return a list modifier such as op_sel, padded to `count` entries."""
    given = instruction.numbers(name, ())
    return given + (default,) * (count - len(given))
