"""Outstanding memory operations of waves, as s_waitcnt counts them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

VMCNT_LIMIT = 63
"""Largest value of the counter. A wave that issues one more operation waits for the oldest (LLVM of Triton 3.9 relies
on it)."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One memory operation in flight."""

    pc: int
    counter: str
    """vmcnt or lgkmcnt."""
    what: str
    """Description for findings."""
    loads: frozenset[int] = frozenset()
    """Registers that it will write: vector registers, and scalar ones from 1000 on."""
    ordered: bool = True
    """It returns in order with the other operations of its counter. Scalar loads do not."""
    writes_lds: bool = False
    landing: Any = None
    """For a copy to LDS: its writes as `Sanitizer.copy_issued` records them, one entry per executed part; else None."""

    def before(self, later: Operation) -> bool:
        """Return whether this operation is complete when `later` is."""
        return self.counter == later.counter and self.ordered and later.ordered


@dataclass(slots=True)
class OperationTrack:
    """The outstanding operations of waves that issued the same ones."""

    ids: Array
    vmcnt: deque[Operation] = field(default_factory=deque)
    lgkmcnt: deque[Operation] = field(default_factory=deque)
    pending: dict[int, Operation] = field(default_factory=dict)
    """Register → load that will write it."""

    def of(self, ids: Array) -> OperationTrack | None:
        """Return the track of those of its waves that are among `ids`; None if there are none."""
        mine = self.ids[np.isin(self.ids, ids)]
        if not len(mine):
            return None
        return OperationTrack(mine, self.vmcnt.copy(), self.lgkmcnt.copy(), self.pending.copy())

    def issue(self, operation: Operation, landed: Callable[[Operation, Array], None]) -> None:
        """Add `operation`. `landed` is called if the counter overflows and the oldest operation completes."""
        queue = self.vmcnt if operation.counter == "vmcnt" else self.lgkmcnt
        queue.append(operation)
        for register in operation.loads:
            self.pending[register] = operation
        if operation.counter == "vmcnt" and len(queue) > VMCNT_LIMIT:
            self._retire(queue, landed)

    def wait(
        self, vmcnt: int | None, lgkmcnt: int | None, landed: Callable[[Operation, Array], None]
    ) -> tuple[int, int]:
        """Wait until at most `vmcnt` and `lgkmcnt` operations are outstanding.

        Return how many operations of vmcnt and of lgkmcnt completed. `landed` is called for each of them.
        """
        before = len(self.vmcnt), len(self.lgkmcnt)
        if vmcnt is not None:
            while len(self.vmcnt) > vmcnt:
                self._retire(self.vmcnt, landed)
        if lgkmcnt is not None and (lgkmcnt == 0 or all(o.ordered for o in self.lgkmcnt)):
            while len(self.lgkmcnt) > lgkmcnt:
                self._retire(self.lgkmcnt, landed)
        return before[0] - len(self.vmcnt), before[1] - len(self.lgkmcnt)

    def _retire(self, queue: deque[Operation], landed: Callable[[Operation, Array], None]) -> None:
        operation = queue.popleft()
        for register in operation.loads:
            if self.pending.get(register) is operation:
                del self.pending[register]
        landed(operation, self.ids)

    def same_as(self, other: OperationTrack) -> bool:
        """Return whether both have the same outstanding operations, so that one track can replace them."""
        return all(
            len(mine) == len(theirs)
            and all(
                a is b or (a.pc == b.pc and a.landing is None and b.landing is None)
                for a, b in zip(mine, theirs, strict=True)
            )
            for mine, theirs in ((self.vmcnt, other.vmcnt), (self.lgkmcnt, other.lgkmcnt))
        )


def joined(mine: Iterable[OperationTrack], theirs: Iterable[OperationTrack]) -> list[OperationTrack]:
    """Return the tracks of two groups that become one. Equal tracks are merged."""
    tracks = list(mine)
    for track in theirs:
        for k, known in enumerate(tracks):
            if known.same_as(track):
                ids = np.concatenate([known.ids, track.ids])
                tracks[k] = OperationTrack(ids, known.vmcnt, known.lgkmcnt, known.pending)
                break
        else:
            tracks.append(track)
    return tracks
