"""The code of an exported pruning function: `prune` writes a map's tables and then the text below the line.

The constants here give that code types; the tables of a map replace them. The code needs the standard library alone and
decides as `gluonmap.early_config_prune` does. Every word below the line is part of the exported files.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

KERNEL, TARGET = "", ""
KEEP_UNKNOWN = False
BASELINE: dict[str, Any] = {}
SEEN: dict[str, tuple[str, ...]] = {}
DEFAULTS: dict[str, Any] = {}
OPTION_KNOBS: tuple[str, ...] = ()
ARGUMENTS: dict[str, tuple[str, ...]] = {}
FIXED: dict[str, Any] = {}
GIVEN: list[Callable[[dict[str, Any]], bool]] = []
RULES: list[Callable[[dict[str, Any]], bool]] = []
ONE_MOVE_ONLY = False
ANSWERED: dict[tuple[tuple[str, str], ...], bool | None] = {}
EQUAL: list[tuple[str, tuple[str, ...], dict[tuple[str, ...], dict[str, Any]]]] = []
OWN: list[tuple[dict[str, Any], dict[str, Any]]] = []

# ---- what follows is the same in every exported file --------------------------------------------------------------


def early_config_prune(configs: list[Any], named_args: Any, **kwargs: Any) -> list[Any]:
    """Return the configurations that the map vouches for, in order; the map's own where it vouches for none."""
    given = {**(named_args or {}), **kwargs}
    if strange := _strange(given):
        _warn(f"{strange}: the map of {KERNEL} on {TARGET} says nothing of this launch, so all configurations stay")
        return configs
    kept: dict[Any, Any] = {}
    for config in configs:
        full = _complete(config, given)
        verdict = _verdict(full) if _as_mapped(config) else None
        if verdict or (verdict is None and KEEP_UNKNOWN):
            kept.setdefault(_program(config, full), config)
    return list(kept.values()) or _instead(configs, given)


def _verdict(full: dict[str, Any]) -> bool | None:
    """True: it passes; False: it fails; None: the map cannot tell."""
    moves = tuple((name, repr(value)) for name, value in full.items() if repr(value) != repr(BASELINE[name]))
    if moves in ANSWERED:
        return ANSWERED[moves]
    if not all(_met(rule, full) for rule in GIVEN):
        return False
    if ONE_MOVE_ONLY and len(moves) > 1:
        return None
    if any(repr(value) not in SEEN[name] for name, value in full.items()):
        return None
    return all(_met(rule, full) for rule in RULES)


def _met(rule: Callable[[dict[str, Any]], bool], full: dict[str, Any]) -> bool:
    try:
        return bool(rule(full))
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return True  # of a value that was never tried it says nothing


def _own(config: Any) -> dict[str, Any]:
    options = {name: getattr(config, name, None) for name in ("num_warps", "num_stages", "num_ctas", "maxnreg")}
    return {**config.kwargs, **{name: value for name, value in options.items() if value is not None}}


def _complete(config: Any, given: dict[str, Any]) -> dict[str, Any]:
    """A value for every knob: the configuration's, the call's, the compiler's default, the baseline's."""
    unsaid = {name: DEFAULTS[name] for name in OPTION_KNOBS if name in DEFAULTS}
    told = {**unsaid, **given, **_own(config)}
    return {name: _plain(told[name]) if name in told else value for name, value in BASELINE.items()}


def _plain(value: Any) -> Any:
    value = value.value if type(value).__name__ == "constexpr" else value
    return value if type(value) in (bool, int, float, str, type(None)) else repr(value)


def _as_mapped(config: Any) -> bool:
    """Whether the options that it sets beside the knobs are what the map was made with."""
    told = {name: value for name, value in _own(config).items() if name not in BASELINE and name in DEFAULTS}
    return all(repr(value) == repr(DEFAULTS[name]) for name, value in told.items())


def _program(config: Any, full: dict[str, Any]) -> Any:
    """Equal for two configurations that are predicted to be one program and launch."""
    form = dict(full)
    moved = sum(repr(value) != repr(BASELINE[name]) for name, value in full.items())
    for knob, reads, cases in EQUAL if not ONE_MOVE_ONLY or moved == 1 else []:
        case = cases.get(tuple(repr(form[name]) for name in reads), {})
        form[knob] = case.get(repr(form[knob]), form[knob])
    others = sorted((name, repr(value)) for name, value in config.kwargs.items() if name not in BASELINE)
    return repr(form), tuple(others), id(config.pre_hook)


def _strange(given: dict[str, Any]) -> str:
    """What of the launch is not what the map was made for, in words."""
    triton = sys.modules.get("triton")
    try:
        target = triton.runtime.driver.active.get_current_target()  # type: ignore[union-attr]
        arch = str(target.arch).partition(":")[0]
        name = f"sm_{arch}" if target.backend == "cuda" else arch
    except Exception:  # no Triton, no driver: nobody launches here
        name = TARGET
    if name != TARGET:
        return f"the device is {name}"
    for argument, kinds in ARGUMENTS.items():
        said = _type(given[argument]) if argument in given else ""
        if said and said not in kinds:
            return f"{argument} is {said} and not {kinds[0]}"
    for argument, value in FIXED.items():
        told = given.get(argument, value)
        if type(told) in (bool, int, float, str, type(None)) and told != value:
            return f"{argument} is {told!r} and not {value!r}"
    return ""


def _type(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return "None" if value is None else "float" if isinstance(value, float) else "int"
    dtype = getattr(value, "dtype", None)
    return "" if dtype is None or not hasattr(value, "data_ptr") else str(dtype).rpartition(".")[2]


def _instead(configs: list[Any], given: dict[str, Any]) -> list[Any]:
    """The map's own configurations, without what the call sets itself: Triton takes no keyword twice."""
    found = []
    for own, options in OWN:
        if all(repr(_plain(given[name])) == repr(value) for name, value in own.items() if name in given):
            kwargs = {name: value for name, value in own.items() if name not in given}
            found.append(type(configs[0])(kwargs, **options))
    if not found:
        _warn(f"the map of {KERNEL} on {TARGET} vouches for none of {len(configs)} configurations: all stay")
        return configs
    _warn(
        f"the map of {KERNEL} on {TARGET} vouches for none of {len(configs)} configurations; "
        "its own verified ones take their place"
    )
    return found[: max(1, len(configs))]


_WARNED: set[str] = set()


def _warn(text: str) -> None:
    if text not in _WARNED:
        _WARNED.add(text)
        warnings.warn(text, stacklevel=3)
