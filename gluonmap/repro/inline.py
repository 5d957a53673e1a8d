"""The definitions that a kernel reaches, out of its file and of the files it imports, as one text.

Text is read and nothing is imported. What Triton and the standard library bring stays an import; what comes from any
other file is copied. What can be neither is refused: a script that only seems complete would mislead who gets it.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib.machinery
import symtable
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from gluonmap.model.errors import UsageError
from gluonmap.source import syntax
from gluonmap.worker.reach import package_root

_NEVER = ("numpy", "torch")
"""Packages that are on disk as Python and cannot be copied out of it."""
_PLACE = ("__file__", "__path__", "__spec__")
"""Names that say where a file lies: another place, another value."""

Attributes = tuple[str, ...]
"""Attributes that are read of a name, one after the other."""


class Section(msgspec.Struct, frozen=True):
    """What was taken out of one file."""

    file: str
    """As its package calls it."""
    text: str


class Inlined(msgspec.Struct, frozen=True):
    """A kernel with all that it reaches."""

    kernel: str
    """Its name in the text."""
    plain: bool
    """It is a function under its own decorators; else an expression made it, perhaps with an autotuner around it."""
    imports: tuple[str, ...]
    """Statements, from Triton and the standard library alone."""
    sections: tuple[Section, ...]
    """In an order in which they can be executed: the kernel's own file last."""
    names: frozenset[str]
    """All that imports and sections bind."""
    postponed: bool
    """Annotations are not evaluated: `from __future__ import annotations` stands in the kernel's file."""
    surroundings: tuple[str, ...]
    """Places that read the environment: "file.py:12"."""


def inline(file: Path, kernel: str, expressions: Sequence[str] = (), path: Sequence[str] | None = None) -> Inlined:
    """The kernel of that name in `file`, with what it and the `expressions` over its module reach.

    `path`: folders that other packages are looked for in, by default this interpreter's.

    Raises:
        UsageError: something that it reaches cannot be copied, and what.
    """
    return _Inliner(file, sys.path if path is None else path).inlined(kernel, expressions)


@dataclass(frozen=True)
class _Thing:
    """What a name means, wherever it is bound: a definition of a file, a module, or something imported."""

    owner: str
    """The file that defines it; "": it is imported from Triton or the standard library."""
    name: str
    """There; or the dotted name of what is imported."""


@dataclass(eq=False)
class _Module:
    """One file, read. A folder without `__init__.py` is a file that binds nothing."""

    path: Path
    name: str
    """Dotted, as it is imported."""
    entry: str = ""
    """The kernel, if it is this file's."""
    wanted: dict[int, None] = field(default_factory=dict)
    """Statements that are reached, by their place."""
    glue: dict[int, dict[str, None]] = field(default_factory=dict)
    """By the place of an import: statements that do what it did."""
    imports: dict[str, _Module] = field(default_factory=dict)
    """Modules that something reached comes from."""

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
            isinstance(node, ast.ImportFrom) and node.module == "__future__" and "annotations" in _names(node)
            for node in self.tree.body
        )

    @cached_property
    def bindings(self) -> dict[str, list[int]]:
        """Name -> the places of the statements that bind or change it."""
        found: dict[str, list[int]] = {}
        for place, node in enumerate(self.tree.body):
            if not _is_left_out(node):
                for name in dict.fromkeys(_bound(node)):
                    found.setdefault(name, []).append(place)
        return found

    @cached_property
    def touches(self) -> dict[str, list[int]]:
        """Name -> the places of the statements that change what it is bound to: `TABLE["x"] = 1`, `TABLE.update(…)`."""
        found: dict[str, list[int]] = {}
        for place, node in enumerate(self.tree.body):
            for name in dict.fromkeys(_touched(node)):
                found.setdefault(name, []).append(place)
        return found

    @cached_property
    def stars(self) -> list[int]:
        """The places of `from … import *`."""
        return [i for i, node in enumerate(self.tree.body) if isinstance(node, ast.ImportFrom) and "*" in _names(node)]

    def at(self, node: ast.AST) -> str:
        return f"{self.shown}:{getattr(node, 'lineno', 1)}"

    def statement(self, place: int) -> ast.stmt:
        """The statement; of a kernel without what a compile does not see: autotuner, launcher, the program's name."""
        node = self.tree.body[place]
        if not isinstance(node, ast.FunctionDef):
            return node
        decorators = [_unnamed(d) for d in node.decorator_list]
        if node.name == self.entry and (jit := [i for i, d in enumerate(decorators) if _tail(d) == "jit"]):
            decorators = [d for i, d in enumerate(decorators) if i >= jit[0] or _tail(d) == "heuristics"]
        node = copy.copy(node)
        node.decorator_list = decorators
        return node

    def written(self, place: int) -> str:
        """The statement as it stands in the file, comments and all."""
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


class _Inliner:
    def __init__(self, file: Path, path: Sequence[str]) -> None:
        root = package_root(file)
        parts = file.with_suffix("").relative_to(root).parts
        self.path = [str(root), *path]
        self.home = _Module(file, ".".join(parts))
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
        order = _in_order(self.home)
        return Inlined(
            kernel=thing.name,
            plain=all(isinstance(owner.tree.body[place], ast.FunctionDef) for place in places),
            imports=tuple(sorted(self.imports)),
            sections=tuple(Section(m.shown, text) for m in order if (text := _section(m))),
            names=frozenset(self.owners),
            postponed=self._postponed(order),
            surroundings=tuple(at for m in order for at in _surroundings(m)),
        )

    # ---- what a name means -----------------------------------------------------------------------------------------

    def need(self, module: _Module, name: str, paths: Iterable[Attributes]) -> _Thing | None:
        """Take what `name` means in `module`, of which `paths` are read; None where nothing binds it.

        A name that nothing binds is left as it is: the kernel's own file has done no better.
        """
        thing: _Thing | None = None
        for path in paths:
            key = (module.name, name, path[0] if path else "")
            if key not in self.known:
                self.known[key] = None  # a circle ends here
                self.known[key] = self._take(module, name, path)
            thing = self.known[key] or thing
        return thing

    def _take(self, module: _Module, name: str, path: Attributes) -> _Thing | None:
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

    def _copy(self, module: _Module, place: int) -> None:
        """Take a statement, and all that it reaches."""
        if place in module.wanted:
            return
        module.wanted[place] = None
        node = module.statement(place)
        inner_imports: dict[str, _Thing] = {}
        for inner in ast.walk(node):
            for name, base, what in _imports(inner, module.package):
                if self._kind(base) != "kept":
                    raise UsageError(
                        f"no script: {module.at(inner)} imports {what} within a block; it can be copied only where it "
                        "is imported at the top of the file."
                    )
                inner_imports[name] = _Thing("", what)
        for name in _bound(node):
            self._claim(name, inner_imports.get(name) or _Thing(str(module.path), name), module.at(node))
        self._needed_by(module, node)

    def _needed_by(self, module: _Module, node: ast.AST) -> None:
        for name in _read(node, module.postponed):
            self.need(module, name, _paths(node, name))

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
        """Whether an import of a module can be "kept", has to be "copied", or is "refused"."""
        top = dotted.partition(".")[0]
        if top == "triton" or top in sys.stdlib_module_names:
            return "kept"
        return "refused" if top in _NEVER else "copied"

    def _imported(
        self, module: _Module, place: int, node: ast.Import | ast.ImportFrom, name: str, path: Attributes
    ) -> _Thing | None:
        """Take what an import binds to `name`."""
        aliases = [alias for alias in node.names if _binds(alias, node) == name]
        alias = aliases[0]
        if isinstance(node, ast.Import):
            dotted = alias.name if alias.asname else alias.name.partition(".")[0]
            if self._kind(dotted) == "copied":
                return self._member(module, place, node, name, self._module(dotted, module, node, path), path)
            return self._kept(module, node, [f"import {ast.unparse(a)}" for a in aliases], name, dotted, path)
        base = _base(node, module.package)
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
        self, module: _Module, node: ast.stmt, lines: Sequence[str], name: str, dotted: str, path: Attributes = ()
    ) -> _Thing:
        """Leave an import from Triton or the standard library as it is."""
        if self._kind(dotted) == "refused":
            raise UsageError(
                f"no script: the kernel reaches {'.'.join((dotted, *path[:1]))} ({module.at(node)}), and a script that "
                f"needs Triton alone cannot have {dotted.partition('.')[0]}."
            )
        thing = _Thing("", dotted)
        self._claim(name, thing, module.at(node))
        self.imports |= dict.fromkeys(lines)
        return thing

    def _of_a_star(self, module: _Module, name: str, path: Attributes) -> _Thing | None:
        for place in module.stars:
            node = module.tree.body[place]
            assert isinstance(node, ast.ImportFrom)
            base = _base(node, module.package)
            if self._kind(base) == "kept":
                if not hasattr(builtins, name):
                    self.imports[f"from {base} import *"] = None
                continue
            other = self._module(base, module, node, (name,))
            if self._has(other, name):
                return self._alias(module, place, node, name, other, name, path)
        return None

    def _alias(
        self, module: _Module, place: int, node: ast.stmt, name: str, other: _Module, original: str, path: Attributes
    ) -> _Thing:
        """What another file defines under `original`, here called `name`."""
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
        self, module: _Module, place: int, node: ast.stmt, name: str, other: _Module, path: Attributes
    ) -> _Thing:
        """A module that is copied, here called `name`: what is read of it becomes its attribute again."""
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

    def _below(self, module: _Module, name: str) -> bool:
        """Whether what a package binds to the name is its own module of that name: `from . import name`."""
        nodes = [module.tree.body[place] for place in module.bindings.get(name, [])]
        return any(isinstance(n, ast.ImportFrom) and _base(n, module.package) == module.name for n in nodes)

    def _has(self, module: _Module, name: str) -> bool:
        """Whether a file binds the name, itself or by a star."""
        if name in module.bindings:
            return True
        for place in module.stars:
            node = module.tree.body[place]
            assert isinstance(node, ast.ImportFrom)
            base = _base(node, module.package)
            if self._kind(base) == "copied" and self._has(self._module(base, module, node, (name,)), name):
                return True
        return False

    def _module(self, dotted: str, importer: _Module, node: ast.stmt, path: Attributes) -> _Module:
        """The file of a module, found without importing its package."""
        if dotted not in self.modules:
            file = _found(dotted, self.path)
            if file is None:
                raise UsageError(
                    f"no script: the kernel reaches {'.'.join((dotted, *path[:1]))} ({importer.at(node)}), and no "
                    f"Python file of {dotted} is found to copy it from."
                )
            self.modules[dotted] = _Module(file, dotted)
        return self.modules[dotted]

    # ---- the whole -------------------------------------------------------------------------------------------------

    def _postponed(self, order: Sequence[_Module]) -> bool:
        """Whether the text's annotations are not evaluated; where files differ the kernel's own decides."""
        for module in order:
            classes = [n for place in module.wanted if isinstance(n := module.tree.body[place], ast.ClassDef)]
            if classes and module.postponed != self.home.postponed:
                raise UsageError(
                    f"no script: {module.at(classes[0])} and {self.home.shown} differ in `from __future__ import "
                    "annotations`, and a class depends on it."
                )
        return self.home.postponed


def _undefined(module: _Module, node: ast.stmt, name: str, other: _Module) -> UsageError:
    return UsageError(f"no script: {module.at(node)} imports {name}, which {other.shown} does not define.")


def _found(dotted: str, path: Sequence[str]) -> Path | None:
    """The Python file of a module, or its folder; None where there is none. An import would execute what is above."""
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


def _in_order(home: _Module) -> list[_Module]:
    """The modules, each after those that it imports from."""
    found: dict[str, _Module] = {}
    entered: set[str] = set()

    def enter(module: _Module) -> None:
        if module.name not in entered:
            entered.add(module.name)
            for other in module.imports.values():
                enter(other)
            found[module.name] = module

    enter(home)
    return list(found.values())


def _section(module: _Module) -> str:
    """What is taken out of one file, in its order."""
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


def _surroundings(module: _Module) -> Iterator[str]:
    for place in module.wanted:
        for node in ast.walk(module.statement(place)):
            if isinstance(node, ast.Attribute | ast.Name) and syntax.dotted(node) in (
                "os.environ",
                "os.getenv",
                "environ",
            ):
                yield module.at(node)


# ---- reading statements ---------------------------------------------------------------------------------------------


def _names(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names]


def _binds(alias: ast.alias, node: ast.stmt) -> str:
    """The name that one part of an import binds."""
    if alias.asname:
        return alias.asname
    return alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name


def _base(node: ast.ImportFrom, package: str) -> str:
    """The module that `from … import` names, relative ones from `package` on."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _imports(node: ast.AST, package: str) -> Iterator[tuple[str, str, str]]:
    """Of an import: each name that it binds, the module that it names, and what it takes; nothing for other nodes."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield _binds(alias, node), alias.name, alias.name if alias.asname else alias.name.partition(".")[0]
    elif isinstance(node, ast.ImportFrom):
        base = _base(node, package)
        yield from ((_binds(alias, node), base, f"{base}.{alias.name}") for alias in node.names)


def _is_left_out(node: ast.stmt) -> bool:
    """Whether an import of the file would not execute the statement: what is for type checkers, or for a script."""
    names = {syntax.dotted(n).rpartition(".")[2] for n in ast.walk(node.test)} if isinstance(node, ast.If) else set()
    return bool(names & {"TYPE_CHECKING", "__name__"})


def _bound(node: ast.AST) -> Iterator[str]:
    """Names of the module that a statement binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.Import() | ast.ImportFrom():
            yield from (name for alias in node.names if (name := _binds(alias, node)) != "*")
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
        yield from _bound(child)


def _touched(node: ast.AST) -> Iterator[str]:
    """Names of the module whose value a statement changes in place, as far as one can see."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
            return
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
            yield from _root(node)
        case ast.Expr(value=ast.Call(func=ast.Attribute() as called)):
            yield from _root(called)
    for child in ast.iter_child_nodes(node):
        yield from _touched(child)


def _root(node: ast.AST) -> Iterator[str]:
    """`a` of `a.b[c].d`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _read(node: ast.AST, postponed: bool) -> list[str]:
    """Names of the module that a statement or an expression reads, in functions and classes too; each once.

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


def _paths(node: ast.AST, name: str) -> list[Attributes]:
    """The attributes that are read of a name; () where it is used by itself."""
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


def _tail(decorator: ast.expr) -> str:
    """ "jit" of `@gluon.jit` and of `@triton.jit(debug=True)`."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return syntax.dotted(called).rpartition(".")[2]


def _unnamed(decorator: ast.expr) -> ast.expr:
    """A jit decorator without its `repr`, which only names the program."""
    if (
        not isinstance(decorator, ast.Call)
        or _tail(decorator) != "jit"
        or all(k.arg != "repr" for k in decorator.keywords)
    ):
        return decorator
    kept = [k for k in decorator.keywords if k.arg != "repr"]
    return ast.Call(decorator.func, decorator.args, kept) if decorator.args or kept else decorator.func
