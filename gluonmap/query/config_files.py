"""Configurations in a file of JSON lines. They are read one at a time, since the file may be huge or malformed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from gluonmap.model.candidate import Config
from gluonmap.model.errors import UsageError

MOST_LINE_BYTES = 1 << 20
"""Length of a line, in bytes, beyond which it is refused."""


def read_configs(stream: IO[bytes], name: str) -> Iterator[tuple[int, Config]]:
    """Yield the number of each line that is not blank, and its values: {"K": V} or {"config": {"K": V}}.

    Raises:
        UsageError: a line is no configuration; it names the line.
    """
    for number in itertools.count(1):
        line = stream.readline(MOST_LINE_BYTES + 1)
        if not line:
            return
        try:
            if len(line) > MOST_LINE_BYTES:
                raise ValueError(f"it is longer than {MOST_LINE_BYTES:,} bytes")
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if text.strip():
                yield number, _config(text)
        except RecursionError:
            raise _no_configuration(name, number, "it is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise _no_configuration(name, number, f"{error.msg} at character {error.pos + 1}") from None
        except ValueError as error:
            raise _no_configuration(name, number, str(error)) from None


def _no_configuration(name: str, number: int, why: str) -> UsageError:
    return UsageError(
        f'line {number} of {name} is no configuration: {why}. A line is {{"BLOCK_M": 64}} or '
        '{"config": {"BLOCK_M": 64}}.'
    )


def _config(text: str) -> Config:
    found = json.loads(text, object_pairs_hook=_once_each, parse_constant=_refused)
    if isinstance(found, dict) and isinstance(found.get("config"), dict):
        found = found["config"]
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    for name, value in found.items():
        if isinstance(value, (dict, list)):
            raise ValueError(f"the value of {name!r} is {'an object' if isinstance(value, dict) else 'a list'}")
    return found


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r} is there twice")
    return found


def _refused(text: str) -> NoReturn:
    raise ValueError(f"{text} is no value")
