"""Maps of kernels that were executed, made by hand."""

from __future__ import annotations

from maps import BASELINE
from msgspec.structs import replace

from gluonmap.model.candidate import Stage
from gluonmap.model.joint_map import Verified
from gluonmap.model.knobs import Effect
from gluonmap.model.space_map import ExecutedStage, Measured, SpaceMap, ValueMap
from gluonmap.model.verdict import Check, Figures, OutputError, Resources, SanitizerFinding

RIGHT = Check((OutputError("y", 1e-4, 1e-4, 1e-2, 0.1, "bfloat16"),), 3, sizes=("M=64",), sanitized=True)


WRITE = SanitizerFinding(
    "global access out of bounds", "global_store_dword v[0:1], v2, off", 2, 7, "4 bytes behind y", "k.py:3"
)


def executed(space: SpaceMap, **values: ValueMap) -> SpaceMap:
    """The map with single values replaced, as one of --stage run."""
    knobs = dict(space.knobs)
    for name, value in values.items():
        kept = tuple(value if repr(v.value) == repr(value.value) else v for v in knobs[name].values)
        knobs[name] = replace(knobs[name], values=kept)
    return replace(
        space, knobs=knobs, execution=ExecutedStage(Stage.RUN, "the CPU"), measured=Measured(Stage.RUN, RIGHT)
    )


def unsafe(value: int) -> ValueMap:
    measured = Measured(Stage.RUN, replace(RIGHT, findings=(WRITE,)))
    return ValueMap(
        value, "UNSAFE", Effect.ABORTING, "4 bytes behind y", 3, "k.py", "run", WRITE.kind, 16, "d", measured=measured
    )


def other_result(value: int) -> ValueMap:
    measured = Measured(Stage.RUN, replace(RIGHT, against="baseline"))
    return ValueMap(
        value, "WRONG", Effect.CHANGES_RESULT, "y: relative error 0.5 > 0.01", None, "", "run",
        "differs from the baseline", 14, "d", measured=measured,
    )  # fmt: skip


def program(check: Check | None = RIGHT, **moves: int) -> Verified:
    return Verified(
        {**BASELINE, **moves}, f"{moves}", Resources(256, 0), figures=Figures({}, 1) if check else None, check=check
    )


def with_programs(space: SpaceMap, *programs: Verified) -> SpaceMap:
    assert space.joint
    return replace(space, joint=replace(space.joint, programs=programs))
