"""Lines of code in a function's text, counted without comments and blank lines, and where they are in a file today."""

from __future__ import annotations

import ast
import textwrap
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from gluonmap.model.inspection import FunctionSource
from gluonmap.model.verdict import Location
from gluonmap.source.syntax import Definition, definition, is_comment, tree_hash


@lru_cache(maxsize=512)
def _code_lines(source: str) -> tuple[int, ...]:
    node = definition(source)
    if node is None:
        return (1,)
    lines = {node.lineno}
    pending: list[ast.AST] = [node.args, *([node.returns] if node.returns else []), *node.body]
    while pending:
        item = pending.pop()
        if not is_comment(item):
            lines.add(getattr(item, "lineno", node.lineno))
            pending.extend(ast.iter_child_nodes(item))
    return tuple(sorted(lines))


def code_line(source: str, line: int) -> int:
    """Return the rank of a line of `source` (counted from 1) among the lines that carry code, from 0 at the `def`.

    A line without code (a comment, a closing bracket) has the rank of the code above it.
    """
    return max(bisect_right(_code_lines(source), line) - 1, 0)


def physical_line(source: str, rank: int) -> int:
    """Return the line of `source`, counted from 1, that holds the code line `rank`.

    Raises:
        IndexError: the source has fewer lines of code.
    """
    if rank < 0:
        raise IndexError(rank)
    return _code_lines(source)[rank]


@lru_cache(maxsize=256)
def find_function(file_text: str, name: str, like: str = "") -> tuple[str, int] | None:
    """Return the dedented source of a function and the line of the file that it starts on, decorators included.

    `name` may be a method (`Outer.name`). If several functions have the name, the one with the code of `like` is taken,
    else the outermost, and of these the last.
    """
    try:
        module = ast.parse(file_text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [(depth, node) for depth, path, node in _functions_below(module) if path.endswith(f".{name}")]
    if not found:
        return None
    outermost = min(depth for depth, _ in found)
    sources = [source_of(node, file_text) for _, node in found]
    alike = [source for source in sources if like and tree_hash(source[0]) == tree_hash(like)]
    return alike[0] if alike else [s for s, (depth, _) in zip(sources, found, strict=True) if depth == outermost][-1]


def source_of(node: Definition, file_text: str) -> tuple[str, int]:
    """Return the dedented source of a function in a file's tree, and its first line, decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = file_text.splitlines(keepends=True)[first - 1 : node.end_lineno]
    return textwrap.dedent("".join(lines)), first


def _functions_below(node: ast.AST, depth: int = 0, path: str = "") -> Iterator[tuple[int, str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition | ast.ClassDef):
            inner = f"{path}.{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield depth, inner, child
            yield from _functions_below(child, depth + 1, inner)
        elif isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from _functions_below(child, depth, path)


def absolute_line(file_text: str, location: Location, like: str = "") -> int | None:
    """Return the line that `location` has in the present text of its file; None if the function or the line is gone.

    `like` is the function's recorded source, which distinguishes it from other functions of its name.
    """
    found = find_function(file_text, location.function, like)
    if found is None:
        return None
    source, first = found
    try:
        return first + physical_line(source, location.line) - 1
    except IndexError:
        return None


def place(function: FunctionSource, node: ast.AST) -> Location:
    """Return the location of a node of the function's tree."""
    return Location(function.name, function.file, code_line(function.source, getattr(node, "lineno", 1)))


def in_source_order(functions: Sequence[FunctionSource], places: Iterable[Location]) -> tuple[Location, ...]:
    """Return the locations in the order of the functions and their lines, each once."""
    rank = {(function.file, function.name): index for index, function in reversed(list(enumerate(functions)))}
    return tuple(sorted(set(places), key=lambda item: (rank[item.file, item.function], item.line)))
