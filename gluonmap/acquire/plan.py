"""What to ask next: where explanations disagree, what was never seen together, and what might repair a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gluonmap.acquire.atoms import any_fails
from gluonmap.acquire.certificate import reasons_broken
from gluonmap.acquire.coverage import Cells, Codes, SeenCombinations
from gluonmap.acquire.doubt import Pool
from gluonmap.acquire.evidence import PASSED, EvidenceTable
from gluonmap.acquire.region import Model
from gluonmap.acquire.space import Mask, Rows
from gluonmap.acquire.universe import MOST_LISTED, MOST_POOLED, Universe

FIRST_DOUBT = 0.06
"""Least doubt that is worth a question before the model is frozen."""
DEEP_DOUBT = 0.01
LAST_DOUBT = 0.001
FRESH_POOL = 12
"""Plans after which a drawn pool is drawn again."""
BORDERS = ((0.45, 80), (0.25, 60))
"""Share of the asked neighbours that must speak against the model to make a configuration worth asking, and after how
many such questions no more are asked: first among the other deep questions, then when these have run out."""
FEW_TRIPLES, FEW_BORDERS = 40, 40
"""So many questions of these kinds are asked where the search is not thorough."""
PLENTY = 3
"""Failures seen of nothing but one arithmetic constraint, after which its repair is left for later."""

MORE_REASONS = 0.2
"""Weight of a repair that has to get past one more reason: an island may lie beyond several."""

Row = tuple[int, ...]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Proposal:
    """One configuration to ask, and why."""

    row: Row
    kind: str


Maker = Callable[[], Proposal | None]


@dataclass(frozen=True)
class PoolView:
    """The pool as the model of the moment sees it, until an answer changes it."""

    pool: Pool
    asked: Mask
    predicted: Mask
    """What fails, if the model is right."""
    failing: Scores
    """How likely each configuration fails."""
    broken: npt.NDArray[np.int64]
    """How many reasons forbid it."""
    codes: dict[int, Codes]
    """Combinations of values, by their order."""

    @property
    def rows(self) -> Rows:
        return self.pool.rows


@dataclass
class Planner:
    """Chooses from a pool of configurations that may be asked."""

    universe: Universe
    evidence: EvidenceTable
    model: Model
    random: np.random.Generator
    thorough: bool = False
    """Triples of values and borders until the budget is used, not only a few."""
    plans: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """Proposals by kind."""
    _view: PoolView | None = None
    _viewed: tuple[int, int] = (-1, -1)
    _drawn: int = 0
    _seen: dict[int, SeenCombinations] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for order in (2, 3):
            self._seen[order] = SeenCombinations(self.universe.space, order)

    def propose(self, in_flight: Sequence[Proposal], *, deep: bool) -> Proposal | None:
        """A configuration unlike those in flight; None where nothing is left to learn by these means."""
        view = self._look()
        coming = np.array([proposal.row for proposal in in_flight], np.int16).reshape(
            -1, len(self.universe.space.names)
        )
        free = ~view.asked
        for row in coming:
            free &= (view.rows != row).any(1)
        if not free.any():
            return None
        turn, self.plans = self.plans, self.plans + 1
        for make in self._makers(turn, view, free, coming, deep=deep):
            proposal = make()
            if proposal is not None:
                self.asked[proposal.kind] += 1
                return proposal
        return None

    def _makers(self, turn: int, view: PoolView, free: Mask, coming: Rows, *, deep: bool) -> list[Maker]:
        """Ways to find a question, in the order in which they are tried this time."""
        first: list[Maker] = [
            lambda: self._doubted(view, free, FIRST_DOUBT, coming),
            lambda: self._covering(2, view, free & ~view.predicted, coming),
        ]
        if turn % 2:
            first.reverse()
        first.append(lambda: self._repairing(view, free, coming, deep=False))
        if not deep:
            return first
        if turn % 2:
            first.append(lambda: self._joining(view, free, coming))
        share, borders = BORDERS[0]
        later: list[Maker] = [
            lambda: self._repairing(view, free, coming, deep=True),
            lambda: self._covering(3, view, free & ~view.predicted, coming),
            lambda: self._bordering(view, free, coming, share, borders if self.thorough else FEW_BORDERS),
            lambda: self._doubted(view, free, DEEP_DOUBT, coming),
        ]
        if not self.thorough and self.asked["cover3"] >= FEW_TRIPLES:
            del later[1]
        last: list[Maker] = [
            lambda: self._joining(view, free, coming),
            lambda: self._doubted(view, free, LAST_DOUBT, coming),
        ]
        if self.thorough:
            last.insert(0, lambda: self._bordering(view, free, coming, *BORDERS[1]))
        turn %= len(later)
        return [*first, *later[turn:], *later[:turn], *last]

    def _look(self) -> PoolView:
        stamp = (self.evidence.revision, self.model.version)
        old = self._view
        if old is not None and stamp == self._viewed:
            return old
        listed = self.universe.rows is not None and len(self.universe.rows) <= MOST_POOLED
        if old is not None and (listed or self.plans < self._drawn + FRESH_POOL):
            pool, codes = old.pool, old.codes
        else:
            self._drawn = self.plans
            labels, rows = self.evidence.labels, self.evidence.rows
            found = self.universe.pool(self.model.groups(), rows[labels == PASSED], rows[labels > PASSED])
            pool, codes = Pool(found, self.evidence), {}
        rows = pool.rows
        for order, seen in self._seen.items():
            if seen.usable and order not in codes:
                codes[order] = seen.cells.codes(rows)
        asked = np.array([row in self.evidence for row in map(tuple, rows.tolist())], bool)
        failing = self.model.failure_probability(pool)
        broken = reasons_broken(self.model.groups(), rows)
        self._view, self._viewed = PoolView(pool, asked, broken > 0, failing, broken, codes), stamp
        return self._view

    # ---- doubt -----------------------------------------------------------------------------------------------------

    def _doubted(self, view: PoolView, free: Mask, least: float, coming: Rows) -> Proposal | None:
        doubt = np.where(free, np.minimum(view.failing, 1 - view.failing), 0)
        for row in coming:  # what is in flight at a time asks different things
            near = (view.rows != row).sum(1) < 2
            doubt = np.where(near, doubt * 0.3, doubt)
        if doubt.max() < least:
            return None
        best = np.flatnonzero(doubt >= doubt.max() - 1e-9)
        return Proposal(_row(view, self.random.choice(best)), "doubt")

    def _bordering(self, view: PoolView, free: Mask, coming: Rows, least: float, most: int) -> Proposal | None:
        """A configuration whose asked neighbours, one move away, mostly speak against the model.

        Knobs that no constraint reads are left out: what was asked but for them is not asked again.
        """
        used = sorted({column for atom in self.model.atoms() for column in atom.columns})
        known = self.evidence.labels >= PASSED
        places = np.flatnonzero(free)
        if self.asked["border"] >= most or not used or not known.any() or not len(places):
            return None
        asked, passed = self.evidence.rows[known], self.evidence.labels[known] == PASSED
        rows, count = view.rows[places], len(asked)
        moves = (rows[:, None, used] != np.concatenate([asked, coming])[None][:, :, used]).sum(2)
        near = moves[:, :count] == 1
        against = np.where(view.predicted[places], (near & passed).sum(1), (near & ~passed).sum(1))
        share = against / (near.sum(1) + 1.0)
        share[(moves == 0).any(1)] = 0
        best = int(share.argmax())
        return Proposal(_row(view, places[best]), "border") if share[best] >= least else None

    # ---- coverage --------------------------------------------------------------------------------------------------

    def _covering(self, order: int, view: PoolView, usable: Mask, coming: Rows) -> Proposal | None:
        """The configuration predicted to pass that holds most combinations never seen passing."""
        places = np.flatnonzero(usable)
        seen = self._seen[order]
        if not len(places) or not seen.usable:
            return None
        seen.update(self.evidence.rows[self.evidence.labels == PASSED])
        gain = seen.gain(view.codes[order][places], coming[~self.model.fails(coming)])
        if gain.max() == 0:
            return None
        best = np.flatnonzero(gain == gain.max())
        return Proposal(_row(view, places[self.random.choice(best)]), f"cover{order}")

    # ---- repair ----------------------------------------------------------------------------------------------------

    def _repairing(self, view: PoolView, free: Mask, coming: Rows, *, deep: bool) -> Proposal | None:
        """A configuration that violates one atom only, with values that were never tried beside it."""
        rows, broken = view.rows, view.broken
        asked = np.concatenate([self.evidence.rows, coming])
        asked_broken = reasons_broken(self.model.groups(), asked)
        failed = np.concatenate([self.evidence.labels > PASSED, asked_broken[len(self.evidence) :] > 0])
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
        return None if best is None else Proposal(_row(view, best[1]), "repair2" if deep else "repair")

    def _joining(self, view: PoolView, free: Mask, coming: Rows) -> Proposal | None:
        """A configuration with a value that never passed, beside partners that the same reason reads.

        One that violates this reason only, with most pairs of values of the reason's knobs never tried beside it.
        """
        asked = np.concatenate([self.evidence.rows, coming])
        space, passing = self.universe.space, self.evidence.rows[self.evidence.labels == PASSED]
        best: tuple[float, int] | None = None
        for group in self.model.groups():
            columns = sorted({column for atom in group for column in atom.columns})
            if len(columns) < 3:
                continue
            places = np.flatnonzero(free & (view.broken == 1) & any_fails(group, view.rows))
            tried = asked[any_fails(group, asked) & (reasons_broken(self.model.groups(), asked) == 1)]
            gain = np.zeros(len(places))
            for column in columns:
                never = set(range(space.sizes[column])) - set(passing[:, column].tolist())
                cells = Cells(space, 2, column, [other for other in columns if other != column])
                if not never or not cells.usable:
                    continue
                codes = cells.codes(view.rows[places])
                new = (~np.isin(codes, cells.codes(tried))).sum(1)
                gain += np.where(np.isin(view.rows[places, column], list(never)), new, 0)
            if len(places) and gain.max() > 0 and (best is None or gain.max() > best[0]):
                best = float(gain.max()), int(places[gain.argmax()])
        return None if best is None else Proposal(_row(view, best[1]), "join")

    def _causes(self, rows: Rows, asked: Rows) -> Iterator[tuple[Mask, Mask, int | None, float]]:
        """What a failure may be due to: a value that never passed (with its knob), or an atom over several knobs.

        Each as masks over the pool and over what was asked, and with its weight.
        """
        passing = self.evidence.rows[self.evidence.labels == PASSED]
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


def _row(view: PoolView, place: int) -> Row:
    return tuple(view.rows[place].tolist())
