"""The reduced space: classes of configurations that are predicted to be one program, their number, and a selection.

After the compile, `one_per_launch` merges programs of equal digests that the rules of `equivalence` leave apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from gluonmap.constraints.counting import Elimination, Factor, Rows, TooEntangled, relation_factor
from gluonmap.constraints.semantics import holds, scope_of
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Inertness, ValueClasses, Verified
from gluonmap.model.relations import Relation
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.diverse_subset import diverse_subset
from gluonmap.query.equivalence import Mask, MergingStep, merging_steps, place_of, shape_of, table_over
from gluonmap.query.feasibility import domains_of, execution_constraints

MOST_ROWS = 1_000_000
"""Number of feasible configurations that are enumerated if the tables of their programs would grow too large."""
POOL = 16_384
"""Number of programs drawn, if there are more, to select representatives from."""


def reduced_space(
    domains: Mapping[str, Sequence[Value]],
    baseline: Config,
    relations: Iterable[Relation] = (),
    inertness: Iterable[Inertness] = (),
    value_classes: Iterable[ValueClasses] = (),
) -> ReducedSpace:
    """Return the space of the configurations over `domains` that meet all `relations`, merged by the rules.

    `baseline` has a value for every knob. A knob without a rule is assumed to matter everywhere. Relations that read
    something else than these knobs are ignored, and so are rules with such a condition.
    """
    names, values = tuple(domains), tuple(tuple(domain) for domain in domains.values())
    start = tuple(place_of(domain, baseline[name]) or 0 for name, domain in zip(names, values, strict=True))
    steps = merging_steps(domains, baseline, inertness, value_classes)
    known = tuple(relation for relation in relations if scope_of(relation) <= set(names))
    return ReducedSpace(names, values, start, known, steps)


def reduced_space_of(space: SpaceMap) -> ReducedSpace:
    """Return the reduced space of a map's joint part; without one, only executions rule configurations out."""
    domains = domains_of(space)
    executed = [constraint.relation for constraint in execution_constraints(space)]
    if space.joint is None:
        return reduced_space(domains, space.baseline, executed)
    relations = [*(constraint.relation for constraint in space.joint.constraints), *executed]
    return reduced_space(domains, space.baseline, relations, space.joint.inertness, space.joint.value_classes)


def one_per_launch(entries: Iterable[Verified]) -> list[Verified]:
    """Return the first entry of each program and launch. Its `same` is the sum over the merged entries."""
    found: dict[object, Verified] = {}
    for entry in entries:
        launch = (entry.digest, entry.grid, entry.arguments)
        first = found.get(launch)
        found[launch] = entry if first is None else msgspec.structs.replace(first, same=first.same + entry.same)
    return list(found.values())


@dataclass(frozen=True)
class Undo:
    """The inverse of a merging step."""

    step: MergingStep
    columns: tuple[int, ...]
    """Columns of the axes of `allowed`."""
    allowed: Mask
    """Values that were allowed before the step."""


@dataclass(frozen=True)
class Image:
    """The canonical forms of all feasible configurations, and the inverse steps."""

    forms: Elimination
    factors: tuple[Factor, ...]
    undo: tuple[Undo, ...]


@dataclass(frozen=True)
class ReducedSpace:
    """The feasible configurations of a space. Those with the same canonical form are predicted to be one program."""

    names: tuple[str, ...]
    domains: tuple[tuple[Value, ...], ...]
    start: tuple[int, ...]
    """Places of the baseline's values."""
    relations: tuple[Relation, ...]
    steps: tuple[MergingStep, ...]

    def canonical(self, config: Config) -> Config:
        """Return the canonical form: equal for configurations that are predicted to be one program and launch.

        It need not be feasible itself. A value outside its domain is kept, and no knob is replaced whose rules read it.
        """
        places = [place_of(domain, config[name]) for name, domain in zip(self.names, self.domains, strict=True)]
        found = dict(config)
        for step in self.steps:
            read = [place for c in step.columns if (place := places[c]) is not None]
            if len(read) == len(step.columns):
                place = int(step.table[tuple(read)])
                places[step.column] = place
                found[self.names[step.column]] = self.domains[step.column][place]
        return found

    @cached_property
    def feasible_count(self) -> int | None:
        """Return the number of configurations that meet all relations, exact below 2**53; None: too entangled."""
        return self._feasible.count if self._feasible else None

    @cached_property
    def program_count(self) -> int | None:
        """Return the number of distinct canonical forms of feasible configurations, exact below 2**53.

        The relations' tables are carried through the merging steps, one knob at a time, and then summed. If a table
        would grow too large, up to a million feasible configurations are enumerated instead. None: neither is possible.
        """
        if self._image:
            return self._image.forms.count
        return None if self._walked is None else len(self._firsts(self._canonical_rows(self._walked)))

    def representatives(self, limit: int, *, seed: int = 0, known: Iterable[Config] = ()) -> list[Config]:
        """Return at most `limit` feasible configurations, no two of one canonical form, the baseline first.

        If there are no more than `limit` programs and `program_count` is not None, there is one for each program.
        Else they are a diverse subset (see `diverse_subset`), of a random draw if the programs are too many to list.
        `known` configurations, which were compiled already, represent their program if they are feasible, and win
        ties. In this order, each prefix of the list is diverse.
        """
        forms, members = self._pool(limit, np.random.default_rng(seed), known)
        return [self._config(members[place]) for place in diverse_subset(forms, self.domains, limit)]

    def sample(self, count: int, *, seed: int = 0) -> list[Config]:
        """Return independent uniform draws of feasible configurations; empty if there are none.

        Raises:
            TooEntangled: they cannot be counted, so they cannot be drawn uniformly.
        """
        return [self._config(row) for row in self._countable.sample(count, np.random.default_rng(seed))]

    def listed(self) -> Iterator[Config]:
        """Yield all feasible configurations, the first knob slowest; at most a million are in memory at once.

        Raises:
            TooEntangled: they cannot be counted.
        """
        return self._listed(0, self._countable, self._factors or ())

    def _listed(self, column: int, whole: Elimination, factors: Sequence[Factor]) -> Iterator[Config]:
        if whole.count <= MOST_ROWS:
            yield from (self._config(row) for row in whole.rows())
            return
        for place in range(len(self.domains[column])):
            fewer = [*factors, self._only(column, place)]
            if part := self._eliminated(fewer):  # it sums one knob less, so it is never more entangled than the whole
                yield from self._listed(column + 1, part, fewer)

    # -- the feasible set and its image ----------------------------------------------------------------------------

    @cached_property
    def _tables(self) -> tuple[Factor | None, ...]:
        """Return the table of each relation; None: the relation alone reads too many knobs."""
        return tuple(self._table(relation) for relation in self.relations)

    def _table(self, relation: Relation) -> Factor | None:
        try:
            return relation_factor(self.names, self.domains, relation)
        except TooEntangled:
            return None

    @cached_property
    def _factors(self) -> tuple[Factor, ...] | None:
        found = tuple(table for table in self._tables if table)
        return found if len(found) == len(self._tables) else None

    @cached_property
    def _feasible(self) -> Elimination | None:
        return None if self._factors is None else self._eliminated(self._factors)

    @property
    def _countable(self) -> Elimination:
        if self._feasible is None:
            raise TooEntangled(
                "the constraints tie too many knobs together. Restrict some of their values with --restrict."
            )
        return self._feasible

    @cached_property
    def _walked(self) -> Rows | None:
        """Return all feasible configurations; None: they cannot be counted, or are too many."""
        found = self._feasible
        return found.rows() if found and found.count <= MOST_ROWS else None

    @cached_property
    def _image(self) -> Image | None:
        """Return the feasible set carried through all steps; None: a table would grow too large."""
        if self._factors is None:
            return None
        factors, undo = list(self._factors), []
        try:
            for step in self.steps:
                mine = [factor for factor in factors if step.column in factor.columns]
                columns = tuple(sorted({*step.columns, *(c for factor in mine for c in factor.columns)}))
                allowed = np.ones(shape_of(self.domains, columns), bool)
                for factor in mine:
                    allowed &= table_over(factor, columns) > 0
                undo.append(Undo(step, columns, allowed))
                factors = [factor for factor in factors if step.column not in factor.columns]
                factors.append(Factor(columns, _replaced(step, columns, allowed)))
        except TooEntangled:
            return None
        forms = self._eliminated(factors)
        return Image(forms, tuple(factors), tuple(undo)) if forms else None

    def _eliminated(self, factors: Iterable[Factor]) -> Elimination | None:
        try:
            return Elimination([len(domain) for domain in self.domains], factors)
        except TooEntangled:
            return None

    # -- selection -------------------------------------------------------------------------------------------------

    def _pool(self, limit: int, random: np.random.Generator, known: Iterable[Config]) -> tuple[Rows, Rows]:
        """Return canonical forms, each once, with a feasible configuration of each; baseline and known ones first."""
        most = max(POOL, limit)
        if self._image:
            forms = self._drawn(self._image.forms, self._image.factors, most, random)
            members = self._members(self._image, forms)
        else:
            members = self._some_feasible(most, random)
            forms = self._canonical_rows(members)
        first = np.array([self.start, *self._rows(known)], np.int16)
        first = first[self._allowed(first)]
        forms, members = np.concatenate([self._canonical_rows(first), forms]), np.concatenate([first, members])
        places = self._firsts(forms)
        return forms[places], members[places]

    def _some_feasible(self, most: int, random: np.random.Generator) -> Rows:
        if self._walked is not None:
            return self._walked
        if self._feasible and self._factors is not None:
            return self._drawn(self._feasible, self._factors, most, random)
        # Feasible configurations cannot be drawn directly, so the allowed ones of many uniform draws are kept.
        sizes = [len(domain) for domain in self.domains]
        rows = random.integers(0, sizes, (4 * most, len(sizes)), np.int16)
        return rows[self._allowed(rows)]

    def _drawn(self, whole: Elimination, factors: Sequence[Factor], most: int, random: np.random.Generator) -> Rows:
        """Return all rows, if there are no more than `most`; else a draw that contains each feasible value."""
        if whole.count <= most:
            return whole.rows()
        drawn = [whole.sample(most, random)]
        for column, domain in enumerate(self.domains):
            for place in sorted({*range(len(domain))} - {*drawn[0][:, column].tolist()}):
                found = self._eliminated([*factors, self._only(column, place)])
                drawn += [found.sample(1, random)] if found else []
        return np.concatenate(drawn)

    def _only(self, column: int, place: int) -> Factor:
        return Factor((column,), (np.arange(len(self.domains[column])) == place).astype(float))

    def _members(self, image: Image, forms: Rows) -> Rows:
        """Return a feasible configuration for each form: the form itself if it is feasible."""
        rows = forms.copy()
        for undo in reversed(image.undo):
            step = undo.step
            fits = _by_row(step.table, step.columns, step.column, rows) == rows[:, [step.column]]
            fits = fits & _by_row(undo.allowed, undo.columns, step.column, rows)
            order = np.array(step.order, np.int16)
            rows[:, step.column] = order[fits[:, order].argmax(1)]
        return rows

    # -- rows: the place of each knob's value in its domain ----------------------------------------------------------

    def _canonical_rows(self, rows: Rows) -> Rows:
        found = rows.copy()
        for step in self.steps:
            found[:, step.column] = step.table[tuple(found[:, c] for c in step.columns)]
        return found

    def _allowed(self, rows: Rows) -> Mask:
        allowed = np.ones(len(rows), bool)
        for relation, table in zip(self.relations, self._tables, strict=True):
            if table is not None:
                allowed &= table.table[tuple(rows[:, c] for c in table.columns)] > 0
            else:
                allowed &= np.array([holds(relation, self._config(row)) for row in rows], bool)
        return allowed

    def _firsts(self, rows: Rows) -> npt.NDArray[np.intp]:
        """Return the places of the rows that no earlier row equals."""
        sizes = [len(domain) for domain in self.domains]
        if math.prod(sizes) < 2**62:
            codes = np.zeros(len(rows), np.int64)
            for column, size in enumerate(sizes):
                codes = codes * size + rows[:, column]
            return np.sort(np.unique(codes, return_index=True)[1])
        return np.sort(np.unique(rows, axis=0, return_index=True)[1])

    def _rows(self, configs: Iterable[Config]) -> list[list[int]]:
        """Return the rows of the configurations that lie in the space."""
        pairs = list(zip(self.names, self.domains, strict=True))
        rows = ([place_of(domain, config.get(name, ...)) for name, domain in pairs] for config in configs)
        return [[place for place in row if place is not None] for row in rows if None not in row]

    def _config(self, row: Rows) -> Config:
        return {n: d[int(i)] for n, d, i in zip(self.names, self.domains, row, strict=True)}


def _replaced(step: MergingStep, columns: Sequence[int], allowed: Mask) -> npt.NDArray[np.float64]:
    """Return the allowed values after a step: a canonical value is allowed if any value of its class is."""
    axis = columns.index(step.column)
    sizes = dict(zip(step.columns, step.table.shape, strict=True))
    canonical = np.broadcast_to(step.table.reshape([sizes.get(c, 1) for c in columns]), allowed.shape)
    values = [(allowed & (canonical == place)).any(axis) for place in range(allowed.shape[axis])]
    return np.stack(values, axis).astype(float)


def _by_row(table: npt.NDArray[Any], columns: Sequence[int], column: int, rows: Rows) -> npt.NDArray[Any]:
    """Return for each row the table along one knob, with the row's values of the other knobs."""
    along = np.moveaxis(table, columns.index(column), -1)
    found = along[tuple(rows[:, c] for c in columns if c != column)]
    return np.broadcast_to(found, (len(rows), along.shape[-1]))
