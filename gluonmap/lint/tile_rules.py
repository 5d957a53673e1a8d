"""The rule about tiles: a side that is a number in the text, while other sides are parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gluonmap.lint.findings import LintFinding
from gluonmap.lint.flat_trees import Body, argument, last_name, listed
from gluonmap.lint.linted_file import LintedFile

_SMALLEST = 64
"""Shorter literal sides are mostly parts of a format: bits of a word, values under one scale."""
_BLOCK = re.compile(r"^B[A-Z]$|BLOCK|TILE", re.IGNORECASE)
_SHAPES = {
    "zeros": ("shape", 0), "full": ("shape", 0), "make_block_ptr": ("block_shape", 4),
    "make_tensor_descriptor": ("block_shape", 3), "allocate_shared_memory": ("shape", 1),
}  # fmt: skip
"""Function -> its argument that is the shape of a tile."""


def check(subject: LintedFile, body: Body) -> Iterator[LintFinding]:
    """Yield the first tile with a side of fixed size, in a kernel whose other sides are parameters."""
    found: list[tuple[ast.expr, int, str]] = []
    for node in body.nodes:
        match node:
            case ast.Call():
                found += _mixed(body, _shape(node))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                found += [*_stepped(left, right), *_stepped(right, left)]
    others = [name for name, constexpr in body.parameters.items() if constexpr and _BLOCK.search(name)]
    if found and others:
        first, size, _ = found[0]
        beside = list(dict.fromkeys(name for _, _, name in found if name)) or others
        yield subject.finding(
            "GM204",
            first,
            f"a tile of {body.function.name} has a side of {size} by a number in the text, beside {listed(beside[:3])}"
            ": no tuner can turn it",
            f"make it a constexpr parameter, and give {size} at the launch",
            body.function.name,
        )


def _shape(call: ast.Call) -> list[ast.expr]:
    known = _SHAPES.get(last_name(call))
    shape = argument(call, *known) if known else None
    return shape.elts if isinstance(shape, ast.Tuple | ast.List) else []


def _mixed(body: Body, sides: list[ast.expr]) -> Iterator[tuple[ast.expr, int, str]]:
    """Yield the numbers among the sides of a tile that has a parameter for another, and which."""
    knobs = [side.id for side in sides if isinstance(side, ast.Name) and body.parameters.get(side.id)]
    for side in sides:
        if knobs and (size := _size(side)) >= _SMALLEST:
            yield side, size, knobs[0]


def _stepped(step: ast.expr, offsets: ast.expr) -> Iterator[tuple[ast.expr, int, str]]:
    """Yield the number in `place * 128 + arange(0, 128)`."""
    end = argument(offsets, "end", 1) if isinstance(offsets, ast.Call) and last_name(offsets) == "arange" else None
    factors = [step.left, step.right] if isinstance(step, ast.BinOp) and isinstance(step.op, ast.Mult) else []
    if end is not None and (size := _size(end)) >= _SMALLEST and size in map(_size, factors):
        yield end, size, ""


def _size(node: ast.expr) -> int:
    """Return a whole number as written; 0: it is none."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0
