"""What texts on the command line mean: values, pairs, lists, sizes."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gluonmap.model.candidate import Value

_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def value_of(text: str) -> Value:
    """What a text on the command line means: a number, True, False, None or quoted text as in Python, else itself."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, int | float | str | bool | None) else text


def pair(text: str, option: str) -> tuple[str, str]:
    """The two sides of NAME=REST."""
    name, equals, rest = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"{option} takes NAME=VALUE, not {text!r}.")
    return name.strip(), rest.strip()


def values_of(text: str) -> tuple[Value, ...]:
    """The values of a comma-separated list; commas inside brackets or quotes do not separate."""
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
        raise click.UsageError(f"an empty value stands in {text!r}; write '' for an empty text.")
    return tuple(value_of(p.strip()) for p in parts if p.strip())


def bytes_of(text: str) -> int:
    """A size such as 8G, 512M or 1000000000, in bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if not match:
        raise click.UsageError(f"--memory takes a size such as 8G or 512M, not {text!r}.")
    return int(float(match[1]) * _SIZES[match[2].upper()])
