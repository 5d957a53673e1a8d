"""Which jit functions a kernel reaches, and with which module constants, resolved in the imported modules."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from gluonmap.model.candidate import Value
from gluonmap.model.inspection import FunctionSource

_PLAIN = (int, float, str, bool, type(None))


def closure(jit: Any) -> list[Any]:
    """The kernel and every jit function that it calls, directly or not, each once, the kernel first."""
    found = [jit]
    for function in found:
        found.extend(c for c in callees(function).values() if not any(c is f for f in found))
    return found


def callees(jit: Any) -> dict[str, Any]:
    """Dotted names as written in the function's body -> the jit functions that they mean."""
    from triton.runtime.jit import JITFunction

    return {name: value for name, value in _globals_read(jit) if isinstance(value, JITFunction)}


def sources(jit: Any) -> tuple[FunctionSource, ...]:
    """The closure as text, with its calls resolved to places in the tuple."""
    functions = closure(jit)
    return tuple(_source(f, functions) for f in functions)


def _source(jit: Any, functions: list[Any]) -> FunctionSource:
    lines, first_line = inspect.getsourcelines(jit.fn)
    calls = {name: next(i for i, f in enumerate(functions) if f is callee) for name, callee in callees(jit).items()}
    return FunctionSource(
        name=jit.fn.__name__,
        file=relative(jit.fn.__code__.co_filename),
        first_line=first_line,
        source=textwrap.dedent("".join(lines)),
        calls=calls,
        constants=dict(_constants(jit)),
    )


def _constants(jit: Any) -> Iterator[tuple[str, Value]]:
    for name, value in _globals_read(jit):
        plain = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
        if isinstance(plain, _PLAIN):
            yield name, plain
        elif isinstance(plain, list | tuple):
            try:
                yield name, json.dumps(plain)
            except TypeError:
                continue


def _globals_read(jit: Any) -> Iterator[tuple[str, Any]]:
    """Every dotted name that the body reads and that the function's module resolves, in order, once."""
    try:
        tree = ast.parse(textwrap.dedent(jit.src))
    except SyntaxError:
        return
    names = dict(inspect.getclosurevars(jit.fn).nonlocals) if jit.fn.__closure__ else {}
    scope = {**jit.fn.__globals__, **names}
    seen: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        dotted = _dotted(node)
        if dotted and dotted not in seen:
            seen.add(dotted)
            value = _resolve(dotted, scope)
            if value is not None:
                yield dotted, value


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def _resolve(dotted: str, scope: dict[str, Any]) -> Any:
    head, *rest = dotted.split(".")
    value = scope.get(head)
    for name in rest:
        if not isinstance(value, ModuleType | type):
            return None
        value = getattr(value, name, None)
    return value


def in_triton(path: str) -> bool:
    """True for a file of Triton's own library."""
    import triton

    return Path(path).is_relative_to(Path(triton.__file__ or "/").parent)


def relative(path: str) -> str:
    """`path` as it is called on every machine: from `kernels/`, from its package, or its bare name."""
    file = Path(path)
    if "kernels" in file.parts[:-1]:
        at = max(i for i, part in enumerate(file.parts[:-1]) if part == "kernels")
        if not any((parent / "__init__.py").is_file() for parent in file.parents):
            return str(Path(*file.parts[at:]))
    for root in sorted({p for p in sys.path if p}, key=len, reverse=True):
        if "site-packages" in root and file.is_relative_to(root):
            return str(file.relative_to(root))
    from gluonmap.worker.load import package_root

    return str(file.relative_to(package_root(file)))
