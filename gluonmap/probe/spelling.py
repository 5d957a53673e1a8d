"""Spelling of knobs and values on the command line."""

from __future__ import annotations

import ast

from gluonmap.model.candidate import Value


def quoted(name: str, value: Value) -> str:
    """Return `NAME=VALUE` for a shell and for `--set`, which reads Python literals."""
    text = f"{name}={spelled(value)}"
    return text if all(c.isalnum() or c in "_=.-+*:/," for c in text) else "'" + text.replace("'", "'\\''") + "'"


def spelled(value: Value) -> str:
    """Return a value as it is typed on the command line, which reads Python literals."""
    return repr(value) if isinstance(value, str) and _reads_as_other(value) else str(value)


def _reads_as_other(text: str) -> bool:
    """Return whether the bare text would be read as a number, None, or nothing."""
    try:
        return not isinstance(ast.literal_eval(text), str)
    except (ValueError, SyntaxError):
        return text == ""
