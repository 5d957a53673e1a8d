"""The kernel's own `@triton.autotune` list, with the lines at which its entries are written."""

from __future__ import annotations

import ast
import copy

from gluonmap.audit.shipped_files import (
    TRITON_DEFAULTS,
    FileForm,
    ShippedEntry,
    ShippedFile,
    is_config,
    listed_entry,
    written_config,
)
from gluonmap.model.inspection import Inspection
from gluonmap.source import code_lines, syntax


def own_list(inspection: Inspection, file: str, text: str) -> ShippedFile:
    """Return the `@triton.autotune` list as the import saw it, with the lines of the file where it is written.

    `text` is the text of the file.
    """
    configs = inspection.autotune
    function = inspection.functions[0]
    # An inspection may be older than an edit of comments, which moves lines: look up the function's current line.
    today = code_lines.find_function(text, function.name, function.source)
    code, first_line = today or (function.source, function.first_line)
    node = syntax.definition(code)
    tuner = next((d for d in node.decorator_list if _is_autotune(d)), None) if node else None
    line = first_line + (tuner.lineno - 1 if tuner else 0)
    calls = _written(tuner, first_line, text) if isinstance(tuner, ast.Call) else []
    entries = []
    for number, config in enumerate(configs):
        written = written_config(calls[number]) if len(calls) == len(configs) else {}
        if written == config:
            entries.append(listed_entry(file, number, calls[number], config))
            continue
        defaulted = frozenset(name for name, value in TRITON_DEFAULTS.items() if config.get(name) == value)
        where = calls[number].lineno if len(calls) == len(configs) else line
        entries.append(ShippedEntry(file, f"[{number}]", config, where, defaulted=defaulted))
    return ShippedFile(file, FileForm.AUTOTUNE, tuple(entries))


def _is_autotune(node: ast.expr) -> bool:
    name = syntax.dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
    return name == "autotune" or (isinstance(node, ast.Call) and any(k.arg == "configs" for k in node.keywords))


def _written(tuner: ast.Call, first_line: int, text: str) -> list[ast.Call]:
    """Return the `Config(…)` calls of a decorator's list, with the lines of the file."""
    given = next((k.value for k in tuner.keywords if k.arg == "configs"), tuner.args[0] if tuner.args else None)
    if isinstance(given, ast.Name):
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError):
            return []
        named = [n.value for n in body if isinstance(n, ast.Assign) for t in n.targets if _named(t) == given.id]
        given, first_line = (named[-1] if named else None), 1
    if not isinstance(given, ast.List) or not all(isinstance(e, ast.Call) and is_config(e) for e in given.elts):
        return []
    calls = [element for element in given.elts if isinstance(element, ast.Call)]
    # syntax.definition returns a shared tree, so shift the line numbers of a copy.
    return [ast.increment_lineno(copy.deepcopy(call), first_line - 1) for call in calls]


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
