"""Scratch: private memory of each lane, for spilled registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.access import Access
from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.figures import Counters
from gluonmap.cdna.findings import Findings, Kind
from gluonmap.cdna.state import LANES, Waves

u32, i64 = np.uint32, np.int64
_LANE = np.arange(LANES)


class Scratch:
    """The scratch of all lanes of the launch. It is allocated at the first access."""

    def __init__(self, waves: int, size: int, findings: Findings, figures: Counters | None) -> None:
        self.waves, self.size = waves, size
        self.findings, self.figures = findings, figures
        self._words: npt.NDArray[Any] | None = None

    def access(self, w: Waves, access: Access) -> None:
        """Load or store dwords."""
        address, base = access.address, access.base
        assert address is not None and base is not None
        if access.size < 4:
            raise NotExecuted(access.instruction.text)
        place: Any = i64(access.offsets[0])
        if address.kind == "v":
            place = place + w.U[address.index].astype(i64)
        if base.kind == "s":
            place = place + w.SU[base.index].astype(i64)
        places = np.broadcast_to(place, (w.count, LANES))
        bad = w.active & ((places < 0) | (places + access.size > self.size))
        if bad.any():
            detail = f"byte {int(places[bad][0])} of {self.size}"
            self.findings.add_lanes(Kind.SCRATCH_BOUNDS, access.instruction, w.ids, bad, detail)
        if (places & 3).any():
            raise NotExecuted(f"{access.instruction.text}: at no multiple of 4")
        if self._words is None:
            self._words = np.zeros((self.waves, LANES, max(self.size // 4, 1)), u32)
        chosen = w.active & ~bad
        if self.figures:
            self.figures.scratch(access, int(chosen.sum()))
        waves, lanes = np.broadcast_arrays(w.ids[:, None], _LANE)
        where = waves[chosen], lanes[chosen], (places >> 2)[chosen]
        for k in range(access.size // 4):
            register = w.U[access.data[0] + k]
            if access.action == "store":
                self._words[where[0], where[1], where[2] + k] = register[chosen]
            else:
                register[chosen] = self._words[where[0], where[1], where[2] + k]
