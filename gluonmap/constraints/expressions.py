"""The small language of `--derive`, `--grid`, `--restrict` and layout rules: arithmetic and logic over named values.

Text is parsed with `ast` and walked; nothing is ever executed as Python.
"""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError

Result = Value | tuple[Any, ...]

MAX_BITS = 4096
"""Bits of the largest whole number that an expression may make, so that no power exhausts the machine's memory."""


class _Broken(Exception):
    """A defect of an expression; its text says which."""


def cdiv(dividend: int, divisor: int) -> int:
    """Return the quotient, rounded up."""
    return -(-dividend // divisor)


def next_power_of_2(number: int) -> int:
    """Return the smallest power of two that is not below `number`; 0 for 0 and less, like `triton.next_power_of_2`."""
    return 1 << (number - 1).bit_length() if number > 0 else 0


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "cdiv": cdiv,
    "int": int,
    "max": max,
    "min": min,
    "next_power_of_2": next_power_of_2,
}

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}

_COMPARISON: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda member, group: member in _tuple(group),
    ast.NotIn: lambda member, group: member not in _tuple(group),
}


def evaluate(text: str, names: Mapping[str, object]) -> Result:
    """Return the value of `text`, whose names have the given values.

    Raises:
        UsageError: bad syntax, an unknown name, something outside the language, or arithmetic without a result.
    """
    try:
        result: Result = _value(_parse(text), names)
    except _Broken as broken:
        reason = str(broken)
    except OverflowError:
        reason = "a number is too large"
    except (ArithmeticError, TypeError, ValueError) as error:
        reason = str(error)
    except RecursionError:
        reason = "it is nested too deeply"
    else:
        return result
    raise UsageError(f"{text!r} has no value: {reason} (known names: {', '.join(sorted(names)) or 'none'}).")


# A repeated run of the mxfp4 GEMM asks 2,145 times for the names of a few dozen texts: 0.1 s without the cache.
@lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    """Return the names that `text` reads; functions are not among them.

    Raises:
        UsageError: bad syntax.
    """
    try:
        tree = _parse(text)
    except _Broken as broken:
        raise UsageError(f"{text!r} is no expression: {broken}.") from None
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


def substituted(text: str, values: Mapping[str, Value], expressions: Mapping[str, str]) -> str:
    """Return `text` with names replaced by their values, or by their expressions.

    Raises:
        UsageError: bad syntax in the text or in an expression, or expressions that depend on each other.
    """
    for _ in range(len(expressions) + 2):
        if not names_in(text) & {*values, *expressions}:
            return text
        text = ast.unparse(_Substitution(values, expressions).visit(copy.deepcopy(_parse(text))))
    raise UsageError(f"the values of {', '.join(sorted(expressions))} depend on each other; break the circle.")


class _Substitution(ast.NodeTransformer):
    """Names replaced by values and expressions, in one syntax tree."""

    def __init__(self, values: Mapping[str, Value], expressions: Mapping[str, str]) -> None:
        self.values, self.expressions = values, expressions

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.args = [self.visit(argument) for argument in node.args]  # the name of a function is no name of a value
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.expressions:
            return copy.deepcopy(_parse(self.expressions[node.id]))
        return ast.Constant(self.values[node.id]) if node.id in self.values else node


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise _Broken(f"bad syntax at character {error.offset or 0} ({error.msg})") from None
    except (ValueError, RecursionError, MemoryError):
        raise _Broken("it cannot be parsed") from None


def _value(node: ast.expr, names: Mapping[str, object]) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() | None as constant):
            return constant
        case ast.Name(id=name):
            return _named(name, names)
        case ast.Tuple(elts=elements):
            return tuple(_value(element, names) for element in elements)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, names)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(_value(operand, names))
        case ast.BinOp(left=left, op=symbol, right=right) if type(symbol) in _ARITHMETIC:
            return _arithmetic(symbol, _value(left, names), _value(right, names))
        case ast.BoolOp(op=ast.And(), values=parts):
            return _first(parts, names, stop_at=False)
        case ast.BoolOp(values=parts):
            return _first(parts, names, stop_at=True)
        case ast.Compare():
            return _compare(node, names)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names) else orelse, names)
        case ast.Call():
            return _call(node, names)
    raise _Broken(f"{ast.unparse(node)!r} is not part of the language")


def _named(name: str, names: Mapping[str, object]) -> object:
    if name not in names:
        raise _Broken(f"unknown name {name!r}")
    return names[name]


def _number(value: Any) -> Any:
    if not isinstance(value, (int, float)):
        raise _Broken(f"{value!r} is not a number")
    return value


def _tuple(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple):
        raise _Broken(f"'in' needs a tuple, not {value!r}")
    return value


def _arithmetic(symbol: ast.operator, left: Any, right: Any) -> Any:
    _number(left)
    _number(right)
    if isinstance(symbol, ast.Pow) and isinstance(left, int) and isinstance(right, int):
        _guard_power(left, right)
    result = _ARITHMETIC[type(symbol)](left, right)
    if isinstance(result, complex):
        raise _Broken(f"{left} ** {right} is no real number")
    if isinstance(result, int) and result.bit_length() > MAX_BITS:
        raise _Broken("a number is too large")
    return result


def _guard_power(base: int, exponent: int) -> None:
    if base.bit_length() * abs(exponent) > MAX_BITS:
        raise _Broken(f"{base} ** {exponent} is too large")


def _first(parts: list[ast.expr], names: Mapping[str, object], *, stop_at: bool) -> Any:
    """Return the first value whose truth is `stop_at`, or the last one, like `and` and `or` in Python."""
    value: Any = None
    for part in parts:
        value = _value(part, names)
        if bool(value) is stop_at:
            break
    return value


def _compare(node: ast.Compare, names: Mapping[str, object]) -> bool:
    left = _value(node.left, names)
    for symbol, part in zip(node.ops, node.comparators, strict=True):
        if type(symbol) not in _COMPARISON:
            raise _Broken("'is' is not part of the language, write == or !=")
        right = _value(part, names)
        if not _COMPARISON[type(symbol)](left, right):
            return False
        left = right
    return True


def _call(node: ast.Call, names: Mapping[str, object]) -> Any:
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
        raise _Broken(f"{ast.unparse(node.func)!r} is no function of the language ({', '.join(sorted(FUNCTIONS))})")
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        raise _Broken(f"{node.func.id} takes plain arguments only")
    arguments = [_value(argument, names) for argument in node.args]
    if node.func.id in ("cdiv", "next_power_of_2") and not all(isinstance(value, int) for value in arguments):
        raise _Broken(f"{node.func.id} takes whole numbers")
    return FUNCTIONS[node.func.id](*arguments)
