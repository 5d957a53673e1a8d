"""The region of one reason: the shortest atoms that forbid all its failures and nothing that got past it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gluonmap.acquire.atoms import Atom, Cell, Part, Threshold
from gluonmap.acquire.evidence import EvidenceTable, Indices
from gluonmap.acquire.space import Mask, Numbers
from gluonmap.model.relations import Op

EPSILON = 1e-4
ATOM_BITS = 2.0
"""Bits that each further atom costs."""
WORTH_LOOKING_FURTHER = 0.15
"""Failures explained per bit, below which the search goes on to conditional and longer atoms."""

Floats = npt.NDArray[np.float32]


class Past:
    """A summary of the configurations that got past a reason: bounds of the forms, and predicates that hold for some.

    It is updated row by row as the evidence grows.
    """

    def __init__(self, evidence: EvidenceTable) -> None:
        self._evidence = evidence
        self._places = np.zeros(0, np.int64)
        self._reset()

    def _reset(self) -> None:
        forms = len(self._evidence.forms)
        self.bounds = np.full(forms, np.inf), np.full(forms, -np.inf)
        self.held = np.zeros(len(self._evidence.predicates), bool)
        self._under: dict[int, tuple[int, Numbers, Numbers]] = {}

    def update(self, negative: Indices) -> None:
        """Update the summary. If `negative` extends the previous array, only the new rows are processed."""
        count = len(self._places)
        if not np.array_equal(negative[:count], self._places):
            self._reset()
            count = 0
        added, self._places = negative[count:], negative
        if len(added):
            self.bounds = _wider(self.bounds, self._evidence.values[:, added])
            self.held |= self._evidence.truth[:, added].any(1)

    def under(self, literal: int) -> tuple[Numbers, Numbers]:
        """Return the bounds of the conditional forms among the rows that got past and meet a literal."""
        usable = self._evidence.forms.conditional
        nothing = np.full(len(usable), np.inf)
        count, low, high = self._under.get(literal, (0, nothing, -nothing))
        added = self._places[count:]
        added = added[self._evidence.truth[literal, added]]
        if len(added):
            low, high = _wider((low, high), self._evidence.values[np.ix_(usable, added)])
        self._under[literal] = len(self._places), low, high
        return low, high


def _wider(known: tuple[Numbers, Numbers], values: Numbers) -> tuple[Numbers, Numbers]:
    return np.minimum(known[0], values.min(1)), np.maximum(known[1], values.max(1))


@dataclass
class AtomChoice:
    """The best atom of one search, its failures per bit, and the failures that it explains."""

    score: float
    atom: Atom
    covers: Mask


@dataclass
class Problem:
    """The failures of one reason (`positive`) and what got past it (`negative`), as positions in the evidence."""

    evidence: EvidenceTable
    positive: Indices
    negative: Indices
    past: Past
    tight: bool = False
    """Put thresholds next to the failures instead of next to the passes."""
    offers: Sequence[Atom] = ()
    """Atoms from elsewhere: read from the source, or learned for another reason."""

    # ---- single forms ----------------------------------------------------------------------------------------------

    @cached_property
    def form_bits(self) -> Numbers:
        return self.evidence.forms.bits + ATOM_BITS

    @property
    def bounds(self) -> tuple[Numbers, Numbers]:
        """Least and greatest value of each form among what got past."""
        return self.past.bounds

    @cached_property
    def form_covers(self) -> tuple[Mask, Mask, Mask]:
        """Failures above, below and unequal to the values of what got past: three masks, forms by failures."""
        return outside(self.evidence.values[:, self.positive], *self.bounds)

    # ---- predicates ------------------------------------------------------------------------------------------------

    @cached_property
    def predicate_bits(self) -> Numbers:
        return self.evidence.predicates.bits + ATOM_BITS

    @property
    def free(self) -> Mask:
        """Mask of the predicates that hold for nothing that got past."""
        return ~self.past.held

    @cached_property
    def partial(self) -> Indices:
        """Predicates that hold for some failure and for something that got past."""
        return np.flatnonzero(self.evidence.truth[:, self.positive].any(1) & ~self.free)

    @cached_property
    def pairs_free(self) -> Mask:
        """Pairs of partial predicates that never hold together for what got past."""
        return self.apart(self.partial)

    def apart(self, chosen: Indices) -> Mask:
        """Return the pairs of chosen predicates (above the diagonal) that never hold together for what got past."""
        truth = self.evidence.truth[np.ix_(chosen, self.negative)].astype(np.float32)
        together: Floats = truth @ truth.T
        apart: Mask = np.less(together, 0.5)
        return np.triu(apart, 1)

    @cached_property
    def pair_bits(self) -> Floats:
        bits = self.predicate_bits[self.partial].astype(np.float32)
        return bits[:, None] + bits[None] - np.float32(ATOM_BITS - 1)

    @cached_property
    def partial_positive(self) -> Floats:
        return self.evidence.truth[np.ix_(self.partial, self.positive)].astype(np.float32)


def bounds(values: Numbers) -> tuple[Numbers, Numbers]:
    """Return the least and the greatest value of each row. An empty row gets (inf, -inf): every value lies outside."""
    if values.shape[1] == 0:
        return np.full(len(values), np.inf), np.full(len(values), -np.inf)
    return values.min(1), values.max(1)


def outside(values: Numbers, low: Numbers, high: Numbers) -> tuple[Mask, Mask, Mask]:
    """Return masks of the values above `high`, below `low`, and unequal to both where a row has low = high."""
    unequal = np.zeros(values.shape, bool)
    one = _single(low, high)
    unequal[one] = np.abs(values[one] - high[one][:, None]) > EPSILON
    return values > high[:, None] + EPSILON, values < low[:, None] - EPSILON, unequal


def all_outside(values: Numbers, ends: tuple[Numbers, Numbers], low: Numbers, high: Numbers) -> tuple[Mask, Mask, Mask]:
    """Return, as `outside`, the rows with all values there. `ends` holds the least and the greatest of each row."""
    least, greatest = ends
    unequal = np.zeros(len(values), bool)
    one = _single(low, high)
    unequal[one] = (np.abs(values[one] - high[one][:, None]) > EPSILON).all(1)
    return least > high + EPSILON, greatest < low - EPSILON, unequal


def _single(low: Numbers, high: Numbers) -> Indices:
    """Return the rows in which exactly one value got past."""
    found = np.flatnonzero(np.isfinite(high))
    return found[high[found] - low[found] < EPSILON]


def cover(problem: Problem) -> list[Atom]:
    """Return atoms that together explain every failure of a problem: a greedy cover by failures per bit."""
    left = np.ones(len(problem.positive), bool)
    atoms: list[Atom] = []
    while left.any():
        choice = _best(problem, left)
        atoms.append(choice.atom)
        left &= ~choice.covers
    return _without_needless(problem, atoms)


def _best(problem: Problem, left: Mask) -> AtomChoice:
    best = _better(_offered(problem, left), _single_form(problem, left), _single_predicate(problem, left))
    most = float(left.sum())
    least_bits = 9.0
    if best is None or best.score < most / least_bits:
        best = _better(best, _pair(problem, left))
    if best is None or best.score < WORTH_LOOKING_FURTHER:
        best = _better(best, _conditional(problem, left), _triple(problem, left))
    return best or _cell(problem, left)


def _better(*choices: AtomChoice | None) -> AtomChoice | None:
    return max((choice for choice in choices if choice), key=lambda choice: choice.score, default=None)


def _offered(problem: Problem, left: Mask) -> AtomChoice | None:
    best: AtomChoice | None = None
    rows, past = problem.evidence.rows[problem.positive], problem.evidence.rows[problem.negative]
    for atom in problem.offers:
        covers = atom.fails(rows)
        score = float((covers & left).sum()) / atom.bits
        if score > 0 and (best is None or score > best.score) and not atom.fails(past).any():
            best = AtomChoice(score, atom, covers)
    return best


def _single_form(problem: Problem, left: Mask) -> AtomChoice | None:
    best: tuple[float, int, int] | None = None
    for kind, covers in enumerate(problem.form_covers):
        if not len(covers):
            continue
        scores = (covers @ left.astype(np.float32)) / (problem.form_bits - (1.0 if kind == 2 else 0.0))
        index = int(scores.argmax())
        if scores[index] > 0 and (best is None or scores[index] > best[0]):
            best = (float(scores[index]), kind, index)
    if best is None:
        return None
    score, kind, index = best
    covers = problem.form_covers[kind][index]
    return AtomChoice(score, form_atom(problem, kind, index, covers), covers)


def form_atom(problem: Problem, kind: int, index: int, covers: Mask) -> Atom:
    """Return the atom of a form. `kind`: above (0), below (1) or unequal to (2) the values that got past."""
    evidence = problem.evidence
    values = evidence.values[index, problem.positive][covers]
    low, high = problem.bounds[0][index], problem.bounds[1][index]
    return Atom(
        (threshold(evidence, kind, index, values, low, high, problem.tight),),
        float(evidence.forms.bits[index]) + ATOM_BITS,
    )


def threshold(
    evidence: EvidenceTable, kind: int, index: int, values: Numbers, low: float, high: float, tight: bool
) -> Threshold:
    """Return a comparison that separates the failing `values` from those that got past, from `low` to `high`.

    Any limit between the two fits. It lies next to the failures if `tight`, else just beyond what got past.
    """
    if kind == 2:
        return Threshold(evidence.forms, index, Op.UNEQUAL, float(high), float(high))
    if kind == 0:
        limit = float(values.min()) if tight or not math.isfinite(high) else float(high) + 2 * EPSILON
        return Threshold(evidence.forms, index, Op.AT_LEAST, limit, float(high))
    limit = float(values.max()) if tight or not math.isfinite(low) else float(low) - 2 * EPSILON
    return Threshold(evidence.forms, index, Op.AT_MOST, limit, float(low))


def _single_predicate(problem: Problem, left: Mask) -> AtomChoice | None:
    free = np.flatnonzero(problem.free)
    if not len(free):
        return None
    truth = problem.evidence.truth[np.ix_(free, problem.positive)]
    scores = (truth @ left.astype(np.float32)) / problem.predicate_bits[free]
    place = int(scores.argmax())
    if scores[place] <= 0:
        return None
    item = problem.evidence.predicates.items[int(free[place])]
    return AtomChoice(float(scores[place]), Atom((item.part,), item.bits + ATOM_BITS), truth[place])


def _pair(problem: Problem, left: Mask) -> AtomChoice | None:
    if len(problem.partial) < 2:
        return None
    truth = problem.partial_positive
    counts = (truth * left.astype(np.float32)) @ truth.T
    counts *= problem.pairs_free
    counts /= problem.pair_bits
    place = int(counts.argmax())
    i, j = divmod(place, len(problem.partial))
    if counts[i, j] <= 0:
        return None
    items = [problem.evidence.predicates.items[int(problem.partial[k])] for k in (i, j)]
    atom = Atom(tuple(item.part for item in items), sum(item.bits for item in items) + ATOM_BITS + 1)
    return AtomChoice(float(counts[i, j]), atom, (truth[i] * truth[j]) > 0.5)


def _conditional(problem: Problem, left: Mask) -> AtomChoice | None:
    """Return the best atom of the form "where this literal holds, this form is out of bounds"."""
    evidence = problem.evidence
    usable = evidence.forms.conditional
    values = evidence.values[np.ix_(usable, problem.positive)]
    bits = problem.form_bits[usable]
    best: tuple[float, int, int, int, Mask] | None = None
    for literal in np.flatnonzero(evidence.predicates.literal & ~problem.free):
        here = evidence.truth[literal, problem.positive] & left
        if here.sum() < 2:
            continue
        low, high = problem.past.under(int(literal))
        for kind, covers in enumerate(outside(values, low, high)):
            scores = (covers @ here.astype(np.float32)) / (
                bits + problem.predicate_bits[literal] - (2 if kind == 2 else 1)
            )
            place = int(scores.argmax())
            if scores[place] > 0 and (best is None or scores[place] > best[0]):
                best = (float(scores[place]), int(literal), kind, int(usable[place]), covers[place])
    if best is None:
        return None
    return AtomChoice(best[0], *conditional_atom(problem, *best[1:]))


def conditional_atom(problem: Problem, literal: int, kind: int, index: int, covers: Mask) -> tuple[Atom, Mask]:
    """Return the atom of a form under a literal, and the failures that it explains."""
    evidence = problem.evidence
    under = evidence.truth[literal]
    covered = covers & under[problem.positive]
    low, high = bounds(evidence.values[index : index + 1, problem.negative[under[problem.negative]]])
    values = evidence.values[index, problem.positive][covered]
    item = evidence.predicates.items[literal]
    part = threshold(evidence, kind, index, values, float(low[0]), float(high[0]), problem.tight)
    return Atom((item.part, part), item.bits + float(evidence.forms.bits[index]) + ATOM_BITS + 1), covered


def _triple(problem: Problem, left: Mask) -> AtomChoice | None:
    """Return the best conjunction of two literals and a predicate that explains the first unexplained failure."""
    evidence, predicates = problem.evidence, problem.evidence.predicates
    seed = problem.positive[int(np.flatnonzero(left)[0])]
    at_seed = evidence.truth[:, seed]
    literals = np.flatnonzero(at_seed & predicates.literal)
    literals = literals[np.argsort(predicates.bits[literals], kind="stable")][:40]
    first, second = np.triu_indices(len(literals), 1)
    first, second = literals[first], literals[second]
    third = np.flatnonzero(at_seed)
    pair_past = evidence.truth[np.ix_(first, problem.negative)] & evidence.truth[np.ix_(second, problem.negative)]
    pair_left = (
        evidence.truth[np.ix_(first, problem.positive)] & evidence.truth[np.ix_(second, problem.positive)] & left
    )
    free = (pair_past.astype(np.float32) @ evidence.truth[np.ix_(third, problem.negative)].T.astype(np.float32)) < 0.5
    counts = pair_left.astype(np.float32) @ evidence.truth[np.ix_(third, problem.positive)].T.astype(np.float32)
    bits = problem.predicate_bits
    total = (bits[first] + bits[second])[:, None] + bits[third][None] - ATOM_BITS
    scores = np.where(free, counts / total, 0)
    if not scores.size or scores.max() <= 0:
        return None
    i, j = divmod(int(scores.argmax()), len(third))
    chosen = sorted({int(first[i]), int(second[i]), int(third[j])})
    parts: tuple[Part, ...] = tuple(predicates.items[k].part for k in chosen)
    atom = Atom(parts, float(sum(predicates.bits[k] for k in chosen)) + ATOM_BITS + 2)
    covers: Mask = evidence.truth[np.ix_(np.array(chosen), problem.positive)].all(0)
    return AtomChoice(float(scores[i, j]), atom, covers)


def _cell(problem: Problem, left: Mask) -> AtomChoice:
    """Return, as a last resort, the fewest values of the first unexplained failure that nothing past it shares."""
    evidence, space = problem.evidence, problem.evidence.space
    row = evidence.rows[problem.positive[int(np.flatnonzero(left)[0])]]
    same = evidence.rows[problem.negative] == row
    columns = next(_combinations(same, len(space.names)), tuple(range(len(space.names))))
    cells = tuple((column, int(row[column])) for column in columns)
    bits = sum(math.log2(len(space.names)) + math.log2(space.sizes[column]) for column in columns) + ATOM_BITS
    atom = Atom((Cell(space, cells),), bits)
    return AtomChoice(0.0, atom, atom.fails(evidence.rows[problem.positive]))


def _combinations(same: Mask, count: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, min(count, 5)):
        for columns in itertools.combinations(range(count), size):
            if not same[:, list(columns)].all(1).any():
                yield columns


def _without_needless(problem: Problem, atoms: list[Atom]) -> list[Atom]:
    """Return the atoms without those whose failures the others explain. The longest are tried first."""
    rows = problem.evidence.rows[problem.positive]
    kept = list(atoms)
    for atom in sorted(atoms, key=lambda item: -item.bits):
        others = [item for item in kept if item is not atom]
        if others and np.any([item.fails(rows) for item in others], 0).all():
            kept = others
    return kept
