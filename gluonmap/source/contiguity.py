"""Strides of a kernel that could be 1, as its text shows.

An access is contiguous along an index vector that is added without a stride:
`x_ptr + rows[:, None] * stride_m + columns[None, :]` is contiguous along the columns; `stride_m` separates the rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gluonmap.model.inspection import FunctionSource
from gluonmap.source import syntax

DEPTH = 8
"""Number of variables in a chain that are followed."""


def open_strides(functions: Sequence[FunctionSource], strides: Sequence[str]) -> tuple[str, ...]:
    """Return those of the kernel's `strides` that could be 1 at a launch: every index in their sums has a stride.

    The parts of an access may be elsewhere than in a sum (a helper, a descriptor); such a stride counts as open.
    """
    sums = [each for each in _sums(functions) if each.strides]
    closed = {name for each in sums if each.contiguous for name in each.strides}
    scalar = {name for each in sums for name in each.strides}
    turned = {name for each in sums for name in each.vectors}
    return tuple(name for name in strides if name not in closed and (name in turned or name not in scalar))


def likely_units(functions: Sequence[FunctionSource], strides: Sequence[str]) -> tuple[str, ...]:
    """Return the open strides that multiply an index along the last dimension and along no other."""
    sums = list(_sums(functions))
    rows = {name for each in sums for name in each.rows}
    turned = {name for each in sums for name in each.vectors}
    return tuple(name for name in open_strides(functions, strides) if name in turned - rows)


class _Sum:
    """Terms of one sum: the parameters that are factors in it, and what they multiply."""

    def __init__(self) -> None:
        self.contiguous = False
        """An index vector is a term without a factor."""
        self.strides: set[str] = set()
        self.vectors: set[str] = set()
        """Strides that multiply an index vector."""
        self.rows: set[str] = set()
        """Strides that multiply an index vector along another dimension than the last."""


def _sums(functions: Sequence[FunctionSource]) -> Iterator[_Sum]:
    node = syntax.definition(functions[0].source) if functions else None
    if node is None:
        return
    text = _Text(node)
    for value in _outside_comparisons(node):
        match value:
            case ast.BinOp(op=ast.Add()):
                found = _Sum()
                for term in text.terms(value, 0):
                    text.note(term, found)
                yield found
            case ast.List(elts=[*distances, ast.Constant(value=1)]):  # strides of a descriptor, a block pointer
                found = _Sum()
                found.contiguous = True
                found.strides = {each.id for each in distances if isinstance(each, ast.Name)}
                yield found


def _outside_comparisons(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Compare):
            yield child
            yield from _outside_comparisons(child)


class _Text:
    """A function's parameters, and the expressions that its variables are assigned."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.parameters = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
        self.made: dict[str, ast.expr] = {}
        for item in ast.walk(node):
            match item:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.made.setdefault(name, value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.made.setdefault(name, value)

    def terms(self, node: ast.expr, depth: int) -> Iterator[ast.expr]:
        """Yield the terms of a sum, including those of the variables in it."""
        match node:
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                yield from self.terms(left, depth)
                yield from self.terms(right, depth)
            case ast.Name(id=name) if name in self.made and name not in self.parameters and depth < DEPTH:
                yield from self.terms(self.made[name], depth + 1)
            case _:
                yield node

    def note(self, term: ast.expr, found: _Sum) -> None:
        """Record in `found` what one term shows."""
        below = list(self._below(term, 0))
        vector = any(isinstance(node, ast.Call) and _last(node) == "arange" for node in below)
        if not any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) for node in _outer(term, self)):
            found.contiguous |= vector
            return
        factors = {node.id for node in below if isinstance(node, ast.Name) and node.id in self.parameters}
        found.strides |= factors
        if vector:
            found.vectors |= factors
            found.rows |= factors if any(map(_is_row, below)) else set()

    def _below(self, node: ast.AST, depth: int) -> Iterator[ast.AST]:
        yield node
        if isinstance(node, ast.Name):
            if node.id in self.made and node.id not in self.parameters and depth < DEPTH:
                yield from self._below(self.made[node.id], depth + 1)
            return
        for child in ast.iter_child_nodes(node):
            yield from self._below(child, depth)


def _outer(term: ast.expr, text: _Text) -> Iterator[ast.expr]:
    """Yield a term, and what its views, hints and variables refer to, down to the first operation that computes."""
    for _ in range(DEPTH):
        yield term
        match term:
            case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(attr="to", value=value)):
                term = value
            case ast.Call(args=[first, *_]) if _last(term) in ("multiple_of", "max_contiguous", "expand_dims"):
                term = first
            case ast.BinOp(op=ast.Mod(), left=left):
                term = left
            case ast.Name(id=name) if name in text.made and name not in text.parameters:
                term = text.made[name]
            case _:
                return


def _last(call: ast.Call) -> str:
    return syntax.dotted(call.func).rpartition(".")[2]


def _is_row(node: ast.AST) -> bool:
    """Return whether the node is an index along another dimension than the last, such as `[:, None]`."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=[*_, ast.Constant(value=None)])):
            return True
    return False
