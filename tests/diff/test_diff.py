"""Two maps compared: what has changed, in which direction, and what of it is a regression."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from compared_maps import budget, compared, told, used, with_knob, with_programs, with_texts, with_value
from html_pages import HOSTILE as HOSTILE_MARKUP
from html_pages import Element, flat, read, section
from hypothesis import given, settings
from hypothesis import strategies as st
from maps import BASELINE, BUDGET, DOMAINS, constraint, joint_map, product, single_map, tried
from msgspec.structs import replace
from project import Project
from rich.console import Console

from gluonmap.cli.main import cli
from gluonmap.constraints.semantics import holds
from gluonmap.diff.circumstances import Circumstance
from gluonmap.diff.comparison import Difference, Tolerance, difference
from gluonmap.diff.constraints import Budget, ConstraintChange, ConstraintTransition, Direction
from gluonmap.diff.knobs import KnobChange, ValueTransition
from gluonmap.diff.regressions import Regression
from gluonmap.diff.resources import Growth
from gluonmap.diff.spaces import SharedSpace, SpaceCount
from gluonmap.model import codec
from gluonmap.model.candidate import Config, Stage, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import UNCOMPARED, Inertness, Refused, Sizes, Standing, Tried, ValueClasses
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.relations import AnyOf, Bound, Compare, KnobTerm, Member, Number, Op, Product, Relation
from gluonmap.model.space_map import ExecutedStage, Measured, Recipe, SpaceMap
from gluonmap.model.verdict import Resources
from gluonmap.report.diff import spaces
from gluonmap.report.diff.headline import headline
from gluonmap.report.diff.regressions import grew
from gluonmap.report.diff.rendered import render, render_markdown
from gluonmap.report.html import diff_page, resource_changes
from gluonmap.report.plain_text import visible

REPOSITORY = Path(__file__).resolve().parents[2]
MAPS = sorted((REPOSITORY / "reports").rglob("*.json"))
NAMES = ("a.json", "b.json")


def kinds(found: Difference) -> list[tuple[str, Config]]:
    return [(str(item.kind), item.moves) for item in found.regressions]


def text(found: Difference, width: int = 100) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        render(found, NAMES, console)
    return captured.get()


# ---- nothing differs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MAPS, ids=lambda p: p.stem)
def test_a_map_does_not_differ_from_itself(path: Path) -> None:
    space = codec.read_map(path)
    found = difference(space, space)
    assert not found.changed
    assert (found.circumstances, found.regressions, found.flips, found.values, found.knobs) == ((), (), (), (), ())
    assert headline(found) == "No difference."
    assert found.shared is None or found.shared.lost == found.shared.gained == 0


def test_circumstances_alone_are_no_change() -> None:
    found = difference(joint_map(), replace(joint_map(), triton="3.6.0"))
    assert not found.changed
    assert headline(found) == "No difference but the circumstances."


# ---- single values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "turn"),
    [
        (("PASS", Effect.LIVE), ("CRASHED", Effect.ABORTING), ValueTransition.ABORTING),
        (("REJECTED", Effect.ABORTING), ("CRASHED", Effect.ABORTING), ValueTransition.ABORTING),
        (("PASS", Effect.INERT), ("REJECTED", Effect.ABORTING), ValueTransition.FAILING),
        (("PASS", Effect.LIVE), ("HUNG", Effect.ABORTING), ValueTransition.FAILING),
        (("CRASHED", Effect.ABORTING), ("PASS", Effect.LIVE), ValueTransition.PASSING),
        (("CRASHED", Effect.ABORTING), ("NO_RESOURCES", Effect.ABORTING), ValueTransition.OTHERWISE),
        (("PASS", Effect.LIVE), ("PASS", Effect.INERT), ValueTransition.INERT),
        (("PASS", Effect.LIVE_HOST), ("PASS", Effect.INERT), ValueTransition.INERT),
        (("PASS", Effect.INERT), ("PASS", Effect.LIVE), ValueTransition.LIVE),
        (("PASS", Effect.LIVE_HOST), ("PASS", Effect.LIVE), ValueTransition.ELSEWHERE),
        (("PASS", Effect.LIVE), ("unknown", Effect.UNKNOWN), ValueTransition.UNKNOWN),
        (("unknown", Effect.UNKNOWN), ("unknown", Effect.UNKNOWN), None),
        (("REJECTED", Effect.ABORTING), ("REJECTED", Effect.ABORTING), None),
        (("PASS", Effect.LIVE), ("PASS", Effect.LIVE), None),
        (("PASS", Effect.UNKNOWN), ("PASS", Effect.INERT), None),  # unstable code: nothing was known of the effect
    ],
)
def test_what_becomes_of_a_value(
    before: tuple[str, Effect], after: tuple[str, Effect], turn: ValueTransition | None
) -> None:
    one, other = (with_value(single_map(), "MODE", ".cg", outcome=o, effect=e, kind="x") for o, e in (before, after))
    found = difference(one, other)
    assert [(v.knob, v.value, v.turn, v.one_configuration) for v in found.values] == (
        [("MODE", ".cg", turn, True)] if turn else []
    )


def test_another_kind_of_the_same_outcome_is_told_and_another_wording_is_not() -> None:
    one = with_value(single_map(), "MODE", ".cg", outcome="CRASHED", effect=Effect.ABORTING, kind="SIGABRT", reason="a")
    assert difference(one, with_value(one, "MODE", ".cg", reason="b")).values == ()
    changed = difference(one, with_value(one, "MODE", ".cg", kind="SIGSEGV")).values
    assert [v.turn for v in changed] == [ValueTransition.OTHERWISE]


def test_a_value_that_passed_and_fails_is_a_regression_at_its_line() -> None:
    after = with_value(
        single_map(), "N", 128, outcome="CRASHED", effect=Effect.ABORTING, kind="SIGABRT",
        reason="LLVM ERROR: Invalid basis 128", file="kernels/double.py", line=74,
    )  # fmt: skip
    (found,) = difference(single_map(), after).regressions
    assert (found.kind, found.moves, found.again, found.file, found.line) == (
        "value", {"N": 128}, {"N": 128}, "kernels/double.py", 74,
    )  # fmt: skip
    assert found.after and found.after.compiled and found.after.outcome == "CRASHED"


def test_without_a_line_a_regression_stands_where_its_knob_is_declared() -> None:
    after = with_value(single_map(), "N", 128, outcome="HUNG", effect=Effect.ABORTING)
    (found,) = difference(single_map(), with_knob(after, "N", line=12)).regressions
    assert (found.file, found.line) == ("kernels/double.py", 12)


@pytest.mark.parametrize("outcome", ["unknown", "SKIPPED"])
def test_no_answer_is_no_regression(outcome: str) -> None:
    after = with_value(single_map(), "N", 128, outcome=outcome, effect=Effect.UNKNOWN)
    found = difference(single_map(), after)
    assert found.regressions == ()
    assert found.asked.unknown_after == 1


def test_what_compiled_and_was_not_executed_is_no_regression_and_still_compared() -> None:
    after = with_value(single_map(), "N", 128, outcome="NOT_EXECUTED", effect=Effect.LIVE)
    found = difference(single_map(), after)
    assert (found.regressions, found.asked.unknown_after, found.values) == ((), 0, ())


def test_inert_to_live_and_back_is_a_change_and_no_regression() -> None:
    inert = with_knob(single_map(), "MODE", knob_class=KnobClass.INERT, why="option ignored by the back end")
    for value in (".ca", ".cg"):
        inert = with_value(inert, "MODE", value, effect=Effect.INERT)
    for one, other, turn in ((inert, single_map(), ValueTransition.LIVE), (single_map(), inert, ValueTransition.INERT)):
        found = difference(one, other)
        assert [v.turn for v in found.values] == [turn, turn]
        (knob,) = found.knobs
        assert knob.before and knob.after
        assert {knob.before.knob_class, knob.after.knob_class} == {KnobClass.INERT, KnobClass.LIVE}
        assert found.changed
        assert found.regressions == ()


def test_true_and_one_are_two_values() -> None:
    def of(*values: Value) -> SpaceMap:
        return single_map({"FLAG": values, "M": (1, 2)}, {"FLAG": False, "M": 1}, ())

    (knob,) = difference(of(False, True), of(False, 1)).knobs
    assert (knob.only_before, knob.only_after) == ((True,), (1,))


# ---- knobs ----------------------------------------------------------------------------------------------------------


def test_values_that_are_one_program_are_compared_over_the_values_that_both_tried() -> None:
    one = with_knob(single_map(), "STAGES", equivalent=((1, 2, 4),))
    less = with_knob(single_map({**DOMAINS, "STAGES": (1, 2, 3)}), "STAGES", equivalent=((1, 2),))
    (knob,) = difference(one, less).knobs
    assert (knob.only_before, knob.before and knob.before.one_program) == ((4,), ((1, 2),))
    (knob,) = difference(one, with_knob(one, "STAGES", equivalent=())).knobs
    assert knob.after and knob.after.one_program == ()


def test_a_condition_under_which_a_knob_matters_is_compared() -> None:
    always = Inertness("MODE", "always", "MODE changes the program", 9, 0)
    only = Inertness("MODE", "STAGES = 1", "MODE matters only if STAGES = 1", 3, 6, Member("STAGES", (1,)))
    (knob,) = difference(joint_map(inertness=(only,)), joint_map(inertness=(always,))).knobs
    assert knob.before and knob.after
    assert (knob.before.condition, knob.after.condition) == ("STAGES = 1", "always")
    assert "MODE under other values: it matters only if STAGES = 1 → it matters" in text(
        difference(joint_map(inertness=(only,)), joint_map(inertness=(always,)))
    )


def test_a_knob_that_was_not_compared_everywhere_is_never_said_to_matter() -> None:
    never = Inertness("MODE", "", "MODE changed nothing in 9 comparisons", 0, 9)
    partly = Inertness("MODE", UNCOMPARED, "MODE changed nothing where it was compared", 0, 2)
    assert "MODE under other values: it changed nothing where it was compared → it never matters" in text(
        difference(joint_map(inertness=(partly,)), joint_map(inertness=(never,)))
    )


def test_value_classes_of_a_joint_part_are_what_is_one_program() -> None:
    classes = ValueClasses("STAGES", ((1, 2), (3,), (4,)))
    (knob,) = difference(joint_map(value_classes=(classes,)), joint_map()).knobs
    assert knob.before and knob.after
    assert (knob.before.one_program, knob.after.one_program) == (((1, 2),), ())


def test_a_map_of_single_values_contradicts_no_joint_part() -> None:
    rule = Inertness("MODE", "", "MODE changed nothing in 9 comparisons", 0, 9)
    joint = joint_map(inertness=(rule,), value_classes=(ValueClasses("MODE", ((None, ".ca", ".cg"),)),))
    for one, other, letter in ((joint, single_map(), "B"), (single_map(), joint, "A")):
        found = difference(one, other)
        depths = ("joint", "singles") if letter == "B" else ("singles", "joint")
        assert not found.changed
        assert found.circumstances == (Circumstance("depth", *depths),)
        assert found.notes[-1].startswith(f"{letter} knows one knob at a time only")
        assert found.shared is None


@pytest.mark.parametrize(("fixed", "held", "lost"), [({}, 2, {"M": 128}), ({"STAGES": 1}, 1, {"M": 128, "STAGES": 1})])
def test_a_knob_of_one_map_is_held_where_the_other_map_has_it(fixed: Config, held: Value, lost: Config) -> None:
    asked = (tried({"M": 128}), tried({"M": 128, "STAGES": 1}), tried({"M": 128, "STAGES": 4}))
    one = joint_map(tried=asked, relations=())
    domains = {n: v for n, v in DOMAINS.items() if n != "STAGES"}
    failing = Tried((128, 32, False, None), "CRASHED", "known", reason="SIGABRT: no")
    base = {n: v for n, v in BASELINE.items() if n != "STAGES"}
    other = joint_map(domains=domains, baseline=base, relations=(), tried=(failing,))
    other = with_value(replace(other, recipe=Recipe(fixed=fixed)), "M", 128, outcome="CRASHED", effect=Effect.ABORTING)
    found = difference(one, other)
    (knob,) = [change for change in found.knobs if change.after is None]
    assert (knob.knob, knob.held) == ("STAGES", held)
    moves = {n: v for n, v in lost.items() if n != "STAGES"}
    assert kinds(found) == [("value", moves)]
    assert [item.config["STAGES"] for item in found.regressions] == [held]
    back = difference(other, one)
    assert [flip.lost for flip in back.flips] == [False]


def test_whole_spaces_are_compared_where_the_knob_of_one_map_is_held() -> None:
    without = {n: v for n, v in DOMAINS.items() if n != "STAGES"}
    tile = Compare(Product((KnobTerm("M"), KnobTerm("N"))), Op.AT_MOST, Number(2048))
    base = {n: v for n, v in BASELINE.items() if n != "STAGES"}
    found = difference(joint_map(), joint_map((tile,), domains=without, baseline=base))
    # STAGES is 2: M * N <= 4096 in A, <= 2048 in B, over 16 tiles, 2 flags and 3 modes.
    assert found.shared
    assert (found.shared.signature, found.shared.before, found.shared.after, found.shared.both) == (96, 78, 60, 60)
    assert found.shared.lost_example == {**BASELINE, "M": 32, "N": 128}


def test_maps_without_a_common_knob_are_refused() -> None:
    one = single_map({"A": (1, 2)}, {"A": 1}, ())
    other = single_map({"B": (1, 2)}, {"B": 1}, ())
    with pytest.raises(UsageError, match="no knob in common"):
        difference(one, other)


# ---- baselines ------------------------------------------------------------------------------------------------------


def test_with_other_baselines_values_are_told_and_only_equal_configurations_regress() -> None:
    other = single_map(baseline={**BASELINE, "STAGES": 4})
    # M = 128 with STAGES = 2 is 8192 and passes; with STAGES = 4 it is 16384 and fails.
    found = difference(single_map(), other)
    assert [(v.knob, v.value, v.turn, v.one_configuration) for v in found.values] == [
        ("M", 128, ValueTransition.FAILING, False),
        ("N", 128, ValueTransition.FAILING, False),
    ]
    assert found.regressions == ()
    assert Circumstance("baseline", "STAGES: 2", "STAGES: 4") in found.circumstances
    assert any(note.startswith("the baselines differ") for note in found.notes)
    assert "newly failing: M = 128: Δ live → ↑ NO_RESOURCES, with different baselines" in text(found)


def test_with_other_baselines_what_a_value_changes_is_not_compared() -> None:
    other = with_value(single_map(baseline={**BASELINE, "N": 64}, relations=()), "MODE", ".cg", effect=Effect.INERT)
    found = difference(single_map(relations=()), other)
    assert found.values == ()


def test_a_baseline_that_fails_now_is_the_regression() -> None:
    failing = replace(
        single_map(), outcome="REJECTED", reason="no such layout", line=9, stage="front end", knobs={}, joint=None
    )
    found = difference(joint_map(), failing)
    assert kinds(found) == [("baseline", {})]
    assert (found.regressions[0].file, found.regressions[0].line) == ("kernels/double.py", 9)
    assert found.knobs == found.values == ()
    assert "the baseline fails: REJECTED, no such layout (kernels/double.py:9)" in text(found)
    again = difference(failing, joint_map())
    assert again.regressions == ()
    assert again.changed


# ---- constraints ----------------------------------------------------------------------------------------------------


def test_a_limit_that_moved_is_one_change_with_its_numbers_and_its_direction() -> None:
    count = {limit: sum(holds(budget(limit), c) for c in product(DOMAINS)) for limit in (8192, 16384)}
    found = difference(joint_map((budget(8192),)), joint_map((budget(16384),)))
    assert told(found) == [(ConstraintTransition.LIMIT, Direction.LOOSER, count[16384] - count[8192], 0)]
    assert "limit moved, looser: M * N * STAGES <= 8192 → 16384" in text(found)
    back = difference(joint_map((budget(16384),)), joint_map((budget(8192),)))
    assert told(back) == [(ConstraintTransition.LIMIT, Direction.TIGHTER, 0, count[16384] - count[8192])]


def test_the_limit_of_the_target_behind_a_constraint_is_told_in_bytes() -> None:
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
    assert told(found) == [(ConstraintTransition.GONE, Direction.LOOSER, 96, None)]
    assert found.constraints[0].before and found.constraints[0].before.words == "MODE != .cg"
    assert told(difference(joint_map((BUDGET,)), joint_map((BUDGET, mode)))) == [
        (ConstraintTransition.NEW, Direction.TIGHTER, None, 96)
    ]


def test_the_same_said_otherwise_is_no_change() -> None:
    one, other = Bound("STAGES", Op.AT_MOST, 3), Member("STAGES", (4,), inside=False)
    assert difference(joint_map((one,)), joint_map((other,))).constraints == ()


def test_what_follows_from_the_other_constraints_is_set_aside() -> None:
    """M != 128 is gone, and M <= 32 rules 128 out all the same; the two have different reasons and scopes."""
    gone = AnyOf((Member("M", (128,), inside=False), Member("STAGES", (1,))))
    one = joint_map((gone, Bound("M", Op.AT_MOST, 32)))
    found = difference(one, joint_map((Bound("M", Op.AT_MOST, 32),)))
    assert told(found) == [(ConstraintTransition.GONE, Direction.LOOSER, 0, None)]
    assert "without effect on what both maps tried" in text(found)


def test_another_relation_over_one_knob_is_a_change_and_not_a_loss_beside_a_gain() -> None:
    found = difference(joint_map((Member("M", (16, 32)),)), joint_map((Member("M", (32, 64, 128)),)))
    assert [(c.move, c.direction) for c in found.constraints] == [(ConstraintTransition.OTHER, Direction.SHIFTED)]


def test_what_the_user_demands_is_a_circumstance() -> None:
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


# ---- whole spaces ---------------------------------------------------------------------------------------------------


def test_feasible_spaces_are_counted_against_each_other_with_an_example() -> None:
    found = difference(joint_map((budget(16384),)), joint_map((budget(8192), Member("MODE", (".cg",), inside=False))))
    space = product(DOMAINS)
    before = [c for c in space if holds(budget(16384), c)]
    after = [c for c in space if holds(budget(8192), c) and c["MODE"] != ".cg"]
    assert found.shared == SharedSpace(
        signature=len(space),
        before=len(before),
        after=len(after),
        both=len(after),
        proved=False,
        lost_example={**BASELINE, "MODE": ".cg"},
        gained_example=None,
    )


RELATIONS: list[Relation] = [
    BUDGET,
    budget(4096),
    budget(16384),
    Member("MODE", (".cg",), inside=False),
    Bound("STAGES", Op.AT_MOST, 3),
    AnyOf((Member("FLAG", (False,)), Bound("M", Op.AT_LEAST, 32))),
    Compare(KnobTerm("M"), Op.AT_MOST, KnobTerm("N")),
]
some = st.lists(st.sampled_from(RELATIONS), max_size=4, unique_by=repr)


@settings(deadline=None, max_examples=60)
@given(some, some)
def test_counts_and_directions_are_those_of_the_whole_product(one: list[Relation], other: list[Relation]) -> None:
    space = product(DOMAINS)

    def allowed(relations: list[Relation], config: Config) -> bool:
        return all(holds(relation, config) for relation in relations)

    found = difference(joint_map(one), joint_map(other))
    lost = [c for c in space if allowed(one, c) and not allowed(other, c)]
    gained = [c for c in space if allowed(other, c) and not allowed(one, c)]
    assert found.shared
    assert (found.shared.lost, found.shared.gained) == (len(lost), len(gained))
    assert (found.shared.lost_example in lost) if lost else found.shared.lost_example is None
    assert (found.shared.gained_example in gained) if gained else found.shared.gained_example is None
    for change in found.constraints:
        if change.before:
            assert change.freed == sum(allowed(other, c) and not holds(change.before.relation, c) for c in space)
        if change.after:
            assert change.forbidden == sum(allowed(one, c) and not holds(change.after.relation, c) for c in space)
    back = difference(joint_map(other), joint_map(one)).shared
    assert back and (back.lost, back.gained) == (found.shared.gained, found.shared.lost)
    # No configuration is lost but by a constraint that is told.
    assert not lost or any(change.forbidden for change in found.constraints)


def test_maps_that_each_asked_everything_prove_it() -> None:
    def of(relation: Relation) -> SpaceMap:
        space = joint_map((relation,))
        assert space.joint
        return replace(space, joint=replace(space.joint, enumerated=True))

    found = difference(of(budget(8192)), of(budget(16384)))
    assert found.shared and found.shared.proved


def test_too_entangled_constraints_are_compared_and_not_counted() -> None:
    domains = {f"K{i}": tuple(range(1, 12)) for i in range(8)}
    baseline = dict.fromkeys(domains, 1)
    whole = tuple(Compare(Product(tuple(map(KnobTerm, domains))), Op.AT_MOST, Number(n)) for n in (64, 128))
    one, other = (joint_map((relation,), domains=domains, baseline=baseline) for relation in whole)
    found = difference(one, other)
    assert found.shared is None
    assert told(found) == [(ConstraintTransition.LIMIT, None, None, None)]


def test_counts_are_those_of_the_maps() -> None:
    def of(feasible: int | None) -> SpaceMap:
        space = joint_map()
        assert space.joint
        return replace(space, joint=replace(space.joint, sizes=Sizes(384, feasible, feasible)))

    found = difference(of(300), of(320))
    programs = SpaceCount("distinct programs", 300, 320, before_at_most=True, after_at_most=True)
    assert found.counts[1:3] == (SpaceCount("feasible configurations", 300, 320), programs)
    assert found.changed
    assert ("distinct programs", "at most 300", "at most 320") in list(spaces.counts(found))


# ---- combinations ---------------------------------------------------------------------------------------------------


def test_a_combination_that_passed_and_fails_is_a_regression_compiled_or_not() -> None:
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


def test_what_was_only_predicted_to_pass_is_no_regression() -> None:
    moves: Config = {"M": 64, "N": 64}
    failing = joint_map((), tried=(tried(moves, "CRASHED"),))
    found = difference(joint_map(()), failing)
    assert found.regressions == ()
    assert [(flip.lost, flip.before.compiled) for flip in found.flips] == [(True, False)]
    assert "were only predicted to pass in A (1)" in text(found)


def test_the_same_configuration_is_told_once_however_often_the_maps_name_it() -> None:
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


def test_nvidia_tells_spills_in_bytes() -> None:
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


def test_a_program_that_passes_and_is_no_longer_handed_over_is_a_regression() -> None:
    programs = (({"M": 64}, "a", used(occupancy=2)),)
    other = with_programs(joint_map(()), ({"M": 64}, "b", used(occupancy=0)))
    (found,) = difference(with_programs(joint_map(()), *programs), other).regressions
    assert (found.kind, found.moves) == ("program", {"M": 64})
    assert "not one work-group fits" in found.why


# ---- circumstances --------------------------------------------------------------------------------------------------


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


def test_a_failure_on_a_device_is_no_regression_if_one_map_was_not_executed() -> None:
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


def test_a_baseline_that_fails_on_a_device_alone_is_no_regression_either() -> None:
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


# ---- committed maps -------------------------------------------------------------------------------------------------


def committed(name: str) -> SpaceMap:
    return codec.read_map(REPOSITORY / "reports" / name)


def test_one_gemm_on_cdna3_and_cdna4() -> None:
    found = difference(committed("cdna3/gemm_bf16.gfx942.json"), committed("cdna3/gemm_bf16.gfx950.json"))
    assert [(c.name, c.before, c.after) for c in found.circumstances][:2] == [
        ("target", "gfx942", "gfx950"),
        ("baseline", "NUM_BUFFERS: 2", "NUM_BUFFERS: 3"),
    ]
    assert [(v.knob, v.value, v.turn, v.one_configuration) for v in found.values] == [
        ("BLOCK_M", 256, ValueTransition.PASSING, False),
        ("BLOCK_N", 256, ValueTransition.PASSING, False),
        ("NUM_BUFFERS", 3, ValueTransition.PASSING, True),
        ("NUM_BUFFERS", 4, ValueTransition.PASSING, True),
    ]
    assert [(k.knob, k.only_after) for k in found.knobs] == [("NUM_BUFFERS", (6,))]
    assert found.regressions == ()


def test_the_lds_of_cdna3_and_cdna4_in_the_two_gemms_that_were_written_for_them() -> None:
    found = difference(committed("cdna3/gemm_bf16.gfx942.json"), committed("cdna4/gemm_bf16.gfx950.json"))
    moved: list[ConstraintChange] = [c for c in found.constraints if c.move is ConstraintTransition.LIMIT]
    assert [(c.before and c.before.words, c.after and c.after.words, c.budget) for c in moved] == [
        (
            "(BLOCK_M + BLOCK_N) * BLOCK_K * NUM_BUFFERS <= 32768",
            "(BLOCK_M + BLOCK_N) * BLOCK_K * NUM_BUFFERS <= 81920",
            Budget("bytes of shared memory", 65_536, 163_840),
        )
    ]
    assert found.formula and (found.formula.before_limit, found.formula.after_limit) == (65_536, 163_840)
    assert found.shared and found.shared.gained == moved[0].freed
    assert found.shared.lost == sum(c.forbidden or 0 for c in found.constraints if c.move is ConstraintTransition.NEW)


# ---- the command ----------------------------------------------------------------------------------------------------


def written(folder: Path, *spaces: SpaceMap) -> list[str]:
    paths = [folder / name for name in NAMES]
    for path, space in zip(paths, spaces, strict=True):
        codec.write(path, codec.dumps(space))
    return [str(path) for path in paths]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["diff", *arguments])


LOST = with_value(single_map(), "N", 128, outcome="CRASHED", effect=Effect.ABORTING, kind="SIGABRT", reason="died")
LIVE = with_value(single_map(), "MODE", ".cg", effect=Effect.INERT)


@pytest.mark.parametrize(
    ("other", "fail_on", "code"),
    [
        (LOST, (), 0),
        (LOST, ("--fail-on", "regression"), 1),
        (LOST, ("--fail-on", "change"), 1),
        (LIVE, ("--fail-on", "regression"), 0),
        (LIVE, ("--fail-on", "change"), 1),
        (single_map(), ("--fail-on", "change"), 0),
        (replace(single_map(), triton="3.6.0"), ("--fail-on", "change"), 0),
    ],
)
def test_the_exit_code_is_1_only_where_it_was_asked_for(
    tmp_path: Path, other: SpaceMap, fail_on: tuple[str, ...], code: int
) -> None:
    result = run(*written(tmp_path, single_map(), other), *fail_on)
    assert result.exit_code == code, result.output


def test_a_map_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schema": "gluonmap.map/9"}')
    result = run(str(tmp_path / "a.json"), str(tmp_path / "a.json"))
    assert result.exit_code == 2
    assert "gluonmap.map/9" in result.output


def test_a_map_from_before_the_source_was_recorded_is_read(tmp_path: Path) -> None:
    document = json.loads(codec.dumps(single_map()))
    del document["source"]
    (tmp_path / "a.json").write_text(json.dumps(document))
    result = run(str(tmp_path / "a.json"), str(tmp_path / "a.json"))
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "A → B: No difference.")


def test_json_holds_all_of_it(tmp_path: Path) -> None:
    paths = written(tmp_path, single_map(), LOST)
    document = json.loads(run(*paths, "--json").output)
    assert document == json.loads(run(*paths, "--format", "json").output)
    assert (document["schema"], document["A"], document["B"], document["changed"]) == ("gluonmap.diff/1", *paths, True)
    (regression,) = document["regressions"]
    assert (regression["kind"], regression["moves"]) == ("value", {"N": 128})
    (value,) = document["values"]
    assert (value["turn"], value["before"]["outcome"], value["after"]["kind"]) == ("newly aborting", "PASS", "SIGABRT")


def test_text_says_which_map_is_which_and_what_to_run_next(tmp_path: Path) -> None:
    paths = written(tmp_path, single_map(), LOST)
    said = run(*paths).output
    assert said.startswith(f"A  {paths[0]}: double on gfx950 (cdna4), Triton 3.9.0\nB  {paths[1]}: ")
    assert "A → B: Regression: 1 value fails. 1 value newly aborting." in " ".join(said.split())
    assert "newly aborting: N = 128: Δ live → ✗ CRASHED SIGABRT" in said
    assert f"gluonmap explain {paths[1]} N=128" in said


HOSTILE = "\x1b[31mred\x1b[0m <b>|`*_x_ & \u202e"


def test_texts_of_compilers_act_on_no_terminal_and_no_page() -> None:
    after = with_value(single_map(), "N", 128, outcome="CRASHED", effect=Effect.ABORTING, kind=HOSTILE, reason=HOSTILE)
    found = difference(single_map(), replace(after, triton=HOSTILE))
    for shown in (text(found), render_markdown(found, NAMES)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    page = render_markdown(found, NAMES)
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


@pytest.mark.parametrize("width", [20, 60, 200])
def test_at_any_width_nothing_is_cut(width: int) -> None:
    found = difference(single_map(), LOST)
    assert "SIGABRT" in text(found, width).replace("\n", "").replace(" ", "")


def test_on_github_each_regression_stands_at_its_line_and_the_page_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    lost = with_value(LOST, "N", 128, file="kernels/double.py", line=74)
    paths = written(tmp_path, single_map(), lost)
    for arguments, level in (((), "warning"), (("--fail-on", "regression"), "error")):
        result = run(*paths, "--json", *arguments)
        (line,) = result.stderr.splitlines()
        assert line.startswith(
            f"::{level} file=kernels/double.py,line=74,title=gluonmap diff%3A regression::N=128: "
            "passed, and now fails: CRASHED, died (kernels/double.py:74)"
        )
        json.loads(result.stdout)
    assert page.read_text().count("# `double`: A → B") == 2


# ---- the page -------------------------------------------------------------------------------------------------------


def page_of(one: SpaceMap, other: SpaceMap, names: tuple[str, str] = NAMES) -> Element:
    return read(diff_page.render(difference(one, other), names))


def rows_of(table: Element) -> list[list[str]]:
    return [[flat(cell.text) for cell in row.inside] for row in table.all("tr")]


def test_the_page_says_the_verdict_first_and_what_it_rests_on() -> None:
    page = page_of(*compared())
    (head,) = page.all("header", "head")
    assert flat(head.all("h1")[0].text) == "double on gfx950 (cdna4), Triton 3.9.0 → 3.6.0"
    assert [flat(item.text) for item in head.all("dd")] == [
        "a.json: double on gfx950 (cdna4), Triton 3.9.0",
        "b.json: double on gfx950 (cdna4), Triton 3.6.0",
    ]
    verdict, changes, basis = (flat(item.text) for item in head.all("p"))
    assert verdict == (
        "▲ Regressions: 3 values fail, 1 program is no longer handed over, spills grew in 1 program and registers grew "
        "in 1 program."
    )
    assert changes.startswith("2 values newly aborting, 1 value newly failing, 1 value newly inert")
    assert basis == (
        "16 configurations asked for both: 13 passed both; 3 changed sides. Of 3 programs known in both, 1 are the "
        "same code. Of 3 pairs of programs, VGPR grew in 1 and fell in 1; spills grew in 1."
    )
    anchors = [section.attributes.get("aria-labelledby") for section in page.all("section")]
    assert anchors[1:] == [
        "circumstances",
        "mind",
        "regressions",
        "values",
        "knobs",
        "constraints",
        "resources",
        "evidence",
    ]


def test_both_spaces_stand_side_by_side_on_one_scale() -> None:
    def of(feasible: int, programs: int) -> SpaceMap:
        space = joint_map()
        assert space.joint
        return replace(space, joint=replace(space.joint, sizes=Sizes(1000, feasible, programs)))

    page = page_of(of(100, 10), of(1000, 100))
    (funnel,) = page.all("section", "funnel")
    assert rows_of(funnel.all("table")[0]) == [
        ["signature", "A", "1,000", "", ""],
        ["B", "1,000", "", ""],
        ["feasible", "A", "100", "10%", ""],
        ["B", "1,000", "100%", ""],
        ["programs", "A", "10", "at most, 10%", ""],
        ["B", "100", "at most, 10%", ""],
    ]
    widths = [fill.attributes["style"] for fill in funnel.all("span", "fill")]
    assert widths == [f"width:{width}%" for width in (100.0, 100.0, 66.67, 100.0, 33.33, 66.67)]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(61, 62, "SGPR 61 → 62"), (60, 66, "SGPR 60 → 66 (1.1 ×)"), (0, 9, "SGPR 0 → 9"), (9, 3, "SGPR 9 → 3")],
)
def test_growth_that_is_hardly_any_is_no_factor(before: int, after: int, told: str) -> None:
    found = difference(joint_map(), joint_map())
    assert grew(found, Growth({}, "sgpr", before, after)) == told


def test_a_sentence_does_not_begin_with_a_knob_whose_name_it_would_capitalise() -> None:
    found = replace(difference(joint_map(), joint_map()), knobs=(KnobChange("schedule_hint", None, None),))
    assert headline(found) == "No regression. 1 knob turned by one map only (schedule_hint)."


def test_what_only_one_map_allows_is_a_part_of_the_whole() -> None:
    page = page_of(joint_map((Bound("STAGES", Op.AT_MOST, 2),)), joint_map((Bound("STAGES", Op.AT_LEAST, 2),)))
    assert [flat(part.text) for part in page.all("p", "partnames")[0].inside] == [
        "− 96 in A only", "= 96 in both", "+ 192 in B only",
    ]  # fmt: skip
    assert [part.attributes["style"] for part in page.all("span", "part")] == [
        "width:25.0%",
        "width:25.0%",
        "width:50.0%",
    ]


def test_regressions_are_listed_by_cause_with_the_command_that_looks_closer() -> None:
    told = section(page_of(*compared()), "regressions")
    assert [flat(item.text) for item in told.all("ul", "statements")[0].inside] == [
        "2 configurations fail, the nearest to A's baseline M=128: CRASHED, died (kernels/double.py:7) "
        "each compiled for B",
        "MODE=.cg fails: NO_RESOURCES compiled for B",
        "M=64, N=64 is no longer handed over: 376 registers spill, more than a thread has",
        "spills 42 → 376 (9.0 ×) at M=64, N=64",
        "VGPR 64 → 128 (2.0 ×) at M=64, N=64",
    ]
    heads, *rows = rows_of(told.all("table")[0])
    assert heads == ["#", "what", "M", "N", "MODE", "A hands it over", "in B"]
    assert rows[-1] == ["6", "registers", "64", "64", "None", "yes", "VGPR 64 → 128 (2.0 ×)"]
    assert flat(told.all("code", "command")[0].text) == "gluonmap explain b.json M=128"


def test_a_value_is_a_cell_of_two_halves_that_opens_what_both_maps_know() -> None:
    told = section(page_of(*compared()), "values")
    cells = [(flat(cell.text), cell.attributes["aria-label"]) for cell in told.all("button", "cell")]
    assert cells[0] == ("128Δ→✗ SIGABRT", "128, A live, B crashed SIGABRT")
    assert cells[-1] == ("TrueΔ→○", "True, A live, B inert")
    tones = [mark.attributes["class"].split()[-1] for mark in told.all("button", "cell")[0].all("span", "mark")]
    assert tones == ["t-live", "t-crashed"]
    opened = told.identified(told.all("button", "cell")[0].attributes["aria-controls"])
    was, now = (flat(side.text) for side in opened.all("dl"))
    assert was == "outcome PASS effect live"
    assert now == "outcome CRASHED SIGABRT reason died kernel line kernels/double.py:7"
    assert [flat(turn.text) for turn in told.all("span", "turn")] == [
        "newly aborting", "newly aborting", "newly failing", "newly inert",
    ]  # fmt: skip
    assert flat(told.all("p", "legend")[0].text) == "○ inert Δ live ✗ crashed ↑ over a resource limit"


def test_knobs_stand_with_both_classes() -> None:
    rows = rows_of(section(page_of(*compared()), "knobs").all("table")[0])
    assert rows[1:] == [["FLAG", "live", "inert", "live → inert A: by hand B: by hand"]]


def test_constraints_say_how_they_moved_and_what_without_effect_is_folded_away() -> None:
    gone = AnyOf((Member("M", (128,), inside=False), Member("STAGES", (1,))))
    one = joint_map((gone, Bound("M", Op.AT_MOST, 32), budget(16384)))
    told = section(page_of(one, joint_map((Bound("M", Op.AT_MOST, 32), budget(8192)))), "constraints")
    first, folded = told.all("ul", "relations")
    assert flat(first.inside[0].text).startswith("limit moved, tighter M * N * STAGES <= 16384 → 8192")
    assert flat(told.all("summary")[0].text).startswith("1 without effect on what both maps tried")
    assert flat(folded.inside[0].text).startswith("gone M != 128 or STAGES = 1")


def test_resources_are_tables_that_sort_by_growth() -> None:
    summary, pairs = section(page_of(*compared()), "resources").all("table")
    assert rows_of(summary)[1:] == [["VGPR", "1", "1", "64 → 128", "90 → 80"], ["spills", "1", "0", "42 → 376 ▲", "–"]]
    heads, *rows = rows_of(pairs)
    assert heads == ["N", "VGPR", "spills"]
    assert rows == [["64", "64 → 128", "42 → 376 ▲"], ["16", "90 → 80", "0"]]
    by = [[cell.attributes.get("data-by") for cell in row.all("td", "num")] for row in pairs.all("tr")[1:]]
    assert by == [["64", "334"], ["-10", "0"]]
    assert "sortable" in pairs.attributes["class"]


def test_a_long_list_of_pairs_is_cut_and_keeps_those_that_spill_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_changes, "MOST_ROWS", 1)
    told = section(page_of(*compared()), "resources")
    assert rows_of(told.all("table")[1])[1:] == [["64", "64 → 128", "42 → 376 ▲"]]
    assert "1 of 2 pairs, those that spill more first; the JSON has all." in flat(told.text)


def test_maps_that_say_the_same_make_a_page_that_says_so() -> None:
    page = page_of(joint_map(), joint_map())
    assert flat(page.all("p", "sentence")[0].text) == "No difference."
    assert [link.attributes["href"] for link in page.all("nav")[0].all("a")] == ["#evidence"]
    again = page_of(joint_map(), replace(joint_map(), triton="3.6.0"))
    assert flat(again.all("p", "sentence")[0].text) == "No difference but the circumstances."
    assert rows_of(again.all("table", "circumstances")[0])[1:] == [["Triton", "3.9.0", "3.6.0"]]


def test_a_baseline_that_fails_and_maps_of_single_values_make_a_page() -> None:
    failing = replace(single_map(), outcome="REJECTED", reason="no such layout", knobs={}, stage="front end")
    page = page_of(single_map(), failing)
    assert flat(page.all("p", "sentence")[0].text) == "▲ Regression: the baseline fails."
    assert "Neither map knows all knobs together" in flat(page.text)


def test_texts_of_others_become_nothing_but_text_on_the_page() -> None:
    plain, hostile = (page_of(*with_texts(said), (said, said)) for said in ("x", HOSTILE_MARKUP))
    assert [element.tag for element in hostile.all()] == [element.tag for element in plain.all()]
    assert hostile.text.count(visible(HOSTILE_MARKUP)) > 8
    assert not any(c in hostile.text for c in "\x1b\x00\u202e")


PAIRS = (
    ("cdna3/gemm_bf16.gfx942.json", "cdna4/gemm_bf16.gfx950.json"),
    ("cdna4/gemm_bf16.gfx950.json", "cdna4/gemm_mxfp4.gfx950.json"),
    ("rmsnorm.gfx942.json", "rmsnorm.gfx950.json"),
    ("rmsnorm.gfx942.json", "rmsnorm.sm_90.json"),
)


@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_pages_of_committed_maps_are_well_formed_and_small(names: tuple[str, str]) -> None:
    data = diff_page.render(difference(*map(committed, names)), names)
    page = read(data)
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    wanted = [e.attributes[n] for e in page.all() for n in ("aria-controls", "aria-labelledby") if n in e.attributes]
    wanted += [link.attributes["href"].removeprefix("#") for link in page.all("nav")[0].all("a")]
    assert set(wanted) <= set(ids)
    assert len(data) < 300_000


def test_the_same_maps_give_the_same_bytes_under_another_hash_seed() -> None:
    program = f"""if True:
        import hashlib, pathlib
        from gluonmap.model import codec
        from gluonmap.diff.comparison import difference
        from gluonmap.report.html import diff_page
        for names in {PAIRS}:
            found = difference(*(codec.read_map(pathlib.Path("reports") / name) for name in names))
            print(hashlib.sha256(diff_page.render(found, names)).hexdigest())
    """
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    here = [diff_page.render(difference(*map(committed, names)), names) for names in PAIRS]
    assert told.stdout.split() == [hashlib.sha256(data).hexdigest() for data in here]


@pytest.mark.parametrize("form", ["html", "markdown", "json", "text"])
def test_out_writes_what_is_printed_without_it(tmp_path: Path, form: str) -> None:
    paths = written(tmp_path, *compared())
    printed = run(*paths, "--format", form)
    assert printed.exit_code == 0, printed.output
    result = run(*paths, "--format", form, "--out", str(tmp_path / "told"), "--fail-on", "regression")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"gluonmap: {tmp_path / 'told'} written\n"
    assert (tmp_path / "told").read_text() == printed.stdout
    if form == "html":
        assert printed.stdout.startswith("<!doctype html>")


# ---- the real thing -------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_kernel_built_to_differ_between_cdna3_and_cdna4(project: Project) -> None:
    kernel = project.kernel("differing")
    project.write(
        "probes/differing.py",
        'KNOBS = {"BUFFERS": [2, 6, 12], "SCALE": [1, 2], "WIDTH": [4, 8]}\n'
        'BASELINE = {"BUFFERS": 2, "SCALE": 1, "WIDTH": 4}\nARGS = {"x": "*fp16", "y": "*fp16"}\n',
    )
    done = project.run("probe", kernel, "-t", "cdna3,cdna4", "--depth", "joint", "--quiet")
    assert done.code == 0, done.stderr
    maps = "reports/differing.gfx942.json", "reports/differing.gfx950.json"
    sources = [json.loads((project.root / path).read_text())["source"] for path in maps]
    assert sources[0] == sources[1]
    assert list(sources[0]) == ["differing.py"]
    compared = project.run("diff", *maps, "--json", "--fail-on", "regression")
    found = json.loads(compared.stdout)
    assert compared.code == 1
    assert found["circumstances"] == [{"name": "target", "before": "gfx942", "after": "gfx950"}]
    assert [(v["knob"], v["value"], v["turn"]) for v in found["values"]] == [
        ("WIDTH", 8, "newly failing"),
        ("BUFFERS", 6, "newly passing"),
        ("SCALE", 2, "newly live"),
    ]
    classes = {k["knob"]: (k["before"]["class"], k["after"]["class"]) for k in found["knobs"]}
    assert classes == {"BUFFERS": ("pinned", "bounded"), "SCALE": ("inert", "live"), "WIDTH": ("live", "pinned")}
    assert {(r["kind"], r["moves"]["WIDTH"], r["file"], r["line"]) for r in found["regressions"]} == {
        ("value", 8, "kernels/differing.py", 15),
        ("combination", 8, "kernels/differing.py", 15),
    }
    # BUFFERS = 2 or 6 with SCALE and WIDTH free; on gfx942 no 6, on gfx950 no WIDTH = 8.
    shared = found["shared"]
    assert (shared["before"], shared["after"], shared["both"], shared["proved"]) == (4, 4, 2, True)
    moved = [c["budget"] for c in found["constraints"] if c["budget"]]
    assert moved == [{"unit": "bytes of shared memory", "before": 65_536, "after": 163_840}]
    assert project.run("diff", maps[0], maps[0], "--fail-on", "change").code == 0
