"""The one sentence about a map, and the clauses that it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gluonmap.model import outcomes
from gluonmap.model.candidate import Value
from gluonmap.model.joint_map import Inertness
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import KnobMap, SpaceMap
from gluonmap.model.wording import listed
from gluonmap.report.knobs import knobs_by_signature, matters, unsettled
from gluonmap.report.marks import (
    CLASS_COLOURS,
    STEPS,
    baseline_compiled,
    executed_on_cpu,
    fails,
)
from gluonmap.report.plain_text import first_line, location, plural, shorten, value_label, visible


def map_sentence(space: SpaceMap) -> str:
    """Return the one sentence that a person would say about the map."""
    if not baseline_compiled(space):
        return visible(_failed_baseline(space))
    clauses = _clauses(space) if space.knobs else [f"{space.kernel} has no knob to turn on {space.target}"]
    if space.unanswered:
        was = "was" if space.unanswered == 1 else "were"
        clauses.append(f"{plural(space.unanswered, 'candidate')} {was} not asked")
    return visible("; ".join(clauses) + ".")


def _clauses(space: SpaceMap) -> list[str]:
    names: dict[KnobClass, list[str]] = {each: [] for each in CLASS_COLOURS}
    for name, knob in knobs_by_signature(space):
        names[KnobClass.UNKNOWN if unsettled(knob) else knob.knob_class].append(name)
    clauses = [_how_many_matter(space)]
    changing = {name: _changing(space.knobs[name]) for name in space.knobs}
    if pinned := [name for name in names[KnobClass.PINNED] if not changing[name]]:
        places = [value_label(space.knobs[name].baseline) for name in pinned]
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
                f"{name} is part of the problem: every value but {value_label(space.knobs[name].baseline)} changes"
            )
            clauses[-1] += " the result"
        else:
            does = "changes" if len(values) == 1 else "change"
            clauses.append(f"{listed(f'{name} = {value_label(v)}' for v in values)} {does} the result")
    return clauses


def matters_if(space: SpaceMap, name: str) -> str:
    """Return when a knob that changes nothing by itself matters all the same: "only if USE_LDS = 1"; "": never."""
    found = _together(space, name)
    if found is None or found.condition == "" or found.uncompared:
        return ""
    return f"only if {found.condition}" if found.relation is not None else "with other values of the other knobs"


def _together(space: SpaceMap, name: str) -> Inertness | None:
    """Return what was learned of a knob under other values of the other knobs."""
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
        left = [
            value_label(v.value) for v in space.knobs[name].values if not fails(v) and v.effect is not Effect.UNKNOWN
        ]
        clauses.append(f"{name} is bounded" + (f" to {listed(left)}" if left else ""))
    return clauses


def _failed_baseline(space: SpaceMap) -> str:
    at = f" at {location(space.file, space.line)}" if space.line is not None else ""
    why = shorten(first_line(space.reason)).rstrip(".:; ")
    text = f"The baseline of {space.kernel} {failed_phrase(space)} on {space.target}{at}{f': {why}' if why else ''}"
    again = f"; repeat it by hand with: {space.repeat}" if space.repeat else "."
    return f"{text}; no knob can be judged against it{again}"


def failed_phrase(space: SpaceMap) -> str:
    """Return a verb phrase for a baseline that does not pass."""
    outcome = outcomes.named(space.outcome)
    if outcome is None:
        return "got no answer"
    if outcome is Outcome.CRASHED and space.measured:
        return "crashes when it is executed" if executed_on_cpu(space) else "crashes on the device"
    if outcome is Outcome.HUNG and space.kind == STEPS:
        return "goes past the limit of instructions when it is executed"
    return outcome.info.phrase
