"""Changes of single values and of knobs, as statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gluonmap.diff.comparison import Difference
from gluonmap.diff.knobs import KnobChange, KnobState, ValueChange
from gluonmap.model import joint_map
from gluonmap.model.candidate import Value
from gluonmap.model.knobs import KnobClass
from gluonmap.model.space_map import ValueMap
from gluonmap.report.diff.headline import class_changed
from gluonmap.report.diff.regressions import alike
from gluonmap.report.marks import fails, value_mark
from gluonmap.report.plain_text import Statement, first_line, shorten, value_label, visible


def turned(found: Difference) -> list[list[ValueChange]]:
    """Return the values that both maps tried and of which they say different things, alike ones of a knob together."""
    return alike(found.values, lambda v: (v.turn, v.knob, v.one_configuration, state_of(v.before), state_of(v.after)))


def values(found: Difference) -> Iterator[Statement]:
    """Yield what became of the values that both maps tried."""
    for changes in turned(found):
        first = changes[0]
        labels = ", ".join(value_label(change.value) for change in changes)
        aside = "" if first.one_configuration else ", with different baselines"
        states = f"{state_of(first.before)} → {state_of(first.after)}"
        why = why_turned(first)
        yield Statement(f"{first.turn}: {visible(first.knob)} = {labels}: {states}{aside}", (why,) if why else ())


def state_of(value: ValueMap) -> str:
    """Return "✗ CRASHED SIGABRT" or "Δ live"."""
    mark = value_mark(value)
    if fails(value):
        return visible(f"{mark.glyph} {value.outcome} {value.kind}".rstrip())
    return f"{mark.glyph} {mark.word}"


def why_turned(change: ValueChange) -> str:
    """Return the message of the side that fails, B's where both do; else what the value changes."""
    failing = next((value for value in (change.after, change.before) if fails(value)), None)
    if failing is None:
        changed = visible(change.after.detail or change.before.detail)
        return f"what it changes: {changed}" if changed else ""
    place = f" (line {failing.line})" if failing.line is not None else ""
    letter = "B" if failing is change.after else "A"
    return f"{letter}: {shorten(first_line(failing.reason))}{place}" if failing.reason else ""


def knob(change: KnobChange) -> Iterator[Statement]:
    """Yield what the maps say differently of a knob."""
    name = visible(change.knob)
    one, other = change.before, change.after
    if one is None or other is None:
        letter, state = ("A", one) if one else ("B", other)
        said = f"{name}: turned in {letter} only ({state.knob_class})" if state else name
        yield Statement(said, (f"compared at {name} = {value_label(change.held)}",))
        return
    if class_changed(change):
        reasons = f"A: {visible(one.why)}", f"B: {visible(other.why)}"
        yield Statement(f"{name}: {one.knob_class} → {other.knob_class}", reasons)
    if one.kind is not other.kind:
        yield Statement(f"{name} is another kind of knob: {one.kind} → {other.kind}")
    both = one.condition is not None and other.condition is not None
    if both and one.condition != other.condition:
        yield Statement(f"{name} under other values: {_matters(one)} → {_matters(other)}")
    groups = [_groups(state.one_program) for state in (one, other)]
    inert = KnobClass.INERT in (one.knob_class, other.knob_class)
    if groups[0] != groups[1] and not (inert and class_changed(change)):
        yield Statement(f"{name}, values that are one program: {groups[0] or 'none'} → {groups[1] or 'none'}")
    for letter, only in (("A", change.only_before), ("B", change.only_after)):
        if only:
            yield Statement(f"{name}: {', '.join(map(value_label, only))} tried in {letter} only")


def _matters(state: KnobState) -> str:
    match state.condition:
        case "":
            return "it never matters"
        case "always":
            return "it matters"
        case "sometimes":
            return "it matters sometimes"
        case joint_map.UNCOMPARED:
            return "it changed nothing where it was compared"
        case _:
            return visible(f"it matters only if {state.condition}")


def _groups(groups: Sequence[Sequence[Value]]) -> str:
    return ", ".join(" = ".join(map(value_label, group)) for group in groups)
