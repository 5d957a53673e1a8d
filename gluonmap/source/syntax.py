"""Syntax of a kernel's text: trees, their hashes, definitions, dotted names, calls and assignments.

Nothing here imports or executes a kernel.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from gluonmap.model.inspection import FunctionSource

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def tree_hash(text: str | bytes) -> str:
    """Return 16 hex digits that change only with the code: not with comments, docstrings, blank lines or positions.

    Bytes are decoded as Python decodes a file, by their byte-order mark or declared encoding. Text that does not parse
    is hashed as it is.
    """
    try:
        content = "".join(_dump(ast.parse(text))).encode("utf-8", "surrogatepass")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        content = b"text:" + (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return hashlib.sha256(content).hexdigest()[:16]


def text_of(path: Path) -> str:
    """Return the text of a Python file, decoded as Python decodes it."""
    data = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding, errors="replace")
    except (SyntaxError, LookupError):  # no such encoding, or one that makes no text (rot13)
        return data.decode("utf-8", errors="replace")


def _dump(node: object) -> Iterator[str]:
    # ast.dump prints empty fields in another way in Python 3.13 than in 3.12, so that hashes would differ.
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if (value not in (None, []) and name not in ("kind", "type_comment")) or name == "value":
                yield f" {name}="
                yield from _dump(value)
        yield ")"
    elif isinstance(node, list):
        for item in node:
            if not is_comment(item):
                yield from _dump(item)
    else:
        yield f"{type(node).__name__}:{node!r}"


def is_comment(node: object) -> bool:
    """Return whether the node is a string used as a statement: a docstring or a comment in quotes."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@lru_cache(maxsize=512)
def definition(source: str) -> Definition | None:
    """Return the `def` of a function's text; None if it is no function. Do not change the tree: it is shared."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return next((node for node in body if isinstance(node, Definition)), None)


def dotted(node: ast.AST) -> str:
    """Return the name `a.b.c` as written, or "" if the node is no such name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def bind(call: ast.Call, callee: Definition) -> dict[str, ast.expr] | None:
    """Return the callee's parameters -> the call's arguments; None where a `*` on either side hides the order."""
    signature = callee.args
    names = [argument.arg for argument in (*signature.posonlyargs, *signature.args)]
    known = {*names, *(argument.arg for argument in signature.kwonlyargs)}
    if names and names[0] == "self" and isinstance(call.func, ast.Attribute):
        names = names[1:]
    if len(call.args) > len(names) or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    if any(keyword.arg not in known for keyword in call.keywords):
        return None
    given = dict(zip(names, call.args, strict=False))
    return given | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def helper_of(call: ast.Call, functions: Sequence[FunctionSource], caller: int) -> tuple[int, Definition] | None:
    """Return the jit function that the call reaches, with its index; None if the inspection does not know it."""
    index = functions[caller].calls.get(dotted(call.func))
    if index is None or not 0 <= index < len(functions):
        return None
    node = definition(functions[index].source)
    return None if node is None else (index, node)


def parameter_names(node: Definition) -> list[str]:
    """Return the names of a function's parameters in order, without `*args` and `**kwargs`."""
    return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the variables that a statement sets, each with the expression that its value comes from."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _paired(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield from _paired(target, value)
        case ast.For(target=target, iter=value):
            yield from _paired(target, value)


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    pairs = element_pairs(target, value)
    for left, right in pairs:
        yield from _paired(left, right)
    if not pairs:
        yield from ((leaf.id, value) for leaf in unpacked(target) if isinstance(leaf, ast.Name))


def element_pairs(store: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return `a, b = x, y` as pairs of a target and its value; no pairs for any other assignment."""
    if isinstance(store, ast.Tuple) and isinstance(value, ast.Tuple) and len(store.elts) == len(value.elts):
        return list(zip(store.elts, value.elts, strict=True))
    return []


def unpacked(store: ast.expr) -> Iterator[ast.expr]:
    """Yield the single targets of an assignment's left side: names, subscripts and attributes."""
    if isinstance(store, (ast.Tuple, ast.List)):
        for item in store.elts:
            yield from unpacked(item)
    else:
        yield store.value if isinstance(store, ast.Starred) else store
