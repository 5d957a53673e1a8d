"""Changes of single values and of knobs."""

from __future__ import annotations

import pytest
from compared_maps import kinds, text, with_knob, with_value
from maps import BASELINE, DOMAINS, joint_map, single_map, tried
from msgspec.structs import replace

from gluonmap.diff.circumstances import Circumstance
from gluonmap.diff.comparison import difference
from gluonmap.diff.knobs import ValueTransition
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import UNCOMPARED, Inertness, Tried, ValueClasses
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.relations import Compare, KnobTerm, Member, Number, Op, Product
from gluonmap.model.space_map import Recipe, SpaceMap


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
def test_changes_of_a_value(
    before: tuple[str, Effect], after: tuple[str, Effect], turn: ValueTransition | None
) -> None:
    one, other = (with_value(single_map(), "MODE", ".cg", outcome=o, effect=e, kind="x") for o, e in (before, after))
    found = difference(one, other)
    assert [(v.knob, v.value, v.turn, v.one_configuration) for v in found.values] == (
        [("MODE", ".cg", turn, True)] if turn else []
    )


def test_another_kind_is_a_change_and_another_wording_is_not() -> None:
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


def test_without_a_line_a_regression_is_at_its_knobs_declaration() -> None:
    after = with_value(single_map(), "N", 128, outcome="HUNG", effect=Effect.ABORTING)
    (found,) = difference(single_map(), with_knob(after, "N", line=12)).regressions
    assert (found.file, found.line) == ("kernels/double.py", 12)


@pytest.mark.parametrize("outcome", ["unknown", "SKIPPED"])
def test_no_answer_is_no_regression(outcome: str) -> None:
    after = with_value(single_map(), "N", 128, outcome=outcome, effect=Effect.UNKNOWN)
    found = difference(single_map(), after)
    assert found.regressions == ()
    assert found.asked.unknown_after == 1


def test_a_compile_that_was_not_executed_is_no_regression() -> None:
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


def test_equivalent_values_are_compared_over_the_common_values() -> None:
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


def test_a_knob_that_was_not_compared_everywhere_has_its_own_words() -> None:
    never = Inertness("MODE", "", "MODE changed nothing in 9 comparisons", 0, 9)
    partly = Inertness("MODE", UNCOMPARED, "MODE changed nothing where it was compared", 0, 2)
    assert "MODE under other values: it changed nothing where it was compared → it never matters" in text(
        difference(joint_map(inertness=(partly,)), joint_map(inertness=(never,)))
    )


def test_value_classes_of_a_joint_part_are_the_equivalent_values() -> None:
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
