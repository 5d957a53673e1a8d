"""Symbolic values: knowledge of a value before the configuration is known, and how expressions combine it."""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from gluonmap.constraints import expressions
from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError
from gluonmap.model.verdict import Location
from gluonmap.source.syntax import dotted

NUM_WARPS = "num_warps"

_MAX_NODES = 200
"""Number of nodes above which an expression counts as unknown."""

_MAX_CHARACTERS = 80
"""Number of characters of an expression that a rule's text shows."""


class Opaque(Enum):
    """A value that is no expression over the configuration."""

    UNKNOWN = "the compiler may know it"
    RUN_TIME = "only the running kernel knows it"


@dataclass(frozen=True)
class Demand:
    """A rule, with the conditions under which the compiler meets it as far as the reader has followed them."""

    text: str
    rule: ast.expr
    location: Location
    guards: tuple[ast.expr, ...] = ()
    knobs: tuple[str, ...] = ()
    """Knobs that the rule concerns although its expression does not read them."""


@dataclass(frozen=True)
class Layout:
    """A layout as a value: its demands apply wherever it is used."""

    demands: tuple[Demand, ...]


Symbol = ast.expr | tuple["Symbol", ...] | Layout | Opaque
"""Knowledge of a value: an expression over the configuration, a list of values, a layout, or nothing."""


@dataclass
class Scope:
    """Variables and conditions at one place of a function."""

    index: int
    """Position of the function among the kernel and its helpers."""
    values: dict[str, Symbol]
    guards: tuple[ast.expr, ...] = ()
    reached: bool = True
    """All conditions up to here are known, so that a rule can be stated."""

    def under(self, guard: Symbol) -> Scope:
        """Return the scope inside a branch that is taken where `guard` is true."""
        if guard is Opaque.RUN_TIME:
            return replace(self, values=dict(self.values))  # both branches are compiled
        if not isinstance(guard, ast.expr):
            return replace(self, values=dict(self.values), reached=False)
        return replace(self, values=dict(self.values), guards=join_guards(self.guards, (guard,)))

    def assign(self, target: ast.expr, symbol: Symbol) -> None:
        """Assign a value to a variable, or its parts to a tuple of variables."""
        match target:
            case ast.Name(id=name):
                self.values[name] = symbol
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                known = symbol if isinstance(symbol, tuple) and len(symbol) == len(elements) else None
                rest = Opaque.RUN_TIME if symbol is Opaque.RUN_TIME else Opaque.UNKNOWN
                for position, element in enumerate(elements):
                    self.assign(element, known[position] if known else rest)


def shorten(text: str) -> str:
    """Return the text, cut to the number of characters that a rule shows."""
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 3]}..."


def canonical_text(value: object) -> str:
    """Return a text that is equal for equal symbols."""
    if isinstance(value, ast.AST):
        return ast.unparse(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {canonical_text(item)}' for name, item in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(canonical_text(item) for item in value)})"
    if isinstance(value, Layout):
        return canonical_text(
            tuple(f"{item.text} {item.location} {canonical_text(item.guards)}" for item in value.demands)
        )
    return repr(value)


def join_guards(first: tuple[ast.expr, ...], second: tuple[ast.expr, ...]) -> tuple[ast.expr, ...]:
    """Return the conditions of both, each once."""
    return tuple({canonical_text(guard): guard for guard in (*first, *second)}.values())


def literal(value: Value) -> ast.expr:
    """Return the expression of a plain value."""
    if isinstance(value, (int, float)) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))  # Constant(-1) ** 2 would be printed as -1 ** 2
    return ast.Constant(value)


def read_constant(value: Value) -> Symbol:
    """Return the symbol of a constant that the inspection stored; a list is stored as JSON text."""
    if isinstance(value, str) and value.startswith("["):
        try:
            return _read_list(json.loads(value))
        except ValueError:
            pass
    return literal(value)


def _read_list(value: Any) -> Symbol:
    if isinstance(value, list):
        return tuple(_read_list(item) for item in value)
    return literal(value) if isinstance(value, (int, float, str)) or value is None else Opaque.UNKNOWN


def as_constant(symbol: Symbol) -> ast.Constant | None:
    """Return the symbol if it is a constant, else None."""
    return symbol if isinstance(symbol, ast.Constant) else None


def is_true(symbol: Symbol) -> bool:
    """Return whether the symbol is a constant that counts as true."""
    return isinstance(symbol, ast.Constant) and bool(symbol.value)


def as_int(symbol: Symbol) -> int | None:
    """Return the value of a constant whole number, else None."""
    return symbol.value if isinstance(symbol, ast.Constant) and isinstance(symbol.value, int) else None


def combine_opaque(parts: Iterable[Symbol]) -> Opaque:
    """Return how much is known of a value computed from parts that make no expression."""
    flat = [item for part in parts for item in (part if isinstance(part, tuple) else (part,))]
    return Opaque.RUN_TIME if Opaque.RUN_TIME in flat else Opaque.UNKNOWN


def _expressions(parts: Sequence[Symbol]) -> list[ast.expr] | None:
    found = [part for part in parts if isinstance(part, ast.expr)]
    return found if len(found) == len(parts) else None


def build(parts: Sequence[Symbol], make: Callable[[list[ast.expr]], ast.expr]) -> Symbol:
    """Return the expression that `make` builds from the parts; its value where all of them are constants."""
    scalars = _expressions(parts)
    if scalars is None:
        return combine_opaque(parts)
    node = make(scalars)
    if sum(1 for _ in ast.walk(node)) > _MAX_NODES:
        return Opaque.UNKNOWN
    return fold(node) or node


def fold(node: ast.expr) -> ast.expr | None:
    """Return the constant that an expression computes; None where it reads names or has no value."""
    text = ast.unparse(node)
    try:
        if expressions.names_in(text):
            return None
        value = expressions.evaluate(text, {})
    except UsageError:
        return None
    return None if isinstance(value, tuple) else literal(value)


def compare_to(left: ast.expr, op: ast.cmpop, right: int) -> ast.expr:
    """Return the comparison of an expression with a number."""
    return ast.Compare(left, [op], [ast.Constant(right)])


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.In: ast.NotIn,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.NotEq: ast.Eq,
    ast.NotIn: ast.In,
}


def negate(test: Symbol) -> Symbol:
    """Return the negation of a condition; an opaque one is its own."""
    return invert(test) if isinstance(test, ast.expr) else test


def invert(test: ast.expr) -> ast.expr:
    """Return the negation of an expression, in its shortest form."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[op], comparators=rest):
            return ast.Compare(left, [_OPPOSITE[type(op)]()], rest)
    return ast.UnaryOp(ast.Not(), test)


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


def binary_operation(left: Symbol, op: ast.operator, right: Symbol) -> Symbol:
    """Return `left op right`; lists are concatenated and repeated as in Python."""
    if isinstance(op, ast.Add) and isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    count = as_int(right)
    if isinstance(op, ast.Mult) and isinstance(left, tuple) and count is not None and count <= 64:
        return left * count
    if not isinstance(op, _ARITHMETIC):
        return combine_opaque([left, right])
    return build([left, right], lambda parts: ast.BinOp(parts[0], op, parts[1]))


def boolean_operation(op: ast.boolop, parts: Sequence[Symbol]) -> Symbol:
    """Return the parts joined by `and` or `or`."""
    if any(part is not Opaque.RUN_TIME for part in parts) and Opaque.RUN_TIME in parts:
        return Opaque.UNKNOWN  # a known part may decide before the program runs
    return build(parts, lambda made: ast.BoolOp(op, made))


def comparison(parts: Sequence[Symbol], ops: Sequence[ast.cmpop]) -> Symbol:
    """Return the chained comparison of the parts; `is` is read as `==`."""
    operators: list[ast.cmpop] = []
    sides: list[Symbol] = [parts[0]]
    for op, part in zip(ops, parts[1:], strict=True):
        if isinstance(op, (ast.Is, ast.IsNot)):
            op = ast.Eq() if isinstance(op, ast.Is) else ast.NotEq()
        group = _expressions(part) if isinstance(op, (ast.In, ast.NotIn)) and isinstance(part, tuple) else None
        sides.append(part if group is None else ast.Tuple(list(group), ast.Load()))
        operators.append(op)
    return build(sides, lambda made: ast.Compare(made[0], operators, made[1:]))


def subscript(group: Symbol, index: Symbol) -> Symbol:
    """Return `group[index]`."""
    position = as_int(index)
    if isinstance(group, tuple) and position is not None and position < len(group):
        return group[position]
    return Opaque.RUN_TIME if group is Opaque.RUN_TIME else Opaque.UNKNOWN


def is_language_function(callee: ast.expr) -> bool:
    """Return whether the callee is a function of the expression language.

    gl.max and gl.min reduce tensors, so they are none.
    """
    name = dotted(callee)
    return name in expressions.FUNCTIONS or name.rpartition(".")[2] in ("cdiv", "next_power_of_2") or name == "len"


def call_function(name: str, arguments: Sequence[Symbol]) -> Symbol:
    """Return the call of a function of the expression language."""
    if name == "len":
        group = arguments[0] if len(arguments) == 1 else None
        return ast.Constant(len(group)) if isinstance(group, tuple) else Opaque.UNKNOWN
    return build(arguments, lambda parts: ast.Call(ast.Name(name, ast.Load()), parts, []))


def choose(test: Symbol, taken: Symbol, other: Symbol) -> Symbol:
    """Return `taken if test else other`."""
    if canonical_text(taken) == canonical_text(other):
        return taken
    if isinstance(taken, Layout) or isinstance(other, Layout):
        return Layout(tuple(item for part in (taken, other) if isinstance(part, Layout) for item in part.demands))
    if test is Opaque.RUN_TIME:
        return Opaque.RUN_TIME
    if isinstance(taken, tuple) and isinstance(other, tuple) and len(taken) == len(other):
        return tuple(choose(test, *pair) for pair in zip(taken, other, strict=True))
    if isinstance(taken, tuple) or isinstance(other, tuple):
        return Opaque.UNKNOWN
    return build([test, taken, other], lambda parts: ast.IfExp(*parts))


def merge(test: Symbol, taken: Mapping[str, Symbol], other: Mapping[str, Symbol]) -> dict[str, Symbol]:
    """Return the variables after an `if` whose branches leave `taken` and `other`."""
    names = [*taken, *(name for name in other if name not in taken)]
    return {name: choose(test, taken.get(name, Opaque.UNKNOWN), other.get(name, Opaque.UNKNOWN)) for name in names}


def can_fail(rule: ast.expr) -> bool:
    """Return whether some usual configuration breaks the rule. More than three names count as yes, untried."""
    text = ast.unparse(rule)
    names = sorted(expressions.names_in(text))
    if len(names) > 3:
        return True
    for values in itertools.product((1, 2, 4, 8, 16, 32, 64), repeat=len(names)):
        try:
            if not expressions.evaluate(text, dict(zip(names, values, strict=True))):
                return True
        except UsageError:
            continue
    return False
