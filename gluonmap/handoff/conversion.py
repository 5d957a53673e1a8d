"""Configurations of a map as `triton.Config`."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gluonmap.handoff.descriptors import SetBlocks, hook_of
from gluonmap.handoff.launches import launches, probe_command
from gluonmap.handoff.python_values import python_value
from gluonmap.model import targets
from gluonmap.model.candidate import Config
from gluonmap.model.errors import GluonmapError
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import LAUNCH_OPTIONS

if TYPE_CHECKING:
    import triton


def configs(
    space: SpaceMap, limit: int | None = None, *, names: Mapping[str, Any] | None = None
) -> list[triton.Config]:
    """Return the verified configurations of a map for `triton.autotune`; never an empty list.

    `launches` documents the contents of each and the selection by `limit`. num_warps, num_stages, num_ctas and maxnreg
    are always set. Where the map does not turn them, they have the values that its candidates were compiled with,
    because the defaults of `triton.Config` are not the compiler's. The `pre_hook` of a configuration sets the blocks of
    descriptors that host code makes. `names`: globals of the kernel's module, for values that a map stores as Python
    text.

    Raises:
        UsageError: nothing passed; a limit below 1; a value that cannot be made here.
        GluonmapError: this Triton's `Config` does not pass on what it was given.
    """
    warn_of_another_triton(space)
    defaults = default_options(space.target)
    return [_config(launch, defaults, names or {}, hook_of(space, launch)) for launch in launches(space, limit)]


def default_options(target: str) -> dict[str, Any]:
    """Return the compiler's default options, as the installed Triton declares them."""
    if targets.find(target).backend == "hip":
        from triton.backends.amd.compiler import HIPOptions as Options
    else:
        from triton.backends.nvidia.compiler import CUDAOptions as Options
    return {field.name: field.default for field in dataclasses.fields(Options)}


def warn_of_another_triton(space: SpaceMap) -> None:
    """Warn if the map was made with another Triton, which may crash where that one passed."""
    import triton

    if triton.__version__ != space.triton:
        warnings.warn(
            f"the map of {space.kernel!r} was made with Triton {space.triton}, and this is {triton.__version__}: "
            f"nothing in it is verified here. Map it again:  {probe_command(space, '')}",
            stacklevel=3,
        )


def _config(
    launch: Config, defaults: Mapping[str, Any], names: Mapping[str, Any], hook: SetBlocks | None
) -> triton.Config:
    import triton

    # Keyword arguments in signature order: triton.Config compares them in order (triton/runtime/autotuner.py, 3.9.0).
    own = {name: python_value(value, names) for name, value in launch.items() if name not in LAUNCH_OPTIONS}
    options = {name: launch.get(name, defaults.get(name)) for name in LAUNCH_OPTIONS}
    config = triton.Config(own, **options, pre_hook=hook)
    wanted = own | {name: value for name, value in options.items() if value is not None}
    if config.all_kwargs() != wanted:
        raise GluonmapError(
            f"triton.Config of Triton {triton.__version__} passes on {config.all_kwargs()}, and the map wants {wanted}."
        )
    return config
