"""The reduced space: which configurations are predicted to be one program, how many there are, which to compile.

Configurations that the rules of `equivalence` leave apart are merged by equal digests in the end (`one_per_launch`).
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
"""Feasible configurations that are walked where the tables of their programs would grow too large."""
POOL = 16_384
"""Programs that a choice is made from, where there are more."""


def reduced_space(
    domains: Mapping[str, Sequence[Value]],
    baseline: Config,
    relations: Iterable[Relation] = (),
    inertness: Iterable[Inertness] = (),
    value_classes: Iterable[ValueClasses] = (),
) -> ReducedSpace:
    """Return the configurations over `domains` that meet all `relations`, as programs: merged by the rules.

    `baseline` has a value for every knob. A knob that no rule speaks of is taken to matter everywhere. A relation that
    reads something else than these knobs says nothing of them: it is left out, and so is a rule with such a condition.
    """
    names, values = tuple(domains), tuple(tuple(domain) for domain in domains.values())
    start = tuple(place_of(domain, baseline[name]) or 0 for name, domain in zip(names, values, strict=True))
    steps = merging_steps(domains, baseline, inertness, value_classes)
    known = tuple(relation for relation in relations if scope_of(relation) <= set(names))
    return ReducedSpace(names, values, start, known, steps)


def reduced_space_of(space: SpaceMap) -> ReducedSpace:
    """Return the reduced space that a map's joint part describes; without one, nothing is ruled out or merged."""
    domains = domains_of(space)
    executed = [constraint.relation for constraint in execution_constraints(space)]
    if space.joint is None:
        return reduced_space(domains, space.baseline, executed)
    relations = [*(constraint.relation for constraint in space.joint.constraints), *executed]
    return reduced_space(domains, space.baseline, relations, space.joint.inertness, space.joint.value_classes)


def one_per_launch(entries: Iterable[Verified]) -> list[Verified]:
    """Return one entry for each program and launch, the first that has it; `same` counts what it stands for."""
    found: dict[object, Verified] = {}
    for entry in entries:
        launch = (entry.digest, entry.grid, entry.arguments)
        first = found.get(launch)
        found[launch] = entry if first is None else msgspec.structs.replace(first, same=first.same + entry.same)
    return list(found.values())


@dataclass(frozen=True)
class Undo:
    """The way back from a replaced knob: what was allowed before the step."""

    step: MergingStep
    columns: tuple[int, ...]
    allowed: Mask


@dataclass(frozen=True)
class Image:
    """The canonical forms of all feasible configurations, and the way back to these."""

    forms: Elimination
    factors: tuple[Factor, ...]
    undo: tuple[Undo, ...]


@dataclass(frozen=True)
class ReducedSpace:
    """The feasible configurations of a space, where those with one canonical form are predicted to be one program."""

    names: tuple[str, ...]
    domains: tuple[tuple[Value, ...], ...]
    start: tuple[int, ...]
    """Places of the baseline's values."""
    relations: tuple[Relation, ...]
    steps: tuple[MergingStep, ...]

    def canonical(self, config: Config) -> Config:
        """The configuration that stands for this one and for all that are predicted to be its program and launch.

        It need not be feasible itself. A value that is not in its domain stands for itself, and nothing is replaced
        on its account.
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
        """Configurations that meet all relations, exact below 2**53; None: too entangled to count."""
        return self._feasible.count if self._feasible else None

    @cached_property
    def program_count(self) -> int | None:
        """Distinct canonical forms of feasible configurations, exact below 2**53.

        A form counts if any configuration that it stands for is feasible. The relations' tables are carried through
        the steps, one knob at a time, and then summed. Where one would grow too large, the feasible configurations
        are walked, if they are no more than a million; None: neither can be done.
        """
        if self._image:
            return self._image.forms.count
        return None if self._walked is None else len(self._firsts(self._canonical_rows(self._walked)))

    def representatives(self, limit: int, *, seed: int = 0, known: Iterable[Config] = ()) -> list[Config]:
        """At most `limit` feasible configurations, no two of one canonical form, the baseline first.

        One for each program, where there are no more than `limit` and `program_count` is no None. Else each value of
        each knob that is left, as far as `limit` goes, then whatever lies farthest from the chosen; where there are
        too many programs to list, a draw of them is chosen from. `known` configurations, compiled already, stand
        for their program if they are feasible, and win ties. Ordered so that each beginning of the list is spread.
        """
        forms, members = self._pool(limit, np.random.default_rng(seed), known)
        return [self._config(members[place]) for place in diverse_subset(forms, self.domains, limit)]

    def sample(self, count: int, *, seed: int = 0) -> list[Config]:
        """Independent uniform draws of feasible configurations; empty where none is.

        Raises:
            TooEntangled: they cannot be counted, and so not drawn evenly.
        """
        return [self._config(row) for row in self._countable.sample(count, np.random.default_rng(seed))]

    def listed(self) -> Iterator[Config]:
        """All feasible configurations, first knob slowest; no more than a million are held at once.

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
            if part := self._eliminated(fewer):  # one knob less to sum: never more entangled than the whole
                yield from self._listed(column + 1, part, fewer)

    # -- the feasible set and its image ----------------------------------------------------------------------------

    @cached_property
    def _tables(self) -> tuple[Factor | None, ...]:
        """By relation; None: it alone reads too many knobs."""
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
        """All feasible configurations; None: they cannot be counted, or are too many."""
        found = self._feasible
        return found.rows() if found and found.count <= MOST_ROWS else None

    @cached_property
    def _image(self) -> Image | None:
        """The feasible set carried through all steps; None: a table would grow too large."""
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

    # -- choosing --------------------------------------------------------------------------------------------------

    def _pool(self, limit: int, random: np.random.Generator, known: Iterable[Config]) -> tuple[Rows, Rows]:
        """Canonical forms, each once, and a feasible configuration of each; the baseline and known ones first."""
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
        # No draw can be aimed: what is allowed of many blind ones.
        sizes = [len(domain) for domain in self.domains]
        rows = random.integers(0, sizes, (4 * most, len(sizes)), np.int16)
        return rows[self._allowed(rows)]

    def _drawn(self, whole: Elimination, factors: Sequence[Factor], most: int, random: np.random.Generator) -> Rows:
        """All rows, if there are no more than `most`; else a draw, in which each value that can be had is."""
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
        """A feasible configuration for each form: the form itself, where it is feasible."""
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
        """Places of the rows that no earlier row equals."""
        sizes = [len(domain) for domain in self.domains]
        if math.prod(sizes) < 2**62:
            codes = np.zeros(len(rows), np.int64)
            for column, size in enumerate(sizes):
                codes = codes * size + rows[:, column]
            return np.sort(np.unique(codes, return_index=True)[1])
        return np.sort(np.unique(rows, axis=0, return_index=True)[1])

    def _rows(self, configs: Iterable[Config]) -> list[list[int]]:
        """Those that lie in the space."""
        pairs = list(zip(self.names, self.domains, strict=True))
        rows = ([place_of(domain, config.get(name, ...)) for name, domain in pairs] for config in configs)
        return [[place for place in row if place is not None] for row in rows if None not in row]

    def _config(self, row: Rows) -> Config:
        return {n: d[int(i)] for n, d, i in zip(self.names, self.domains, row, strict=True)}


def _replaced(step: MergingStep, columns: Sequence[int], allowed: Mask) -> npt.NDArray[np.float64]:
    """What comes out of a step: a value, where any that it stands for is allowed."""
    axis = columns.index(step.column)
    sizes = dict(zip(step.columns, step.table.shape, strict=True))
    stands = np.broadcast_to(step.table.reshape([sizes.get(c, 1) for c in columns]), allowed.shape)
    values = [(allowed & (stands == place)).any(axis) for place in range(allowed.shape[axis])]
    return np.stack(values, axis).astype(float)


def _by_row(table: npt.NDArray[Any], columns: Sequence[int], column: int, rows: Rows) -> npt.NDArray[Any]:
    """For each row the table along one knob, the others as the row has them."""
    along = np.moveaxis(table, columns.index(column), -1)
    found = along[tuple(rows[:, c] for c in columns if c != column)]
    return np.broadcast_to(found, (len(rows), along.shape[-1]))
