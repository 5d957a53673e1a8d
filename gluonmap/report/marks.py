"""Marks of outcomes and effects (glyph, colour, word), and the questions about a map that choose the mark."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UnsetType

from gluonmap.model import outcomes
from gluonmap.model.candidate import Stage
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.outcomes import COMPILED, Outcome
from gluonmap.model.space_map import SpaceMap, ValueMap


@dataclass(frozen=True, slots=True)
class Mark:
    """Glyph, colour and word of an outcome or effect. Glyph and word are each enough without the colour."""

    glyph: str
    colour: str
    word: str


OUTCOME_MARKS: dict[Outcome, Mark] = {
    outcome: Mark(outcome.info.glyph, outcome.info.colour, outcome.info.word) for outcome in Outcome
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


DIFFERS = "differs from the baseline"
"""The kind of a WRONG outcome if the baseline's results serve as the reference."""
STEPS = "steps"
"""The kind of a HUNG outcome if a run on the CPU exceeded its limit of instructions."""


def executed_on_cpu(space: SpaceMap) -> bool:
    """Return whether candidates were executed on the CPU, by a model of the hardware."""
    return not isinstance(space.execution, UnsetType) and space.execution.stage is Stage.RUN


def baseline_compiled(space: SpaceMap) -> bool:
    """Return whether the baseline compiled and nothing speaks against it, so that values are judged against it."""
    return space.outcome in COMPILED


def fails(value: ValueMap) -> bool:
    """Return whether a value's outcome speaks against it; so does the outcome of a value that changes the result."""
    outcome = outcomes.named(value.outcome)
    if outcome is None:
        return value.effect is Effect.ABORTING
    return outcome.failed or (value.effect is Effect.ABORTING and not outcome.undecided)


def value_mark(value: ValueMap) -> Mark:
    """Return the mark of a value: its outcome where that decides, else its effect."""
    if value.effect is Effect.CHANGES_RESULT:
        return EFFECT_MARKS[value.effect]
    outcome = outcomes.named(value.outcome)
    if outcome is None:
        return EFFECT_MARKS[value.effect]
    decides = outcome.failed or (outcome.undecided and value.effect in {Effect.UNKNOWN, Effect.ABORTING})
    return OUTCOME_MARKS[outcome] if decides else EFFECT_MARKS[value.effect]


def baseline_mark(space: SpaceMap) -> Mark:
    """Return the mark of the baseline's outcome."""
    outcome = outcomes.named(space.outcome)
    return EFFECT_MARKS[Effect.UNKNOWN] if outcome is None else OUTCOME_MARKS[outcome]


def mark_legend(space: SpaceMap) -> list[tuple[str, str]]:
    """Return (glyph, word) of every mark that the map's values use, in the order of the closed tables."""
    used = {value_mark(value) for knob in space.knobs.values() for value in knob.values}
    marks = [mark for mark in (*EFFECT_MARKS.values(), *OUTCOME_MARKS.values()) if mark in used]
    equal = [("≡", "same program")] if any(knob.equivalent for knob in space.knobs.values()) else []
    return [(mark.glyph, mark.word) for mark in marks] + equal
