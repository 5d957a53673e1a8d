"""Maps and candidates as JSON, with their schema's version; the only place that decides how bytes look."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec

from gluonmap.errors import StorageFault, UsageError
from gluonmap.space import MAP_SCHEMA, SpaceMap

T = TypeVar("T")


LINE = 120
"""Columns of stored JSON: what fits stands on one line."""


def dumps(value: object) -> bytes:
    """JSON for people and for `git diff`, with a final newline: the same value gives the same bytes."""
    return (_lines(msgspec.to_builtins(value), 0) + "\n").encode()


def _lines(value: object, indent: int) -> str:
    flat = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    if indent + len(flat) <= LINE or not isinstance(value, dict | list | tuple):
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        items = [f"{msgspec.json.encode(str(k)).decode()}: {_lines(v, indent + 2)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner + item for item in items) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(inner + _lines(item, indent + 2) for item in value) + "\n" + " " * indent + "]"


def canonical(value: object) -> bytes:
    """Compact JSON with sorted keys, for hashing."""
    return msgspec.json.encode(value, order="deterministic")


def digest(value: object) -> str:
    """20 hex digits that stand for a value."""
    return hashlib.sha256(canonical(value)).hexdigest()[:20]


def read_map(path: Path) -> SpaceMap:
    """The map stored in a file.

    Raises:
        UsageError: the file is not there, is no map, or is of another schema.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the map {path}: {error.strerror}. gluonmap probe KERNEL writes one.") from error
    try:
        head = msgspec.json.decode(data, type=dict[str, object])
        if head.get("schema") != MAP_SCHEMA:
            raise UsageError(f"{path} has schema {head.get('schema')!r}; this gluonmap reads {MAP_SCHEMA!r}.")
        return msgspec.json.decode(data, type=SpaceMap)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no map: {error}. gluonmap probe KERNEL writes it anew.") from error


def write(path: Path, data: bytes) -> None:
    """Put a file in place by rename, its folder made first.

    Raises:
        StorageFault: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_bytes(data)
        part.rename(path)
    except OSError as error:
        raise StorageFault(
            f"cannot write {path}: {error.strerror}. Make room there or name another folder with --out."
        ) from error
