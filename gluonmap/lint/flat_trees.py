"""Syntax trees as flat lists, walked once for all rules; values of names and parts of expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from gluonmap.lint.kernel_functions import Files, Function, Module, parameters
from gluonmap.lint.nodes import last_name, unwrapped
from gluonmap.lint.parameter_flow import stores
from gluonmap.source.syntax import Definition

Scope = Definition | ast.Module


class Trees:
    """The parsed files of a run, each flattened once."""

    def __init__(self) -> None:
        self.files = Files()
        self.flats: dict[int, Flat] = {}
        self.bodies: dict[int, Body] = {}
        self.meant: dict[tuple[int, str], Function | None] = {}

    def called(self, name: str, module: Module) -> Function | None:
        """Return the project's function that a dotted name in a file refers to; None if there is none known."""
        key = (id(module.tree), name)
        if key not in self.meant:
            self.meant[key] = self.files.called(name, module)
        return self.meant[key]

    def flat(self, module: Module) -> Flat:
        """Return the nodes of a file."""
        if id(module.tree) not in self.flats:
            self.flats[id(module.tree)] = Flat(module.tree)
        return self.flats[id(module.tree)]

    def body(self, function: Function) -> Body:
        """Return the body of a function."""
        if id(function.node) not in self.bodies:
            self.bodies[id(function.node)] = Body(function, self.flat(function.module))
        return self.bodies[id(function.node)]


class Flat:
    """The nodes of a file in the order of the text. Arguments and decorators of a function precede its body."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.nodes: list[ast.AST] = []
        self.bodies: dict[int, tuple[int, int]] = {}
        """`id` of a function or class -> start and end of its statements in `nodes`."""
        self.names: dict[int, Local] = {}
        starts: dict[int, int] = {}
        pending: list[ast.AST | tuple[bool, int]] = [tree]
        while pending:
            node = pending.pop()
            if isinstance(node, tuple):  # a body starts or ends here
                begins, key = node
                if begins:
                    starts[key] = len(self.nodes)
                else:
                    self.bodies[key] = (starts[key], len(self.nodes))
                continue
            self.nodes.append(node)
            has_body = False
            if isinstance(node, Definition | ast.ClassDef):
                has_body = True
                pending += [(False, id(node)), *reversed(node.body), (True, id(node))]
            for name in reversed(node._fields):  # not ast.iter_child_nodes, which takes five times as long
                if name == "ctx" or (name == "body" and has_body):
                    continue
                value = getattr(node, name, None)
                if type(value) is list:
                    pending += [item for item in reversed(value) if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST):
                    pending.append(value)

    def of(self, scope: Scope) -> Sequence[ast.AST]:
        """Return the nodes of a function's statements, or of a file those outside functions and classes."""
        if isinstance(scope, ast.Module):
            return self.level
        start, end = self.bodies.get(id(scope), (0, 0))
        return self.nodes[start:end]

    @cached_property
    def level(self) -> list[ast.AST]:
        """The nodes outside functions and classes; decorators and defaults of these are included."""
        found: list[ast.AST] = []
        index = 0
        after = dict(self.bodies.values())  # where a body starts -> where it ends
        while index < len(self.nodes):
            if after.get(index, index) > index:
                index = after[index]
            else:
                found.append(self.nodes[index])
                index += 1
        return found

    @cached_property
    def calls(self) -> list[ast.Call]:
        """Every call of the file."""
        return [node for node in self.nodes if isinstance(node, ast.Call)]

    @cached_property
    def functions(self) -> list[Definition]:
        """Every function of the file, methods and inner ones too."""
        return [node for node in self.nodes if isinstance(node, Definition)]

    def local(self, scope: Scope) -> Local:
        """Return the values of the names in a function, or at the top level of the file."""
        if id(scope) not in self.names:
            self.names[id(scope)] = Local(self.of(scope))
        return self.names[id(scope)]


class Local:
    """The values of the names of a function, or of the top level of a file."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.values: dict[str, list[ast.expr]] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.loops: dict[str, list[ast.expr]] = {}
        """Variable of a loop -> the expressions that it iterates over."""
        self.opaque: set[str] = set()
        """Names that are also set by loops, `with` or unpacking, or changed in place. These values are not followed."""
        for node in nodes:
            self._read(node)

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                whole = {t.id for t in targets if isinstance(t, ast.Name)}
                for name, part in stores(node):
                    self.values.setdefault(name, []).append(part)
                    if part is value and name not in whole:
                        self.opaque.add(name)
            case ast.AnnAssign() | ast.NamedExpr() | ast.AugAssign():
                for name, part in stores(node):
                    self.values.setdefault(name, []).append(part)
                    if isinstance(node, ast.AugAssign):
                        self.opaque.add(name)
            case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
                for item in ast.walk(target):
                    if isinstance(item, ast.Name):
                        self.opaque.add(item.id)
                        self.loops.setdefault(item.id, []).append(over)
            case ast.withitem(optional_vars=ast.Name(id=name)):
                self.opaque.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "insert" | "remove")):
                self.opaque.add(name)
            case ast.FunctionDef(name=name):
                self.functions[name] = node

    def value(self, name: str) -> ast.expr | None:
        """Return the value of a name that is set once; None otherwise."""
        values = self.values.get(name, [])
        return values[0] if len(values) == 1 and name not in self.opaque else None


class Body:
    """The body of a function, and the parts of its expressions."""

    def __init__(self, function: Function, flat: Flat) -> None:
        self.function = function
        self.nodes = flat.of(function.node)
        self.names = flat.local(function.node)
        self.parameters = parameters(function.node)
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.values = {name: list(values) for name, values in self.names.values.items()}
        for name, values in self.names.loops.items():
            self.values.setdefault(name, []).extend(values)
        self._made: dict[str, tuple[set[str], set[str]]] = {}

    def behind(self, node: ast.AST) -> set[str]:
        """Return the names that an expression depends on, also through its variables."""
        return self._behind(node)[0]

    def made_with(self, node: ast.AST) -> set[str]:
        """Return the last names of the functions that an expression calls, also through its variables."""
        return self._behind(node)[1]

    def _behind(self, node: ast.AST) -> tuple[set[str], set[str]]:
        names, calls = _parts([node])
        pending, seen = list(names), set[str]()
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                if name not in self._made:
                    self._made[name] = _parts(self.values.get(name, []))
                more, made = self._made[name]
                calls |= made
                names |= more
                pending += more - seen
        return names, calls

    def added(self, node: ast.AST) -> set[str]:
        """Return the names in the terms and factors of a sum, also through its variables and through hints."""
        found: set[str] = set()
        pending: list[ast.AST] = [node]
        while pending:
            match pending.pop():
                case ast.Name(id=name):
                    if name not in found:
                        found.add(name)
                        pending += self.values.get(name, [])
                case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                    pending += [left, right]
                case other:
                    pending += [inner] if (inner := unwrapped(other)) is not None else []
        return found

    def terms(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[ast.expr]:
        """Yield the terms of a sum: products, ranges, and other expressions that cannot be split."""
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                yield from self.terms(left, seen)
                yield from self.terms(right, seen)
            case ast.Name(id=name) if name not in seen and name not in self.parameters and self.names.value(name):
                yield from self.terms(self.values[name][0], seen | {name})
            case ast.Call() if last_name(node) == "arange":
                yield node
            case _:
                inner = unwrapped(node)
                if inner is not None:
                    yield from self.terms(inner, seen)
                else:
                    yield node


def _parts(nodes: Sequence[ast.AST]) -> tuple[set[str], set[str]]:
    names: set[str] = set()
    calls: set[str] = set()
    for node in nodes:
        for item in ast.walk(node):
            if isinstance(item, ast.Name):
                names.add(item.id)
            elif isinstance(item, ast.Call):
                calls.add(last_name(item))
    return names, calls
