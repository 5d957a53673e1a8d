"""The space to learn: ordered domains, configurations as rows of indices, knobs as numeric axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gluonmap.constraints.semantics import Unit, unit_of, view_of
from gluonmap.model.candidate import Config, Value
from gluonmap.model.relations import KnobTerm, View

Rows = npt.NDArray[np.int16]
"""Configurations by rows, knobs by columns: the index of each knob's value in its domain."""
Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]

LOG_OF_ZERO = -40.0
VIEWS = (View.PLAIN, View.BYTES, View.POWER, View.EVEN_PART)


@dataclass(frozen=True, eq=False)
class Axis:
    """A knob viewed as a positive number, for products and ratios."""

    column: int
    term: KnobTerm
    logs: Numbers
    """log2 of the number, by the index of the value."""
    unit: Unit
    zero: bool = False
    """One of the numbers is 0. Its logarithm, LOG_OF_ZERO, is so low that other factors of a product do not matter."""


@dataclass(frozen=True, eq=False)
class Space:
    """Names and ordered domains of the open knobs. Knobs with one value are `fixed` and take no part in learning."""

    names: tuple[str, ...]
    domains: tuple[tuple[Value, ...], ...]
    fixed: Config = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(domain) for domain in self.domains)

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    def encode(self, config: Mapping[str, Value]) -> tuple[int, ...]:
        """Return the row of a configuration.

        Raises:
            ValueError: a value is not in its domain.
        """
        return tuple(_place(domain, config[name]) for name, domain in zip(self.names, self.domains, strict=True))

    def decode(self, row: Iterable[int]) -> Config:
        """Return the configuration of a row, fixed knobs included."""
        values = {n: d[int(i)] for n, d, i in zip(self.names, self.domains, row, strict=True)}
        return {**self.fixed, **values}

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return the first number of each knob's values in a numbering of all values of all knobs."""
        return np.cumsum([0, *self.sizes])

    def all_rows(self) -> Rows:
        """Return every configuration; the first knob varies slowest."""
        grids = np.meshgrid(*[np.arange(size, dtype=np.int16) for size in self.sizes], indexing="ij")
        return np.stack([grid.ravel() for grid in grids], 1) if grids else np.zeros((1, 0), np.int16)

    def columns(self, rows: Rows) -> dict[str, npt.NDArray[np.object_]]:
        """Return the values by knob, for relations over columns; fixed knobs included."""
        tables = [_values(domain) for domain in self.domains]
        found = {name: tables[j][rows[:, j]] for j, name in enumerate(self.names)}
        for name, value in self.fixed.items():
            found[name] = np.repeat(_values((value,)), len(rows))
        return found

    def random_rows(self, count: int, random: np.random.Generator) -> Rows:
        return np.stack([random.integers(0, size, count) for size in self.sizes], 1).astype(np.int16)

    def numeric(self, column: int) -> bool:
        """Return whether the knob's values are numbers, whose order has a meaning."""
        domain = self.domains[column]
        return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in domain)

    def unit(self, column: int) -> Unit:
        return unit_of(self.names[column], self.domains[column])

    def axes(self) -> list[Axis]:
        """Return every view of each knob as a positive number, the plain one first."""
        found: list[Axis] = []
        for column, view in itertools.product(range(len(self.names)), VIEWS):
            numbers = [view_of(value, view) for value in self.domains[column]]
            if any(number is None or number < 0 for number in numbers):
                continue
            zero = 0 in numbers
            if zero and (self.unit(column) is Unit.FLAG or len(numbers) < 3):
                continue
            logs = np.array([math.log2(number) if number else LOG_OF_ZERO for number in numbers])
            known = [axis.logs for axis in found if axis.column == column]
            if len(set(logs.tolist())) > 1 and not any(np.array_equal(logs, other) for other in known):
                unit = Unit.TILE if view is View.BYTES else self.unit(column)
                found.append(Axis(column, KnobTerm(self.names[column], view), logs, unit, zero))
        return found


def space_of(domains: Mapping[str, Sequence[Value]]) -> Space:
    """Return the space of ordered domains. A knob with one value is fixed; if all are, the first stays open."""
    open_knobs = {name: tuple(values) for name, values in domains.items() if len(values) > 1}
    if not open_knobs:  # a space of one configuration
        open_knobs = {name: tuple(values) for name, values in list(domains.items())[:1]}
    fixed = {name: values[0] for name, values in domains.items() if name not in open_knobs}
    return Space(tuple(open_knobs), tuple(open_knobs.values()), fixed)


def _place(domain: Sequence[Value], value: Value) -> int:
    for position, member in enumerate(domain):
        if member == value and isinstance(member, bool) == isinstance(value, bool):
            return position
    raise ValueError(f"{value!r} is not one of {list(domain)}")


def _values(domain: Sequence[Value]) -> npt.NDArray[np.object_]:
    if len({type(value) for value in domain}) == 1 and type(domain[0]) in (int, float):
        return np.array(domain)
    table = np.empty(len(domain), object)
    table[:] = domain
    return table
