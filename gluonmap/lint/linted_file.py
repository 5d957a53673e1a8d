"""One file as the rules see it: its kernels, its launches, the bodies of its functions."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from gluonmap.lint.findings import LintFinding
from gluonmap.lint.flat_trees import Body, Flat, Local, Scope, Trees
from gluonmap.lint.kernel_functions import Function, Module, decorator_name, is_jit
from gluonmap.lint.nodes import call_name, full_name, last_name
from gluonmap.source.syntax import Definition, bind, dotted

_OTHER_JITS = ("numba", "jax", "torch", "cupy", "taichi")


@dataclass(frozen=True)
class KernelLaunch:
    """`kernel[grid](…)` in host code."""

    call: ast.Call
    kernel: Function
    grid: ast.expr
    names: Local
    """Values of the names in the launching function."""
    scope: Scope

    @cached_property
    def given(self) -> dict[str, ast.expr]:
        """Return parameter → its argument in the launch; empty if `*` or `**` hides the arguments."""
        return bind(self.call, self.kernel.node) or {}


@dataclass(frozen=True)
class LintedFile:
    """One file, and the files that it imports from."""

    path: str
    """Path of the file as findings show it."""
    text: str
    module: Module
    trees: Trees

    @cached_property
    def flat(self) -> Flat:
        return self.trees.flat(self.module)

    @cached_property
    def globals(self) -> Local:
        """Values of the names on the file's own level."""
        return self.flat.local(self.module.tree)

    @cached_property
    def kernels(self) -> tuple[Function, ...]:
        """Every jit function of the file, methods and inner ones too, in the order of the text."""
        return tuple(
            Function(node, self.module) for node in self.flat.functions if is_jit(node) and not self._other_jit(node)
        )

    def _other_jit(self, node: Definition) -> bool:
        names = [dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
        return any(full_name(name, self.module).split(".")[0] in _OTHER_JITS for name in names)

    @cached_property
    def entries(self) -> tuple[Function, ...]:
        """Kernels that host code launches, or that read `program_id` and that no other kernel calls."""
        methods = {id(item) for node in self.flat.nodes if isinstance(node, ast.ClassDef) for item in node.body}
        called = {call_name(call) for kernel in self.kernels for call in self.body(kernel).calls}
        launched = {id(launch.kernel.node) for launch in self.launches}
        return tuple(
            kernel
            for kernel in self.kernels
            if kernel.name not in called and id(kernel.node) not in methods
            if id(kernel.node) in launched or any(last_name(call) == "program_id" for call in self.body(kernel).calls)
        )

    @cached_property
    def launches(self) -> tuple[KernelLaunch, ...]:
        """The launches in the file whose kernel's text is known."""
        found: list[KernelLaunch] = []
        for scope in self._scopes():
            for node in self.flat.of(scope):
                match node:
                    case ast.Call(func=ast.Subscript(value=launched, slice=grid)) if dotted(launched):
                        kernel = self.called(launched)
                        if kernel is not None and is_jit(kernel.node):
                            found.append(KernelLaunch(node, kernel, grid, self.flat.local(scope), scope))
        return tuple(found)

    def _scopes(self) -> list[Scope]:
        """Return the file's own level, and the functions outside other functions."""
        found: list[Scope] = [self.module.tree]
        end = 0
        for node in self.flat.functions:
            start, stop = self.flat.bodies[id(node)]
            if start >= end:
                found.append(node)
                end = stop
        return found

    def body(self, kernel: Function) -> Body:
        return self.trees.body(kernel)

    def called(self, node: ast.expr, module: Module | None = None) -> Function | None:
        """Return the project's function that a name refers to; None if it is unknown."""
        name = dotted(node)
        return self.trees.called(name, module or self.module) if name else None

    def finding(self, code: str, node: ast.AST, message: str, fix: str, function: str = "") -> LintFinding:
        """Return a finding at a node of the file's tree."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        return LintFinding(self.path, line, column, code, message, fix, function)


def decorator(kernel: Function, name: str) -> ast.Call | None:
    """Return the decorator with this last name, if it is a call."""
    found = (d for d in kernel.node.decorator_list if isinstance(d, ast.Call) and decorator_name(d) == name)
    return next(found, None)
