"""Changes of single values that both maps tried, and of the knobs that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from gluonmap.diff.bridge import Bridge
from gluonmap.model.candidate import Value, same
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.outcomes import COMPILED, Feasibility, Outcome, feasibility
from gluonmap.model.space_map import SpaceMap, ValueMap


class ValueTransition(StrEnum):
    """Kinds of change of one value, in the order of a report."""

    ABORTING = "newly aborting"
    """A signal now ends the compiler, and with it the tuner's process."""
    FAILING = "newly failing"
    PASSING = "newly passing"
    OTHERWISE = "fails otherwise"
    INERT = "newly inert"
    LIVE = "newly live"
    ELSEWHERE = "live elsewhere"
    """It changed the launch alone and now changes the program, or the other way round."""
    UNKNOWN = "answered in one only"


class ValueChange(msgspec.Struct, frozen=True):
    """A change of a value that both maps tried, all other knobs at the baseline."""

    knob: str
    value: Value
    turn: ValueTransition
    one_configuration: bool
    """Both maps asked the same configuration; false: the baselines differ in another knob."""
    before: ValueMap
    after: ValueMap


class KnobState(msgspec.Struct, frozen=True):
    """One map's knowledge of a knob."""

    knob_class: KnobClass = msgspec.field(name="class")
    kind: KnobKind
    why: str
    one_program: tuple[tuple[Value, ...], ...]
    """Groups of values that are one program everywhere, out of the values that both maps tried."""
    condition: str | None
    """When the knob matters under other values: "" never, "always", "sometimes", or a condition. None: not asked."""


class KnobChange(msgspec.Struct, frozen=True):
    """A change of one knob."""

    knob: str
    before: KnobState | None
    """None: the first map does not turn it."""
    after: KnobState | None
    """None: the second map does not turn it."""
    held: Value = None
    """Value at which the maps are compared, where one of them does not turn the knob."""
    only_before: tuple[Value, ...] = ()
    """Values that only the first map tried."""
    only_after: tuple[Value, ...] = ()
    """Values that only the second map tried."""


# ---- single values --------------------------------------------------------------------------------------------------


def value_changes(bridge: Bridge) -> list[ValueChange]:
    """Return the changed values, in the order of `ValueTransition`."""
    before, after = bridge.before, bridge.after
    found = []
    for name in bridge.shared:
        if name not in before.knobs or name not in after.knobs:
            continue
        later = {repr(v.value): v for v in after.knobs[name].values}
        alone = all(same(before.baseline[n], after.baseline[n]) for n in bridge.shared if n != name)
        for was in before.knobs[name].values:
            now = later.get(repr(was.value))
            if now and (turn := _transition(was, now, effects=bridge.one_baseline)):
                found.append(ValueChange(name, was.value, turn, alone, was, now))
    return sorted(found, key=lambda change: list(ValueTransition).index(change.turn))


def _transition(before: ValueMap, after: ValueMap, *, effects: bool) -> ValueTransition | None:
    """Return the change of a value; None: there is none. `effects`: whether live and inert can be compared."""
    was, now = feasibility(before.outcome), feasibility(after.outcome)
    if Feasibility.UNKNOWN in (was, now):
        return None if was is now else ValueTransition.UNKNOWN
    if now is Feasibility.INFEASIBLE:
        if after.outcome == Outcome.CRASHED and before.outcome != Outcome.CRASHED:
            return ValueTransition.ABORTING
        if was is Feasibility.FEASIBLE:
            return ValueTransition.FAILING
        return None if (before.outcome, before.kind) == (after.outcome, after.kind) else ValueTransition.OTHERWISE
    if was is Feasibility.INFEASIBLE:
        unexecuted = bool(before.measured) and (after.outcome == Outcome.NOT_EXECUTED or not after.measured)
        return (
            ValueTransition.UNKNOWN if unexecuted else ValueTransition.PASSING
        )  # it failed in an execution that the other did not have
    return _effect_transition(before.effect, after.effect) if effects else None


def _effect_transition(before: Effect, after: Effect) -> ValueTransition | None:
    live = (Effect.LIVE, Effect.LIVE_HOST)
    if before in live and after is Effect.INERT:
        return ValueTransition.INERT
    if before is Effect.INERT and after in live:
        return ValueTransition.LIVE
    return ValueTransition.ELSEWHERE if before in live and after in live and before is not after else None


# ---- knobs ----------------------------------------------------------------------------------------------------------


def knob_changes(bridge: Bridge) -> Iterator[KnobChange]:
    """Yield the changed knobs, in the order of the first map's signature."""
    before, after = bridge.before, bridge.after
    if not {before.outcome, after.outcome} <= set(COMPILED):
        return  # a map whose baseline fails has no knobs
    together = before.joint is not None and after.joint is not None
    for name in dict.fromkeys((*before.baseline, *after.baseline)):
        tried, later = _values_by_spelling(before, name), _values_by_spelling(after, name)
        common = tried.keys() & later.keys()
        one, other = (_state(space, name, common, together) for space in (before, after))
        if one is None or other is None:
            if one or other:
                yield KnobChange(name, one, other, bridge.held.get(name))
            continue
        only_before, only_after = (tuple(v for key, v in each.items() if key not in common) for each in (tried, later))
        if only_before or only_after or _differ(one, other, effects=bridge.one_baseline):
            yield KnobChange(name, one, other, None, only_before, only_after)


def _values_by_spelling(space: SpaceMap, name: str) -> dict[str, Value]:
    """Return the knob's values by their `repr`, which distinguishes True from 1."""
    return {repr(v.value): v.value for v in space.knobs[name].values} if name in space.knobs else {}


def _state(space: SpaceMap, name: str, common: set[str], together: bool) -> KnobState | None:
    """Return a map's knowledge of a knob over the values that both maps tried.

    The joint part counts only where both maps have one (`together`).
    """
    if name not in space.knobs:
        return None
    knob, groups, condition = space.knobs[name], space.knobs[name].equivalent, None
    if together and space.joint:
        classes = [item for item in space.joint.value_classes if item.knob == name and item.relation is None]
        groups = tuple(group for item in classes for group in item.classes)
        condition = next((item.condition for item in space.joint.inertness if item.knob == name), None)
    kept = (tuple(value for value in group if repr(value) in common) for group in groups)
    return KnobState(knob.knob_class, knob.kind, knob.why, tuple(group for group in kept if len(group) > 1), condition)


def _differ(one: KnobState, other: KnobState, *, effects: bool) -> bool:
    """Return whether the two states of a knob differ. `effects`: whether live and inert can be compared."""
    if one.kind is not other.kind:
        return True
    if not effects and {one.knob_class, other.knob_class} <= {KnobClass.LIVE, KnobClass.INERT}:
        return False
    if one.knob_class is not other.knob_class:
        return True
    groups = [sorted(sorted(map(repr, group)) for group in state.one_program) for state in (one, other)]
    asked = one.condition is not None and other.condition is not None
    return effects and (groups[0] != groups[1] or (asked and one.condition != other.condition))
