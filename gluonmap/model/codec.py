"""Maps, candidates and races as JSON, with their schema's version. No other module decides how stored bytes look."""

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
"""Values of one domain: `constraints.counting` numbers them with 16 bits."""
MOST_TEXT = 10_000
"""Characters of a written relation."""
LINE = 120
"""Columns of stored JSON: a value that fits is on one line."""
RENAMED_KEYS = {"on_device": "execution"}
"""Former top-level key of a map -> its key today. Earlier maps have `on_device`, even if stage RUN
executed them on the CPU. The next release can drop this entry."""


def dumps(value: object) -> bytes:
    """Return JSON for people and for `git diff`, with a final newline. The same value gives the same bytes."""
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
    """Return compact JSON with sorted keys, for hashing."""
    return msgspec.json.encode(value, order="deterministic")


def digest(value: object) -> str:
    """Return 20 hex digits that identify a value."""
    return hashlib.sha256(canonical(value)).hexdigest()[:20]


def read_map(path: Path) -> SpaceMap:
    """Return the map stored in a file.

    Raises:
        UsageError: the file is not there, is no map, or is of another schema.
    """
    return read_map_as(path, SpaceMap)


def read_map_as(path: Path, as_type: type[Map]) -> Map:
    """Return the map stored in a file, as a type derived from `SpaceMap`. Keys of earlier releases are renamed.

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
        if head.keys() & RENAMED_KEYS.keys():
            data = msgspec.json.encode({RENAMED_KEYS.get(key, key): value for key, value in head.items()})
        space = msgspec.json.decode(data, type=as_type)
        if wrong := _inconsistent(space):
            raise msgspec.DecodeError(wrong)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no map: {error}. gluonmap probe KERNEL writes it again.") from error
    return space


def read_race(path: Path) -> RaceRecord:
    """Return the record of a race that is stored in a file.

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
    """Return the contradiction in a map, which makes its answers worthless; "" for a map as it was written."""
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
    """Return the defect of a relation, or of a term of it; "" for a well-formed one."""
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
    """Write a file under a temporary name and rename it into place; make its folder first.

    Raises:
        StorageFault: the file cannot be written.
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
