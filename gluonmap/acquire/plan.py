"""What to ask next: where explanations disagree, what was never seen together, and what might repair a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gluonmap.acquire.certificate import reasons_broken
from gluonmap.acquire.coverage import Cells, Seen
from gluonmap.acquire.doubt import Pool
from gluonmap.acquire.evidence import PASSED, Evidence
from gluonmap.acquire.region import Model
from gluonmap.acquire.space import Mask, Rows
from gluonmap.acquire.universe import MOST_LISTED, Universe

FIRST_DOUBT = 0.06
"""Least doubt that is worth a question before the model is frozen."""
DEEP_DOUBT = 0.01
LAST_DOUBT = 0.001
FRESH_POOL = 6
"""Plans after which a drawn pool is drawn again."""
BORDERS = ((0.45, 80), (0.25, 60))
"""Share of the asked neighbours that must speak against the model to make a configuration worth asking, and after how
many such questions no more are asked: first among the other deep questions, then when these have run out."""
PLENTY = 3
"""Failures seen of nothing but one arithmetic constraint, after which its repair is left for later."""

MORE_REASONS = 0.2
"""Weight of a repair that has to get past one more reason: an island may lie beyond several."""

Row = tuple[int, ...]
Scores = npt.NDArray[np.float64]


@dataclass
class Proposal:
    """One configuration to ask, and why."""

    row: Row
    kind: str


@dataclass
class Planner:
    """Chooses from a pool of configurations that may be asked."""

    universe: Universe
    evidence: Evidence
    model: Model
    random: np.random.Generator
    plans: int = 0
    borders: int = 0
    _pool: Pool | None = None
    _seen: dict[int, Seen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for order in (2, 3):
            self._seen[order] = Seen(self.universe.space, order)

    def propose(self, count: int, *, deep: bool) -> list[Proposal]:
        """Up to `count` configurations; fewer, or none, where nothing is left to learn by these means."""
        self._renew_pool()
        assert self._pool is not None
        rows = self._pool.rows
        free = self._unasked(rows)
        if not free.any():
            return []
        failing = self.model.failure_probability(self._pool)
        predicted = self.model.fails(rows)
        found: list[Proposal] = []
        makers: list[Callable[[], Proposal | None]] = [
            lambda: self._doubted(failing, free, FIRST_DOUBT, found),
            lambda: self._covering(2, rows, free & ~predicted, "cover2"),
            lambda: self._repairing(rows, free, deep=False),
        ]
        later: list[Callable[[], Proposal | None]] = [
            lambda: self._repairing(rows, free, deep=True),
            lambda: self._covering(3, rows, free & ~predicted, "cover3"),
            lambda: self._bordering(rows, free, predicted, *BORDERS[0]),
            lambda: self._doubted(failing, free, DEEP_DOUBT, found),
        ]
        last: list[Callable[[], Proposal | None]] = [
            lambda: self._bordering(rows, free, predicted, *BORDERS[1]),
            lambda: self._doubted(failing, free, LAST_DOUBT, found),
        ]
        turn = self.plans % len(later)
        self.plans += 1
        if deep:
            makers += [*later[turn:], *later[:turn], *last]
        for _ in range(count):
            proposal = next((p for p in (make() for make in makers) if p is not None), None)
            if proposal is None:
                break
            found.append(proposal)
            self.borders += proposal.kind == "border"
            free &= (rows != np.array(proposal.row)).any(1)
            makers = [makers[1], makers[0], *makers[2:3], *makers[4:7], *makers[3:4], *makers[7:]]
        return found

    def _renew_pool(self) -> None:
        listed = self.universe.rows is not None and len(self.universe.rows) <= 3_000
        if self._pool is None or (not listed and self.plans % FRESH_POOL == 0):
            labels, rows = self.evidence.labels, self.evidence.rows
            pool = self.universe.pool(self.model.atoms(), rows[labels == PASSED], rows[labels > PASSED])
            self._pool = Pool(pool, self.evidence)

    def _unasked(self, rows: Rows) -> Mask:
        return np.array([tuple(row) not in self.evidence for row in rows.tolist()], bool)

    # ---- doubt -----------------------------------------------------------------------------------------------------

    def _doubted(self, failing: Scores, free: Mask, least: float, chosen: list[Proposal]) -> Proposal | None:
        assert self._pool is not None
        doubt = np.where(free, np.minimum(failing, 1 - failing), 0)
        for other in chosen:  # a batch asks different things
            near = (self._pool.rows != np.array(other.row)).sum(1) < 2
            doubt = np.where(near, doubt * 0.3, doubt)
        if doubt.max() < least:
            return None
        best = np.flatnonzero(doubt >= doubt.max() - 1e-9)
        return Proposal(self._row(self.random.choice(best)), "doubt")

    def _row(self, place: int) -> Row:
        assert self._pool is not None
        return tuple(self._pool.rows[place].tolist())

    def _bordering(self, rows: Rows, free: Mask, predicted: Mask, least: float, most: int) -> Proposal | None:
        """A configuration whose asked neighbours, one move away, mostly speak against the model.

        Knobs that no constraint reads are left out: what was asked but for them is not asked again.
        """
        used = sorted({column for atom in self.model.atoms() for column in atom.columns})
        known = self.evidence.labels >= PASSED
        places = np.flatnonzero(free)
        if self.borders >= most or not used or not known.any() or not len(places):
            return None
        asked, passed = self.evidence.rows[known][:, used], self.evidence.labels[known] == PASSED
        moves = (rows[places][:, None, used] != asked[None]).sum(2)
        near = moves == 1
        against = np.where(predicted[places], (near & passed).sum(1), (near & ~passed).sum(1)) / (near.sum(1) + 1.0)
        against[(moves == 0).any(1)] = 0
        best = int(against.argmax())
        return Proposal(self._row(int(places[best])), "border") if against[best] >= least else None

    # ---- coverage --------------------------------------------------------------------------------------------------

    def _covering(self, order: int, rows: Rows, usable: Mask, kind: str) -> Proposal | None:
        """The configuration predicted to pass that holds most combinations never seen passing."""
        places = np.flatnonzero(usable)
        seen = self._seen[order]
        if not len(places) or not seen.usable:
            return None
        seen.update(self.evidence.rows[self.evidence.labels == PASSED])
        gain = seen.gain(rows[places])
        if gain.max() == 0:
            return None
        best = np.flatnonzero(gain == gain.max())
        return Proposal(self._row(int(places[self.random.choice(best)])), kind)

    # ---- repair ----------------------------------------------------------------------------------------------------

    def _repairing(self, rows: Rows, free: Mask, *, deep: bool) -> Proposal | None:
        """A configuration that violates one atom only, with values that were never tried beside it."""
        groups = self.model.groups()
        asked, failed = self.evidence.rows, self.evidence.labels > PASSED
        broken, asked_broken = reasons_broken(groups, rows), reasons_broken(groups, asked)
        levels = [(1, 1.0), (2, MORE_REASONS), (3, MORE_REASONS**2)] if deep else [(1, 1.0)]
        best: tuple[float, int] | None = None
        for causes, tried_causes, always, weight in self._causes(rows, asked):
            tried = tried_causes & failed
            for most, part in levels:
                places = np.flatnonzero(causes & free & (broken == most))
                if not len(places) or (not deep and always is None and tried.sum() >= PLENTY):
                    continue
                gain = self._repair_gain(always, rows[places], asked[tried & (asked_broken <= most)], deep=deep)
                place = int(gain.argmax())
                if gain[place] > 0 and (best is None or part * weight * gain[place] > best[0]):
                    best = (float(part * weight * gain[place]), int(places[place]))
        return None if best is None else Proposal(self._row(best[1]), "repair2" if deep else "repair")

    def _causes(self, rows: Rows, asked: Rows) -> Iterator[tuple[Mask, Mask, int | None, float]]:
        """What a failure may be due to: a value that never passed (with its knob), or an atom over several knobs.

        Each as masks over the pool and over what was asked, and with its weight.
        """
        passing = asked[self.evidence.labels == PASSED]
        for column, size in enumerate(self.universe.space.sizes):
            for value in set(range(size)) - set(passing[:, column].tolist()):
                yield rows[:, column] == value, asked[:, column] == value, column, 1.0
        for atom in self.model.atoms():
            if len(atom.columns) > 1:
                yield atom.fails(rows), atom.fails(asked), None, 0.5 if len(atom.parts) > 1 else 0.3

    def _repair_gain(self, always: int | None, candidates: Rows, tried: Rows, *, deep: bool) -> Scores:
        """How many values, pairs and triples of values were never tried beside the cause."""
        gain = self._untried(always, 1, candidates, tried)
        if deep:
            gain += 0.25 * self._untried(always, 2, candidates, tried)
            if always is not None and self.universe.space.size <= 100 * MOST_LISTED:
                gain += 0.05 * self._untried(always, 3, candidates, tried)
        return gain

    def _untried(self, always: int | None, order: int, candidates: Rows, tried: Rows) -> Scores:
        cells = Cells(self.universe.space, order, always)
        if not cells.usable:
            return np.zeros(len(candidates))
        codes = cells.codes(candidates)
        found: Scores = (~np.isin(codes, cells.codes(tried))).sum(1).astype(float)
        return found
