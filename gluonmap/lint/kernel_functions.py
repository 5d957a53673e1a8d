"""Kernels and the functions that they call, found in the text of files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from gluonmap.model.errors import UnknownKernel, UsageError
from gluonmap.source.syntax import Definition, dotted, text_of

_MOST_HOPS = 6
"""Most files through which a name is followed."""


@dataclass(frozen=True)
class Module:
    """A file's tree."""

    path: Path
    tree: ast.Module

    @cached_property
    def functions(self) -> dict[str, Definition]:
        """The functions of the file by name, methods and inner ones left out."""
        return {node.name: node for node in _statements(self.tree) if isinstance(node, Definition)}

    @cached_property
    def imports(self) -> dict[str, tuple[str, int, str]]:
        """Imported name -> module, level of a relative import, name in the module ("": the module itself)."""
        found: dict[str, tuple[str, int, str]] = {}
        for node in _statements(self.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found[alias.asname or alias.name] = (node.module or "", node.level, alias.name)
            elif isinstance(node, ast.Import):
                found |= {alias.asname: (alias.name, 0, "") for alias in node.names if alias.asname}
        return found

    @cached_property
    def assigned(self) -> dict[str, ast.expr]:
        """Name on the file's own level -> the value that is assigned to it last."""
        nodes = [node for node in _statements(self.tree) if isinstance(node, ast.Assign)]
        return {t.id: node.value for node in nodes for t in node.targets if isinstance(t, ast.Name)}


@dataclass(frozen=True)
class Function:
    """A function and its file."""

    node: Definition
    module: Module

    @property
    def name(self) -> str:
        return self.node.name


@dataclass
class Files:
    """Parsed files. Each is parsed once."""

    known: dict[Path, Module | None] = field(default_factory=dict)
    places: dict[tuple[Path, str, int], tuple[Path, ...]] = field(default_factory=dict)
    """Importing file, module and level of the import -> the files that the module may be."""

    def module(self, path: Path) -> Module | None:
        """Return the tree of a file; None if it cannot be read or parsed."""
        path = path.absolute()
        if path not in self.known:
            try:
                self.known[path] = Module(path, ast.parse(text_of(path)))
            except (OSError, SyntaxError, ValueError, RecursionError):
                self.known[path] = None
        return self.known[path]

    def called(self, name: str, module: Module) -> Function | None:
        """Return the function that a dotted name in a file refers to; None if it is none of the project's."""
        return self._found(name, module, _MOST_HOPS)

    def _found(self, name: str, module: Module, hops: int) -> Function | None:
        first, _, rest = name.partition(".")
        if not rest and first in module.functions:
            return Function(module.functions[first], module)
        if first not in module.imports or not hops:
            return None
        origin, level, member = module.imports[first]
        names = [part for part in (member, rest) if part]
        for split in range(len(names)):  # a member of a package may be a module, which then holds the rest of the name
            inner = ".".join(filter(None, [origin, *names[:split]]))
            for path in self._places(module.path, inner, level):
                other = self.module(path)
                found = self._found(".".join(names[split:]), other, hops - 1) if other else None
                if found:
                    return found
        return None

    def _places(self, importer: Path, module: str, level: int) -> tuple[Path, ...]:
        key = (importer, module, level)
        if key not in self.places:
            self.places[key] = tuple(_files(importer, module, level))
        return self.places[key]


def read_kernel(files: Files, path: Path, kernel: str) -> Function:
    """Return the kernel of a file; if no name is given, its only kernel.

    Raises:
        UsageError: the file cannot be read or parsed, or has no kernel or several.
        UnknownKernel: it has no kernel of that name.
    """
    try:
        module = files.known.get(path.absolute()) or Module(path, ast.parse(text_of(path)))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}.") from error
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no Python: {error}.") from error
    files.known[path.absolute()] = module
    kernels = {name: node for name, node in module.functions.items() if is_jit(node)}
    if kernel:
        if kernel not in kernels:
            raise UnknownKernel(str(path), kernel, kernels, "--kernel NAME chooses one.")
        return Function(kernels[kernel], module)
    called = {
        dotted(node.func)
        for function in kernels.values()
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and dotted(node.func) != function.name
    }
    entries = [name for name in kernels if name not in called] or list(kernels)
    if not entries:
        raise UsageError(f"{path} holds no @gluon.jit or @triton.jit function.")
    if len(entries) > 1:
        raise UsageError(
            f"{path} holds {len(entries)} kernels: choose one with --kernel {entries[0]} (or {', '.join(entries[1:])})."
        )
    return Function(kernels[entries[0]], module)


def decorator_name(node: ast.expr) -> str:
    """Return the last part of a decorator's name: "jit" of `@triton.jit(…)`."""
    return dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


def is_jit(node: Definition) -> bool:
    return any(decorator_name(item) == "jit" for item in node.decorator_list)


def declared(node: Definition) -> tuple[ast.arg, ...]:
    """Return the parameters in order, without `*args` and `**kwargs`."""
    return (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)


def annotation(parameter: ast.arg) -> str:
    """Return the annotation of a parameter as text; "" if it has none."""
    return ast.unparse(parameter.annotation) if parameter.annotation else ""


def parameters(node: Definition) -> dict[str, bool]:
    """Return the parameters in order, and whether each is a constexpr."""
    return {parameter.arg: "constexpr" in annotation(parameter) for parameter in declared(node)}


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of a file, those under `if` and `try` too."""
    pending: list[ast.AST] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            pending += [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.stmt | ast.ExceptHandler)][::-1]


def _files(importer: Path, module: str, level: int) -> Iterator[Path]:
    """Yield the files that a module may be, looking from the importing file's folder and its package's."""
    parts = [part for part in module.split(".") if part]
    if level:
        roots = [importer.parents[level - 1]] if level <= len(importer.parents) else []
    else:
        top = importer.parent
        while (top / "__init__.py").is_file():
            top = top.parent
        packages = [p.parent for p in importer.parents if parts and p.name == parts[0]]
        roots = list(dict.fromkeys([importer.parent, top, *packages]))
    for root in roots:
        path = root.joinpath(*parts)
        for found in (path.with_suffix(".py") if parts else path, path / "__init__.py"):
            if found.is_file() and found.absolute() != importer.absolute():
                yield found
