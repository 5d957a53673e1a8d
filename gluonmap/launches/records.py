"""What the recorders of all processes have written, as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gluonmap.model.candidate import Config


class Launched(msgspec.Struct, frozen=True):
    """One program of one kernel: how often it was launched."""

    kernel: str
    file: str
    target: str
    config: Config | None
    """Constexpr parameters and arguments that are 1; None: it was compiled where nobody looked."""
    options: Config
    """Options of the compiler and whatever else is known of the program, as plain values."""
    launches: int
    trials: int = 0
    """Launches by which an autotuner compared; not among `launches`."""
    processes: int = 1


class Tuning(msgspec.Struct, frozen=True):
    """One choice of an autotuner."""

    kernel: str
    key: tuple[str, ...]
    config: Config
    candidates: int
    cached: bool


class Recorded(msgspec.Struct, frozen=True):
    """All that a program did."""

    launched: tuple[Launched, ...] = ()
    """By kernel, most launched first."""
    tunings: tuple[Tuning, ...] = ()
    pythons: int = 0
    """Python processes that were watched."""
    triton: tuple[str, ...] = ()
    """Versions that were imported."""


def read(folder: Path) -> Recorded:
    """Read what the recorders left in a folder. A line that a dying process wrote in part is left out."""
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
    """What tells programs of one configuration apart; all else in their metadata follows from it."""
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
