"""A kernel ready for execution: registers without gaps, basic blocks, decoded instructions, and their effects."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from gluonmap.cdna import access, mfma
from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.operands import ACCUMULATION, EXEC, M0, VCC, Operand
from gluonmap.cdna.text import Code, Instruction

SCALAR = 1000
"""Register numbers of scalar registers in `Effects` begin here."""

_ENDS = ("s_branch", "s_cbranch", "s_barrier", "s_endpgm", "s_setpc", "s_swappc", "s_trap")
_NO_RESULT = (
    "s_cmp",
    "s_bitcmp",
    "s_cbranch",
    "s_branch",
    "s_waitcnt",
    "s_barrier",
    "s_endpgm",
    "s_nop",
    "s_sleep",
    "s_setreg",
)
_SECOND_RESULT = ("v_add_co", "v_addc_co", "v_sub", "v_div_scale", "v_mad_u64", "v_mad_i64")
_SWAPS = ("v_permlane16_swap", "v_permlane32_swap", "v_swap")


@dataclass(frozen=True, slots=True)
class Effects:
    """The registers that an instruction reads or keeps in part, and those that it writes."""

    read: frozenset[int]
    written: frozenset[int]


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block. Only its last instruction may branch."""

    start: int
    instructions: tuple[Instruction, ...]

    @property
    def end(self) -> int:
        """pc after the last instruction."""
        return self.start + len(self.instructions)


@dataclass(frozen=True, slots=True)
class MachineProgram:
    """A kernel with everything that is the same for all launches."""

    code: Code
    blocks: tuple[Block, ...]
    vectors: int
    """Number of vector registers. The accumulation registers follow them."""
    registers: int
    """Number of vector and accumulation registers."""
    accesses: dict[int, access.Access]
    """pc → memory access."""
    products: dict[int, mfma.MatrixProduct]
    """pc → matrix product."""
    effects: dict[int, Effects]
    unknown: dict[int, str]
    """pc → reason why the instruction is not executed."""

    def register_name(self, register: int) -> str:
        """Return the name of a register, such as v7, a3 or s12."""
        if register >= SCALAR:
            special = {VCC: "vcc", VCC + 1: "vcc_hi", EXEC: "exec", EXEC + 1: "exec_hi", M0: "m0"}
            return special.get(register - SCALAR, f"s{register - SCALAR}")
        return f"v{register}" if register < self.vectors else f"a{register - self.vectors}"


def build(code: Code) -> MachineProgram:
    """Return the program of `code`."""
    used = [r for i in code.instructions for o in i.operands if o.kind == "v" for r in (o.index, o.index + o.count - 1)]
    # v0 always exists: the launch writes the work-item's number there.
    vectors = 1 + max((r for r in used if r < ACCUMULATION), default=0)
    total = vectors + max((r - ACCUMULATION + 1 for r in used if r >= ACCUMULATION), default=0)
    instructions = [_renumbered(i, vectors) for i in code.instructions]
    accesses: dict[int, access.Access] = {}
    products: dict[int, mfma.MatrixProduct] = {}
    unknown: dict[int, str] = {}
    for instruction in instructions:
        try:
            if found := access.decode(instruction):
                accesses[instruction.pc] = found
            elif product := mfma.decode(instruction, code.target):
                products[instruction.pc] = product
        except NotExecuted as error:
            unknown[instruction.pc] = str(error)
        except ValueError:
            # The instruction has another number of operands than the known form.
            unknown[instruction.pc] = instruction.text
    effects = {i.pc: _effects(i, accesses.get(i.pc)) for i in instructions}
    return MachineProgram(code, _blocks(code, instructions), vectors, total, accesses, products, effects, unknown)


def _renumbered(instruction: Instruction, vectors: int) -> Instruction:
    if not any(o.kind == "v" and o.index >= ACCUMULATION for o in instruction.operands):
        return instruction
    shift = vectors - ACCUMULATION
    return replace(
        instruction,
        operands=tuple(
            replace(o, index=o.index + shift) if o.kind == "v" and o.index >= ACCUMULATION else o
            for o in instruction.operands
        ),
    )


def _blocks(code: Code, instructions: list[Instruction]) -> tuple[Block, ...]:
    targets = {o.text for i in instructions for o in i.operands if o.kind == "word"}
    leaders = {0, len(instructions)} | {pc for label, pc in code.labels.items() if label in targets}
    leaders |= {i.pc + 1 for i in instructions if i.name.startswith(_ENDS)}
    bounds = sorted(leaders)
    return tuple(Block(a, tuple(instructions[a:b])) for a, b in itertools.pairwise(bounds))


def _effects(instruction: Instruction, found: access.Access | None) -> Effects:
    operands = instruction.operands
    name = instruction.name
    results = 1
    if found is not None:
        results = 1 if (found.action in ("load", "transpose") and not found.to_lds) or found.returns else 0
    elif name.startswith(_NO_RESULT) or not operands:
        results = 0
    elif name.startswith(_SWAPS) or (
        name.startswith(_SECOND_RESULT) and len(operands) > 1 and operands[1].kind == "s" and operands[1].count == 2
    ):
        results = 2
    read = {r for o in operands[results:] for r in _registers(o)}
    if found is not None and found.returns and found.space == "buffer":
        # A buffer atomic has one register for its data and its result.
        read.update(_registers(operands[0]))
    if found is not None and found.to_lds:
        read.add(SCALAR + M0)
    if name.startswith("v_div_fmas"):
        read.update((SCALAR + VCC, SCALAR + VCC + 1))
    return Effects(frozenset(read), frozenset(r for o in operands[:results] for r in _registers(o)))


def _registers(operand: Operand) -> list[int]:
    if operand.kind == "v":
        return list(operand.registers)
    return [SCALAR + r for r in operand.registers] if operand.kind == "s" else []
