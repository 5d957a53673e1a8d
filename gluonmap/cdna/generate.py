"""Generated code: one Python function for each basic block, over the registers of a whole group of waves.

A block's function takes the group and returns its successor: None at the end of the program, the pc of the next block,
(pc,) after a barrier, or (condition, pc if it holds, pc if not) with one bit per wave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gluonmap.cdna import mfma, runtime
from gluonmap.cdna.emit import lanes, memory, scalar, vector
from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.opcodes.scalar import BRANCHES
from gluonmap.cdna.program import Block, MachineProgram
from gluonmap.cdna.state import Waves
from gluonmap.cdna.text import Instruction
from gluonmap.cdna.writer import Writer

Step = Callable[[Waves], Any]

_HEAD = "    U, F, I, SU, SF, SI, SQ, W, scc = w.U, w.F, w.I, w.SU, w.SF, w.SI, w.SQ, w.mask, w.scc"
_RUNTIME = {name: value for name, value in vars(runtime).items() if callable(value)}


@dataclass(frozen=True, slots=True)
class Generated:
    """The functions of a program, and their source text."""

    code: Any
    values: dict[str, Any]
    source: str

    def bind(self, **memories: Any) -> dict[int, Step]:
        """Return pc → function of the block that begins there, bound to these memories."""
        names: dict[str, Any] = {**_RUNTIME, **self.values, **memories, "np": np}
        exec(self.code, names)  # the text comes from the parsed program alone
        return {int(name[6:]): function for name, function in names.items() if name.startswith("block_")}


def generate(program: MachineProgram, sanitize: bool) -> Generated:
    """Return the functions of all blocks. With `sanitize` they call the sanitizer before each instruction."""
    values: dict[str, Any] = {"NotExecuted": NotExecuted, "multiply": mfma.multiply, "matrix": mfma.matrix}
    text: list[str] = []
    modal = any(i.name.startswith("s_setreg") for i in program.code.instructions)
    for block in program.blocks:
        out = Writer(values, program.code.target, modal)
        _block(out, program, block, sanitize)
        text += [f"def block_{block.start}(w):", _HEAD, *out.lines]
    source = "\n".join(text)
    return Generated(compile(source, f"<{program.code.name}>", "exec"), values, source)


def _block(out: Writer, program: MachineProgram, block: Block, sanitize: bool) -> None:
    matrices: dict[mfma.Matrix, str] = {}
    """Operands of matrix products that were read before and whose registers have not changed since → variable."""
    for i in block.instructions:
        if sanitize:
            _checks(out, program, i)
        if i.pc in program.products:
            _product(out, program.products[i.pc], matrices)
        else:
            if _branch(out, program, i):
                return
            _instruction(out, program, i)
        written = program.effects[i.pc].written
        for operand in [m for m in matrices if written.intersection(_registers(m))]:
            del matrices[operand]
    if block.end == len(program.code.instructions):
        out.line("raise NotExecuted('the program runs past its last instruction')")
    out.line(f"return {block.end}")


def _registers(operand: mfma.Matrix) -> set[int]:
    registers = set(range(operand.register, operand.register + operand.count))
    return registers | {operand.scale} if operand.scale >= 0 else registers


def _product(out: Writer, product: mfma.MatrixProduct, matrices: dict[mfma.Matrix, str]) -> None:
    for operand in (product.a, product.b):
        if operand not in matrices:
            matrices[operand] = f"matrix{len(out.values)}"
            constant = out.constant(operand)
            out.line(f"{matrices[operand]} = matrix(w, {constant}, {product.side}, {product.fnuz})")
    out.line(f"multiply(w, {out.constant(product)}, {matrices[product.a]}, {matrices[product.b]})")


def _checks(out: Writer, program: MachineProgram, i: Instruction) -> None:
    """Write the calls of the sanitizer before an instruction."""
    effects = program.effects[i.pc]
    if i.name == "s_waitcnt":
        out.line(f"sanitizer.wait(w, {i.pc}, {i.modifiers.get('vmcnt')}, {i.modifiers.get('lgkmcnt')})")
    elif i.name == "s_barrier":
        out.line(f"sanitizer.barrier(w, {out.constant(i)})")
    else:
        memory_access = i.pc in program.accesses or i.name.startswith("ds_")
        registers = effects.read if memory_access else effects.read | effects.written
        if registers:
            out.line(f"sanitizer.touch(w, {out.constant(i)}, {out.constant(registers)})")
    if (access := program.accesses.get(i.pc)) or i.name.startswith("ds_"):
        out.line(f"sanitizer.issue(w, {out.constant(i)}, {out.constant(access)}, {out.constant(effects.written)})")


def _branch(out: Writer, program: MachineProgram, i: Instruction) -> bool:
    """Write a branch, barrier or end; return whether `i` is one, so that its block ends here."""
    following = i.pc + 1
    match i.name:
        case "s_endpgm":
            out.line("return None")
        case "s_barrier":
            out.line(f"return ({following},)")
        case "s_branch":
            out.line(f"return {_target(program, i)}")
        case name if name in BRANCHES:
            out.line(f"return ({BRANCHES[name]}, {_target(program, i)}, {following})")
        case _:
            return False
    return True


def _target(program: MachineProgram, i: Instruction) -> int:
    label = i.operands[0].text
    if label not in program.code.labels:
        raise NotExecuted(i.text)
    return program.code.labels[label]


def _instruction(out: Writer, program: MachineProgram, i: Instruction) -> None:
    if i.name == "s_waitcnt":
        return
    before = len(out.lines)
    try:
        if i.pc in program.unknown:
            raise NotExecuted(program.unknown[i.pc])
        if access := program.accesses.get(i.pc):
            memory.emit(out, access)
            return
        for emit in (scalar.emit, vector.emit, lanes.emit):
            if emit(out, i):
                return
        raise NotExecuted(i.text)
    except NotExecuted as error:
        reason = str(error)
    except (ValueError, IndexError, TypeError, KeyError):
        # The instruction has another number or kind of operands than the known form.
        reason = i.text
    del out.lines[before:]
    program.unknown[i.pc] = reason
    out.line(f"raise NotExecuted({_named(i, reason)!r})")


def _named(i: Instruction, reason: str) -> str:
    return reason if i.text in reason else f"{i.text}: {reason}"
