"""Findings about the entries of one file, from what became of each and what the map says of the knobs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from gluonmap.audit.bound_entries import Bound, Names
from gluonmap.audit.findings import Checked, FileChecked, Finding, Kind, Place, Severity, found
from gluonmap.audit.shipped_files import Entry, Source
from gluonmap.constraints.semantics import holds, scope_of
from gluonmap.model import outcomes, targets
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.knobs import KnobClass, KnobKind
from gluonmap.model.outcomes import Feasibility, Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Resources


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one entry."""

    bound: Bound
    verdict: Feasibility
    basis: str
    """As in `findings.Checked`."""
    config: Config = {}
    """A value for every knob of the map."""
    outcome: str = "unknown"
    how: str = ""
    """Signal, exception class, "budget" or "deadline"."""
    reason: str = ""
    at: str = ""
    digest: str = ""
    resources: Resources | None = None
    launch: str = ""
    """Equal for entries of one program, grid and arguments; empty: unknown."""
    because: tuple[str, ...] = ()
    """What forbids it, in words."""
    repeat: str = ""
    blame: tuple[str, ...] = ()
    """Keys whose values are to blame, the fewest found."""
    blamed: str = ""
    """How that was seen, in a sentence."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What all entries of an audit share."""

    target: str
    triton: str
    names: Names
    space: SpaceMap | None = None
    """The map, stored or made for this audit alone; None: no entry passed."""
    idle: dict[str, tuple[Value, ...]] = {}
    """Values of options that the map does not turn and that left its baseline's program as it is."""
    mentions: dict[str, str] = {}
    """Unknown key → where the project's Python code names it: "file.py:12"."""
    beside: Entry | None = None
    """The entry that is the baseline, where no stored map was used."""


def findings_of(source: Source, told: Sequence[Told], context: Context) -> list[Finding]:
    """Everything that is to be said of one file."""
    parts = (
        _about_the_file(source, context),
        _unknown(source, told, context),
        _overridden(told),
        # What nobody reads is why Triton refuses such an entry, before anything else can be wrong with it.
        _fates([item for item in told if not (source.form.whole and item.bound.unknown)]),
        _spills(told, context),
        _duplicates(source, told) if _stable(context) else (),
        _inert(told, context),
        _equal(told, context),
        _inert_here(told, context),
    )
    return list(chain.from_iterable(parts))


def place_of(entry: Entry, key: str = "") -> Place:
    """Where an entry, or one key of it, stands."""
    return Place(entry.file, entry.lines.get(key, entry.line), entry.name)


def shown(name: str, value: Value) -> str:
    """ "num_warps=4": one setting in a sentence."""
    return f"{name}={value!r}"


def listed(items: Sequence[str], most: int = 6, word: str = "and") -> str:
    """ "a", "a and b", "a, b and 3 more"."""
    if len(items) > most:
        return f"{', '.join(items[:most])} {word} {len(items) - most} more"
    return f" {word} ".join(filter(None, [", ".join(items[:-1]), items[-1]])) if items else ""


# ---- the file ------------------------------------------------------------------------------------------------------


def _about_the_file(source: Source, context: Context) -> Iterator[Finding]:
    here = Place(source.file)
    if source.target and source.target != context.target:
        yield found(Kind.OTHER_TARGET, f"the file is named for {source.target} and audited on {context.target}", here)
    if source.elsewhere:
        text = f"the file is named for {source.elsewhere}, which is no target here; audited on {context.target}"
        yield found(Kind.OTHER_TARGET, text, here)
    if source.triton and not context.triton.startswith(source.triton):
        text = f"it was tuned with Triton {source.triton}, and this is {context.triton}"
        yield found(Kind.OTHER_TRITON, text, here)
    for odd in source.oddities:
        severity = None if odd.certain else Severity.NOTICE
        place = Place(source.file, odd.line, odd.name)
        yield found(Kind.UNREAD_ENTRY, f"no loader reads {odd.name!r}: {odd.why}", place, severity=severity)


def _unknown(source: Source, told: Sequence[Told], context: Context) -> Iterator[Finding]:
    for key, entries in _by_key((item.bound.entry, name) for item in told for name in item.bound.unknown):
        nobody = f"{key} is no parameter of the kernel and no option of {context.target}'s compiler"
        close = difflib.get_close_matches(key, {*context.names.constexprs, *context.names.options}, 1, 0.8)
        hint = f"; did you mean {close[0]}?" if close and not any(close[0] in e.config for e in entries) else ""
        places = [place_of(entry, key) for entry in entries]
        if source.form.whole:
            text = f"{nobody}: Triton refuses the launch{hint}"
            yield found(Kind.UNKNOWN_KEY, text, *places, severity=Severity.ERROR, knob=key)
        elif mention := context.mentions.get(key):
            yield found(
                Kind.UNKNOWN_KEY, f"{nobody}; host code may read it, {mention} names it{hint}", *places, knob=key
            )
        else:
            yield found(Kind.UNKNOWN_KEY, f"{nobody}: no code reads it{hint}", *places, knob=key)


def _overridden(told: Sequence[Told]) -> Iterator[Finding]:
    for key, entries in _by_key((item.bound.entry, name) for item in told for name in item.bound.overridden):
        why = next(item.bound.overridden[key] for item in told if key in item.bound.overridden)
        places = [place_of(entry, key) for entry in entries]
        yield found(Kind.OVERRIDDEN, f"the value of {key} is not used: {why}", *places, knob=key)


def _by_key(pairs: Iterator[tuple[Entry, str]]) -> Iterator[tuple[str, list[Entry]]]:
    groups: dict[str, list[Entry]] = {}
    for entry, key in pairs:
        groups.setdefault(key, []).append(entry)
    yield from groups.items()


# ---- what became of entries ----------------------------------------------------------------------------------------

_PREDICTED = (Kind.REJECTED, "fails by the map's constraints, uncompiled", "fail by the map's constraints, uncompiled")
_SILENT = (Kind.NO_ANSWER, "has no answer", "have no answer")


def _fates(told: Sequence[Told]) -> Iterator[Finding]:
    """Entries that do not pass, those that fail alike together."""
    groups: dict[tuple[object, ...], list[Told]] = {}
    for item in told:
        if item.basis != "pruned" and item.verdict is not Feasibility.FEASIBLE:
            groups.setdefault((item.verdict, item.outcome, item.how, item.reason, item.at, item.because), []).append(
                item
            )
    for group in groups.values():
        first = group[0]
        kind, *verbs = _SILENT
        if first.verdict is Feasibility.INFEASIBLE:
            outcome = outcomes.named(first.outcome)
            kind, *verbs = _fate(outcome) if outcome and outcome.failed else _PREDICTED
        how = f" ({first.how})" if first.how and first.how not in ("budget", "deadline") else ""
        at = f" at {first.at}" if first.at else ""
        why = f": {first.reason}" if first.reason else ""
        yield found(
            kind,
            f"{_who(group)} {verbs[len(group) > 1]}{how}{at}{why}",
            *(place_of(item.bound.entry, next(iter(item.blame), "")) for item in group),
            details=(
                *_blamed(group),
                *(f"forbidden by {words}" for words in first.because),
            ),
            knob=first.blame[0] if all(item.blame == first.blame[:1] for item in group) and first.blame else "",
            outcome=first.outcome,
            reason=first.reason,
            at=first.at,
            repeat=first.repeat,
        )
    if too_big := [item for item in told if item.resources is not None and item.resources.occupancy == 0]:
        verb = "compiles" if len(too_big) == 1 else "compile"
        text = f"{_who(too_big)} {verb}, but no work-group fits: too many registers or too much shared memory"
        yield found(Kind.OVER_BUDGET, text, *(place_of(item.bound.entry) for item in too_big))


def _fate(outcome: Outcome) -> tuple[Kind, str, str]:
    """Return the kind of finding for a failing outcome, with its verb phrase for one entry and for several."""
    match outcome:
        case Outcome.CRASHED:
            kind = Kind.ABORTS
        case Outcome.NO_RESOURCES:
            kind = Kind.OVER_BUDGET
        case Outcome.HUNG:
            kind = Kind.HUNG
        case _:
            kind = Kind.REJECTED
    return kind, outcome.info.phrase, outcome.info.plural


def _blamed(group: Sequence[Told]) -> Iterator[str]:
    """What is to blame; whose it is, where not all of them have it."""
    sentences = dict.fromkeys(item.blamed for item in group)
    for words in filter(None, sentences):
        mine = _who([item for item in group if item.blamed == words])
        yield words if len(sentences) == 1 else f"{mine}: {words}"


def _who(group: Sequence[Told]) -> str:
    return named([item.bound.entry for item in group])


def named(entries: Sequence[Entry]) -> str:
    """'entry "any"', 'entries "M_LEQ_16" and "any"', "[0]" of a list, "the configuration" that is a whole file."""
    if all(entry.name and not entry.name.startswith("[") for entry in entries):
        return f"entr{'y' if len(entries) == 1 else 'ies'} " + listed([f'"{entry.name}"' for entry in entries])
    return listed([entry.name or "the configuration" for entry in entries])


def _spills(told: Sequence[Told], context: Context) -> Iterator[Finding]:
    """Entries that spill, those that spill the same together."""
    groups: dict[tuple[int, int], list[Told]] = {}
    for item in told:
        if item.verdict is Feasibility.FEASIBLE and item.resources is not None and item.resources.spills:
            amount = (item.resources.spills, item.resources.scratch_bytes or 0)
            groups.setdefault(amount, []).append(item)
    for (spills, scratch), group in sorted(groups.items(), reverse=True):
        amd = targets.find(context.target).vendor == "AMD"
        unit = ("vector register" if amd else "byte") + ("" if spills == 1 else "s")
        what = f"{spills:,} {unit} of a {'lane' if amd else 'thread'}"
        more = f", {scratch:,} bytes of scratch" if scratch else ""
        places = [place_of(item.bound.entry) for item in group]
        yield found(Kind.SPILLS, f"{_who(group)} {'spills' if len(group) == 1 else 'spill'} {what}{more}", *places)


# ---- entries beside each other -------------------------------------------------------------------------------------


def _stable(context: Context) -> bool:
    return context.space is None or context.space.stable is not False


def _duplicates(source: Source, told: Sequence[Told]) -> Iterator[Finding]:
    groups: dict[str, list[Told]] = {}
    for item in told:
        if item.launch and item.verdict is Feasibility.FEASIBLE:
            groups.setdefault(item.launch, []).append(item)
    repeated: list[list[Entry]] = []
    for group in groups.values():
        alike: dict[str, list[Told]] = {}
        for item in group:
            alike.setdefault(repr(sorted(item.bound.entry.config.items())), []).append(item)
        repeated += [[item.bound.entry for item in same] for same in alike.values() if len(same) > 1]
        if len(alike) > 1:
            yield _one_program([same[0] for same in alike.values()])
    if not repeated:
        return
    places = [place_of(entry) for entries in repeated for entry in entries]
    sets = "; ".join(listed([entry.name for entry in entries]) for entries in repeated[:4])
    rest = f"; {len(repeated) - 4} more groups" if len(repeated) > 4 else ""
    if source.form.raced:
        yield found(Kind.DUPLICATE, f"the same configuration stands there more than once: {sets}{rest}", *places)
    else:
        yield found(Kind.REPEATED, f"entries with one and the same configuration: {sets}{rest}", *places)


def _one_program(group: Sequence[Told]) -> Finding:
    names = sorted({name for item in group for name in item.bound.entry.config})
    configs = [item.bound.entry.config for item in group]
    values = {name: {repr(config[name]) if name in config else "unset" for config in configs} for name in names}
    apart = [f"{name} ({', '.join(sorted(found))})" for name, found in values.items() if len(found) > 1]
    who = named([item.bound.entry for item in group])
    digest = f" {group[0].digest[:8]}" if group[0].digest else ""
    text = f"{who} are one program{digest}: they differ in {listed(apart)}, which changes nothing between them"
    return found(Kind.DUPLICATE, text, *(place_of(item.bound.entry) for item in group))


# ---- knobs ---------------------------------------------------------------------------------------------------------


def _inert(told: Sequence[Told], context: Context) -> Iterator[Finding]:
    """Knobs that change nothing, whatever they are set to."""
    space, names = context.space, context.names
    for name, entries in _setting(told).items():
        why, details = "", tuple[str, ...]()
        if space is not None and _is_inert(space, name):
            if space.joint is None and not _settled(name, context):
                yield from _inert_beside(space, name, entries, context)
                continue
            why = space.knobs[name].why.partition(": identical program")[0]
            details = (_compared(space, name, context),)
        elif name in context.idle:
            entries = [entry for entry in entries if entry.config[name] in context.idle[name]]
            why = "with it and without it the map's baseline is one program"
        elif name in names.unread and names.kind(name) is KnobKind.CONSTEXPR:
            why = "declared, never read"
        if why and entries:
            values = list(dict.fromkeys(repr(entry.config[name]) for entry in entries))
            places = [place_of(entry, name) for entry in entries]
            text = f"{name} = {listed(values, word='or')} changes nothing: {why}"
            yield found(Kind.INERT_KNOB, text, *places, details=details, knob=name)


def _setting(told: Sequence[Told]) -> dict[str, list[Entry]]:
    """Who sets each knob, where that counts."""
    found_here: dict[str, list[Entry]] = {}
    for item in told:
        for name in item.bound.entry.said:
            if name not in item.bound.overridden and name not in item.bound.unknown:
                found_here.setdefault(name, []).append(item.bound.entry)
    return found_here


def _is_inert(space: SpaceMap, name: str) -> bool:
    """Whether no value of a knob changed anything wherever the map compared them."""
    knob = space.knobs.get(name)
    if knob is None or knob.knob_class is not KnobClass.INERT or space.stable is False:
        return False
    together = [item for item in space.joint.inertness if item.knob == name] if space.joint else []
    return all(item.condition == "" for item in together)


def _settled(name: str, context: Context) -> bool:
    """Whether what was seen beside one configuration holds beside others: the kernel does not even read the knob."""
    kind = context.names.kind(name)
    return kind is KnobKind.OPTION or (kind is not KnobKind.HOST and name in context.names.unread)


def _inert_beside(space: SpaceMap, name: str, entries: Sequence[Entry], context: Context) -> Iterator[Finding]:
    """A knob that the kernel reads, and that does nothing beside the one entry that it was moved beside."""
    for entry in entries:
        if context.beside is not None and (entry.file, entry.name) == (context.beside.file, context.beside.name):
            values = listed([repr(value.value) for value in space.knobs[name].values])
            who = entry.name or "the configuration"
            text = f"{name} changes nothing in {who}: {values} are one program there"
            yield found(Kind.INERT_HERE, text, place_of(entry, name), knob=name)


def _compared(space: SpaceMap, name: str, context: Context) -> str:
    """What the claim rests on."""
    for item in space.joint.inertness if space.joint else ():
        if item.knob == name:
            return item.words
    values = [repr(value.value) for value in space.knobs[name].values]
    return f"{listed(values)} are one program {_beside(context)}"


def _beside(context: Context) -> str:
    if context.beside is None:
        return "beside the map's baseline"
    name = context.beside.name
    return f"beside {name} of {Path(context.beside.file).name}" if name else f"beside {Path(context.beside.file).name}"


def _equal(told: Sequence[Told], context: Context) -> Iterator[Finding]:
    """Values that another one could stand for."""
    space = context.space
    if space is None or space.stable is False:
        return
    for name, entries in _setting(told).items():
        if name not in space.knobs or _is_inert(space, name) or (not space.joint and not _settled(name, context)):
            continue
        default = repr(context.names.options.get(name, "no option"))
        for group in _groups(space, name):
            first = next((value for value in group if repr(value) == default), group[0])
            for value in group:
                setting = [entry for entry in entries if same(entry.config[name], value)]
                if setting and not same(value, first):
                    text = f"{shown(name, value)} is the program of {shown(name, first)}"
                    details = () if space.joint else (_beside(context),)
                    places = [place_of(entry, name) for entry in setting]
                    yield found(Kind.EQUAL_VALUE, text, *places, details=details, knob=name)


def _groups(space: SpaceMap, name: str) -> tuple[tuple[Value, ...], ...]:
    """Values that are one program, everywhere that they were compared; without a joint part, beside the baseline."""
    if space.joint is None:
        return space.knobs[name].equivalent
    groups = [c for item in space.joint.value_classes if item.knob == name and item.relation is None and not item.where
              for c in item.classes if len(c) > 1]  # fmt: skip
    return tuple(groups)


def _inert_here(told: Sequence[Told], context: Context) -> Iterator[Finding]:
    """Knobs that matter only under a condition, where it does not hold."""
    space = context.space
    if space is None or space.joint is None or space.stable is False:
        return
    for item in space.joint.inertness:
        relation = item.relation
        if relation is None or not scope_of(relation) <= space.baseline.keys():
            continue
        setting = [
            each for each in told if item.knob in each.bound.entry.said and item.knob not in each.bound.overridden
        ]
        passing = [each for each in setting if each.config and each.verdict is Feasibility.FEASIBLE]
        entries = [each.bound.entry for each in passing if not holds(relation, each.config)]
        if entries:
            places = [place_of(entry, item.knob) for entry in entries]
            who = listed([entry.name or "the configuration" for entry in entries])
            text = f"{item.knob} changes nothing in {who}: it matters only if {item.condition}"
            yield found(Kind.INERT_HERE, text, *places, knob=item.knob)


# ---- sums ----------------------------------------------------------------------------------------------------------


def in_numbers(source: Source, told: Sequence[Told]) -> FileChecked:
    """How many entries of a file pass."""
    passed = [item for item in told if item.verdict is Feasibility.FEASIBLE]
    failed = sum(item.verdict is Feasibility.INFEASIBLE for item in told)
    programs = len({item.launch for item in passed if item.launch})
    return FileChecked(source.file, str(source.form), len(source.entries), len(passed), failed, programs)


def checked(told: Told) -> Checked:
    """One entry, as it is reported."""
    entry = told.bound.entry
    return Checked(
        file=entry.file,
        entry=entry.name,
        config=entry.config,
        outcome=told.outcome,
        basis=told.basis,
        line=entry.line,
        reason=told.reason,
        at=told.at,
        digest=told.digest,
        resources=told.resources,
    )


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The worst first; of one severity by file and line, each said once."""
    once = {repr(item): item for item in findings}
    return tuple(sorted(once.values(), key=_rank))


def _rank(item: Finding) -> tuple[int, str, int, str]:
    place = item.places[0] if item.places else Place("")
    return item.severity.rank, place.file, place.line or 0, item.kind
