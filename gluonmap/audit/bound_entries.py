"""Shipped entries bound to a kernel: each key with its reader, and the values of the keys that an entry leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from gluonmap.audit.shipped_files import ShippedEntry
from gluonmap.constraints import expressions
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.dtypes import DESCRIPTOR
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import Inspection
from gluonmap.model.knobs import KnobKind
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import Target
from gluonmap.source.reads import find_reads
from gluonmap.spec.description import Description, Knob

_OPTIONS = (KnobKind.OPTION, KnobKind.CONSTEXPR_AND_OPTION)


class KernelNames(msgspec.Struct, frozen=True):
    """The names that a launch of the kernel accepts, by their reader."""

    constexprs: frozenset[str]
    run_time: frozenset[str]
    options: dict[str, Value]
    """The compiler's options and their defaults."""
    heuristics: frozenset[str] = frozenset()
    derived: dict[str, str] = {}
    host: frozenset[str] = frozenset()
    """Names that only host expressions read."""
    unread: frozenset[str] = frozenset()
    """Constexpr parameters that the kernel never reads."""

    def kind(self, name: str) -> KnobKind | None:
        """Return the kind of the knob with this name; None if nothing reads it."""
        if name in self.constexprs:
            return KnobKind.CONSTEXPR_AND_OPTION if name in self.options else KnobKind.CONSTEXPR
        return KnobKind.OPTION if name in self.options else KnobKind.HOST if name in self.host else None


class BoundEntry(msgspec.Struct, frozen=True):
    """One entry, and its values that reach the kernel."""

    entry: ShippedEntry
    moves: Config
    """Values of knobs, constexpr parameters, options and sizes. A missing one has the baseline's value."""
    unknown: tuple[str, ...] = ()
    """Keys that neither the signature nor the compiler nor a host expression has."""
    overridden: dict[str, str] = {}
    """Key whose value in the entry is not used → the code that computes it."""
    defaults: Config = {}
    """Options that the entry leaves to the compiler, and their defaults."""
    sizes: Config = {}
    """The moves that are sizes read from the names of file and bucket."""


def names_of(inspection: Inspection, derive: Mapping[str, str], texts: Iterable[str]) -> KernelNames:
    """Return the names of an imported kernel. `texts` are host expressions: the grid, arguments."""
    parameters = inspection.parameters
    constexprs = [p.name for p in parameters if p.constexpr and not p.heuristic]
    host = _host([*derive.values(), *texts])
    return KernelNames(
        frozenset(constexprs),
        frozenset(p.name for p in parameters if not p.constexpr),
        dict(inspection.options),
        frozenset(p.name for p in parameters if p.heuristic),
        dict(derive),
        host - {p.name for p in parameters},
        unread=frozenset(name for name in constexprs if not find_reads(inspection.functions, name)),
    )


def names_of_map(space: SpaceMap) -> KernelNames:
    """Return the names that a map knows."""
    kinds = {name: knob.kind for name, knob in space.knobs.items()}
    options = {n: space.baseline[n] for n, kind in kinds.items() if kind in _OPTIONS}
    options |= dict.fromkeys(space.not_probed)
    host = {name for name, kind in kinds.items() if kind is KnobKind.HOST}
    known = {*space.baseline, *space.recipe.fixed, *space.fixed} - host
    constexprs = known - {n for n, kind in kinds.items() if kind is KnobKind.OPTION} - {*space.not_probed}
    heuristics = {name for name, why in space.fixed.items() if why == "computed by @triton.heuristics"}
    texts = [*space.recipe.derive.values(), space.recipe.grid]
    texts += [value for value in space.recipe.args.values() if isinstance(value, str)]
    return KernelNames(
        frozenset(constexprs - heuristics - space.specialisation.keys()),
        frozenset(space.specialisation),
        options,
        frozenset(heuristics),
        dict(space.recipe.derive),
        _host(texts) | host,
    )


def _host(texts: Iterable[str]) -> frozenset[str]:
    names: set[str] = set()
    for text in texts:
        match = DESCRIPTOR.match(text)
        inner = f"({match['dims']},)" if match else "" if text.startswith("*") or ":" in text else text
        try:
            names |= expressions.names_in(inner) if inner else set()
        except UsageError:  # the text is a type, which is no expression
            continue
    return frozenset(names)


def bind_entry(
    entry: ShippedEntry, names: KernelNames, given: Mapping[str, Value], *, whole: bool = False
) -> BoundEntry:
    """Sort the entry's keys by their reader. `given` holds the values that the user sets with --set.

    With `whole`, keys without a reader reach the launch too.
    """
    moves: Config = dict(given)
    unknown: list[str] = []
    overridden: dict[str, str] = {}
    for name, value in entry.config.items():
        if name in names.heuristics:
            overridden[name] = "@triton.heuristics computes it"
        elif name in names.derived:
            overridden[name] = f"the host computes it: {names.derived[name]}"
        elif name in names.run_time or names.kind(name) is not None:
            moves[name] = value
        else:
            unknown.append(name)
            if whole:
                moves[name] = value
    sizes: Config = {n: v for n, v in entry.sizes.items() if n not in moves and n in names.run_time | names.host}
    return BoundEntry(entry, {**moves, **sizes}, tuple(unknown), overridden, sizes=sizes)


def with_defaults(bound: BoundEntry, description: Description, names: KernelNames) -> BoundEntry:
    """Return the entry with the compiler's default, not the baseline's value, for options that nobody sets.

    An option at its default is dropped if no candidate of the description names it: the compile is the same.
    """
    turned = {*description.knobs, *description.fixed}
    moves = {
        name: value
        for name, value in bound.moves.items()
        if name in turned or names.kind(name) is not KnobKind.OPTION or not same(value, names.options[name])
    }
    defaults: Config = {
        name: names.options[name]
        for name, knob in description.knobs.items()
        if knob.kind is KnobKind.OPTION and name not in bound.moves and name in names.options
    }
    return msgspec.structs.replace(bound, moves={**moves, **defaults}, defaults=defaults)


def extended(description: Description, moves: Config, names: KernelNames) -> Description:
    """Add knobs for options that the description lacks and for keys without a reader, so that candidates have them."""
    known = {*description.knobs, *description.fixed, *names.constexprs, *names.run_time, *names.host}
    more = {
        name: Knob(name, KnobKind.OPTION, (value,), value)
        for name, value in moves.items()
        if name not in known and name not in description.shape
    }
    return replace(description, knobs={**description.knobs, **more}) if more else description


def domains_of(bounds: Sequence[BoundEntry], names: KernelNames, target: Target) -> dict[str, tuple[Value, ...]]:
    """Return the values of each knob that the entries set.

    An option that an entry sets also gets its default and all values of the target: the entries' own values alone may
    not show whether it has an effect. `num_warps` always has one.
    """
    domains: dict[str, dict[str, Value]] = {}
    for bound in bounds:
        for name, value in bound.moves.items():
            if names.kind(name) is not None and name not in bound.sizes:
                domains.setdefault(name, {})[repr(value)] = value
    for name in dict.fromkeys(name for bound in bounds for name in bound.entry.written if name in domains):
        if names.kind(name) in _OPTIONS and name != "num_warps":
            for value in (names.options[name], *target.option_domains.get(name, ())):
                domains[name].setdefault(repr(value), value)
    return {name: _ordered(values.values()) for name, values in domains.items()}


def _ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return numbers in ascending order, other values in the given order."""
    found = tuple(values)
    numbers = [value for value in found if isinstance(value, int | float) and not isinstance(value, bool)]
    return tuple(sorted(numbers)) if len(numbers) == len(found) else found


def full_config(bound: BoundEntry, baseline: Config) -> Config:
    """Return a value for every knob of the baseline."""
    return {name: bound.moves.get(name, value) for name, value in baseline.items()}
