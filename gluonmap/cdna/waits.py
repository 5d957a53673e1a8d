"""What memory operations a wave has outstanding, as s_waitcnt counts them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

VMCNT_LIMIT = 63
"""The counter ends here: whoever issues one more waits for the oldest (LLVM of Triton 3.9 relies on it)."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One memory operation that is under way."""

    pc: int
    counter: str
    """vmcnt or lgkmcnt."""
    what: str
    """In words, for findings."""
    loads: frozenset[int] = frozenset()
    """Registers that it will write: vector ones, and scalar ones from 1000 on."""
    ordered: bool = True
    """Operations of its counter return in order; scalar loads do not."""
    writes_lds: bool = False
    landing: Any = None
    """Of a copy to LDS: (addresses, waves), one per written byte run; see `sanitizer`."""

    def before(self, later: Operation) -> bool:
        """Whether it is over when `later` is."""
        return self.counter == later.counter and self.ordered and later.ordered


@dataclass(slots=True)
class Track:
    """The operations outstanding in some waves that issued the same ones."""

    ids: Array
    vmcnt: deque[Operation] = field(default_factory=deque)
    lgkmcnt: deque[Operation] = field(default_factory=deque)
    pending: dict[int, Operation] = field(default_factory=dict)
    """Register → the load that will write it."""

    def of(self, ids: Array) -> Track | None:
        """The same for those of its waves that are among `ids`."""
        mine = self.ids[np.isin(self.ids, ids)]
        if not len(mine):
            return None
        return Track(mine, self.vmcnt.copy(), self.lgkmcnt.copy(), self.pending.copy())

    def issue(self, operation: Operation, landed: Callable[[Operation, Array], None]) -> None:
        """Count `operation`."""
        queue = self.vmcnt if operation.counter == "vmcnt" else self.lgkmcnt
        queue.append(operation)
        for register in operation.loads:
            self.pending[register] = operation
        if operation.counter == "vmcnt" and len(queue) > VMCNT_LIMIT:
            self._retire(queue, landed)

    def wait(
        self, vmcnt: int | None, lgkmcnt: int | None, landed: Callable[[Operation, Array], None]
    ) -> tuple[int, int]:
        """Wait until no more than so many are outstanding; how many that ended, of vmcnt and of lgkmcnt.

        `landed` is told of each.
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

    def same_as(self, other: Track) -> bool:
        """Whether both have the same operations outstanding, so that one track may stand for both."""
        return all(
            len(mine) == len(theirs)
            and all(
                a is b or (a.pc == b.pc and a.landing is None and b.landing is None)
                for a, b in zip(mine, theirs, strict=True)
            )
            for mine, theirs in ((self.vmcnt, other.vmcnt), (self.lgkmcnt, other.lgkmcnt))
        )


def joined(mine: Iterable[Track], theirs: Iterable[Track]) -> list[Track]:
    """Tracks of two groups that become one."""
    tracks = list(mine)
    for track in theirs:
        for k, known in enumerate(tracks):
            if known.same_as(track):
                ids = np.concatenate([known.ids, track.ids])
                tracks[k] = Track(ids, known.vmcnt, known.lgkmcnt, known.pending)
                break
        else:
            tracks.append(track)
    return tracks
