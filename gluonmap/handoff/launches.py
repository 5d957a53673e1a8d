"""The verified configurations of a map as keywords of a launch: plain data, for any tuner."""

from __future__ import annotations

import shlex

import numpy as np

from gluonmap.constraints import expressions
from gluonmap.model import targets
from gluonmap.model.candidate import Config, same
from gluonmap.model.errors import UsageError
from gluonmap.model.knobs import KnobKind
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import LAUNCH_OPTIONS
from gluonmap.query.diverse_subset import diverse_subset
from gluonmap.query.equivalence import place_of
from gluonmap.query.feasibility import domains_of
from gluonmap.query.observations import Observation, Origin, observations
from gluonmap.query.reduced_space import reduced_space_of

HOPELESS_SPILLS = 255
"""Registers of a thread on NVIDIA's targets. A compile that spills more takes long as well: 20 s where others took 0.4
(256×512 tile on 4 warps, sm_90, Triton 3.6.0); the best of them ran 5.3 times as long as the best of all."""


def launches(space: SpaceMap, limit: int | None = None) -> list[Config]:
    """Return the keywords of a launch for each verified configuration, the baseline's first if it is among them.

    Keywords are all knobs that the kernel or the compiler reads, live or inert, in signature order; constexpr
    parameters derived from knobs alone; and options that the map holds fixed. Knobs of the host are left out, and
    configurations that differ only in them are one. Configurations that `dropped` names are left out too. `limit`
    selects a subset that keeps, as far as it goes, every value of every knob that matters, and then is most diverse.

    Raises:
        UsageError: no configuration passed or is left, or the limit is below 1.
    """
    return [launch_of(space, config) for config in handed_over(space, limit)]


def handed_over(space: SpaceMap, limit: int | None = None) -> list[Config]:
    """Return the complete configurations behind `launches`; of several with the same launch, the first.

    Raises:
        UsageError: as in `launches`.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"a hand-off of at most {limit} configurations is none; give a limit of 1 or more.")
    condemned = {repr(config) for config, _ in dropped(space)}
    left: dict[str, Config] = {}
    for entry in verified(space):
        if repr(entry.config) not in condemned:
            left.setdefault(repr(launch_of(space, entry.config)), entry.config)
    if not left:
        raise UsageError(_nothing(space, len(condemned)))
    kept = list(left.values())
    if limit is not None and limit < len(kept):
        kept = [kept[place] for place in _diverse_places(space, kept, limit)]
    return kept


def verified(space: SpaceMap) -> list[Observation]:
    """Return the programs that were compiled and passed; without such a list, the distinct ones of single values."""
    observed = observations(space)
    if observed.programs:
        return list(observed.programs)
    if not observed.baseline.compiled:
        return []
    found = [observed.baseline]
    for name, knob in space.knobs.items():
        first = {repr(value): group[0] for group in knob.equivalent for value in group}
        first |= {repr(v): knob.baseline for group in knob.equivalent if knob.baseline in group for v in group}
        found += [
            item
            for item in observed.values[name]
            if item.compiled
            and item.origin is not Origin.BASELINE
            and same(first.get(repr(item.config[name]), item.config[name]), item.config[name])
        ]
    return found


def dropped(space: SpaceMap) -> list[tuple[Config, str]]:
    """Return the verified configurations that are not handed over because of their resources, each with the reason.

    The reasons: not one work-group fits; registers spill, and the same tile and host knobs spill none under other
    compiler options (the number of warps among them); more registers spill than a thread has, and others spill none.
    """
    entries = verified(space)
    options = [n for n, knob in space.knobs.items() if knob.kind is KnobKind.OPTION or n in LAUNCH_OPTIONS]
    sound: dict[str, Config] = {}
    for entry in entries:
        if entry.resources and entry.resources.spills == 0 and entry.resources.occupancy != 0:
            sound.setdefault(_without(entry.config, options), entry.config)
    found = []
    for entry in entries:
        used, twin = entry.resources, sound.get(_without(entry.config, options))
        if used and used.occupancy == 0:
            found.append((entry.config, "not one work-group fits: too many registers or too much shared memory"))
        elif used and used.spills and twin:
            moved = ", ".join(f"{n}={twin[n]}" for n in options if not same(twin[n], entry.config[n]))
            found.append((entry.config, f"{used.spills} registers spill, and none with {moved}"))
        elif used and sound and (used.spills or 0) > HOPELESS_SPILLS:
            found.append((entry.config, f"{used.spills} registers spill, more than a thread has"))
    return found


def options_of(target: str) -> frozenset[str]:
    """Return the names of the compiler options that the target's table knows."""
    return frozenset((*targets.LAUNCH_OPTIONS, *targets.find(target).option_domains, *targets.NOT_KNOBS))


def probe_command(space: SpaceMap, more: str) -> str:
    """Return the command that maps the kernel for the map's target again, with the flags in `more`."""
    return f"gluonmap probe {shlex.quote(space.file)} --kernel {space.kernel} --target {space.target} {more}".rstrip()


def _without(config: Config, names: list[str]) -> str:
    return repr({name: value for name, value in config.items() if name not in names})


def launch_of(space: SpaceMap, config: Config) -> Config:
    """Return the keywords of a launch with one configuration."""
    options = options_of(space.target)
    knobs = {n: v for n, v in config.items() if n not in space.knobs or space.knobs[n].kind is not KnobKind.HOST}
    fixed = {n: v for n, v in space.recipe.fixed.items() if n in options}
    # A map lists derived constexpr parameters among its fixed ones; other derived names are for host code alone.
    derived = {n: v for n, v in _derived(space, config).items() if n in space.fixed or n in options}
    return {**knobs, **derived, **fixed}


def _derived(space: SpaceMap, config: Config) -> Config:
    """Return the parameters that host code computes from knobs alone."""
    values: Config = dict(config)
    waiting = {n: text for n, text in space.recipe.derive.items() if n not in space.specialisation}
    while ready := [n for n, text in waiting.items() if expressions.names_in(text) <= values.keys()]:
        for name in ready:
            value = expressions.evaluate(waiting.pop(name), values)
            if not isinstance(value, tuple):
                values[name] = value
    return {n: v for n, v in values.items() if n not in config}


def _diverse_places(space: SpaceMap, configs: list[Config], limit: int) -> list[int]:
    """Return the places of a diverse subset; inert knobs do not make configurations different."""
    reduced = reduced_space_of(space)
    domains = domains_of(space)
    forms = [reduced.canonical(config) for config in configs]
    rows = [[place_of(domain, form[name]) or 0 for name, domain in domains.items()] for form in forms]
    return diverse_subset(np.array(rows, np.int16), list(domains.values()), limit)


def _nothing(space: SpaceMap, condemned: int) -> str:
    why = f"all {condemned} that passed do not fit the device" if condemned else "none passed"
    return (
        f"the map of {space.kernel!r} on {space.target} has no configuration to hand over: {why}. Start from one that "
        f"compiles:  {probe_command(space, '--set NAME=VALUE')}"
    )
