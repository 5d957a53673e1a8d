"""Records of all processes of a program, merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gluonmap.model.candidate import Config


class Launched(msgspec.Struct, frozen=True):
    """A compiled program of a kernel, with the number of its launches."""

    kernel: str
    file: str
    target: str
    config: Config | None
    """Constexpr parameters and arguments that are 1; None: a process that was not watched compiled it."""
    options: Config
    """Compiler options and other metadata of the program, as plain values."""
    launches: int
    trials: int = 0
    """Launches that an autotuner timed; `launches` does not count them."""
    processes: int = 1


class Tuning(msgspec.Struct, frozen=True):
    """A choice that an autotuner made."""

    kernel: str
    key: tuple[str, ...]
    config: Config
    candidates: int
    cached: bool


class Recorded(msgspec.Struct, frozen=True):
    """The launches and tunings of a program."""

    launched: tuple[Launched, ...] = ()
    """Sorted by kernel, the most launched first."""
    tunings: tuple[Tuning, ...] = ()
    pythons: int = 0
    """Number of watched Python processes."""
    triton: tuple[str, ...] = ()
    """Versions of Triton that were imported."""


def read(folder: Path) -> Recorded:
    """Return the merged records of a folder. A line that a dying process wrote in part is skipped."""
    merged: dict[bytes, Launched] = {}
    tunings: list[Tuning] = []
    versions: set[str] = set()
    for path in sorted(folder.glob("*.jsonl")):
        counts = _counts(path.with_suffix(".counts"))
        own: dict[int, Launched] = {}
        for line in _lines(path):
            if "tuned" in line:
                tunings.append(msgspec.convert(line["tuned"], Tuning))
            elif "triton" in line:
                versions.add(str(line["triton"]))
            elif "place" in line:
                place = int(line.pop("place"))
                launches, trials = counts[place] if place < len(counts) else (0, 0)
                own.setdefault(place, msgspec.convert({**line, "launches": launches, "trials": trials}, Launched))
        for item in own.values():
            if item.launches or item.trials:
                key = msgspec.json.encode([item.kernel, item.file, item.target, item.config, _program(item)])
                merged[key] = _sum(merged[key], item) if key in merged else item
    found = sorted(merged.values(), key=lambda item: (item.kernel, item.target, -item.launches, -item.trials))
    pythons = folder / "pythons"
    return Recorded(
        launched=tuple(found),
        tunings=tuple(tunings),
        pythons=len(set(pythons.read_bytes().split())) if pythons.exists() else 0,
        triton=tuple(sorted(versions)),
    )


def _program(item: Launched) -> Config:
    """Return the options that distinguish programs of one configuration. The rest of the metadata follows from them."""
    return {name: value for name, value in sorted(item.options.items()) if name not in ("hash", "name", "shared")}


def _counts(path: Path) -> list[tuple[int, int]]:
    try:
        numbers = memoryview(path.read_bytes()).cast("Q")
    except (OSError, TypeError):
        return []
    return [(numbers[place], numbers[place + 1]) for place in range(0, len(numbers) - 1, 2)]


def _lines(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_bytes().splitlines():
        try:
            found.append(msgspec.json.decode(line, type=dict[str, Any]))
        except msgspec.DecodeError:
            continue
    return found


def _sum(one: Launched, other: Launched) -> Launched:
    return msgspec.structs.replace(
        one,
        launches=one.launches + other.launches,
        trials=one.trials + other.trials,
        processes=one.processes + other.processes,
    )
