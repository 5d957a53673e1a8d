"""Exit status and reason of an exception of the kernel's file, the front end or a compiler pass."""

from __future__ import annotations

import ast
import re
import traceback
from typing import Any

from gluonmap.model import exitcode
from gluonmap.model.verdict import Reason
from gluonmap.worker import reach
from gluonmap.worker.progress import Slot
from gluonmap.worker.protocol import Evidence

_REPR = re.compile(r"^(\w+)\((['\"])(.*)\2,?\)$", re.DOTALL)


def classify(error: BaseException, slot: Slot, jit: Any = None, imported: str = "") -> Evidence:
    """Return the evidence of a rejection. The phase in the slot decides between front end and back end.

    Without `jit` the import of the file `imported` raised the error.
    """
    progress = slot.read()
    inner = innermost(error)
    if isinstance(inner, MemoryError):  # the front end wraps it in a CompilationError
        text = "the compiler ran out of host memory (its limit, not the GPU's)"
        return Evidence(exitcode.NO_RESOURCES, reason=Reason("host memory", text, progress.phase))
    front = progress.phase in ("", "import", "arguments", "front end")
    status = exitcode.REJECTED_FRONT_END if front else exitcode.REJECTED_BACK_END
    reason = Reason(_kind(error, inner), message(inner), progress.phase)
    file, function, line = _place(error, jit, imported)
    return Evidence(status, reason=reason, file=file, function=function, line=line)


def innermost(error: BaseException) -> BaseException:
    """Return the last error in a chain of causes: a CompilationError in a helper has the helper's line."""
    return _chain(error)[-1]


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error, its cause, the cause's cause, and so on."""
    found = [error]
    while found[-1].__cause__ is not None and len(found) < 64:
        found.append(found[-1].__cause__)
    return found


def message(error: BaseException) -> str:
    """Return the first non-empty line of an error's message, without the source excerpt that Triton prepends."""
    if isinstance(error, SyntaxError):
        return error.msg  # str() adds file and line
    text = getattr(error, "error_message", None) or ("" if hasattr(error, "node") else str(error))
    if match := _REPR.match(text.strip()):
        text = f"{match[1]}: {_unquoted(match[2] + match[3] + match[2])}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _unquoted(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return text[1:-1]


def _kind(error: BaseException, inner: BaseException) -> str:
    """Return the name of the class that Triton raised; of a bare CompilationError that of the error it wraps."""
    return type(inner if type(error).__name__ == "CompilationError" else error).__name__


def _place(error: BaseException, jit: Any, imported: str) -> tuple[str, str, int]:
    """Return the file, function and line of a CompilationError, a SyntaxError or a failed import.

    In a chain of CompilationErrors it is the innermost line outside Triton's own library: a user can fix that line.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, "", error.lineno or 0
    if jit is None:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == imported]
        return imported, "", (lines[-1] if lines else 0) or 0
    functions = reach.closure(jit)
    places = [place for link in reversed(_chain(error)) if (place := _pointed_at(link, functions))]
    own = [place for place in places if not reach.in_triton(place[0])]
    return (own or places or [("", "", 0)])[0]


def _pointed_at(error: BaseException, functions: list[Any]) -> tuple[str, str, int] | None:
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    if source is None or node is None or not hasattr(node, "lineno"):
        return None
    for function in functions:
        if function.src == source:
            return function.fn.__code__.co_filename, function.fn.__name__, _first_line(function) + node.lineno - 1
    return None


def _first_line(jit: Any) -> int:
    """Return the line of the file at which Triton's source of a function begins: its `def`, after the decorators."""
    return int(jit.starting_line_number + _lines_before_def(jit))


def _lines_before_def(jit: Any) -> int:
    lines = jit.raw_src if isinstance(jit.raw_src, list) else jit.raw_src.splitlines()
    return next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
