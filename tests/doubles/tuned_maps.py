"""Maps with verified programs, and a driver that only says which target it is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gluonmap.constraints.semantics import scope_of, words
from gluonmap.handoff import LoadedMap
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import (
    Certificate,
    Constraint,
    Inertness,
    Joint,
    Sizes,
    Standing,
    Tried,
    ValueClasses,
    Verified,
)
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.relations import Compare, KnobTerm, Number, Op, Product, Relation
from gluonmap.model.space_map import KnobMap, SpaceMap, ValueMap
from gluonmap.model.verdict import Resources

triton = pytest.importorskip("triton")


KINDS = {
    "BLOCK": KnobKind.CONSTEXPR,
    "SPLIT": KnobKind.CONSTEXPR,
    "GROUP": KnobKind.CONSTEXPR,
    "num_warps": KnobKind.CONSTEXPR_AND_OPTION,
    "num_stages": KnobKind.OPTION,
    "waves_per_eu": KnobKind.OPTION,
    "chunks": KnobKind.HOST,
}


DOMAINS: dict[str, tuple[Value, ...]] = {
    "BLOCK": (64, 128, 256),
    "SPLIT": (1, 2, 4),
    "GROUP": (1, 4),
    "num_warps": (4, 8),
    "num_stages": (1, 2),
    "waves_per_eu": (0, 2),
    "chunks": (1, 2),
}


BASELINE: Config = {
    "BLOCK": 128, "SPLIT": 1, "GROUP": 1, "num_warps": 4, "num_stages": 2, "waves_per_eu": 0, "chunks": 1,
}  # fmt: skip


BUDGET = Compare(Product((KnobTerm("BLOCK"), KnobTerm("SPLIT"))), Op.AT_MOST, Number(256))


def resources(**more: int) -> Resources:
    return Resources(**({"threads": 256, "shared_bytes": 1024, "spills": 0, "occupancy": 4} | more))


def verified(digest: str, used: Resources | None = None, **moves: Value) -> Verified:
    return Verified({**BASELINE, **moves}, digest, used or resources(), (64,))


def value_map(value: Value, effect: Effect, digest: str) -> ValueMap:
    outcome = "CRASHED" if effect is Effect.ABORTING else "PASS"
    return ValueMap(value, outcome, effect, digest=digest, resources=resources())


def single_map(target: str = "gfx950", **more: Any) -> SpaceMap:
    """All values pass alone but SPLIT=4; num_stages is inert, chunks changes the grid, all else the program."""
    knobs = {}
    for name, values in DOMAINS.items():
        found = []
        for value in values:
            effect = Effect.INERT if name == "num_stages" else Effect.LIVE_HOST if name == "chunks" else Effect.LIVE
            effect = Effect.ABORTING if (name, value) == ("SPLIT", 4) else effect
            effect = Effect.BASELINE if value == BASELINE[name] else effect
            changes = effect is Effect.LIVE
            found.append(value_map(value, effect, f"{name}={value}" if changes else "base"))
        groups = ((1, 2),) if name == "num_stages" else ()
        knobs[name] = KnobMap(KnobClass.LIVE, KINDS[name], BASELINE[name], "by hand", tuple(found), groups)
    return LoadedMap(
        **{
            "kernel": "scale", "file": "scale.py", "target": target, "triton": triton.__version__,
            "specialisation": {"x": "*fp16:16", "n": "i32:16"}, "baseline": BASELINE, "knobs": knobs,
            "resources": resources(), "digest": "base", **more,
        }
    )  # fmt: skip


def joint_map(
    *programs: Verified,
    relations: tuple[Relation, ...] = (BUDGET,),
    tried: tuple[Tried, ...] = (),
    inertness: tuple[Inertness, ...] = (),
    classes: tuple[ValueClasses, ...] = (),
    **more: Any,
) -> SpaceMap:
    constraints = [Constraint(r, words(r), tuple(sorted(scope_of(r))), Standing.LEARNED) for r in relations]
    joint = Joint(
        depth="joint", domains=DOMAINS, constraints=tuple(constraints), sizes=Sizes(288), coverage=(), tried=tried,
        certificate=Certificate(0.95, 1, (), ()), programs=programs, inertness=inertness, value_classes=classes,
    )  # fmt: skip
    return replace(single_map(**more), joint=joint)


PROGRAMS = (verified("base"), verified("a", BLOCK=256), verified("b", BLOCK=64, SPLIT=4, num_warps=8, num_stages=1))


class StubDriver:
    """A device that is known by its target and never touched."""

    def __init__(self, backend: str, arch: str | int, warp_size: int) -> None:
        from triton.backends.compiler import GPUTarget

        self.target = GPUTarget(backend, arch, warp_size)

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0


def listed(**moves: Any) -> Any:
    """A configuration as a kernel's author would write it, options as they are mapped."""
    values = {**BASELINE, **moves}
    options = {"num_warps": values.pop("num_warps"), "num_stages": values.pop("num_stages")}
    del values["chunks"]
    return triton.Config(values, **options)
