"""Preparation of a server before it forks: import Triton, fix its cache key, install a stub driver.

Triton is imported in the functions, since `preload` sets TRITON_ALWAYS_COMPILE before it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

from gluonmap.model import targets


def preload() -> None:
    """Import Triton once for all candidates: 0.3 s of every fresh process (3.9.0)."""
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    import triton
    import triton.experimental.gluon  # noqa: F401
    from triton.backends.amd.compiler import HIPBackend

    _fix_key(sys.modules)

    # Triton 3.6 imports torch just to get a tensor's size, and 3.9 checks for torch. Our arguments know their size.
    # This patch can go when Triton looks at `ptr_range` first.
    HIPBackend.is_within_2gb = staticmethod(lambda arg: _bytes_of(arg) <= 2**31 - 1)


def _bytes_of(argument: Any) -> int:
    """Return the size of an argument's memory in bytes: from a stand-in's `ptr_range`, else from torch's storage."""
    if hasattr(argument, "ptr_range"):
        return int(argument.ptr_range())
    return int(argument.untyped_storage().size())


def _fix_key(modules: Mapping[str, ModuleType]) -> None:
    """Give Triton a constant instead of the hash of its own files.

    The hash costs 0.8 s in every fresh process (3.9.0), most of it for libtriton.so. It only names entries of Triton's
    cache, and every candidate has a cache folder that nothing else uses. Triton's own pool of compile processes
    replaces the function in the same way (triton/_compile_warmup_pool.py, 3.9.0).
    """
    version = modules["triton"].__version__
    for name, module in list(modules.items()):
        if name.startswith("triton.") and callable(getattr(module, "triton_key", None)):
            module.triton_key = lambda: f"{version}-gluonmap"  # type: ignore[attr-defined]


def pretend(target: targets.Target) -> Any:
    """Make `target` the active GPU of this process and return the `GPUTarget`. A compile needs only a stub driver."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    gpu = GPUTarget(target.backend, target.arch, target.warp_size)
    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: gpu,
            get_current_device=lambda: 0,
            get_current_stream=lambda device=0: 0,
            get_active_torch_device=lambda: "cpu",
            get_device_interface=lambda: None,
            map_python_to_cpp_type=lambda ty: ty,
        )
    )
    return gpu
