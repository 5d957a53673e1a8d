"""One file that definitions are copied from, and the text that is copied from it."""

from __future__ import annotations

import ast
import copy
import importlib.machinery
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from gluonmap.model.errors import UsageError
from gluonmap.repro.statements import bound_names, imported_names, is_left_out, touched_names
from gluonmap.source import syntax


@dataclass(eq=False)
class CopiedFile:
    """One file and the statements copied from it. A folder without `__init__.py` is a file that binds nothing."""

    path: Path
    name: str
    """Dotted name, as in an import."""
    entry: str = ""
    """Name of the kernel, if this file defines it."""
    wanted: dict[int, None] = field(default_factory=dict)
    """Positions of the statements that the kernel reaches."""
    glue: dict[int, dict[str, None]] = field(default_factory=dict)
    """Position of an import -> statements that replace it."""
    imports: dict[str, CopiedFile] = field(default_factory=dict)
    """Modules that the copied statements import from."""

    @property
    def package(self) -> str:
        is_package = self.path.name == "__init__.py" or self.path.is_dir()
        return self.name if is_package else self.name.rpartition(".")[0]

    @property
    def shown(self) -> str:
        parts = len(self.name.split(".")) + (self.path.name == "__init__.py")
        return "/".join(self.path.parts[-parts:])

    @cached_property
    def text(self) -> str:
        return "" if self.path.is_dir() else syntax.text_of(self.path)

    @cached_property
    def tree(self) -> ast.Module:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"no script: {self.path} is no Python that this interpreter reads: {error}.") from error

    @cached_property
    def postponed(self) -> bool:
        return any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and "annotations" in imported_names(node)
            for node in self.tree.body
        )

    @cached_property
    def bindings(self) -> dict[str, list[int]]:
        """Name -> the positions of the statements that bind or change it."""
        found: dict[str, list[int]] = {}
        for place, node in enumerate(self.tree.body):
            if not is_left_out(node):
                for name in dict.fromkeys(bound_names(node)):
                    found.setdefault(name, []).append(place)
        return found

    @cached_property
    def touches(self) -> dict[str, list[int]]:
        """Name -> positions of the statements that change its value in place: `TABLE["x"] = 1`, `TABLE.update(…)`."""
        found: dict[str, list[int]] = {}
        for place, node in enumerate(self.tree.body):
            for name in dict.fromkeys(touched_names(node)):
                found.setdefault(name, []).append(place)
        return found

    @cached_property
    def stars(self) -> list[int]:
        """The positions of `from … import *`."""
        return [
            i
            for i, node in enumerate(self.tree.body)
            if isinstance(node, ast.ImportFrom) and "*" in imported_names(node)
        ]

    def at(self, node: ast.AST) -> str:
        return f"{self.shown}:{getattr(node, 'lineno', 1)}"

    def statement(self, place: int) -> ast.stmt:
        """Return the statement. A kernel loses the decorators and the `repr` that a compile does not see."""
        node = self.tree.body[place]
        if not isinstance(node, ast.FunctionDef):
            return node
        decorators = [without_repr(d) for d in node.decorator_list]
        if node.name == self.entry and (jit := [i for i, d in enumerate(decorators) if last_name(d) == "jit"]):
            decorators = [d for i, d in enumerate(decorators) if i >= jit[0] or last_name(d) == "heuristics"]
        node = copy.copy(node)
        node.decorator_list = decorators
        return node

    def written(self, place: int) -> str:
        """Return the text of the statement in the file, with its comments."""
        node = self.tree.body[place]
        neighbours = self.tree.body[max(0, place - 1) : place] + self.tree.body[place + 1 : place + 2]
        if any(o.lineno <= (node.end_lineno or 0) and node.lineno <= (o.end_lineno or 0) for o in neighbours):
            return ast.unparse(self.statement(place))
        lines = self.text.splitlines()[node.lineno - 1 : node.end_lineno]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            kept = self.statement(place)
            assert isinstance(kept, ast.FunctionDef | ast.ClassDef)
            decorators = [ast.get_source_segment(self.text, d) or ast.unparse(d) for d in kept.decorator_list]
            lines = [*(f"@{text}" for text in decorators), *lines]
        return "\n".join(line.rstrip() for line in lines)


def find_file(dotted: str, path: Sequence[str]) -> Path | None:
    """Return the Python file of a module, or its folder, or None. An import would execute its parent packages."""
    folders: Sequence[str] = path
    *packages, last = dotted.split(".")
    for name in packages:
        spec = importlib.machinery.PathFinder.find_spec(name, folders)
        if spec is None or spec.submodule_search_locations is None:
            return None
        folders = list(spec.submodule_search_locations)
    spec = importlib.machinery.PathFinder.find_spec(last, folders)
    if spec and spec.origin is None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def in_order(home: CopiedFile) -> list[CopiedFile]:
    """Return the modules, each after those that it imports from."""
    found: dict[str, CopiedFile] = {}
    entered: set[str] = set()

    def enter(module: CopiedFile) -> None:
        if module.name not in entered:
            entered.add(module.name)
            for other in module.imports.values():
                enter(other)
            found[module.name] = module

    enter(home)
    return list(found.values())


def section_of(module: CopiedFile) -> str:
    """Return the text that is copied from one file, in its order."""
    parts: list[tuple[bool, str]] = []
    for place in sorted({*module.wanted, *module.glue}):
        large = isinstance(module.tree.body[place], ast.FunctionDef | ast.ClassDef)
        text = module.written(place) if place in module.wanted else "\n".join(module.glue[place])
        parts.append((large, text))
    text = ""
    for i, (large, part) in enumerate(parts):
        text += ("\n\n\n" if large or parts[i - 1][0] else "\n") if i else ""
        text += part
    return text


def environment_reads(module: CopiedFile) -> Iterator[str]:
    for place in module.wanted:
        for node in ast.walk(module.statement(place)):
            if isinstance(node, ast.Attribute | ast.Name) and syntax.dotted(node) in (
                "os.environ",
                "os.getenv",
                "environ",
            ):
                yield module.at(node)


def last_name(decorator: ast.expr) -> str:
    """Return the last part of a decorator's name: "jit" of `@gluon.jit` and of `@triton.jit(debug=True)`."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return syntax.dotted(called).rpartition(".")[2]


def without_repr(decorator: ast.expr) -> ast.expr:
    """Return a jit decorator without its `repr`, which only names the program."""
    if (
        not isinstance(decorator, ast.Call)
        or last_name(decorator) != "jit"
        or all(k.arg != "repr" for k in decorator.keywords)
    ):
        return decorator
    kept = [k for k in decorator.keywords if k.arg != "repr"]
    return ast.Call(decorator.func, decorator.args, kept) if decorator.args or kept else decorator.func
