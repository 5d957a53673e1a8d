"""Knobs of a map as all reports show them: their order, their classes, their values in chains of equal programs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gluonmap.constraints.semantics import holds
from gluonmap.model.joint_map import Constraint, Standing
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.relations import Written
from gluonmap.model.space_map import KnobMap, SpaceMap, ValueMap
from gluonmap.report.marks import CLASS_COLOURS, Mark, fails, value_mark
from gluonmap.report.plain_text import plural, value_label, visible


def knobs_by_class(space: SpaceMap) -> list[tuple[str, KnobMap]]:
    """Return the knobs by class (pinned, bounded, live, inert, unknown), within a class in signature order."""
    classes = list(CLASS_COLOURS)
    return sorted(knobs_by_signature(space), key=lambda item: classes.index(item[1].knob_class))


def knobs_by_signature(space: SpaceMap) -> list[tuple[str, KnobMap]]:
    """Return the knobs in the baseline's order; those that it does not hold come last."""
    place = {name: index for index, name in enumerate(space.baseline)}
    return sorted(space.knobs.items(), key=lambda item: place.get(item[0], len(place)))


def class_counts(space: SpaceMap) -> dict[KnobClass, int]:
    """Return how many knobs each class has, every class named, in the reports' order."""
    classes = [knob.knob_class for knob in space.knobs.values()]
    return {each: classes.count(each) for each in CLASS_COLOURS}


def class_count_text(space: SpaceMap) -> str:
    """Return "11 knobs: 4 pinned, 4 live, 3 inert"."""
    parts = [f"{count} {each}" for each, count in class_counts(space).items() if count]
    return plural(len(space.knobs), "knob") + (f": {', '.join(parts)}" if parts else "")


def matters(knob: KnobMap) -> bool:
    """Return whether turning the knob can pay off: it is live, or bounded with a live value left."""
    live = any(value.effect in {Effect.LIVE, Effect.LIVE_HOST} and not fails(value) for value in knob.values)
    return knob.knob_class is KnobClass.LIVE or (knob.knob_class is KnobClass.BOUNDED and live)


def unsettled(knob: KnobMap) -> bool:
    """Return whether missing answers could still make the knob matter."""
    open_values = any(value.effect is Effect.UNKNOWN for value in knob.values)
    return knob.knob_class is KnobClass.UNKNOWN or (open_values and not matters(knob))


@dataclass(frozen=True, slots=True)
class Token:
    """A value in the table of knobs."""

    text: str
    mark: Mark
    note: str
    """Signal, exception class, "budget" or "deadline"; empty if the knob's last value with this mark had the same."""


def value_chains(knob: KnobMap) -> list[list[Token]]:
    """Return the knob's values in order; values with equal programs form one chain, at the place of the first."""
    groups = {value_label(member): index for index, group in enumerate(knob.equivalent) for member in group}
    gathered: dict[int | str, list[ValueMap]] = {}
    for value in knob.values:
        name = value_label(value.value)
        gathered.setdefault(groups.get(name, name), []).append(value)
    last: dict[str, str] = {}
    return [[_token(value, last) for value in chain] for chain in gathered.values()]


def _token(value: ValueMap, last: dict[str, str]) -> Token:
    mark = value_mark(value)
    noted = fails(value) and value.effect is not Effect.CHANGES_RESULT  # its mark says all
    note = visible(value.kind) if noted and last.get(mark.glyph) != value.kind else ""
    last[mark.glyph] = value.kind
    return Token(value_label(value.value), mark, note)


def source_demand(space: SpaceMap, item: Constraint) -> str:
    """Return the demand of the source that a confirmed constraint expresses, with its lines.

    "": there is no such demand, or the map does not record which one it is.
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
