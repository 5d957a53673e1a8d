"""How many configurations an expression makes, as far as its text tells."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gluonmap.lint.kernel_functions import Function, Module
from gluonmap.lint.trees import Local, Trees, call_name, last_name
from gluonmap.source.syntax import Definition, bind


@dataclass(frozen=True)
class Count:
    """Between `low` and `high` of them; `high` None: nothing bounds it."""

    low: int
    high: int | None

    def plus(self, other: Count) -> Count:
        """Of both together."""
        return Count(self.low + other.low, None if self.high is None or other.high is None else self.high + other.high)

    def times(self, other: Count) -> Count:
        """Of every pair."""
        if 0 in (self.high, other.high):
            return Count(0, 0)
        return Count(self.low * other.low, None if self.high is None or other.high is None else self.high * other.high)

    def either(self, other: Count) -> Count:
        """Of one or the other."""
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return Count(min(self.low, other.low), high)


UNKNOWN = Count(0, None)
_SAME = {"list", "tuple", "sorted", "reversed"}
_MOST_DEEP = 4
"""Functions that a list is followed through."""


@dataclass(frozen=True)
class Counter:
    """Counts in the words of one file; in a function's own, where `names` are its."""

    trees: Trees
    module: Module
    names: Local
    given: Mapping[str, Count] = field(default_factory=dict)
    """What the function's parameters hold."""
    deep: int = 0

    def count(self, node: ast.expr | None, seen: frozenset[str] = frozenset()) -> Count:
        """How many elements a list has that an expression makes."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                parts = (self.count(e.value, seen) if isinstance(e, ast.Starred) else Count(1, 1) for e in elements)
                return _together(parts, Count(0, 0), Count.plus)
            case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
                parts = (self._looped(part, seen) for part in generators)
                return _together(parts, Count(1, 1), Count.times)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.count(left, seen).plus(self.count(right, seen))
            case ast.IfExp(body=body, orelse=orelse):
                return self.count(body, seen).either(self.count(orelse, seen))
            case ast.Name(id=name) if name not in seen:
                if name in self.given and name not in self.names.values:
                    return self.given[name]
                return self.count(self.names.value(name), seen | {name})
            case ast.Call():
                return self._called(node, seen)
        return UNKNOWN

    def _looped(self, part: ast.comprehension, seen: frozenset[str]) -> Count:
        many = self.count(part.iter, seen)
        return Count(0, many.high) if part.ifs else many

    def _called(self, call: ast.Call, seen: frozenset[str]) -> Count:
        name = call_name(call)
        if name in _SAME and len(call.args) == 1 and not call.keywords:
            return self.count(call.args[0], seen)
        if last_name(call) == "product" and not call.keywords:
            return _together((self.count(part, seen) for part in call.args), Count(1, 1), Count.times)
        if name == "range":
            return _range(call)
        function = self.trees.called(name, self.module) if name and self.deep < _MOST_DEEP else None
        given = bind(call, function.node) if function else None
        if function is None or given is None:
            return UNKNOWN
        return self._returned(function, {name: self.count(value, seen) for name, value in given.items()})

    def _returned(self, function: Function, given: Mapping[str, Count]) -> Count:
        """What a function's `return`s make; nothing is known of one that decorators or `yield` change."""
        flat = self.trees.flat(function.module)
        nodes = flat.of(function.node)
        if function.node.decorator_list or any(isinstance(n, ast.Yield | ast.YieldFrom | Definition) for n in nodes):
            return UNKNOWN
        inner = Counter(self.trees, function.module, flat.local(function.node), given, self.deep + 1)
        found = [inner.count(node.value) for node in nodes if isinstance(node, ast.Return)]
        return _together(found[1:], found[0], Count.either) if found else UNKNOWN


def _range(call: ast.Call) -> Count:
    try:
        many = len(range(*(ast.literal_eval(part) for part in call.args)))
    except (TypeError, ValueError):
        return UNKNOWN
    return Count(many, many)


def _together(parts: Iterable[Count], start: Count, join: Callable[[Count, Count], Count]) -> Count:
    return functools.reduce(join, parts, start)
