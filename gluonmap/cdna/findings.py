"""Findings of a run, with the place in the program and in the kernel's source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.text import Instruction, Line


class Kind(StrEnum):
    """Kind of a finding."""

    GLOBAL_BOUNDS = "global access out of bounds"
    LDS_BOUNDS = "LDS access out of bounds"
    SCRATCH_BOUNDS = "scratch access out of bounds"
    GLOBAL_UNWRITTEN = "global memory read before it was written"
    LDS_UNWRITTEN = "LDS read before it was written"
    MISSING_WAIT = "register used before its load was waited for"
    ASYNC_UNLANDED = "LDS read before the asynchronous copy into it landed"
    LDS_RACE = "LDS data race: two waves, no barrier between"
    BARRIER_WRITES = "barrier with LDS writes outstanding"
    GROUP_RACE = "work-groups write the same bytes"


@dataclass(frozen=True, slots=True)
class Finding:
    """An error of the kernel at one instruction, at its first occurrence."""

    kind: Kind
    instruction: str
    pc: int
    line: Line | None
    """Line of the kernel's source; None if it is not known."""
    wave: int
    """Number of the wave in the launch: work-group * waves of a work-group + wave in it."""
    lane: int
    """Lane from 0 to 63; -1 if the finding concerns the whole wave."""
    detail: str

    @property
    def file(self) -> str:
        """Path of the kernel's source file, as the compiler got it; "" if the line is not known."""
        return self.line.path if self.line else ""

    def __str__(self) -> str:
        where = f"{self.line}: " if self.line else ""
        return f"{where}{self.kind}: {self.shown}"

    @property
    def shown(self) -> str:
        """Instruction, wave, lane and detail."""
        lane = f", lane {self.lane}" if self.lane >= 0 else ""
        return f"{self.instruction} (wave {self.wave}{lane}) {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class Place:
    """All findings of one kind at one line of the kernel's source, or all of one kind without a line."""

    kind: Kind
    line: Line | None
    count: int
    """Number of instructions with the finding."""
    first: Finding
    """The first finding in the order of the program."""

    def __str__(self) -> str:
        where = f"{self.line}: " if self.line else ""
        more = f"{self.count} instructions, the first " if self.count > 1 else ""
        return f"{where}{self.kind}: {more}{self.first.shown}"


def grouped(findings: Iterable[Finding]) -> tuple[Place, ...]:
    """Return one place for each kind and line. Lines are the same only if they were called from the same lines."""
    places: dict[tuple[Kind, Line | None], list[Finding]] = {}
    for finding in sorted(findings, key=lambda f: (f.pc, f.kind)):
        places.setdefault((finding.kind, finding.line), []).append(finding)
    return tuple(Place(kind, line, len(found), found[0]) for (kind, line), found in places.items())


class Findings:
    """The findings of a run, one per kind and instruction."""

    def __init__(self) -> None:
        self._found: dict[tuple[Kind, int], Finding] = {}

    def add(self, kind: Kind, instruction: Instruction, wave: int, lane: int = -1, detail: str = "") -> None:
        key = kind, instruction.pc
        if key not in self._found:
            self._found[key] = Finding(kind, instruction.text, instruction.pc, instruction.line, wave, lane, detail)

    def add_lanes(
        self, kind: Kind, instruction: Instruction, ids: npt.NDArray[Any], bad: npt.NDArray[Any], detail: str = ""
    ) -> None:
        """Add a finding for the first of the lanes `bad`: (n, 64) bool, by the waves `ids`."""
        if (kind, instruction.pc) in self._found:
            return
        wave, lane = (int(x) for x in np.argwhere(bad)[0])
        more = int(bad.sum()) - 1
        words = ", ".join(part for part in (detail, f"{more} more lanes" if more else "") if part)
        self.add(kind, instruction, int(ids[wave]), lane, words)

    def all(self) -> tuple[Finding, ...]:
        """Return the findings in the order of the program."""
        return tuple(sorted(self._found.values(), key=lambda f: (f.pc, f.kind)))
