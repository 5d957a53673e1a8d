"""Parts of syntax nodes: the name and the arguments of a call, the text of an expression."""

from __future__ import annotations

import ast

from gluonmap.lint.kernel_functions import Module
from gluonmap.source.syntax import dotted

_HINTS = ("multiple_of", "max_contiguous", "max_constancy", "expand_dims", "broadcast_to", "convert_layout", "cast")


def unwrapped(node: ast.AST) -> ast.expr | None:
    """Return `x` of `x[:, None]`, `x.to(t)` and `tl.multiple_of(x, 8)`; None for another expression."""
    match node:
        case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(attr="to" | "expand_dims", value=value)):
            return value
        case ast.Call(args=[first, *_]) if last_name(node) in _HINTS:
            return first
    return None


def last_name(call: ast.Call) -> str:
    """Return the last name of the called function: "load" of `tl.load(…)`, "store" of `ring.index(0).store(…)`."""
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def argument(call: ast.Call, name: str, place: int) -> ast.expr | None:
    """Return the argument of a call by its name, else by its place."""
    named = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    plain = call.args[place] if place < len(call.args) else None
    return named if named is not None else plain if not isinstance(plain, ast.Starred) else None


def written(node: ast.AST, most: int = 60) -> str:
    """Return an expression on one line, cut if it is long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def full_name(name: str, module: Module) -> str:
    """Return the full dotted name of a name in the file, by its imports."""
    first, _, rest = name.partition(".")
    origin, level, member = module.imports.get(first, (first, 0, ""))
    return "." * level + ".".join(part for part in (origin, member, rest) if part)


def call_name(call: ast.Call) -> str:
    """Return the dotted name of the called function; "" for another expression."""
    return dotted(call.func)
