"""Pairs of maps that differ, made by hand, and views of their difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maps import joint_map
from msgspec.structs import replace
from rich.console import Console

from gluonmap.diff.comparison import Difference
from gluonmap.model import codec
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Verified
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.relations import Compare, KnobTerm, Member, Number, Op, Product, Relation
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Resources
from gluonmap.report.diff.rendered import render


def budget(limit: int) -> Relation:
    return Compare(Product((KnobTerm("M"), KnobTerm("N"), KnobTerm("STAGES"))), Op.AT_MOST, Number(limit))


def with_value(space: SpaceMap, knob: str, value: Value, **fields: Any) -> SpaceMap:
    """The map with one value of one knob replaced."""
    values = tuple(replace(v, **fields) if v.value == value else v for v in space.knobs[knob].values)
    return replace(space, knobs={**space.knobs, knob: replace(space.knobs[knob], values=values)})


def with_knob(space: SpaceMap, knob: str, **fields: Any) -> SpaceMap:
    return replace(space, knobs={**space.knobs, knob: replace(space.knobs[knob], **fields)})


def with_programs(space: SpaceMap, *programs: tuple[Config, str, Resources]) -> SpaceMap:
    """The map with compiled programs, by the moves that lead to them."""
    assert space.joint
    found = tuple(Verified({**space.baseline, **moves}, digest, used) for moves, digest, used in programs)
    return replace(space, joint=replace(space.joint, programs=found))


def used(spills: int = 0, vgpr: int = 64, **more: Any) -> Resources:
    return Resources(256, 4096, vgpr=vgpr, spills=spills, **more)


REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = ("a.json", "b.json")


def committed(name: str) -> SpaceMap:
    """Return a map of reports/."""
    return codec.read_map(REPOSITORY / "reports" / name)


def kinds(found: Difference) -> list[tuple[str, Config]]:
    """Return kind and moves of each regression."""
    return [(str(item.kind), item.moves) for item in found.regressions]


def text(found: Difference, width: int = 100) -> str:
    """Return the text that a terminal shows."""
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        render(found, NAMES, console)
    return captured.get()


def constraint_moves(found: Difference) -> list[tuple[str, str | None, int | None, int | None]]:
    return [(c.move, c.direction, c.freed, c.forbidden) for c in found.constraints]


def compared() -> tuple[SpaceMap, SpaceMap]:
    """Two maps that differ in something of every kind."""
    one = with_programs(
        joint_map((budget(16384),)),
        ({"M": 64, "N": 64}, "a", used(42, vgpr=64)),
        ({"M": 64, "N": 16}, "b", used(vgpr=90)),
        ({"M": 128, "N": 16}, "c", used()),
    )
    other = with_programs(
        joint_map((budget(8192), Member("MODE", (".cg",), inside=False))),
        ({"M": 64, "N": 64}, "d", used(376, vgpr=128)),
        ({"M": 64, "N": 16}, "e", used(vgpr=80)),
        ({"M": 128, "N": 16}, "c", used()),
    )
    lost = {"outcome": "CRASHED", "effect": Effect.ABORTING, "kind": "SIGABRT", "reason": "died"}
    place = {"file": "kernels/double.py", "line": 7}
    other = with_value(with_value(other, "N", 128, **lost, **place), "M", 128, **lost, **place)
    other = with_value(with_knob(other, "FLAG", knob_class=KnobClass.INERT), "FLAG", True, effect=Effect.INERT)
    return one, replace(other, triton="3.6.0")


def with_texts(said: str) -> tuple[SpaceMap, SpaceMap]:
    """Two maps, the second of which has this for every text of a compiler, a file or a user."""
    one, other = compared()
    assert other.joint
    item = replace(other.joint.constraints[0], words=said, reason=said, line=said, relation=budget(4096))
    other = replace(other, joint=replace(other.joint, constraints=(item,)), kernel=said, triton=said, file=said)
    texts = {"kind": said, "reason": said, "stage": said, "file": said, "because": (said,), "repeat": said}
    return one, with_value(with_knob(other, "FLAG", why=said), "N", 128, **texts)
