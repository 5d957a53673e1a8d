"""What a run found wrong, with the place in the program and in the kernel's source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.text import Instruction, Line


class Kind(StrEnum):
    """What is wrong."""

    GLOBAL_BOUNDS = "global access out of bounds"
    LDS_BOUNDS = "LDS access out of bounds"
    SCRATCH_BOUNDS = "scratch access out of bounds"
    GLOBAL_UNWRITTEN = "global memory read before it was written"
    LDS_UNWRITTEN = "LDS read before it was written"
    MISSING_WAIT = "register used before its load was waited for"
    ASYNC_UNLANDED = "LDS read before the asynchronous copy into it landed"
    LDS_RACE = "LDS race: two waves, no barrier between"
    BARRIER_WRITES = "barrier with LDS writes outstanding"
    GROUP_RACE = "work-groups write the same bytes"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault; the first time that an instruction showed it."""

    kind: Kind
    instruction: str
    pc: int
    line: Line | None
    """Of the kernel's source."""
    wave: int
    """In the launch: work-group times waves of a work-group, plus the wave in it."""
    lane: int
    """-1 where it concerns the whole wave."""
    detail: str

    def __str__(self) -> str:
        where = f"{self.line}: " if self.line else ""
        lane = f", lane {self.lane}" if self.lane >= 0 else ""
        return f"{where}{self.kind}: {self.instruction} (wave {self.wave}{lane}) {self.detail}".rstrip()


class Findings:
    """Collects findings, one per kind and instruction."""

    def __init__(self) -> None:
        self._found: dict[tuple[Kind, int], Finding] = {}

    def add(self, kind: Kind, instruction: Instruction, wave: int, lane: int = -1, detail: str = "") -> None:
        key = kind, instruction.pc
        if key not in self._found:
            self._found[key] = Finding(kind, instruction.text, instruction.pc, instruction.line, wave, lane, detail)

    def add_lanes(
        self, kind: Kind, instruction: Instruction, ids: npt.NDArray[Any], bad: npt.NDArray[Any], detail: str = ""
    ) -> None:
        """Add the first of the lanes `bad`: (n, 64) bool of the waves `ids`."""
        if (kind, instruction.pc) in self._found:
            return
        wave, lane = (int(x) for x in np.argwhere(bad)[0])
        more = int(bad.sum()) - 1
        words = ", ".join(part for part in (detail, f"{more} more lanes" if more else "") if part)
        self.add(kind, instruction, int(ids[wave]), lane, words)

    def all(self) -> tuple[Finding, ...]:
        """In the order of the program."""
        return tuple(sorted(self._found.values(), key=lambda f: (f.pc, f.kind)))
