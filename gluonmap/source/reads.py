"""Places where a kernel reads the value of a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from gluonmap.model.inspection import FunctionSource
from gluonmap.model.verdict import Location
from gluonmap.source.code_lines import in_source_order, place
from gluonmap.source.syntax import bind, definition, element_pairs, helper_of, unpacked

_Variable = tuple[int, str]
"""A function's index and a name in it."""

_Use = tuple[ast.AST, tuple[_Variable, ...]]
"""A node that reads a name, and the variables that receive its value; no variables: the value is used there."""


def find_reads(functions: Sequence[FunctionSource], parameter: str) -> tuple[Location, ...]:
    """Return the places where the kernel, `functions[0]`, and the helpers that receive the value read the parameter.

    A value is not read if it only goes to variables and helpers' parameters that are never read. A use that cannot be
    followed (an unknown callee, `*args`) counts as a read.
    """
    uses: dict[_Variable, Sequence[_Use]] = {}
    pending: list[_Variable] = [(0, parameter)]
    while pending:
        variable = pending.pop()
        if variable not in uses:
            uses[variable] = _uses_of(functions, variable)
            pending.extend(target for _, targets in uses[variable] for target in targets)
    live = _live(uses)
    found: list[Location] = []
    seen: set[_Variable] = set()
    pending = [(0, parameter)]
    while pending:
        variable = pending.pop()
        if variable in seen:
            continue
        seen.add(variable)
        for node, targets in uses[variable]:
            if not targets or live.intersection(targets):
                found.append(place(functions[variable[0]], node))
                pending.extend(target for target in targets if target[0] != variable[0])
    return in_source_order(functions, found)


def _live(uses: Mapping[_Variable, Sequence[_Use]]) -> set[_Variable]:
    """Return the variables whose value is used somewhere, directly or through other variables."""
    live: set[_Variable] = set()
    while True:
        more = {
            variable
            for variable, found in uses.items()
            if variable not in live and any(not targets or live.intersection(targets) for _, targets in found)
        }
        if not more:
            return live
        live |= more


def _uses_of(functions: Sequence[FunctionSource], variable: _Variable) -> Sequence[_Use]:
    index, name = variable
    sources = tuple(function.source for function in functions)
    return _all_uses(sources, index, tuple(functions[index].calls.items())).get(name, [])


@lru_cache(maxsize=256)
def _all_uses(sources: tuple[str, ...], index: int, calls: tuple[tuple[str, int], ...]) -> Mapping[str, list[_Use]]:
    """Return every name that one of the functions reads, with its uses. One walk serves all parameters of a kernel."""
    functions = [FunctionSource("", "", 1, source, dict(calls)) for source in sources]
    node = definition(sources[index])
    found: dict[str, list[_Use]] = {}
    for statement in node.body if node else ():
        for name, targets in _uses(functions, index, statement, ()):
            found.setdefault(name.id, []).append((name, targets))
    return found


def _uses(
    functions: Sequence[FunctionSource], index: int, node: ast.AST, targets: tuple[_Variable, ...]
) -> Iterator[tuple[ast.Name, tuple[_Variable, ...]]]:
    """Yield the names that are read below a node whose own value goes to `targets`."""
    match node:
        case ast.Name(ctx=ast.Load()):
            yield node, targets
            return
        case ast.Assign(targets=stores, value=value):
            parts = _assigned(index, stores, value)
        case ast.AnnAssign(target=store, value=ast.expr() as value, annotation=annotation):
            parts = [*_assigned(index, [store], value), (annotation, ())]
        case ast.AugAssign(target=store, value=value):
            parts = _assigned(index, [store], value)
        case ast.Call():
            parts = _passed(functions, index, node)
        case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.IfExp() | ast.Tuple() | ast.List():
            parts = [(child, targets) for child in ast.iter_child_nodes(node)]
        case ast.Attribute() | ast.Subscript() | ast.Slice():
            parts = [(child, targets) for child in ast.iter_child_nodes(node)]
        case _:
            parts = [(child, ()) for child in ast.iter_child_nodes(node)]
    for child, going_to in parts:
        yield from _uses(functions, index, child, going_to)


def _assigned(index: int, stores: list[ast.expr], value: ast.expr) -> list[tuple[ast.AST, tuple[_Variable, ...]]]:
    """Return the parts of an assignment that are read, each with the variables that receive it."""
    pairs = element_pairs(stores[0], value)
    if pairs and len(stores) == 1:
        return [part for store, item in pairs for part in _assigned(index, [store], item)]
    leaves = [leaf for store in stores for leaf in unpacked(store)]
    variables = tuple((index, leaf.id) for leaf in leaves if isinstance(leaf, ast.Name))
    if len(variables) == len(leaves):
        return [(value, variables)]
    return [(value, ()), *((store, ()) for store in stores)]


def _passed(
    functions: Sequence[FunctionSource], index: int, call: ast.Call
) -> list[tuple[ast.AST, tuple[_Variable, ...]]]:
    """Return the arguments of a call, each with the helper's parameter that receives it."""
    helper = helper_of(call, functions, index)
    bound = bind(call, helper[1]) if helper else None
    if helper is None or bound is None:
        return [(child, ()) for child in ast.iter_child_nodes(call)]
    parts: list[tuple[ast.AST, tuple[_Variable, ...]]] = [(call.func, ())]
    return [*parts, *((value, ((helper[0], name),)) for name, value in bound.items())]
