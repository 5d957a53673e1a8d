"""Circumstances of a comparison, and what they excuse."""

from __future__ import annotations

from compared_maps import kinds, used, with_programs, with_value
from maps import BASELINE, joint_map, single_map
from msgspec.structs import replace

from gluonmap.diff.circumstances import Circumstance
from gluonmap.diff.comparison import difference
from gluonmap.model.candidate import Stage
from gluonmap.model.joint_map import Refused
from gluonmap.model.knobs import Effect
from gluonmap.model.space_map import ExecutedStage, Measured, Recipe


def test_circumstances_are_named_with_both_sides() -> None:
    one = replace(single_map(), specialisation={"x": "*fp16:16"}, source={"double.py": "aa"}, shape={"K": 4096})
    other = replace(
        one, target="gfx942", triton="3.6.0", specialisation={"x": "*fp16"}, source={"double.py": "bb"},
        shape={"K": 512}, recipe=Recipe(fixed={"kpack": 2}, derive={"S": "K"}, grid="M"), kernel="other",
    )  # fmt: skip
    found = difference(one, other)
    assert list(found.circumstances) == [
        Circumstance("kernel", "double", "other"),
        Circumstance("target", "gfx950", "gfx942"),
        Circumstance("Triton", "3.9.0", "3.6.0"),
        Circumstance("source", "double.py: aa", "double.py: bb"),
        Circumstance("arguments", "x: *fp16:16", "x: *fp16"),
        Circumstance("sizes", "K: 4096", "K: 512"),
        Circumstance("grid", "", "M"),
        Circumstance("fixed", "no kpack", "kpack: 2"),
        Circumstance("derived", "no S", "S: K"),
    ]
    assert "kernel, target, Triton, source, arguments, fixed and derived differ at once" in " ".join(found.notes)


def test_a_file_of_another_name_with_the_same_code_is_the_same_source() -> None:
    one, other = (replace(single_map(), source={name: "aa"}) for name in ("a.py", "b.py"))
    assert difference(one, other).circumstances == ()


def test_a_map_that_records_no_source_says_so() -> None:
    one = replace(single_map(), source={"double.py": "aa"})
    assert any("does not record the source" in note for note in difference(one, single_map()).notes)
    assert not any("does not record the source" in note for note in difference(one, one).notes)


def test_a_device_failure_regresses_only_if_both_maps_executed() -> None:
    one = with_programs(joint_map(()), ({"M": 64, "N": 64}, "a", used()))
    assert one.joint
    lost = Refused({**BASELINE, "M": 64, "N": 64}, "a", "WRONG", "CHECK")
    device = replace(
        one, joint=replace(one.joint, programs=(), refused=(lost,)), execution=ExecutedStage(Stage.CHECK, "MI300X")
    )
    device = with_value(device, "M", 128, outcome="WRONG", effect=Effect.ABORTING, measured=Measured(Stage.CHECK))
    found = difference(one, device)
    assert found.regressions == ()
    assert sorted(len(flip.moves) for flip in found.flips if flip.deeper) == [1, 2]
    both = replace(one, execution=ExecutedStage(Stage.CHECK, "MI300X"))
    assert sorted(kinds(difference(both, device)), key=str) == [
        ("combination", {"M": 64, "N": 64}),
        ("value", {"M": 128}),
    ]


def test_a_failing_baseline_regresses_only_if_both_maps_executed() -> None:
    lost = replace(
        single_map(),
        outcome="WRONG",
        knobs={},
        measured=Measured(Stage.CHECK),
        execution=ExecutedStage(Stage.CHECK, "MI300X"),
    )
    found = difference(single_map(), lost)
    assert [(flip.moves, flip.deeper) for flip in found.flips] == [({}, True)]
    assert found.regressions == ()
    both = replace(single_map(), execution=ExecutedStage(Stage.CHECK, "MI300X"))
    assert kinds(difference(both, lost)) == [("baseline", {})]
