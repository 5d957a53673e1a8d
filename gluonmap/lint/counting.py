"""How many configurations an expression makes, as far as its text tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gluonmap.lint.trees import Local, last_name
from gluonmap.source import dotted


@dataclass(frozen=True)
class Count:
    """Between `low` and `high` of them; `high` None: nothing bounds it."""

    low: int
    high: int | None

    def plus(self, other: Count) -> Count:
        return Count(self.low + other.low, None if self.high is None or other.high is None else self.high + other.high)

    def times(self, other: Count) -> Count:
        if 0 in (self.high, other.high):
            return Count(0, 0)
        return Count(self.low * other.low, None if self.high is None or other.high is None else self.high * other.high)


_UNKNOWN = Count(0, None)
_SAME = {"list", "tuple", "sorted", "reversed"}


def count(node: ast.expr | None, names: Local, seen: frozenset[str] = frozenset()) -> Count:
    """How many elements a list has that an expression makes; names are looked up in the file's own."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return _sum([count(e.value, names, seen) if isinstance(e, ast.Starred) else Count(1, 1) for e in elements])
        case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
            found = Count(1, 1)
            for part in generators:
                many = count(part.iter, names, seen)
                found = found.times(Count(0, many.high) if part.ifs else many)
            return found
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return count(left, names, seen).plus(count(right, names, seen))
        case ast.IfExp(body=body, orelse=orelse):
            one, other = count(body, names, seen), count(orelse, names, seen)
            high = None if one.high is None or other.high is None else max(one.high, other.high)
            return Count(min(one.low, other.low), high)
        case ast.Name(id=name) if name not in seen:
            return count(names.value(name), names, seen | {name})
        case ast.Call():
            return _called(node, names, seen)
    return _UNKNOWN


def _called(call: ast.Call, names: Local, seen: frozenset[str]) -> Count:
    name = dotted(call.func)
    if call.keywords:
        return _UNKNOWN
    if name in _SAME and len(call.args) == 1:
        return count(call.args[0], names, seen)
    if last_name(call) == "product":
        found = Count(1, 1)
        for part in call.args:
            found = found.times(count(part, names, seen))
        return found
    if name == "range":
        return _range(call)
    if name in names.functions and name not in seen:
        return _returned(names.functions[name], seen | {name})
    return _UNKNOWN


def _range(call: ast.Call) -> Count:
    try:
        many = len(range(*(ast.literal_eval(part) for part in call.args)))
    except (TypeError, ValueError):
        return _UNKNOWN
    return Count(many, many)


def _returned(function: ast.FunctionDef | ast.AsyncFunctionDef, seen: frozenset[str]) -> Count:
    """What a function's only `return` makes; its other statements may only set names."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if len(returns) != 1 or returns[0] not in function.body:
        return _UNKNOWN
    names = Local(list(ast.walk(function)))
    names.functions.clear()
    return count(returns[0].value, names, seen)


def _sum(parts: list[Count]) -> Count:
    found = Count(0, 0)
    for part in parts:
        found = found.plus(part)
    return found
