"""Atoms: the elementary statements "a configuration fails when …". The region of a reason is a union of atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gluonmap.acquire.forms import Forms, compare, order_relation
from gluonmap.acquire.space import Mask, Rows, Space
from gluonmap.constraints.semantics import words
from gluonmap.model.relations import AnyOf, Nogood, Op, Relation

NEGATED = {Op.AT_MOST: Op.AT_LEAST, Op.AT_LEAST: Op.AT_MOST, Op.EQUAL: Op.UNEQUAL, Op.UNEQUAL: Op.EQUAL}


class Part(Protocol):
    """One condition. An atom forbids a configuration if all its parts are true there."""

    @property
    def columns(self) -> frozenset[int]: ...

    def true(self, rows: Rows) -> Mask: ...

    def negated(self) -> Relation:
        """Return the relation that holds where the part is false."""
        ...


@dataclass(frozen=True)
class Threshold:
    """`form op limit`. `passing` is the nearest value on the other side."""

    forms: Forms
    form: int
    op: Op
    limit: float
    passing: float

    @property
    def columns(self) -> frozenset[int]:
        return self.forms.columns(self.form)

    def true(self, rows: Rows) -> Mask:
        return compare(self.forms.values_of(self.form, rows), self.op, self.limit)

    def negated(self) -> Relation:
        limit = self.passing if self.op in (Op.AT_MOST, Op.AT_LEAST) else self.limit
        return self.forms.relation(self.form, NEGATED[self.op], limit)


@dataclass(frozen=True)
class Literal:
    """The index of a knob's value in its domain, compared with a number."""

    space: Space
    column: int
    op: Op
    place: int

    @property
    def columns(self) -> frozenset[int]:
        return frozenset((self.column,))

    def true(self, rows: Rows) -> Mask:
        return compare(rows[:, self.column].astype(float), self.op, self.place)

    def negated(self) -> Relation:
        op = NEGATED[self.op]
        step = {Op.AT_MOST: -1, Op.AT_LEAST: 1}.get(op, 0)
        domain = self.space.domains[self.column]
        return order_relation(self.space.names[self.column], domain, op, self.place + step)


@dataclass(frozen=True)
class Cell:
    """One combination of values. `cells` holds pairs (column, index of the value)."""

    space: Space
    cells: tuple[tuple[int, int], ...]

    @property
    def columns(self) -> frozenset[int]:
        return frozenset(column for column, _ in self.cells)

    def true(self, rows: Rows) -> Mask:
        found: Mask = np.all([rows[:, column] == place for column, place in self.cells], 0)
        return found

    def negated(self) -> Relation:
        names, domains = self.space.names, self.space.domains
        return Nogood(tuple((names[column], domains[column][place]) for column, place in self.cells))


@dataclass(frozen=True)
class Stated:
    """A violated relation. It was read from the source, given by the user, or is the budget of shared memory."""

    space: Space
    relation: Relation
    used: tuple[int, ...]
    meets: Mask
    """Truth of the relation over the product of the domains of `used`."""

    @property
    def columns(self) -> frozenset[int]:
        return frozenset(self.used)

    def true(self, rows: Rows) -> Mask:
        found: Mask = ~self.meets[tuple(rows[:, column] for column in self.used)]
        return found

    def negated(self) -> Relation:
        return self.relation

    def __hash__(self) -> int:
        return hash(self.relation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stated) and other.relation == self.relation


@dataclass(frozen=True)
class Atom:
    """A conjunction: a configuration fails if all parts are true. `bits` is the description length."""

    parts: tuple[Part, ...]
    bits: float

    @property
    def columns(self) -> frozenset[int]:
        return frozenset().union(*(part.columns for part in self.parts))

    def fails(self, rows: Rows) -> Mask:
        found = self.parts[0].true(rows)
        for part in self.parts[1:]:
            found = found & part.true(rows)
        return found

    def relation(self) -> Relation:
        """Return the relation that holds where the atom does not forbid."""
        parts: list[Relation] = [part.negated() for part in self.parts]
        return parts[0] if len(parts) == 1 else AnyOf(tuple(sorted(parts, key=words)))


def any_fails(atoms: Sequence[Atom], rows: Rows) -> Mask:
    """Return a mask of the rows that some atom forbids."""
    found = np.zeros(len(rows), bool)
    for atom in atoms:
        found |= atom.fails(rows)
    return found
