"""All knobs together, through the real process border: what is learned, what is kept, what is never asked twice."""

from __future__ import annotations

import collections
import itertools
import json
import signal
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from project import Finished, Project
from runs import per_candidate, wait_for_answers, without_processes

from gluonmap import acquire
from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config
from gluonmap.model.joint_map import UNCOMPARED, Joint, Standing
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.probe.sameness import SamenessRules

pytest.importorskip("triton")

KNOBS: dict[str, list[Any]] = {
    "BUFFERS": [2, 1, 4, 8],
    "ROWS": [32, 8, 16, 64],
    "COLS": [64, 32, 128, 256],
    "GROUP": [4, 1, 8],
    "SPLIT": [1, 2],
}
JOINT = ("-t", "gfx942", "--json", "--depth", "joint")
FEW = (*JOINT, "--budget", "60", "--validate", "30")


def space_of(done: Finished, code: int = 0) -> SpaceMap:
    assert done.code == code, done.stderr
    return msgspec.json.decode(done.stdout, type=SpaceMap)


def joint_of(done: Finished, code: int = 0) -> Joint:
    joint = space_of(done, code).joint
    assert joint is not None
    return joint


def allows(joint: Joint, config: dict[str, Any]) -> bool:
    return all(holds(c.relation, config) for c in joint.constraints)


def truth(config: dict[str, Any]) -> bool:
    tile = config["ROWS"] * config["COLS"]
    return tile >= 1024 and 2 * config["BUFFERS"] * tile <= 65_536


@pytest.fixture(scope="module")
def learned() -> Any:
    project = Project()
    kernel = project.kernel("tiled", **KNOBS)
    done = project.run("probe", kernel, *FEW)
    yield project, kernel, done, space_of(done)
    project.close()


def test_the_region_is_exact_and_its_rules_have_their_origin(learned: Any) -> None:
    _, _, _, space = learned
    joint = space.joint
    every = [dict(zip(KNOBS, values, strict=True)) for values in itertools.product(*KNOBS.values())]
    assert [c for c in every if allows(joint, c) != truth(c)] == []
    assert joint.sizes.signature == len(every)
    assert joint.sizes.feasible == sum(map(truth, every))
    assert "BUFFERS" in joint.formula and "ROWS" in joint.formula and "COLS" in joint.formula
    by_scope = {frozenset(c.scope): c for c in joint.constraints}
    read, budget = by_scope[frozenset(("ROWS", "COLS"))], by_scope[frozenset(("BUFFERS", "ROWS", "COLS"))]
    assert (read.standing, budget.standing) == (Standing.READ, Standing.LEARNED)
    assert read.line == "kernels/tiled.py:9"
    assert budget.outcome == "NO_RESOURCES"
    for constraint in (read, budget):
        assert constraint.failed > 0 < constraint.passed
        assert not truth(constraint.failing_example) and truth(constraint.passing_example)


def test_a_knob_behind_another_one_has_its_condition(learned: Any) -> None:
    group = next(i for i in learned[3].joint.inertness if i.knob == "GROUP")
    assert group.condition == "SPLIT = 1"


def test_every_program_of_the_reduced_space_is_one_of_its_own_that_passed(learned: Any) -> None:
    project, _, _, space = learned
    joint = space.joint
    assert all(truth(p.config) for p in joint.programs)
    assert len({(p.digest, p.grid, p.arguments) for p in joint.programs}) == len(joint.programs)
    assert joint.programs[0].config == space.baseline
    answers = {r["key"]: r["answer"] for r in project.journal("tiled/gfx942") if r["type"] == "answer"}
    by_code = {
        a["program"]["digest"] for a in answers.values() if a["outcome"] == "PASS" and "proof" not in a["program"]
    }
    assert {p.digest for p in joint.programs} <= by_code


def test_no_configuration_is_asked_twice_and_every_answer_of_the_journal_is_in_the_map(learned: Any) -> None:
    project, _, _, space = learned
    records = project.journal("tiled/gfx942")
    assert set(per_candidate(records, "answer").values()) == {1}
    tried = collections.Counter(t.values for t in space.joint.tried if t.why != "again")
    assert set(tried.values()) == {1}
    assert len(tried) >= len([k for k in per_candidate(records, "answer") if not k.endswith("#2")])


def test_a_repeated_run_learns_nothing_and_starts_no_process(learned: Any) -> None:
    project, kernel, first, _ = learned
    again = project.run("probe", kernel, *FEW, **without_processes(project))
    assert (again.code, again.stdout) == (0, first.stdout)
    assert again.seconds < first.seconds / 2


def test_the_same_answers_lead_to_the_same_questions(learned: Any) -> None:
    """Without the stored conclusion the journal is enough: it has the answer to every question."""
    project, kernel, first, _ = learned
    path = project.root / "probes/tiled/gfx942.jsonl"
    whole = path.read_bytes()
    path.write_bytes(b"".join(s for s in whole.splitlines(keepends=True) if b'"type":"concluded"' not in s))
    try:
        again = project.run("probe", kernel, *FEW, **without_processes(project))
        assert (again.code, again.stdout) == (0, first.stdout), again.stderr
    finally:
        path.write_bytes(whole)


@pytest.mark.long
def test_nothing_outside_a_restriction_is_asked_together(project: Project) -> None:
    kernel = project.kernel("tiled", **KNOBS)
    joint = joint_of(project.run("probe", kernel, *FEW, "--restrict", "BUFFERS * ROWS <= 64"))
    names = tuple(joint.domains)
    configs = [dict(zip(names, t.values, strict=True)) for t in joint.tried if t.why != "known"]
    assert configs and all(c["BUFFERS"] * c["ROWS"] <= 64 for c in configs)
    given = [c for c in joint.constraints if c.standing is Standing.GIVEN]
    assert [c.words for c in given] == ["BUFFERS * ROWS <= 64"]
    assert all(p.config["BUFFERS"] * p.config["ROWS"] <= 64 for p in joint.programs)


@pytest.mark.parametrize(
    ("restriction", "said"),
    [
        ("ROWS > 32", "baseline breaks the restriction 'ROWS > 32'"),
        ("ROWZ > 16", "ROWZ"),
        ("ROWS >", "bad syntax"),
        ("ROWS + 'a' > 1", "has no value"),
        ("__import__('os')", "__import__"),
    ],
)
def test_a_restriction_that_cannot_be_is_refused_before_anything_runs(
    project: Project, restriction: str, said: str
) -> None:
    done = project.run("probe", project.kernel("tiled", **KNOBS), *FEW, "--restrict", restriction)
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_ctrl_c_while_learning_keeps_a_smaller_map_and_the_next_run_goes_on(project: Project) -> None:
    kernel = project.kernel("tiled", **KNOBS)
    process = project.start("probe", kernel, *FEW)
    wait_for_answers(project, "tiled/gfx942", 30, process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    space = msgspec.json.decode(stdout, type=SpaceMap)
    assert space.joint is not None and space.joint.stopped == "interrupted"
    assert space.joint.programs
    assert project.leftovers() == []
    before = per_candidate(project.journal("tiled/gfx942"), "answer")
    joint = joint_of(project.run("probe", kernel, *FEW))
    after = per_candidate(project.journal("tiled/gfx942"), "answer")
    assert joint.stopped == ""
    assert all(after[key] == times for key, times in before.items())
    assert len(after) > len(before)


@pytest.mark.long
def test_a_tool_that_was_killed_while_learning_asks_no_answered_candidate_again(project: Project) -> None:
    kernel = project.kernel("tiled", **KNOBS)
    process = project.start("probe", kernel, *FEW)
    wait_for_answers(project, "tiled/gfx942", 30, process)
    process.kill()
    process.communicate()
    joint_of(project.run("probe", kernel, *FEW))
    path = project.root / "probes/tiled/gfx942.jsonl"
    records = [json.loads(s) for s in path.read_text().splitlines() if s]
    assert set(per_candidate(records, "answer").values()) == {1}
    assert max(per_candidate(records, "intent").values()) <= 2


@pytest.mark.long
def test_time_that_is_up_ends_the_learning_and_not_the_map(project: Project) -> None:
    joint = joint_of(project.run("probe", project.kernel("tiled", **KNOBS), *FEW, "--budget-seconds", "0"))
    assert joint.stopped == "out of time"
    assert joint.learning == 0
    assert joint.sizes.feasible


@pytest.mark.long
def test_the_programs_that_are_compiled_besides_the_questions_are_announced(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0, 1], CHECKED=[1])
    said = project.run("probe", kernel, *JOINT).stderr.splitlines()
    note = "gluonmap: after the questions up to 4 distinct programs are compiled, to be handed over"
    assert said.index(note) < next(n for n, line in enumerate(said) if "questions at most" in line)


@pytest.mark.long
def test_without_resume_everything_is_asked_again(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0, 1], CHECKED=[1])
    first = project.run("probe", kernel, *JOINT)
    before = per_candidate(project.journal("plain/gfx942"), "answer")
    again = project.run("probe", kernel, *JOINT, "--no-resume")
    after = per_candidate(project.journal("plain/gfx942"), "answer")
    assert space_of(again).knobs.keys() == space_of(first).knobs.keys()
    assert {key: times * 2 for key, times in before.items()} == after


@pytest.mark.long
def test_values_that_hang_or_kill_alone_are_not_tried_beside_others(project: Project) -> None:
    kernel = project.kernel("endless", TRIPS=[8, 16, 1_000_000], num_warps=[4, 8], waves_per_eu=[0, 2])
    started = time.monotonic()
    joint = joint_of(project.run("probe", kernel, *JOINT, "--deadline", "5"))
    assert joint.domains["TRIPS"] == (8, 16)
    assert "TRIPS = 1000000 had no answer alone" in joint.notes[0]
    assert time.monotonic() - started < 60


@pytest.mark.long
def test_code_that_differs_from_compile_to_compile_is_never_merged(project: Project) -> None:
    kernel = project.kernel("unstable", TILE=[256, 512, 1024], UNREAD=[0, 1, 2])
    space = space_of(project.run("probe", kernel, *JOINT))
    assert space.stable is False
    assert space.joint is not None
    assert not space.joint.value_classes and not [i for i in space.joint.inertness if i.condition == ""]
    assert len(space.joint.programs) == 9


@pytest.mark.long
def test_what_only_host_code_reads_makes_launches_of_its_own(project: Project) -> None:
    path = project.probe_file("plain", {"TILE": [256, 128], "UNREAD": [0, 1], "CHECKED": [1], "CHUNK": [1, 2, 4]})
    path.write_text(path.read_text() + "GRID = '(cdiv(4096, TILE * CHUNK), 1, 1)'\n")
    joint = joint_of(project.run("probe", project.kernel("plain"), *JOINT))
    assert joint.sizes.feasible == 12
    assert {p.grid for p in joint.programs} == {(16, 1, 1), (8, 1, 1), (4, 1, 1), (32, 1, 1)}
    assert joint.sizes.complete and joint.sizes.programs == len(joint.programs) == 6


def test_a_baseline_that_fails_is_not_learned_from(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 100], UNREAD=[0], CHECKED=[0, 1])
    space = space_of(project.run("probe", kernel, *JOINT), code=1)
    assert space.joint is None
    assert space.next_step


@pytest.mark.long
def test_values_that_arithmetic_cannot_tell_apart_are_not_tried_together(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128, 256.0], UNREAD=[1, True, 0], CHECKED=[1, 2])
    space = space_of(project.run("probe", kernel, *JOINT))
    assert space.joint is not None
    assert space.joint.domains["UNREAD"] == (1, 0)
    assert any("UNREAD = True is the number of another value" in note for note in space.joint.notes)
    assert not space.joint.unstable


@pytest.mark.long
def test_a_damaged_conclusion_is_computed_again(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0, 1], CHECKED=[1])
    first = project.run("probe", kernel, *JOINT)
    path = project.root / "probes/plain/gfx942.jsonl"
    records = [json.loads(s) for s in path.read_text().splitlines()]
    for damage in ({}, None, {"depth": 3}):
        lines = [r | {"joint": damage} if r["type"] == "concluded" else r for r in records]
        path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in lines))
        again = project.run("probe", kernel, *JOINT)
        assert (again.code, again.stdout) == (0, first.stdout), again.stderr


@pytest.mark.parametrize("seed", range(3))
def test_rules_of_sameness_that_an_asked_configuration_contradicts_are_dropped(seed: int) -> None:
    """Four knobs change the program only where all of them have one rare value: no comparison of one knob shows it."""
    domains: dict[str, list[Any]] = {name: [0, 1, 2, 3] for name in "ABCDE"}
    baseline = dict.fromkeys(domains, 0)
    rare = {"A": 1, "B": 3, "C": 2, "D": 1, "E": 3}

    def answers(configs: Sequence[Config]) -> list[acquire.Answer]:
        programs = [(c["A"], all(c[n] == rare[n] for n in "BCDE")) for c in configs]
        return [acquire.Answer(Outcome.PASS, digest=str(program)) for program in programs]

    session = acquire.start(domains, baseline=baseline, budget=60, validate=20, seed=seed)
    session.tell(rare, answers([rare])[0])
    while not session.done:
        question = session.next()
        assert question is not None
        session.tell(question.config, answers([question.config])[0])
    sameness = SamenessRules(baseline, stable=True)
    learned = sameness.without_contradicted(session.finish())
    reduced = sameness.reduced(learned)
    programs: dict[str, set[str]] = collections.defaultdict(set)
    for item in learned.asked:
        programs[repr(reduced.canonical(item.config))].add(item.answer.digest)
    assert all(len(digests) == 1 for digests in programs.values())


def test_a_knob_that_nothing_reads_is_merged_without_comparisons_everywhere() -> None:
    domains: dict[str, list[Any]] = {name: [0, 1, 2, 3] for name in ("A", "B", "READ", "DEAD")}
    baseline = dict.fromkeys(domains, 0)
    session = acquire.start(domains, baseline=baseline, budget=12, validate=4)
    while not session.done:
        question = session.next()
        assert question is not None
        digest = str((question.config["A"], question.config["B"]))
        session.tell(question.config, acquire.Answer(Outcome.PASS, digest=digest))
    for name in ("READ", "DEAD"):
        config = {**baseline, name: 1}
        session.tell(config, acquire.Answer(Outcome.PASS, digest=str((0, 0))))
    sameness = SamenessRules(baseline, stable=True, unread=["DEAD"])
    before = session.finish()
    assert {i.knob: i.condition for i in before.inertness if i.knob in ("READ", "DEAD")} == {
        "READ": UNCOMPARED,
        "DEAD": UNCOMPARED,
    }
    after = sameness.with_unread(before)
    found = {i.knob: i for i in after.inertness}
    assert (found["READ"].condition, found["DEAD"].condition) == (UNCOMPARED, "")
    assert found["DEAD"].words == "DEAD is declared and never read, and changed nothing where it was compared"
    assert sameness.reduced(before).program_count == 4 * sameness.reduced(after).program_count


def test_an_answer_that_changed_between_two_askings_contradicts_no_rule() -> None:
    config = {"A": 0}
    asked = [SimpleNamespace(config=config, answer=acquire.Answer(Outcome.PASS, digest=d)) for d in ("one", "two")]
    sameness = SamenessRules(config, stable=True)
    learned = SimpleNamespace(domains={"A": (0, 1)}, constraints=(), inertness=(), value_classes=(), asked=asked)
    assert sameness.contradicted(learned) is None  # type: ignore[arg-type]


@pytest.mark.long
def test_beside_one_value_of_unstable_code_nothing_is_merged(project: Project) -> None:
    kernel = project.kernel("half_stable", SOURCE=["fixed", "hash seed"], TILE=[256, 512])
    space = space_of(project.run("probe", kernel, *JOINT))
    assert space.stable is True
    source = space.knobs["SOURCE"]
    assert source.equivalent == ()
    assert source.values[1].reason.startswith("unstable code: another compile of it gave another program")
    assert space.joint is not None
    assert not space.joint.value_classes and not [i for i in space.joint.inertness if i.condition == ""]
