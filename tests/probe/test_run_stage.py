"""The stage RUN, through real servers and children: candidates executed on the CPU, and what comes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import Project

from gluonmap.model import exitcode
from gluonmap.probe.target_choice import CPU_MODEL

pytest.importorskip("torch")
PROBE = """
KERNEL = "executed"
KNOBS = {knobs!r}
BASELINE = {{"HOW": "right", "TILE": 64, "num_warps": 1}}
ARGS = {{"x_ptr": "*fp32", "y_ptr": "*fp32"}}
SHAPES = {{"whole": {{"n": 4096}}, "ragged": {{"n": 4001}}}}
GRID = "(cdiv(n, TILE),)"


def inputs(shape, config, device, seed):
    import torch

    x = torch.randn(shape["n"], generator=torch.Generator().manual_seed(seed))
    return {{"x_ptr": x, "y_ptr": torch.full_like(x, float("nan")), "n": shape["n"]}}
"""
REFERENCE = """

def reference(inputs, shape):
    return {"y_ptr": inputs["x_ptr"] * 2}
"""


def probe(
    project: Project, hows: list[str], *flags: str, reference: bool = True, depth: str = "singles", **knobs: list[Any]
) -> dict[str, Any]:
    project.kernel("executed")
    text = PROBE.format(knobs={"HOW": hows, **knobs}) + (REFERENCE if reference else "")
    project.write("probes/executed.py", text)
    command = ("probe", "kernels/executed.py", "--stage", "run", "-t", "gfx942", "--depth", depth, "--json", *flags)
    return project.run(*command).map


def values(space: dict[str, Any], knob: str = "HOW") -> dict[str, dict[str, Any]]:
    return {value["value"]: value for value in space["knobs"][knob]["values"]}


# --- against a reference, under the sanitizer -------------------------------------------------------------------------

EXPECTED = {
    # value: outcome, kind, exit status, a line of the kernel's file that the finding names
    "wrong": ("WRONG", "relative error", 14, None),
    "wrong when ragged": ("WRONG", "relative error", 14, None),
    "leaves one out": ("WRONG", "non-finite values", 14, None),
    "unknown instruction": ("NOT_EXECUTED", "NotExecuted", 21, None),
    "reads its output": ("UNSAFE", "global memory read before it was written", 16, "gl.load(y_ptr + i"),
    "reads past the end": ("UNSAFE", "global access out of bounds", 16, "gl.load(x_ptr + i + 64"),
    "writes past the end": ("UNSAFE", "global access out of bounds", 16, "gl.store(y_ptr + i + 16"),
    "crosses groups": ("UNSAFE", "work-groups write the same bytes", 16, "gl.store(y_ptr"),
}


@pytest.fixture(scope="module")
def sanitized(shared_project: Project) -> dict[str, Any]:
    return probe(shared_project, ["right", *EXPECTED], "--sanitize", TILE=[64, 128], num_warps=[1, 2])


@pytest.mark.parametrize("how", EXPECTED)
def test_what_a_run_finds_wrong(sanitized: dict[str, Any], how: str) -> None:
    outcome, kind, status, line = EXPECTED[how]
    value = values(sanitized)[how]
    assert (value["outcome"], value["kind"], value["exit_status"]) == (outcome, kind, status)
    assert value["measured"]["reached"] == "RUN"
    if line is not None:
        text = Path(__file__).parents[1].joinpath("kernels").joinpath("executed.py").read_text().splitlines()
        assert line in text[value["line"] - 1]
        finding = value["measured"]["check"]["findings"][0]
        assert finding["kind"] == kind
        assert finding["place"] == f"executed.py:{value['line']}"


def test_the_instruction_that_is_not_known_is_named_and_the_effect_stands(sanitized: dict[str, Any]) -> None:
    value = values(sanitized)["unknown instruction"]
    assert value["reason"].startswith("v_msad_u8")
    assert value["effect"] == "live"
    assert value["digest"]


def test_what_is_right_has_its_errors_sizes_and_figures(sanitized: dict[str, Any]) -> None:
    assert sanitized["outcome"] == "PASS"
    check = sanitized["measured"]["check"]
    assert check["sanitized"]
    assert check["shapes"] == ["default", "ragged"]
    # The grid has two work-groups of 64; the ragged size is odd, as 4001 is.
    assert check["sizes"] == ["n=128", "n=65"]
    assert check["runs"] == 4  # two seeds, the ragged size in two orders of waves
    assert check["errors"][0]["relative"] == 0.0
    figures = sanitized["measured"]["figures"]
    assert figures["work_groups"] == 2
    assert (figures["global_accesses"], figures["global_lines"], figures["global_bytes"]) == (4, 16, 1024)
    assert sanitized["execution"] == {"stage": "RUN", "device": CPU_MODEL}


def test_other_tiles_and_warps_run_too(sanitized: dict[str, Any]) -> None:
    for knob, value, groups in (("TILE", 128, 2), ("num_warps", 2, 2)):
        found = values(sanitized, knob)[value]
        assert (found["outcome"], found["effect"]) == ("PASS", "live")
        assert found["measured"]["figures"]["work_groups"] == groups


# --- against the baseline ---------------------------------------------------------------------------------------------


@pytest.mark.long
def test_without_a_reference_the_baselines_numbers_are_to_be_met(project: Project) -> None:
    hows = ["right", "wrong", "writes its input", "writes past the end"]
    space = probe(project, hows, reference=False, depth="joint", TILE=[64, 256])
    assert space["measured"]["check"]["against"] == "baseline"
    wrong = values(space)["wrong"]
    assert (wrong["outcome"], wrong["kind"]) == ("WRONG", "differs from the baseline")
    assert wrong["effect"] == "changes the result"
    why = "part of the problem, not of the tuning: 'wrong' and 'writes its input' change the numbers beyond rounding"
    assert space["knobs"]["HOW"]["why"].startswith(why)
    assert values(space)["writes its input"]["reason"].startswith("x_ptr: relative error")
    # Out of bounds is out of bounds, regardless of the numbers.
    assert values(space)["writes past the end"]["outcome"] == "UNSAFE"
    tile = values(space, "TILE")[256]
    assert (tile["outcome"], tile["effect"]) == ("PASS", "live")
    # Both configurations have two work-groups there.
    assert tile["measured"]["check"]["sizes"] == ["n=512", "n=257"]
    # What changes the result is not asked again together with other knobs, nor handed over; what is unsafe neither.
    joint = space["joint"]
    assert [item["words"] for item in joint["constraints"]] == ["HOW not in ('wrong', 'writes its input')"]
    assert {next(iter(item["values"])) for item in joint["tried"]} == {"right", "writes past the end"}
    assert {item["config"]["HOW"] for item in joint["programs"]} == {"right"}
    assert {(item["config"]["HOW"], item["outcome"]) for item in joint["refused"]} == {
        ("writes past the end", "UNSAFE")
    }


# --- once, and of the very inputs -------------------------------------------------------------------------------------


@pytest.mark.long
def test_each_distinct_program_runs_once(project: Project) -> None:
    count = project.root / "references"
    noted = REFERENCE.replace("    return", f"    open({str(count)!r}, 'a').write('called\\n')\n    return")
    project.kernel("executed")
    text = PROBE.format(knobs={"num_stages": [1, 2, 3]}).replace('"TILE": 64,', '"TILE": 64, "num_stages": 1,')
    project.write("probes/executed.py", text + noted)
    command = ("probe", "kernels/executed.py", "--stage", "run", "-t", "gfx942", "--depth", "singles", "--json", "-j1")
    space = project.run(*command).map
    assert {value["effect"] for value in space["knobs"]["num_stages"]["values"]} == {"baseline", "inert"}
    assert all(value["measured"]["check"]["runs"] == 3 for value in space["knobs"]["num_stages"]["values"])
    # Three cases of one program, and once more to see whether it reads its outputs.
    assert len(count.read_text().splitlines()) == 4


@pytest.mark.long
def test_inputs_of_another_specialisation_are_no_evidence(project: Project) -> None:
    project.kernel("executed")
    text = PROBE.format(knobs={"HOW": ["right"]}) + REFERENCE
    project.write("probes/executed.py", text.replace('"x_ptr": x,', '"x_ptr": x.half(),'))
    done = project.run("run", "kernels/executed.py", "-t", "gfx942", "--json")
    document = json.loads(done.stdout)
    assert (done.code, document["outcome"], document["kind"]) == (1, "SKIPPED", "specialisation")
    assert "x_ptr is *float16:16, compiled for *float32:16" in document["reason"]


@pytest.mark.long
def test_a_map_of_compiles_that_replaces_one_of_executions_is_reported(project: Project) -> None:
    probe(project, ["right"])
    command = ("probe", "kernels/executed.py", "-t", "gfx942", "--depth", "singles", "--json")
    assert "had answers of executions (--stage run), and now has compiles only" in " ".join(
        project.run(*command).stderr.split()
    )


# --- one configuration ------------------------------------------------------------------------------------------------


def test_gluonmap_run_tells_numbers_and_writes_the_trace(project: Project) -> None:
    project.kernel("executed")
    project.write("probes/executed.py", PROBE.format(knobs={"HOW": ["right"]}) + REFERENCE)
    trace = project.root / "trace.tsv"
    done = project.run(
        "run", "kernels/executed.py", "-t", "gfx942", "--shape", "n=100", "--dump-trace", str(trace), "--set", "TILE=64"
    )
    assert done.code == 0, done
    assert done.stdout.startswith("PASS executed on gfx942")
    assert "default: n=100" in done.stdout
    rows = [line.split("\t") for line in trace.read_text().splitlines()]
    assert rows[0] == ["step", "waves", "pc", "line", "instruction"]
    assert [row[0] for row in rows[1:]] == [str(n) for n in range(len(rows) - 1)]
    assert any(row[1] == "0-1" and row[4].startswith("global_store_dword") for row in rows)
    last = rows[-1]
    assert last[4] == "s_endpgm"


@pytest.mark.long
def test_gluonmap_run_says_wrong_with_its_place(project: Project) -> None:
    project.kernel("executed")
    project.write("probes/executed.py", PROBE.format(knobs={"HOW": ["right"]}) + REFERENCE)
    command = ("run", "kernels/executed.py", "-t", "cdna3", "--set", "HOW=reads past the end")
    done = project.run(*command)
    assert done.code == 1
    assert done.stdout.startswith("UNSAFE executed on gfx942")
    assert "executed.py:" in done.stdout
    document = json.loads(project.run(*command, "--json").stdout)
    assert (document["outcome"], document["exit_status"], document["stage"]) == ("UNSAFE", exitcode.UNSAFE, "RUN")


def test_gluonmap_run_claims_nothing_about_numbers_without_a_reference(project: Project) -> None:
    project.kernel("executed")
    project.write("probes/executed.py", PROBE.format(knobs={"HOW": ["right"]}))
    done = project.run("run", "kernels/executed.py", "-t", "gfx942", "--set", "HOW=wrong")
    assert done.code == 0
    assert "no reference, so nothing says whether that is right" in " ".join(done.stdout.split())
    assert "y_ptr against itself" in done.stdout


# --- what cannot be executed ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_loop_without_end_is_hung(project: Project) -> None:
    project.kernel("executed")
    project.write("probes/executed.py", PROBE.format(knobs={"HOW": ["right"]}) + REFERENCE)
    command = ("run", "kernels/executed.py", "-t", "gfx942", "--set", "HOW=endless", "--deadline", "6", "--json")
    document = json.loads(project.run(*command).stdout)
    assert (document["outcome"], document["stage"], document["kind"]) == ("HUNG", "RUN", "deadline")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-t", "sm_90"), "SKIPPED: --stage run executes code of gfx942 and gfx950, not of sm_90."),
        (("-t", "gfx942"), "SKIPPED: --stage run needs inputs(shape, config, device, seed) in the probe file"),
    ],
)
def test_what_there_is_nothing_to_execute_with_is_said_before_anything_is_compiled(
    project: Project, flags: tuple[str, ...], said: str
) -> None:
    kernel = project.kernel("executed", HOW=["right"])
    given = ("--arg", "x_ptr=*fp32", "--arg", "y_ptr=*fp32", "--arg", "n=64", "--grid", "(1,)", "--set", "TILE=64")
    done = project.run("run", kernel, *given, *flags)
    assert done.code == 2
    assert said in " ".join(done.stderr.split())
