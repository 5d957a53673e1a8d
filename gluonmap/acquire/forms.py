"""Numeric forms for thresholds: products, ratios, sums, extremes and remainders of knobs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gluonmap.acquire.space import Axis, Mask, Numbers, Rows, Space
from gluonmap.constraints.semantics import Unit, arithmetic_bits
from gluonmap.model.candidate import Value
from gluonmap.model.relations import (
    Bound,
    Compare,
    KnobTerm,
    Max,
    Member,
    Min,
    Number,
    Op,
    Product,
    Relation,
    Remainder,
    Sum,
    Term,
    View,
)

MOST_FORMS = 24_000
"""Most forms of a space, the most natural first. The values of one form over 300 rows take 2.4 kB."""

MOST_CONDITIONAL = 2_500
MOST_AXES = {4: 12, 5: 7}
"""Number of factors → most axes of a space in which products of so many factors are built."""

INFINITE = 25.0
"""Logarithms beyond this come from a knob with the value 0."""

Powers = tuple[tuple[int, int], ...]
"""Axis and exponent, for each factor of a monomial."""


@dataclass(frozen=True)
class Form:
    """A function of the configuration with a numeric value. A threshold on it is a candidate for a constraint.

    Kinds: "log" is log2 of the product `scale`. "sum", "max" and "min" are log2 of `scale` times the sum or extreme of
    the products `parts`. "order" is the index of the value in its domain. "remainder" is 1 where `parts[1]` does not
    divide `parts[0]`, else 0.
    """

    kind: str
    scale: Powers
    parts: tuple[Powers, ...] = ()
    bits: float = 0.0
    column: int = -1

    def axes(self) -> frozenset[int]:
        return frozenset(axis for powers in (self.scale, *self.parts) for axis, _ in powers)


class Forms:
    """All forms of a space, evaluated together."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.axes = space.axes()
        self._plain = [i for i, axis in enumerate(self.axes) if axis.column not in {a.column for a in self.axes[:i]}]
        main = [i for i, axis in enumerate(self.axes) if axis.term.view in (View.PLAIN, View.BYTES) and not axis.zero]
        self._main = frozenset(main)
        """Axes for long forms: plain numbers without 0."""
        found = sorted(self._all(), key=lambda form: form.bits)
        self.forms = found[:MOST_FORMS]
        self.bits = np.array([form.bits for form in self.forms])
        simple = np.array([len(form.axes()) <= 4 for form in self.forms], bool)
        self.conditional = np.flatnonzero(simple)[:MOST_CONDITIONAL]
        """Forms that may also appear under a condition."""
        self._groups = self._grouped()

    def __len__(self) -> int:
        return len(self.forms)

    def columns(self, index: int) -> frozenset[int]:
        """Return the columns of the knobs that a form reads."""
        form = self.forms[index]
        return (
            frozenset((form.column,)) if form.kind == "order" else frozenset(self.axes[a].column for a in form.axes())
        )

    # ---- values ----------------------------------------------------------------------------------------------------

    def values(self, rows: Rows) -> Numbers:
        """Return the values of all forms: forms by rows, configurations by columns."""
        result = np.empty((len(self.forms), len(rows)))
        logs = self._logs(rows)
        for kind, (indices, matrices) in self._groups.items():
            result[indices] = self._evaluate(kind, matrices, logs, rows, indices)
        return np.round(result, 5)

    def values_of(self, index: int, rows: Rows) -> Numbers:
        """Return the values of one form."""
        form = self.forms[index]
        matrices = tuple(m[None] for m in self._matrices(form))
        found: Numbers = self._evaluate(form.kind, matrices, self._logs(rows), rows, np.array([index]))[0]
        return np.round(found, 5)

    def _logs(self, rows: Rows) -> Numbers:
        if not self.axes:
            return np.zeros((0, len(rows)))
        return np.stack([axis.logs[rows[:, axis.column]] for axis in self.axes])

    def _evaluate(
        self, kind: str, matrices: tuple[Numbers, ...], logs: Numbers, rows: Rows, indices: npt.NDArray[np.int64]
    ) -> Numbers:
        if kind == "order":
            return rows[:, [self.forms[i].column for i in indices]].T.astype(float)
        scale: Numbers = matrices[0] @ logs
        if kind == "log":
            return scale
        parts = [matrix @ logs for matrix in matrices[1:]]
        if kind == "remainder":
            dividend, divisor = np.round(np.exp2(parts[0])), np.round(np.exp2(parts[1]))
            fails: Mask = np.remainder(dividend, divisor) > 0
            return fails.astype(np.float64)
        if kind == "max":
            return scale + np.maximum(parts[0], parts[1])
        if kind == "min":
            return scale + np.minimum(parts[0], parts[1])
        total: Numbers = np.exp2(parts[0])
        for part in parts[1:]:
            total = total + np.exp2(part)
        found: Numbers = scale + np.log2(total)
        return found

    def _matrices(self, form: Form) -> tuple[Numbers, ...]:
        return tuple(self._matrix(powers) for powers in (form.scale, *form.parts))

    def _matrix(self, powers: Powers) -> Numbers:
        vector = np.zeros(len(self.axes))
        for axis, power in powers:
            vector[axis] += power
        return vector

    def _grouped(self) -> dict[str, tuple[npt.NDArray[np.int64], tuple[Numbers, ...]]]:
        groups: dict[str, list[int]] = {}
        for index, form in enumerate(self.forms):
            name = form.kind if len(form.parts) < 3 else f"{form.kind} of 3"
            groups.setdefault(name, []).append(index)
        found = {}
        for name, indices in groups.items():
            stacked = [self._matrices(self.forms[i]) for i in indices]
            matrices = tuple(np.stack(column) for column in zip(*stacked, strict=True))
            found[name] = (np.array(indices), matrices)
        return found

    # ---- which forms there are -------------------------------------------------------------------------------------

    def _all(self) -> list[Form]:
        return [
            *self._orders(),
            *self._products(),
            *self._scaled_sums(),
            *self._plain_sums(),
            *self._extremes(),
            *self._remainders(),
        ]

    def _priced(self, kind: str, scale: Powers, parts: tuple[Powers, ...], bits: float) -> Form:
        form = Form(kind, scale, parts)
        used = sorted(form.axes())
        units = [self.axes[axis].unit for axis in used]
        extra = arithmetic_bits(units) if len(used) > 1 else 0.0
        views = sum(1.5 for axis in used if self.axes[axis].term.view and axis not in self._plain)
        views += sum(1.0 for axis in used if self.axes[axis].zero)
        choose = math.log2(math.comb(max(2, len(self.axes)), min(len(used), len(self.axes)))) if used else 0
        return Form(kind, scale, parts, bits + extra + views + choose)

    def _may_join(self, axes: tuple[int, ...]) -> bool:
        """Return whether a product of these axes is worth a form."""
        others = [self.axes[axis] for axis in axes if axis not in self._main]
        if len(axes) <= 3 or not others:
            return True
        plain = all(axis.term.view in (View.PLAIN, View.BYTES) for axis in others)
        return len(axes) == 4 and plain and len(self.axes) <= MOST_AXES[4]

    def _distinct(self, axes: tuple[int, ...]) -> bool:
        one_zero = sum(self.axes[axis].zero for axis in axes) <= 1
        return one_zero and len({self.axes[axis].column for axis in axes}) == len(axes)

    def _orders(self) -> list[Form]:
        space, many = self.space, math.log2(max(2, len(self.space.names)))
        return [
            Form("order", (), (), many + 3.0, column)
            for column in range(len(space.names))
            if space.numeric(column) or len(space.domains[column]) == 2
        ]

    def _products(self) -> list[Form]:
        found = [
            self._priced("log", ((i, 1),), (), 3.5)
            for i, axis in enumerate(self.axes)
            if axis.term.view or i not in self._plain
        ]
        base = {2: 5.0, 3: 6.0, 4: 7.5, 5: 10.5}
        for count in (2, 3, 4, 5):
            if len(self._main) > MOST_AXES.get(count, len(self._main)):
                continue
            for axes in itertools.combinations(range(len(self.axes)), count):
                if not self._distinct(axes) or not self._may_join(axes):
                    continue
                for signs in itertools.product((1, -1), repeat=count - 1):
                    powers = ((axes[0], 1), *zip(axes[1:], signs, strict=True))
                    found.append(self._priced("log", powers, (), base[count]))
        for i, j in itertools.permutations(range(len(self.axes)), 2):
            if self._distinct((i, j)):
                found += [self._priced("log", ((i, 2), (j, sign)), (), 7.5) for sign in (1, -1)]
        return found

    def _factors(self, without: tuple[int, ...], most: int) -> list[Powers]:
        """Return scale factors of up to `most` axes, () included.

        One axis is in the numerator or the denominator; of two axes at most one is in the denominator; three axes are
        all in the numerator.
        """
        rest = [axis for axis in sorted(self._main) if self._distinct((*without, axis))]
        found: list[Powers] = [()]
        if most >= 1:
            found += [((axis, sign),) for axis in rest for sign in (1, -1)]
        if most >= 2:
            for i, j in itertools.combinations(rest, 2):
                if self._distinct((i, j)):
                    found += [((i, 1), (j, sign)) for sign in (1, -1)] + [((i, -1), (j, 1))]
        if most >= 3:
            found += [tuple((a, 1) for a in t) for t in itertools.combinations(rest, 3) if self._distinct(t)]
        return found

    def _scaled_sums(self) -> list[Form]:
        """Return the forms (a + b) * c / d."""
        tiles = [i for i in sorted(self._main) if self.axes[i].unit is not Unit.FLAG]
        most = 3 if len(tiles) <= 7 else 2 if len(tiles) <= 10 else 1
        return [
            self._priced("sum", scale, (((i, 1),), ((j, 1),)), 6.5 + len(scale) * 0.5)
            for i, j in itertools.combinations(tiles, 2)
            if self._distinct((i, j))
            for scale in self._factors((i, j), most)
        ]

    def _plain_sums(self) -> list[Form]:
        """Return the forms a + b + c, a + b * c, a + b + c * d and a * b + c * d."""
        axes = range(len(self.axes))
        found = []
        for i, j, k in itertools.combinations(axes, 3):
            if self._distinct((i, j, k)):
                found.append(self._priced("sum", (), (((i, 1),), ((j, 1),), ((k, 1),)), 8.0))
        for i in axes:
            for j, k in itertools.combinations(axes, 2):
                if self._distinct((i, j, k)):
                    found.append(self._priced("sum", (), (((i, 1),), ((j, 1), (k, 1))), 8.0))
        if len(self.axes) <= 8:
            for i, j in itertools.combinations(axes, 2):
                for k, m in itertools.combinations(axes, 2):
                    if self._distinct((i, j, k, m)):
                        found.append(self._priced("sum", (), (((i, 1),), ((j, 1),), ((k, 1), (m, 1))), 9.0))
                        if i < k:
                            found.append(self._priced("sum", (), (((i, 1), (j, 1)), ((k, 1), (m, 1))), 9.0))
        return found

    def _extremes(self) -> list[Form]:
        """Return the forms max(a, b) and min(a, b), times up to two factors."""
        most = 2 if len(self.axes) <= 7 else 1
        return [
            self._priced(kind, scale, (((i, 1),), ((j, 1),)), 8.0 + len(scale))
            for i, j in itertools.combinations(range(len(self.axes)), 2)
            if self._distinct((i, j))
            for scale in self._factors((i, j), most)
            for kind in ("max", "min")
        ]

    def _remainders(self) -> list[Form]:
        """Return the forms "b (or b * c) divides a" and "c divides a * b".

        A form that says the same as a < b on the domains is left out.
        """
        whole = [i for i in self._plain if self._is_whole(self.axes[i])]
        found = []
        for i in whole:
            others = [j for j in whole if j != i]
            divisors = [(j,) for j in others] + list(itertools.combinations(others, 2))
            for divisor in divisors:
                if self._divides_otherwise(i, divisor):
                    powers = tuple((j, 1) for j in divisor)
                    found.append(self._priced("remainder", (), (((i, 1),), powers), 1.0 + 2 * len(divisor)))
        for i, j in itertools.combinations(whole, 2):
            for k in whole:
                if k not in (i, j) and self._divides_otherwise(i, (k,)):
                    found.append(self._priced("remainder", (), (((i, 1), (j, 1)), ((k, 1),)), 5.0))
        return found

    def _is_whole(self, axis: Axis) -> bool:
        return not axis.zero and all(isinstance(value, int) for value in self.space.domains[axis.column])

    def _divides_otherwise(self, axis: int, divisor: tuple[int, ...]) -> bool:
        grid = np.array(list(itertools.product(*[self.axes[j].logs for j in divisor]))).sum(1)
        numbers, by = np.round(np.exp2(self.axes[axis].logs)), np.round(np.exp2(grid))
        fails = numbers[:, None] % by[None] != 0
        return bool(fails.any() and not fails.all() and (fails != (numbers[:, None] < by[None])).any())

    # ---- relations -------------------------------------------------------------------------------------------------

    def relation(self, index: int, op: Op, threshold: float) -> Relation:
        """Return `form op threshold` as a relation over configurations, with whole numbers where possible."""
        form = self.forms[index]
        if form.kind == "order":
            return self._order_relation(form.column, op, threshold)
        if form.kind == "remainder":
            remainder = Remainder(*(self._product(part) for part in form.parts))
            return Compare(remainder, Op.EQUAL if self._asks_zero(op, threshold) else Op.UNEQUAL, Number(0))
        above, below = self._sides(form)
        if abs(threshold) > INFINITE:  # a knob with the value 0, in the numerator or the denominator
            return Compare(_one(above if threshold < 0 else below), Op.AT_MOST, Number(0))
        number = _natural(2.0**threshold)
        if number >= 1 or _natural(1 / number) != round(1 / number):
            right = below if number == 1 and below else (_number(number), *below)
            return self._compare(above, op, right)
        return self._compare((_number(1 / number), *above), op, below or (Number(1),))

    def _compare(self, left: tuple[Term, ...], op: Op, right: tuple[Term, ...]) -> Relation:
        if len(left) == 1 and isinstance(left[0], KnobTerm) and not left[0].view and op in (Op.AT_MOST, Op.AT_LEAST):
            match right:
                case (Number(value),):
                    return Bound(left[0].name, op, value)
        return Compare(_one(left), op, _one(right))

    def _sides(self, form: Form) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
        above = tuple(self._factor(axis, power) for axis, power in form.scale if power > 0)
        below = tuple(self._factor(axis, -power) for axis, power in form.scale if power < 0)
        if form.kind == "log":
            return (above or (Number(1),)), below
        inner = tuple(self._product(part) for part in form.parts)
        made: Term = Sum(inner) if form.kind == "sum" else Max(inner) if form.kind == "max" else Min(inner)
        return (made, *above), below

    def _factor(self, axis: int, power: int) -> Term:
        return Product((self.axes[axis].term,) * power) if power > 1 else self.axes[axis].term

    def _product(self, powers: Powers) -> Term:
        return _one(tuple(self._factor(axis, power) for axis, power in powers))

    @staticmethod
    def _asks_zero(op: Op, threshold: float) -> bool:
        return (
            (op is Op.AT_MOST and threshold < 1)
            or (op is Op.EQUAL and threshold == 0)
            or (op is Op.UNEQUAL and threshold == 1)
        )

    def _order_relation(self, column: int, op: Op, threshold: float) -> Relation:
        domain = self.space.domains[column]
        return order_relation(self.space.names[column], domain, op, threshold)


def order_relation(name: str, domain: tuple[Value, ...], op: Op, place: float) -> Relation:
    """Return a comparison of indices in a domain as a relation over the values at these indices."""
    values = {
        Op.AT_MOST: domain[: math.floor(place) + 1],
        Op.AT_LEAST: domain[math.ceil(place) :],
        Op.EQUAL: tuple(v for i, v in enumerate(domain) if i == place),
        Op.UNEQUAL: tuple(v for i, v in enumerate(domain) if i != place),
    }[op]
    plain = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in domain)
    if plain and op is Op.AT_MOST and len(values) > 1:
        return Bound(name, op, values[-1])  # type: ignore[arg-type]  # `plain`: they are numbers
    if plain and op is Op.AT_LEAST and len(values) > 1:
        return Bound(name, op, values[0])  # type: ignore[arg-type]
    if op is Op.UNEQUAL and len(domain) > 2:
        return Member(name, tuple(v for v in domain if v not in values), inside=False)
    return Member(name, values)


def compare(values: Numbers, op: Op, threshold: float) -> Mask:
    """Return `values op threshold`, with a margin of 1e-4 for rounding."""
    match op:
        case Op.AT_MOST:
            return values <= threshold + 1e-4
        case Op.AT_LEAST:
            return values >= threshold - 1e-4
        case Op.EQUAL:
            return np.abs(values - threshold) < 1e-4
        case Op.UNEQUAL:
            return np.abs(values - threshold) >= 1e-4


def _natural(number: float) -> float:
    """Return the number without the rounding error of logarithms."""
    rounded = round(number)
    return rounded if rounded and abs(number - rounded) < 1e-3 * rounded else number


def _number(value: float) -> Number:
    value = _natural(value)
    return Number(int(value) if value == int(value) else value)


def _one(parts: tuple[Term, ...]) -> Term:
    return parts[0] if len(parts) == 1 else Product(parts)
