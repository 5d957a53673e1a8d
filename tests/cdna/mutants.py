"""Programs with one thing taken away, and what the executor says of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gluonmap import cdna
from gluonmap.cdna import text

_INSTRUCTION = re.compile(r"\t[a-z]")
_COUNTER = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")


@dataclass(frozen=True)
class Case:
    """A kernel with inputs; `outputs` names the arrays that it writes."""

    assembly: str
    shared_bytes: int
    grid: tuple[int, ...]
    arguments: list[Any]

    def copies(self) -> list[Any]:
        """Arguments for one run."""
        return [
            cdna.Unwritten(a.array.copy())
            if isinstance(a, cdna.Unwritten)
            else a.copy()
            if isinstance(a, np.ndarray)
            else a
            for a in self.arguments
        ]

    def run(self, assembly: str, **how: Any) -> tuple[tuple[cdna.Finding, ...], bytes]:
        """Findings, and all bytes of the outputs."""
        arguments = self.copies()
        kernel = cdna.Kernel(text.read(assembly), self.shared_bytes)
        result = cdna.run(kernel, self.grid, arguments, steps=200_000, **how)
        return result.findings, b"".join(a.array.tobytes() for a in arguments if isinstance(a, cdna.Unwritten))


@dataclass(frozen=True)
class Mutant:
    """`place`: the line, counted from 1, and what stood there."""

    place: str
    assembly: str


def without(assembly: str, opcode: str) -> Iterator[Mutant]:
    """Each instruction whose opcode begins so, deleted on its own."""
    lines = assembly.splitlines()
    for number, line in enumerate(lines):
        if _INSTRUCTION.match(line) and line[1:].split()[0].startswith(opcode):
            yield Mutant(
                f"{number + 1}: {line.split(';')[0].strip()}", "\n".join([*lines[:number], *lines[number + 1 :]])
            )


def barriers(assembly: str) -> Iterator[Mutant]:
    """Each s_barrier deleted, but for those before which nothing was read from LDS, written there, or waited for.

    Triton 3.8 puts such a one between the first two asynchronous copies.
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
    """Each counter of each s_waitcnt one higher."""
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
    """(line of the text, counter) of waits that have nothing to wait for: no mutant of these can be told."""
    kernel = cdna.Kernel(text.read(case.assembly), case.shared_bytes)
    result = cdna.run(kernel, case.grid, case.copies(), sanitize=True)
    lines = [n + 1 for n, line in enumerate(case.assembly.splitlines()) if line.startswith("\ts_waitcnt")]
    waits = [i.pc for i in kernel.code.instructions if i.name == "s_waitcnt"]
    return {(lines[waits.index(pc)], counter) for pc, counter in result.idle_waits}


def needed_waits(case: Case) -> Iterator[Mutant]:
    """Each s_waitcnt deleted, and each counter one higher, where there is something to wait for."""
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
    """Place → how the mutant was told: `finding`, `order`, `numbers`, `refused`, or nothing if it was not."""
    clean, right = case.run(case.assembly, sanitize=True)
    assert clean == (), [str(f) for f in clean]
    result = {}
    for mutant in mutants:
        result[mutant.place] = _verdict(lambda mutant=mutant, **how: case.run(mutant.assembly, **how), right, orders)
    return result


def _verdict(run: Callable[..., tuple[Any, bytes]], right: bytes, orders: tuple[int, ...]) -> str:
    try:
        findings, got = run(sanitize=True)
        if findings:
            return "finding"
        if got != right:
            return "numbers"
        return next(("order" for seed in orders if run(order=seed, seed=seed)[1] != right), "")
    except (cdna.NotExecuted, cdna.StepLimit, cdna.BadProgram, ValueError, IndexError):
        return "refused"
