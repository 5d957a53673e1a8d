"""Figures of a run that explain a program; none of them is a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.access import Access
from gluonmap.cdna.program import Block, Program

Array = npt.NDArray[Any]

LINE_BYTES = 64
_BANKS = {"gfx942": 32, "gfx950": 64}
"""LDS banks of 4 bytes."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all waves of a launch."""

    instructions: dict[str, int]
    """Family → instructions that waves executed."""
    opcodes: dict[str, int]
    """Opcode → likewise, the most frequent first."""
    mfma_share: float
    """Matrix instructions among all."""
    waits: int
    """s_waitcnt executed."""
    barriers: int
    lds_cycles: int
    """Passes over the banks that LDS accesses took, of consecutive lanes at a time."""
    lds_ideal_cycles: int
    """Passes without any conflict."""
    global_accesses: int
    """Global instructions with an active lane."""
    global_lines: int
    """Lines of 64 bytes that these touched, counted anew for each instruction."""
    global_bytes: int
    """Bytes that their lanes asked for, those that several lanes of an instruction asked for counted once."""
    scratch_bytes: int
    """Bytes that lanes spilled and filled."""

    @property
    def lines_per_access(self) -> float:
        return self.global_lines / self.global_accesses if self.global_accesses else 0.0

    @property
    def bank_conflict_factor(self) -> float:
        """Passes over the banks against the ideal; 1 without conflicts."""
        return self.lds_cycles / self.lds_ideal_cycles if self.lds_ideal_cycles else 1.0


class Figures:
    """Collects while a launch runs."""

    def __init__(self, program: Program, waves: int) -> None:
        self.banks = _BANKS[program.code.target]
        self.waves = waves
        self.totals: Counter[str] = Counter()

    def global_access(self, access: Access, offsets: Array, active: Array) -> None:
        """Offsets (n, 64) of one instruction."""
        ends = np.concatenate([offsets, offsets + access.size - 1], axis=1) // LINE_BYTES
        _, unique = _unique(ends, np.concatenate([active, active], axis=1))
        self.totals["global_accesses"] += int(active.any(axis=1).sum())
        self.totals["global_lines"] += int(unique.sum())
        _, once = _unique(offsets, active)
        self.totals["global_bytes"] += int(once.sum()) * access.size

    def lds_access(self, access: Access, local: Array, active: Array) -> None:
        """Byte places (n, 64) in the LDS of a work-group."""
        words = max(1, access.size // 4)
        # A pass serves as many lanes as together ask for every bank once; where a lane's 3 dwords do not divide the
        # banks, the next smaller power of two, so that passes divide the wave.
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
        """A copy to LDS writes consecutive places: no conflict."""
        passes = -(-64 * access.size // (4 * self.banks)) * int(active.any(axis=1).sum())
        self.totals["lds_cycles"] += passes
        self.totals["lds_ideal_cycles"] += passes

    def scratch(self, access: Access, lanes: int) -> None:
        self.totals["scratch_bytes"] += lanes * access.size


def _unique(values: Array, wanted: Array) -> tuple[Array, Array]:
    """The rows of `values` (n, k), each sorted, and a mask of the first of equal ones among those `wanted`."""
    shown = np.sort(np.where(wanted, values, np.iinfo(np.int64).max), axis=1)
    unique = shown != np.iinfo(np.int64).max
    unique[:, 1:] &= shown[:, 1:] != shown[:, :-1]
    return shown, unique


def summarise(figures: Figures, visits: Mapping[int, int], blocks: Mapping[int, Block]) -> Summary:
    """The figures of a launch whose blocks were executed by so many waves."""
    opcodes: Counter[str] = Counter()
    for pc, waves in visits.items():
        for instruction in blocks[pc].instructions:
            opcodes[instruction.name] += waves
    families: Counter[str] = Counter()
    for name, count in opcodes.items():
        families[family(name)] += count
    total = sum(opcodes.values())
    totals = figures.totals
    return Summary(
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
    """mfma, vector, scalar, scalar memory, lds, global, scratch, wait, barrier or branch."""
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
