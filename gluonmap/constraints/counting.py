"""The configurations that meet all relations: their count, uniform draws and their list, without walking the product.

Each relation becomes a table over its own knobs. Knobs are summed out one at a time (variable elimination, the cheapest
first). The intermediate tables, read backwards, give uniform draws and the list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce as fold

import numpy as np
import numpy.typing as npt

from gluonmap.constraints.semantics import holds_columns, scope_of, words
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.relations import Relation

MOST_CELLS = 10_000_000
"""Cells of one table. With more, the relations are too entangled for counting."""

Rows = npt.NDArray[np.int16]


class TooEntangled(UsageError):
    """Relations that share so many knobs that no order of elimination keeps the tables small."""


@dataclass(frozen=True)
class Factor:
    """A table over some knobs: the number of times that each combination of their values is allowed."""

    columns: tuple[int, ...]
    table: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """One knob summed out: the table over it and the knobs that shared a factor with it."""

    column: int
    columns: tuple[int, ...]
    table: npt.NDArray[np.float64]


class Elimination:
    """The elimination of all knobs: the count, and the steps that lead back.

    `keep` names columns that stay: `table` then has the count for each combination of their values, and draws and
    rows are not available.
    """

    def __init__(self, sizes: Sequence[int], factors: Iterable[Factor], keep: tuple[int, ...] = ()) -> None:
        self.sizes = tuple(sizes)
        self.steps: list[Step] = []
        self.table = self._eliminate(list(factors), keep)
        self.total = float(self.table.sum())

    @property
    def count(self) -> int:
        """Return the number of allowed combinations; exact below 2**53."""
        return round(self.total)

    def _eliminate(self, factors: list[Factor], keep: tuple[int, ...]) -> npt.NDArray[np.float64]:
        left = set(range(len(self.sizes))) - set(keep)
        while left:
            column = min(left, key=lambda c: (self._width(c, factors), c))
            mine = [factor for factor in factors if column in factor.columns]
            step = self._step(column, mine)
            self.steps.append(step)
            rest = tuple(c for c in step.columns if c != column)
            others = [factor for factor in factors if column not in factor.columns]
            factors = [*others, Factor(rest, step.table.sum(step.columns.index(column)))]
            left.remove(column)
        return self._product(keep, factors)

    def _width(self, column: int, factors: list[Factor]) -> int:
        touched = {c for factor in factors if column in factor.columns for c in factor.columns} | {column}
        return math.prod(self.sizes[c] for c in touched)

    def _step(self, column: int, factors: list[Factor]) -> Step:
        columns = tuple(sorted({c for factor in factors for c in factor.columns} | {column}))
        return Step(column, columns, self._product(columns, factors))

    def _product(self, columns: tuple[int, ...], factors: list[Factor]) -> npt.NDArray[np.float64]:
        cells = math.prod(self.sizes[c] for c in columns)
        if cells > MOST_CELLS:
            raise TooEntangled(
                f"the constraints tie {len(columns)} knobs together: a table of {cells:,} cells; at most "
                f"{MOST_CELLS:,} are counted. Restrict some of their values with --restrict."
            )
        table = np.ones([self.sizes[c] for c in columns])
        for factor in factors:
            shape = [self.sizes[c] if c in factor.columns else 1 for c in columns]
            table *= factor.table.reshape(shape)
        return table

    def sample(self, count: int, random: np.random.Generator) -> Rows:
        """Return independent uniform draws, one in each row; no rows if nothing is allowed."""
        rows = np.zeros((count if self.total > 0 else 0, len(self.sizes)), np.int16)
        for step in reversed(self.steps):
            weights = self._weights(step, rows)
            bounds = np.cumsum(weights, 1)
            draw = random.random(len(rows))[:, None] * bounds[:, -1:]
            rows[:, step.column] = np.minimum((draw >= bounds).sum(1), self.sizes[step.column] - 1)
        return rows

    def rows(self) -> Rows:
        """Return every allowed combination, in the order of the domains."""
        rows = np.zeros((1 if self.total > 0 else 0, len(self.sizes)), np.int16)
        for step in reversed(self.steps):
            parents, values = np.nonzero(self._weights(step, rows) > 0)
            rows = rows[parents]
            rows[:, step.column] = values
        return rows[np.lexsort(rows.T[::-1])] if len(self.sizes) else rows

    def _weights(self, step: Step, rows: Rows) -> npt.NDArray[np.float64]:
        """Return the number of combinations that each value of the step's knob leads to, by row."""
        table = np.moveaxis(step.table, step.columns.index(step.column), -1)
        others = [c for c in step.columns if c != step.column]
        found: npt.NDArray[np.float64] = table[tuple(rows[:, c] for c in others)]
        return np.broadcast_to(found, (len(rows), self.sizes[step.column]))


@dataclass(frozen=True)
class FeasibleSet:
    """The configurations of a space that meet all relations."""

    names: tuple[str, ...]
    domains: tuple[tuple[Value, ...], ...]
    elimination: Elimination

    @property
    def count(self) -> int:
        """Return the number of configurations; exact below 2**53."""
        return self.elimination.count

    def sample(self, count: int, seed: int = 0) -> list[Config]:
        """Return independent uniform draws."""
        return [self._config(row) for row in self.elimination.sample(count, np.random.default_rng(seed))]

    def enumerate(self) -> Iterator[Config]:
        """Yield all configurations, the first knob slowest."""
        return (self._config(row) for row in self.elimination.rows())

    def _config(self, row: npt.NDArray[np.int16]) -> Config:
        return {n: d[int(i)] for n, d, i in zip(self.names, self.domains, row, strict=True)}


def feasible_set(domains: Mapping[str, Sequence[Value]], relations: Iterable[Relation]) -> FeasibleSet:
    """Return the set of configurations over `domains` that meet all `relations`.

    Raises:
        TooEntangled: a table would pass ten million cells.
    """
    names = tuple(domains)
    values = tuple(tuple(domains[name]) for name in names)
    factors = [relation_factor(names, values, relation) for relation in relations]
    return FeasibleSet(names, values, Elimination([len(domain) for domain in values], _merged(factors)))


def relation_factor(names: Sequence[str], domains: Sequence[Sequence[Value]], relation: Relation) -> Factor:
    """Return the table of one relation over its own knobs."""
    columns = tuple(column for column, name in enumerate(names) if name in scope_of(relation))
    sizes = [len(domains[column]) for column in columns]
    if math.prod(sizes) > MOST_CELLS:
        raise TooEntangled(f"{words(relation)} ties {len(columns)} knobs together: {math.prod(sizes):,} cells.")
    if not columns:
        return Factor((), np.array(1.0 if holds_columns(relation, {"": np.zeros(1)})[0] else 0.0))
    grid = np.meshgrid(*[np.arange(size) for size in sizes], indexing="ij")
    values = {names[c]: _column(domains[c])[places.ravel()] for c, places in zip(columns, grid, strict=True)}
    return Factor(columns, holds_columns(relation, values).reshape(sizes).astype(float))


def _merged(factors: Iterable[Factor]) -> list[Factor]:
    """Return one factor for all factors with the same knobs."""
    groups: dict[tuple[int, ...], list[npt.NDArray[np.float64]]] = {}
    for factor in factors:
        groups.setdefault(factor.columns, []).append(factor.table)
    return [Factor(columns, fold(np.multiply, tables)) for columns, tables in groups.items()]


def _column(domain: Sequence[Value]) -> npt.NDArray[np.object_]:
    if len({type(value) for value in domain}) == 1 and type(domain[0]) in (int, float):
        return np.array(domain)
    column = np.empty(len(domain), object)
    column[:] = domain
    return column
