"""Runs and their journals: nothing is asked twice, no answer is lost, the same record gives the same map."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from project import REPOSITORY, Finished, Project
from runs import per_candidate, wait_for_answers, without_processes

from gluonmap.model.knobs import KnobClass
from gluonmap.model.space_map import SpaceMap

GFX942 = ("-t", "gfx942", "--json")


def space_of(done: Finished) -> SpaceMap:
    assert done.code == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=SpaceMap)


def outcomes(space: SpaceMap, knob: str) -> dict[Any, str]:
    return {v.value: v.outcome for v in space.knobs[knob].values}


def count(records: list[dict[str, Any]], type_: str) -> int:
    return sum(record["type"] == type_ for record in records)


# --- a journal that knows ---------------------------------------------------------------------------------------------


def test_a_run_without_a_journal_cannot_do_without_processes(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0], CHECKED=[1])
    assert project.run("probe", kernel, *GFX942, **without_processes(project)).code == 3


@pytest.mark.long
def test_a_repeated_run_asks_nothing_starts_no_process_and_gives_the_same_bytes(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0, 1], CHECKED=[1])
    first = project.run("probe", kernel, *GFX942)
    record = (project.root / "probes/plain/gfx942.jsonl").read_bytes()
    reports = {p.name: p.read_bytes() for p in (project.root / "reports").iterdir()}
    assert set(reports) == {"plain.gfx942.html", "plain.gfx942.json", "plain.gfx942.md"}
    shutil.rmtree(project.root / "reports")

    again = project.run("probe", kernel, *GFX942, **without_processes(project))
    assert again.code == first.code == 0
    assert again.stdout == first.stdout
    assert again.seconds < first.seconds
    assert (project.root / "probes/plain/gfx942.jsonl").read_bytes() == record
    assert {p.name: p.read_bytes() for p in (project.root / "reports").iterdir()} == reports


@pytest.mark.long
def test_one_more_value_compiles_only_that_one(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0, 1], CHECKED=[1])
    space_of(project.run("probe", kernel, *GFX942))
    known = project.journal("plain/gfx942")
    project.probe_file("plain", {"TILE": [256, 128, 64], "UNREAD": [0, 1], "CHECKED": [1]})
    space = space_of(project.run("probe", kernel, *GFX942))
    assert outcomes(space, "TILE") == {256: "PASS", 128: "PASS", 64: "PASS"}
    new = project.journal("plain/gfx942")[len(known) :]
    assert [record["type"] for record in new] == ["intent", "answer"]
    assert new[0]["candidate"]["config"]["TILE"] == 64


@pytest.mark.long
def test_a_removed_value_stays_in_the_journal_and_leaves_the_map(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128, 64], UNREAD=[0], CHECKED=[1])
    space_of(project.run("probe", kernel, *GFX942))
    known = project.journal("plain/gfx942")
    project.probe_file("plain", {"TILE": [256, 64], "UNREAD": [0], "CHECKED": [1]})
    assert outcomes(space_of(project.run("probe", kernel, *GFX942)), "TILE") == {256: "PASS", 64: "PASS"}
    assert project.journal("plain/gfx942") == known


# --- what changes an answer, and what does not ------------------------------------------------------------------------


def test_another_body_is_asked_again(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0], CHECKED=[1])
    before = space_of(project.run("probe", kernel, *GFX942))
    text = (project.root / kernel).read_text()
    project.write(kernel, text.replace("* 2", "* 3"))
    after = space_of(project.run("probe", kernel, *GFX942))
    assert after.digest != before.digest
    assert set(per_candidate(project.journal("plain/gfx942"), "answer").values()) == {2}


def test_another_body_of_a_helper_in_another_file_is_asked_again(project: Project) -> None:
    kernel = project.kernel("with_helper", TILE=[256, 128])
    project.kernel("helper")
    before = space_of(project.run("probe", kernel, *GFX942))
    project.write("kernels/helper.py", (project.root / "kernels/helper.py").read_text().replace("* 2", "* 3"))
    after = space_of(project.run("probe", kernel, *GFX942))
    assert after.digest != before.digest
    assert set(per_candidate(project.journal("with_helper/gfx942"), "answer").values()) == {2}


def test_comments_blank_lines_and_a_helpers_comment_ask_nothing_and_the_map_shows_todays_lines(
    project: Project,
) -> None:
    kernel = project.kernel("asserting", TILE=[1024, 256], PER_LANE=[4])
    before = space_of(project.run("probe", kernel, *GFX942))
    record = project.journal("asserting/gfx942")
    text = (project.root / kernel).read_text()
    project.write(
        kernel, "# a comment\n\n\n" + text.replace("    gl.static_assert", "\n    # why\n    gl.static_assert")
    )
    after = space_of(project.run("probe", kernel, *GFX942, **without_processes(project)))
    assert project.journal("asserting/gfx942") == record
    lines = [space.knobs["TILE"].values[1].line for space in (before, after)]
    assert lines == [9, 14]
    assert (before.knobs["TILE"].line, after.knobs["TILE"].line) == (8, 11)
    assert "(line 14)" in after.knobs["TILE"].why


def test_a_comment_in_a_helpers_file_asks_nothing(project: Project) -> None:
    kernel = project.kernel("with_helper", TILE=[256])
    project.kernel("helper")
    before = project.run("probe", kernel, *GFX942)
    project.write("kernels/helper.py", "# new\n\n" + (project.root / "kernels/helper.py").read_text())
    assert project.run("probe", kernel, *GFX942, **without_processes(project)).stdout == before.stdout


@pytest.mark.parametrize("place", ["kernels/deeper", "elsewhere"])
def test_a_kernel_file_that_moved_with_its_helper_is_not_asked_again(project: Project, place: str) -> None:
    kernel = project.kernel("with_helper", TILE=[256, 128])
    project.kernel("helper")
    before = space_of(project.run("probe", kernel, *GFX942))
    (project.root / place).mkdir(parents=True)
    for name in ("with_helper", "helper"):
        (project.root / f"kernels/{name}.py").rename(project.root / place / f"{name}.py")
    done = project.run("probe", f"{place}/with_helper.py", *GFX942, **without_processes(project))
    after = space_of(done)
    assert after.digest == before.digest
    assert after.file == f"{place}/with_helper.py"
    assert "kernels/with_helper.py" not in done.stdout


@pytest.mark.long
def test_a_project_that_moved_as_a_whole_is_not_asked_again(project: Project) -> None:
    kernel = project.kernel("with_helper", TILE=[256, 128])
    project.kernel("helper")
    before = project.run("probe", kernel, *GFX942)
    project.root = project.root.rename(project.home / "moved")
    after = project.run("probe", kernel, *GFX942, **without_processes(project))
    assert (after.code, after.stdout) == (0, before.stdout)


# --- the tool is killed -----------------------------------------------------------------------------------------------


def kill_and_finish(project: Project, moments: list[int]) -> None:
    """Kill the tool with SIGKILL once the journal holds so many answers, each time; then let it finish."""
    values = list(range(20))
    kernel = project.kernel("plain", TILE=[256], UNREAD=values, CHECKED=[1])
    before: list[dict[str, Any]] = []
    for moment in moments:
        process = project.start("probe", kernel, *GFX942)
        wait_for_answers(project, "plain/gfx942", moment, process)
        process.kill()
        process.communicate()
        assert project.leftovers() == []
        path = project.root / "probes/plain/gfx942.jsonl"
        lines = path.read_text().splitlines() if path.is_file() else []
        known = [json.loads(line) for line in lines if line.endswith("}")]
        assert known[: len(before)] == before
        before = known
    space = space_of(project.run("probe", kernel, *GFX942))
    assert outcomes(space, "UNREAD") == dict.fromkeys(values, "PASS")
    records = [json.loads(s) for s in (project.root / "probes/plain/gfx942.jsonl").read_text().splitlines() if s]
    assert set(per_candidate(records, "answer").values()) == {1}
    assert len(per_candidate(records, "answer")) == len(values)
    assert max(per_candidate(records, "intent").values()) <= 2


@pytest.mark.long
def test_a_tool_that_was_killed_goes_on_where_it_was(project: Project) -> None:
    kill_and_finish(project, [4])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_tool_that_was_killed_at_several_moments_asks_no_answered_candidate_again(
    project: Project, seed: int
) -> None:
    # One kill among them hits the import or the baseline; a candidate is in flight at most twice only if the moments
    # lie further apart than two candidates at once.
    moments = sorted(random.Random(seed).sample(range(0, 18, 3), 3))
    kill_and_finish(project, moments)


def test_a_terminated_tool_leaves_nothing_behind(project: Project) -> None:
    kernel = project.kernel("endless", TRIPS=[8, 1_000_000])
    process = project.start("probe", kernel, *GFX942)
    while not any("sleep 1001" in p for p in project.processes()):  # in a session of its own
        time.sleep(0.02)
    process.terminate()
    process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert project.leftovers() == []


@pytest.mark.long
def test_a_kernel_that_kills_the_tool_does_so_twice_at_most(project: Project) -> None:
    kernel = project.kernel("killing", WHOM=["nobody", "the tool"], TILE=[256, 128])
    codes = [project.run("probe", kernel, *GFX942).code for _ in range(2)]
    assert codes == [-signal.SIGKILL] * 2
    space = space_of(project.run("probe", kernel, *GFX942))
    assert outcomes(space, "WHOM") == {"nobody": "PASS", "the tool": "unknown"}
    assert outcomes(space, "TILE") == {256: "PASS", 128: "PASS"}
    assert "not asked again" in space.knobs["WHOM"].values[1].reason


def forget_answer(project: Project, name: str, knob: str, value: Any, intents: int) -> None:
    """Edit a journal as if the tool had died so often while a candidate ran."""
    path = project.root / "probes" / f"{name}.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    intent = next(r for r in records if r["type"] == "intent" and r["candidate"]["config"][knob] == value)
    kept = [r for r in records if r["type"] == "head" or r["key"] != intent["key"]]
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in kept + [intent] * intents))


@pytest.mark.long
def test_a_candidate_that_was_in_flight_twice_when_the_tool_died_is_unknown_and_not_asked(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0, 1, 2], CHECKED=[1])
    space_of(project.run("probe", kernel, *GFX942))
    forget_answer(project, "plain/gfx942", "UNREAD", 1, intents=2)
    record = (project.root / "probes/plain/gfx942.jsonl").read_bytes()
    space = space_of(project.run("probe", kernel, *GFX942, **without_processes(project)))
    assert outcomes(space, "UNREAD") == {0: "PASS", 1: "unknown", 2: "PASS"}
    assert (project.root / "probes/plain/gfx942.jsonl").read_bytes() == record


@pytest.mark.long
def test_a_candidate_that_was_in_flight_once_is_asked_again(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0, 1, 2], CHECKED=[1])
    space_of(project.run("probe", kernel, *GFX942))
    forget_answer(project, "plain/gfx942", "UNREAD", 1, intents=1)
    space = space_of(project.run("probe", kernel, *GFX942))
    assert outcomes(space, "UNREAD") == {0: "PASS", 1: "PASS", 2: "PASS"}


# --- Ctrl-C, and another run at the same time -------------------------------------------------------------------------


def test_ctrl_c_keeps_and_prints_what_is_known(project: Project) -> None:
    kernel = project.kernel("endless", TRIPS=[8, 16, 1_000_000, 1_000_001, 1_000_002])
    process = project.start("probe", kernel, *GFX942)
    wait_for_answers(project, "endless/gfx942", 2, process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "interrupted: 3 candidates were not asked." in stderr
    space = msgspec.json.decode(stdout, type=SpaceMap)
    assert space.unanswered == 3
    assert outcomes(space, "TRIPS") == {8: "PASS", 16: "PASS"} | dict.fromkeys(
        (1_000_000, 1_000_001, 1_000_002), "unknown"
    )
    assert msgspec.json.decode((project.root / "reports/endless.gfx942.json").read_bytes(), type=SpaceMap) == space
    assert project.leftovers() == []
    # What was cancelled was not in flight when the tool died.
    records = project.journal("endless/gfx942")
    assert count(records, "cancelled") == count(records, "intent") - count(records, "answer")


def test_ctrl_c_before_the_baseline_has_an_answer_says_that_nothing_is_known(project: Project) -> None:
    kernel = project.kernel("endless", TRIPS=[1_000_000, 8])
    process = project.start("probe", kernel, *GFX942)
    path = project.root / "probes/endless/gfx942.jsonl"
    while not (path.is_file() and b'"intent"' in path.read_bytes()):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (130, "")
    assert "nothing is known yet" in stderr
    assert "Traceback" not in stderr


def test_ctrl_c_during_the_import_is_an_interruption_too(project: Project) -> None:
    project.write("kernels/sleeps.py", "import time\n\ntime.sleep(1000)\n")
    process = project.start("probe", "kernels/sleeps.py", *GFX942)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (130, "")
    assert "Traceback" not in stderr


def test_a_second_run_on_the_same_journal_is_refused(project: Project) -> None:
    kernel = project.kernel("endless", TRIPS=[8, 1_000_000])
    process = project.start("probe", kernel, *GFX942)
    try:
        wait_for_answers(project, "endless/gfx942", 1, process)
        second = project.run("probe", kernel, *GFX942)
        assert (second.code, second.stdout) == (2, "")
        assert "another gluonmap is writing" in second.stderr
        assert "--out" in second.stderr
    finally:
        process.kill()
        process.communicate()


# --- what comes out ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mapped(shared_project: Project) -> Project:
    """A project with the maps of a kernel on two targets, and of kernels that fail in several ways."""
    kernel = shared_project.kernel("plain", TILE=[2048, 1024], UNREAD=[0, 1], CHECKED=[1, 0], num_warps=[8, 32])
    space_of(shared_project.run("probe", kernel, *GFX942))
    kernel = shared_project.kernel("dying", HOW=["not", "SIGABRT", "SIGSEGV"])
    space_of(shared_project.run("probe", kernel, *GFX942))
    return shared_project


def test_the_printed_map_has_the_documented_names(mapped: Project) -> None:
    done = mapped.run("probe", "kernels/plain.py", *GFX942)
    document = done.map
    assert (document["schema"], document["kernel"], document["target"]) == ("gluonmap.map/1", "double", "gfx942")
    assert (document["file"], document["outcome"], document["stable"]) == ("kernels/plain.py", "PASS", True)
    assert document["triton"].startswith("3.")
    assert document["specialisation"] == {"x": "*fp16:16"}
    assert {n: k["class"] for n, k in document["knobs"].items()} == {
        "TILE": "live",
        "UNREAD": "inert",
        "CHECKED": "pinned",
        "num_warps": "pinned",
    }
    for name, knob in document["knobs"].items():
        assert knob["baseline"] == document["baseline"][name]
        assert knob["why"]
        for value in knob["values"]:
            assert {"value", "outcome", "effect", "reason", "line", "digest"} <= set(value)
            assert bool(value["digest"]) == (value["outcome"] == "PASS")
    rejected = document["knobs"]["CHECKED"]["values"][1]
    assert (rejected["outcome"], rejected["effect"], rejected["line"]) == ("REJECTED", "aborting", 9)
    assert rejected["reason"]


def test_the_printed_map_is_the_stored_one_and_decodes(mapped: Project) -> None:
    done = mapped.run("probe", "kernels/plain.py", *GFX942)
    stored = (mapped.root / "reports/plain.gfx942.json").read_text()
    assert done.stdout == stored
    assert space_of(done).knobs["TILE"].knob_class is KnobClass.LIVE


@pytest.mark.long
def test_two_targets_give_a_list_of_two_maps(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0, 1], CHECKED=[1])
    done = project.run("probe", kernel, "-t", "gfx950,cdna3", "-t", "gfx942", "--json")
    spaces = msgspec.json.decode(done.stdout, type=list[SpaceMap])
    assert [space.target for space in spaces] == ["gfx950", "gfx942"]
    assert {p.name for p in (project.root / "reports").glob("*.json")} == {"plain.gfx942.json", "plain.gfx950.json"}


def test_without_json_a_report_is_printed_and_stderr_has_the_progress(mapped: Project) -> None:
    done = mapped.run("probe", "kernels/plain.py", "-t", "gfx942")
    assert "kernels/plain.py:double" in done.stdout
    assert "declared, never read" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 160


def test_report_renders_stored_maps_again_and_writes_their_markdown(mapped: Project) -> None:
    markdown = mapped.root / "reports/plain.gfx942.md"
    before = markdown.read_bytes()
    markdown.unlink()
    printed = mapped.run("probe", "kernels/plain.py", "-t", "gfx942").stdout
    markdown.unlink()
    again = mapped.run("report", "reports/plain.gfx942.json")
    assert (again.code, again.stdout) == (0, printed)
    assert markdown.read_bytes() == before
    everything = mapped.run("report")
    assert everything.code == 0
    assert "kernels/dying.py" in everything.stdout
    assert "kernels/plain.py" in everything.stdout


def test_report_refuses_what_is_no_map(mapped: Project) -> None:
    mapped.write("broken/cut.json", (mapped.root / "reports/plain.gfx942.json").read_bytes()[:500])
    mapped.write("broken/other.json", '{"schema": "gluonmap.map/0"}')
    for name, text in (("cut", "is no map"), ("other", "gluonmap.map/0"), ("gone", "cannot read the map")):
        done = mapped.run("report", f"broken/{name}.json")
        assert (done.code, done.stdout) == (2, "")
        assert text in done.stderr


@pytest.mark.parametrize(
    ("map_", "moves", "status"),
    [
        ("plain", [], 0),
        ("plain", ["CHECKED=0"], 10),
        ("plain", ["num_warps=32"], 12),
        ("dying", ["HOW=SIGABRT"], -6),
        ("dying", ["HOW=SIGSEGV"], -11),
    ],
)
def test_repeat_leaves_with_the_exit_status_of_the_candidate(
    mapped: Project, map_: str, moves: list[str], status: int
) -> None:
    assert mapped.run("repeat", f"reports/{map_}.gfx942.json", *moves).code == status
    # What a crash has left in TMPDIR the next run removes.
    assert mapped.run("probe", "kernels/plain.py", *GFX942).code == 0
    assert mapped.leftovers() == []


@pytest.mark.long
def test_repeat_of_a_candidate_that_leaves_with_status_0_does_not_look_like_a_pass(mapped: Project) -> None:
    kernel = mapped.kernel("leaving", HOW=["not", "os._exit 0"], TILE=[256, 128])
    assert mapped.run("probe", kernel, *GFX942).code == 0
    repeated = mapped.run("repeat", "reports/leaving.gfx942.json", "HOW=os._exit 0")
    assert mapped.run("probe", kernel, *GFX942).code == 0  # removes what it has left
    assert repeated.code != 0


def test_repeat_can_make_a_candidate_that_was_never_asked(mapped: Project) -> None:
    done = mapped.run("repeat", "reports/plain.gfx942.json", "CHECKED=0", "UNREAD=5")
    assert done.code == 10


def test_repeat_refuses_an_unknown_knob_and_shows_its_command_if_asked(mapped: Project) -> None:
    done = mapped.run("repeat", "reports/plain.gfx942.json", "TILES=1")
    assert (done.code, done.stdout) == (2, "")
    assert "Did you mean TILE?" in done.stderr
    shown = mapped.run("repeat", "reports/plain.gfx942.json", "CHECKED=0", "--show")
    assert shown.code == 0
    again = subprocess.run(
        ["bash", "-c", shown.stdout],
        cwd=mapped.root,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        check=False,
    )
    assert again.returncode == 10


def test_the_repeat_command_of_every_value_is_one_that_runs(mapped: Project) -> None:
    space = msgspec.json.decode((mapped.root / "reports/dying.gfx942.json").read_bytes(), type=SpaceMap)
    commands = [v.repeat for v in space.knobs["HOW"].values]
    assert commands == [
        "gluonmap repeat reports/dying.gfx942.json",
        "gluonmap repeat reports/dying.gfx942.json HOW=SIGABRT",
        "gluonmap repeat reports/dying.gfx942.json HOW=SIGSEGV",
    ]


# --- stand-ins --------------------------------------------------------------------------------------------------------

KERNEL_OF_PACKAGE = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from mine.versions import NEW


@gluon.jit
def copy(x, TILE: gl.constexpr = 64):
    gl.store(x, TILE)
"""


def test_what_an_import_computes_with_a_stand_in_names_the_package_and_no_stub_that_was_given(project: Project) -> None:
    project.write("mine/__init__.py", "")
    project.write("mine/copy.py", KERNEL_OF_PACKAGE)
    project.write("mine/versions.py", "from no_such import version\nNEW = version.parse('1') < version.parse('2')\n")
    stubs = ("--stub", "mine", "--stub", "no_such")
    done = project.run("probe", "mine/copy.py", *GFX942, *stubs, PYTHONPATH=f"{REPOSITORY}:{project.root}")
    assert (done.code, done.stdout) == (2, "")
    note = "no_such.version.parse (<), and an empty module stands in for no_such: install no_such here instead"
    assert note in done.stderr
    assert "--stub" not in done.stderr


def test_a_module_that_a_stubbed_package_lacks_is_no_reason_to_stub_it_again(project: Project) -> None:
    project.write("mine/__init__.py", "")
    project.write("mine/copy.py", KERNEL_OF_PACKAGE.replace("versions", "nowhere"))
    done = project.run("probe", "mine/copy.py", *GFX942, "--stub", "mine", PYTHONPATH=f"{REPOSITORY}:{project.root}")
    assert (done.code, "No module named 'mine.nowhere'" in done.stderr) == (2, True)
    assert "--stub" not in done.stderr


def test_a_run_that_comes_to_nothing_leaves_no_empty_journal(project: Project) -> None:
    project.write("kernels/none.py", "import no_such_package\n")
    assert project.run("probe", "kernels/none.py", *GFX942).code == 2
    assert not list((project.root / "probes").rglob("*.jsonl"))


# --- another environment ----------------------------------------------------------------------------------------------

OTHER = os.environ.get("GLUONMAP_TEST_OTHER_PYTHON", "")


@pytest.mark.skipif(not OTHER, reason="GLUONMAP_TEST_OTHER_PYTHON names no other environment with Triton")
def test_the_triton_of_another_environment_can_be_probed(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0, 1], CHECKED=[1])
    here = space_of(project.run("probe", kernel, *GFX942))
    there = space_of(project.run("probe", kernel, *GFX942, "--python", OTHER))
    python = Path(OTHER) / "bin/python" if Path(OTHER).is_dir() else Path(OTHER)
    version = subprocess.run([python, "-c", "import triton; print(triton.__version__)"], capture_output=True, text=True)
    assert there.triton == version.stdout.strip()
    assert {n: k.knob_class for n, k in there.knobs.items()} == {n: k.knob_class for n, k in here.knobs.items()}
    # Both live in one journal, under heads of their own.
    heads = [r["triton"] for r in project.journal("plain/gfx942") if r["type"] == "head"]
    assert heads == [here.triton, there.triton]


def test_an_environment_without_triton_is_refused_by_name(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0], CHECKED=[1])
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.root / "bare"], check=True)
    done = project.run("probe", kernel, *GFX942, "--python", "bare")
    assert (done.code, done.stdout) == (2, "")
    assert "bare has no Triton" in done.stderr
    assert "pip install" in done.stderr
