"""Predicates: conditions over one or two knobs with every threshold. Conjunctions consist of them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from gluonmap.acquire.atoms import Literal, Part, Threshold
from gluonmap.acquire.forms import Form, Forms, compare
from gluonmap.acquire.space import Mask, Rows, Space
from gluonmap.model.relations import Op

MOST_PREDICATES = 2_200
"""Most predicates of a space. Pairs are searched: 2,200 predicates make 2.4 million pairs."""


@dataclass(frozen=True)
class Predicate:
    """A condition and its truth table over the domains of its columns."""

    part: Part
    columns: tuple[int, ...]
    table: Mask
    bits: float
    literal: bool


class Predicates:
    """All predicates of a space, evaluated together. Of those with the same truth table the shortest is kept."""

    def __init__(self, space: Space, forms: Forms) -> None:
        self.space = space
        found = sorted([*self._literals(), *self._thresholds(forms)], key=lambda item: item.bits)
        self.items = _distinct(found)[:MOST_PREDICATES]
        self.bits = np.array([item.bits for item in self.items])
        self.literal = np.array([item.literal for item in self.items], bool)
        self._groups: dict[tuple[int, ...], list[int]] = {}
        for index, item in enumerate(self.items):
            self._groups.setdefault(item.columns, []).append(index)
        self._tables = {c: np.stack([self.items[i].table for i in found]) for c, found in self._groups.items()}

    def __len__(self) -> int:
        return len(self.items)

    def truth(self, rows: Rows) -> Mask:
        """Return the truth of all predicates: predicates by rows, configurations by columns."""
        result = np.zeros((len(self.items), len(rows)), bool)
        for columns, indices in self._groups.items():
            table = np.moveaxis(self._tables[columns], 0, -1)
            result[indices] = table[tuple(rows[:, column] for column in columns)].T
        return result

    def truth_of(self, index: int, rows: Rows) -> Mask:
        item = self.items[index]
        found: Mask = item.table[tuple(rows[:, column] for column in item.columns)]
        return found

    def _literals(self) -> list[Predicate]:
        found = []
        many = math.log2(max(2, len(self.space.names)))
        for column, size in enumerate(self.space.sizes):
            places = np.arange(size)
            ordered = self.space.numeric(column) and size > 2
            base = many + math.log2(size) + 0.6
            kinds = [(Op.EQUAL, p, base) for p in range(size)] + [(Op.UNEQUAL, p, base + 1.2) for p in range(size)]
            if ordered:
                kinds += [(Op.AT_LEAST, p, base + 0.3) for p in range(1, size)]
                kinds += [(Op.AT_MOST, p, base + 0.3) for p in range(size - 1)]
            for op, place, bits in kinds:
                table = compare(places.astype(float), op, place)
                found.append(Predicate(Literal(self.space, column, op, place), (column,), table, bits, True))
        return found

    def _thresholds(self, forms: Forms) -> list[Predicate]:
        found: list[Predicate] = []
        for index, form in enumerate(forms.forms):
            columns = tuple(sorted(forms.columns(index)))
            if self._is_simple(form, columns):
                found += self._of_form(forms, index, columns)
        return found

    @staticmethod
    def _is_simple(form: Form, columns: tuple[int, ...]) -> bool:
        if form.kind == "log":
            return len(columns) <= 2 and all(abs(power) == 1 for _, power in form.scale)
        return form.kind == "remainder" and len(columns) == 2

    def _of_form(self, forms: Forms, index: int, columns: tuple[int, ...]) -> list[Predicate]:
        grid = np.array(list(itertools.product(*[range(self.space.sizes[c]) for c in columns])), np.int16)
        rows = np.zeros((len(grid), len(self.space.names)), np.int16)
        rows[:, list(columns)] = grid
        values = forms.values_of(index, rows)
        levels = np.unique(values)
        shape = tuple(self.space.sizes[c] for c in columns)
        ratio = any(power < 0 for _, power in forms.forms[index].scale) or len(columns) == 1
        found = []
        for op in (Op.AT_MOST, Op.AT_LEAST, Op.EQUAL, Op.UNEQUAL):
            if op in (Op.EQUAL, Op.UNEQUAL) and (not ratio or forms.forms[index].kind == "remainder"):
                continue
            for place, level in enumerate(levels):
                table = compare(values, op, level)
                if table.all() or not table.any():
                    continue
                bits = forms.bits[index] + _level_bits(level, op)
                passing = levels[place + 1] if op is Op.AT_MOST else levels[place - 1] if op is Op.AT_LEAST else level
                part = Threshold(forms, index, op, float(level), float(passing))
                found.append(Predicate(part, columns, table.reshape(shape), bits, False))
        return found


def _level_bits(level: float, op: Op) -> float:
    """Return the bits of a threshold. A ratio compared with 1 compares two knobs, which is the most natural."""
    return (-1.0 if abs(level) < 1e-6 else 0.0) + (0.5 if op in (Op.EQUAL, Op.UNEQUAL) else 0.0)


def _distinct(items: list[Predicate]) -> list[Predicate]:
    seen = set()
    kept = []
    for item in items:
        key = (item.columns, item.table.tobytes())
        if key not in seen and item.table.any() and not item.table.all() and not _fewer_columns(item):
            seen.add(key)
            kept.append(item)
    return kept


def _fewer_columns(item: Predicate) -> bool:
    """Return whether a condition on two knobs depends on only one of them."""
    if len(item.columns) < 2:
        return False
    table: Mask = item.table
    return bool((table == table[:1]).all() or (table == table[:, :1]).all())
