"""The rule about tiles: a side that is a number in the text, while other sides are parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gluonmap.lint.findings import LintFinding
from gluonmap.lint.flat_trees import Body
from gluonmap.lint.linted_file import LintedFile
from gluonmap.lint.nodes import argument, last_name
from gluonmap.model.wording import listed_briefly

_SMALLEST = 64
"""Smallest literal side that is a finding. Smaller ones mostly belong to a format: bits of a word, for example."""
_BLOCK = re.compile(r"^B[A-Z]$|BLOCK|TILE", re.IGNORECASE)
_SHAPES = {
    "zeros": ("shape", 0), "full": ("shape", 0), "make_block_ptr": ("block_shape", 4),
    "make_tensor_descriptor": ("block_shape", 3), "allocate_shared_memory": ("shape", 1),
}  # fmt: skip
"""Function -> name and position of its argument that is the shape of a tile."""


def check(subject: LintedFile, body: Body) -> Iterator[LintFinding]:
    """Yield the first tile with a side of fixed size, in a kernel whose other sides are parameters."""
    literals: list[tuple[ast.expr, int, str]] = []
    for node in body.nodes:
        match node:
            case ast.Call():
                literals += _mixed(body, _shape(node))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                literals += [*_stepped(left, right), *_stepped(right, left)]
    others = [name for name, constexpr in body.parameters.items() if constexpr and _BLOCK.search(name)]
    if literals and others:
        first, size, _ = literals[0]
        tunable = list(dict.fromkeys(name for _, _, name in literals if name)) or others
        yield subject.finding(
            "GM204",
            first,
            f"a tile of {body.function.name} has a literal side of {size} next to {listed_briefly(tunable[:3])}"
            ": no tuner can change it",
            f"make it a constexpr parameter, and give {size} at the launch",
            body.function.name,
        )


def _shape(call: ast.Call) -> list[ast.expr]:
    known = _SHAPES.get(last_name(call))
    shape = argument(call, *known) if known else None
    return shape.elts if isinstance(shape, ast.Tuple | ast.List) else []


def _mixed(body: Body, sides: list[ast.expr]) -> Iterator[tuple[ast.expr, int, str]]:
    """Yield the literal sides of a tile that has a parameter for another side, with that parameter."""
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
    """Return the value of an integer literal; 0 for any other expression."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0
