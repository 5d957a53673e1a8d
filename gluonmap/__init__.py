"""gluonmap maps the real tunable space of a Gluon or Triton kernel, without a GPU.

In a program, `load` reads a map, and `autotune`, `early_config_prune` and `LoadedMap.configs` hand it to Triton. The
command line is `gluonmap.cli`, and docs/architecture.md describes the packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from gluonmap.handoff import LoadedMap, autotune, early_config_prune
    from gluonmap.model.space_map import SpaceMap

__version__ = "0.1.0"
__all__ = ["SpaceMap", "__version__", "autotune", "early_config_prune", "load"]


def load(path: str | os.PathLike[str]) -> LoadedMap:
    """Return the map that `gluonmap probe` wrote.

    Raises:
        UsageError: the file does not exist, is no map, or has another schema.
    """
    from pathlib import Path

    from gluonmap.handoff import LoadedMap
    from gluonmap.model import codec

    return codec.read_map_as(Path(path), LoadedMap)


def __getattr__(name: str) -> Any:
    """Return a public name, imported on first use.

    `import gluonmap` alone imports none of the package's modules and dependencies.
    """
    if name == "SpaceMap":
        from gluonmap.model.space_map import SpaceMap

        return SpaceMap
    if name in ("autotune", "early_config_prune"):
        from gluonmap import handoff

        return getattr(handoff, name)
    raise AttributeError(f"module 'gluonmap' has no attribute {name!r}")
