"""Import a kernel file, find the kernel in it, and take its decorators apart."""

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


class Kernel(msgspec.Struct, frozen=True):
    """A kernel without its decorators."""

    name: str
    module: Any
    jit: Any
    """Triton's `JITFunction`."""
    heuristics: tuple[dict[str, Callable[[dict[str, Any]], Any]], ...]
    """Of each `@triton.heuristics`, outermost first: the order in which Triton runs them."""
    configs: tuple[dict[str, Any], ...]
    """Of `@triton.autotune`: each configuration with its options."""
    prune: Any = None
    """The `early_config_prune` of `@triton.autotune`; None: it has none."""


class KernelNotFound(Exception):
    """No kernel of the asked name. `names`: those that the file has."""

    def __init__(self, asked: str, names: list[str]) -> None:
        super().__init__(asked)
        self.asked, self.names = asked, names


def package_root(path: Path) -> Path:
    """The folder to import from: the parent of the topmost package that holds `path`, or its own folder.

    Namespace packages in between (a folder without `__init__.py` below one that has it) are stepped over.
    """
    root = path.parent
    for parent in path.parents:
        if (parent / "__init__.py").is_file():
            root = parent.parent
    return root


def load_module(file: KernelFile) -> tuple[ModuleType, list[str]]:
    """The kernel's module and notes on what stood in for what. Raises whatever the file raises."""
    path = Path(file.path)
    root = package_root(path)
    parts = path.with_suffix("").relative_to(root).parts
    # In a package the file's own folder stays off the path, as Python keeps it: its modules could shadow others.
    folders = [root] if len(parts) > 1 else [path.resolve().parent, path.parent]
    for folder in map(str, folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    notes = stubs.install(file.stubs)
    if len(parts) > 1:
        module = importlib.import_module(".".join(parts))
        return module, notes + stubs.used_unasked()
    name = parts[0] if parts[0].isidentifier() and parts[0] not in sys.modules else f"kernel_file_{abs(hash(path))}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))  # whatever the file's suffix is
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module, notes + stubs.used_unasked()


def unwrap(thing: Any) -> Kernel | None:
    """The kernel inside any nesting of autotune and heuristics; None where there is none."""
    from triton.runtime.autotuner import Autotuner, Heuristics
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
    """Every jit function that the module's own file defines, by its name in the module, in the order of the file.

    A function that stands under several names (bare, and with heuristics around it) is found under each.
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
    """The kernel of that name, or the only one that no other jit function of the file calls.

    Raises:
        KernelNotFound: none of that name, or no name given and none or several to choose from.
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
    """Those that no other jit function among them calls, each once."""
    from gluonmap.worker.reach import callees

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
