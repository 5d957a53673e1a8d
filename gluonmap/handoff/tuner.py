"""`@gluonmap.autotune`: the standard autotuner over the active target's map, which the first launch selects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from gluonmap.handoff.active import MapOrPath, Maps
from gluonmap.handoff.conversion import configs
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.knobs import KnobKind
from gluonmap.model.space_map import SpaceMap


def autotune(
    maps: MapOrPath | Sequence[MapOrPath], key: Sequence[str], limit: int | None = None, **settings: Any
) -> Callable[[Any], Any]:
    """Return a decorator for a jit function, with or without heuristics, in place of `triton.autotune`.

    The first launch reads the map of the active target and builds `triton.autotune(configs=…, key=…, **settings)`
    from at most `limit` of its verified configurations. From then on the kernel has the tuner's attributes
    (best_config, cache, …). The attribute `tuner` builds it at once.

    Raises (at once):
        UsageError: no map is given, or `configs` is among the settings.
    Raises (on the first launch):
        UsageError: no map is of the active target, it cannot be read, or no configuration of it passed.
        UnknownKnob: the map turns a parameter that the function does not have.
    """
    if "configs" in settings:
        raise UsageError("the configurations come from the map: leave configs= out, or use triton.autotune with both.")
    given = Maps(maps)

    def decorate(fn: Any) -> Any:
        if not hasattr(fn, "arg_names"):
            raise UsageError(f"gluonmap.autotune goes over a jit function (@gluon.jit, @triton.jit), not over {fn!r}.")
        return _mapped_kernel()(fn, given, list(key), limit, settings)

    return decorate


@cache
def _mapped_kernel() -> Callable[..., Any]:
    """Return the class of decorated kernels. It is made here because its base class needs Triton."""
    from triton.runtime.jit import KernelInterface

    class MappedKernel(KernelInterface):  # type: ignore[misc]
        """A kernel whose autotuner is built when the device is known."""

        def __init__(self, fn: Any, maps: Maps, key: list[str], limit: int | None, settings: dict[str, Any]) -> None:
            self.fn, self.arg_names = fn, fn.arg_names
            self.base_fn = _function(fn)
            self.__name__, self.__doc__ = self.base_fn.__name__, self.base_fn.__doc__
            self._build: Callable[[], Any] = lambda: _tuner(fn, maps.active(), key, limit, settings)

        @property
        def tuner(self) -> Any:
            """The standard autotuner."""
            if "_tuner" not in self.__dict__:
                self._tuner = self._build()
            return self._tuner

        def run(self, *args: Any, **kwargs: Any) -> Any:
            return self.tuner.run(*args, **kwargs)

        def warmup(self, *args: Any, **kwargs: Any) -> Any:
            return self.tuner.warmup(*args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            # copy, inspect and a probe of this file look up attributes, and must not need a device for it.
            if name.startswith("_") or "_tuner" not in self.__dict__:
                raise AttributeError(f"{name!r}: the autotuner is built on the first launch, or by .tuner")
            return getattr(self.__dict__["_tuner"], name)

    return MappedKernel


def _tuner(fn: Any, space: SpaceMap, key: list[str], limit: int | None, settings: dict[str, Any]) -> Any:
    import triton

    for name, knob in space.knobs.items():
        if knob.kind in (KnobKind.CONSTEXPR, KnobKind.CONSTEXPR_AND_OPTION) and name not in fn.arg_names:
            hint = (
                f"The map {space.kernel!r} on {space.target} is of another kernel, or of an older version of this one."
            )
            raise UnknownKnob(f"{_function(fn).__name__!r}", name, fn.arg_names, hint)
    found = configs(space, limit, names=_function(fn).__globals__)
    return triton.autotune(configs=found, key=key, **settings)(fn)


def _function(fn: Any) -> Any:
    while not inspect.isfunction(fn):
        fn = fn.fn
    return fn
