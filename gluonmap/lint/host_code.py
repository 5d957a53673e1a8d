"""The code around a kernel: its decorators, the grids of its launches, and the probe file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gluonmap.constraints import expressions
from gluonmap.lint.kernel_functions import Function, Module, decorator_name
from gluonmap.lint.parameter_flow import GRID, HEURISTIC, Use
from gluonmap.model.errors import UsageError
from gluonmap.source.syntax import Definition, bind, dotted
from gluonmap.spec.probe_file import ProbeFile


@dataclass(frozen=True)
class KernelDecorators:
    """The autotuner and the heuristics among a kernel's decorators."""

    key: tuple[str, ...] | None
    """Names in the autotuner's key; None if there is no autotuner, or its key cannot be read."""
    line: int | None
    """Line of the autotuner in the kernel's file."""
    tuned: frozenset[str]
    """Names that the autotuner's configurations set."""
    heuristics: dict[str, tuple[frozenset[str], Use]]
    """Parameter -> the arguments that its heuristic reads, and the place of the heuristic."""
    notes: tuple[str, ...] = ()


def read_decorators(kernel: Function) -> KernelDecorators:
    """Read `@triton.autotune`, `@gluonmap.autotune` and `@triton.heuristics`."""
    key: tuple[str, ...] | None = None
    line, tuned, notes = None, set[str](), list[str]()
    heuristics: dict[str, tuple[frozenset[str], Use]] = {}
    for node in kernel.node.decorator_list:
        if not isinstance(node, ast.Call):
            continue
        name = decorator_name(node)
        if name == "heuristics":
            heuristics |= dict(_heuristics(node, kernel.module))
        elif name == "autotune" or any(
            keyword.arg == "key" for keyword in node.keywords
        ):  # decorators of other names wrap Triton's
            line = node.lineno
            key = _texts(_given(node, "key", 1), kernel.module)
            notes += [] if key is not None else [f"the key of @{name} (line {line}) cannot be read"]
            tuned |= _tuned(_given(node, "configs", 0), kernel.module)
    return KernelDecorators(key, line, frozenset(tuned), heuristics, tuple(notes))


def grid_uses(kernel: Function) -> Iterator[tuple[str, Use]]:
    """Yield the arguments that the grids in the kernel's file depend on."""
    for scope in _scopes(kernel.module.tree):
        assigned = _locals(scope)
        for node in ast.walk(scope):
            match node:
                case ast.Call(func=ast.Subscript(value=launched, slice=grid)) if dotted(launched) == kernel.name:
                    given = {name: ast.unparse(value) for name, value in (bind(node, kernel.node) or {}).items()}
                    yield from _grid(grid, given, assigned, kernel)


def probe_file_uses(probe: ProbeFile, names: frozenset[str]) -> Iterator[tuple[str, Use]]:
    """Yield the arguments that the probe file's grid depends on, also through derived names."""
    if probe.grid:
        use = Use(GRID, probe.grid)
        yield from ((name, use) for name in sorted(inputs(probe.grid, probe) & names))


def inputs(text: str, probe: ProbeFile) -> frozenset[str]:
    """Return the names that an expression of the probe file depends on, also through derived names.

    Raises:
        UsageError: bad syntax.
    """
    names: set[str] = set()
    pending = [text]
    while pending:
        for name in expressions.names_in(pending.pop()) - names:
            names.add(name)
            pending += [probe.derive[name]] if name in probe.derive else []
    return frozenset(names)


def _given(call: ast.Call, name: str, place: int) -> ast.expr | None:
    named = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    return named if named is not None or place >= len(call.args) else call.args[place]


def _texts(node: ast.expr | None, module: Module) -> tuple[str, ...] | None:
    if isinstance(node, ast.Name):
        node = module.assigned.get(node.id)
    try:
        texts = ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None
    return tuple(texts) if isinstance(texts, list | tuple) and all(isinstance(t, str) for t in texts) else None


def _tuned(node: ast.expr | None, module: Module) -> set[str]:
    """Return the names that configurations set: keys of the first argument of every `Config(…)`, and its options."""
    pending: list[ast.AST] = [node] if node is not None else []
    seen: set[str] = set()
    names: set[str] = set()
    while pending:
        for item in ast.walk(pending.pop()):
            match item:
                case ast.Call(func=function, args=[ast.Dict(keys=keys), *_], keywords=keywords) if (
                    dotted(function).rpartition(".")[2] == "Config"
                ):
                    names |= {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
                    names |= {keyword.arg for keyword in keywords if keyword.arg}
                case ast.Name(id=name) if name not in seen:
                    seen.add(name)
                    pending += [n for n in (module.assigned.get(name), module.functions.get(name)) if n is not None]
    return names


def _heuristics(call: ast.Call, module: Module) -> Iterator[tuple[str, tuple[frozenset[str], Use]]]:
    values = _given(call, "values", 0)
    if isinstance(values, ast.Name):
        values = module.assigned.get(values.id)
    if not isinstance(values, ast.Dict):
        return
    for key, value in zip(values.keys, values.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            function: ast.AST | None = module.functions.get(value.id) if isinstance(value, ast.Name) else value
            use = Use(HEURISTIC, f"computes {key.value}", value.lineno)
            yield key.value, (_asked(function), use)


def _asked(function: ast.AST | None) -> frozenset[str]:
    """Return the names that a heuristic reads: "K" of `args["K"]`, where `args` is its first parameter.

    A test for None does not count: the key already has the argument's dtype.
    """
    if not isinstance(function, ast.Lambda | Definition) or not function.args.args:
        return frozenset()
    first = function.args.args[0].arg
    of_none = {
        id(node.left)
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
    }
    return frozenset(
        node.slice.value
        for node in ast.walk(function)
        if id(node) not in of_none
        if isinstance(node, ast.Subscript) and dotted(node.value) == first
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    )


def _grid(
    grid: ast.expr, given: dict[str, str], assigned: dict[str, list[ast.AST]], kernel: Function
) -> Iterator[tuple[str, Use]]:
    """Yield the parameters whose arguments occur in a launch's grid."""
    pending: list[ast.AST] = [grid]
    seen: set[str] = set()
    found: set[str] = set()
    text = ""
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda | Definition):
            found |= _asked(node)
        for item in _parts(node):
            written = ast.unparse(item) if isinstance(item, ast.Name | ast.Attribute | ast.Subscript) else ""
            same = {name for name, value in given.items() if written and value == written}
            found |= same
            if isinstance(item, ast.Name) and item.id not in seen and not same:
                seen.add(item.id)
                pending += assigned.get(item.id, [])
                function = kernel.module.functions.get(item.id)
                pending += [function] if function is not None and item is grid else []
        text = text or (ast.unparse(node) if not isinstance(node, ast.Name | Definition) else "")
    short = " ".join(text.split())
    use = Use(GRID, short if len(short) <= 60 else f"{short[:59]}…", grid.lineno)
    yield from ((name, use) for name in sorted(found))


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below. `x.shape[0]` and `x.numel()` are not split: the size of a tensor is not the tensor."""
    pending = [node]
    while pending:
        item = pending.pop()
        yield item
        match item:
            case ast.Attribute() | ast.Subscript(value=ast.Attribute()):
                continue
            case ast.Call(args=args, keywords=keywords):
                pending += [*args, *(keyword.value for keyword in keywords)]
            case _:
                pending += list(ast.iter_child_nodes(item))


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the functions outside other functions, and the top level of the file."""
    pending: list[ast.AST] = list(tree.body)
    outside: list[ast.stmt] = []
    while pending:
        node = pending.pop()
        if isinstance(node, Definition):
            yield node
        elif isinstance(node, ast.ClassDef):
            pending += node.body
        elif isinstance(node, ast.stmt):
            outside.append(node)
    yield ast.Module(outside, [])


def _locals(scope: ast.AST) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    for name in (n.id for n in ast.walk(target) if isinstance(n, ast.Name)):
                        found.setdefault(name, []).append(value)
            case ast.FunctionDef(name=name) if node is not scope:
                found.setdefault(name, []).append(node)
    return found


def few_values(name: str, probe: ProbeFile) -> list[int]:
    """Return an argument's whole numbers over the probe file's shapes; empty if one of them is unknown."""
    found: list[int] = []
    for shape in probe.shapes.values():
        known = {**probe.args, **probe.baseline, **shape}
        try:
            value = known[name] if name in known else expressions.evaluate(_whole(name, probe), known)
        except (UsageError, KeyError):
            return []
        if not isinstance(value, int) or isinstance(value, bool):
            return []
        found.append(value)
    return found


def _whole(name: str, probe: ProbeFile) -> str:
    return expressions.substituted(probe.derive[name], {}, {n: t for n, t in probe.derive.items() if n != name})
