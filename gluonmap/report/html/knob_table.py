"""The coloured cells of the knob table, and the details that each shows when it is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from gluonmap.model import targets
from gluonmap.model.candidate import Stage, Value
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import KnobMap, Measured, SpaceMap, ValueMap
from gluonmap.model.verdict import Check, Resources
from gluonmap.model.wording import listed
from gluonmap.report import execution, run_figures
from gluonmap.report.knobs import Token, knobs_by_class, knobs_by_signature, value_chains
from gluonmap.report.marks import EFFECT_MARKS, Mark, fails
from gluonmap.report.plain_text import location, value_label
from gluonmap.report.resources import Figure, resource_figures

TONES: dict[str, str] = {
    "baseline": "baseline",
    "live": "live",
    "live on the host": "host",
    "inert": "inert",
    "fails": "crashed",
    "changes the result": "changes",
    "unknown": "unknown",
} | {outcome.info.word: outcome.info.tone for outcome in Outcome}
"""Word of a mark -> suffix of the CSS class that colours it."""

CHANGES = EFFECT_MARKS[Effect.CHANGES_RESULT].word


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of details. `style`: "text", "code", "long" (a compiler's own words) or "command"."""

    name: str
    text: str
    style: str = "text"


@dataclass(frozen=True, slots=True)
class ValueCell:
    """A value of a knob."""

    id: str
    label: str
    mark: Mark
    tone: str
    note: str
    """Signal or exception; empty if the knob's last value with this mark had the same."""
    said: str
    """Text for screen readers: "64, crashed, SIGABRT"."""
    headline: str
    facts: tuple[Fact, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class KnobTableRow:
    """A knob with its values."""

    id: str
    name: str
    kind: str
    line: str
    knob_class: str
    baseline: str
    why: str
    chains: tuple[tuple[ValueCell, ...], ...]
    """Values with equal programs form one chain."""


def rows(space: SpaceMap) -> list[KnobTableRow]:
    """Return the knobs in the reports' order."""
    numbers = {name: number for number, (name, _) in enumerate(knobs_by_signature(space), 1)}
    return [_row(space, f"k{numbers[name]}", name, knob) for name, knob in knobs_by_class(space)]


def _row(space: SpaceMap, anchor: str, name: str, knob: KnobMap) -> KnobTableRow:
    values: dict[str, list[tuple[int, ValueMap]]] = {}
    for number, value in enumerate(knob.values, 1):
        values.setdefault(value_label(value.value), []).append((number, value))
    chains = []
    for chain in value_chains(knob):
        cells = []
        for token in chain:
            number, value = values[token.text].pop(0)
            cells.append(_cell(space, f"{anchor}-{number}", name, knob, value, token))
        chains.append(tuple(cells))
    line = f"line {knob.line}" if knob.line is not None else ""
    baseline = value_label(knob.baseline)
    return KnobTableRow(anchor, name, str(knob.kind), line, str(knob.knob_class), baseline, knob.why, tuple(chains))


def _cell(space: SpaceMap, anchor: str, name: str, knob: KnobMap, value: ValueMap, token: Token) -> ValueCell:
    mark = token.mark
    parts = [token.text, mark.word, value.kind if fails(value) and mark.word != CHANGES else ""]
    return ValueCell(
        id=anchor,
        label=token.text,
        mark=mark,
        tone=TONES[mark.word],
        note=token.note,
        said=", ".join(part for part in parts if part),
        headline=f"{name} = {token.text}",
        facts=tuple(facts(value, space.file, knob.equivalent)),
        figures=figures(space.target, value.resources) + counted(value.measured, space.measured),
    )


def counted(own: Measured | UnsetType, baseline: Measured | UnsetType = UNSET) -> tuple[Figure, ...]:
    """Return the counts of a run on the CPU; none if there was no run."""
    base = baseline.figures if baseline else None
    return run_figures.without_empty_figures([run_figures.run_figures(own.figures, base)])[0] if own else ()


def figures(target: str, resources: Resources | None) -> tuple[Figure, ...]:
    """Return the resources, in the words of the target's maker; none if they are not known.

    The warps that fit a multiprocessor are not in the map: they are added where a formula gives them.
    """
    if resources is None:
        return ()
    found = resource_figures(target, resources)
    known = targets.named(target)
    if known is not None and (warps := targets.resident_warps(known, resources)) is not None:
        place = next((number for number, figure in enumerate(found) if figure.head == "threads"), len(found))
        found.insert(place, Figure("warps/SM", f"{warps:,}"))
    return tuple(found)


def facts(value: ValueMap, file: str, equivalent: Sequence[Sequence[Value]] = ()) -> Iterator[Fact]:
    """Yield the details of a value; `equivalent` are groups of values that are one program."""
    stage = f" in {value.stage}" if value.stage else ""
    status = f", exit status {value.exit_status}" if value.exit_status not in (None, 0) else ""
    yield Fact("outcome", f"{value.outcome}{f' {value.kind}' if value.kind else ''}{stage}{status}")
    if effect := _effect(value, equivalent):
        yield Fact("effect", effect)
    if value.reason.strip():
        yield Fact("reason", value.reason, "long")
    if value.line is not None:
        yield Fact("kernel line", location(value.file or file, value.line), "code")
    for text in dict.fromkeys(value.because):
        yield Fact("forbidden by", text)
    yield from _execution_facts(value)
    for text in value.warnings:
        yield Fact("warning", text, "long")
    if value.digest:
        yield Fact("program", value.digest, "code")
    if value.repeat:
        yield Fact("repeat by hand", value.repeat, "command")


def _effect(value: ValueMap, equivalent: Sequence[Sequence[Value]]) -> str:
    if value.effect in (Effect.ABORTING, Effect.UNKNOWN):
        return ""
    name = value_label(value.value)
    group = next((g for g in equivalent if name in map(value_label, g)), ())
    others = [label for label in map(value_label, group) if label != name]
    same = f"one program with {listed(others)}" if others else ""
    changes = f"changes {value.detail}" if value.detail else ""
    return "; ".join(part for part in (str(value.effect), changes, same) if part)


def _execution_facts(value: ValueMap) -> Iterator[Fact]:
    if isinstance(value.measured, UnsetType):
        return
    row = execution.row("", value.outcome, value.kind, value.measured)
    if row is not None:
        if value.measured.reached is Stage.RUN:
            yield Fact("executed", "on the CPU, by a model of the hardware" + _watched(value.measured.check))
        else:
            yield Fact("on the device", f"up to {value.measured.reached}")
        for name, text in (("error", row.error), ("median µs", row.time), ("remark", row.remark)):
            if text:
                yield Fact(name, text)
        for line in execution.findings_of("", value.measured.check):
            yield Fact("found", execution.finding_text(line), "long")


def _watched(check: Check | None) -> str:
    if check is None:
        return ""
    sizes = f", sizes {'; '.join(check.sizes)}" if check.sizes else ""
    return sizes + (", watched by the sanitizer" if check.sanitized else "")
