"""Parts of sentences about entries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gluonmap.audit.findings import ShippedPlace
from gluonmap.audit.shipped_files import ShippedEntry
from gluonmap.model.candidate import Value
from gluonmap.model.wording import listed_briefly


def place_of(entry: ShippedEntry, key: str = "") -> ShippedPlace:
    """Return the place of an entry, or of one of its keys."""
    return ShippedPlace(entry.file, entry.lines.get(key, entry.line), entry.name)


def shown(name: str, value: Value) -> str:
    """Return "num_warps=4": one setting in a sentence."""
    return f"{name}={value!r}"


def entry_name(entry: ShippedEntry) -> str:
    """Return the name of an entry; "the configuration" where it is the whole file."""
    return entry.name or "the configuration"


def named(entries: Sequence[ShippedEntry]) -> str:
    """Return 'entry "any"' or 'entries "M_LEQ_16" and "any"', "[0]" of a list, "the configuration" of a whole file."""
    if all(entry.name and not entry.name.startswith("[") for entry in entries):
        return f"entr{'y' if len(entries) == 1 else 'ies'} " + listed_briefly([f'"{entry.name}"' for entry in entries])
    return listed_briefly([entry_name(entry) for entry in entries])


def shown_path(path: Path) -> str:
    """Return the path relative to the current folder, if it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
