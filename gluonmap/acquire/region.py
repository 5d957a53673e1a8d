"""The model: for each reason the atoms that forbid configurations, fitted to the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gluonmap.acquire.atoms import Atom, Stated, any_fails
from gluonmap.acquire.doubt import Alternative, Pool, alternatives, merged, slot_probability
from gluonmap.acquire.evidence import PASSED, EvidenceTable
from gluonmap.acquire.fit import Past, Problem, cover
from gluonmap.acquire.space import Mask, Numbers, Rows, Space
from gluonmap.constraints import shared_memory
from gluonmap.constraints.counting import TooEntangled, relation_factor
from gluonmap.constraints.semantics import value_of
from gluonmap.model.relations import Relation

READ_BITS = 3.0
SHARED_BITS = 7.0
"""Bits of an atom that was learned for another reason."""


@dataclass(frozen=True)
class ReadRule:
    """A demand read from the source. It may explain failures, and is dropped if a pass contradicts it."""

    atom: Atom
    text: str


class Model:
    """Atoms by reason. Demands read from the source hold from the start."""

    def __init__(self, evidence: EvidenceTable, read: Sequence[ReadRule]) -> None:
        self.evidence = evidence
        self.read = list(read)
        self.by_reason: dict[int, list[Atom]] = {}
        self.version = 0
        """Incremented whenever a prediction may have changed."""
        self.formula: shared_memory.Formula | None = None
        self.limit: int | None = None
        self._tried_bytes = 0
        self._past: dict[int, Past] = {}
        self._slots: dict[tuple[int, Atom], tuple[bytes, list[Alternative]]] = {}

    def atoms(self) -> list[Atom]:
        """Return all atoms, each once."""
        return list(
            dict.fromkeys([*(r.atom for r in self.read), *(a for found in self.by_reason.values() for a in found)])
        )

    def groups(self) -> list[list[Atom]]:
        """Return the atoms of each reason. A demand of the source that no failure named is a separate reason."""
        named = {atom.parts for found in self.by_reason.values() for atom in found}
        return [*([r.atom] for r in self.read if r.atom.parts not in named), *self.by_reason.values()]

    def fails(self, rows: Rows) -> Mask:
        return any_fails(self.atoms(), rows)

    # ---- fitting ---------------------------------------------------------------------------------------------------

    def problem(self, reason: int) -> Problem:
        offers = [rule.atom for rule in self.read]
        for other, atoms in self.by_reason.items():
            if other != reason and other != self.evidence.budget:
                offers += [Atom(a.parts, SHARED_BITS) for a in atoms if a not in offers]
        evidence, negative = self.evidence, self.evidence.negatives(reason)
        past = self._past.setdefault(reason, Past(evidence))
        past.update(negative)
        return Problem(evidence, evidence.positives(reason), negative, past, offers=tuple(offers))

    def refit(self) -> None:
        """Fit the reasons whose atoms the evidence contradicts."""
        self._drop_read_rules()
        self._fit_budget()
        for reason in range(1, len(self.evidence.reasons) + 1):
            if not len(self.evidence.positives(reason)):  # its only failures turned out to be unstable
                self.version += self.by_reason.pop(reason, None) is not None
            elif self._contradicted(reason):
                self._fit(reason)

    def _contradicted(self, reason: int) -> bool:
        evidence = self.evidence
        atoms = self.by_reason.get(reason)
        if not atoms:
            return True
        positives, negatives = evidence.positives(reason), evidence.negatives(reason)
        covered = any_fails(atoms, evidence.rows)
        idle = any(not atom.fails(evidence.rows[positives]).any() for atom in atoms)  # its failure later passed
        return bool(idle or (~covered[positives]).any() or covered[negatives].any())

    def _fit(self, reason: int) -> None:
        stated = self._budget_atoms() if reason == self.evidence.budget else []
        problem = self.problem(reason)
        if stated:
            problem.offers = (*stated, *problem.offers)
        atoms = merged(problem, cover(problem))
        if atoms != self.by_reason.get(reason):
            self.by_reason[reason] = atoms
            self.version += 1

    def shorten(self) -> None:
        """Fit every reason again, and keep the result if it is shorter: early atoms were chosen on little evidence."""
        for reason, atoms in list(self.by_reason.items()):
            if any(isinstance(atom.parts[0], Stated) for atom in atoms):
                continue
            problem = self.problem(reason)
            found = merged(problem, cover(problem))
            if sum(atom.bits for atom in found) < sum(atom.bits for atom in atoms) - 1:
                self.by_reason[reason] = found
                self.version += 1

    def _drop_read_rules(self) -> None:
        passing = self.evidence.rows[self.evidence.labels == PASSED]
        kept = [rule for rule in self.read if not rule.atom.fails(passing).any()]
        if len(kept) < len(self.read):
            self.read = kept
            self.version += 1

    # ---- shared memory ---------------------------------------------------------------------------------------------

    def _fit_budget(self) -> None:
        """Fit the formula of the bytes again if it fails, or if there was none and there are many more data."""
        if self.evidence.budget is None:
            return
        rows, needed = self.evidence.shared_bytes()
        before = (self.formula, self.limit)
        if self.formula is not None and not self._meets(self.formula, rows, needed):
            self.formula, self._tried_bytes = None, 0
        growth = 1.5 if self._tried_bytes < shared_memory.ENOUGH_DATA else 2.5
        if self.formula is None and len(rows) >= max(shared_memory.FEWEST_DATA, growth * self._tried_bytes):
            self._tried_bytes = len(rows)
            space = self.evidence.space
            domains = dict(zip(space.names, space.domains, strict=True))
            self.formula = shared_memory.fit_bytes(domains, space.columns(rows), needed)
        self.limit = self._limit()
        if (self.formula, self.limit) != before:
            self._fit(self.evidence.budget)

    def _meets(self, formula: shared_memory.Formula, rows: Rows, needed: Numbers) -> bool:
        found = value_of(formula.term, self.evidence.space.columns(rows))
        return bool(np.all(np.abs(np.asarray(found, float) - needed) < 0.5))

    def _limit(self) -> int | None:
        answers = self.evidence.answers
        failing = [a for a, n in zip(answers, self.evidence.labels, strict=True) if n == self.evidence.budget]
        passed = [a.shared_bytes for a in answers if a.passed and a.shared_bytes is not None]
        return shared_memory.likely_limit(passed, [a.shared_bytes for a in failing if a.shared_bytes is not None])

    def _budget_atoms(self) -> list[Atom]:
        if self.formula is None or self.limit is None:
            return []
        stated = stated_atom(self.evidence.space, shared_memory.budget_relation(self.formula, self.limit), 2.0)
        return [] if stated is None else [stated]

    # ---- doubt -----------------------------------------------------------------------------------------------------

    def failure_probability(self, pool: Pool) -> Numbers:
        """Return the probability that each configuration of the pool fails, over all short explanations."""
        passes = np.ones(len(pool.rows))
        for atom in (rule.atom for rule in self.read):
            passes *= 1 - 0.9 * atom.fails(pool.rows)
        for reason, atoms in self.by_reason.items():
            problem = self.problem(reason)
            for atom in atoms:
                if isinstance(atom.parts[0], Stated):
                    passes *= ~atom.fails(pool.rows)
                    continue
                owned = self._owned(problem, atoms, atom)
                stamp = problem.positive[owned].tobytes() + problem.negative.tobytes()
                known = self._slots.get((reason, atom))
                if known is None or known[0] != stamp:
                    known = self._slots[reason, atom] = (stamp, alternatives(problem, atom, owned))
                passes *= 1 - slot_probability(pool, known[1])
        return 1 - passes

    def _owned(self, problem: Problem, atoms: Sequence[Atom], atom: Atom) -> Mask:
        rows = self.evidence.rows[problem.positive]
        mine = atom.fails(rows)
        owned = mine & ~any_fails([other for other in atoms if other is not atom], rows)
        return owned if owned.any() else mine

    def open_alternatives(self, reason: int, atom: Atom) -> list[Alternative]:
        """Return all other short explanations of the failures of an atom."""
        problem = self.problem(reason)
        return alternatives(problem, atom, self._owned(problem, self.by_reason[reason], atom))


def stated_atom(space: Space, relation: Relation, bits: float) -> Atom | None:
    """Return the atom "fails where the relation is violated".

    Return None if the relation reads no open knob, or is too wide for a table.
    """
    try:
        domains = [*space.domains, *((value,) for value in space.fixed.values())]
        factor = relation_factor([*space.names, *space.fixed], domains, relation)
    except TooEntangled:
        return None
    columns = tuple(c for c in factor.columns if c < len(space.names))
    if not columns:
        return None
    table = factor.table.reshape([space.sizes[c] for c in columns]) > 0
    return Atom((Stated(space, relation, columns, table),), bits)
