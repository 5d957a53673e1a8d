"""Regressions of combinations and of resources, and the tolerance."""

from __future__ import annotations

import pytest
from compared_maps import kinds, text, used, with_programs
from maps import joint_map, tried
from msgspec.structs import replace

from gluonmap.diff.comparison import Tolerance, difference
from gluonmap.diff.regressions import Regression
from gluonmap.diff.resources import Growth
from gluonmap.model.candidate import Config
from gluonmap.model.relations import Compare, KnobTerm, Number, Op, Product
from gluonmap.model.verdict import Resources


def test_a_combination_that_fails_now_is_a_regression() -> None:
    moves: Config = {"M": 64, "N": 64}
    one = joint_map((), tried=(tried(moves),))
    compiled = joint_map((), tried=(tried(moves, "CRASHED", reason="SIGSEGV: died", line="kernels/double.py:7"),))
    (found,) = difference(one, compiled).regressions
    assert (found.kind, found.moves, found.line) == ("combination", moves, 7)
    assert found.after and found.after.compiled
    rule = Compare(Product((KnobTerm("M"), KnobTerm("N"))), Op.AT_MOST, Number(2048))
    predicted = difference(one, joint_map((rule,))).regressions
    assert [item.moves for item in predicted if len(item.moves) > 1] == [moves]
    assert all(item.after and item.after.broken == ("M * N <= 2048",) for item in predicted)


def test_a_failure_of_a_predicted_pass_is_no_regression() -> None:
    moves: Config = {"M": 64, "N": 64}
    failing = joint_map((), tried=(tried(moves, "CRASHED"),))
    found = difference(joint_map(()), failing)
    assert found.regressions == ()
    assert [(flip.lost, flip.before.compiled) for flip in found.flips] == [(True, False)]
    assert "were only predicted to pass in A (1)" in text(found)


def test_a_configuration_in_several_lists_is_one_regression() -> None:
    one = with_programs(joint_map((), tried=(tried({"M": 64, "N": 64}),)), ({"M": 64, "N": 64}, "d", used()))
    other = joint_map((), tried=(tried({"M": 64, "N": 64}, "REJECTED"),))
    found = difference(one, other)
    assert kinds(found) == [("combination", {"M": 64, "N": 64})]
    assert found.regressions[0].handed_over


# ---- resources ------------------------------------------------------------------------------------------------------


def grown(before: Resources, after: Resources, target: str = "gfx942", percent: float = 10.0) -> list[Regression]:
    moves: Config = {"M": 64, "N": 64}
    one, other = (
        replace(with_programs(joint_map(()), (moves, digest, found)), target=target)
        for digest, found in (("d1", before), ("d2", after))
    )
    return list(difference(one, other, Tolerance(percent=percent)).regressions)


def test_spills_that_grew_are_a_regression_with_both_numbers() -> None:
    (found,) = grown(used(42), used(376))
    assert (found.kind, found.growth) == ("spills", Growth({"M": 64, "N": 64}, "spills", 42, 376))
    assert found.handed_over


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (used(0), used(1), ["spills"]),  # it begins to spill
        (used(42), used(50), []),  # 8 more
        (used(42), used(51), ["spills"]),
        (used(100), used(110), []),  # 10 % more
        (used(100), used(111), ["spills"]),
        (used(376), used(42), []),
        (used(vgpr=64), used(vgpr=72), []),
        (used(vgpr=64), used(vgpr=73), ["registers"]),
        (used(vgpr=200), used(vgpr=220), []),
        (used(vgpr=200), used(vgpr=221), ["registers"]),
        (used(), used(scratch_bytes=900, code_bytes=9000), []),
        (replace(used(), vgpr=None, spills=None), used(9), []),
    ],
)
def test_where_growth_becomes_a_regression(before: Resources, after: Resources, expected: list[str]) -> None:
    assert [str(item.kind) for item in grown(before, after)] == expected


def test_the_tolerance_is_the_users() -> None:
    assert grown(used(vgpr=100), used(vgpr=118), percent=20) == []
    assert len(grown(used(vgpr=100), used(vgpr=118), percent=15)) == 1


def test_nvidia_reports_spills_in_bytes() -> None:
    assert grown(used(100), used(132), "sm_90") == []
    assert len(grown(used(100), used(133), "sm_90")) == 1


def test_programs_of_two_makers_are_not_compared() -> None:
    one = replace(with_programs(joint_map(()), ({}, "a", used(0))), target="gfx942")
    other = replace(with_programs(joint_map(()), ({}, "b", used(500))), target="sm_90")
    found = difference(one, other)
    assert (found.pairs, found.resources, found.regressions) == ((), (), ())
    assert any("different makers" in note for note in found.notes)


def test_two_configurations_of_one_program_grow_once() -> None:
    programs = [({"MODE": mode, "N": 16}, used()) for mode in (".ca", ".cg")]
    one = with_programs(joint_map(()), *((moves, "d1", found) for moves, found in programs))
    other = with_programs(joint_map(()), *((moves, "d2", used(300)) for moves, _ in programs))
    found = difference(one, other)
    assert kinds(found) == [("spills", {"N": 16, "MODE": ".ca"})]
    assert [(c.compared, c.grew, c.shrank) for c in found.resources if c.resource == "spills"] == [(1, 1, 0)]


def test_equal_programs_are_counted() -> None:
    one = with_programs(joint_map(()), ({"M": 64, "N": 16}, "same", used()), ({"M": 128, "N": 16}, "a", used()))
    other = with_programs(joint_map(()), ({"M": 64, "N": 16}, "same", used()), ({"M": 128, "N": 16}, "b", used()))
    found = difference(one, other)
    assert (found.asked.programs, found.asked.one_program) == (2, 1)
    assert found.changed


def test_a_program_that_is_no_longer_handed_over_is_a_regression() -> None:
    programs = (({"M": 64}, "a", used(occupancy=2)),)
    other = with_programs(joint_map(()), ({"M": 64}, "b", used(occupancy=0)))
    (found,) = difference(with_programs(joint_map(()), *programs), other).regressions
    assert (found.kind, found.moves) == ("program", {"M": 64})
    assert "not one work-group fits" in found.why
