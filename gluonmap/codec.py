"""Maps and candidates as JSON, with their schema's version; the only place that decides how bytes look."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec

from gluonmap.errors import StorageFault, UsageError
from gluonmap.space import MAP_SCHEMA, SpaceMap

T = TypeVar("T")


def dumps(value: object) -> bytes:
    """Pretty JSON with a final newline: the same value gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


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
