"""Mutants: programs with one thing removed, and how the executor detects each of them.

A mutant that cannot be detected is no failure of the executor. This module has three proofs of that, none of which
uses findings: `idle_waits` (there was nothing to wait for), `late` (the numbers are right even if every load lands as
late as its waits allow), and `without_effect` (the instruction changed nothing, or nothing read its result).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gluonmap import cdna
from gluonmap.cdna import text
from gluonmap.cdna.lds import Lds
from gluonmap.cdna.opcodes.scalar import TABLE as SCALAR_TABLE
from gluonmap.cdna.operands import EXEC, M0, VCC
from gluonmap.cdna.program import SCALAR, Block, MachineProgram
from gluonmap.cdna.sanitizer import Sanitizer
from gluonmap.cdna.state import Waves
from gluonmap.cdna.text import Instruction
from gluonmap.cdna.waits import Operation

_INSTRUCTION = re.compile(r"\t[a-z]")
_COUNTER = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")


@dataclass(frozen=True)
class Case:
    """A kernel with one or more launches, each a grid and arguments; outputs are `cdna.Unwritten`."""

    assembly: str
    shared_bytes: int
    launches: tuple[tuple[tuple[int, ...], list[Any]], ...]

    def run(self, assembly: str, launch: int = 0, **how: Any) -> tuple[tuple[cdna.Finding, ...], bytes]:
        """Return the findings of one launch, and all bytes of its outputs."""
        kernel = cdna.PreparedKernel(text.read(assembly), self.shared_bytes)
        result, outputs = self.execute(kernel, launch, **how)
        return result.findings, outputs

    def execute(self, kernel: cdna.PreparedKernel, launch: int, **how: Any) -> tuple[cdna.Result, bytes]:
        """Return the result of one launch of `kernel`, and all bytes of its outputs."""
        grid, given = self.launches[launch]
        arguments = [
            cdna.Unwritten(a.array.copy())
            if isinstance(a, cdna.Unwritten)
            else a.copy()
            if isinstance(a, np.ndarray)
            else a
            for a in given
        ]
        result = cdna.run(kernel, grid, arguments, steps=200_000, **how)
        return result, b"".join(a.array.tobytes() for a in arguments if isinstance(a, cdna.Unwritten))


@dataclass(frozen=True)
class Mutant:
    """A mutated text. `place`: the line, counted from 1, and its original text."""

    place: str
    assembly: str


def without(assembly: str, opcode: str) -> Iterator[Mutant]:
    """Yield a mutant for each instruction whose opcode begins so: the instruction is deleted."""
    lines = assembly.splitlines()
    for number, line in enumerate(lines):
        if _INSTRUCTION.match(line) and line[1:].split()[0].startswith(opcode):
            yield Mutant(
                f"{number + 1}: {line.split(';')[0].strip()}", "\n".join([*lines[:number], *lines[number + 1 :]])
            )


def barriers(assembly: str) -> Iterator[Mutant]:
    """Yield a mutant for each s_barrier: the barrier is deleted.

    A barrier is left out if nothing before it read from LDS, wrote to LDS or waited. Triton 3.8 puts such a barrier
    between the first two asynchronous copies.
    """
    lines = assembly.splitlines()
    needed = False
    numbers = set()
    for number, line in enumerate(lines):
        needed = needed or line.startswith(("\tds_", "\ts_waitcnt vmcnt"))
        if needed:
            numbers.add(number + 1)
    return (m for m in without(assembly, "s_barrier") if int(m.place.partition(":")[0]) in numbers)


def weakened(assembly: str) -> Iterator[Mutant]:
    """Yield a mutant for each counter of each s_waitcnt: the counter is one higher."""
    lines = assembly.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("\ts_waitcnt"):
            continue
        code = line.split(";")[0]
        for match in _COUNTER.finditer(code):
            changed = f"{code[: match.start(2)]}{int(match[2]) + 1}{code[match.end(2) :]}"
            yield Mutant(
                f"{number + 1}: {code.strip()} -> {changed.strip()}",
                "\n".join([*lines[:number], changed, *lines[number + 1 :]]),
            )


def idle_waits(case: Case) -> set[tuple[int, str]]:
    """Return (line of the text, counter) of waits that have nothing to wait for: their mutants cannot be detected."""
    kernel = cdna.PreparedKernel(text.read(case.assembly), case.shared_bytes)
    result, _ = case.execute(kernel, 0, sanitize=True)
    lines = [n + 1 for n, line in enumerate(case.assembly.splitlines()) if line.startswith("\ts_waitcnt")]
    waits = [i.pc for i in kernel.code.instructions if i.name == "s_waitcnt"]
    return {(lines[waits.index(pc)], counter) for pc, counter in result.idle_waits}


def needed_waits(case: Case) -> Iterator[Mutant]:
    """Yield mutants with a deleted s_waitcnt, and with a counter one higher, where there is something to wait for."""
    idle = idle_waits(case)
    for mutant in without(case.assembly, "s_waitcnt"):
        line = int(mutant.place.partition(":")[0])
        if any((line, counter) not in idle for counter, _ in _COUNTER.findall(mutant.place)):
            yield mutant
    for mutant in weakened(case.assembly):
        before, after = (_COUNTER.findall(part) for part in mutant.place.split(" -> "))
        line = int(mutant.place.partition(":")[0])
        if any((line, a[0]) not in idle for a, b in zip(before, after, strict=True) if a != b):
            yield mutant


def verdicts(case: Case, mutants: Iterator[Mutant], orders: tuple[int, ...] = (1, 2)) -> dict[str, str]:
    """Return place → how the mutant was detected: `finding`, `order`, `numbers`, `refused`, or "" if it was not.

    Further launches are run for mutants that the first launch does not detect.
    """
    right = []
    for launch in range(len(case.launches)):
        clean, numbers = case.run(case.assembly, launch, sanitize=True)
        assert clean == (), [str(f) for f in clean]
        right.append(numbers)
    result = {}
    for mutant in mutants:
        told = (_verdict(case, mutant, launch, expected, orders) for launch, expected in enumerate(right))
        result[mutant.place] = next((verdict for verdict in told if verdict), "")
    return result


def _verdict(case: Case, mutant: Mutant, launch: int, right: bytes, orders: tuple[int, ...]) -> str:
    try:
        findings, got = case.run(mutant.assembly, launch, sanitize=True)
        if findings:
            return "finding"
        if got != right:
            return "numbers"
        seeds = (seed for seed in orders if case.run(mutant.assembly, launch, order=seed, seed=seed)[1] != right)
        return next(("order" for _ in seeds), "")
    except (cdna.NotExecuted, cdna.StepLimit, cdna.BadProgram, ValueError, IndexError):
        return "refused"


SCC = 2 * SCALAR
"""SCC among the registers."""

# Loads as late as their waits allow


def late(case: Case, assembly: str, launch: int = 0, order: int = 1) -> bytes:
    """Return the outputs if each load, and each copy to LDS, lands when its wave waits for it and not before.

    Waves run one after the other between barriers. Findings play no role: this is another model of the same hardware,
    and it separates the harmless mutants from the others.
    """
    kernel = single_steps(case, assembly)
    arrivals = _Arrivals(kernel.program)
    with arrivals.instead():
        return case.execute(kernel, launch, order=order, sanitize=True, trace=arrivals)[1]


def harmless(case: Case, mutant: Mutant, orders: tuple[int, ...] = (1, 2, 3)) -> bool:
    """Return whether the mutant's numbers are right in each order, however late its loads land."""
    right = case.run(case.assembly)[1]
    return all(late(case, mutant.assembly, order=order) == right for order in orders)


def value(w: Waves, register: int) -> Any:
    """Return a view of a register by its number in `Effects`, or of SCC."""
    if register == SCC:
        return w.scc
    return w.SU[register - SCALAR] if register >= SCALAR else w.U[register]


def single_steps(case: Case, assembly: str) -> cdna.PreparedKernel:
    """Return the kernel with a block for each instruction, so that a trace sees each."""
    kernel = cdna.PreparedKernel(text.read(assembly), case.shared_bytes)
    blocks = (Block(i.pc, (i,)) for block in kernel.program.blocks for i in block.instructions)
    kernel.program = replace(kernel.program, blocks=tuple(blocks))
    return kernel


@dataclass
class _Arrivals:
    """A trace that reverts what loads have written, and writes it when they are waited for."""

    program: MachineProgram
    issued: dict[int, tuple[Waves, dict[int, Any]]] = field(default_factory=dict)
    """Wave → the old content of the registers that its last load writes."""
    flying: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """Operation → the values that it loads."""

    def __call__(self, block: Block, w: Waves) -> None:
        (i,) = block.instructions
        wave = int(w.ids[0])
        if wave in self.issued:
            self._take_back(*self.issued.pop(wave))
        if i.pc in self.program.accesses or i.name.startswith("ds_"):
            self.issued[wave] = w, {r: value(w, r).copy() for r in self.program.effects[i.pc].written}

    def _take_back(self, w: Waves, before: dict[int, Any]) -> None:
        for register, old in before.items():
            operation = w.tracks[0].pending[register]
            new = value(w, register).copy()
            value(w, register)[...] = old
            lanes = w.active.copy() if register < SCALAR else True
            self.flying[id(operation)].append((operation, partial(np.copyto, value(w, register), new, where=lanes)))

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Intercept copies to LDS, and operations that are waited for."""
        write, landed = Lds.land, Sanitizer._landed
        flying = self.flying

        def land(self: Lds, w: Waves, access: Any, places: Any, active: Any, values: Any) -> None:
            before = self.bytes.copy()
            write(self, w, access, places, active, values)
            at = (places + self.starts(w))[active][:, None] + np.arange(access.size)
            new = self.bytes[at].copy()
            self.bytes[...] = before
            assert self.sanitizer is not None
            operation = self.sanitizer._current
            flying[id(operation)].append((operation, partial(self.bytes.__setitem__, at, new)))

        def arrive(self: Sanitizer, operation: Operation, ids: Any) -> None:
            for _, bring in flying.pop(id(operation), ()):
                bring()
            landed(self, operation, ids)

        Lds.land, Sanitizer._landed = land, arrive  # type: ignore[method-assign]
        try:
            yield
        finally:
            Lds.land, Sanitizer._landed = write, landed  # type: ignore[method-assign]


# Which instructions had an effect

_READS_SCC = ("s_cbranch_scc", "s_cselect", "s_cmov", "s_addc", "s_subb")
_WRITES_SCC = ("s_cmp", "s_bitcmp", "s_addc", "s_subb", "s_and_saveexec", "s_or_saveexec", "s_xor_saveexec", "s_andn")
_WHOLE = (
    *("v_mov_b", "v_accvgpr_", "v_cndmask_b32", "v_add_", "v_lsh", "v_and_", "v_or_", "v_or3_", "v_bf", "v_perm_b32"),
    *("v_mul_", "v_cmp_", "v_pk_mul", "v_exp_", "v_sub_", "v_max_", "s_mov_", "s_and_b", "s_or_b", "s_lsh", "s_add_"),
    *("s_ashr", "s_load_", "buffer_load_dword", "buffer_load_ushort", "global_load_dword", "ds_read_b", "v_readlane"),
)
"""Opcodes that overwrite their whole result (under a full exec)."""


@dataclass
class _Watch:
    """A trace of each instruction, one wave at a time, before it runs."""

    program: MachineProgram
    executed: set[int] = field(default_factory=set)
    jumped: set[int] = field(default_factory=set)
    """Instructions whose successor was not the next instruction."""
    changed: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """pc → registers, SCC included, whose content it changed."""
    read_by: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    """(pc, register) → instructions that read there what it wrote."""
    last: dict[int, tuple[int, Waves, dict[int, tuple[Any, bool]]]] = field(default_factory=dict)
    writers: dict[int, dict[int, set[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    """Wave → register → instruction that wrote its content."""

    def __call__(self, block: Block, w: Waves) -> None:
        (i,) = block.instructions
        wave = int(w.ids[0])
        self.settle(wave, i.pc)
        self.executed.add(i.pc)
        read, written = self.touched(i)
        writers = self.writers[wave]
        whole = (
            i.name.startswith(_WHOLE)
            and not i.name.endswith(("_sdwa", "_dpp", "_d16_hi"))
            and not i.modifiers.get("op_sel")
        )
        whole = whole and (not i.name.startswith(("v_", "buffer_", "global_", "ds_")) or bool(w.active.all()))
        for register in read if whole else read | written:
            for writer in writers[register]:
                self.read_by[writer, register].add(i.pc)
        self.last[wave] = i.pc, w, {r: (value(w, r).copy(), whole) for r in written}

    def settle(self, wave: int, following: int) -> None:
        """Compare the results of the wave's last instruction with the content before it."""
        if wave not in self.last:
            return
        pc, w, before = self.last.pop(wave)
        writers = self.writers[wave]
        for register, (old, whole) in before.items():
            same = not (old != value(w, register)).any()
            if not same:
                self.changed[pc].add(register)
            # If it wrote the same value as before, its readers also read the earlier writer's value.
            writers[register] = {pc} if whole and not same else writers[register] | {pc}
        if following != pc + 1:
            self.jumped.add(pc)

    def touched(self, i: Instruction) -> tuple[set[int], set[int]]:
        effects = self.program.effects[i.pc]
        read, written = set(effects.read), set(effects.written)
        if not i.name.startswith("s_") or "saveexec" in i.name or "exec" in i.name:
            read |= {SCALAR + EXEC, SCALAR + EXEC + 1}
        if "saveexec" in i.name:
            written |= {SCALAR + EXEC, SCALAR + EXEC + 1}
        if i.name.startswith("s_cbranch_vcc"):
            read |= {SCALAR + VCC, SCALAR + VCC + 1}
        if i.name.startswith("s_setreg") or "lds" in i.modifiers:
            read.add(SCALAR + M0)
        if i.name.startswith(_READS_SCC):
            read.add(SCC)
        scalar = SCALAR_TABLE.get(i.name)
        if i.name.startswith(_WRITES_SCC) or (scalar is not None and (scalar.nonzero or scalar.condition is not None)):
            written.add(SCC)
        return read, written


def without_effect(case: Case) -> dict[int, str]:
    """Return line of the text → why its instruction makes no difference to these launches.

    The reason is "not reached" or "changes nothing": each register that it wrote held the same before, was overwritten
    before it was read, or was read only by such instructions. Waves run one after the other, instruction by
    instruction.
    """
    kernel = single_steps(case, case.assembly)
    program = kernel.program
    watch = _Watch(kernel.program)
    for launch in range(len(case.launches)):
        case.execute(kernel, launch, order=1, trace=watch)
        for wave in list(watch.last):
            watch.settle(wave, -1)
        watch.writers.clear()
    code = program.code.instructions
    loads = {pc for pc, a in program.accesses.items() if a.action in ("load", "transpose") and not a.to_lds}
    branches = {i.pc for i in code if i.name.startswith(("s_cbranch", "s_branch"))}
    plain = {i.pc for i in code if watch.touched(i)[1] and not i.name.startswith("s_setreg")} - program.accesses.keys()
    # Alive are instructions that write no register, that jump, or whose result an alive instruction reads.
    effective = {i.pc for i in code} - plain - loads - branches | branches & watch.jumped
    alive = effective | branches
    grown = True
    while grown:
        more = {pc for (pc, _), readers in watch.read_by.items() if pc not in alive and readers & alive}
        alive |= more
        grown = bool(more)
    # Effective is an instruction that changed something for an alive one. (One that changes nothing here could do so
    # with other inputs, and keeps alive the instructions whose results it reads.)
    effective |= {
        pc
        for (pc, register), readers in watch.read_by.items()
        if readers & alive and (pc in loads or register in watch.changed[pc])
    }
    lines = [n + 1 for n, line in enumerate(case.assembly.splitlines()) if _INSTRUCTION.match(line)]
    return {
        lines[i.pc]: "not reached" if i.pc not in watch.executed else "changes nothing"
        for i in code
        if i.pc not in watch.executed or i.pc not in effective
    }
