"""The jit functions and module constants that a kernel reaches, resolved in the imported modules.

Triton is imported in the functions for its weight: `progress` imports this module in a server before Triton.
"""

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
    """Return the kernel and every jit function that it calls, directly or not, each once, the kernel first."""
    found = [jit]
    for function in found:
        found.extend(c for c in callees(function).values() if not any(c is f for f in found))
    return found


def callees(jit: Any) -> dict[str, Any]:
    """Return the jit functions that the function's body names, by the dotted name in the body."""
    from triton.runtime.jit import JITFunction

    return {name: value for name, value in _globals_read(jit) if isinstance(value, JITFunction)}


def sources(jit: Any) -> tuple[FunctionSource, ...]:
    """Return the closure as text, with its calls resolved to positions in the tuple."""
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
    """Yield every dotted name that the body reads and that the function's module resolves, in order, each once."""
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
    """Return whether the file belongs to Triton's own library."""
    import triton

    return Path(path).is_relative_to(Path(triton.__file__ or "/").parent)


def package_root(path: Path) -> Path:
    """Return the folder to import from: the parent of the topmost package that holds `path`, or the file's folder.

    Namespace packages in between (a folder without `__init__.py` below one that has it) are skipped.
    """
    root = path.parent
    for parent in path.parents:
        if (parent / "__init__.py").is_file():
            root = parent.parent
    return root


def relative(path: str) -> str:
    """Return the part of `path` that is the same on every machine: from `kernels/`, from its package, or its name."""
    file = Path(path)
    if "kernels" in file.parts[:-1]:
        at = max(i for i, part in enumerate(file.parts[:-1]) if part == "kernels")
        if not any((parent / "__init__.py").is_file() for parent in file.parents):
            return str(Path(*file.parts[at:]))
    for root in sorted({p for p in sys.path if p}, key=len, reverse=True):
        if "site-packages" in root and file.is_relative_to(root):
            return str(file.relative_to(root))
    return str(file.relative_to(package_root(file)))
