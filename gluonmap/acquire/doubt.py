"""Open questions of the evidence: other atoms that explain the same failures, and where they disagree."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from gluonmap.acquire.atoms import Atom, Part, any_fails
from gluonmap.acquire.evidence import EvidenceTable
from gluonmap.acquire.fit import ATOM_BITS, EPSILON, Problem, all_outside, bounds, threshold
from gluonmap.acquire.space import Mask, Numbers, Rows

OPEN_BITS = 9.0
"""Alternatives longer by more than this are not considered."""
MOST_ALTERNATIVES = 400
MOST_PAIRED = 250
"""Conditions that are tried in pairs, the shortest first."""


@dataclass(frozen=True)
class Alternative:
    """Another explanation of the same failures: a conjunction of predicates and, possibly, a threshold on a form.

    `form` is (index, kind, value of the nearest pass, value of the nearest failure). Between the two it is undecided.
    """

    bits: float
    predicates: tuple[int, ...] = ()
    form: tuple[int, int, float, float] | None = None
    atom: Atom | None = None


class Pool:
    """Configurations that may be asked next. Values of forms and predicates on them are computed when needed."""

    def __init__(self, rows: Rows, evidence: EvidenceTable) -> None:
        self.rows = rows
        self._evidence = evidence
        self._values: dict[int, Numbers] = {}
        self._truth: dict[int, Mask] = {}

    def values(self, form: int) -> Numbers:
        if form not in self._values:
            if len(self._values) * len(self.rows) > 1e7:
                self._values.clear()
            self._values[form] = self._evidence.forms.values_of(form, self.rows)
        return self._values[form]

    def truth(self, predicate: int) -> Mask:
        if predicate not in self._truth:
            self._truth[predicate] = self._evidence.predicates.truth_of(predicate, self.rows)
        return self._truth[predicate]

    def vote(self, alternative: Alternative) -> Numbers:
        """Return an alternative's vote that each configuration fails: 0, 1, or 0.5 where it is undecided."""
        if alternative.atom is not None:
            return alternative.atom.fails(self.rows).astype(float)
        vote = np.ones(len(self.rows))
        for predicate in alternative.predicates:
            vote *= self.truth(predicate)
        if alternative.form is not None:
            index, kind, passing, failing = alternative.form
            vote *= _form_vote(self.values(index), kind, passing, failing)
        return vote


def _form_vote(values: Numbers, kind: int, passing: float, failing: float) -> Numbers:
    if kind == 2:
        return (np.abs(values - passing) > EPSILON).astype(float)
    if kind == 1:
        values, passing, failing = -values, -passing, -failing
    return np.where(values >= failing - EPSILON, 1.0, np.where(values <= passing + EPSILON, 0.0, 0.5))


def alternatives(problem: Problem, atom: Atom, owned: Mask) -> list[Alternative]:
    """Return all short explanations of the failures `owned` (a mask over the problem's failures), `atom` first."""
    found = [
        *_forms(problem, owned, atom),
        *_predicates(problem, owned),
        *_pairs(problem, owned, atom.bits + OPEN_BITS),
    ]
    if len(atom.parts) >= 2:
        found += _conditionals(problem, owned, atom.bits + OPEN_BITS)
    least = min([atom.bits, *(item.bits for item in found)])
    found = sorted((item for item in found if item.bits <= least + OPEN_BITS), key=lambda item: item.bits)
    return [Alternative(atom.bits, atom=atom), *found[:MOST_ALTERNATIVES]]


def _forms(problem: Problem, owned: Mask, atom: Atom) -> list[Alternative]:
    evidence = problem.evidence
    short = int(np.searchsorted(evidence.forms.bits, atom.bits + OPEN_BITS - ATOM_BITS + 1, "right"))
    values = evidence.values[:short, problem.positive[owned]]
    low, high = problem.bounds[0][:short], problem.bounds[1][:short]
    found = []
    for kind, covers in enumerate(all_outside(values, bounds(values), low, high)):
        for index in np.flatnonzero(covers):
            passing = float(low[index] if kind == 1 else high[index])
            failing = float(values[index].max() if kind == 1 else values[index].min())
            bits = float(evidence.forms.bits[index]) + ATOM_BITS - (1.0 if kind == 2 else 0.0)
            if bits <= atom.bits + OPEN_BITS:
                found.append(Alternative(bits, form=(int(index), kind, passing, failing)))
    return found


def _predicates(problem: Problem, owned: Mask) -> list[Alternative]:
    evidence = problem.evidence
    holds = evidence.truth[:, problem.positive[owned]].all(1) & problem.free
    items = evidence.predicates.items
    return [Alternative(items[i].bits + ATOM_BITS, predicates=(int(i),)) for i in np.flatnonzero(holds)]


def _pairs(problem: Problem, owned: Mask, most_bits: float) -> list[Alternative]:
    evidence = problem.evidence
    partial = problem.partial
    holds = np.flatnonzero(evidence.truth[np.ix_(partial, problem.positive[owned])].all(1))
    bits = evidence.predicates.bits[partial[holds]]
    if len(holds) < 2 or np.sort(bits)[:2].sum() + ATOM_BITS + 1 > most_bits:
        return []
    keep = partial[holds[bits + bits.min() + ATOM_BITS + 1 <= most_bits]][:MOST_PAIRED]
    first, second = np.nonzero(problem.apart(keep))
    length = evidence.predicates.bits[keep]
    total = length[first] + length[second] + ATOM_BITS + 1
    order = np.argsort(total, kind="stable")[:MOST_ALTERNATIVES]
    return [
        Alternative(float(total[k]), predicates=(int(keep[first[k]]), int(keep[second[k]])))
        for k in order
        if total[k] <= most_bits
    ]


def _conditionals(problem: Problem, owned: Mask, most_bits: float) -> list[Alternative]:
    evidence = problem.evidence
    usable, places = evidence.forms.conditional, problem.positive[owned]
    literals = np.flatnonzero(evidence.predicates.literal & ~problem.free)
    literals = literals[evidence.truth[np.ix_(literals, places)].all(1)]
    if not len(literals):
        return []
    bases = evidence.predicates.bits[literals] + ATOM_BITS + 1
    form_bits = evidence.forms.bits[usable]
    values = evidence.values[np.ix_(usable[form_bits <= most_bits - bases.min()], places)]
    ends = bounds(values)
    found = []
    for literal, base in zip(literals.tolist(), bases.tolist(), strict=True):
        short = int(np.searchsorted(form_bits, most_bits - base, "right"))
        low, high = (end[:short] for end in problem.past.under(literal))
        for kind, covers in enumerate(all_outside(values[:short], (ends[0][:short], ends[1][:short]), low, high)):
            for place in np.flatnonzero(covers):
                passing = float(low[place] if kind == 1 else high[place])
                failing = float(values[place].max() if kind == 1 else values[place].min())
                index = int(usable[place])
                bits = base + float(evidence.forms.bits[index])
                found.append(Alternative(bits, (literal,), (index, kind, passing, failing)))
    return sorted(found, key=lambda item: item.bits)[:MOST_ALTERNATIVES]


def slot_probability(pool: Pool, found: list[Alternative]) -> Numbers:
    """Return the probability that the cause of these failures forbids each configuration of the pool.

    An alternative weighs half as much for each further bit of its description.
    """
    least = min(item.bits for item in found)
    total, weight_sum = np.zeros(len(pool.rows)), 0.0
    for item in found:
        weight = 2.0 ** (least - item.bits)
        total += weight * pool.vote(item)
        weight_sum += weight
    return total / weight_sum


# ---- one atom in place of several ----------------------------------------------------------------------------------

MOST_MERGED = 8
"""Most atoms of a reason that are merged two by two."""


def merged(problem: Problem, atoms: list[Atom]) -> list[Atom]:
    """Return the atoms with several replaced by one where that is shorter. A greedy cover misses such atoms."""
    rows = problem.evidence.rows[problem.positive]
    changed = len(atoms) > 1
    while changed and len(atoms) > 1:
        changed = False
        groups = [tuple(range(len(atoms)))]
        if 2 < len(atoms) <= MOST_MERGED:
            groups += itertools.combinations(range(len(atoms)), 2)
        for group in groups:
            rest = [atom for i, atom in enumerate(atoms) if i not in group]
            owned = ~any_fails(rest, rows)
            one = _shortest(problem, owned, sum(atoms[i].bits for i in group))
            if one is not None:
                atoms, changed = [*rest, one], True
                break
    return atoms


def _shortest(problem: Problem, owned: Mask, below: float) -> Atom | None:
    """Return the shortest atom that explains the failures `owned`, if it has less than `below` bits."""
    stand_in = Atom((), below)
    found = [*_forms(problem, owned, stand_in), *_predicates(problem, owned), *_pairs(problem, owned, below)]
    found += _conditionals(problem, owned, below)
    best = min(found, key=lambda item: item.bits, default=None)
    return None if best is None or best.bits >= below else atom_of(problem, best)


def atom_of(problem: Problem, item: Alternative) -> Atom:
    """Return an alternative as an atom. Its threshold lies just beyond the values that got past the reason."""
    if item.atom is not None:
        return item.atom
    evidence = problem.evidence
    parts: list[Part] = [evidence.predicates.items[i].part for i in item.predicates]
    if item.form is not None:
        index, kind, passing, failing = item.form
        values = np.array([failing])
        parts.append(threshold(evidence, kind, index, values, passing, passing, problem.tight))
    return Atom(tuple(parts), item.bits)
