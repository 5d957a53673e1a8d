"""The execution of a program's blocks for all waves of a launch: divergence, barriers, order, step limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.errors import StepLimit
from gluonmap.cdna.generate import Step
from gluonmap.cdna.program import Block
from gluonmap.cdna.state import Waves

Array = npt.NDArray[Any]
Trace = Callable[[Block, Waves], None]
"""A callback before each block, with the waves that execute it."""

_TURN = 256
"""Most blocks that a group runs while others wait. Without a limit a group that waits for another's store would spin
forever."""
_FAIR = 64
"""In every 64th turn the group that has waited longest runs, not the one that is furthest behind."""


class Machine:
    """One launch."""

    def __init__(
        self,
        blocks: Mapping[int, Block],
        steps: Mapping[int, Step],
        limit: int,
        release: Callable[[Array | None], None],
        trace: Trace | None = None,
        each: int = 1,
    ) -> None:
        """`limit`: most instructions, counted once for each group; `each`: waves of a work-group.

        `release` is called with None when all waves have met at a barrier, or with the numbers of the work-groups
        whose waves have.
        """
        self.blocks, self.steps = blocks, steps
        self.lengths = {pc: len(block.instructions) for pc, block in blocks.items()}
        self.limit, self.release, self.trace, self.each = limit, release, trace, each
        self.executed = 0
        """Number of instructions, counted once for each group that executed them."""
        self.visits: Counter[int] = Counter()
        """pc of a block → number of waves that executed it."""

    def run(self, waves: Waves) -> None:
        """Run all waves in step as long as they take the same branches.

        After a divergent branch the group that is behind runs first, so that it meets the others again.
        """
        pending: dict[int, Waves] = {0: waves}
        parked: dict[int, Waves] = {}
        turns = turn = 0
        while pending or parked:
            if not pending:
                self.release(None)
                pending, parked = parked, {}
            turns += 1
            freed: list[int] = []
            if parked and (turn > _TURN or not turns % _FAIR):
                freed = self._let_go(pending, parked)
            # From time to time the group that waits longest runs. Otherwise groups that are behind and wait for it
            # would keep it waiting.
            pc = min(freed or pending) if turns % _FAIR else next(iter(pending))
            group = pending.pop(pc)
            turn = 0
            while True:
                following = self._step(pc, group)
                if following is None:
                    break
                if isinstance(following, int):
                    pc = following
                elif len(following) == 1:
                    pc = following[0]
                    if pending or parked:
                        _add(parked, pc, group)
                        break
                    self.release(None)
                else:
                    taken, target, otherwise = following
                    chosen = np.asarray(taken).reshape(-1)
                    if chosen.all():
                        pc = target
                    elif not chosen.any():
                        pc = otherwise
                    else:
                        _add(pending, target, group.select(chosen))
                        _add(pending, otherwise, group.select(~chosen))
                        break
                turn += 1
                if (pending and min(pending) <= pc) or (turn > _TURN and (pending or parked)):
                    _add(pending, pc, group)
                    break

    def run_apart(self, waves: Waves, rng: np.random.Generator) -> None:
        """Run one wave after the other from barrier to barrier, in a new random order each time."""
        ready = [(0, waves.select(np.arange(waves.count) == k)) for k in range(waves.count)]
        while ready:
            parked: list[tuple[int, Waves]] = []
            while ready:
                later: list[tuple[int, Waves]] = []
                for k in rng.permutation(len(ready)):
                    pc, wave = ready[k]
                    for _ in range(_TURN):
                        following = self._step(pc, wave)
                        if following is None:
                            break
                        if isinstance(following, int):
                            pc = following
                        elif len(following) == 1:
                            parked.append((following[0], wave))
                            break
                        else:
                            taken, target, otherwise = following
                            pc = target if np.asarray(taken).all() else otherwise
                    else:
                        later.append((pc, wave))
                ready = later
                busy = {self._group(wave) for _, wave in ready}
                if ready and (free := [entry for entry in parked if self._group(entry[1]) not in busy]):
                    self.release(np.unique([self._group(wave) for _, wave in free]))
                    parked = [entry for entry in parked if self._group(entry[1]) in busy]
                    ready = ready + free
            self.release(None)
            ready = parked

    def _group(self, wave: Waves) -> int:
        return int(wave.ids[0]) // self.each

    def _let_go(self, pending: dict[int, Waves], parked: dict[int, Waves]) -> list[int]:
        """Continue the work-groups whose waves are all at their barrier: running ones may wait for their stores.

        Return the pcs at which they continue.
        """
        busy = np.unique(np.concatenate([waves.ids for waves in pending.values()]) // self.each)
        free = np.unique(np.concatenate([waves.ids for waves in parked.values()]) // self.each)
        free = free[~np.isin(free, busy)]
        if not len(free):
            return []
        self.release(free)
        freed: list[int] = []
        for pc, waves in list(parked.items()):
            chosen = np.isin(waves.ids // self.each, free)
            if chosen.any():
                del parked[pc]
                freed.append(pc)
                _add(pending, pc, waves.select(chosen))
                if not chosen.all():
                    parked[pc] = waves.select(~chosen)
        return freed

    def _step(self, pc: int, group: Waves) -> Any:
        self.executed += self.lengths[pc]
        self.visits[pc] += group.count
        if self.executed > self.limit:
            raise StepLimit(f"more than {self.limit} instructions: a loop that may have no end")
        if self.trace is not None:
            self.trace(self.blocks[pc], group)
        return self.steps[pc](group)


def _add(groups: dict[int, Waves], pc: int, group: Waves) -> None:
    groups[pc] = groups[pc].merge(group) if pc in groups else group
