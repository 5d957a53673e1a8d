"""Configuration files of vLLM and SGLang: number of tokens -> configuration.

The file's name gives experts, width, device and types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gluonmap.export.heading import baseline_launch, refuse_spelled
from gluonmap.model.candidate import Config
from gluonmap.model.errors import UsageError
from gluonmap.model.space_map import SpaceMap

NAMES = ("E", "N", "device_name", "dtype", "block_shape", "M")

Names = Mapping[str, Any]


def render(space: SpaceMap, names: Names, winners: Mapping[int, Config] | None = None) -> str:
    """Return the file's text.

    `winners`: M -> the configuration that won a race. Without winners the file holds the baseline. It cannot say that
    the baseline was never timed, because vLLM reads every key as a number.

    Raises:
        UsageError: no M is known; the baseline fails; JSON cannot hold a value.
    """
    file_name(space, names)
    if winners is None:
        size = names.get("M", space.shape.get("M"))
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise UsageError(_missing("M", "the map's shape has none: the number of tokens that the baseline is for"))
        winners = {size: baseline_launch(space)}
    for config in winners.values():
        refuse_spelled(space, config, "vLLM's files hold plain values only.")
    entries = {str(size): winners[size] for size in sorted(winners)}
    return msgspec.json.format(msgspec.json.encode(entries), indent=4).decode() + "\n"


def file_name(space: SpaceMap, names: Names) -> str:
    """Return a name such as `E=8,N=4096,device_name=AMD_Instinct_MI300X,dtype=…,block_shape=[128,128].json`.

    Raises:
        UsageError: the probe file lacks a field, or gives an unknown one.
    """
    if not names:
        raise UsageError(_missing("E", "the name of a vLLM file gives experts, width and device, which no map knows"))
    if unknown := sorted(set(names) - set(NAMES)):
        raise UsageError(f"EXPORT['vllm'] gives {', '.join(unknown)}; it knows {', '.join(NAMES)}.")
    for name, kind in (("E", int), ("N", int), ("device_name", str)):
        if not isinstance(names.get(name), kind):
            raise UsageError(_missing(name, f"the name of a vLLM file for {space.kernel} needs it"))
    parts = [f"E={names['E']}", f"N={names['N']}", f"device_name={str(names['device_name']).replace(' ', '_')}"]
    parts += [f"dtype={names['dtype']}"] if names.get("dtype") else []
    if shape := names.get("block_shape"):
        parts.append("block_shape=[" + ",".join(str(int(size)) for size in shape) + "]")
    name = ",".join(parts) + ".json"
    if "/" in name or not name.isprintable():
        raise UsageError(f"EXPORT['vllm'] makes the file's name {name!r}, which is none.")
    return name


def _missing(name: str, why: str) -> str:
    return (
        f"vLLM's format needs {name}: {why}. Add it to the probe file:\n"
        '  EXPORT = {"vllm": {"E": 8, "N": 4096, "device_name": "AMD_Instinct_MI300X", "dtype": "fp8_w8a8"}}'
    )
