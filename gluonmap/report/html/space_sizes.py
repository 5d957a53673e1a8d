"""The sizes of a space (configurations, feasible ones, programs) as bars on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gluonmap.model.joint_map import Joint
from gluonmap.model.space_map import SpaceMap
from gluonmap.report.plain_text import plural


@dataclass(frozen=True, slots=True)
class Bar:
    """One size; `width` in per cent of the widest bar, on a logarithmic scale."""

    name: str
    number: str
    note: str
    width: float


def bars(space: SpaceMap) -> list[Bar]:
    """Return the signature, what of it is feasible, the distinct programs, and those that were compiled."""
    found = counts(space)
    most = max((number for _, number, _ in found if number is not None), default=1)
    return [Bar(name, "" if n is None else f"{n:,}", note, length(n, most)) for name, n, note in found]


def counts(space: SpaceMap) -> list[tuple[str, int | None, str]]:
    """Return name, number and remark of the signature, what of it is feasible, and the programs."""
    knobs = plural(len(space.knobs), "knob")
    joint = space.joint
    if joint is None:
        product = math.prod(len(knob.values) for knob in space.knobs.values())
        return [("signature", product, f"{knobs}, turned one at a time: how they combine was not asked")]
    size = joint.sizes
    found: list[tuple[str, int | None, str]] = [("signature", size.signature, knobs)]
    if size.feasible is None:
        return [*found, ("feasible", None, "the constraints are too entangled to count"), _compiled(joint)]
    note = "every one was compiled" if size.complete else "meet all constraints"
    found.append(("feasible", size.feasible, f"{share(size.feasible, size.signature)} of the signature; {note}"))
    if size.programs is None:
        return [*found, _compiled(joint)]
    if not joint.at_most:
        how = "counted, every feasible configuration being compiled" if size.complete else "each compiled"
        return [*found, ("programs", size.programs, f"{share(size.programs, size.feasible)} of the feasible; {how}")]
    return [*found, ("programs", size.programs, "at most, by the rules of sameness"), _compiled(joint)]


def _compiled(joint: Joint) -> tuple[str, int | None, str]:
    return "compiled", len(joint.programs), "distinct programs, compiled to machine code"


def share(part: int, whole: int) -> str:
    """Return "63%", "0.21%" or "2.5e-05"."""
    found = part / whole if whole else 0.0
    if found == 1 or found >= 0.1:
        return f"{found:.0%}"
    return f"{found:.2%}" if found >= 0.0005 else f"{found:.1e}"


def length(number: int | None, most: int) -> float:
    """Return the length of a bar, in per cent of a logarithmic scale up to `most`; the bar of 1 is still visible."""
    if not number:
        return 0.0
    return round(max(1.0, 100 * math.log10(number) / math.log10(most)), 2) if most > 1 else 100.0


def ticks(numbers: Sequence[int]) -> list[tuple[float, str]]:
    """Return the position (per cent) and text of each power of ten on the scale; none if there is one number only."""
    most = max(numbers, default=1)
    if most <= 1 or len(numbers) == 1:
        return []
    step = 1 if most < 10**7 else 2
    powers = range(0, math.floor(math.log10(most)) + 1, step)
    return [(round(100 * power / math.log10(most), 2), _power(power)) for power in powers]


def _power(power: int) -> str:
    """Return a power of ten, short: "100", "10 k", "1 M"."""
    unit = " kMGTP"[power // 3] if power < 18 else ""
    return f"{10 ** (power % 3)} {unit}".strip() if unit else f"1e{power}"
