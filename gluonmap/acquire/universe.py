"""The configurations that may be asked: a list if they are few, random draws if they are many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gluonmap.acquire.atoms import Atom, any_fails
from gluonmap.acquire.space import Mask, Rows, Space
from gluonmap.constraints.counting import Elimination, Factor, TooEntangled

MOST_LISTED = 60_000
MOST_POOLED = 3_000


class Universe:
    """The configurations of a space, or of a given list, that the user's restrictions allow."""

    def __init__(self, space: Space, given: Sequence[Atom], only: Rows | None, random: np.random.Generator) -> None:
        self.space = space
        self.given = tuple(given)
        self._random = random
        self.rows: Rows | None = None
        """Every configuration; None if there are too many to list."""
        if only is not None or space.size <= MOST_LISTED:
            rows = space.all_rows() if only is None else only
            self.rows = rows[~any_fails(self.given, rows)]
            self._codes = self._encode(self.rows)
            self._order = np.argsort(self._codes)

    @property
    def size(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        return self.space.size if not self.given else elimination(self.space, self.given).count

    def contains(self, rows: Rows) -> Mask:
        """Return a mask of the rows that may be asked."""
        if self.rows is None:
            return ~any_fails(self.given, rows)
        codes = self._encode(rows)
        places = np.searchsorted(self._codes, codes, sorter=self._order)
        inside = places < len(self._order)
        found = np.zeros(len(rows), bool)
        found[inside] = self._codes[self._order[places[inside]]] == codes[inside]
        return found

    def _encode(self, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        found = np.zeros(len(rows), np.int64)
        for column, size in enumerate(self.space.sizes):
            found = found * size + rows[:, column]
        return found

    def pool(self, groups: Sequence[Sequence[Atom]], passing: Rows, failing: Rows) -> Rows:
        """Return all configurations, or a few thousand of every kind. `groups` holds the atoms of each reason."""
        if self.rows is not None and len(self.rows) <= MOST_POOLED:
            return self.rows
        quarter = MOST_POOLED // 4
        atoms = list(dict.fromkeys(atom for group in groups for atom in group))
        kinds = [self._uniform(quarter), self.neighbours(self.valid(atoms, quarter), (1, 2))]
        if len(passing):
            kinds.append(self.neighbours(passing[self._random.integers(0, len(passing), quarter)], (1, 3)))
            kinds.append(self.valid(atoms, quarter // 2))
            scopes = [sorted(frozenset().union(*(atom.columns for atom in group))) for group in groups if group]
            wide = [scope for scope in scopes if len(scope) > 1]
            kinds += [self._redrawn(passing, scope, quarter // len(wide)) for scope in wide]
        if len(passing) and len(failing):
            kinds.append(self._between(failing, passing, quarter))
        rows = np.unique(np.concatenate(kinds), axis=0)
        return rows[self.contains(rows)]

    def _uniform(self, count: int) -> Rows:
        if self.rows is not None:
            return self.rows[self._random.integers(0, len(self.rows), count)]
        return self.space.random_rows(count, self._random)

    def neighbours(self, rows: Rows, moves: tuple[int, int]) -> Rows:
        """Return the rows with a few knobs changed: at least `moves[0]` draws a row, at most `moves[1]`."""
        found = rows.copy()
        if not len(found):
            return found
        sizes = np.array(self.space.sizes)
        for move in range(moves[1]):
            moving = np.flatnonzero(self._random.random(len(found)) < (1.0 if move < moves[0] else 0.6))
            columns = self._random.integers(0, len(sizes), len(moving))
            found[moving, columns] = (self._random.random(len(moving)) * sizes[columns]).astype(np.int16)
        return found

    def _redrawn(self, rows: Rows, columns: Sequence[int], count: int) -> Rows:
        """Return passing rows with random values of the knobs `columns` that one reason reads."""
        found = rows[self._random.integers(0, len(rows), count)]
        found[:, columns] = self.space.random_rows(count, self._random)[:, columns]
        return found

    def _between(self, failing: Rows, passing: Rows, count: int) -> Rows:
        """Return mixtures of a failing configuration and a passing one."""
        bad = failing[self._random.integers(0, len(failing), count)]
        good = passing[self._random.integers(0, len(passing), count)]
        mixed: Rows = np.where(self._random.random(bad.shape) < self._random.random((count, 1)), bad, good)
        return mixed

    def valid(self, atoms: Sequence[Atom], count: int) -> Rows:
        """Return uniform draws among the configurations that no atom forbids."""
        if self.rows is not None:
            free = np.flatnonzero(~any_fails(atoms, self.rows))
            return self.rows[self._random.choice(free, count)] if len(free) else self.rows[:0]
        try:
            return elimination(self.space, [*self.given, *atoms]).sample(count, self._random)
        except TooEntangled:
            rows = self.space.random_rows(50 * count, self._random)
            return rows[~any_fails([*self.given, *atoms], rows)][:count]


def atom_table(space: Space, atom: Atom, columns: Sequence[int]) -> Mask:
    """Return where an atom fails, over the product of the domains of `columns`."""
    sizes = [space.sizes[column] for column in columns]
    grids = np.meshgrid(*[np.arange(size, dtype=np.int16) for size in sizes], indexing="ij")
    rows = np.zeros((int(np.prod(sizes)), len(space.names)), np.int16)
    for column, grid in zip(columns, grids, strict=True):
        rows[:, column] = grid.ravel()
    return atom.fails(rows).reshape(sizes)


def factors(space: Space, atoms: Sequence[Atom], *, broken: Atom | None = None) -> list[Factor]:
    """Return tables of what the atoms allow, one for all atoms on the same knobs. `broken` must fail instead."""
    groups: dict[tuple[int, ...], Mask] = {}
    for atom in atoms:
        columns = tuple(sorted(atom.columns))
        fails = atom_table(space, atom, columns)
        allowed = fails if atom is broken else ~fails
        groups[columns] = groups[columns] & allowed if columns in groups else allowed
    return [Factor(columns, table.astype(float)) for columns, table in groups.items()]


def elimination(space: Space, atoms: Sequence[Atom], *, broken: Atom | None = None) -> Elimination:
    """Return the configurations that the atoms allow, ready for counting and drawing. `broken` must fail instead."""
    return Elimination(space.sizes, factors(space, atoms, broken=broken))
