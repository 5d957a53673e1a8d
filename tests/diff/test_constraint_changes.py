"""Changed constraints: pairs, directions, and hardware limits."""

from __future__ import annotations

from compared_maps import budget, constraint_moves, kinds, text
from maps import BUDGET, DOMAINS, constraint, joint_map, product, tried
from msgspec.structs import replace

from gluonmap.constraints.semantics import holds
from gluonmap.diff.circumstances import Circumstance
from gluonmap.diff.comparison import difference
from gluonmap.diff.constraints import Budget, ConstraintTransition, Direction
from gluonmap.model.joint_map import Standing
from gluonmap.model.relations import AnyOf, Bound, Member, Op
from gluonmap.model.space_map import SpaceMap


def test_a_moved_limit_is_one_change_with_numbers_and_direction() -> None:
    count = {limit: sum(holds(budget(limit), c) for c in product(DOMAINS)) for limit in (8192, 16384)}
    found = difference(joint_map((budget(8192),)), joint_map((budget(16384),)))
    assert constraint_moves(found) == [(ConstraintTransition.LIMIT, Direction.LOOSER, count[16384] - count[8192], 0)]
    assert "limit moved, looser: M * N * STAGES <= 8192 → 16384" in text(found)
    back = difference(joint_map((budget(16384),)), joint_map((budget(8192),)))
    assert constraint_moves(back) == [(ConstraintTransition.LIMIT, Direction.TIGHTER, 0, count[16384] - count[8192])]


def test_the_targets_limit_behind_a_constraint_is_in_bytes() -> None:
    def of(target: str, limit: int, reason: str) -> SpaceMap:
        item = replace(constraint(budget(limit), reason=reason), outcome="NO_RESOURCES")
        return replace(joint_map((budget(limit),), constraints=(item,)), target=target)

    one = of("gfx942", 8192, "98,304 bytes of shared memory > 65,536")
    other = of("gfx950", 16384, "196,608 bytes of shared memory > 163,840")
    (change,) = difference(one, other).constraints
    assert change.budget == Budget("bytes of shared memory", 65_536, 163_840)
    assert "65,536 → 163,840 bytes of shared memory" in text(difference(one, other))


def test_constraints_come_and_go() -> None:
    mode = Member("MODE", (".cg",), inside=False)
    found = difference(joint_map((BUDGET, mode)), joint_map((BUDGET,)))
    assert constraint_moves(found) == [(ConstraintTransition.GONE, Direction.LOOSER, 96, None)]
    assert found.constraints[0].before and found.constraints[0].before.words == "MODE != .cg"
    assert constraint_moves(difference(joint_map((BUDGET,)), joint_map((BUDGET, mode)))) == [
        (ConstraintTransition.NEW, Direction.TIGHTER, None, 96)
    ]


def test_another_form_of_the_same_constraint_is_no_change() -> None:
    one, other = Bound("STAGES", Op.AT_MOST, 3), Member("STAGES", (4,), inside=False)
    assert difference(joint_map((one,)), joint_map((other,))).constraints == ()


def test_a_change_that_other_constraints_imply_has_no_effect() -> None:
    """M != 128 is gone, and M <= 32 rules 128 out all the same; the two have different reasons and scopes."""
    gone = AnyOf((Member("M", (128,), inside=False), Member("STAGES", (1,))))
    one = joint_map((gone, Bound("M", Op.AT_MOST, 32)))
    found = difference(one, joint_map((Bound("M", Op.AT_MOST, 32),)))
    assert constraint_moves(found) == [(ConstraintTransition.GONE, Direction.LOOSER, 0, None)]
    assert "without effect on what both maps tried" in text(found)


def test_another_relation_over_one_knob_is_one_change() -> None:
    found = difference(joint_map((Member("M", (16, 32)),)), joint_map((Member("M", (32, 64, 128)),)))
    assert [(c.move, c.direction) for c in found.constraints] == [(ConstraintTransition.OTHER, Direction.SHIFTED)]


def test_a_restriction_by_the_user_is_a_circumstance() -> None:
    demand = constraint(Bound("M", Op.AT_MOST, 32), Standing.GIVEN)
    one = joint_map(constraints=(constraint(BUDGET),), tried=(tried({"M": 64, "N": 16}),))
    other = joint_map(constraints=(constraint(BUDGET), demand))
    found = difference(one, replace(other, knobs={}))
    assert found.constraints == ()
    assert found.regressions == ()
    assert Circumstance("restrictions", "none", "M <= 32") in found.circumstances


def test_a_constraint_that_no_failure_confirmed_makes_no_regression() -> None:
    item = constraint(Bound("M", Op.AT_MOST, 32), Standing.READ)
    one = joint_map((), tried=(tried({"M": 64, "N": 64}),))
    worse = [("value", {"M": 64}), ("combination", {"M": 64, "N": 64})]
    for confirmed, expected in ((False, []), (True, worse)):
        failed = tried({"M": 64, "STAGES": 4}, "REJECTED")  # else the value would be one that was never tried
        other = joint_map((), constraints=(replace(item, confirmed=confirmed),), tried=(failed,))
        other = replace(other, knobs={n: k for n, k in other.knobs.items() if n != "M"})
        assert kinds(difference(one, other)) == expected
