"""Configuration files of aiter: buckets of M, each with one configuration in the kernel's own names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gluonmap.export.heading import baseline_launch, refuse_spelled, untuned
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.space_map import SpaceMap

BUCKET = re.compile(r"M_(LEQ|GEQ)_[1-9]\d*|any")

Names = Mapping[str, Value]


def render(space: SpaceMap, winners: Mapping[str, Config] | None = None) -> str:
    """Return the file's text.

    `winners`: bucket -> the configuration that won a race. Without winners the file holds the baseline in the bucket
    `any`, and `_comment` says that it was never timed. aiter's loader ignores that entry: it reads `M_LEQ_x`,
    `M_GEQ_x` and `any` by name (aiter/ops/triton/utils/gemm_config_utils.py). Only some targets use kpack
    (`Target.uses_kpack`).

    Raises:
        UsageError: the target is not AMD's; the baseline fails; JSON cannot hold a value; aiter has no such bucket.
    """
    if targets.find(space.target).vendor != "AMD":
        raise UsageError(f"aiter is for AMD's targets, and the map is of {space.target}.")
    if wrong := [name for name in winners or {} if not BUCKET.fullmatch(name)]:
        raise UsageError(f"aiter has no bucket {wrong[0]!r}: M_LEQ_16, M_GEQ_4096 and any are some.")
    entries = {name: _entry(space, config) for name, config in (winners or {"any": baseline_launch(space)}).items()}
    entries = dict(sorted(entries.items(), key=lambda item: _search_order(item[0])))
    comment = {} if winners else {"_comment": untuned(space)}
    return msgspec.json.format(msgspec.json.encode({**comment, **entries}), indent=4).decode() + "\n"


def buckets(winners: Mapping[int, Config]) -> dict[str, Config]:
    """Return the winners by bucket: each serves sizes up to its own, and the largest serves all others (`any`)."""
    *smaller, largest = sorted(winners)
    return {**{f"M_LEQ_{size}": winners[size] for size in smaller}, "any": winners[largest]}


def file_name(space: SpaceMap, names: Names) -> str:
    """Return the path where aiter looks for the file.

    `names`, the probe file's EXPORT["aiter"], may give `backend`, `op` and `d_type`.
    """
    stem = Path(space.file).stem
    op = next((op for op in ("moe", "gemm", "attention") if op in stem.lower() or op in space.kernel.lower()), "gemm")
    parts = [names.get("backend", "gluon"), names.get("op", op), names.get("d_type", stem.lower())]
    return "/".join(["configs", space.target, *(str(part) for part in parts), "DEFAULT.json"])


def _entry(space: SpaceMap, config: Config) -> Config:
    refuse_spelled(space, config, "aiter's files hold plain values only.")
    uses_kpack = targets.find(space.target).uses_kpack
    return {name: value for name, value in config.items() if name != "kpack" or uses_kpack}


def _search_order(bucket: str) -> tuple[int, int]:
    """Return a sort key: M_LEQ_x ascending, M_GEQ_x descending, `any` last, the order in which aiter searches."""
    kind, _, number = bucket.rpartition("_")
    size = int(number) if number.isdigit() else 0
    return {"M_LEQ": (0, size), "M_GEQ": (1, -size)}.get(kind, (2, 0))
