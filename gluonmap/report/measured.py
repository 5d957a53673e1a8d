"""What a device said of the candidates, in rows and lines that terminal and Markdown share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import UnsetType

from gluonmap.joint import Joint
from gluonmap.model import Check, Stage
from gluonmap.report import words
from gluonmap.report.together import Line
from gluonmap.space import Measured, SpaceMap


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate that came to the device."""

    what: str
    outcome: str
    error: str
    """Relative and elementwise error of the worst output."""
    time: str
    remark: str


REFUSED = "Programs that compiled and did not pass on the device: not handed over"
HEADS = ("candidate", "outcome", "relative, elementwise error", "median µs", "remark")


def title(space: SpaceMap) -> str:
    """ "On NVIDIA H200, up to TIME"; "" where no device was asked."""
    if isinstance(space.on_device, UnsetType):
        return ""
    return f"On {words.visible(space.on_device.device)}, up to {space.on_device.stage}"


def rows(space: SpaceMap) -> list[Row]:
    """The baseline, then every other value that came to the device, in the reports' order."""
    found = [row("baseline", space.outcome, space.kind, space.measured)]
    for name, knob in words.ordered(space):
        for value in knob.values:
            if repr(value.value) != repr(knob.baseline):
                what = f"{words.visible(name)} = {words.label(value.value)}"
                found.append(row(what, value.outcome, value.kind, value.measured))
    return [item for item in found if item is not None]


def row(what: str, outcome: str, kind: str, measured: Measured | UnsetType) -> Row | None:
    """One candidate's row; None where it did not come to a device."""
    if isinstance(measured, UnsetType):
        return None
    said = f"{outcome} {words.visible(kind)} ({measured.reached})" if outcome != "PASS" else outcome
    return Row(what, said, _error(measured.check), _time(measured), "racy" if _racy(measured) else "")


def _racy(measured: Measured) -> bool:
    return measured.check is not None and measured.check.racy


def _error(check: Check | None) -> str:
    if check is None or not check.errors:
        return ""
    worst = max(check.errors, key=lambda e: (e.misplaced, e.relative))
    return f"{worst.relative:.1e}, {worst.elementwise:.1e}"


def _time(measured: Measured) -> str:
    timing = measured.timing
    return f"{timing.median_us:,.1f} ± {timing.spread / 2:.1%}" if timing else ""


def terms(space: SpaceMap) -> Iterator[str]:
    """What counts as right, and how time was taken."""
    measured = space.measured
    if isinstance(measured, UnsetType) or isinstance(space.on_device, UnsetType):
        return
    if measured.check is not None:
        told = [
            f"{e.output} {e.tolerance:g} ({'declared' if e.declared else f'default of {e.dtype}'})"
            for e in measured.check.errors
        ]
        yield f"relative error ‖out − ref‖ / ‖ref‖ at most: {', '.join(told)}; elementwise 10 times that"
        shapes = words.listed(measured.check.shapes)
        yield f"{measured.check.runs} launches compared, sizes: {shapes}; outputs poisoned before, guards around them"
    if space.on_device.stage is Stage.TIME:
        clocks = ""
        if measured.timing and measured.timing.clock_before_mhz:
            clocks = f"; clock {measured.timing.clock_before_mhz} MHz before, {measured.timing.clock_after_mhz} after"
        yield f"median of one launch, caches flushed before each; ± half of the middle three fifths{clocks}"
    racy = [row.what for row in rows(space) if row.remark]
    if racy:
        yield f"racy (two launches on the same inputs differed in some bit): {', '.join(racy)}"


def refused(joint: Joint) -> list[Line]:
    """Programs that compiled and did not pass on the device."""
    return [
        Line(
            words.settings(item.config),
            (words.cut(f"{item.outcome} {item.kind} ({item.stage}): {item.reason}"),),
        )
        for item in joint.refused
    ]
