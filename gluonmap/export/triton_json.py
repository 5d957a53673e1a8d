"""The hand-off as JSON, with configurations in the form of Triton's own `<kernel>.autotune.json`.

Triton stores `[config.__dict__, timings]` pairs and restores each with `Config(**entry)` (`check_disk_cache` in
triton/runtime/autotuner.py, 3.6 to 3.9). Its file belongs to one key of one device and holds times, which no map has.
The exported document has the same entries and is no file for Triton's cache.
"""

from __future__ import annotations

from gluonmap.export.heading import UNTIMED, heading, launch_defaults, refuse_spelled
from gluonmap.handoff.launches import launches
from gluonmap.model import codec
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import LAUNCH_OPTIONS

SCHEMA = "gluonmap.configs/1"


def render(space: SpaceMap, limit: int | None = None) -> str:
    """Return JSON whose `configs` hold the keywords of `triton.Config`, equal to `LoadedMap.configs(limit)`.

    Raises:
        UsageError: nothing passed; Triton is not installed; JSON cannot hold a value.
    """
    found, defaults = launches(space, limit), launch_defaults(space)
    for launch in found:
        refuse_spelled(space, launch, "--format python writes it.")
    entries = [
        {
            "kwargs": {name: value for name, value in launch.items() if name not in LAUNCH_OPTIONS},
            **{name: launch.get(name, defaults.get(name)) for name in LAUNCH_OPTIONS},
            "pre_hook": None,
            "ir_override": None,
        }
        for launch in found
    ]
    document = {
        "schema": SCHEMA,
        "kernel": space.kernel,
        "file": space.file,
        "target": space.target,
        "triton": space.triton,
        "about": [*heading(space, "Configurations for", len(found)), UNTIMED],
        "configs": entries,
    }
    return codec.dumps(document).decode()
