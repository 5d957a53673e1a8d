"""Machine code for the tests, compiled by the installed Triton for a GPU that is not there."""

from __future__ import annotations

import functools
import importlib.util
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from gluonmap.model import targets
from gluonmap.worker import arguments, preload

REPOSITORY = Path(__file__).resolve().parents[2]


@functools.cache
def _ready() -> None:
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="cdna-")
    preload.preload()


def compiled(kernel: Any, target: str, args: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
    """Compile `kernel` with Triton: `asm["amdgcn"]` is the text. `args`: a number, or a type such as "*bf16"."""
    from triton.runtime import driver

    _ready()
    names = [t.name for t in targets.TARGETS]
    preload.pretend(targets.TARGETS[names.index(target)])
    # A kernel keeps its binder per device, so each target gets its own device.
    driver.active.get_current_device = lambda: names.index(target)
    stand_ins = {name: arguments.make(value, "hip") for name, value in args.items()}
    return kernel.warmup(**stand_ins, grid=(1,), **config)


@functools.cache
def bundled(name: str) -> ModuleType:
    """Import the module of a kernel below kernels/, such as "cdna3/gemm_bf16"."""
    return _imported("bundled_" + name.replace("/", "_"), REPOSITORY / "kernels" / f"{name}.py")


def module(path: Path, source: str) -> ModuleType:
    """Write this text to a file and import it."""
    path.write_text(source)
    return _imported(path.stem, path)


def _imported(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    return result
