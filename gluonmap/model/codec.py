"""Maps and candidates as JSON, with their schema's version; the only place that decides how bytes look."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec

from gluonmap.model.errors import StorageFault, UsageError
from gluonmap.model.race_record import RACE_SCHEMA, RaceRecord
from gluonmap.model.relations import (
    AllOf,
    AnyOf,
    Compare,
    Max,
    Min,
    Nogood,
    Product,
    Quotient,
    Relation,
    Remainder,
    RoundUp,
    Sum,
    Term,
    Written,
)
from gluonmap.model.space_map import MAP_SCHEMA, SpaceMap

Map = TypeVar("Map", bound=SpaceMap)
MOST_VALUES = 32_767
MOST_TEXT = 10_000


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
    """Return the map stored in a file.

    Raises:
        UsageError: the file is not there, is no map, or is of another schema.
    """
    return read_map_as(path, SpaceMap)


def read_map_as(path: Path, as_type: type[Map]) -> Map:
    """Return the map stored in a file, as a type derived from `SpaceMap`.

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
        space = msgspec.json.decode(data, type=as_type)
        if wrong := _inconsistent(space):
            raise msgspec.DecodeError(wrong)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no map: {error}. gluonmap probe KERNEL writes it anew.") from error
    return space


def read_race(path: Path) -> RaceRecord:
    """The record of a race that is stored in a file.

    Raises:
        UsageError: the file is not there, is no such record, or is of another schema.
    """
    try:
        record = msgspec.json.decode(path.read_bytes(), type=RaceRecord)
    except OSError as error:
        raise UsageError(f"cannot read the race {path}: {error.strerror}. gluonmap race KERNEL writes one.") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no record of a race: {error}. gluonmap race KERNEL writes one.") from error
    if record.schema != RACE_SCHEMA:
        raise UsageError(f"{path} has schema {record.schema!r}; this gluonmap reads {RACE_SCHEMA!r}.")
    return record


def _inconsistent(space: SpaceMap) -> str:
    """What in a map contradicts itself, so that no answer of it could be trusted; "" for a map as it was written."""
    if extra := space.knobs.keys() - space.baseline.keys():
        return f"the baseline has no {', '.join(sorted(extra))}"
    joint = space.joint
    if joint is None:
        return ""
    if other := joint.domains.keys() ^ space.baseline.keys():
        return f"joint.domains and the baseline differ in {', '.join(sorted(other))}"
    if not all(0 < len(domain) < MOST_VALUES for domain in joint.domains.values()):
        return "a domain of joint.domains is empty, or too long"
    if any(len(item.values) != len(joint.domains) for item in joint.tried):
        return "an entry of joint.tried has not one value for each knob"
    if any(item.config.keys() - space.baseline.keys() for item in joint.programs):
        return "a program has a knob that the baseline has not"
    relations = [c.relation for c in joint.constraints]
    relations += [item.relation for item in joint.inertness if item.relation is not None]
    relations += [item.relation for item in joint.value_classes if item.relation is not None]
    return next((wrong for relation in relations if (wrong := _ill_formed(relation))), "")


def _ill_formed(part: Relation | Term) -> str:
    """What makes a relation or a term of it say nothing."""
    match part:
        case AnyOf(parts) | AllOf(parts) | Max(parts) | Min(parts) | Sum(parts):
            return next((w for p in parts if (w := _ill_formed(p))), "") if parts else "a relation has no parts"
        case Nogood(cells):
            return "" if cells else "a nogood has no cells"
        case Compare(left, _, right):
            return _ill_formed(left) or _ill_formed(right)
        case Quotient(one, other) | Remainder(one, other):
            return _ill_formed(one) or _ill_formed(other)
        case RoundUp(one, multiple):
            return _ill_formed(one) if multiple > 0 else "a relation rounds up to a multiple of nothing"
        case Product(parts):
            return next((w for p in parts if (w := _ill_formed(p))), "")
        case Written(text):
            return "" if len(text) <= MOST_TEXT else "a written relation is too long"
        case _:
            return ""


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
        with contextlib.suppress(OSError):
            path.with_name(path.name + ".part").unlink(missing_ok=True)
        raise StorageFault(
            f"cannot write {path}: {error.strerror}. Make room there or name another folder with --out."
        ) from error
