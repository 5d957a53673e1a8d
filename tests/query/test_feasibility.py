"""What a map says of a configuration: the compile where there was one, else the constraints, else honestly nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps import BASELINE, BUDGET, DOMAINS, constraint, joint_map, product, single_map, tried
from msgspec.structs import replace

from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Stage
from gluonmap.model.errors import UnknownKnob
from gluonmap.model.joint_map import Standing, Unstable, Verified
from gluonmap.model.outcomes import Feasibility, Outcome
from gluonmap.model.relations import AnyOf, Compare, KnobTerm, Member, Nogood, Number, Op, Product, Relation, Written
from gluonmap.model.verdict import Fault, Program, Resources, Verdict
from gluonmap.query.feasibility import Basis, Judge, complete, judgement_of


def of(space: Any, **moves: Any) -> tuple[str, str]:
    found = judgement_of(space, complete(space, moves))
    return found.verdict.value, found.basis.value


# ---- completing -----------------------------------------------------------------------------------------------------


def test_unnamed_knobs_have_the_baselines_value_in_signature_order() -> None:
    found = complete(single_map(), {"MODE": ".cg", "N": 64})
    assert list(found.items()) == [("M", 32), ("N", 64), ("STAGES", 2), ("FLAG", False), ("MODE", ".cg")]


def test_a_name_that_is_no_knob_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownKnob, match=r"has no knob 'STAGE' \(it has FLAG, M, .*Did you mean STAGES\?"):
        complete(single_map(), {"STAGE": 2})


def test_a_parameter_that_is_fixed_is_refused_with_its_reason() -> None:
    space = replace(single_map(), fixed={"SPLIT": "4: derived, cdiv(K, M)"})
    with pytest.raises(UnknownKnob, match="SPLIT is no knob here: 4: derived, cdiv"):
        complete(space, {"SPLIT": 2})


# ---- one knob at a time ---------------------------------------------------------------------------------------------


def test_a_map_without_a_joint_part_knows_single_moves_only() -> None:
    space = single_map(relations=[Compare(KnobTerm("M"), Op.AT_MOST, Number(64))])
    assert of(space) == ("feasible", "compiled")
    assert of(space, M=64) == ("feasible", "compiled")
    assert of(space, M=128) == ("infeasible", "compiled")
    assert of(space, M=256) == ("unknown", "never tried value")
    assert of(space, M=64, N=64) == ("unknown", "no joint map and more than one knob moved")
    assert judgement_of(space, complete(space, {"M": 256})).untried == {"M": 256}


def test_a_baseline_that_fails_is_known_to() -> None:
    space = replace(single_map(), outcome="CRASHED", reason="LLVM ERROR: no", file="k.py", line=7, knobs={})
    found = judgement_of(space, space.baseline)
    assert (found.verdict, found.outcome, found.reason, found.line) == (
        "infeasible",
        "CRASHED",
        "LLVM ERROR: no",
        "k.py:7",
    )
    assert of(space, M=64) == ("unknown", "never tried value")


@pytest.mark.parametrize(
    ("name", "value"), [("FLAG", 0), ("FLAG", 1), ("STAGES", True), ("STAGES", 2.0), ("MODE", "None"), ("M", "32")]
)
def test_values_that_python_takes_for_equal_are_distinguished(name: str, value: Any) -> None:
    assert of(single_map(), **{name: value}) == ("unknown", "never tried value")
    assert of(joint_map(), **{name: value}) == ("unknown", "never tried value")


def test_minus_zero_is_not_zero() -> None:
    domains = {"SCALE": (0.0, 1.0)}
    space = single_map(domains, {"SCALE": 1.0}, ())
    assert of(space, SCALE=0.0) == ("feasible", "compiled")
    assert of(space, SCALE=-0.0) == ("unknown", "never tried value")


# ---- all knobs together ---------------------------------------------------------------------------------------------


def test_constraints_predict_unasked_configurations() -> None:
    space = joint_map()
    assert of(space, M=64, N=64) == ("feasible", "predicted")
    assert of(space, M=128, N=64) == ("infeasible", "predicted")
    assert [c.words for c in judgement_of(space, complete(space, {"M": 128, "N": 64})).broken] == [
        "M * N * STAGES <= 8192"
    ]


def test_a_compile_wins_over_the_constraints_and_the_disagreement_is_said() -> None:
    space = joint_map(
        tried=[
            tried({"M": 128, "N": 64}, "PASS"),
            tried({"M": 64, "N": 64}, "CRASHED", reason="LLVM ERROR: hm", line="double.py:8"),
            tried({"M": 128, "N": 128}, "NO_RESOURCES"),
        ]
    )
    passes = judgement_of(space, complete(space, {"M": 128, "N": 64}))
    assert (passes.verdict, passes.basis, passes.contradicts) == ("feasible", "compiled", True)
    assert [c.words for c in passes.broken] == ["M * N * STAGES <= 8192"]
    fails = judgement_of(space, complete(space, {"M": 64, "N": 64}))
    assert (fails.verdict, fails.contradicts, fails.broken) == ("infeasible", True, ())
    assert (fails.outcome, fails.reason, fails.line) == ("CRASHED", "LLVM ERROR: hm", "double.py:8")
    assert judgement_of(space, complete(space, {"M": 128, "N": 128})).contradicts is False


def test_implied_and_unconfirmed_constraints_are_shown_only_alone() -> None:
    doubted = replace(constraint(Compare(KnobTerm("M"), Op.AT_MOST, Number(64)), Standing.READ), confirmed=False)
    implied = constraint(Compare(KnobTerm("N"), Op.AT_MOST, Number(64)), Standing.IMPLIED)
    both = [doubted, constraint(BUDGET), implied, constraint(BUDGET)]
    config = {**BASELINE, "M": 128, "N": 128}
    found = judgement_of(joint_map(relations=(), constraints=both), config)
    assert (len(found.broken), [c.words for c in found.shown_constraints]) == (4, ["M * N * STAGES <= 8192"])
    found = judgement_of(joint_map(relations=(), constraints=[doubted, implied]), config)
    assert [c.words for c in found.shown_constraints] == ["M <= 64", "N <= 64"]


def test_a_single_move_keeps_the_answer_of_the_screen() -> None:
    space = joint_map(tried=[tried({"M": 64}, "PASS", digest="joint")])
    assert of(space, M=64) == ("feasible", "compiled")
    assert of(space, M=128) == ("feasible", "compiled")


def test_a_restriction_makes_infeasible_and_says_nothing_of_the_compiler() -> None:
    ban = constraint(Compare(KnobTerm("M"), Op.AT_MOST, Number(64)), Standing.GIVEN)
    space = joint_map(relations=(), constraints=[ban], tried=[tried({"M": 128, "N": 64}, "PASS")])
    assert of(space, M=128, N=16) == ("infeasible", "predicted")
    assert of(space, M=4096) == ("infeasible", "predicted")
    compiled = judgement_of(space, complete(space, {"M": 128, "N": 64}))
    assert (compiled.verdict, compiled.contradicts, compiled.forbidden) == ("feasible", False, True)


def test_an_untried_value_is_unknown_and_its_broken_constraints_are_named() -> None:
    found = judgement_of(joint_map(), complete(joint_map(), {"M": 4096}))
    assert (found.verdict, found.basis, found.untried) == ("unknown", "never tried value", {"M": 4096})
    assert len(found.broken) == 1


def test_constraints_are_not_asked_about_values_of_another_kind() -> None:
    found = judgement_of(joint_map(), complete(joint_map(), {"M": "x" * 10, "N": 10**18}))
    assert (found.verdict, found.broken) == ("unknown", ())
    assert judgement_of(joint_map(), complete(joint_map(), {"STAGES": None})).broken == ()


def test_a_value_of_the_domain_that_no_answer_has_is_not_predicted() -> None:
    space = joint_map(domains={**DOMAINS, "M": (16, 32, 64, 128, 256)})
    knob = replace(space.knobs["M"], values=space.knobs["M"].values[:4])
    assert of(replace(space, knobs={**space.knobs, "M": knob}), M=256, N=16) == ("unknown", "never tried value")


def test_a_configuration_answered_in_two_ways_is_unknown() -> None:
    torn = Unstable({**BASELINE, "M": 64}, ("PASS", "CRASHED"))
    space = joint_map(tried=[tried({"M": 64}, "PASS")], unstable=[torn])
    assert of(space, M=64) == ("unknown", "unstable")
    assert {**BASELINE, "M": 64} not in list(Judge(space).passing())


def test_no_answer_is_unknown_and_a_hang_is_infeasible() -> None:
    lost, hung = {**BASELINE, "M": 64, "N": 64}, {**BASELINE, "M": 64, "N": 16}
    space = joint_map(
        tried=[tried({"M": 64, "N": 64}, "unknown", reason="the server was lost"), tried({"M": 64, "N": 16}, "HUNG")],
        unknown=[lost, hung, {**BASELINE, "M": 16, "N": 16}],
    )
    found = judgement_of(space, lost)
    assert (found.verdict, found.basis, found.reason) == ("unknown", "no answer", "the server was lost")
    assert of(space, M=16, N=16) == ("unknown", "no answer")
    stuck = judgement_of(space, hung)
    assert (stuck.verdict, stuck.basis, stuck.outcome, stuck.contradicts) == ("infeasible", "compiled", "HUNG", False)


def test_a_tried_configuration_has_the_verified_program_and_its_resources() -> None:
    space = joint_map(
        tried=[tried({"M": 64, "N": 64}, digest="launch1"), tried({"M": 64, "N": 64, "FLAG": True}, digest="launch1")]
    )
    assert space.joint
    programs = (
        Verified({**BASELINE, "M": 64, "N": 64}, "program1", Resources(256, 1024)),
        Verified({**BASELINE, "M": 64, "N": 16}, "program2", Resources(256, 512)),
    )
    space = replace(space, joint=replace(space.joint, programs=programs))
    found = judgement_of(space, complete(space, {"M": 64, "N": 64, "FLAG": True}))
    assert (found.digest, found.resources) == ("program1", Resources(256, 1024))
    only_verified = judgement_of(space, complete(space, {"M": 64, "N": 16}))
    assert (only_verified.basis, only_verified.digest) == ("compiled", "program2")


# ---- fresh answers --------------------------------------------------------------------------------------------------


def test_a_fresh_answer_is_compared_with_the_constraints() -> None:
    judged = Judge(joint_map())
    config = {**BASELINE, "M": 128, "N": 64}
    passed = Verdict(Outcome.PASS, Stage.COMPILE, 0, program=Program("d" * 20, "c"))
    found = judged.judgement_of_answer(config, passed)
    assert (found.verdict, found.basis, found.contradicts, found.digest) == ("feasible", "compiled", True, "d" * 20)
    lost = judged.judgement_of_answer(config, Fault("the fork server was lost"))
    assert (lost.verdict, lost.basis, lost.reason) == ("unknown", "no answer", "the fork server was lost")


# ---- agreement with the relations -----------------------------------------------------------------------------------

RELATIONS: list[Relation] = [
    BUDGET,
    Compare(Product((KnobTerm("M"), KnobTerm("N"))), Op.AT_LEAST, Number(512)),
    AnyOf((Member("FLAG", (False,)), Member("MODE", (None, ".cg")))),
    Nogood((("FLAG", True), ("STAGES", 1))),
    Nogood((("MODE", None), ("M", 128))),
    Written("M * STAGES <= 256 or MODE == '.ca'"),
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(RELATIONS), unique_by=id, max_size=4), st.data())
def test_predictions_are_the_relations(chosen: list[Relation], data: st.DataObject) -> None:
    space = replace(joint_map(chosen), outcome="PASS")
    judged = Judge(space)
    for config in data.draw(st.lists(st.sampled_from(product(DOMAINS)), max_size=40, unique_by=lambda c: repr(c))):
        found = judged(config)
        if found.basis is Basis.PREDICTED:
            allowed = all(holds(r, config) for r in chosen)
            assert found.verdict is (Feasibility.FEASIBLE if allowed else Feasibility.INFEASIBLE)
        else:
            moved = {n for n in config if repr(config[n]) != repr(BASELINE[n])}
            assert (found.basis is Basis.COMPILED and len(moved) <= 1) or found.untried
        assert [c.relation for c in found.broken] == [r for r in chosen if not holds(r, config)]
