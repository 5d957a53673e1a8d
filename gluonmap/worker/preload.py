"""Preparation of a server before it forks: import Triton, compute its key, install a stub driver.

Triton is imported in the functions, since `preload` sets TRITON_ALWAYS_COMPILE before it.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from gluonmap.model import targets


def preload() -> None:
    """Import Triton and compute its key once, which costs 0.3 s of import and 0.8 s of hashing (3.9.0)."""
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    import triton
    import triton.experimental.gluon  # noqa: F401
    from triton.backends.amd.compiler import HIPBackend

    triton_key()

    # Triton 3.6 imports torch just to get a tensor's size, and 3.9 checks for torch. Our arguments know their size.
    # This patch can go when Triton looks at `ptr_range` first.
    HIPBackend.is_within_2gb = staticmethod(lambda arg: _bytes_of(arg) <= 2**31 - 1)


def _bytes_of(argument: Any) -> int:
    """Return the size of an argument's memory in bytes: from a stand-in's `ptr_range`, else from torch's storage."""
    if hasattr(argument, "ptr_range"):
        return int(argument.ptr_range())
    return int(argument.untyped_storage().size())


def triton_key() -> str:
    """Return Triton's hash of its own files. Its module differs between releases."""
    try:
        from triton.runtime.cache import triton_key as key
    except ImportError:
        from triton.compiler.compiler import triton_key as key
    return str(key())


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
