"""Results of executing candidates, on a device or on the CPU, as rows and statements that all reports share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import UnsetType

from gluonmap.model.candidate import Stage, same
from gluonmap.model.joint_map import Joint, Refused
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import Measured, SpaceMap, ValueMap
from gluonmap.model.verdict import Check
from gluonmap.model.wording import listed
from gluonmap.report.knobs import knobs_by_class
from gluonmap.report.marks import DIFFERS, EFFECT_MARKS, executed_on_cpu
from gluonmap.report.plain_text import Statement, config_text, plural, shorten, value_label, visible


@dataclass(frozen=True, slots=True)
class ExecutedRow:
    """One executed candidate; for runs on the CPU, the values of one knob with the same result."""

    what: str
    outcome: str
    error: str
    """Relative and elementwise error of the worst output."""
    time: str
    remark: str


@dataclass(frozen=True, slots=True)
class SanitizerRow:
    """Finding of the sanitizer: one candidate, one line of the kernel."""

    what: str
    place: str
    """For example "scale.py:9 called from scale.py:17"; empty: not known."""
    kind: str
    instruction: str
    who: str
    """For example "wave 2, lane 0"."""
    detail: str
    instructions: int
    """Number of the line's instructions that showed it."""


HEADS = ("candidate", "outcome", "relative, elementwise error", "median µs", "remark")
FINDINGS_TITLE = "What the sanitizer found"
FINDINGS_HEADS = ("candidate", "line of the kernel", "finding", "first instruction, wave and lane", "instructions")
ERROR_OF_REFERENCE = "(met by the others)"
"""Shown as the error of a baseline whose results serve as the reference."""
OTHER_RESULT = "other numbers"
"""Outcome shown for a value that changes the result, if no reference says which result is right."""


def title(space: SpaceMap) -> str:
    """Return "On NVIDIA H200, up to TIME" or "Executed on the CPU (a model of gfx942)"; "" if nothing was executed."""
    if isinstance(space.execution, UnsetType):
        return ""
    if executed_on_cpu(space):
        return f"Executed on the CPU (a model of {visible(space.target)})"
    return f"On {visible(space.execution.device)}, up to {space.execution.stage}"


def refused_title(space: SpaceMap) -> str:
    """Return the heading of the statements of `refused`."""
    where = "when executed" if executed_on_cpu(space) else "on the device"
    return f"Programs that compiled and did not pass {where}: not handed over"


def shown_heads(space: SpaceMap) -> tuple[str, ...]:
    """Return the column heads of the cells that `row_cells` returns."""
    return tuple(head for head in HEADS if head != "median µs" or not executed_on_cpu(space))


def row_cells(space: SpaceMap, row: ExecutedRow) -> tuple[str, ...]:
    """Return the cells of a row; a run on the CPU has no times."""
    time = () if executed_on_cpu(space) else (row.time,)
    return row.what, row.outcome, row.error, *time, row.remark


def rows(space: SpaceMap) -> list[ExecutedRow]:
    """Return the baseline, then every other executed value, in the reports' order."""
    first = row("baseline", space.outcome, space.kind, space.measured)
    found = [first] if first else []
    for name, knob in knobs_by_class(space):
        moved = [v for v in knob.values if not same(v.value, knob.baseline) and v.measured]
        for members in _alike(moved) if executed_on_cpu(space) else [[v] for v in moved]:
            worst = max(members, key=lambda v: _size(v.measured))
            labels = ", ".join(value_label(v.value) for v in members)
            executed = row(f"{visible(name)} = {labels}", worst.outcome, worst.kind, worst.measured)
            found += [executed] if executed else []
    return found


def _alike(values: list[ValueMap]) -> Iterator[list[ValueMap]]:
    groups: dict[tuple[str, str, bool], list[ValueMap]] = {}
    for value in values:
        groups.setdefault((value.outcome, value.kind, _racy(value.measured)), []).append(value)
    yield from groups.values()


def row(what: str, outcome: str, kind: str, measured: Measured | UnsetType) -> ExecutedRow | None:
    """Return one candidate's row; None if it was not executed."""
    if isinstance(measured, UnsetType):
        return None
    check, where = measured.check, "" if measured.reached is Stage.RUN else f" ({measured.reached})"
    kind = "" if outcome == Outcome.NOT_EXECUTED else f" {visible(kind)}"  # the outcome says it already
    said = outcome if outcome == Outcome.PASS else f"{outcome}{kind}{where}"
    error = _error(check)
    if check is not None and check.against == "baseline":
        said = OTHER_RESULT if outcome == Outcome.WRONG else said
        error = ERROR_OF_REFERENCE if what == "baseline" and outcome == Outcome.PASS else error
    if measured.reached is Stage.RUN and outcome not in (Outcome.PASS, Outcome.WRONG):
        error = ""  # the error is that of earlier launches, not of the one that ended the run
    return ExecutedRow(what, said, error, _time(measured), "racy" if _racy(measured) else "")


def _racy(measured: Measured | UnsetType) -> bool:
    return not isinstance(measured, UnsetType) and measured.check is not None and measured.check.racy


def _size(measured: Measured | UnsetType) -> tuple[int, float]:
    errors = measured.check.errors if measured and measured.check else ()
    return max(((e.misplaced, e.relative) for e in errors), default=(0, 0.0))


def _error(check: Check | None) -> str:
    if check is None or not check.errors:
        return ""
    worst = max(check.errors, key=lambda e: (e.misplaced, e.relative))
    if worst.misplaced:
        return f"{worst.misplaced:,} NaN or infinite"
    return f"{worst.relative:.1e}, {worst.elementwise:.1e}"


def _time(measured: Measured) -> str:
    timing = measured.timing
    return f"{timing.median_us:,.1f} ± {timing.spread / 2:.1%}" if timing else ""


# --- what it means ---------------------------------------------------------------------------------------------------


def terms(space: SpaceMap) -> Iterator[str]:
    """Yield the definition of a right result, and how time was measured."""
    measured = space.measured
    if isinstance(measured, UnsetType) or isinstance(space.execution, UnsetType):
        return
    if executed_on_cpu(space):
        yield from _terms_of_a_run(space, measured.check)
        return
    if measured.check is not None:
        yield _tolerances(measured.check)
        shapes = listed(measured.check.shapes)
        yield f"{measured.check.runs} launches compared, sizes: {shapes}; outputs poisoned before, guards around them"
    if space.execution.stage is Stage.TIME:
        clocks = ""
        if measured.timing and measured.timing.clock_before_mhz:
            clocks = f"; clock {measured.timing.clock_before_mhz} MHz before, {measured.timing.clock_after_mhz} after"
        yield f"median of one launch, caches flushed before each; ± half of the middle three fifths{clocks}"
    yield from _racy_ones(space)


def _racy_ones(space: SpaceMap) -> Iterator[str]:
    racy = [row.what for row in rows(space) if row.remark]
    if racy:
        yield f"racy (two launches on the same inputs differed in some bit): {', '.join(racy)}"


def _tolerances(check: Check) -> str:
    limits = [
        f"{e.output} {e.tolerance:g} ({'declared' if e.declared else f'default of {e.dtype}'})" for e in check.errors
    ]
    return f"relative error ‖out − ref‖ / ‖ref‖ at most: {', '.join(limits)}; elementwise 10 times that"


def _terms_of_a_run(space: SpaceMap, check: Check | None) -> Iterator[str]:
    yield (
        f"right means: right on these inputs under this model of {visible(space.target)}; "
        "no device was asked, and nothing here is a time"
    )
    checks = list(_checks(space))
    known = check or next((found for _, found in checks), None)
    if known is None:
        return
    if known.against == "baseline":
        yield (
            "compared with what the baseline leaves in its tensors: the probe file has no reference, so other numbers "
            "are another result and not a wrong one"
        )
    else:
        yield "compared with the probe file's reference; outputs poisoned before, guards around them"
    if known.errors:
        yield _tolerances(known)
    if known.runs:
        yield f"{known.runs:,} launch{'' if known.runs == 1 else 'es'} compared, on small problems: {_sizes(known)}"
    for sizes, names in _other_sizes(known, checks).items():
        yield f"{', '.join(names)}: {sizes}"
    yield from _racy_ones(space)
    if not known.sanitized:
        yield "no sanitizer watched: --sanitize reports wrong accesses, waits and barriers too"
    elif not findings(space):
        watched = plural(len(checks) + 1, "candidate")
        yield f"the sanitizer watched each first launch, and found nothing in {watched}"
    else:
        yield "the sanitizer watched each first launch; what it found is below"


def _sizes(check: Check) -> str:
    if not check.sizes:
        return listed(check.shapes)
    return "; ".join(f"{shape} {sizes}" for shape, sizes in zip(check.shapes, check.sizes, strict=False))


def _checks(space: SpaceMap) -> Iterator[tuple[str, Check]]:
    """Yield every candidate except the baseline: its move and its check."""
    for name, value in _values(space):
        if value.measured and value.measured.check:
            yield f"{name} = {value_label(value.value)}", value.measured.check


def _values(space: SpaceMap) -> Iterator[tuple[str, ValueMap]]:
    for name, knob in knobs_by_class(space):
        for value in knob.values:
            if not same(value.value, knob.baseline):
                yield visible(name), value


def _other_sizes(known: Check, checks: list[tuple[str, Check]]) -> dict[str, list[str]]:
    """Return the sizes that differ from the baseline's, each with the candidates that ran at them."""
    common = dict(zip(known.shapes, known.sizes, strict=False))
    found: dict[str, list[str]] = {}
    for name, check in checks:
        own = zip(check.shapes, check.sizes, strict=False)
        if other := "; ".join(f"{shape} {sizes}" for shape, sizes in own if common.get(shape, sizes) != sizes):
            found.setdefault(other, []).append(name)
    return found


# --- what the sanitizer found ----------------------------------------------------------------------------------------


def findings(space: SpaceMap) -> list[SanitizerRow]:
    """Return the sanitizer's findings, by candidate and then by line of the kernel."""
    own = space.measured.check if space.measured else None
    checks = [*([("baseline", own)] if own else []), *_checks(space)]
    return [item for what, check in checks for item in findings_of(what, check)]


def findings_of(what: str, check: Check | None) -> list[SanitizerRow]:
    """Return the sanitizer's findings of one candidate, by line of the kernel."""
    rows = [
        SanitizerRow(
            what,
            visible(item.place),
            visible(item.kind),
            visible(item.instruction),
            f"wave {item.wave}" + (f", lane {item.lane}" if item.lane >= 0 else ""),
            visible(f"{item.detail} (at {item.sizes})" if item.sizes else item.detail).strip(),
            item.instructions,
        )
        for item in (check.findings if check else ())
    ]
    return sorted(rows, key=lambda item: (not item.place, _in_order(item.place)))


def finding_text(item: SanitizerRow) -> str:
    """Return a finding as one line of text."""
    more = f"; {item.instructions} instructions of this line" if item.instructions > 1 else ""
    return (
        f"{item.place or 'no known line'}: {item.kind}: {item.instruction} ({item.who}) {item.detail}".rstrip() + more
    )


def _in_order(place: str) -> list[tuple[str, int]]:
    """Return the sort key of a place: for "helper.py:9 called from kernel.py:134" the kernel's own line comes first."""
    return [(file, int(line)) for file, line in reversed(re.findall(r"([^\s:]+):(\d+)", place))]


def finding_statements(space: SpaceMap) -> list[Statement]:
    """Return the findings as statements: a candidate, with its findings below."""
    by: dict[str, list[str]] = {}
    for item in findings(space):
        by.setdefault(item.what, []).append(finding_text(item))
    return [Statement(what, tuple(details)) for what, details in by.items()]


def _apart(joint: Joint, items: list[Refused], name: str) -> str:
    """Return "ACC = bf16 or fp16" if no program that passed has any of these values; else ""."""
    values = list(dict.fromkeys(value_label(item.config[name]) for item in items))
    kept = {value_label(program.config[name]) for program in joint.programs}
    return "" if kept & set(values) else f"{visible(name)} = {' or '.join(values)}"


MOST_APART = 3
"""Number of programs refused for one reason that are listed one by one; more are summed up in one line."""


def refused(joint: Joint) -> list[Statement]:
    """Return the programs that compiled and did not pass when executed; many with one reason share a statement."""
    groups: dict[tuple[str, str, str], list[Refused]] = {}
    for item in joint.refused:
        groups.setdefault((item.outcome, item.kind, item.stage), []).append(item)
    return [line for items in groups.values() for line in _refused(joint, items)]


def _refused(joint: Joint, items: list[Refused]) -> list[Statement]:
    first = items[0]
    how = f"{first.outcome} {first.kind} ({first.stage})"
    if first.kind == DIFFERS:
        how = EFFECT_MARKS[Effect.CHANGES_RESULT].word
    if len(items) <= MOST_APART:
        return [Statement(config_text(i.config), (shorten(f"{how}: {i.reason}"),)) for i in items]
    telling = [text for name in first.config if (text := _apart(joint, items, name))]
    what = f", all with {' and '.join(telling)}" if telling else ""
    example = f"{config_text(first.config)}: {first.reason}"
    return [Statement(f"{plural(len(items), 'program')}{what}: {how}", (shorten(f"for example {example}"),))]
