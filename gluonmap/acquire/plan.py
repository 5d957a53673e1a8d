"""The choice of the next question: doubt, coverage of combinations, and repairs of failures."""

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
"""Least doubt worth a question before the model is frozen. The doubt is min(p, 1 - p), p the probability of failure."""
DEEP_DOUBT = 0.01
LAST_DOUBT = 0.001
FRESH_POOL = 12
"""Number of plans after which a sampled pool is sampled again."""
BORDERS = ((0.45, 80), (0.25, 60))
"""(share, most): a configuration is asked if this share of its asked neighbours contradicts the model, up to this many
times. The first pair applies among the other deep questions, the second after these have run out."""
FEW_TRIPLES, FEW_BORDERS = 40, 40
"""Most questions of these kinds in a search that is not thorough."""
PLENTY = 3
"""Failures of one arithmetic constraint alone, after which its repair is left for later."""

MORE_REASONS = 0.2
"""Factor on the weight of a repair for each further reason that it must get past. A feasible island may lie beyond
several."""

Row = tuple[int, ...]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Proposal:
    """A configuration to ask, and the kind of the question."""

    row: Row
    kind: str


Maker = Callable[[], Proposal | None]


@dataclass(frozen=True)
class PoolView:
    """The pool with the predictions of the present model. An answer makes it obsolete."""

    pool: Pool
    asked: Mask
    predicted: Mask
    """Configurations that fail according to the model."""
    failing: Scores
    """Probability that each configuration fails."""
    broken: npt.NDArray[np.int64]
    """Number of reasons that forbid each configuration."""
    codes: dict[int, Codes]
    """Order of a combination → the combinations of each configuration, see `coverage.Cells.codes`."""

    @property
    def rows(self) -> Rows:
        return self.pool.rows


@dataclass
class Planner:
    """The choice of the next question from a pool of configurations."""

    universe: Universe
    evidence: EvidenceTable
    model: Model
    random: np.random.Generator
    thorough: bool = False
    """Ask about triples of values and borders until the budget is used, not only a few times."""
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
        """Return a configuration that is not in flight; None if these means leave nothing to learn."""
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
        """Return the ways to find a question, in the order in which they are tried this time."""
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
        for row in coming:  # questions in flight together should ask about different things
            near = (view.rows != row).sum(1) < 2
            doubt = np.where(near, doubt * 0.3, doubt)
        if doubt.max() < least:
            return None
        best = np.flatnonzero(doubt >= doubt.max() - 1e-9)
        return Proposal(_row(view, self.random.choice(best)), "doubt")

    def _bordering(self, view: PoolView, free: Mask, coming: Rows, least: float, most: int) -> Proposal | None:
        """Return a configuration whose asked neighbours, one move away, mostly contradict the model.

        Knobs that no constraint reads are ignored: a configuration that differs from an asked one only in them is not
        asked.
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
        """Return the configuration predicted to pass with the most combinations that never occurred in a pass."""
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
        """Return a configuration with one cause of failure and values that were never tried with it.

        With `deep`, up to three reasons may forbid the configuration; else one.
        """
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
        """Return a configuration with a value that never passed, and untried values of knobs that its reason reads.

        It violates this reason only, and has the most pairs of the reason's values never tried with that value.
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
        """Yield the possible causes of a failure: a value that never passed, or an atom over several knobs.

        Each is (mask over the pool, mask over the asked rows, column of the value or None, weight).
        """
        passing = self.evidence.rows[self.evidence.labels == PASSED]
        for column, size in enumerate(self.universe.space.sizes):
            for value in set(range(size)) - set(passing[:, column].tolist()):
                yield rows[:, column] == value, asked[:, column] == value, column, 1.0
        for atom in self.model.atoms():
            if len(atom.columns) > 1:
                yield atom.fails(rows), atom.fails(asked), None, 0.5 if len(atom.parts) > 1 else 0.3

    def _repair_gain(self, always: int | None, candidates: Rows, tried: Rows, *, deep: bool) -> Scores:
        """Return the weighted number of values, pairs and triples that were never tried together with the cause."""
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
