"""The wording that all reports share: marks, labels, the one sentence, and the rows of their tables.

Everything that comes from a compiler or a kernel file goes through `visible` before it is shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UnsetType

from gluonmap.constraints.semantics import holds
from gluonmap.model import targets
from gluonmap.model.candidate import Stage, Value
from gluonmap.model.joint_map import Constraint, Inertness, Standing
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.relations import Written
from gluonmap.model.space_map import KnobMap, Measured, SpaceMap, ValueMap
from gluonmap.model.verdict import Figures, Outcome, Resources

MESSAGE_LIMIT = 200
"""Characters of a message that a table shows."""


# --- text ------------------------------------------------------------------------------------------------------------


def visible(text: str) -> str:
    """Return `text` with every character that would act on a terminal or hide from a reader spelled as an escape."""
    return "".join(c if c == " " or unicodedata.category(c)[0] not in "CZ" else _escape(c) for c in text)


def _escape(character: str) -> str:
    named = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\xa0": " ", "\u202f": " ", "\u3000": " "}.get(character)
    if named is not None:
        return named
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cut(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return `text`, its end replaced by an ellipsis where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def first_line(text: str) -> str:
    """Return the first line of `text` that is not blank, safe to show."""
    return next((visible(line.strip()) for line in text.splitlines() if line.strip()), "")


def label(value: Value) -> str:
    """Return a value as it is named everywhere: None, True, 0.5, 256, '' and the bare text of a plain word.

    Text that could be taken for another value ("None", "64", "a b") stands in quotes, so labels tell values apart.
    """
    if not isinstance(value, str):
        return repr(value)
    shown = visible(value)
    taken = shown in {"None", "True", "False", "nan", "inf"}
    plain = shown.isascii() and shown[:1] in set("._") | set(map(chr, range(65, 91))) | set(map(chr, range(97, 123)))
    spaced = any(c in " ,;'\"" for c in shown) and not shown.endswith((")", "]", ">"))
    return shown if plain and not taken and not spaced else f"'{shown}'"


def listed(items: Iterable[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    *head, last = list(items) or [""]
    return f"{', '.join(head)} and {last}" if head else last


def plural(count: int, noun: str) -> str:
    """Return "1 knob" or "2 knobs"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# --- marks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mark:
    """How an outcome or effect is shown: the glyph and the word each tell it without the colour."""

    glyph: str
    colour: str
    word: str


OUTCOME_MARKS: dict[Outcome, Mark] = {
    Outcome.PASS: Mark("✓", "green", "passes"),
    Outcome.REJECTED: Mark("⊘", "red", "rejected"),
    Outcome.CRASHED: Mark("✗", "red", "crashed"),
    Outcome.NO_RESOURCES: Mark("↑", "yellow", "over a resource limit"),
    Outcome.HUNG: Mark("∞", "yellow", "hung"),
    Outcome.WRONG: Mark("≠", "red", "wrong numbers"),
    Outcome.UNSAFE: Mark("!", "red", "unsafe"),
    Outcome.SKIPPED: Mark("–", "cyan", "skipped"),
    Outcome.NOT_EXECUTED: Mark("·", "cyan", "not executed"),
}

EFFECT_MARKS: dict[Effect, Mark] = {
    Effect.BASELINE: Mark("●", "bold", "baseline"),
    Effect.INERT: Mark("○", "dim", "inert"),
    Effect.LIVE: Mark("Δ", "green", "live"),
    Effect.LIVE_HOST: Mark("⌂", "green", "live on the host"),
    Effect.ABORTING: Mark("✗", "red", "fails"),
    Effect.CHANGES_RESULT: Mark("◇", "yellow", "changes the result"),
    Effect.UNKNOWN: Mark("?", "magenta", "unknown"),
}

CLASS_COLOURS: dict[KnobClass, str] = {
    KnobClass.PINNED: "red",
    KnobClass.BOUNDED: "yellow",
    KnobClass.LIVE: "green",
    KnobClass.INERT: "dim",
    KnobClass.UNKNOWN: "magenta",
}
"""In the order of the reports."""

FAILURES: dict[Outcome, str] = {
    Outcome.REJECTED: "is rejected",
    Outcome.CRASHED: "crashes the compiler",
    Outcome.NO_RESOURCES: "is over a resource limit",
    Outcome.HUNG: "does not end before the deadline",
    Outcome.WRONG: "computes wrong numbers",
    Outcome.UNSAFE: "is unsafe",
}
"""Outcomes that speak against a configuration, as a verb phrase."""

NO_EVIDENCE: dict[Outcome, str] = {
    Outcome.SKIPPED: "was skipped",
    Outcome.NOT_EXECUTED: "was not executed",
}


DIFFERS = "differs from the baseline"
"""The kind of what is WRONG where the baseline's results stand in for a reference."""
STEPS = "steps"
"""The kind of what hung because a run on the CPU went past its limit of instructions."""


def outcome_of(text: str) -> Outcome | None:
    """Return the outcome named `text`; None for "unknown" and for names that only a newer version knows."""
    return Outcome(text) if text in Outcome.__members__ else None


def executed(space: SpaceMap) -> bool:
    """Return whether candidates were executed on the CPU, by a model of the hardware."""
    return not isinstance(space.on_device, UnsetType) and space.on_device.stage is Stage.RUN


def judged(space: SpaceMap) -> bool:
    """Return whether the baseline stands, so that values are judged against it."""
    outcome = outcome_of(space.outcome)
    return outcome is not None and outcome.compiled


def fails(value: ValueMap) -> bool:
    """Return whether a value's outcome speaks against it; of one that changes the result it does."""
    outcome = outcome_of(value.outcome)
    return outcome in FAILURES or (value.effect is Effect.ABORTING and outcome not in NO_EVIDENCE)


def value_mark(value: ValueMap) -> Mark:
    """Return the mark of a value: its outcome where that decides, else its effect."""
    if value.effect is Effect.CHANGES_RESULT:
        return EFFECT_MARKS[value.effect]
    outcome = outcome_of(value.outcome)
    decides = outcome in FAILURES or (outcome in NO_EVIDENCE and value.effect in {Effect.UNKNOWN, Effect.ABORTING})
    return OUTCOME_MARKS[outcome] if outcome is not None and decides else EFFECT_MARKS[value.effect]


# --- knobs -----------------------------------------------------------------------------------------------------------


def ordered(space: SpaceMap) -> list[tuple[str, KnobMap]]:
    """Return the knobs by class (pinned, bounded, live, inert, unknown), within a class in signature order."""
    classes = list(CLASS_COLOURS)
    return sorted(signature_order(space), key=lambda item: classes.index(item[1].knob_class))


def signature_order(space: SpaceMap) -> list[tuple[str, KnobMap]]:
    """Return the knobs in the baseline's order; those that it does not hold come last."""
    place = {name: index for index, name in enumerate(space.baseline)}
    return sorted(space.knobs.items(), key=lambda item: place.get(item[0], len(place)))


def counts(space: SpaceMap) -> dict[KnobClass, int]:
    """Return how many knobs each class has, every class named, in the reports' order."""
    classes = [knob.knob_class for knob in space.knobs.values()]
    return {each: classes.count(each) for each in CLASS_COLOURS}


def count_line(space: SpaceMap) -> str:
    """Return "11 knobs: 4 pinned, 4 live, 3 inert"."""
    parts = [f"{count} {each}" for each, count in counts(space).items() if count]
    return plural(len(space.knobs), "knob") + (f": {', '.join(parts)}" if parts else "")


def matters(knob: KnobMap) -> bool:
    """Return whether a tuner can gain by the knob: it is live, or bounded with a live value left."""
    live = any(value.effect in {Effect.LIVE, Effect.LIVE_HOST} and not fails(value) for value in knob.values)
    return knob.knob_class is KnobClass.LIVE or (knob.knob_class is KnobClass.BOUNDED and live)


def unsettled(knob: KnobMap) -> bool:
    """Return whether the answers that are missing could still make the knob matter."""
    open_values = any(value.effect is Effect.UNKNOWN for value in knob.values)
    return knob.knob_class is KnobClass.UNKNOWN or (open_values and not matters(knob))


@dataclass(frozen=True, slots=True)
class Token:
    """One value as the table of knobs shows it."""

    text: str
    mark: Mark
    note: str
    """Signal, exception class, "budget" or "deadline": where it is not what the last such mark had."""


def chains(knob: KnobMap) -> list[list[Token]]:
    """Return the knob's values in order; values with equal programs stand in one chain, where the first of them is."""
    groups = {label(member): index for index, group in enumerate(knob.equivalent) for member in group}
    gathered: dict[int | str, list[ValueMap]] = {}
    for value in knob.values:
        name = label(value.value)
        gathered.setdefault(groups.get(name, name), []).append(value)
    last: dict[str, str] = {}
    return [[_token(value, last) for value in chain] for chain in gathered.values()]


def _token(value: ValueMap, last: dict[str, str]) -> Token:
    mark = value_mark(value)
    told = fails(value) and value.effect is not Effect.CHANGES_RESULT  # whose mark says all that its kind does
    note = visible(value.kind) if told and last.get(mark.glyph) != value.kind else ""
    last[mark.glyph] = value.kind
    return Token(label(value.value), mark, note)


def legend(space: SpaceMap) -> list[tuple[str, str]]:
    """Return (glyph, word) of every mark that the map's values use, in the order of the closed tables."""
    used = {value_mark(value) for knob in space.knobs.values() for value in knob.values}
    marks = [mark for mark in (*EFFECT_MARKS.values(), *OUTCOME_MARKS.values()) if mark in used]
    equal = [("≡", "same program")] if any(knob.equivalent for knob in space.knobs.values()) else []
    return [(mark.glyph, mark.word) for mark in marks] + equal


def demand(space: SpaceMap, item: Constraint) -> str:
    """Return the demand of the source that a constraint is, with its lines, where something has failed by it.

    "": there is none, or the map does not tell which it is.
    """
    if item.standing is not Standing.READ or not item.confirmed or not isinstance(item.relation, Written):
        return ""
    text = item.relation.text
    for spelled in (text, text.replace(" == ", " = ")):
        pattern = rf"(?<![\w.]){re.escape(spelled)}(?![\w.])"
        if found := next((literal for literal in space.literals if re.search(pattern, literal)), ""):
            return found
    if len(item.scope) != 1 or item.scope[0] not in space.knobs:
        return ""
    (name,) = item.scope
    forbidden = [v.because for v in space.knobs[name].values if not holds(item.relation, {name: v.value})]
    common = [text for text in forbidden[0] if all(text in each for each in forbidden)] if forbidden else []
    return common[0] if len(common) == 1 else ""


# --- the sentence ----------------------------------------------------------------------------------------------------


def sentence(space: SpaceMap) -> str:
    """Return the one sentence that a person would say about the map."""
    if not judged(space):
        return visible(_failed_baseline(space))
    clauses = _clauses(space) if space.knobs else [f"{space.kernel} has no knob to turn on {space.target}"]
    if space.unanswered:
        was = "was" if space.unanswered == 1 else "were"
        clauses.append(f"{plural(space.unanswered, 'candidate')} {was} not asked")
    return visible("; ".join(clauses) + ".")


def _clauses(space: SpaceMap) -> list[str]:
    names: dict[KnobClass, list[str]] = {each: [] for each in CLASS_COLOURS}
    for name, knob in signature_order(space):
        names[KnobClass.UNKNOWN if unsettled(knob) else knob.knob_class].append(name)
    clauses = [_how_many_matter(space)]
    changing = {name: _changing(space.knobs[name]) for name in space.knobs}
    if pinned := [name for name in names[KnobClass.PINNED] if not changing[name]]:
        places = [label(space.knobs[name].baseline) for name in pinned]
        where = places[0] if len(set(places)) == 1 else listed(places)
        clauses.append(f"{listed(pinned)} {_be(pinned)} pinned at {where}")
    clauses += _bounded(space, names[KnobClass.BOUNDED])
    clauses += _part_of_the_problem(space, {name: values for name, values in changing.items() if values})
    inert = names[KnobClass.INERT]
    conditional = {name: when for name in inert if (when := matters_if(space, name))}
    compared = {name: item.same for name in inert if (item := _together(space, name)) and item.uncompared}
    for when in dict.fromkeys(conditional.values()):
        found = [name for name in inert if conditional.get(name) == when]
        clauses.append(f"{listed(found)} {'matters' if len(found) == 1 else 'matter'} {when}")
    if compared:
        clauses.append(f"{listed(list(compared))} changed nothing where compared ({_pairs(list(compared.values()))})")
    if idle := [name for name in inert if name not in conditional and name not in compared]:
        alone = " alone" if space.joint is None and len(space.knobs) > 1 else ""
        clauses.append(f"{listed(idle)} {'changes' if len(idle) == 1 else 'change'} nothing{alone}")
    if unknown := names[KnobClass.UNKNOWN]:
        clauses.append(f"{listed(unknown)} {_be(unknown)} unknown")
    return clauses


def _changing(knob: KnobMap) -> list[Value]:
    return [v.value for v in knob.values if v.effect is Effect.CHANGES_RESULT]


def _part_of_the_problem(space: SpaceMap, changing: Mapping[str, list[Value]]) -> list[str]:
    clauses = []
    for name, values in changing.items():
        if len(values) == len(space.knobs[name].values) - 1:
            clauses.append(
                f"{name} is part of the problem: every value but {label(space.knobs[name].baseline)} changes"
            )
            clauses[-1] += " the result"
        else:
            does = "changes" if len(values) == 1 else "change"
            clauses.append(f"{listed(f'{name} = {label(v)}' for v in values)} {does} the result")
    return clauses


def matters_if(space: SpaceMap, name: str) -> str:
    """Return when a knob that changes nothing by itself matters all the same: "only if USE_LDS = 1"; "": never."""
    found = _together(space, name)
    if found is None or found.condition == "" or found.uncompared:
        return ""
    return f"only if {found.condition}" if found.relation is not None else "beside other values"


def _together(space: SpaceMap, name: str) -> Inertness | None:
    """What was learned of a knob beside other values."""
    return next((item for item in space.joint.inertness if item.knob == name), None) if space.joint else None


def _pairs(counts: Sequence[int]) -> str:
    """Return "6 pairs", "6 pairs each" or "1 to 6 pairs each"."""
    least, most = min(counts), max(counts)
    each = " each" if len(counts) > 1 else ""
    return (plural(most, "pair") if least == most else f"{least:,} to {plural(most, 'pair')}") + each


def _be(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _how_many_matter(space: SpaceMap) -> str:
    total = len(space.knobs)
    live = sum(
        matters(k) or (k.knob_class is KnobClass.INERT and bool(matters_if(space, n))) for n, k in space.knobs.items()
    )
    uncompared = any(item.uncompared for name in space.knobs if (item := _together(space, name)))
    doubt = not live and (uncompared or any(unsettled(knob) for knob in space.knobs.values()))
    if total == 1:
        text = "The only knob " + ("matters" if live else "is not known to matter" if doubt else "does not matter")
    elif live == 0:
        who = "Neither of the 2 knobs" if total == 2 else f"None of the {total} knobs"
        text = who + (" is known to matter" if doubt else " matters")
    elif live == total:
        text = "Both knobs matter" if total == 2 else f"All {total} knobs matter"
    else:
        text = f"{live} of {total} knobs {'matters' if live == 1 else 'matter'}"
    return f"{text} on {space.target}"


def _bounded(space: SpaceMap, names: Sequence[str]) -> list[str]:
    if len(names) > 3:
        return [f"{listed(names)} are bounded"]
    clauses = []
    for name in names:
        left = [label(v.value) for v in space.knobs[name].values if not fails(v) and v.effect is not Effect.UNKNOWN]
        clauses.append(f"{name} is bounded" + (f" to {listed(left)}" if left else ""))
    return clauses


def _failed_baseline(space: SpaceMap) -> str:
    at = f" at {place(space.file, space.line)}" if space.line is not None else ""
    why = cut(first_line(space.reason)).rstrip(".:; ")
    text = f"The baseline of {space.kernel} {failed_phrase(space)} on {space.target}{at}{f': {why}' if why else ''}"
    again = f"; repeat it by hand with: {space.repeat}" if space.repeat else "."
    return f"{text}; no knob can be judged against it{again}"


def failed_phrase(space: SpaceMap) -> str:
    """Return what the baseline does instead of passing, as a verb phrase."""
    outcome = outcome_of(space.outcome)
    if outcome is None:
        return "got no answer"
    if outcome is Outcome.CRASHED and space.measured:
        return "crashes when it is executed" if executed(space) else "crashes on the device"
    if outcome is Outcome.HUNG and space.kind == STEPS:
        return "goes past the limit of instructions when it is executed"
    return (FAILURES | NO_EVIDENCE).get(outcome, "passes")


def baseline_facts(space: SpaceMap) -> list[tuple[str, str]]:
    """Return what is known of a failing baseline: where, how, why, what forbids it, and what to do next."""
    how = " ".join(part for part in (space.kind, f"({space.stage})" if space.stage else "") if part)
    status = f"exit status {space.exit_status}" if space.exit_status is not None else ""
    facts = [
        ("where", place(space.file, space.line) if space.line is not None else ""),
        ("how", ", ".join(part for part in (how, status) if part)),
        ("why", "\n".join(visible(line) for line in space.reason.splitlines()).strip()),
        ("forbidden by", "; ".join(space.because)),
        ("next", space.next_step or NEXT_STEP),
    ]
    return [(name, text) for name, text in facts if text]


def baseline_mark(space: SpaceMap) -> Mark:
    """Return the mark of the baseline's outcome."""
    outcome = outcome_of(space.outcome)
    return EFFECT_MARKS[Effect.UNKNOWN] if outcome is None else OUTCOME_MARKS[outcome]


NEXT_STEP = "Start from a configuration that passes: give another baseline, or repair the kernel, and probe again."


# --- the header ------------------------------------------------------------------------------------------------------


def target(space: SpaceMap) -> str:
    """Return "gfx950 (cdna4)"."""
    return target_name(space.target)


def target_name(name: str) -> str:
    """Return "gfx950 (cdna4)" for "gfx950"."""
    return visible(name) + (f" ({alias})" if (alias := alias_of(name)) else "")


def alias_of(name: str) -> str:
    """Return "cdna4" for "gfx950"; "" for a target without an alias, and for a map's target that is not known here."""
    known = targets.named(name)
    return known.alias if known else ""


def place(file: str, line: int | None) -> str:
    """Return "file:line"."""
    return visible(file) + (f":{line}" if line is not None else "")


def specialisation(space: SpaceMap) -> str:
    """Return "*u8: a_ptr, b_ptr; i32 divisible by 16: M, N", groups by first appearance."""
    groups: dict[str, list[str]] = {}
    for name, kind in space.specialisation.items():
        groups.setdefault(_argument(visible(kind)), []).append(visible(name))
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in groups.items())


def _argument(kind: str) -> str:
    base, colon, hint = kind.rpartition(":")
    meaning = {"16": "divisible by 16", "1": "equal to 1"}.get(hint.strip()) if colon else None
    return f"{base.strip()} {meaning}" if meaning else kind


def settings(config: Mapping[str, Value]) -> str:
    """Return "M=4096, N=512"."""
    return ", ".join(f"{visible(name)}={label(value)}" for name, value in config.items())


def launch(space: SpaceMap) -> str:
    """Return "M=4096, N=512; grid 256 × 1 × 1", as far as known."""
    grid = "grid " + " × ".join(map(str, (*space.grid, 1, 1)[:3])) if space.grid is not None else ""
    return "; ".join(part for part in (settings(space.shape), grid) if part)


def identity(space: SpaceMap) -> str:
    """Return the baseline's short digest and whether two compiles agreed on it."""
    said = {True: "two compiles agree", False: UNSTABLE, None: "compiled once: stability not asked"}[space.stable]
    return f"{space.digest[:8]}, {said}" if space.digest else said


UNSTABLE = "UNSTABLE: two compiles of the baseline differ, so equal or different programs prove nothing here"


# --- resources -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """One resource of one program."""

    head: str
    text: str
    alarm: bool = False
    """Costs speed for sure: something is spilled."""
    worse: bool = False
    """Clearly more costly than the baseline's."""


_RESOURCES: dict[str, tuple[str, str, str, str, bool]] = {
    "vgpr": ("VGPR", "registers", "", "", False),
    "vgpr_allocated": ("VGPR reserved", "VGPR reserved", "", "", False),
    "agpr": ("AGPR", "AGPR", "", "", False),
    "sgpr": ("SGPR", "SGPR", "", "", False),
    "spills": ("spills", "spills", "", " B", True),
    "sgpr_spills": ("SGPR spills", "SGPR spills", "", "", True),
    "scratch_bytes": ("scratch", "scratch", " B", " B", True),
    "shared_bytes": ("LDS", "shared", " B", " B", False),
    "tensor_columns": ("tensor columns", "tensor columns", "", "", False),
    "occupancy": ("waves/SIMD", "waves/SIMD", "", "", False),
    "threads": ("threads", "threads", "", "", False),
    "code_bytes": ("code", "code", " B", " B", False),
}
"""Field of `Resources` -> its name and its unit for AMD and for NVIDIA, and whether any of it costs speed for sure."""

RESOURCE_FIELDS = tuple(_RESOURCES)
"""In the order of the reports."""


def resource(target_name: str, field: str) -> tuple[str, str]:
    """Return the name and the unit of a field of `Resources`, in the words of the target's maker."""
    amd, nvidia, amd_unit, nvidia_unit, _ = _RESOURCES[field]
    return (amd, amd_unit) if target_name.startswith("gfx") else (nvidia, nvidia_unit)


def figures(target_name: str, found: Resources) -> list[Figure]:
    """Return the resources that the back end told, in a fixed order, in the words of the target's maker."""
    rows = [(*resource(target_name, field), getattr(found, field), _RESOURCES[field][-1]) for field in _RESOURCES]
    return [Figure(h, f"{n:,}{unit}", alarm and n > 0) for h, unit, n, alarm in rows if n is not None]


# --- why values fail -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failure:
    """Values of one knob that fail alike."""

    knob: str
    values: tuple[str, ...]
    mark: Mark
    outcome: str
    kind: str
    stage: str
    message: str
    where: str
    because: tuple[str, ...]

    @property
    def how(self) -> str:
        """Return "CRASHED SIGABRT (make_llir)"."""
        return " ".join(filter(None, (self.outcome, self.kind, f"({self.stage})" if self.stage else "")))


def failures(space: SpaceMap) -> list[Failure]:
    """Return the failing values, alike ones of a knob in one row, knobs in the reports' order."""
    return _rows(space, lambda v: fails(v) and v.effect is not Effect.CHANGES_RESULT)


PART_OF_THE_PROBLEM = "Part of the problem, not of the tuning"
PROBLEM_TERMS = (
    "Their numbers differ from the baseline's beyond rounding, and the probe file has no reference that says which are "
    "right. None of them is handed over."
)


def changing(space: SpaceMap) -> list[Failure]:
    """Return the values that change the result, where no reference says which result is right."""
    return _rows(space, lambda v: v.effect is Effect.CHANGES_RESULT)


NO_ANSWER = "No answer (never evidence about the kernel)"
NUMBERS_UNKNOWN = "Compiled and not executed: their numbers are unknown"


def unexecuted(space: SpaceMap) -> list[Failure]:
    """Return the values that compiled and that the model on the CPU could not execute; their effects stand."""
    return _rows(space, _unexecuted)


def _unexecuted(value: ValueMap) -> bool:
    return value.outcome == Outcome.NOT_EXECUTED and not fails(value) and bool(value.digest)


def unjudged(space: SpaceMap) -> list[Failure]:
    """Return the values that got no answer (a fault of the tool, never evidence), or were skipped."""
    return _rows(space, lambda v: not fails(v) and v.outcome != Outcome.PASS and not _unexecuted(v))


def _rows(space: SpaceMap, wanted: Callable[[ValueMap], bool]) -> list[Failure]:
    rows: list[Failure] = []
    for name, knob in ordered(space):
        alike: dict[tuple[str, str, str, str, str, int | None], list[ValueMap]] = {}
        for v in knob.values:
            if wanted(v):
                alike.setdefault((v.outcome, v.kind, v.stage, v.reason, v.file, v.line), []).append(v)
        for (outcome, kind, stage, reason, file, line), members in alike.items():
            because = tuple(dict.fromkeys(visible(text) for v in members for text in v.because))
            labels = tuple(label(v.value) for v in members)
            where = _short_place(space, file, line)
            mark = value_mark(members[0])
            how = (visible(outcome), visible(kind), visible(stage))
            if members[0].effect is Effect.CHANGES_RESULT:
                how = (mark.word, "", visible(stage))
            fixed = (mark, *how, first_line(reason))
            rows.append(Failure(visible(name), labels, *fixed, where, because))
    return rows


def _short_place(space: SpaceMap, file: str, line: int | None) -> str:
    if line is None:
        return ""
    same = not file or file == space.file
    return place(space.file.rsplit("/", 1)[-1] if same else file, line)


# --- programs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """One distinct program and the single moves from the baseline that lead to it."""

    digest: str
    baseline: bool
    moves: tuple[str, ...]
    """"num_stages = 1, 3"."""
    changes: tuple[str, ...]
    figures: tuple[Figure, ...]
    counted: Figures | None = None
    """What a run on the CPU counted."""


def programs(space: SpaceMap) -> list[ProgramRow]:
    """Return the distinct programs of all values that do not fail, the baseline's first."""
    found: dict[str, list[tuple[str, ValueMap]]] = {space.digest: []} if space.digest else {}
    for name, knob in ordered(space):
        for value in knob.values:
            if value.digest and not fails(value) and value.effect is not Effect.UNKNOWN:
                found.setdefault(value.digest, []).append((name, value))
    length = next((n for n in range(8, 65) if len({digest[:n] for digest in found}) == len(found)), 64)
    return [_program(space, digest, length, moves) for digest, moves in found.items()]


def _program(space: SpaceMap, digest: str, length: int, found: list[tuple[str, ValueMap]]) -> ProgramRow:
    moved = [(name, value) for name, value in found if value.effect is not Effect.BASELINE]
    by_knob: dict[str, list[str]] = {}
    by_detail: dict[str, list[str]] = {}
    for name, value in moved:
        by_knob.setdefault(visible(name), []).append(label(value.value))
        names = by_detail.setdefault(visible(value.detail), [])
        if visible(name) not in names:
            names.append(visible(name))
    named = len(by_detail) > 1
    changes = tuple(f"{d} ({', '.join(names)})" if named else d for d, names in by_detail.items() if d)
    own = next((value.resources for _, value in found if value.resources is not None), None)
    resources = own or (space.resources if digest == space.digest else None)
    return ProgramRow(
        visible(digest[:length]),
        digest == space.digest,
        tuple(f"{name} = {', '.join(values)}" for name, values in by_knob.items()),
        changes,
        tuple(figures(space.target, resources)) if resources is not None else (),
        next((m.figures for m in _executions(space, digest, found) if m and m.figures), None),
    )


def _executions(space: SpaceMap, digest: str, found: Sequence[tuple[str, ValueMap]]) -> Iterator[Measured | UnsetType]:
    if digest == space.digest:
        yield space.measured
    yield from (value.measured for _, value in found)


def figure_heads(rows: Sequence[ProgramRow]) -> list[str]:
    """Return the heads of all figures that any row has; they keep their order where no row lacks one in the middle."""
    longest = sorted((tuple(figure.head for figure in row.figures) for row in rows), key=len, reverse=True)
    return list(dict.fromkeys(head for heads in longest for head in heads))


def figure(row: ProgramRow, head: str) -> Figure:
    """Return the row's figure of that head; a dash where its back end does not say."""
    return next((each for each in row.figures if each.head == head), Figure(head, "-"))


# --- what stands below the tables ------------------------------------------------------------------------------------


def grouped(reasons: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return ("a, b", why) for names with the same reason, by first appearance."""
    groups: dict[str, list[str]] = {}
    for name, why in reasons.items():
        groups.setdefault(visible(why), []).append(visible(name))
    return [(", ".join(names), why) for why, names in groups.items()]


def warnings(space: SpaceMap) -> list[tuple[str, str]]:
    """Return (knob = values, warning) for error diagnostics that came with a success, alike ones together."""
    groups: dict[str, dict[str, list[str]]] = {}
    for name, knob in ordered(space):
        for value in knob.values:
            for text in value.warnings:
                groups.setdefault(cut(first_line(text)), {}).setdefault(visible(name), []).append(label(value.value))
    return [("; ".join(f"{n} = {', '.join(v)}" for n, v in knobs.items()), text) for text, knobs in groups.items()]


def repeats(space: SpaceMap) -> list[tuple[str, str]]:
    """Return (what, command) for the values that did not pass and have a command to repeat them by hand."""
    return [
        (visible(f"{name} = {label(v.value)}: {v.outcome} {v.kind}".rstrip()), visible(v.repeat))
        for name, knob in ordered(space)
        for v in knob.values
        if v.repeat and v.outcome != Outcome.PASS
    ]
