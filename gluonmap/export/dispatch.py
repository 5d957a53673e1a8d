"""Modules that choose a configuration by the size of the problem, among the winners at the raced sizes."""

from __future__ import annotations

import math

from gluonmap.export.heading import check_names, literal, one_line, refuse_spelled
from gluonmap.handoff.launches import launch_of
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.race_record import Split
from gluonmap.model.space_map import SpaceMap

_CODE = '''

def regime({names}):
    """The raced size that is nearest, in powers of two. Between the raced ones this is assumed, not measured."""
    given = {{{pairs}}}
    return min(SIZES, key=lambda name: sum(abs(math.log2(given[n] / size)) for n, size in SIZES[name].items()))


def configuration({names}):
    """Keywords for the launch: `kernel[grid](…, **configuration({names}))`."""
    return CONFIGS[SERVES[regime({names})]]
'''


def render(space: SpaceMap, split: Split) -> str:
    """Return a module with `regime` and `configuration`, functions of the sizes in which the raced regimes differ.

    Raises:
        UsageError: the raced regimes differ in no number; a value is not plain.
    """
    check_names(space)
    names = differing(split)
    if not names:
        raise UsageError("the raced regimes differ in no number, so no size tells which one a launch belongs to.")
    sizes = {name: {n: shape[n] for n in names} for name, shape in split.shapes.items()}
    launches = {name: launch_of(space, {**space.baseline, **config}) for name, config in split.serves.items()}
    serves, configs = _named(launches)
    for config in split.serves.values():
        refuse_spelled(space, config, "a dispatcher holds plain values only.")
    comments = [
        f"Configurations of {split.kernel} by size, raced on {split.device} ({split.target}), Triton {split.triton}.",
        f"{split.verdict}.",
    ]
    lines = [
        *(f"# {one_line(text)}" for text in comments),
        "",
        "import math",
        "",
        f"SIZES = {_dict({name: literal_dict(size) for name, size in sizes.items()})}",
        f"SERVES = {literal_dict(serves)}",
        f"CONFIGS = {_dict({name: literal_dict(config) for name, config in configs.items()})}",
    ]
    return "\n".join(lines) + _CODE.format(names=", ".join(names), pairs=", ".join(f"{n!r}: {n}" for n in names))


def differing(split: Split) -> list[str]:
    """Return the sizes in which the raced shapes differ: positive whole numbers in all of them."""
    shapes = list(split.shapes.values())
    shared = [n for n in shapes[0] if all(n in shape for shape in shapes)]
    return [n for n in shared if all(map(_is_size, column := [s[n] for s in shapes])) and len(set(column)) > 1]


def literal_dict(values: Config) -> str:
    """Return a dict of plain values as Python text."""
    return "{" + ", ".join(f"{n!r}: {literal(v)}" for n, v in values.items()) + "}"


def _is_size(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0 and math.isfinite(value)


def _named(launches: dict[str, Config]) -> tuple[Config, dict[str, Config]]:
    """Return two dicts: regime -> the first regime with the same configuration; that regime -> its configuration."""
    first: dict[str, str] = {}
    for name, launch in launches.items():
        first.setdefault(repr(launch), name)
    return {n: first[repr(launch)] for n, launch in launches.items()}, {n: launches[n] for n in first.values()}


def _dict(entries: dict[str, str]) -> str:
    return "{\n" + "".join(f"    {name!r}: {text},\n" for name, text in entries.items()) + "}"
