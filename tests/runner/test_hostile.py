"""Kernels that do their worst to the process that compiles them, through the command line and real processes."""

from __future__ import annotations

import os
import shlex
import stat
from typing import Any

import pytest
from project import Finished, Project

from gluonmap.model.codec import read_map

# --- what a map says of one value -------------------------------------------------------------------------------------


def probed(project: Project, name: str, *arguments: str, target: str = "gfx942", **knobs: list[Any]) -> dict[str, Any]:
    """Map one of the tests' kernels with the knobs given; the baseline must pass."""
    done = project.run("probe", project.kernel(name, **knobs), "-t", target, "--json", *arguments)
    assert done.code == 0, done.stderr
    assert done.map["outcome"] == "PASS"
    return done.map


def value(space: dict[str, Any], knob: str, wanted: Any) -> dict[str, Any]:
    return next(v for v in space["knobs"][knob]["values"] if v["value"] == wanted)


def outcomes(space: dict[str, Any], knob: str) -> dict[Any, str]:
    return {v["value"]: v["outcome"] for v in space["knobs"][knob]["values"]}


def effects(space: dict[str, Any], knob: str) -> dict[Any, str]:
    return {v["value"]: v["effect"] for v in space["knobs"][knob]["values"]}


def refused(done: Finished, *telling: str) -> None:
    """The command ended with the exit code of a user's mistake, and its one message says all that is wanted."""
    assert done.code == 2, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for text in telling:
        assert text in done.stderr


# --- the compile dies -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dying(shared_project: Project) -> dict[str, Any]:
    how = ["not", "read address 0", "SIGSEGV", "SIGFPE", "SIGILL", "SIGBUS", "SIGTRAP", "SIGSYS", "SIGABRT"]
    return probed(shared_project, "dying", HOW=[*how, "SIGTERM"])


@pytest.mark.parametrize(
    ("how", "signal", "status"),
    [
        ("read address 0", "SIGSEGV", -11),
        ("SIGSEGV", "SIGSEGV", -11),
        ("SIGFPE", "SIGFPE", -8),
        ("SIGILL", "SIGILL", -4),
        ("SIGBUS", "SIGBUS", -7),
        ("SIGTRAP", "SIGTRAP", -5),
        ("SIGSYS", "SIGSYS", -31),
        ("SIGABRT", "SIGABRT", -6),
    ],
)
def test_a_compile_that_dies_by_a_signal_of_its_own_is_crashed_with_the_signals_name(
    dying: dict[str, Any], how: str, signal: str, status: int
) -> None:
    crashed = value(dying, "HOW", how)
    assert (crashed["outcome"], crashed["effect"]) == ("CRASHED", "aborting")
    assert (crashed["kind"], crashed["exit_status"], crashed["stage"]) == (signal, status, "front end")
    assert crashed["line"] == 25  # of kernels/dying.py: the statement that was being compiled


def test_a_signal_that_others_send_is_no_evidence_about_the_kernel(dying: dict[str, Any]) -> None:
    ended = value(dying, "HOW", "SIGTERM")
    assert (ended["outcome"], ended["effect"], ended["exit_status"]) == ("unknown", "unknown", -15)


def test_a_layout_basis_that_is_too_large_for_the_tile_aborts_and_the_map_names_message_line_and_literal(
    project: Project,
) -> None:
    space = probed(project, "literal_basis", ROWS=[128, 64], COLUMNS=[256, 128])
    crashed = value(space, "COLUMNS", 128)
    assert (crashed["outcome"], crashed["kind"], crashed["exit_status"]) == ("CRASHED", "SIGABRT", -6)
    assert crashed["reason"].startswith("LLVM ERROR: Invalid basis 128 for in-dim 'register'")
    assert crashed["line"] == 20
    assert "basis 128 needs COLUMNS > 128 (line 11)" in crashed["because"]
    assert space["knobs"]["COLUMNS"]["class"] == space["knobs"]["ROWS"]["class"] == "pinned"


@pytest.mark.long
def test_a_compile_without_end_is_hung_and_what_it_started_is_gone(project: Project) -> None:
    space = probed(project, "endless", "--deadline", "5", TRIPS=[8, 1_000_000])
    hung = value(space, "TRIPS", 1_000_000)
    assert (hung["outcome"], hung["kind"], hung["reason"]) == ("HUNG", "deadline", "no end within 5 s")
    assert hung["line"] == 25
    assert not [p for p in project.processes() if "sleep" in p]


@pytest.mark.long
def test_a_compile_that_eats_the_hosts_memory_is_short_of_resources_and_not_crashed(project: Project) -> None:
    space = probed(project, "hungry", "--memory", "1G", GIGABYTES=[0, 8])
    hungry = value(space, "GIGABYTES", 8)
    assert (hungry["outcome"], hungry["kind"]) == ("NO_RESOURCES", "host memory")
    assert "not the GPU's" in hungry["reason"]


# --- the compile talks ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy(shared_project: Project) -> dict[str, Any]:
    loud = ["ten megabytes", "binary", "closed", "like an abort", "like an error", "like a verdict"]
    return probed(shared_project, "noisy", NOISE=["none", *loud])


@pytest.mark.parametrize(
    "noise", ["ten megabytes", "binary", "closed", "like an abort", "like an error", "like a verdict"]
)
def test_nothing_that_a_compile_prints_decides_its_outcome(noisy: dict[str, Any], noise: str) -> None:
    passed = value(noisy, "NOISE", noise)
    assert (passed["outcome"], passed["effect"], passed["exit_status"]) == ("PASS", "inert", 0)


def test_text_that_looks_like_an_error_is_at_most_a_warning(noisy: dict[str, Any]) -> None:
    assert value(noisy, "NOISE", "like an abort")["warnings"] == ["LLVM ERROR: this is only text"]
    assert value(noisy, "NOISE", "like an error")["warnings"] == ["this is only text"]
    assert value(noisy, "NOISE", "ten megabytes")["warnings"] == []


# --- the compile leaves as if all was done ----------------------------------------------------------------------------

WAYS_TO_LEAVE = ["os._exit 0", "sys.exit 0", "os._exit 10", "os._exit 3", "KeyboardInterrupt", "SIGKILL"]


@pytest.fixture(scope="module")
def leaving(shared_project: Project) -> dict[str, Any]:
    return probed(shared_project, "leaving", HOW=["not", *WAYS_TO_LEAVE], TILE=[256, 128])


@pytest.mark.parametrize("how", WAYS_TO_LEAVE)
def test_a_process_that_leaves_without_evidence_is_unknown_regardless_of_its_exit_status(
    leaving: dict[str, Any], how: str
) -> None:
    left = value(leaving, "HOW", how)
    assert (left["outcome"], left["effect"]) == ("unknown", "unknown")


def test_many_candidates_without_an_answer_do_not_keep_the_others_from_theirs(leaving: dict[str, Any]) -> None:
    assert outcomes(leaving, "TILE") == {256: "PASS", 128: "PASS"}
    assert leaving["knobs"]["TILE"]["class"] == "live"
    assert leaving["knobs"]["HOW"]["class"] == "unknown"


@pytest.mark.long
def test_a_candidate_that_kills_its_server_costs_only_its_own_answer(project: Project) -> None:
    space = probed(project, "killing", WHOM=["nobody", "the server"], TILE=[256, 128, 64])
    assert outcomes(space, "WHOM") == {"nobody": "PASS", "the server": "unknown"}
    assert outcomes(space, "TILE") == {256: "PASS", 128: "PASS", 64: "PASS"}


def test_a_baseline_without_an_answer_stops_the_run_with_a_fault(project: Project) -> None:
    done = project.run("probe", project.kernel("leaving", HOW=["os._exit 0", "not"], TILE=[256]), "-t", "gfx942")
    assert (done.code, done.stdout) == (3, "")
    assert "the baseline has no answer: exit status 0 without evidence" in done.stderr
    assert "Traceback" not in done.stderr


# --- the file cannot be imported --------------------------------------------------------------------------------------

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def fill(x, TILE: tl.constexpr):
    tl.store(x + tl.arange(0, TILE), 1)
"""

FILL = ("-t", "gfx942", "--arg", "x=*fp32", "--domain", "TILE=16,32", "--domain", "num_warps=4", "--json")


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("import os\ndef broken(:\n    pass\n", ["SyntaxError: invalid syntax (line 2)"]),
        ("if True:\n        x = 1\n\tx = 2\n", ["TabError: inconsistent use of tabs", "(line 3)"]),
        (b'import os\nname = "caf\xe9"\n', ["SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xe9"]),
        ("# coding: no-such-codec\nx = 1\n", ["SyntaxError: unknown encoding: no-such-codec"]),
        (b"x = 1\n\0\n", ["SyntaxError: source code string cannot contain null bytes"]),
        ("import os\nimport no_such_package.part\n" + KERNEL, ["(line 2)", "--stub no_such_package"]),
        ("x = 1\ny = not_there\n", ["NameError: name 'not_there' is not defined (line 2)"]),
        ("import json\n\njson.loads('{')\n", ["JSONDecodeError", "(line 3)"]),
        ("def deeper():\n    deeper()\n\n\ndeeper()\n", ["RecursionError"]),
        ("x = 1\n", ["holds no @gluon.jit or @triton.jit function"]),
        ("", ["holds no @gluon.jit or @triton.jit function"]),
    ],
    ids=[
        "syntax error", "tab error", "bad encoding", "unknown encoding", "null byte", "missing module", "unknown name",
        "error below the file", "endless recursion", "no kernel", "empty",
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_imported_is_refused_with_file_line_and_reason(
    project: Project, text: str | bytes, telling: list[str]
) -> None:
    project.write("kernels/broken.py", text)
    refused(project.run("probe", "kernels/broken.py", "-t", "gfx942"), "kernels/broken.py", *telling)


@pytest.mark.parametrize(
    ("leave", "how"),
    [
        ("import sys; sys.exit(0)", "exit status 0"),
        ("import sys; sys.exit(10)", "exit status 10"),
        ("import os; os._exit(0)", "exit status 0"),
        ("import os; os._exit(10)", "exit status 10"),
        ("import os; os._exit(3)", "exit status 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("raise KeyboardInterrupt", "exit status 99"),
    ],
)
def test_an_import_that_ends_its_process_is_refused_and_never_a_map(project: Project, leave: str, how: str) -> None:
    project.write("kernels/leaves.py", leave + "\n" + KERNEL)
    done = project.run("probe", "kernels/leaves.py", "-t", "gfx942", "--set", "TILE=16", "--arg", "x=*fp32")
    refused(done, "kernels/leaves.py cannot be imported", f"({how})", "if __name__ == '__main__'")
    assert not (project.root / "reports").exists()


@pytest.mark.long
def test_an_import_that_sleeps_for_ever_is_refused_after_the_deadline(project: Project) -> None:
    project.write("kernels/sleeps.py", "import time\ntime.sleep(10_000)\n" + KERNEL)
    done = project.run("probe", "kernels/sleeps.py", "-t", "gfx942", "--deadline", "3")
    refused(done, "kernels/sleeps.py", "did not end within 3 s")
    assert done.seconds < 15


@pytest.mark.parametrize(
    ("path", "what"),
    [("kernels/gone.py", "does not exist"), ("kernels", "is a folder"), ("kernels/notes.txt", "is no .py file")],
)
def test_a_path_that_is_no_kernel_file_is_refused_at_once(project: Project, path: str, what: str) -> None:
    project.write("kernels/notes.txt", KERNEL)
    done = project.run("probe", path, "-t", "gfx942")
    refused(done, f"the kernel file {path} {what}. Give the Python file that holds the kernel.")


def test_of_several_kernels_one_must_be_chosen(project: Project) -> None:
    refused(project.run("probe", project.kernel("two_kernels"), "-t", "gfx942"), "--kernel first (or second)")


# --- the import leaves something running ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["threads_at_import", "child_at_import", "asks_the_driver"])
def test_threads_children_and_questions_for_the_gpu_at_import_do_not_keep_the_map_away(
    project: Project, name: str
) -> None:
    space = probed(project, name, TILE=[256, 128])
    assert effects(space, "TILE") == {256: "baseline", 128: "live"}


@pytest.mark.long
@pytest.mark.parametrize(
    "deed",
    [
        pytest.param("import os\nos.environ.clear()", id="no environment"),
        pytest.param(
            "import os, signal\nif os.fork() == 0:\n    os.setsid()\n    signal.pause()", id="a fork that goes on"
        ),
        pytest.param("import sys\nsys.stdout = sys.stderr = None", id="no streams", marks=pytest.mark.slow),
        pytest.param("import os\nos.closerange(0, 1000)", id="no descriptors", marks=pytest.mark.slow),
        pytest.param("print('x' * 10_000_000)", id="much output", marks=pytest.mark.slow),
        pytest.param("import signal\nsignal.alarm(1)", id="an alarm clock", marks=pytest.mark.slow),
    ],
)
def test_an_import_that_takes_its_process_apart_does_not_keep_the_map_away(project: Project, deed: str) -> None:
    project.write("kernels/vandal.py", deed + "\n" + KERNEL)
    done = project.run("probe", "kernels/vandal.py", *FILL)
    assert (done.code, effects(done.map, "TILE")) == (0, {16: "baseline", 32: "live"})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["my kernel", "it's", "x.y", "triton"])
def test_a_file_may_have_any_name_and_its_repeat_command_runs(project: Project, name: str) -> None:
    project.write(f"kernels/{name}.py", KERNEL)
    done = project.run("probe", f"kernels/{name}.py", *FILL)
    assert done.code == 0, done.stderr
    command = shlex.split(done.map["knobs"]["TILE"]["values"][1]["repeat"])
    assert command[:2] == ["gluonmap", "repeat"]
    assert project.run(*command[1:]).code == 0


# --- what the user asks cannot be done --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(shared_project: Project) -> Project:
    """A project that has the map of `plain` on gfx942, so that questions about its knobs need no server."""
    knobs = {"TILE": [2048, 1024], "UNREAD": [0, 1], "CHECKED": [1, 2], "kpack": [1, 2], "num_warps": [8, 32]}
    probed(shared_project, "plain", **knobs, waves_per_eu=[0, 1, 2])
    return shared_project


KNOWN = "(it has CHECKED, TILE, UNREAD, "


@pytest.mark.parametrize(
    ("arguments", "telling"),
    [
        (["--domain", "TILES=1,2"], ["no knob 'TILES'", KNOWN, "Did you mean TILE?"]),
        (["--set", "TILES=1"], ["no knob 'TILES'", "Did you mean TILE?"]),
        (["--domain", "num_wraps=1"], ["no knob 'num_wraps'", "Did you mean num_warps?"]),
        (["--domain", "TILE="], ["the domain of TILE is empty", "--domain TILE=1,2"]),
        (["--domain", "x=1,2"], ["x of kernel 'double' is a run-time argument, not a knob", "--arg x="]),
        (["--arg", "z=1"], ["'z'", "(it has CHECKED, TILE, UNREAD, x)", "--arg"]),
        (["--kernel", "dubble"], ["kernels/plain.py has no kernel 'dubble'", "Did you mean double?", "--kernel NAME"]),
        (["--regime", "large"], ["no regime 'large'"]),
        (["--derive", "UNREAD=cdiv("], ["'cdiv(' is no expression", "character 5"]),
        (["--derive", "UNREAD=MISSING * 2"], ["'MISSING * 2'", "MISSING", "TILE"]),
        (["--derive", "UNREAD=__import__('os')"], ["__import__('os')"]),
        (["--derive", "UNREAD=CHECKED", "--derive", "CHECKED=UNREAD"], ["depend on each other"]),
        (["--grid", "(cdiv(N, TILE),)"], ["'(cdiv(N, TILE),)'", "N"]),
        (["--grid", "(TILE / 0,)"], ["'(TILE / 0,)'"]),
        (["--grid", "'wide'"], ["the grid", "whole numbers were expected"]),
        (["--config", "broken.json"], ["broken.json is no JSON"]),
        (["--config", "missing.json"], ["missing.json", "No such file"]),
        (["--config", "list.json"], ["list.json holds no configuration"]),
        (["--config", "nested.json"], ["nested.json gives TILE a value that is no number or text"]),
        (["--config", "entries.json#large"], ["no entry 'large' (it has small)"]),
        (["--probe-file", "missing.py"], ["missing.py", "No such file"]),
        (["--probe-file", "computed.py"], ["computed.py:1", "KNOBS must be written as a literal"]),
        (["--probe-file", "nested.py"], ["nested.py: KNOBS gives TILE the value [16]"]),
        (["--probe-file", "shapes.py"], ["shapes.py: SHAPES['small'] must be a dict, not 5"]),
        (["--probe-file", "baseline.py"], ["baseline.py: BASELINE gives TILE the value [16]"]),
        (["--target", "gfx941"], ["no target 'gfx941'", "Did you mean gfx942?", "gluonmap targets"]),
        (["--target", ","], ["--target names no target", "gluonmap targets"]),
        (["--memory", "much"], ["--memory takes a size such as 8G", "'much'"]),
        (["--set", "TILE"], ["--set takes NAME=VALUE, not 'TILE'"]),
        (["--python", "nowhere"], ["there is no Python in nowhere"]),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) and part[0].startswith("--") else "",
)
def test_a_question_that_cannot_be_asked_is_refused_with_the_word_that_broke_it(
    plain: Project, arguments: list[str], telling: list[str]
) -> None:
    plain.write("broken.json", "{TILE: 1}")
    plain.write("list.json", "[1]")
    plain.write("nested.json", '{"any": {"TILE": [1]}}')
    plain.write("entries.json", '{"small": {"TILE": 128}}')
    plain.write("computed.py", "KNOBS = {'TILE': list(range(4))}\n")
    plain.write("shapes.py", "SHAPES = {'small': 5}\n")
    plain.write("baseline.py", "BASELINE = {'TILE': [16]}\n")
    plain.write("nested.py", "KNOBS = {'TILE': [[16]]}\n")
    target = [] if "--target" in arguments else ["-t", "gfx942"]
    refused(plain.run("probe", "kernels/plain.py", *target, *arguments), *telling)


def test_parameters_without_a_value_are_asked_for_by_the_flag_that_gives_it(project: Project) -> None:
    kernel = project.kernel("plain")
    done = project.run("probe", kernel, "-t", "gfx942")
    refused(done, "no value is known for TILE, UNREAD and CHECKED", "--set TILE=… --set UNREAD=… --set CHECKED=…")
    done = project.run(
        "probe", kernel, "-t", "gfx942", *[a for n in ("TILE=16", "UNREAD=1", "CHECKED=1") for a in ("--set", n)]
    )
    refused(done, "the type of x", "--arg x='*bf16'")


# --- effects and budgets ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain_map(plain: Project) -> dict[str, Any]:
    import msgspec

    return msgspec.to_builtins(read_map(plain.root / "reports" / "plain.gfx942.json"))


def test_three_kinds_of_dead_knobs_differ_in_their_reasons(plain_map: dict[str, Any]) -> None:
    knobs = plain_map["knobs"]
    assert {n: knobs[n]["class"] for n in ("UNREAD", "CHECKED", "kpack")} == dict.fromkeys(
        ("UNREAD", "CHECKED", "kpack"), "inert"
    )
    assert knobs["UNREAD"]["why"].startswith("declared, never read (line 8): identical program")
    assert knobs["CHECKED"]["why"].startswith("read by the front end (line 9), identical program")
    assert knobs["kpack"]["why"].startswith("option ignored by the back end for these argument types: identical")


def test_values_that_give_one_program_are_equivalent_and_another_descriptor_is_live(plain_map: dict[str, Any]) -> None:
    # 8 warps of 64 lanes are 2 waves on each SIMD anyway: to ask for at least 1 changes nothing, to ask for 2 does.
    waves = plain_map["knobs"]["waves_per_eu"]
    assert effects(plain_map, "waves_per_eu") == {0: "baseline", 1: "inert", 2: "live"}
    assert list(map(list, waves["equivalent"])) == [[0, 1]]
    assert value(plain_map, "waves_per_eu", 2)["detail"] == "descriptor only"
    assert waves["class"] == "live"


def test_32_warps_of_64_lanes_are_over_the_budget_of_threads(plain_map: dict[str, Any]) -> None:
    wide = value(plain_map, "num_warps", 32)
    assert (wide["outcome"], wide["kind"], wide["exit_status"]) == ("NO_RESOURCES", "budget", 12)
    assert wide["reason"] == "2,048 threads > 1,024"


@pytest.mark.long
def test_shared_memory_that_fits_gfx950_can_be_over_the_budget_of_gfx942(project: Project) -> None:
    kernel = project.kernel("staging", BUFFERS=[2, 4, 8])
    done = project.run("probe", kernel, "-t", "cdna3,cdna4", "--json")
    cdna3, cdna4 = done.map
    assert outcomes(cdna3, "BUFFERS") == {2: "PASS", 4: "PASS", 8: "NO_RESOURCES"}
    assert value(cdna3, "BUFFERS", 8)["reason"] == "131,072 bytes of shared memory > 65,536"
    assert outcomes(cdna4, "BUFFERS") == {2: "PASS", 4: "PASS", 8: "PASS"}
    assert (cdna3["knobs"]["BUFFERS"]["class"], cdna4["knobs"]["BUFFERS"]["class"]) == ("bounded", "live")


@pytest.mark.long
def test_more_than_512_columns_of_tensor_memory_are_over_the_budget_of_sm_100(project: Project) -> None:
    project.kernel("tensor_memory")
    project.probe_file("tensor_memory", {"COPIES": [1, 4, 8]}, x="*fp32")
    done = project.run("probe", "kernels/tensor_memory.py", "-t", "sm_100", "--json")
    assert outcomes(done.map, "COPIES") == {1: "PASS", 4: "PASS", 8: "NO_RESOURCES"}
    assert value(done.map, "COPIES", 8)["reason"] == "1024 columns of tensor memory > 512"


def test_a_knob_that_only_the_grid_reads_is_live_on_the_host(project: Project) -> None:
    space = probed(project, "persistent", "--grid", "(PROGRAMS,)", TILE=[1024, 512], PROGRAMS=[256, 128])
    host = value(space, "PROGRAMS", 128)
    assert (host["effect"], host["detail"]) == ("live (host)", "grid")
    assert host["digest"] == space["digest"]
    assert space["knobs"]["PROGRAMS"]["kind"] == "host"
    assert [entry["type"] for entry in project.journal("persistent/gfx942")].count("intent") == 2  # not a third


@pytest.mark.long
def test_a_name_that_only_the_grid_reads_and_that_is_not_turned_does_not_reach_the_compiler(project: Project) -> None:
    space = probed(project, "persistent", "--grid", "(PROGRAMS,)", "--set", "PROGRAMS=300", TILE=[1024, 512])
    assert space["grid"] == [300]
    assert effects(space, "TILE") == {1024: "baseline", 512: "live"}
    assert project.run("repeat", "reports/persistent.gfx942.json", "TILE=512").code == 0


def test_code_that_differs_from_compile_to_compile_is_neither_inert_nor_live(project: Project) -> None:
    space = probed(project, "unstable", UNREAD=[0, 1], TILE=[256, 128])
    assert space["stable"] is False
    for knob in ("UNREAD", "TILE"):
        assert space["knobs"][knob]["class"] == "unknown"
        assert set(effects(space, knob).values()) == {"baseline", "unknown"}
        assert not space["knobs"][knob].get("equivalent")
    assert "unstable" in space["notes"][0]


def test_a_static_assertion_is_a_rejection_with_its_message_and_line(project: Project) -> None:
    space = probed(project, "asserting", TILE=[1024, 256], PER_LANE=[4, 8])
    for knob, bad in (("TILE", 256), ("PER_LANE", 8)):
        rejected = value(space, knob, bad)
        assert (rejected["outcome"], rejected["exit_status"]) == ("REJECTED", 10)
        assert (rejected["kind"], rejected["stage"]) == ("CompileTimeAssertionFailure", "front end")
        assert (rejected["reason"], rejected["line"]) == ("TILE must cover PER_LANE * 256", 9)


def test_a_baseline_that_fails_gives_a_map_that_says_why_and_the_exit_code_of_a_finding(project: Project) -> None:
    kernel = project.kernel("asserting", TILE=[256, 1024], PER_LANE=[4])
    done = project.run("probe", kernel, "-t", "gfx942", "--json")
    assert (done.code, done.map["outcome"], done.map["knobs"]) == (1, "REJECTED", {})
    assert (done.map["reason"], done.map["line"]) == ("TILE must cover PER_LANE * 256", 9)
    assert "--set" in done.map["next_step"]


# --- the disk ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_full_disk_is_one_clear_message_and_the_journal_keeps_what_it_had(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=list(range(40)), CHECKED=[1])
    # A soft limit stands in for the disk: no file of the tool may grow beyond 12 KiB. The children lift theirs.
    limit = ("bash", "-c", 'ulimit -S -f 12; exec "$@"', "bash")
    done = project.run("probe", kernel, "-t", "gfx942", prefix=limit)
    assert done.code == 3, done
    assert "cannot write the journal" in done.stderr
    assert "make room and run the same command again" in done.stderr
    assert "Traceback" not in done.stderr
    first = answers_in(project, "plain/gfx942")
    assert first
    again = project.run("probe", kernel, "-t", "gfx942", "--json")
    assert (again.code, again.map["knobs"]["UNREAD"]["class"]) == (0, "inert")
    everything = answers_in(project, "plain/gfx942")
    assert everything[: len(first)] == first
    assert len(everything) == len(set(everything)) == 40


def test_a_limit_of_the_users_shell_on_files_is_no_fault_of_the_kernel(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0, 1], CHECKED=[1])
    limit = ("bash", "-c", 'ulimit -f 100000; ulimit -v 64000000; exec "$@"', "bash")
    done = project.run("probe", kernel, "-t", "gfx942", "--json", prefix=limit)
    assert (done.code, done.map["knobs"]["UNREAD"]["class"]) == (0, "inert"), done.stderr


def answers_in(project: Project, name: str) -> list[str]:
    """Keys of the answers in a journal; lines that a full disk has torn are passed over."""
    keys = []
    for line in (project.root / "probes" / f"{name}.jsonl").read_bytes().splitlines():
        if line.startswith(b'{"type":"answer"') and line.endswith(b"}"):
            keys.append(line.split(b'"key":"')[1].split(b'"')[0].decode())
    return keys


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_a_fault_that_names_it(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0], CHECKED=[1])
    locked = project.root / "locked"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = project.run("probe", kernel, "-t", "gfx942", "--out", "locked")
    assert done.code == 3
    assert "Permission denied" in done.stderr
    assert "--out" in done.stderr


@pytest.mark.parametrize("place", ["file", "proc"])
def test_an_output_folder_that_cannot_be_made_is_a_fault_that_names_it(project: Project, place: str) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0], CHECKED=[1])
    project.write("file", "in the way")
    out = "/proc/nowhere" if place == "proc" else "file"
    done = project.run("probe", kernel, "-t", "gfx942", "--out", out)
    assert (done.code, done.stdout) == (3, "")
    assert f"cannot open the journal {out}" in done.stderr
    assert "--out" in done.stderr
    assert "Traceback" not in done.stderr


def test_reports_that_cannot_be_written_are_a_fault_and_the_journal_keeps_the_answers(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0, 1], CHECKED=[1])
    project.write("reports", "in the way")
    done = project.run("probe", kernel, "-t", "gfx942")
    assert done.code == 3
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(answers_in(project, "plain/gfx942")) == 2


def test_a_folder_for_temporary_files_with_a_long_name_serves_too(project: Project) -> None:
    long = project.home / ("long-" * 20)
    long.mkdir()
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0, 1], CHECKED=[1])
    done = project.run("probe", kernel, "-t", "gfx942", TMPDIR=str(long))
    assert done.code == 0, done.stderr
    assert not list(long.iterdir())


# --- the journal is damaged -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_damaged_lines_of_a_journal_are_named_and_only_their_candidates_are_asked_again(project: Project) -> None:
    kernel = project.kernel("plain", TILE=[256], UNREAD=[0, 1, 2], CHECKED=[1])
    assert project.run("probe", kernel, "-t", "gfx942").code == 0
    path = project.root / "probes/plain/gfx942.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(i for i, line in enumerate(lines) if line.startswith(b'{"type":"answer"'))
    lines[last] = bytes(range(255, -1, -1)) + lines[last][100:]
    path.write_bytes(b"".join(lines) + b'{"type":"answer","stamp":"torn in the mid')
    kept = answers_in(project, "plain/gfx942")
    done = project.run("probe", kernel, "-t", "gfx942", "--json")
    assert done.code == 0, done.stderr
    assert "damaged lines" in done.stderr
    assert "asked again" in done.stderr
    assert outcomes(done.map, "UNREAD") == {0: "PASS", 1: "PASS", 2: "PASS"}
    assert answers_in(project, "plain/gfx942")[: len(kept)] == kept
    assert len(answers_in(project, "plain/gfx942")) == len(kept) + 1 == 3
