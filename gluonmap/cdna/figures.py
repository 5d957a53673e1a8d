"""Counters of a run that explain a program; none of them is a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.access import Access
from gluonmap.cdna.program import Block, MachineProgram

Array = npt.NDArray[Any]

LINE_BYTES = 64
_BANKS = {"gfx942": 32, "gfx950": 64}
"""LDS banks of 4 bytes."""


@dataclass(frozen=True, slots=True)
class CounterSummary:
    """Counts over all waves of a launch."""

    instructions: dict[str, int]
    """Family → number of instructions, each counted for every wave that executed it."""
    opcodes: dict[str, int]
    """Opcode → number of instructions, likewise, the most frequent first."""
    mfma_share: float
    """Share of matrix instructions among all, from 0 to 1."""
    waits: int
    """Number of executed s_waitcnt."""
    barriers: int
    lds_cycles: int
    """Passes over the banks that LDS accesses took. A pass serves consecutive lanes."""
    lds_ideal_cycles: int
    """Passes that they would take without conflicts."""
    global_accesses: int
    """Number of global instructions with an active lane."""
    global_lines: int
    """Lines of 64 bytes that these touched, counted for each instruction separately."""
    global_bytes: int
    """Bytes that their lanes accessed. Bytes that several lanes of an instruction access count once."""
    scratch_bytes: int
    """Bytes that lanes stored to scratch and loaded from it."""

    @property
    def lines_per_access(self) -> float:
        return self.global_lines / self.global_accesses if self.global_accesses else 0.0

    @property
    def bank_conflict_factor(self) -> float:
        """Passes over the banks divided by the ideal number; 1 without conflicts."""
        return self.lds_cycles / self.lds_ideal_cycles if self.lds_ideal_cycles else 1.0


class Counters:
    """Counts of a launch while it runs."""

    def __init__(self, program: MachineProgram, waves: int) -> None:
        self.banks = _BANKS[program.code.target]
        self.waves = waves
        self.totals: Counter[str] = Counter()

    def global_access(self, access: Access, offsets: Array, active: Array) -> None:
        """Count one global instruction. `offsets` (n, 64) are byte offsets into global memory."""
        ends = np.concatenate([offsets, offsets + access.size - 1], axis=1) // LINE_BYTES
        _, unique = _unique(ends, np.concatenate([active, active], axis=1))
        self.totals["global_accesses"] += int(active.any(axis=1).sum())
        self.totals["global_lines"] += int(unique.sum())
        _, once = _unique(offsets, active)
        self.totals["global_bytes"] += int(once.sum()) * access.size

    def lds_access(self, access: Access, local: Array, active: Array) -> None:
        """Count one LDS instruction. `local` (n, 64) are byte offsets into the LDS of a work-group."""
        words = max(1, access.size // 4)
        # A pass serves as many lanes as together use every bank once. If a lane's 3 dwords do not divide the banks, it
        # is the next smaller power of two, so that passes divide the wave.
        together = 1 << min(64, max(1, self.banks // words)).bit_length() - 1
        lanes = active.reshape(-1, together)
        served = lanes.any(axis=1)
        lanes, first = lanes[served], (local.reshape(-1, together)[served] >> 2).astype(np.int64)
        cells = (first[:, :, None] + np.arange(words)).reshape(len(first), together * words)
        cells, unique = _unique(cells, np.repeat(lanes, words, axis=1))
        places = np.arange(len(cells))[:, None] * self.banks + cells % self.banks
        asked = np.bincount(places[unique], minlength=len(cells) * self.banks).reshape(len(cells), self.banks)
        self.totals["lds_cycles"] += int(asked.max(axis=1).sum()) if len(cells) else 0
        self.totals["lds_ideal_cycles"] += len(cells)

    def lds_copy(self, access: Access, active: Array) -> None:
        """Count a copy to LDS. It writes consecutive bytes, so it has no conflict."""
        passes = -(-64 * access.size // (4 * self.banks)) * int(active.any(axis=1).sum())
        self.totals["lds_cycles"] += passes
        self.totals["lds_ideal_cycles"] += passes

    def scratch(self, access: Access, lanes: int) -> None:
        self.totals["scratch_bytes"] += lanes * access.size


def _unique(values: Array, wanted: Array) -> tuple[Array, Array]:
    """Return the rows of `values` (n, k), each sorted, and a mask of the first of equal values among those `wanted`."""
    shown = np.sort(np.where(wanted, values, np.iinfo(np.int64).max), axis=1)
    unique = shown != np.iinfo(np.int64).max
    unique[:, 1:] &= shown[:, 1:] != shown[:, :-1]
    return shown, unique


def summarise(figures: Counters, visits: Mapping[int, int], blocks: Mapping[int, Block]) -> CounterSummary:
    """Return the summary of a launch. `visits`: pc of a block → number of waves that executed it."""
    opcodes: Counter[str] = Counter()
    for pc, waves in visits.items():
        for instruction in blocks[pc].instructions:
            opcodes[instruction.name] += waves
    families: Counter[str] = Counter()
    for name, count in opcodes.items():
        families[family(name)] += count
    total = sum(opcodes.values())
    totals = figures.totals
    return CounterSummary(
        dict(families.most_common()),
        dict(opcodes.most_common()),
        families["mfma"] / total if total else 0.0,
        opcodes["s_waitcnt"],
        opcodes["s_barrier"],
        totals["lds_cycles"],
        totals["lds_ideal_cycles"],
        totals["global_accesses"],
        totals["global_lines"],
        totals["global_bytes"],
        totals["scratch_bytes"],
    )


def family(opcode: str) -> str:
    """Return an opcode's family: mfma, vector, scalar, scalar memory, lds, global, scratch, wait, barrier or branch."""
    if opcode.startswith("v_"):
        return "mfma" if opcode.startswith(("v_mfma", "v_smfmac")) else "vector"
    if opcode.startswith("ds_"):
        return "lds"
    if opcode.startswith(("buffer_", "global_", "flat_")):
        return "global"
    if opcode.startswith("scratch_"):
        return "scratch"
    if opcode.startswith(("s_load", "s_buffer", "s_store")):
        return "scalar memory"
    if opcode in ("s_waitcnt", "s_nop"):
        return "wait"
    if opcode == "s_barrier":
        return "barrier"
    return "branch" if opcode.startswith(("s_branch", "s_cbranch", "s_endpgm")) else "scalar"
