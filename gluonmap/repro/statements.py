"""The names that a statement binds, changes and reads, from its syntax tree."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator

from gluonmap.source import syntax

Attributes = tuple[str, ...]
"""Chain of attributes that is read of a name: ("b", "c") of `a.b.c`."""


def imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names]


def bound_by(alias: ast.alias, node: ast.stmt) -> str:
    """Return the name that one part of an import binds."""
    if alias.asname:
        return alias.asname
    return alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name


def base_module(node: ast.ImportFrom, package: str) -> str:
    """Return the module that `from … import` names, relative ones from `package` on."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def imports_of(node: ast.AST, package: str) -> Iterator[tuple[str, str, str]]:
    """Yield, for an import, each name that it binds, the module that it names, and the dotted name that it takes."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield bound_by(alias, node), alias.name, alias.name if alias.asname else alias.name.partition(".")[0]
    elif isinstance(node, ast.ImportFrom):
        base = base_module(node, package)
        yield from ((bound_by(alias, node), base, f"{base}.{alias.name}") for alias in node.names)


def is_left_out(node: ast.stmt) -> bool:
    """Return whether an import of the file would skip the statement: it is for type checkers or for a script."""
    names = {syntax.dotted(n).rpartition(".")[2] for n in ast.walk(node.test)} if isinstance(node, ast.If) else set()
    return bool(names & {"TYPE_CHECKING", "__name__"})


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yield names of the module that a statement binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.Import() | ast.ImportFrom():
            yield from (name for alias in node.names if (name := bound_by(alias, node)) != "*")
            return
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case (
            ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name)
        ):
            yield name
    for child in ast.iter_child_nodes(node):
        yield from bound_names(child)


def touched_names(node: ast.AST) -> Iterator[str]:
    """Yield names of the module whose value a statement changes in place, as far as the text shows."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
            return
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            yield from _root(node)
        case ast.Expr(value=ast.Call(func=ast.Attribute() as called)):
            yield from _root(called)
    for child in ast.iter_child_nodes(node):
        yield from touched_names(child)


def _root(node: ast.AST) -> Iterator[str]:
    """Yield `a` of `a.b[c].d`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def read_names(node: ast.AST, postponed: bool) -> list[str]:
    """Return names of the module that a statement or an expression reads, in functions and classes too; each once.

    Triton reads annotations as text, so these count even where Python would not evaluate them.
    """
    tree = ast.parse(ast.unparse(node))
    found: dict[str, None] = {}
    tables = [symtable.symtable(ast.unparse(tree), "<kernel>", "exec")]
    for table in tables:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (top or symbol.is_global()):
                found[symbol.get_name()] = None
        tables.extend(table.get_children())
    if postponed:
        notes = [n.annotation for n in ast.walk(tree) if isinstance(n, ast.arg | ast.AnnAssign) and n.annotation]
        found |= {n.id: None for note in notes for n in ast.walk(note) if isinstance(n, ast.Name)}
    return list(found)


def attribute_paths(node: ast.AST, name: str) -> list[Attributes]:
    """Return the attributes that are read of a name; () where it is used by itself."""
    found: dict[Attributes, None] = {}
    inside: set[int] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute) and id(item) not in inside and syntax.dotted(item).split(".")[0] == name:
            found[tuple(syntax.dotted(item).split(".")[1:])] = None
            part: ast.expr = item
            while isinstance(part, ast.Attribute):
                part = part.value
                inside.add(id(part))
        elif isinstance(item, ast.Name) and item.id == name and id(item) not in inside:
            found[()] = None
    return list(found)
