"""Merging what a map stores in four lists into one observation for each configuration."""

from __future__ import annotations

from typing import Any

import pytest
from executed_maps import RIGHT
from maps import BASELINE, joint_map, single_map, tried, value_map
from msgspec.structs import replace

from gluonmap.model.candidate import Config, Stage, Value
from gluonmap.model.joint_map import Refused, Unstable, Verified
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import Measured, SpaceMap, ValueMap
from gluonmap.model.verdict import Figures, Reason, Resources, Verdict
from gluonmap.query.observations import Observation, Origin, config_key, observation_of, observations

ALL_PASS: tuple[Any, ...] = ()
"""Relations of a map in which every single value passes."""
USED = Resources(256, 4096, vgpr=64, spills=0)


def moved(**moves: Value) -> Config:
    return {**BASELINE, **moves}


def with_lists(space: SpaceMap, programs: tuple[Verified, ...] = (), refused: tuple[Refused, ...] = ()) -> SpaceMap:
    assert space.joint
    return replace(space, joint=replace(space.joint, programs=programs, refused=refused))


def with_single(space: SpaceMap, name: str, value: ValueMap) -> SpaceMap:
    values = tuple(value if repr(v.value) == repr(value.value) else v for v in space.knobs[name].values)
    return replace(space, knobs={**space.knobs, name: replace(space.knobs[name], values=values)})


def observed(space: SpaceMap, **moves: Value) -> Observation:
    found = observations(space).get(moved(**moves))
    assert found is not None
    return found


# ---- the parts ------------------------------------------------------------------------------------------------------


def test_without_a_joint_part_each_single_move_is_one_observation() -> None:
    found = observations(single_map({"A": (1, 2), "B": (False, True, None)}, {"A": 1, "B": False}, ALL_PASS))
    assert [(item.origin, item.config) for item in found] == [
        (Origin.BASELINE, {"A": 1, "B": False}),
        (Origin.SINGLE, {"A": 2, "B": False}),
        (Origin.SINGLE, {"A": 1, "B": True}),
        (Origin.SINGLE, {"A": 1, "B": None}),
    ]
    assert (len(found), found.joint, found.programs, found.refused) == (4, (), (), ())
    assert [len(items) for items in found.values.values()] == [2, 3]
    assert [item.origin for item in found.values["A"]] == [Origin.BASELINE, Origin.SINGLE]


def test_an_unasked_configuration_has_no_observation() -> None:
    assert observations(single_map(relations=ALL_PASS)).get(moved(M=64, N=64)) is None


@pytest.mark.parametrize("other", [1, 1.0, "True"])
def test_values_of_other_types_are_other_configurations(other: Value) -> None:
    space = single_map({"A": (0, 1), "FLAG": (False, True)}, {"A": 0, "FLAG": False}, ALL_PASS)
    found = observations(space)
    assert found.get({"A": 0, "FLAG": True}) is not None
    assert found.get({"A": 0, "FLAG": other}) is None
    assert config_key({"FLAG": True}) != config_key({"FLAG": other})


def test_merged_observations_come_in_the_order_of_the_lists() -> None:
    space = joint_map(ALL_PASS, tried=(tried({"N": 64, "M": 64}, digest="l1"), tried({"M": 64}, digest="l2")))
    space = with_lists(
        space,
        (Verified(moved(M=16, N=16), "p", USED),),
        (Refused(moved(M=16, N=128), "q", "WRONG", "run"),),
    )
    found = list(observations(space))
    assert [item.origin for item in found[:4]] == [Origin.JOINT, Origin.SINGLE, Origin.PROGRAM, Origin.REFUSED]
    assert found[1].config == moved(M=64)  # the place of the joint search's question, the answer of the single value
    assert found[4].origin is Origin.BASELINE
    assert all(item.origin is Origin.SINGLE for item in found[5:])


# ---- the answer of which part counts --------------------------------------------------------------------------------


def test_a_program_replaces_a_joint_compile_and_keeps_its_launch_key() -> None:
    space = joint_map(ALL_PASS, tried=(tried({"M": 64, "N": 64}, digest="launch"),))
    item = observed(with_lists(space, (Verified(moved(M=64, N=64), "program", USED),)), M=64, N=64)
    assert (item.origin, item.digest, item.launch_key, item.resources) == (Origin.PROGRAM, "program", "launch", USED)


def test_a_program_that_the_joint_search_did_not_ask_has_no_launch_key() -> None:
    item = observed(with_lists(joint_map(ALL_PASS), (Verified(moved(M=64, N=64), "program", USED),)), M=64, N=64)
    assert (item.origin, item.outcome, item.launch_key) == (Origin.PROGRAM, Outcome.PASS, "")


def test_configurations_of_one_launch_have_the_digest_of_its_program() -> None:
    asked = tried({"M": 64, "N": 64}, digest="launch"), tried({"M": 64, "N": 64, "FLAG": True}, digest="launch")
    space = with_lists(joint_map(ALL_PASS, tried=asked), (Verified(moved(M=64, N=64), "program", USED),))
    item = observed(space, M=64, N=64, FLAG=True)
    assert (item.origin, item.digest, item.resources) == (Origin.JOINT, "program", USED)


def test_without_a_program_of_its_launch_the_digest_is_unknown() -> None:
    space = joint_map(ALL_PASS, tried=(tried({"M": 64, "N": 64}, digest="launch"),))
    item = observed(with_lists(space, (Verified(moved(M=16, N=16), "program", USED),)), M=64, N=64)
    assert (item.digest, item.launch_key, item.resources) == ("", "launch", None)


def test_a_refused_program_replaces_the_compile_that_passed() -> None:
    space = joint_map(ALL_PASS, tried=(tried({"M": 64, "N": 64}, digest="launch"),))
    refused = Refused(moved(M=64, N=64), "program", "WRONG", "run", "differs", "y: relative error 0.5")
    item = observed(with_lists(space, refused=(refused,)), M=64, N=64)
    assert (item.origin, item.outcome, item.stage, item.kind) == (Origin.REFUSED, "WRONG", "run", "differs")
    assert (item.reason, item.digest, item.launch_key) == ("y: relative error 0.5", "program", "")
    assert item.failed_on_device
    assert not item.compiled


def test_a_single_value_keeps_the_launch_key_of_its_joint_compile() -> None:
    space = with_single(
        joint_map(ALL_PASS, tried=(tried({"M": 64}, digest="launch"),)), "M", value_map(64, "PASS", "program")
    )
    item = observed(space, M=64)
    assert (item.origin, item.digest, item.launch_key) == (Origin.SINGLE, "program", "launch")


@pytest.mark.parametrize("outcome", ["unknown", "HUNG"])
def test_a_single_value_without_evidence_does_not_replace_an_answer(outcome: str) -> None:
    space = with_single(joint_map(ALL_PASS, tried=(tried({"M": 64}, digest="launch"),)), "M", value_map(64, outcome))
    item = observed(space, M=64)
    assert (item.origin, item.outcome, item.launch_key) == (Origin.JOINT, "PASS", "launch")


def test_the_baseline_replaces_the_joint_search_too() -> None:
    space = joint_map(ALL_PASS, tried=(tried({}, digest="launch"),))
    # Every knob lists the baseline among its values, with the baseline's own answer.
    for name, value in BASELINE.items():
        space = with_single(space, name, replace(value_map(value, "PASS", "program"), resources=USED))
    item = observed(replace(space, digest="program", resources=USED))
    assert (item.origin, item.digest, item.launch_key, item.resources) == (Origin.BASELINE, "program", "launch", USED)


# ---- configurations that were asked twice ---------------------------------------------------------------------------


def test_the_last_answer_of_the_joint_search_counts_and_both_are_kept() -> None:
    asked = tried({"M": 64, "N": 64}, "unknown"), tried({"M": 64, "N": 64}, digest="launch")
    found = observations(joint_map(ALL_PASS, tried=asked))
    assert [item.outcome for item in found.joint] == ["unknown", "PASS"]
    merged = found.get(moved(M=64, N=64))
    assert merged is found.joint[1]


def test_two_ways_of_answering_and_no_answer_are_known_by_key() -> None:
    space = joint_map(ALL_PASS, unstable=(Unstable({"M": 64, "N": 64}, ("PASS", "CRASHED")),), unknown=({"M": 16},))
    found = observations(space)
    assert found.unstable == {config_key(moved(M=64, N=64)): ("PASS", "CRASHED")}
    assert found.unanswered == {config_key(moved(M=16))}


# ---- executions -----------------------------------------------------------------------------------------------------


def test_an_execution_of_a_program_passed() -> None:
    executed = Verified(moved(M=64, N=64), "a", USED, check=RIGHT, figures=Figures({}, 1))
    item = observed(with_lists(joint_map(ALL_PASS), (executed,)), M=64, N=64)
    assert (item.executed, item.check, item.figures) == (Outcome.PASS, RIGHT, Figures({}, 1))
    assert not item.failed_on_device


def test_a_program_that_was_only_compiled_has_no_execution() -> None:
    item = observed(with_lists(joint_map(ALL_PASS), (Verified(moved(M=64, N=64), "a", USED),)), M=64, N=64)
    assert (item.executed, item.check) == ("", None)


def test_a_compiled_single_value_keeps_the_execution_of_its_program() -> None:
    space = with_lists(joint_map(ALL_PASS), (Verified(moved(M=64), "a", USED, check=RIGHT),))
    item = observed(space, M=64)
    assert (item.origin, item.executed, item.check) == (Origin.SINGLE, Outcome.PASS, RIGHT)


def test_the_execution_of_a_single_value_is_its_own() -> None:
    check = replace(RIGHT, sizes=("M=8",))
    measured = replace(value_map(64, "PASS", "b"), measured=Measured(Stage.RUN, check))
    space = with_lists(joint_map(ALL_PASS), (Verified(moved(M=64), "a", USED, check=RIGHT),))
    item = observed(with_single(space, "M", measured), M=64)
    assert (item.origin, item.executed, item.check) == (Origin.SINGLE, Outcome.PASS, check)


def test_an_executed_single_value_that_failed_replaces_the_pass() -> None:
    value = ValueMap(64, "HUNG", Effect.ABORTING, stage="run", measured=Measured(Stage.RUN))
    space = joint_map(ALL_PASS, tried=(tried({"M": 64}, digest="launch"),))
    item = observed(with_single(space, "M", value), M=64)
    assert (item.origin, item.outcome, item.executed, item.launch_key) == (Origin.SINGLE, "HUNG", "HUNG", "launch")
    assert item.failed_on_device


@pytest.mark.parametrize("outcome", ["SKIPPED", "NOT_EXECUTED"])
def test_an_execution_that_was_not_made_is_no_failure_on_the_device(outcome: str) -> None:
    value = ValueMap(64, outcome, Effect.LIVE, measured=Measured(Stage.RUN))
    item = observed(with_single(single_map(relations=ALL_PASS), "M", value), M=64)
    assert (item.executed, item.failed_on_device) == (outcome, False)


# ---- places ---------------------------------------------------------------------------------------------------------


def test_a_place_has_a_file_and_a_line_or_is_empty() -> None:
    at = ValueMap(64, "CRASHED", Effect.ABORTING, "died", 7, "kernels/double.py", "llir", "SIGABRT")
    space = with_single(with_single(single_map(relations=ALL_PASS), "M", at), "N", value_map(64, "CRASHED"))
    item = observed(space, M=64)
    assert (item.place, item.stage, item.reason, item.kind) == ("kernels/double.py:7", "llir", "died", "SIGABRT")
    assert observed(space, N=64).place == ""


def test_the_observation_of_a_compile_made_now_is_of_no_part_of_the_map() -> None:
    reason = Reason("SIGABRT", "died", "llir")
    failed = observation_of(BASELINE, Verdict(Outcome.CRASHED, Stage.COMPILE, 13, reason=reason), "k.py:7")
    assert (failed.origin, failed.outcome, failed.stage) == (Origin.ANSWER, Outcome.CRASHED, "llir")
    assert (failed.reason, failed.kind, failed.place, failed.digest) == ("died", "SIGABRT", "k.py:7", "")
