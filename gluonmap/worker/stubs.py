"""Stand-ins for packages that a kernel file imports but a compile does not need.

`--stub aiter`: the package is on disk, but its `__init__` cannot run on this machine (for example, it loads a GPU
library). It becomes an empty package with the right path, so that its submodules import. If `torch` is not installed,
it gets a stand-in without being asked for: kernel files import it for their launch wrappers.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


class StandInUsed(TypeError):
    """An import computes with the stand-in for a package, which holds nothing."""


class _Nothing(type):
    """A metaclass. Every attribute of its classes is such a class, usable as annotation, dtype, base or decorator."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _Nothing(name, (), {"__module__": f"{cls.__module__}.{cls.__name__}"})
        setattr(cls, name, value)
        return value

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a decorated function unchanged; any other call returns the class itself."""
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else cls

    def __bool__(cls) -> bool:
        return True


def _refused(operation: str) -> Any:
    def refuse(cls: type, *_: Any) -> Any:
        package = cls.__module__.partition(".")[0]
        raise StandInUsed(
            f"the import computes with {cls.__module__}.{cls.__name__} ({operation}), and an empty module stands in "
            f"for {package}: install {package} here instead"
        )

    return refuse


for _name, _operation in {
    "__lt__": "<",
    "__le__": "<=",
    "__gt__": ">",
    "__ge__": ">=",
    "__add__": "+",
    "__radd__": "+",
    "__sub__": "-",
    "__rsub__": "-",
    "__mul__": "*",
    "__rmul__": "*",
    "__truediv__": "/",
    "__rtruediv__": "/",
    "__mod__": "%",
    "__floordiv__": "//",
    "__rfloordiv__": "//",
    "__rmod__": "%",
    "__pow__": "**",
    "__rpow__": "**",
    "__int__": "int()",
    "__float__": "float()",
    "__index__": "as an index",
    "__len__": "len()",
    "__iter__": "iteration",
    "__contains__": "in",
    "__getitem__": "[]",
}.items():
    setattr(_Nothing, _name, _refused(_operation))


class _EmptyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _Nothing(name, (), {"__module__": self.__name__})
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A finder that provides a package that is not installed, and all its submodules, as empty modules."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == self.package or fullname.startswith(self.package + "."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _EmptyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


def install(packages: Sequence[str]) -> list[str]:
    """Install the stand-ins; return notes for the report, one per package that the user named."""
    notes = [_install(package) for package in packages]
    if "torch" not in packages and not _installed("torch"):
        sys.meta_path.append(_Finder("torch"))
    return notes


def used_unasked() -> list[str]:
    """Return notes on stand-ins that the user did not name and that an import has used."""
    if isinstance(sys.modules.get("torch"), _EmptyModule):
        return ["torch is not installed here: an empty one stands in (a compile needs none)"]
    return []


def _installed(package: str) -> bool:
    return package in sys.modules or importlib.util.find_spec(package) is not None


def _install(package: str) -> str:
    for root in sys.path:
        folder = Path(root or ".") / package
        if folder.is_dir():
            module = ModuleType(package)
            module.__path__ = [str(folder)]
            sys.modules[package] = module
            return f"the __init__ of {package} was not run (--stub {package})"
    sys.meta_path.append(_Finder(package))
    return f"{package} is not on the path: an empty one stands in (--stub {package})"
