"""The rule about constexpr parameters that a kernel never reads: a tuner races one program against itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gluonmap.lint.findings import LintFinding
from gluonmap.lint.host_code import read_decorators
from gluonmap.lint.kernel_functions import Function, declared, is_jit, parameters
from gluonmap.lint.linted_file import LintedFile
from gluonmap.model.targets import LAUNCH_OPTIONS, NOT_KNOBS, TARGETS
from gluonmap.source.syntax import Definition, bind


def check(subject: LintedFile) -> Iterator[LintFinding]:
    """Yield the unread parameters of each kernel, also those that it only passes to helpers that never read them."""
    unread = _Unread(subject)
    for kernel in subject.entries:
        yield from unread(kernel)


_OPTIONS = frozenset((*LAUNCH_OPTIONS, *NOT_KNOBS, *(option for target in TARGETS for option in target.option_domains)))
"""Parameters that the compiler reads by name, whether or not the kernel does."""
_UNUSED_ON_PURPOSE = re.compile(r"^_|unused|dummy|reserved", re.IGNORECASE)
"""Names that show by their spelling that the parameter is unused on purpose."""

_Place = tuple[ast.Name, ast.Call | None]
"""A read of a name, and the call that it is a direct argument of, if there is one."""


class _Unread:
    def __init__(self, subject: LintedFile) -> None:
        self.subject = subject
        self.known: dict[tuple[int, str], bool] = {}
        self.places: dict[int, dict[str, list[_Place]]] = {}
        self.host = _host_reads(subject)

    def __call__(self, kernel: Function) -> Iterator[LintFinding]:
        if _is_stub(kernel.node):
            return
        read_elsewhere = self.host | _OPTIONS | frozenset(read_decorators(kernel).key or ())
        constexprs = parameters(kernel.node)
        for item in declared(kernel.node):
            name = item.arg
            if (
                constexprs[name]
                and name not in read_elsewhere
                and not _UNUSED_ON_PURPOSE.search(name)
                and not self.reads(kernel, name)
            ):
                handed = self._places(kernel).get(name)
                how = "only goes to functions that never read it" if handed else "is never read"
                yield self.subject.finding(
                    "GM201",
                    item,
                    f"{name} of {kernel.name} {how}: each of its values compiles the same program again",
                    "remove it from the signature and the callers, or use it",
                    kernel.name,
                )

    def reads(self, function: Function, name: str) -> bool:
        """Return whether the function uses a parameter's value. Passing it to a function that does not is no use."""
        key = (id(function.node), name)
        if key not in self.known:
            self.known[key] = False  # a recursive call is no read
            places = self._places(function).get(name, [])
            self.known[key] = any(not self._handed(function, node, call) for node, call in places)
        return self.known[key]

    def _places(self, function: Function) -> dict[str, list[_Place]]:
        key = id(function.node)
        if key not in self.places:
            found: dict[str, list[_Place]] = {}
            calls: dict[int, ast.Call] = {}
            for node in self.subject.body(function).nodes:  # a call precedes its arguments in this list
                if isinstance(node, ast.Call):
                    calls |= {id(part): node for part in (*node.args, *(k.value for k in node.keywords))}
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    found.setdefault(node.id, []).append((node, calls.get(id(node))))
            self.places[key] = found
        return self.places[key]

    def _handed(self, function: Function, name: ast.Name, call: ast.Call | None) -> bool:
        """Return whether the value only goes to a jit function that never reads it."""
        helper = self.subject.called(call.func, function.module) if call else None
        bound = bind(call, helper.node) if call and helper and is_jit(helper.node) else None
        if helper is None or bound is None or _is_stub(helper.node):
            return False
        return all(not self.reads(helper, to) for to, value in bound.items() if value is name)


def _host_reads(subject: LintedFile) -> frozenset[str]:
    """Return the names that host code reads from a configuration: `META["SPLIT_K"]`, `name_key="NAME"`."""
    found: set[object] = set()
    for node in subject.flat.nodes:
        match node:
            case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=name), ctx=ast.Load()):
                found.add(name)
            case ast.Call(args=args, keywords=keywords):
                found |= {part.value for part in args if isinstance(part, ast.Constant)}
                found |= {part.value.value for part in keywords if isinstance(part.value, ast.Constant)}
    return frozenset(name for name in found if isinstance(name, str))


def _is_stub(node: Definition) -> bool:
    rest = [item for item in node.body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))]
    return all(isinstance(item, ast.Pass | ast.Raise) for item in rest)
