"""The definitions that a kernel reaches in its file and in the files that it imports, as one text.

The text is read and nothing is imported. Names from Triton and the standard library stay imports; definitions from any
other file are copied. If a name allows neither, the script is refused: an incomplete script would mislead its reader.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gluonmap.model.errors import UsageError
from gluonmap.repro.copied_file import CopiedFile, environment_reads, find_file, in_order, section_of
from gluonmap.repro.statements import (
    Attributes,
    attribute_paths,
    base_module,
    bound_by,
    bound_names,
    imports_of,
    read_names,
)
from gluonmap.worker.reach import package_root

_NEVER = ("numpy", "torch")
"""Packages that are never copied, although Python files of them are on disk."""
_PLACE = ("__file__", "__path__", "__spec__")
"""Names whose value depends on the place of the file."""


class CopiedText(msgspec.Struct, frozen=True):
    """The text that was copied from one file."""

    file: str
    """Path of the file, starting with its package."""
    text: str


class Inlined(msgspec.Struct, frozen=True):
    """A kernel with all definitions that it reaches, as text."""

    kernel: str
    """Name of the kernel in the text."""
    plain: bool
    """The kernel is a decorated function; otherwise an expression makes it, perhaps with an autotuner around it."""
    imports: tuple[str, ...]
    """Import statements, of Triton and the standard library alone."""
    sections: tuple[CopiedText, ...]
    """Copied texts in the order in which they can be executed: the kernel's own file last."""
    names: frozenset[str]
    """All names that imports and sections bind."""
    postponed: bool
    """Annotations are not evaluated: the kernel's file has `from __future__ import annotations`."""
    surroundings: tuple[str, ...]
    """Places that read the environment: "file.py:12"."""


def inline(file: Path, kernel: str, expressions: Sequence[str] = (), path: Sequence[str] | None = None) -> Inlined:
    """Return the kernel of that name in `file`, with all definitions that it and `expressions` reach.

    `expressions` are evaluated in the kernel's module. `path` are the folders that are searched for other packages, by
    default `sys.path`.

    Raises:
        UsageError: a definition that the kernel reaches cannot be copied. The message names it.
    """
    return _Inliner(file, sys.path if path is None else path).inlined(kernel, expressions)


@dataclass(frozen=True)
class _Thing:
    """The thing that a name refers to, wherever it is bound: a definition in a file, a module, or an import."""

    owner: str
    """File that defines the thing; "": Triton or the standard library does."""
    name: str
    """Name in that file, or the dotted name of the import."""


class _Inliner:
    def __init__(self, file: Path, path: Sequence[str]) -> None:
        root = package_root(file)
        parts = file.with_suffix("").relative_to(root).parts
        self.path = [str(root), *path]
        self.home = CopiedFile(file, ".".join(parts))
        self.modules = {self.home.name: self.home}
        self.imports: dict[str, None] = {}
        self.owners: dict[str, _Thing] = {}
        self.known: dict[tuple[str, str, str], _Thing | None] = {}

    def inlined(self, kernel: str, expressions: Sequence[str]) -> Inlined:
        self.home.entry = kernel
        thing = self.need(self.home, kernel, [()])
        if thing is None or not thing.owner:
            raise UsageError(f"no script: {self.home.path} does not define {kernel}.")
        for text in expressions:
            self._needed_by(self.home, ast.parse(text, mode="eval").body)
        owner = next(m for m in self.modules.values() if str(m.path) == thing.owner)
        places = owner.bindings[thing.name]
        order = in_order(self.home)
        return Inlined(
            kernel=thing.name,
            plain=all(isinstance(owner.tree.body[place], ast.FunctionDef) for place in places),
            imports=tuple(sorted(self.imports)),
            sections=tuple(CopiedText(m.shown, text) for m in order if (text := section_of(m))),
            names=frozenset(self.owners),
            postponed=self._postponed(order),
            surroundings=tuple(at for m in order for at in environment_reads(m)),
        )

    # ---- names -----------------------------------------------------------------------------------------------------

    def need(self, module: CopiedFile, name: str, paths: Iterable[Attributes]) -> _Thing | None:
        """Copy or import the thing that `name` refers to in `module`; None if nothing binds the name.

        `paths` are the attributes of it that are read. An unbound name is left as it is: it is unbound in the
        kernel's file too.
        """
        thing: _Thing | None = None
        for path in paths:
            key = (module.name, name, path[0] if path else "")
            if key not in self.known:
                self.known[key] = None  # a circular import finds None
                self.known[key] = self._take(module, name, path)
            thing = self.known[key] or thing
        return thing

    def _take(self, module: CopiedFile, name: str, path: Attributes) -> _Thing | None:
        if name in _PLACE:
            raise UsageError(f"no script: {module.shown} reads {name}, whose value depends on where the file lies.")
        places = module.bindings.get(name)
        if not places:
            return self._of_a_star(module, name, path)
        own = _Thing(str(module.path), name)
        thing: _Thing | None = None
        for place in places:
            node = module.tree.body[place]
            if isinstance(node, ast.Import | ast.ImportFrom):
                thing = self._imported(module, place, node, name, path)
            else:
                thing = own
                self.known[(module.name, name, path[0] if path else "")] = own
                self._copy(module, place)
        if thing == own:
            for place in module.touches.get(name, []):
                self._copy(module, place)
        return thing

    def _copy(self, module: CopiedFile, place: int) -> None:
        """Copy a statement, and all definitions that it reaches."""
        if place in module.wanted:
            return
        module.wanted[place] = None
        node = module.statement(place)
        inner_imports: dict[str, _Thing] = {}
        for inner in ast.walk(node):
            for name, base, what in imports_of(inner, module.package):
                if self._kind(base) != "kept":
                    raise UsageError(
                        f"no script: {module.at(inner)} imports {what} within a block; it can be copied only where it "
                        "is imported at the top of the file."
                    )
                inner_imports[name] = _Thing("", what)
        for name in bound_names(node):
            self._claim(name, inner_imports.get(name) or _Thing(str(module.path), name), module.at(node))
        self._needed_by(module, node)

    def _needed_by(self, module: CopiedFile, node: ast.AST) -> None:
        for name in read_names(node, module.postponed):
            self.need(module, name, attribute_paths(node, name))

    def _claim(self, name: str, thing: _Thing, at: str) -> None:
        other = self.owners.setdefault(name, thing)
        if other != thing:
            where = other.owner or "an import"
            raise UsageError(
                f"no script: {name} ({at}) is the name of something else too ({where}), and one file cannot hold both. "
                "Rename one of the two."
            )

    # ---- imports ---------------------------------------------------------------------------------------------------

    def _kind(self, dotted: str) -> str:
        """Return "kept", "copied" or "refused": the way in which an import of a module enters the script."""
        top = dotted.partition(".")[0]
        if top == "triton" or top in sys.stdlib_module_names:
            return "kept"
        return "refused" if top in _NEVER else "copied"

    def _imported(
        self, module: CopiedFile, place: int, node: ast.Import | ast.ImportFrom, name: str, path: Attributes
    ) -> _Thing | None:
        """Copy or keep the thing that an import binds to `name`."""
        aliases = [alias for alias in node.names if bound_by(alias, node) == name]
        alias = aliases[0]
        if isinstance(node, ast.Import):
            dotted = alias.name if alias.asname else alias.name.partition(".")[0]
            if self._kind(dotted) == "copied":
                return self._member(module, place, node, name, self._module(dotted, module, node, path), path)
            return self._kept(module, node, [f"import {ast.unparse(a)}" for a in aliases], name, dotted, path)
        base = base_module(node, module.package)
        if self._kind(base) != "copied":
            line = f"from {base} import {ast.unparse(alias)}"
            return self._kept(module, node, [line], name, f"{base}.{alias.name}")
        other = self._module(base, module, node, (alias.name, *path))
        if self._has(other, alias.name) and not self._below(other, alias.name):
            return self._alias(module, place, node, name, other, alias.name, path)
        if other.package != other.name:
            raise _undefined(module, node, alias.name, other)
        below = self._module(f"{base}.{alias.name}", module, node, path)
        return self._member(module, place, node, name, below, path)

    def _kept(
        self, module: CopiedFile, node: ast.stmt, lines: Sequence[str], name: str, dotted: str, path: Attributes = ()
    ) -> _Thing:
        """Keep an import from Triton or the standard library unchanged."""
        if self._kind(dotted) == "refused":
            raise UsageError(
                f"no script: the kernel reaches {'.'.join((dotted, *path[:1]))} ({module.at(node)}), and a script that "
                f"needs Triton alone cannot have {dotted.partition('.')[0]}."
            )
        thing = _Thing("", dotted)
        self._claim(name, thing, module.at(node))
        self.imports |= dict.fromkeys(lines)
        return thing

    def _of_a_star(self, module: CopiedFile, name: str, path: Attributes) -> _Thing | None:
        for place in module.stars:
            node = module.tree.body[place]
            assert isinstance(node, ast.ImportFrom)
            base = base_module(node, module.package)
            if self._kind(base) == "kept":
                if not hasattr(builtins, name):
                    self.imports[f"from {base} import *"] = None
                continue
            other = self._module(base, module, node, (name,))
            if self._has(other, name):
                return self._alias(module, place, node, name, other, name, path)
        return None

    def _alias(
        self,
        module: CopiedFile,
        place: int,
        node: ast.stmt,
        name: str,
        other: CopiedFile,
        original: str,
        path: Attributes,
    ) -> _Thing:
        """Copy the definition `original` of another file, which this file calls `name`."""
        module.imports[other.name] = other
        thing = self.need(other, original, [path])
        if thing is None:
            raise _undefined(module, node, original, other)
        called = thing.name or original if thing.owner else original
        if called != name:
            module.glue.setdefault(place, {})[f"{name} = {called}"] = None
        self._claim(name, thing, module.at(node))
        return thing

    def _member(
        self, module: CopiedFile, place: int, node: ast.stmt, name: str, other: CopiedFile, path: Attributes
    ) -> _Thing:
        """Return a copied module, here called `name`. The names that are read of it become its attributes again."""
        if not path:
            raise UsageError(
                f"no script: {module.shown} uses the module {other.name} ({module.at(node)}) other than by attributes."
            )
        thing = _Thing(str(other.path), "")
        if "." not in name:
            self._claim(name, thing, module.at(node))
        self._kept(module, node, ["import types"], "types", "types")
        glue = module.glue.setdefault(place, {})
        glue[f'{name} = types.ModuleType("{other.name}")'] = None
        module.imports[other.name] = other
        if self._has(other, path[0]) and not self._below(other, path[0]):
            member = self.need(other, path[0], [path[1:]])
            called = (member.name if member and member.owner else "") or path[0]
            glue[f"{name}.{path[0]} = {called}"] = None
        else:
            below = self._module(f"{other.name}.{path[0]}", module, node, path[1:])
            self._member(module, place, node, f"{name}.{path[0]}", below, path[1:])
        return thing

    def _below(self, module: CopiedFile, name: str) -> bool:
        """Return whether a package binds the name to its own module of that name, as by `from . import name`."""
        nodes = [module.tree.body[place] for place in module.bindings.get(name, [])]
        return any(isinstance(n, ast.ImportFrom) and base_module(n, module.package) == module.name for n in nodes)

    def _has(self, module: CopiedFile, name: str) -> bool:
        """Return whether a file binds the name, itself or by `import *`."""
        if name in module.bindings:
            return True
        for place in module.stars:
            node = module.tree.body[place]
            assert isinstance(node, ast.ImportFrom)
            base = base_module(node, module.package)
            if self._kind(base) == "copied" and self._has(self._module(base, module, node, (name,)), name):
                return True
        return False

    def _module(self, dotted: str, importer: CopiedFile, node: ast.stmt, path: Attributes) -> CopiedFile:
        """Return the file of a module, found without importing its package."""
        if dotted not in self.modules:
            file = find_file(dotted, self.path)
            if file is None:
                raise UsageError(
                    f"no script: the kernel reaches {'.'.join((dotted, *path[:1]))} ({importer.at(node)}), and no "
                    f"Python file of {dotted} is found to copy it from."
                )
            self.modules[dotted] = CopiedFile(file, dotted)
        return self.modules[dotted]

    # ---- the file --------------------------------------------------------------------------------------------------

    def _postponed(self, order: Sequence[CopiedFile]) -> bool:
        """Return whether the text's annotations are not evaluated; where files differ the kernel's own decides."""
        for module in order:
            classes = [n for place in module.wanted if isinstance(n := module.tree.body[place], ast.ClassDef)]
            if classes and module.postponed != self.home.postponed:
                raise UsageError(
                    f"no script: {module.at(classes[0])} and {self.home.shown} differ in `from __future__ import "
                    "annotations`, and a class depends on it."
                )
        return self.home.postponed


def _undefined(module: CopiedFile, node: ast.stmt, name: str, other: CopiedFile) -> UsageError:
    return UsageError(f"no script: {module.at(node)} imports {name}, which {other.shown} does not define.")
