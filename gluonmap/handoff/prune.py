"""Pruning of an existing list of configurations to those that pass by the active target's map."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from gluonmap.handoff.active import MapOrPath, Maps
from gluonmap.handoff.conversion import configs as own_configs
from gluonmap.handoff.conversion import default_options, warn_of_another_triton
from gluonmap.handoff.launches import options_of
from gluonmap.handoff.python_values import python_value
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.dtypes import DTYPES, POINTER
from gluonmap.model.errors import UsageError
from gluonmap.model.knobs import KnobKind
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import LAUNCH_OPTIONS
from gluonmap.query.feasibility import Judge, domains_of, moves_of
from gluonmap.query.reduced_space import reduced_space_of

if TYPE_CHECKING:
    import triton

    Prune = Callable[..., list[triton.Config]]

_PLAIN = (bool, int, float, str, type(None))


def early_config_prune(maps: MapOrPath | Sequence[MapOrPath], *, unknown: Literal["drop", "keep"] = "drop") -> Prune:
    """Return a function for `triton.autotune(…, prune_configs_by={"early_config_prune": …})`.

    It keeps, in order, the configurations that pass by the map of the active target. It drops those that failed or
    break a constraint, and those that are predicted to be the program of an earlier one. `unknown` decides on those
    that the map does not know (a value that it never tried, several moves without a joint part). It never returns an
    empty list: the map's own configurations take its place, with a warning. If arguments have other types than the
    map's, it warns and leaves the list as it is.

    Raises (on the first launch):
        UsageError: there is no map of the active target, or a map cannot be read.
    """
    if unknown not in ("drop", "keep"):
        raise UsageError(
            f"unknown={unknown!r}: a configuration that the map does not know is dropped ('drop') or kept ('keep')."
        )
    given, pruners = Maps(maps), dict[str, _Pruner]()

    def prune(configs: list[triton.Config], named_args: Mapping[str, Any], **kwargs: Any) -> list[triton.Config]:
        space = given.active()
        if space.target not in pruners:
            warn_of_another_triton(space)
            pruners[space.target] = _Pruner(space, unknown == "keep")
        return pruners[space.target].prune(configs, {**(named_args or {}), **kwargs})

    return prune


class _Pruner:
    """Pruning by one map."""

    def __init__(self, space: SpaceMap, keep_unknown: bool) -> None:
        self.space, self.keep_unknown = space, keep_unknown
        self.judge, self.reduced = Judge(space), reduced_space_of(space)
        self.domains, self.options = domains_of(space), options_of(space.target)
        self.warned: set[str] = set()

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Return the values of options and fixed parameters that nobody sets."""
        return default_options(self.space.target) | self.space.recipe.fixed

    def prune(self, configs: list[triton.Config], given: Mapping[str, Any]) -> list[triton.Config]:
        if not configs:
            return configs
        if why := contradiction(self.space, given, self.options):
            self._warn(
                f"{why}: the map of {self.space.kernel!r} says nothing of this launch, so all configurations stay"
            )
            return configs
        kept: dict[object, triton.Config] = {}
        for config in configs:
            full = self._complete(config, given)
            match self.judge(full).verdict if self._as_mapped(config) else Feasibility.UNKNOWN:
                case Feasibility.FEASIBLE:
                    kept.setdefault(self._program(config, full), config)
                case Feasibility.UNKNOWN if self.keep_unknown:
                    kept.setdefault(self._program(config, full), config)
                case Feasibility.UNKNOWN | Feasibility.INFEASIBLE:
                    continue
        return list(kept.values()) or self._substitutes(configs, given)

    def _complete(self, config: triton.Config, given: Mapping[str, Any]) -> Config:
        """Return all knobs' values: of the configuration, else the call, the compiler's defaults or the baseline."""
        set_here = {**given, **_keywords(config)}
        found: Config = {}
        for name, baseline in self.space.baseline.items():
            knob = self.space.knobs.get(name)
            value = set_here.get(name, ...)
            if value is ... and knob is not None and knob.kind is KnobKind.OPTION:
                value = self.defaults.get(name, baseline)
            found[name] = baseline if value is ... else self._plain(name, value)
        return found

    def _plain(self, name: str, value: Any) -> Value:
        """Return the value as the map stores it."""
        value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
        if type(value) in _PLAIN:
            return value  # type: ignore[no-any-return]
        for stored in self.domains[name]:
            if isinstance(stored, str) and _equal(stored, value):
                return stored
        return repr(value)

    def _as_mapped(self, config: triton.Config) -> bool:
        """Return whether the options and parameters that it sets, knobs aside, have the map's values."""
        return all(
            same(value, self.defaults[name])
            for name, value in _keywords(config).items()
            if name not in self.space.baseline and name in self.defaults
        )

    def _program(self, config: triton.Config, full: Config) -> object:
        """Return a key that is equal for configurations that are predicted to be one program and launch."""
        others = {n: repr(v) for n, v in config.kwargs.items() if n not in self.space.baseline}
        return repr(self._canonical(full)), tuple(sorted(others.items())), id(config.pre_hook)

    def _canonical(self, full: Config) -> Config:
        if self.space.joint:
            return self.reduced.canonical(full)
        moves = moves_of(self.space, full)
        if len(moves) != 1:
            return full
        ((name, value),) = moves.items()
        groups = self.space.knobs[name].equivalent if name in self.space.knobs else ()
        group = next((group for group in groups if value in group), (value,))
        return {**full, name: self.space.baseline[name] if self.space.baseline[name] in group else group[0]}

    def _substitutes(self, configs: list[triton.Config], given: Mapping[str, Any]) -> list[triton.Config]:
        """Return the map's own configurations, without the keywords of the call: Triton takes no keyword twice."""
        found: list[triton.Config] = []
        for config in own_configs(self.space, names=None):
            fits = all(same(self._plain(n, given[n]), v) for n, v in config.kwargs.items() if n in given)
            config.kwargs = {n: v for n, v in config.kwargs.items() if n not in given}
            found += [config] if fits else []
        if not found:
            self._warn(
                f"the map vouches for none of {len(configs)} configurations, nor for any with what the call sets"
            )
            return configs
        self._warn(
            f"the map of {self.space.kernel!r} on {self.space.target} vouches for none of {len(configs)} "
            f"configurations{self._why_none(configs, given)}; its own verified ones take their place"
        )
        return found[: max(1, len(configs))]

    def _why_none(self, configs: list[triton.Config], given: Mapping[str, Any]) -> str:
        """Return the reason why the first of them is left out, in words."""
        first = configs[0]
        for name, value in _keywords(first).items():
            if name not in self.space.baseline and name in self.defaults and not same(value, self.defaults[name]):
                return f" (the first has {name}={value}, which the map holds at {self.defaults[name]})"
        found = self.judge(self._complete(first, given))
        if found.untried:
            return " (the first has " + ", ".join(f"{n}={v}" for n, v in found.untried.items()) + ", never tried)"
        return f" (the first breaks {found.broken[0].words})" if found.broken else ""

    def _warn(self, text: str) -> None:
        if text not in self.warned:
            self.warned.add(text)
            warnings.warn(f"gluonmap: {text}", stacklevel=4)


def contradiction(space: SpaceMap, given: Mapping[str, Any], options: frozenset[str]) -> str:
    """Return the first type of an argument or fixed parameter that is not the map's, in words; "" if there is none.

    Sizes and alignments are not compared. They may differ, and then programs may differ too.
    """
    for name, known in space.specialisation.items():
        if name in given and (found := _type_of(given[name])) and not _matches(found, known):
            return f"{name} is {found} and not {known}"
    for name, value in space.recipe.fixed.items():
        if name in given and name not in options and type(given[name]) in _PLAIN and given[name] != value:
            return f"{name} is {given[name]!r} and not {value!r}"
    return ""


def _type_of(value: Any) -> str:
    """Return "*bf16", "int", "float" or "None"; "" where the type is unknown."""
    if value is None:
        return "None"
    if isinstance(value, bool | int | float):
        return "float" if isinstance(value, float) else "int"
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "data_ptr"):
        return ""
    text = str(dtype).rpartition(".")[2]
    return next((f"*{short}" for short, (name, _) in DTYPES.items() if text in (short, name)), "")


def _matches(found: str, known: str) -> bool:
    """Return whether an argument of type `found` has the specialisation that the map knows."""
    pointer = POINTER.match(known)
    if pointer:
        short = next((s for s, (name, _) in DTYPES.items() if pointer["dtype"] in (s, name)), "")
        return found == f"*{short}"
    if known.startswith("tensordesc"):
        return found != "None"
    return {"None": known == "None", "float": known.startswith("fp"), "int": known[:1] in "iu"}.get(found, False)


def _keywords(config: triton.Config) -> dict[str, Any]:
    """Return the keywords that a configuration sets. An option that is None is left to the compiler."""
    options = {name: getattr(config, name, None) for name in LAUNCH_OPTIONS}
    return {**config.kwargs, **{name: value for name, value in options.items() if value is not None}}


def _equal(stored: str, value: Any) -> bool:
    try:
        return bool(python_value(stored, {}) == value)
    except UsageError:
        return False
