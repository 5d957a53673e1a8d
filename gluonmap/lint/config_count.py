"""Number of configurations in a list, counted from the text of the expression that makes it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gluonmap.lint.flat_trees import Local, Trees
from gluonmap.lint.kernel_functions import Function, Module
from gluonmap.lint.nodes import call_name, last_name
from gluonmap.source.syntax import Definition, bind


@dataclass(frozen=True)
class ConfigCount:
    """A number of configurations between `low` and `high`; `high` is None if nothing bounds it."""

    low: int
    high: int | None

    def plus(self, other: ConfigCount) -> ConfigCount:
        """Return the count of two lists joined."""
        return ConfigCount(
            self.low + other.low, None if self.high is None or other.high is None else self.high + other.high
        )

    def times(self, other: ConfigCount) -> ConfigCount:
        """Return the count of all pairs of two lists."""
        if 0 in (self.high, other.high):
            return ConfigCount(0, 0)
        return ConfigCount(
            self.low * other.low, None if self.high is None or other.high is None else self.high * other.high
        )

    def either(self, other: ConfigCount) -> ConfigCount:
        """Return the count of one list or the other."""
        high = None if self.high is None or other.high is None else max(self.high, other.high)
        return ConfigCount(min(self.low, other.low), high)


UNKNOWN = ConfigCount(0, None)
_SAME = {"list", "tuple", "sorted", "reversed"}
_MOST_DEEP = 4
"""Most functions through which a list is followed."""


@dataclass(frozen=True)
class ConfigCounter:
    """Counts the elements of list expressions, with the names of a file or of one of its functions."""

    trees: Trees
    module: Module
    names: Local
    given: Mapping[str, ConfigCount] = field(default_factory=dict)
    """Counts of the lists that the function's parameters hold."""
    deep: int = 0

    def count(self, node: ast.expr | None, seen: frozenset[str] = frozenset()) -> ConfigCount:
        """Return the number of elements of the list that an expression makes."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                parts = (
                    self.count(e.value, seen) if isinstance(e, ast.Starred) else ConfigCount(1, 1) for e in elements
                )
                return _together(parts, ConfigCount(0, 0), ConfigCount.plus)
            case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
                parts = (self._looped(part, seen) for part in generators)
                return _together(parts, ConfigCount(1, 1), ConfigCount.times)
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

    def _looped(self, part: ast.comprehension, seen: frozenset[str]) -> ConfigCount:
        many = self.count(part.iter, seen)
        return ConfigCount(0, many.high) if part.ifs else many

    def _called(self, call: ast.Call, seen: frozenset[str]) -> ConfigCount:
        name = call_name(call)
        if name in _SAME and len(call.args) == 1 and not call.keywords:
            return self.count(call.args[0], seen)
        if last_name(call) == "product" and not call.keywords:
            return _together((self.count(part, seen) for part in call.args), ConfigCount(1, 1), ConfigCount.times)
        if name == "range":
            return _range(call)
        function = self.trees.called(name, self.module) if name and self.deep < _MOST_DEEP else None
        given = bind(call, function.node) if function else None
        if function is None or given is None:
            return UNKNOWN
        return self._returned(function, {name: self.count(value, seen) for name, value in given.items()})

    def _returned(self, function: Function, given: Mapping[str, ConfigCount]) -> ConfigCount:
        """Return the count of a function's `return`s; unknown where a decorator or `yield` may change it."""
        flat = self.trees.flat(function.module)
        nodes = flat.of(function.node)
        if function.node.decorator_list or any(isinstance(n, ast.Yield | ast.YieldFrom | Definition) for n in nodes):
            return UNKNOWN
        inner = ConfigCounter(self.trees, function.module, flat.local(function.node), given, self.deep + 1)
        found = [inner.count(node.value) for node in nodes if isinstance(node, ast.Return)]
        return _together(found[1:], found[0], ConfigCount.either) if found else UNKNOWN


def _range(call: ast.Call) -> ConfigCount:
    try:
        many = len(range(*(ast.literal_eval(part) for part in call.args)))
    except (TypeError, ValueError):
        return UNKNOWN
    return ConfigCount(many, many)


def _together(
    parts: Iterable[ConfigCount], start: ConfigCount, join: Callable[[ConfigCount, ConfigCount], ConfigCount]
) -> ConfigCount:
    return functools.reduce(join, parts, start)
