"""Shipped entries bound to a kernel: which keys are knobs, which nobody reads, which value holds where none is said."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from gluonmap.audit.shipped_files import TRITON_DEFAULTS, Entry, Form, Source, is_config, listed_entry, written_config
from gluonmap.constraints import expressions
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.dtypes import DESCRIPTOR
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import Inspection
from gluonmap.model.knobs import KnobKind
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import Target
from gluonmap.source import code_lines, syntax
from gluonmap.source.reads import find_reads
from gluonmap.spec.description import Description, Knob

_OPTIONS = (KnobKind.OPTION, KnobKind.CONSTEXPR_AND_OPTION)


class Names(msgspec.Struct, frozen=True):
    """Everything that a launch of the kernel can be given, and who reads it."""

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
        """What a name that an entry sets is; None where nothing takes it."""
        if name in self.constexprs:
            return KnobKind.CONSTEXPR_AND_OPTION if name in self.options else KnobKind.CONSTEXPR
        return KnobKind.OPTION if name in self.options else KnobKind.HOST if name in self.host else None


class Bound(msgspec.Struct, frozen=True):
    """One entry and what of it reaches the kernel."""

    entry: Entry
    moves: Config
    """Values of knobs, constexpr parameters, options and sizes, those that the entry leaves out but for the
    baseline's."""
    unknown: tuple[str, ...] = ()
    """Keys that neither the signature nor the compiler nor a host expression has."""
    overridden: dict[str, str] = {}
    """Keys that something else computes, and what."""
    defaults: Config = {}
    """Options that it leaves to the compiler, and their defaults."""
    sizes: Config = {}
    """Of the moves: sizes that the names of file and bucket tell."""


def names_of(inspection: Inspection, derive: Mapping[str, str], texts: Iterable[str]) -> Names:
    """From a kernel that was imported; `texts` are host expressions: the grid, arguments."""
    parameters = inspection.parameters
    constexprs = [p.name for p in parameters if p.constexpr and not p.heuristic]
    host = _host([*derive.values(), *texts])
    return Names(
        frozenset(constexprs),
        frozenset(p.name for p in parameters if not p.constexpr),
        dict(inspection.options),
        frozenset(p.name for p in parameters if p.heuristic),
        dict(derive),
        host - {p.name for p in parameters},
        unread=frozenset(name for name in constexprs if not find_reads(inspection.functions, name)),
    )


def names_of_map(space: SpaceMap) -> Names:
    """From a map alone."""
    kinds = {name: knob.kind for name, knob in space.knobs.items()}
    options = {n: space.baseline[n] for n, kind in kinds.items() if kind in _OPTIONS}
    options |= dict.fromkeys(space.not_probed)
    host = {name for name, kind in kinds.items() if kind is KnobKind.HOST}
    known = {*space.baseline, *space.recipe.fixed, *space.fixed} - host
    constexprs = known - {n for n, kind in kinds.items() if kind is KnobKind.OPTION} - {*space.not_probed}
    heuristics = {name for name, why in space.fixed.items() if why == "computed by @triton.heuristics"}
    texts = [*space.recipe.derive.values(), space.recipe.grid]
    texts += [value for value in space.recipe.args.values() if isinstance(value, str)]
    return Names(
        frozenset(constexprs - heuristics - space.specialisation.keys()),
        frozenset(space.specialisation),
        options,
        frozenset(heuristics),
        dict(space.recipe.derive),
        _host(texts) | host,
    )


def _host(texts: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for text in texts:
        match = DESCRIPTOR.match(text)
        inner = f"({match['dims']},)" if match else "" if text.startswith("*") or ":" in text else text
        try:
            found |= expressions.names_in(inner) if inner else set()
        except UsageError:  # a type is no expression
            continue
    return frozenset(found)


def bind(entry: Entry, names: Names, given: Mapping[str, Value], *, whole: bool = False) -> Bound:
    """The entry's keys, sorted by who reads them. `given` is what the user says that the call sets.

    `whole`: what nobody reads reaches the launch too.
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
    return Bound(entry, {**moves, **sizes}, tuple(unknown), overridden, sizes=sizes)


def with_defaults(bound: Bound, description: Description, names: Names) -> Bound:
    """The same, where options that nobody sets have the compiler's default and not the baseline's value.

    An option that has its default, and that no candidate of the description names, is as good as left out.
    """
    turned = {*description.knobs, *description.fixed}
    moves = {
        name: value
        for name, value in bound.moves.items()
        if name in turned or names.kind(name) is not KnobKind.OPTION or not same(value, names.options[name])
    }
    unsaid: Config = {
        name: names.options[name]
        for name, knob in description.knobs.items()
        if knob.kind is KnobKind.OPTION and name not in bound.moves and name in names.options
    }
    return msgspec.structs.replace(bound, moves={**moves, **unsaid}, defaults=unsaid)


def extended(description: Description, moves: Config, names: Names) -> Description:
    """The description with knobs for options that it does not turn, and for what nobody reads: else a candidate would
    leave them out."""
    known = {*description.knobs, *description.fixed, *names.constexprs, *names.run_time, *names.host}
    more = {
        name: Knob(name, KnobKind.OPTION, (value,), value)
        for name, value in moves.items()
        if name not in known and name not in description.shape
    }
    return replace(description, knobs={**description.knobs, **more}) if more else description


def domains_of(bounds: Sequence[Bound], names: Names, target: Target) -> dict[str, tuple[Value, ...]]:
    """The values of each knob that the entries set, in the order of their first appearance.

    Of an option that somebody wrote down, all the target's values and the default too: whether it does anything at all
    cannot be seen from the entries' own. Of num_warps it is known.
    """
    found: dict[str, dict[str, Value]] = {}
    for bound in bounds:
        for name, value in bound.moves.items():
            if names.kind(name) is not None and name not in bound.sizes:
                found.setdefault(name, {})[repr(value)] = value
    for name in dict.fromkeys(name for bound in bounds for name in bound.entry.said if name in found):
        if names.kind(name) in _OPTIONS and name != "num_warps":
            for value in (names.options[name], *target.option_domains.get(name, ())):
                found[name].setdefault(repr(value), value)
    return {name: _ordered(values.values()) for name, values in found.items()}


def _ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Numbers in ascending order; anything else as it is."""
    found = tuple(values)
    numbers = [value for value in found if isinstance(value, int | float) and not isinstance(value, bool)]
    return tuple(sorted(numbers)) if len(numbers) == len(found) else found


def full(bound: Bound, baseline: Config) -> Config:
    """A value for every knob of the baseline."""
    return {name: bound.moves.get(name, value) for name, value in baseline.items()}


def own_list(inspection: Inspection, file: str, text: str) -> Source:
    """The kernel's own `@triton.autotune` list as the import saw it, with the lines of the file where they are written.

    `text` is the file's.
    """
    configs = inspection.autotune
    function = inspection.functions[0]
    # Today's place: the inspection may be of a day when comments stood elsewhere.
    today = code_lines.find_function(text, function.name, function.source)
    code, first_line = today or (function.source, function.first_line)
    node = syntax.definition(code)
    tuner = next((d for d in node.decorator_list if _is_autotune(d)), None) if node else None
    line = first_line + (tuner.lineno - 1 if tuner else 0)
    calls = _written(tuner, first_line, text) if isinstance(tuner, ast.Call) else []
    entries = []
    for number, config in enumerate(configs):
        written = written_config(calls[number]) if len(calls) == len(configs) else {}
        if written == config:
            entries.append(listed_entry(file, number, calls[number], config))
            continue
        unsaid = frozenset(name for name, value in TRITON_DEFAULTS.items() if config.get(name) == value)
        where = calls[number].lineno if len(calls) == len(configs) else line
        entries.append(Entry(file, f"[{number}]", config, where, unsaid=unsaid))
    return Source(file, Form.AUTOTUNE, tuple(entries))


def _is_autotune(node: ast.expr) -> bool:
    name = syntax.dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
    return name == "autotune" or (isinstance(node, ast.Call) and any(k.arg == "configs" for k in node.keywords))


def _written(tuner: ast.Call, first_line: int, text: str) -> list[ast.Call]:
    """The `Config(…)` calls that a decorator's list is written with, their lines those of the file."""
    given = next((k.value for k in tuner.keywords if k.arg == "configs"), tuner.args[0] if tuner.args else None)
    if isinstance(given, ast.Name):
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError):
            return []
        named = [n.value for n in body if isinstance(n, ast.Assign) for t in n.targets if _named(t) == given.id]
        given, first_line = (named[-1] if named else None), 1
    if not isinstance(given, ast.List) or not all(isinstance(e, ast.Call) and is_config(e) for e in given.elts):
        return []
    calls = [element for element in given.elts if isinstance(element, ast.Call)]
    # A copy: the tree of a function's source is shared.
    return [ast.increment_lineno(copy.deepcopy(call), first_line - 1) for call in calls]


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
