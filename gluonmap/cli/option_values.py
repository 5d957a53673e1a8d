"""Texts of the command line as values: numbers, pairs, lists, sizes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gluonmap.model.candidate import Value

_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def value_of(text: str) -> Value:
    """Return the value of a text: a number, True, False, None or a quoted text as in Python, else the text itself."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, int | float | str | bool | None) else text


def pair(text: str, option: str) -> tuple[str, str]:
    """Return the two sides of NAME=REST."""
    name, equals, rest = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"{option} takes NAME=VALUE, not {text!r}.")
    return name.strip(), rest.strip()


def values_by_name(texts: Iterable[str], option: str) -> dict[str, Value]:
    """Return the values of several NAME=VALUE; of two with one name the last."""
    return {name: value_of(value) for name, value in (pair(text, option) for text in texts)}


def names_of(*texts: str) -> list[str]:
    """Return the parts of comma-separated texts, without empty ones."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def values_of(text: str) -> tuple[Value, ...]:
    """Return the values of a comma-separated list. Commas inside brackets or quotes do not separate."""
    parts, depth, quote, current = [], 0, "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if character == "," and depth == 0 and not quote:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    if len(parts) > 1 and not all(p.strip() for p in parts):
        raise click.UsageError(f"{text!r} has an empty value; write '' for an empty text.")
    return tuple(value_of(p.strip()) for p in parts if p.strip())


def bytes_of(text: str) -> int:
    """Return a size such as 8G, 512M or 1000000000 in bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if not match:
        raise click.UsageError(f"--memory takes a size such as 8G or 512M, not {text!r}.")
    return int(float(match[1]) * _SIZES[match[2].upper()])
