"""A configuration file of aiter: buckets of M, each with one configuration, under the names that the kernel has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gluonmap.export.heading import baseline_launch, one_line, refuse_spelled
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.space_map import SpaceMap

BUCKET = re.compile(r"M_(LEQ|GEQ)_[1-9]\d*|any")

Names = Mapping[str, Value]


def render(space: SpaceMap, winners: Mapping[str, Config] | None = None) -> str:
    """Return the file's text. `winners`: bucket -> the configuration that a race found; none: the baseline for `any`.

    What nobody raced is said to be untuned in `_comment`, which aiter's loader never looks at: it reads the entries
    `M_LEQ_x`, `M_GEQ_x` and `any` by name (aiter/ops/triton/utils/gemm_config_utils.py). Only some targets use kpack
    (`Target.uses_kpack`).

    Raises:
        UsageError: the target is none of AMD's; the baseline fails; a value that JSON cannot hold; no such bucket.
    """
    if targets.find(space.target).vendor != "AMD":
        raise UsageError(f"aiter is for AMD's targets, and the map is of {space.target}.")
    if wrong := [name for name in winners or {} if not BUCKET.fullmatch(name)]:
        raise UsageError(f"aiter has no bucket {wrong[0]!r}: M_LEQ_16, M_GEQ_4096 and any are some.")
    entries = {name: _entry(space, config) for name, config in (winners or {"any": baseline_launch(space)}).items()}
    entries = dict(sorted(entries.items(), key=lambda item: _place(item[0])))
    said = {} if winners else {"_comment": comment(space)}
    import msgspec

    return msgspec.json.format(msgspec.json.encode({**said, **entries}), indent=4).decode() + "\n"


def buckets(winners: Mapping[int, Config]) -> dict[str, Config]:
    """The buckets of winners by M: each serves what is no larger, and the largest serves the rest too."""
    *smaller, largest = sorted(winners)
    return {**{f"M_LEQ_{size}": winners[size] for size in smaller}, "any": winners[largest]}


def comment(space: SpaceMap) -> str:
    """What a file says of a configuration that nobody raced."""
    return one_line(
        f"Not tuned: the baseline of {space.kernel} on {space.target}, compiled and passed with Triton {space.triton}, "
        "never timed."
    )


def file_name(space: SpaceMap, names: Names) -> str:
    """Where aiter looks for it. `names` (the probe file's EXPORT["aiter"]) may give `backend`, `op` and `d_type`."""
    stem = Path(space.file).stem
    op = next((op for op in ("moe", "gemm", "attention") if op in stem.lower() or op in space.kernel.lower()), "gemm")
    parts = [names.get("backend", "gluon"), names.get("op", op), names.get("d_type", stem.lower())]
    return "/".join(["configs", space.target, *(str(part) for part in parts), "DEFAULT.json"])


def _entry(space: SpaceMap, config: Config) -> Config:
    refuse_spelled(space, config, "aiter's files hold plain values only.")
    uses_kpack = targets.find(space.target).uses_kpack
    return {name: value for name, value in config.items() if name != "kpack" or uses_kpack}


def _place(bucket: str) -> tuple[int, int]:
    """M_LEQ_x ascending, M_GEQ_x descending, any last: the order in which aiter looks."""
    kind, _, number = bucket.rpartition("_")
    size = int(number) if number.isdigit() else 0
    return {"M_LEQ": (0, size), "M_GEQ": (1, -size)}.get(kind, (2, 0))
