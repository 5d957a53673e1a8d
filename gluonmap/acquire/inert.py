"""Inertness: when a knob changes the program. The evidence is pairs of passing configurations that differ in one knob.

Equal digests mean one program. Values are claimed to be one program only if they were compared in every context, that
is, with each value of every other knob with which a configuration passes. The reason: a knob that is read behind a flag
looks idle wherever the flag is off.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gluonmap.acquire.atoms import Atom
from gluonmap.acquire.evidence import PASSED, EvidenceTable
from gluonmap.acquire.plan import Row
from gluonmap.acquire.region import Model
from gluonmap.acquire.space import Mask, Rows
from gluonmap.acquire.universe import Universe
from gluonmap.constraints.semantics import words
from gluonmap.model.joint_map import UNCOMPARED, Inertness, ValueClasses

LEAST_SUPPORT = 3
"""Fewest pairs on each side of a condition. With fewer, the condition may be chance."""
WANTED_WHERE_MIXED = 12
"""Pairs wanted of a knob that changes the program sometimes: enough to find out when."""
AT_ONCE = 24
"""Most configurations that are requested before their answers are used."""

NEVER, ALWAYS, SOMETIMES = "", "always", "sometimes"
"""Conditions that are not relations."""

ContextValue = tuple[int, int]
"""A value of a knob that is part of a context: column and index."""


@dataclass(frozen=True)
class Neighbours:
    """Two passing configurations that differ in one knob only."""

    column: int
    first: Row
    second: Row
    same: bool
    """Both have the same digest."""

    @property
    def values(self) -> frozenset[int]:
        return frozenset((self.first[self.column], self.second[self.column]))


def neighbours(evidence: EvidenceTable) -> list[Neighbours]:
    """Return all pairs of passing configurations with a digest that differ in one knob."""
    passed = [i for i in np.flatnonzero(evidence.labels == PASSED) if evidence.answers[i].digest]
    rows = [tuple(evidence.rows[i].tolist()) for i in passed]
    digests = [evidence.answers[i].digest for i in passed]
    found = []
    for column in range(len(evidence.space.names)):
        groups: dict[Row, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            groups[(*row[:column], *row[column + 1 :])].append(place)
        for places in groups.values():
            found += [
                Neighbours(column, rows[i], rows[j], digests[i] == digests[j])
                for i, j in itertools.combinations(places, 2)
            ]
    return found


@dataclass(frozen=True)
class Claim:
    """The claim that some values of a knob are one program, everywhere or in a region."""

    column: int
    values: frozenset[int]
    support: tuple[Neighbours, ...]
    where: Atom | None = None
    broken: bool = False
    """The region is where `where` is violated, not where it holds."""
    own: bool = True
    """The region belongs to the knob: where it matters at all, or where it does not. Else it belongs to two values."""

    def region(self, rows: Rows) -> Mask:
        if self.where is None:
            return np.ones(len(rows), bool)
        fails = self.where.fails(rows)
        return fails if self.broken else ~fails


@dataclass
class KnobComparisons:
    """The compared pairs of one knob, and what follows from them."""

    column: int
    same: list[Neighbours] = field(default_factory=list)
    changed: list[Neighbours] = field(default_factory=list)
    condition: Atom | None = None
    """The knob matters only where this holds, that is, where its atom does not fail."""
    classes: list[frozenset[int]] = field(default_factory=list)
    """Groups of two and more values that no pair distinguishes."""
    apart: list[Neighbours] = field(default_factory=list)
    """Pairs with equal programs whose values other pairs distinguish."""


class Sameness:
    """Equal programs in the evidence, and the comparisons that are missing before they may be claimed."""

    def __init__(self, evidence: EvidenceTable, model: Model, universe: Universe) -> None:
        self.evidence, self.model, self.universe, self.space = evidence, model, universe, evidence.space
        self.knobs = [KnobComparisons(column) for column in range(len(self.space.names))]
        for pair in neighbours(evidence):
            (self.knobs[pair.column].same if pair.same else self.knobs[pair.column].changed).append(pair)
        self.idle = {knob.column for knob in self.knobs if not knob.changed}
        for knob in self.knobs:
            self._look(knob)

    def _look(self, knob: KnobComparisons) -> None:
        if not knob.changed:
            return
        differ = {pair.values for pair in knob.changed}
        equal = {pair.values for pair in knob.same} - differ
        knob.classes = [group for group in _classes(self.space.sizes[knob.column], equal) if len(group) > 1]
        knob.apart = [pair for pair in knob.same if not any(pair.values <= group for group in knob.classes)]
        knob.condition = self._shortest_condition(knob.column, knob.changed, knob.apart)

    # ---- claims ----------------------------------------------------------------------------------------------------

    def never(self, knob: KnobComparisons) -> Claim:
        """Return the claim that the knob changes nothing."""
        return Claim(knob.column, frozenset(range(self.space.sizes[knob.column])), tuple(knob.same))

    def conditional(self, knob: KnobComparisons) -> Claim:
        """Return the claim that the knob changes nothing where its condition does not hold."""
        values = frozenset(range(self.space.sizes[knob.column]))
        return Claim(knob.column, values, tuple(knob.apart), knob.condition, broken=True)

    def equal(self, knob: KnobComparisons) -> Iterator[Claim]:
        """Yield the claims that values are one program.

        The region is where the knob matters, or, for two values, where a condition of theirs holds.
        """
        if knob.apart and knob.condition is None:
            yield from self._equal_somewhere(knob)
            return
        for group in knob.classes:
            pairs = [pair for pair in knob.same if pair.values <= group]
            inside = Claim(knob.column, group, (), knob.condition).region(_rows(pairs))
            support = tuple(pair for pair, counts in zip(pairs, inside, strict=True) if counts)
            yield Claim(knob.column, group, support, knob.condition)

    def _equal_somewhere(self, knob: KnobComparisons) -> Iterator[Claim]:
        for values in sorted({pair.values for pair in knob.same}, key=sorted):
            same = [pair for pair in knob.same if pair.values == values]
            changed = [pair for pair in knob.changed if pair.values == values]
            if where := self._shortest_condition(knob.column, same, changed):
                yield Claim(knob.column, values, tuple(same), where, own=False)

    def _claims(self) -> Iterator[Claim]:
        for knob in self.knobs:
            if not knob.changed:
                yield self.never(knob)
            else:
                if knob.condition is not None:
                    yield self.conditional(knob)
                yield from self.equal(knob)

    # ---- contexts --------------------------------------------------------------------------------------------------

    def missing(self, claim: Claim) -> set[ContextValue]:
        """Return the values of other knobs with which the claim was not compared, though something may pass there."""
        candidates = self._candidates(claim)
        return _cells(candidates, claim.column) - self._met(claim)

    def _met(self, claim: Claim) -> set[ContextValue]:
        return {cell for pair in claim.support for cell in enumerate(pair.first) if cell[0] != claim.column}

    @cached_property
    def _passed(self) -> Rows:
        has_digest = np.array([bool(answer.digest) for answer in self.evidence.answers], bool)
        rows: Rows = self.evidence.rows[(self.evidence.labels == PASSED) & has_digest]
        return rows

    def _candidates(self, claim: Claim) -> Rows:
        """Return unasked configurations, predicted to pass, that differ from a passed one in the knob alone."""
        base = self._passed[np.isin(self._passed[:, claim.column], sorted(claim.values))]
        base = base[claim.region(base)]
        found = []
        for value in sorted(claim.values):
            rows = base[base[:, claim.column] != value].copy()
            rows[:, claim.column] = value
            found.append(rows)
        rows = np.unique(np.concatenate([*found, base[:0]]), axis=0)
        rows = rows[self.universe.contains(rows) & ~self.model.fails(rows)]
        fresh: Rows = rows[np.array([tuple(row) not in self.evidence for row in rows.tolist()], bool)]
        return fresh

    def wanted(self, most: int) -> list[Row]:
        """Return configurations that support a claim in a missing context, and some that show when a knob matters."""
        if not len(self._passed):
            return []
        chosen: list[Row] = []
        for claim in self._claims():
            chosen += self._filling(claim, set(chosen), self._met(claim), len(self.space.names) * 8)
            if len(chosen) >= min(most, AT_ONCE):
                break
        for knob in self.knobs:
            lacking = WANTED_WHERE_MIXED - len(knob.same) - len(knob.changed)
            if knob.apart and knob.condition is None and lacking > 0:
                chosen += self._filling(self.never(knob), set(chosen), set(), lacking)
        return chosen[: min(most, AT_ONCE)]

    def _filling(self, claim: Claim, taken: set[Row], met: set[ContextValue], most: int) -> list[Row]:
        """Return few configurations that together compare a claim in every missing context."""
        candidates = [row for row in map(tuple, self._candidates(claim).tolist()) if row not in taken]
        cells = {row: {cell for cell in enumerate(row) if cell[0] != claim.column} for row in candidates}
        compared = [sum(value in pair.values for pair in claim.support) for value in range(max(claim.values) + 1)]
        chosen: list[Row] = []
        while candidates and len(chosen) < most:
            best = max(candidates, key=lambda row: (len(cells[row] - met), -compared[row[claim.column]]))
            if not cells[best] - met:
                break
            met = met | cells[best]
            compared[best[claim.column]] += 1
            chosen.append(best)
            candidates.remove(best)
        return chosen

    # ---- results ---------------------------------------------------------------------------------------------------

    def inertness(self) -> list[Inertness]:
        """Return when each compared knob changes the program."""
        return [self._inertness(knob) for knob in self.knobs if knob.same or knob.changed]

    def _inertness(self, knob: KnobComparisons) -> Inertness:
        name = self.space.names[knob.column]
        counts = len(knob.changed), len(knob.same)
        if not knob.changed:
            missing = self.missing(self.never(knob))
            if not missing:
                return Inertness(name, NEVER, f"{name} changed nothing in {len(knob.same)} comparisons", *counts)
            text = f"{name} changed nothing where it was compared, which was never beside {self._said(missing)}"
            return Inertness(name, UNCOMPARED, text, *counts)
        if not knob.apart:
            return Inertness(name, ALWAYS, f"{name} changes the program", *counts)
        share = f"{len(knob.changed)} of {len(knob.changed) + len(knob.same)} comparisons"
        if knob.condition is None:
            return Inertness(name, SOMETIMES, f"{name} matters in {share}; nothing tells when", *counts)
        relation = knob.condition.relation()
        if missing := self.missing(self.conditional(knob)):
            text = f"{name} matters in {share}, perhaps only if {words(relation)}; never compared elsewhere beside "
            return Inertness(name, SOMETIMES, text + self._said(missing), *counts)
        return Inertness(name, words(relation), f"{name} matters only if {words(relation)}", *counts, relation)

    def _said(self, cells: Iterable[ContextValue]) -> str:
        ordered = sorted(cells)
        texts = [f"{self.space.names[c]} = {self.space.domains[c][v]}" for c, v in ordered[:3]]
        return ", ".join(texts) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")

    def value_classes(self) -> list[ValueClasses]:
        """Return the values of each knob that may be claimed to be one program."""
        return [found for knob in self.knobs for found in self._value_classes(knob)]

    def _value_classes(self, knob: KnobComparisons) -> Iterator[ValueClasses]:
        name, domain = self.space.names[knob.column], self.space.domains[knob.column]
        if not knob.changed:
            if knob.same and not self.missing(self.never(knob)):
                yield ValueClasses(name, (domain,))
            return
        sure = [claim for claim in self.equal(knob) if claim.support and not self.missing(claim)]
        everywhere = [claim.values for claim in sure if claim.own]
        if everywhere:
            rest = [frozenset((v,)) for v in range(len(domain)) if not any(v in group for group in everywhere)]
            groups = sorted([*everywhere, *rest], key=min)
            yield ValueClasses(name, tuple(tuple(domain[v] for v in sorted(group)) for group in groups))
        for claim in sure:
            if claim.where is not None and not claim.own:
                relation = claim.where.relation()
                values = tuple(domain[v] for v in sorted(claim.values))
                yield ValueClasses(name, (values,), words(relation), relation)

    def _shortest_condition(
        self, column: int, where: Sequence[Neighbours], elsewhere: Sequence[Neighbours]
    ) -> Atom | None:
        """Return the shortest predicate that holds for all pairs `where` and no pair `elsewhere`; None if none does.

        It reads neither the knob itself nor a knob that never changed a program. A handful of pairs proves nothing:
        some predicate always fits them, hence LEAST_SUPPORT.
        """
        if min(len(where), len(elsewhere)) < LEAST_SUPPORT:
            return None
        predicates, without = self.evidence.predicates, {column, *self.idle}
        allowed: Mask = np.array([without.isdisjoint(item.columns) for item in predicates.items], bool)
        negated = ~predicates.truth(_rows(where)).any(1) & predicates.truth(_rows(elsewhere)).all(1) & allowed
        places = np.flatnonzero(negated)
        if not len(places):
            return None
        item = predicates.items[int(places[predicates.bits[places].argmin()])]
        return Atom((item.part,), item.bits)


def _classes(size: int, equal: set[frozenset[int]]) -> list[frozenset[int]]:
    """Return groups of values in which every two are known to be equal (`equal`), built greedily in domain order."""
    classes: list[set[int]] = []
    for value in range(size):
        home = next((g for g in classes if all(frozenset((value, other)) in equal for other in g)), None)
        if home is None:
            classes.append({value})
        else:
            home.add(value)
    return [frozenset(group) for group in classes]


def _cells(rows: Rows, column: int) -> set[ContextValue]:
    """Return the values of other knobs that occur in some rows."""
    return {(c, v) for c in range(rows.shape[1]) if c != column for v in np.unique(rows[:, c]).tolist()}


def _rows(pairs: Sequence[Neighbours]) -> Rows:
    return np.array([pair.first for pair in pairs], np.int16).reshape(len(pairs), -1)
