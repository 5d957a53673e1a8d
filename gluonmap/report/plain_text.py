"""Text that is safe to show, and the small pieces of wording that all reports share: values, lists, counts, places.

Everything that comes from a compiler or a kernel file goes through `visible` before it is shown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from gluonmap.model.candidate import Value

MESSAGE_LIMIT = 200
"""Characters of a message that a table shows."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One item of a list in a report, with the details that stand below it."""

    text: str
    details: tuple[str, ...] = ()


def visible(text: str) -> str:
    """Return `text` with every character that would act on a terminal or hide from a reader spelled as an escape."""
    return "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" else _escape(c) for c in text)


def _escape(character: str) -> str:
    named = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\xa0": " ", "\u202f": " ", "\u3000": " "}.get(character)
    if named is not None:
        return named
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return `text`, its end replaced by an ellipsis if it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def first_line(text: str) -> str:
    """Return the first line of `text` that is not blank, safe to show."""
    return next((visible(line.strip()) for line in text.splitlines() if line.strip()), "")


def value_label(value: Value) -> str:
    """Return the name of a value in all reports: None, True, 0.5, 256, '' and the bare text of a plain word.

    Text that could be read as another value ("None", "64", "a b") is quoted, so labels tell values apart.
    """
    if not isinstance(value, str):
        return repr(value)
    shown = visible(value)
    taken = shown in {"None", "True", "False", "nan", "inf"}
    plain = shown.isascii() and shown[:1] in set("._") | set(map(chr, range(65, 91))) | set(map(chr, range(97, 123)))
    spaced = any(c in " ,;'\"" for c in shown) and not shown.endswith((")", "]", ">"))
    return shown if plain and not taken and not spaced else f"'{shown}'"


def config_text(config: Mapping[str, Value]) -> str:
    """Return "M=4096, N=512"."""
    return ", ".join(f"{visible(name)}={value_label(value)}" for name, value in config.items())


def location(file: str, line: int | None) -> str:
    """Return "file:line"."""
    return visible(file) + (f":{line}" if line is not None else "")


def plural(count: int, noun: str) -> str:
    """Return "1 knob" or "2 knobs"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
