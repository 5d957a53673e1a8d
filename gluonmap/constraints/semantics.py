"""The meaning of relations: their truth, their knobs, their length in bits, and their wording.

A relation is true for an allowed configuration. The same code evaluates terms and relations on plain values and on
columns (numpy arrays, one element per configuration). The module imports numpy only for columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import reduce
from typing import Any

from gluonmap.constraints import expressions
from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError
from gluonmap.model.relations import (
    AllOf,
    AnyOf,
    Bound,
    Compare,
    KnobTerm,
    Max,
    Member,
    Min,
    Nogood,
    Number,
    Op,
    Product,
    Quotient,
    Relation,
    Remainder,
    RoundUp,
    Sum,
    Term,
    View,
    Written,
)

# ---- units ---------------------------------------------------------------------------------------------------------


class Unit(StrEnum):
    """The quantity that a knob counts: a prior on the relations that contain the knob."""

    TILE = "tile"
    WARPS = "warps"
    STAGES = "stages"
    COUNT = "count"
    ENUM = "enum"
    FLAG = "flag"


ELEMENT_BYTES: dict[str, float] = {
    "fp64": 8, "f64": 8, "float64": 8, "int64": 8, "i64": 8,
    "fp32": 4, "f32": 4, "float32": 4, "tf32": 4, "int32": 4, "i32": 4,
    "bf16": 2, "fp16": 2, "f16": 2, "float16": 2, "bfloat16": 2, "int16": 2, "i16": 2,
    "fp8": 1, "int8": 1, "i8": 1, "uint8": 1, "u8": 1, "e4m3": 1, "e5m2": 1, "float8": 1, "bf8": 1, "mxfp8": 1,
    "fp4": 0.5, "mxfp4": 0.5, "int4": 0.5, "i4": 0.5, "e2m1": 0.5, "nvfp4": 0.5,
}  # fmt: skip
"""Name that kernels give to a type -> bytes of one element. Two elements of a 4-bit type share a byte."""

_UNITS_BY_NAME: tuple[tuple[str, Unit], ...] = (
    (r"version|arch|variant|mode|layout|order|modifier|nonkdim|instr", Unit.ENUM),
    (r"warps|^nw$|^w[mnk]$|wave.*per_(cta|wg)|warps_[mnk]", Unit.WARPS),
    (r"stage|^st$|buffer|^depth$|pipeline", Unit.STAGES),
    (r"group|split|xcd|kpack|ctas|waves_per_eu|^wpe$|^gm$|^sk$|count|^num_|^n_", Unit.COUNT),
    (r"block|tile|^b[mnkhqd]$|chunk|head|dim|size|^[mnkdqh]$|width|swizzle|pad|seq", Unit.TILE),
    (r"^(use|has|is|enable|with|allow)_|flag|^even|mask|hint|cache", Unit.FLAG),
)


def unit_of(name: str, domain: Sequence[Value]) -> Unit:
    """Return the most likely unit of a knob, from its values and, if these leave a choice, from its name."""
    values = set(domain)
    if values <= {False, True} or values <= {0, 1} or (len(values) == 2 and None in values):
        return Unit.FLAG
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return Unit.ENUM
    for pattern, unit in _UNITS_BY_NAME:
        if re.search(pattern, name.lower()):
            return unit
    return Unit.TILE if min(float(value) for value in values if isinstance(value, (int, float))) >= 16 else Unit.COUNT


def element_bytes(value: Value) -> float | None:
    """Return the bytes of an element of a named type; None for a name that is no type."""
    if not isinstance(value, str):
        return None
    text = value.lower().rpartition(".")[2]
    if text in ELEMENT_BYTES:
        return ELEMENT_BYTES[text]
    return next((size for name, size in ELEMENT_BYTES.items() if text.startswith(name)), None)


# ---- terms ---------------------------------------------------------------------------------------------------------


def value_of(term: Term, values: Mapping[str, Any]) -> Any:
    """Return the value of a term for one configuration, or a column of values for columns of knobs."""
    match term:
        case KnobTerm(name, view):
            return _viewed(values[name], view)
        case Number(value):
            return value
        case Product(parts):
            return reduce(lambda left, right: left * right, (value_of(part, values) for part in parts), 1)
        case Quotient(part, divisor):
            return value_of(part, values) / value_of(divisor, values)
        case Sum(parts):
            return reduce(lambda left, right: left + right, (value_of(part, values) for part in parts), 0)
        case Max(parts):
            return reduce(_larger, (value_of(part, values) for part in parts))
        case Min(parts):
            return -reduce(_larger, (-value_of(part, values) for part in parts))
        case RoundUp(part, multiple):
            return -(-value_of(part, values) // multiple) * multiple
        case Remainder(part, divisor):
            return value_of(part, values) % value_of(divisor, values)


def view_of(value: Value, view: View) -> float | int | None:
    """Return the number of a knob's value under a view; None: it has none."""
    if view is View.BYTES:
        return element_bytes(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if view is View.PLAIN:
        return value
    whole = int(value)
    if whole != value or whole < 1:
        return None
    return expressions.next_power_of_2(whole) if view is View.POWER else whole & -whole


def _viewed(value: Any, view: View) -> Any:
    if view is View.PLAIN:
        return value
    if not hasattr(value, "shape"):
        return view_of(value, view)
    seen: dict[Any, Any] = {}
    import numpy as np

    return np.array([seen.setdefault(item, view_of(item, view)) for item in value.tolist()])


def _larger(left: Any, right: Any) -> Any:
    if hasattr(left, "shape") or hasattr(right, "shape"):
        return left * (left >= right) + right * (left < right)
    return max(left, right)


def knobs_of(term: Term) -> frozenset[str]:
    """Return the knobs that a term reads."""
    match term:
        case KnobTerm(name):
            return frozenset((name,))
        case Number():
            return frozenset()
        case RoundUp(part):
            return knobs_of(part)
        case Remainder(part, divisor) | Quotient(part, divisor):
            return knobs_of(part) | knobs_of(divisor)
        case Product(parts) | Sum(parts) | Max(parts) | Min(parts):
            return frozenset().union(*(knobs_of(part) for part in parts))


# ---- relations -----------------------------------------------------------------------------------------------------


def holds(relation: Relation, config: Mapping[str, Value]) -> bool:
    """Return whether a configuration meets a relation; false if an expression has no value for it."""
    if isinstance(relation, Written):
        try:
            return bool(expressions.evaluate(relation.text, config))
        except UsageError:
            return False
    try:
        return bool(_truth(relation, config))
    except (ArithmeticError, TypeError, ValueError):  # a divisor is 0, or a value is no number
        return False


def holds_columns(relation: Relation, columns: Mapping[str, Any]) -> Any:
    """Return the truth of a relation for many configurations, from one array of values per knob."""
    import numpy as np

    size = len(next(iter(columns.values())))
    return np.broadcast_to(np.asarray(_truth(relation, columns), bool), (size,))


def _truth(relation: Relation, values: Mapping[str, Any]) -> Any:
    match relation:
        case Compare(left, op, right):
            return _compared(value_of(left, values), op, value_of(right, values))
        case Member(knob, members, inside):
            found = _is_any(values[knob], members)
            return found if inside else _not(found)
        case Bound(knob, op, value):
            return _compared(values[knob], op, value)
        case AnyOf(parts):
            return reduce(lambda left, right: left | right, (_truth(part, values) for part in parts))
        case AllOf(parts):
            return reduce(lambda left, right: left & right, (_truth(part, values) for part in parts))
        case Nogood(cells):
            return _not(reduce(lambda left, right: left & right, (_is_any(values[k], (v,)) for k, v in cells)))
        case Written(text):
            return _written(text, values)


def _is_any(value: Any, members: tuple[Value, ...]) -> Any:
    if not hasattr(value, "shape"):
        return any(_same(value, member) for member in members)
    import numpy as np

    return np.array([any(_same(item, member) for member in members) for item in value.tolist()], bool)


def _same(left: Any, right: Any) -> bool:
    """Return whether two values are equal; True is not 1, but 1 is 1.0, unlike `model.candidate.same`."""
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _not(truth: Any) -> Any:
    return ~truth if hasattr(truth, "shape") else not truth


def _written(text: str, values: Mapping[str, Any]) -> Any:
    names = sorted(expressions.names_in(text))
    if not any(hasattr(values.get(name), "shape") for name in names):
        return holds(Written(text), values)
    import numpy as np

    seen: dict[tuple[Any, ...], bool] = {}
    rows = list(zip(*(values[name].tolist() for name in names), strict=True))
    for row in rows:
        if row not in seen:
            seen[row] = holds(Written(text), dict(zip(names, row, strict=True)))
    return np.array([seen[row] for row in rows], bool)


def _compared(left: Any, op: Op, right: Any) -> Any:
    match op:
        case Op.AT_MOST:
            return left <= right
        case Op.AT_LEAST:
            return left >= right
        case Op.EQUAL:
            return left == right
        case Op.UNEQUAL:
            return left != right


def scope_of(relation: Relation) -> frozenset[str]:
    """Return the knobs that a relation reads."""
    match relation:
        case Compare(left, _, right):
            return knobs_of(left) | knobs_of(right)
        case Member(knob) | Bound(knob):
            return frozenset((knob,))
        case AnyOf(parts) | AllOf(parts):
            return frozenset().union(*(scope_of(part) for part in parts))
        case Nogood(cells):
            return frozenset(knob for knob, _ in cells)
        case Written(text):
            return expressions.names_in(text)


# ---- description length --------------------------------------------------------------------------------------------

_ODD_IN_ARITHMETIC = {
    Unit.TILE: 0.0,
    Unit.WARPS: 0.0,
    Unit.STAGES: 0.5,
    Unit.COUNT: 1.5,
    Unit.ENUM: 4.0,
    Unit.FLAG: 4.0,
}


def arithmetic_bits(units: Iterable[Unit]) -> float:
    """Return the extra bits of a term that multiplies or adds knobs of these units; tile times warps costs nothing."""
    return sum(_ODD_IN_ARITHMETIC[unit] for unit in units)


def description_bits(relation: Relation, domains: Mapping[str, Sequence[Value]]) -> float:
    """Return the length of a relation in bits, over these domains. The learner prefers shorter relations."""
    many = math.log2(max(2, len(domains)))
    match relation:
        case Compare(left, _, right):
            names = knobs_of(left) | knobs_of(right)
            units = [unit_of(name, domains[name]) for name in sorted(names)]
            shape = _term_bits(left) + _term_bits(right)
            return 2 + many * len(names) + shape + (arithmetic_bits(units) if len(names) > 1 else 0)
        case Member(knob, values):
            return 2 + many + len(values) * math.log2(max(2, len(domains[knob])))
        case Bound(knob):
            return 2 + many + math.log2(max(2, len(domains[knob])))
        case AnyOf(parts) | AllOf(parts):
            return 1 + sum(description_bits(part, domains) for part in parts)
        case Nogood(cells):
            return 2 + sum(many + math.log2(max(2, len(domains[knob]))) for knob, _ in cells)
        case Written():
            return 1


def _term_bits(term: Term) -> float:
    match term:
        case KnobTerm(_, view):
            return 1 if view is View.PLAIN else 2.5
        case Number(value):
            return 1 if value > 0 and math.log2(value).is_integer() else 3
        case Product(parts):
            return sum(_term_bits(part) for part in parts)
        case Sum(parts) | Max(parts) | Min(parts):
            return 1 + sum(_term_bits(part) for part in parts)
        case RoundUp(part):
            return 3 + _term_bits(part)
        case Remainder(part, divisor) | Quotient(part, divisor):
            return 1 + _term_bits(part) + _term_bits(divisor)


# ---- words ---------------------------------------------------------------------------------------------------------

_POWER_OF_TWO = re.compile(r"\bpowers? of (2|two)\b")


def as_power_of_two(relation: Relation, reason: str, domains: Mapping[str, Sequence[Value]]) -> str:
    """Return "BLOCK_M is a power of two" if the reason says so and the relation leaves just those values; else ""."""
    scope = scope_of(relation)
    if len(scope) != 1 or not _POWER_OF_TWO.search(reason):
        return ""
    (name,) = scope
    powers = [v for v in domains[name] if type(v) is int and v > 0 and v & (v - 1) == 0]
    left = [v for v in domains[name] if holds(relation, {name: v})]
    return f"{name} is a power of two" if left == powers != list(domains[name]) else ""


def folded(relation: Relation, pinned: Mapping[str, Value]) -> Relation:
    """Return the relation to show, with the numbers of pinned knobs in its sums and products.

    A knob with one value left can equal the size of an element by chance, so its name in a product of bytes would say
    nothing. A relation of pinned knobs alone keeps their names.
    """
    if not scope_of(relation) - pinned.keys():
        return relation
    match relation:
        case Compare(left, op, right):
            return Compare(with_values(left, pinned), op, with_values(right, pinned))
        case AnyOf(parts):
            return AnyOf(tuple(folded(part, pinned) for part in parts))
        case AllOf(parts):
            return AllOf(tuple(folded(part, pinned) for part in parts))
        case _:
            return relation


def with_values(term: Term, pinned: Mapping[str, Value]) -> Term:
    """Return a term with the numbers of the pinned knobs in their place; a product gets one factor for all of them."""
    if not knobs_of(term) & pinned.keys():
        return term
    match term:
        case KnobTerm(name, view):
            number = view_of(pinned[name], view) if name in pinned else None
            return term if number is None else Number(number)
        case Number():
            return term
        case Product(parts):
            found = [with_values(part, pinned) for part in parts]
            factor = math.prod(part.value for part in found if isinstance(part, Number))
            rest = tuple(part for part in found if not isinstance(part, Number))
            return Product((Number(factor), *rest)) if factor != 1 or not rest else Product(rest)
        case Quotient(part, divisor):
            return Quotient(with_values(part, pinned), with_values(divisor, pinned))
        case Sum(parts):
            return Sum(tuple(with_values(part, pinned) for part in parts))
        case Max(parts):
            return Max(tuple(with_values(part, pinned) for part in parts))
        case Min(parts):
            return Min(tuple(with_values(part, pinned) for part in parts))
        case RoundUp(part, multiple):
            return RoundUp(with_values(part, pinned), multiple)
        case Remainder(part, divisor):
            return Remainder(with_values(part, pinned), with_values(divisor, pinned))


def words(relation: Relation) -> str:
    """Return a relation as a person would write it: "BLOCK_N * num_warps <= 2048"."""
    match relation:
        case Compare(Remainder(part, divisor), Op.EQUAL, Number(0)):
            return f"{term_words(divisor)} divides {term_words(part)}"
        case Compare(KnobTerm(name, View.EVEN_PART), Op.AT_LEAST, Number(value)) if value > 1:
            return f"{expressions.next_power_of_2(math.ceil(value))} divides {name}"
        case Compare(KnobTerm(name, View.EVEN_PART), Op.AT_MOST, Number(value)) if value >= 1:
            return f"{2 ** (int(value).bit_length())} does not divide {name}"
        case Compare(left, op, right):
            return f"{term_words(left)} {op.value} {term_words(right)}"
        case Member(knob, (value,), inside):
            return f"{knob} {'=' if inside else '!='} {value}"
        case Member(knob, values, inside):
            return f"{knob} {'in' if inside else 'not in'} {{{', '.join(map(str, values))}}}"
        case Bound(knob, op, value):
            return f"{knob} {op.value} {_number_words(value)}"
        case AnyOf(parts):
            return " or ".join(f"({words(part)})" if isinstance(part, AllOf) else words(part) for part in parts)
        case AllOf(parts):
            return " and ".join(f"({words(part)})" if isinstance(part, AnyOf) else words(part) for part in parts)
        case Nogood(cells):
            return f"not ({' and '.join(f'{knob} = {value}' for knob, value in cells)})"
        case Written(text):
            return text


def term_words(term: Term) -> str:
    """Return a term as a person would write it."""
    match term:
        case KnobTerm(name, View.PLAIN):
            return name
        case KnobTerm(name, View.BYTES):
            return f"bytes({name})"
        case KnobTerm(name, View.POWER):
            return f"next_power_of_2({name})"
        case KnobTerm(name):
            return f"largest_power_of_2_in({name})"
        case Number(value):
            return _number_words(value)
        case Product(()):
            return "1"
        case Product(parts):
            return " * ".join(_factor_words(part) for part in _folded(parts))
        case Quotient(part, divisor):
            return f"{_factor_words(part)} / {_factor_words(divisor)}"
        case Sum(parts):
            return " + ".join(term_words(part) for part in parts)
        case Max(parts):
            return f"max({', '.join(term_words(part) for part in parts)})"
        case Min(parts):
            return f"min({', '.join(term_words(part) for part in parts)})"
        case RoundUp(part, multiple):
            return f"round_up({term_words(part)}, {multiple})"
        case Remainder(part, divisor):
            return f"{_factor_words(part)} % {_factor_words(divisor)}"


def _folded(parts: tuple[Term, ...]) -> tuple[Term, ...]:
    kept = tuple(part for part in parts if part != Number(1))
    return kept or (Number(1),)


def _factor_words(term: Term) -> str:
    return f"({term_words(term)})" if isinstance(term, (Sum, Remainder)) else term_words(term)


def _number_words(value: float | int) -> str:
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e5 else f"{int(value)}"
