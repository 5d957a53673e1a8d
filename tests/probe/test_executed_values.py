"""Values that failed when they were executed, or that change the result: never handed over, and explained as such."""

from __future__ import annotations

from executed_maps import executed, other_result, program, unsafe, with_programs
from maps import BASELINE, joint_map, single_map
from msgspec.structs import replace
from rich.console import Console

from gluonmap.export import kernel_tuner
from gluonmap.handoff.launches import verified
from gluonmap.model.candidate import Stage
from gluonmap.model.joint_map import Standing
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import Feasibility, feasibility
from gluonmap.model.space_map import ExecutedStage, Measured, ValueMap
from gluonmap.probe import execute_programs
from gluonmap.query.feasibility import Basis, Judge, execution_constraints, judgement_of
from gluonmap.query.reduced_space import reduced_space_of
from gluonmap.report.explain import how_known


def test_a_value_that_changes_the_result_is_infeasible_with_every_other_value() -> None:
    judgement = judgement_of(executed(joint_map(), M=other_result(16)), {**BASELINE, "M": 16, "N": 16})
    assert (judgement.verdict, judgement.basis, judgement.forbidden) == (Feasibility.INFEASIBLE, Basis.PREDICTED, True)
    assert [(c.words, c.standing) for c in judgement.shown_constraints] == [("M != 16", Standing.EXECUTED)]


def test_it_stays_so_where_a_program_met_the_baseline_by_chance_and_that_program_is_refused() -> None:
    space = with_programs(executed(joint_map(), M=other_result(16)), program(), program(M=16, N=16))
    assert space.joint
    settled = execute_programs.without_forbidden_programs(space.joint, space)
    assert [p.config["M"] for p in settled.programs] == [32]
    (refused,) = settled.refused
    assert (refused.config["M"], refused.outcome, refused.stage, refused.kind) == (
        16, "WRONG", "RUN", "differs from the baseline",
    )  # fmt: skip
    assert refused.reason == "M=16 changes the result: part of the problem, not of the tuning"


def test_an_unsafe_value_is_forbidden_until_a_program_with_it_was_executed_and_passed() -> None:
    space = executed(joint_map(), M=unsafe(16))
    assert judgement_of(space, {**BASELINE, "M": 16, "N": 16}).verdict is Feasibility.INFEASIBLE
    only_compiled = with_programs(space, program(check=None, M=16, N=16))
    assert judgement_of(only_compiled, {**BASELINE, "M": 16, "N": 16}).verdict is Feasibility.INFEASIBLE
    passed = with_programs(space, program(M=16, N=16))
    assert judgement_of(passed, {**BASELINE, "M": 16, "N": 16}).verdict is Feasibility.FEASIBLE
    assert judgement_of(passed, {**BASELINE, "M": 16}).outcome == "UNSAFE"


def test_a_value_that_failed_in_the_compiler_alone_is_no_matter_of_executions() -> None:
    assert execution_constraints(executed(single_map())) == ()


def test_after_a_bare_launch_nothing_is_concluded_from_single_values() -> None:
    space = executed(joint_map(), M=unsafe(16))
    assert execution_constraints(replace(space, execution=ExecutedStage(Stage.LAUNCH, "NVIDIA H200"))) == ()


def test_the_reduced_space_and_kernel_tuner_leave_such_values_out() -> None:
    space = executed(joint_map(), M=other_result(16), N=unsafe(64))
    assert {config["M"] for config in reduced_space_of(space).listed()} == {32, 64, 128}
    assert [r.expression for r in kernel_tuner.restrictions(space)][1:] == ["M != 16", "N != 64"]


def test_a_value_that_compiled_and_was_not_executed_is_handed_over() -> None:
    silent = ValueMap(
        16, "NOT_EXECUTED", Effect.LIVE, "v_msad_u8 v2", None, "", "run", "NotExecuted", 21, "d", detail="instructions",
        measured=Measured(Stage.RUN),
    )  # fmt: skip
    space = executed(single_map(), M=silent, N=unsafe(16), STAGES=other_result(1))
    handed = [entry.config for entry in verified(space)]
    assert {**BASELINE, "M": 16} in handed
    assert {**BASELINE, "N": 16} not in handed
    assert {**BASELINE, "STAGES": 1} not in handed
    assert feasibility("NOT_EXECUTED") is Feasibility.FEASIBLE
    judgement = judgement_of(space, {**BASELINE, "M": 16})
    assert how_known(space, judgement) == (
        "Compiled for the map: passes. It was not executed: v_msad_u8 v2; its numbers are unknown."
    )


def test_explain_says_what_was_executed() -> None:
    from gluonmap.query.explain import explain
    from gluonmap.report.explain import render

    space = executed(joint_map(), M=unsafe(16))
    console = Console(width=200, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    render(space, "a.json", explain(Judge(space), {**BASELINE, "M": 16}), console)
    said = console.export_text()
    assert "Compiled and executed for the map: UNSAFE: 4 bytes behind y at k.py:3." in said
    assert "M != 16" in said
    assert "M=16 fails when executed, and no program with it passed" in said


def test_a_prediction_from_executions_is_said_to_be_one_and_not_the_users() -> None:
    from gluonmap.report import predict

    judgement = judgement_of(executed(joint_map(), M=other_result(16)), {**BASELINE, "M": 16, "N": 16})
    assert predict.basis(judgement) == "executed"
    assert predict.forbidden(judgement) == "failed when executed"
