"""Rows of the tables that terminal, Markdown and HTML share: values that fail, programs, warnings, commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UnsetType

from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import Measured, SpaceMap, ValueMap
from gluonmap.model.verdict import Figures
from gluonmap.report.knobs import knobs_by_class
from gluonmap.report.marks import Mark, fails, value_mark
from gluonmap.report.plain_text import first_line, location, shorten, value_label, visible
from gluonmap.report.resources import Figure, resource_figures


@dataclass(frozen=True, slots=True)
class FailureRow:
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


def failing_values(space: SpaceMap) -> list[FailureRow]:
    """Return the failing values, alike ones of a knob in one row, knobs in the reports' order."""
    return _rows(space, lambda v: fails(v) and v.effect is not Effect.CHANGES_RESULT)


PART_OF_THE_PROBLEM = "Part of the problem, not of the tuning"
PROBLEM_TERMS = (
    "Their numbers differ from the baseline's beyond rounding, and the probe file has no reference that says which are "
    "right. None of them is handed over."
)


def result_changing_values(space: SpaceMap) -> list[FailureRow]:
    """Return the values that change the result, where no reference says which result is right."""
    return _rows(space, lambda v: v.effect is Effect.CHANGES_RESULT)


NO_ANSWER = "No answer (never evidence about the kernel)"
NUMBERS_UNKNOWN = "Compiled and not executed: their numbers are unknown"


def unexecuted_values(space: SpaceMap) -> list[FailureRow]:
    """Return the values that compiled and that the model on the CPU could not execute; their effects are known."""
    return _rows(space, _unexecuted)


def _unexecuted(value: ValueMap) -> bool:
    return value.outcome == Outcome.NOT_EXECUTED and not fails(value) and bool(value.digest)


def unanswered_values(space: SpaceMap) -> list[FailureRow]:
    """Return the values that got no answer (a fault of the tool, never evidence), or were skipped."""
    return _rows(space, lambda v: not fails(v) and v.outcome != Outcome.PASS and not _unexecuted(v))


def _rows(space: SpaceMap, wanted: Callable[[ValueMap], bool]) -> list[FailureRow]:
    rows: list[FailureRow] = []
    for name, knob in knobs_by_class(space):
        alike: dict[tuple[str, str, str, str, str, int | None], list[ValueMap]] = {}
        for v in knob.values:
            if wanted(v):
                alike.setdefault((v.outcome, v.kind, v.stage, v.reason, v.file, v.line), []).append(v)
        for (outcome, kind, stage, reason, file, line), members in alike.items():
            because = tuple(dict.fromkeys(visible(text) for v in members for text in v.because))
            labels = tuple(value_label(v.value) for v in members)
            where = _short_place(space, file, line)
            mark = value_mark(members[0])
            how = (visible(outcome), visible(kind), visible(stage))
            if members[0].effect is Effect.CHANGES_RESULT:
                how = (mark.word, "", visible(stage))
            fixed = (mark, *how, first_line(reason))
            rows.append(FailureRow(visible(name), labels, *fixed, where, because))
    return rows


def _short_place(space: SpaceMap, file: str, line: int | None) -> str:
    if line is None:
        return ""
    same = not file or file == space.file
    return location(space.file.rsplit("/", 1)[-1] if same else file, line)


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
    """Counts of a run on the CPU."""


def program_rows(space: SpaceMap) -> list[ProgramRow]:
    """Return the distinct programs of all values that do not fail, the baseline's first."""
    found: dict[str, list[tuple[str, ValueMap]]] = {space.digest: []} if space.digest else {}
    for name, knob in knobs_by_class(space):
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
        by_knob.setdefault(visible(name), []).append(value_label(value.value))
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
        tuple(resource_figures(space.target, resources)) if resources is not None else (),
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


def figure_of(row: ProgramRow, head: str) -> Figure:
    """Return the row's figure of that head; a dash where its back end does not say."""
    return next((each for each in row.figures if each.head == head), Figure(head, "-"))


def grouped_by_reason(reasons: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return ("a, b", why) for names with the same reason, by first appearance."""
    groups: dict[str, list[str]] = {}
    for name, why in reasons.items():
        groups.setdefault(visible(why), []).append(visible(name))
    return [(", ".join(names), why) for why, names in groups.items()]


def value_warnings(space: SpaceMap) -> list[tuple[str, str]]:
    """Return (knob = values, warning) for error diagnostics that came with a success, alike ones together."""
    groups: dict[str, dict[str, list[str]]] = {}
    for name, knob in knobs_by_class(space):
        for value in knob.values:
            for text in value.warnings:
                groups.setdefault(shorten(first_line(text)), {}).setdefault(visible(name), []).append(
                    value_label(value.value)
                )
    return [("; ".join(f"{n} = {', '.join(v)}" for n, v in knobs.items()), text) for text, knobs in groups.items()]


def repeat_commands(space: SpaceMap) -> list[tuple[str, str]]:
    """Return (what, command) for the values that did not pass and have a command to repeat them by hand."""
    return [
        (visible(f"{name} = {value_label(v.value)}: {v.outcome} {v.kind}".rstrip()), visible(v.repeat))
        for name, knob in knobs_by_class(space)
        for v in knob.values
        if v.repeat and v.outcome != Outcome.PASS
    ]
