"""Findings about the entries of one file, from the verdict on each and from what the map knows of the knobs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from gluonmap.audit.bound_entries import KernelNames
from gluonmap.audit.findings import AuditFinding, CheckedFile, FindingKind, Severity, ShippedPlace, new_finding
from gluonmap.audit.judged_entry import JudgedEntry
from gluonmap.audit.shipped_files import ShippedEntry, ShippedFile
from gluonmap.audit.wording import entry_name, named, place_of, shown
from gluonmap.constraints.semantics import holds, scope_of
from gluonmap.model import outcomes, targets
from gluonmap.model.candidate import Value, same
from gluonmap.model.knobs import KnobClass, KnobKind
from gluonmap.model.outcomes import Feasibility, Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.wording import listed_briefly


class AuditContext(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that all entries of an audit share."""

    target: str
    triton: str
    names: KernelNames
    space: SpaceMap | None = None
    """The map, stored or made for this audit alone; None: no entry passed."""
    idle: dict[str, tuple[Value, ...]] = {}
    """Option that the map does not turn -> its values that leave the baseline's program unchanged."""
    mentions: dict[str, str] = {}
    """Unknown key → where the project's Python code names it: "file.py:12"."""
    baseline_entry: ShippedEntry | None = None
    """The entry that is the baseline; None if a stored map was used."""


def findings_on_file(source: ShippedFile, judged: Sequence[JudgedEntry], context: AuditContext) -> list[AuditFinding]:
    """Return all findings about one file and its entries."""
    parts = (
        _about_the_file(source, context),
        _unknown(source, judged, context),
        _overridden(judged),
        # Triton refuses an entry with an unread key before anything else can fail, so the key is the only finding.
        _fates([item for item in judged if not (source.form.whole and item.bound.unknown)]),
        _spills(judged, context),
        _duplicates(source, judged) if _stable(context) else (),
        _inert(judged, context),
        _equal(judged, context),
        _inert_here(judged, context),
    )
    return list(chain.from_iterable(parts))


# ---- the file ------------------------------------------------------------------------------------------------------


def _about_the_file(source: ShippedFile, context: AuditContext) -> Iterator[AuditFinding]:
    here = ShippedPlace(source.file)
    if source.target and source.target != context.target:
        yield new_finding(
            FindingKind.OTHER_TARGET, f"the file is named for {source.target} and audited on {context.target}", here
        )
    if source.elsewhere:
        text = f"the file is named for {source.elsewhere}, which is no target here; audited on {context.target}"
        yield new_finding(FindingKind.OTHER_TARGET, text, here)
    if source.triton and not context.triton.startswith(source.triton):
        text = f"it was tuned with Triton {source.triton}, and this is {context.triton}"
        yield new_finding(FindingKind.OTHER_TRITON, text, here)
    for odd in source.oddities:
        severity = None if odd.certain else Severity.NOTICE
        place = ShippedPlace(source.file, odd.line, odd.name)
        yield new_finding(
            FindingKind.UNREAD_ENTRY, f"no loader reads {odd.name!r}: {odd.why}", place, severity=severity
        )


def _unknown(source: ShippedFile, judged: Sequence[JudgedEntry], context: AuditContext) -> Iterator[AuditFinding]:
    for key, entries in _by_key((item.bound.entry, name) for item in judged for name in item.bound.unknown):
        nobody = f"{key} is no parameter of the kernel and no option of {context.target}'s compiler"
        close = difflib.get_close_matches(key, {*context.names.constexprs, *context.names.options}, 1, 0.8)
        hint = f"; did you mean {close[0]}?" if close and not any(close[0] in e.config for e in entries) else ""
        places = [place_of(entry, key) for entry in entries]
        if source.form.whole:
            text = f"{nobody}: Triton refuses the launch{hint}"
            yield new_finding(FindingKind.UNKNOWN_KEY, text, *places, severity=Severity.ERROR, knob=key)
        elif mention := context.mentions.get(key):
            yield new_finding(
                FindingKind.UNKNOWN_KEY, f"{nobody}; host code may read it, {mention} names it{hint}", *places, knob=key
            )
        else:
            yield new_finding(FindingKind.UNKNOWN_KEY, f"{nobody}: no code reads it{hint}", *places, knob=key)


def _overridden(judged: Sequence[JudgedEntry]) -> Iterator[AuditFinding]:
    for key, entries in _by_key((item.bound.entry, name) for item in judged for name in item.bound.overridden):
        why = next(item.bound.overridden[key] for item in judged if key in item.bound.overridden)
        places = [place_of(entry, key) for entry in entries]
        yield new_finding(FindingKind.OVERRIDDEN, f"the value of {key} is not used: {why}", *places, knob=key)


def _by_key(pairs: Iterator[tuple[ShippedEntry, str]]) -> Iterator[tuple[str, list[ShippedEntry]]]:
    groups: dict[str, list[ShippedEntry]] = {}
    for entry, key in pairs:
        groups.setdefault(key, []).append(entry)
    yield from groups.items()


# ---- verdicts on entries -------------------------------------------------------------------------------------------

_PREDICTED = (
    FindingKind.REJECTED,
    "fails by the map's constraints, uncompiled",
    "fail by the map's constraints, uncompiled",
)
_SILENT = (FindingKind.NO_ANSWER, "has no answer", "have no answer")


def _fates(judged: Sequence[JudgedEntry]) -> Iterator[AuditFinding]:
    """Yield findings about entries that do not pass, one for all that fail alike."""
    groups: dict[tuple[object, ...], list[JudgedEntry]] = {}
    for item in judged:
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
        yield new_finding(
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
    if too_big := [item for item in judged if item.resources is not None and item.resources.occupancy == 0]:
        verb = "compiles" if len(too_big) == 1 else "compile"
        text = f"{_who(too_big)} {verb}, but no work-group fits: too many registers or too much shared memory"
        yield new_finding(FindingKind.OVER_BUDGET, text, *(place_of(item.bound.entry) for item in too_big))


def _fate(outcome: Outcome) -> tuple[FindingKind, str, str]:
    """Return the kind of finding for a failing outcome, with its verb phrase for one entry and for several."""
    return FindingKind(outcome.info.finding), outcome.info.phrase, outcome.info.plural


def _blamed(group: Sequence[JudgedEntry]) -> Iterator[str]:
    """Yield the sentences about blame; with the names of the entries if not all share one."""
    sentences = dict.fromkeys(item.blamed for item in group)
    for words in filter(None, sentences):
        mine = _who([item for item in group if item.blamed == words])
        yield words if len(sentences) == 1 else f"{mine}: {words}"


def _who(group: Sequence[JudgedEntry]) -> str:
    return named([item.bound.entry for item in group])


def _spills(judged: Sequence[JudgedEntry], context: AuditContext) -> Iterator[AuditFinding]:
    """Yield findings about entries that spill, one for all that spill the same."""
    groups: dict[tuple[int, int], list[JudgedEntry]] = {}
    for item in judged:
        if item.verdict is Feasibility.FEASIBLE and item.resources is not None and item.resources.spills:
            amount = (item.resources.spills, item.resources.scratch_bytes or 0)
            groups.setdefault(amount, []).append(item)
    for (spills, scratch), group in sorted(groups.items(), reverse=True):
        amd = targets.find(context.target).vendor == "AMD"
        unit = ("vector register" if amd else "byte") + ("" if spills == 1 else "s")
        what = f"{spills:,} {unit} of a {'lane' if amd else 'thread'}"
        more = f", {scratch:,} bytes of scratch" if scratch else ""
        places = [place_of(item.bound.entry) for item in group]
        yield new_finding(
            FindingKind.SPILLS, f"{_who(group)} {'spills' if len(group) == 1 else 'spill'} {what}{more}", *places
        )


# ---- entries compared to each other ----------------------------------------------------------------------------------


def _stable(context: AuditContext) -> bool:
    return context.space is None or context.space.stable is not False


def _duplicates(source: ShippedFile, judged: Sequence[JudgedEntry]) -> Iterator[AuditFinding]:
    groups: dict[str, list[JudgedEntry]] = {}
    for item in judged:
        if item.launch and item.verdict is Feasibility.FEASIBLE:
            groups.setdefault(item.launch, []).append(item)
    repeated: list[list[ShippedEntry]] = []
    for group in groups.values():
        alike: dict[str, list[JudgedEntry]] = {}
        for item in group:
            alike.setdefault(repr(sorted(item.bound.entry.config.items())), []).append(item)
        repeated += [[item.bound.entry for item in same] for same in alike.values() if len(same) > 1]
        if len(alike) > 1:
            yield _one_program([same[0] for same in alike.values()])
    if not repeated:
        return
    places = [place_of(entry) for entries in repeated for entry in entries]
    sets = "; ".join(listed_briefly([entry.name for entry in entries]) for entries in repeated[:4])
    rest = f"; {len(repeated) - 4} more groups" if len(repeated) > 4 else ""
    if source.form.raced:
        yield new_finding(FindingKind.DUPLICATE, f"the same configuration occurs more than once: {sets}{rest}", *places)
    else:
        yield new_finding(FindingKind.REPEATED, f"entries with the same configuration: {sets}{rest}", *places)


def _one_program(group: Sequence[JudgedEntry]) -> AuditFinding:
    names = sorted({name for item in group for name in item.bound.entry.config})
    configs = [item.bound.entry.config for item in group]
    values = {name: {repr(config[name]) if name in config else "unset" for config in configs} for name in names}
    apart = [f"{name} ({', '.join(sorted(found))})" for name, found in values.items() if len(found) > 1]
    who = named([item.bound.entry for item in group])
    digest = f" {group[0].digest[:8]}" if group[0].digest else ""
    text = f"{who} are one program{digest}: they differ in {listed_briefly(apart)}, which changes nothing between them"
    return new_finding(FindingKind.DUPLICATE, text, *(place_of(item.bound.entry) for item in group))


# ---- knobs ---------------------------------------------------------------------------------------------------------


def _inert(judged: Sequence[JudgedEntry], context: AuditContext) -> Iterator[AuditFinding]:
    """Yield knobs of which no value changes anything."""
    space, names = context.space, context.names
    for name, entries in _setting(judged).items():
        why, details = "", tuple[str, ...]()
        if space is not None and _is_inert(space, name):
            if space.joint is None and not _settled(name, context):
                yield from _inert_beside(space, name, entries, context)
                continue
            why = space.knobs[name].why.partition(": identical program")[0]
            details = (_compared(space, name, context),)
        elif name in context.idle:
            entries = [entry for entry in entries if entry.config[name] in context.idle[name]]
            why = "the map's baseline is the same program with and without it"
        elif name in names.unread and names.kind(name) is KnobKind.CONSTEXPR:
            why = "declared, never read"
        if why and entries:
            values = list(dict.fromkeys(repr(entry.config[name]) for entry in entries))
            places = [place_of(entry, name) for entry in entries]
            text = f"{name} = {listed_briefly(values, word='or')} changes nothing: {why}"
            yield new_finding(FindingKind.INERT_KNOB, text, *places, details=details, knob=name)


def _setting(judged: Sequence[JudgedEntry]) -> dict[str, list[ShippedEntry]]:
    """Return the entries that set each knob to a value that is used."""
    setting: dict[str, list[ShippedEntry]] = {}
    for item in judged:
        for name in item.bound.entry.written:
            if name not in item.bound.overridden and name not in item.bound.unknown:
                setting.setdefault(name, []).append(item.bound.entry)
    return setting


def _is_inert(space: SpaceMap, name: str) -> bool:
    """Return whether no value of a knob changed anything wherever the map compared them."""
    knob = space.knobs.get(name)
    if knob is None or knob.knob_class is not KnobClass.INERT or space.stable is False:
        return False
    together = [item for item in space.joint.inertness if item.knob == name] if space.joint else []
    return all(item.condition == "" for item in together)


def _settled(name: str, context: AuditContext) -> bool:
    """Return whether an effect seen around one configuration holds everywhere: the kernel does not read the knob."""
    kind = context.names.kind(name)
    return kind is KnobKind.OPTION or (kind is not KnobKind.HOST and name in context.names.unread)


def _inert_beside(
    space: SpaceMap, name: str, entries: Sequence[ShippedEntry], context: AuditContext
) -> Iterator[AuditFinding]:
    """Yield a knob that the kernel reads and that changes nothing around the one entry that it was moved from."""
    for entry in entries:
        if context.baseline_entry is not None and (entry.file, entry.name) == (
            context.baseline_entry.file,
            context.baseline_entry.name,
        ):
            values = listed_briefly([repr(value.value) for value in space.knobs[name].values])
            who = entry_name(entry)
            text = f"{name} changes nothing in {who}: {values} are one program there"
            yield new_finding(FindingKind.INERT_HERE, text, place_of(entry, name), knob=name)


def _compared(space: SpaceMap, name: str, context: AuditContext) -> str:
    """Return the comparison that shows that a knob is inert."""
    for item in space.joint.inertness if space.joint else ():
        if item.knob == name:
            return item.words
    values = [repr(value.value) for value in space.knobs[name].values]
    return f"{listed_briefly(values)} are one program {_beside(context)}"


def _beside(context: AuditContext) -> str:
    if context.baseline_entry is None:
        return "around the map's baseline"
    name = context.baseline_entry.name
    return (
        f"around {name} of {Path(context.baseline_entry.file).name}"
        if name
        else f"around {Path(context.baseline_entry.file).name}"
    )


def _equal(judged: Sequence[JudgedEntry], context: AuditContext) -> Iterator[AuditFinding]:
    """Yield values that give the same program as another value of the knob."""
    space = context.space
    if space is None or space.stable is False:
        return
    for name, entries in _setting(judged).items():
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
                    yield new_finding(FindingKind.EQUAL_VALUE, text, *places, details=details, knob=name)


def _groups(space: SpaceMap, name: str) -> tuple[tuple[Value, ...], ...]:
    """Return groups of values that are one program wherever compared; without a joint part, around the baseline."""
    if space.joint is None:
        return space.knobs[name].equivalent
    groups = [c for item in space.joint.value_classes if item.knob == name and item.relation is None and not item.where
              for c in item.classes if len(c) > 1]  # fmt: skip
    return tuple(groups)


def _inert_here(judged: Sequence[JudgedEntry], context: AuditContext) -> Iterator[AuditFinding]:
    """Yield knobs that matter only under a condition, in entries where it does not hold."""
    space = context.space
    if space is None or space.joint is None or space.stable is False:
        return
    for item in space.joint.inertness:
        relation = item.relation
        if relation is None or not scope_of(relation) <= space.baseline.keys():
            continue
        setting = [
            each for each in judged if item.knob in each.bound.entry.written and item.knob not in each.bound.overridden
        ]
        passing = [each for each in setting if each.config and each.verdict is Feasibility.FEASIBLE]
        entries = [each.bound.entry for each in passing if not holds(relation, each.config)]
        if entries:
            places = [place_of(entry, item.knob) for entry in entries]
            who = listed_briefly([entry_name(entry) for entry in entries])
            text = f"{item.knob} changes nothing in {who}: it matters only if {item.condition}"
            yield new_finding(FindingKind.INERT_HERE, text, *places, knob=item.knob)


# ---- sums ----------------------------------------------------------------------------------------------------------


def file_in_numbers(source: ShippedFile, judged: Sequence[JudgedEntry]) -> CheckedFile:
    """Return the numbers of passing and failing entries of a file."""
    passed = [item for item in judged if item.verdict is Feasibility.FEASIBLE]
    failed = sum(item.verdict is Feasibility.INFEASIBLE for item in judged)
    programs = len({item.launch for item in passed if item.launch})
    return CheckedFile(source.file, str(source.form), len(source.entries), len(passed), failed, programs)


def ordered(findings: Sequence[AuditFinding]) -> tuple[AuditFinding, ...]:
    """Return the findings without repeats, sorted by severity (the worst first), file and line."""
    once = {repr(item): item for item in findings}
    return tuple(sorted(once.values(), key=_rank))


def _rank(item: AuditFinding) -> tuple[int, str, int, str]:
    place = item.places[0] if item.places else ShippedPlace("")
    return item.severity.rank, place.file, place.line or 0, item.kind
