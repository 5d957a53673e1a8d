"""The import of a kernel file, the search for its kernel, and the kernel's decorators."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from gluonmap.worker import stubs
from gluonmap.worker.protocol import KernelFile
from gluonmap.worker.reach import callees, package_root


class Kernel(msgspec.Struct, frozen=True):
    """A kernel without its decorators."""

    name: str
    module: Any
    jit: Any
    """Triton's `JITFunction`."""
    heuristics: tuple[dict[str, Callable[[dict[str, Any]], Any]], ...]
    """Values of each `@triton.heuristics`, outermost first: the order in which Triton runs them."""
    configs: tuple[dict[str, Any], ...]
    """Configurations of `@triton.autotune`, each with its options."""
    prune: Any = None
    """The `early_config_prune` of `@triton.autotune`; None if there is none."""


class KernelNotFound(Exception):
    """The file has no kernel of the name `asked`. `names` are the kernels that it has."""

    def __init__(self, asked: str, names: list[str]) -> None:
        super().__init__(asked)
        self.asked, self.names = asked, names


def load_module(file: KernelFile) -> tuple[ModuleType, list[str]]:
    """Return the kernel's module, and notes on stand-ins for packages. Exceptions of the file propagate."""
    path = Path(file.path)
    root = package_root(path)
    parts = path.with_suffix("").relative_to(root).parts
    # As in Python, a package's own folder is not on the path: its modules could shadow others.
    folders = [root] if len(parts) > 1 else [path.resolve().parent, path.parent]
    for folder in map(str, folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    notes = stubs.install(file.stubs)
    if len(parts) > 1:
        module = importlib.import_module(".".join(parts))
        return module, notes + stubs.used_unasked()
    name = parts[0] if parts[0].isidentifier() and parts[0] not in sys.modules else f"kernel_file_{abs(hash(path))}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))  # accepts any suffix
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module, notes + stubs.used_unasked()


def unwrap(thing: Any) -> Kernel | None:
    """Return the kernel inside any nesting of autotune and heuristics; None if there is none."""
    from triton.runtime.autotuner import Autotuner, Heuristics  # weight of Triton
    from triton.runtime.jit import JITFunction

    heuristics: list[dict[str, Any]] = []
    configs: list[dict[str, Any]] = []
    prune = None
    for _ in range(16):
        if isinstance(thing, JITFunction):
            return Kernel(thing.fn.__name__, None, thing, tuple(heuristics), tuple(configs), prune)
        if isinstance(thing, Heuristics):
            heuristics.append(thing.values)
        elif isinstance(thing, Autotuner):
            configs.extend(c.all_kwargs() for c in thing.configs)
            prune = prune or thing.early_config_prune
        thing = getattr(thing, "fn", None)
        if thing is None:
            return None
    return None


def kernels_in(module: ModuleType) -> dict[str, Kernel]:
    """Return every jit function that the module's own file defines, by its name in the module, in order of the file.

    A function with several names (bare, and with heuristics around it) is listed under each.
    """
    found: dict[str, Kernel] = {}
    for name, thing in list(vars(module).items()):
        kernel = unwrap(thing) if hasattr(thing, "fn") else None
        if kernel is not None and _defined_in(kernel, module):
            found[name] = msgspec.structs.replace(kernel, name=name)
    return dict(sorted(found.items(), key=lambda item: _line(item[1])))


def _defined_in(kernel: Kernel, module: ModuleType) -> bool:
    return bool(kernel.jit.fn.__code__.co_filename == module.__file__)


def _line(kernel: Kernel) -> int:
    return int(kernel.jit.fn.__code__.co_firstlineno)


def find_kernel(module: ModuleType, name: str) -> Kernel:
    """Return the kernel of that name, or the only one that no other jit function of the file calls.

    Raises:
        KernelNotFound: no kernel has the name, or no name is given and there are none or several.
    """
    kernels = kernels_in(module)
    if name:
        kernel = kernels.get(name) or unwrap(getattr(module, name, None))
        if kernel is None:
            raise KernelNotFound(name, list(kernels))
        return msgspec.structs.replace(kernel, name=name, module=module)
    found = entries(kernels)
    if len(found) != 1:
        raise KernelNotFound("", [k.name for k in found] or list(kernels))
    return _of(found[0], module)


def entries(kernels: dict[str, Kernel]) -> list[Kernel]:
    """Return the kernels that no other of these jit functions calls, each once."""
    called = {id(callee) for k in kernels.values() for callee in callees(k.jit).values() if callee is not k.jit}
    found: dict[int, Kernel] = {}
    for kernel in kernels.values():
        best = found.get(id(kernel.jit))
        if id(kernel.jit) not in called and (best is None or _decorations(kernel) > _decorations(best)):
            found[id(kernel.jit)] = kernel
    return list(found.values())


def _decorations(kernel: Kernel) -> int:
    return len(kernel.heuristics) + len(kernel.configs)


def _of(kernel: Kernel, module: ModuleType) -> Kernel:
    return msgspec.structs.replace(kernel, module=module)
