"""The names of two compared maps, and the one sentence about what differs."""

from __future__ import annotations

from collections.abc import Sequence

from gluonmap.diff.circumstances import MapSide
from gluonmap.diff.comparison import Difference
from gluonmap.diff.knobs import KnobChange, ValueTransition
from gluonmap.diff.regressions import Regression, RegressionKind
from gluonmap.model.outcomes import COMPILED
from gluonmap.model.wording import listed
from gluonmap.report.map_header import target_name
from gluonmap.report.plain_text import plural, visible


def sides(found: Difference, names: tuple[str, str]) -> list[tuple[str, str]]:
    """Return ("A", "reports/…: gemm on gfx942 (cdna3), Triton 3.9.0") for both maps."""
    return [
        (letter, f"{visible(name)}: {side(each)}")
        for letter, name, each in zip("AB", names, (found.before, found.after), strict=True)
    ]


def side(found: MapSide) -> str:
    """Return "gemm on gfx942 (cdna3), Triton 3.9.0"."""
    failed = "" if found.outcome in COMPILED else f", whose baseline is {found.outcome}"
    return visible(f"{found.kernel} on {target_name(found.target)}, Triton {found.triton}{failed}")


def headline(found: Difference) -> str:
    """Return the one sentence that a person would say: the regressions, and what else has changed."""
    if not found.regressions and not found.changed:
        return "No difference." if not found.circumstances else "No difference but the circumstances."
    return f"{regressions_told(found.regressions)} {changes_told(found)}".rstrip()


def regressions_told(found: Sequence[Regression]) -> str:
    """Return "No regression." or "Regressions: 2 values fail and spills grew in 1 program."."""
    if not found:
        return "No regression."
    counts = {kind: sum(item.kind is kind for item in found) for kind in RegressionKind}
    parts = [_counted(kind, count) for kind, count in counts.items() if count]
    return f"Regression{'s' if len(found) > 1 else ''}: {listed(parts)}."


def _counted(kind: RegressionKind, count: int) -> str:
    one = count == 1
    match kind:
        case RegressionKind.BASELINE:
            return "the baseline fails"
        case RegressionKind.VALUE | RegressionKind.COMBINATION:
            return f"{plural(count, str(kind))} {'fails' if one else 'fail'}"
        case RegressionKind.PROGRAM:
            return f"{plural(count, 'program')} {'is' if one else 'are'} no longer handed over"
        case RegressionKind.SPILLS | RegressionKind.REGISTERS:
            return f"{kind} grew in {plural(count, 'program')}"


def changes_told(found: Difference) -> str:
    """Return what has changed besides the regressions, as one sentence; "" where nothing has."""
    turns = {turn: sum(change.turn is turn for change in found.values) for turn in ValueTransition}
    parts = [f"{plural(count, 'value')} {turn}" for turn, count in turns.items() if count]
    classes = sum(map(class_changed, found.knobs))
    if classes:
        parts.append(f"{plural(classes, 'knob')} of another class")
    alone = [change.knob for change in found.knobs if change.before is None or change.after is None]
    if alone:
        parts.append(f"{plural(len(alone), 'knob')} turned by one map only ({listed(map(visible, alone))})")
    if rest := len(found.knobs) - classes - len(alone):
        parts.append(f"{plural(rest, 'knob')} with other values or conditions")
    if found.constraints:
        parts.append(f"{plural(len(found.constraints), 'constraint')} changed")
    if found.shared and found.shared.gained:
        parts.append(f"{plural(found.shared.gained, 'configuration')} newly feasible")
    if found.shared and found.shared.lost:
        parts.append(f"{plural(found.shared.lost, 'configuration')} no longer feasible")
    text = listed(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def class_changed(change: KnobChange) -> bool:
    """Return whether both maps turn the knob, and class it otherwise."""
    return bool(change.before and change.after and change.before.knob_class is not change.after.knob_class)
