"""LAUNCH, CHECK and TIME on a real GPU of capability 9.0: hostile kernels get their outcomes, the bundled ones pass.

Run from the repository root: `python -m pytest tests/gpu -m gpu`.
"""

import shutil
from pathlib import Path

import pytest
from device_needed import missing
from project import REPOSITORY

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(missing()), reason=missing() or "a GPU of capability 9.0"),
]

HERE = Path(__file__).resolve().parent
SINGLES = ("-t", "sm_90", "--depth", "singles", "--json")


def probed(project, name, *arguments):
    """The map of a kernel beside this file."""
    for file in (f"{name}.py", f"{name}_probe.py"):
        shutil.copy(HERE / "kernels" / file, project.write(f"kernels/{file}", ""))
    done = project.run("probe", f"kernels/{name}.py", *SINGLES, *arguments, timeout=400)
    assert done.code == 0, done.stderr
    return done.map


def told(space, knob):
    """Value → (outcome, kind, stage that it reached)."""
    return {v["value"]: (v["outcome"], v["kind"], v["measured"]["reached"]) for v in space["knobs"][knob]["values"]}


@pytest.fixture(scope="module")
def hostile(shared_project):
    return probed(shared_project, "hostile", "--stage", "check", "--deadline", "15")


@pytest.mark.parametrize(
    ("how", "outcome"),
    {
        "right": ("PASS", "", "CHECK"),
        "hangs": ("HUNG", "deadline", "LAUNCH"),
        "far out of bounds": ("CRASHED", "illegal memory access", "LAUNCH"),
        "misaligned": ("CRASHED", "misaligned address", "LAUNCH"),
        "wrong mask": ("WRONG", "non-finite values", "CHECK"),
        "no mask": ("WRONG", "guard bytes", "CHECK"),
        "before its output": ("WRONG", "guard bytes", "CHECK"),
        "one bad element": ("WRONG", "elementwise error", "CHECK"),
        "NaN": ("WRONG", "non-finite values", "CHECK"),
    }.items(),
)
def test_each_hostile_launch_gets_its_outcome_and_spoils_no_other(hostile, how, outcome):
    assert told(hostile, "HOW")[how] == outcome


def test_a_missing_wait_is_wrong(hostile):
    assert told(hostile, "HOW")["no barrier"][0] == "WRONG"


def test_a_candidate_asked_after_the_hostile_ones_is_right(hostile):
    assert told(hostile, "BLOCK")[512] == ("PASS", "", "CHECK")


def test_sums_in_an_order_left_to_chance_are_racy_and_pass(project):
    space = probed(project, "racing", "--stage", "check")
    fixed, by_chance = space["knobs"]["ORDER"]["values"]
    assert (fixed["outcome"], by_chance["outcome"]) == ("PASS", "PASS")
    assert "racy" not in fixed["measured"]["check"]
    assert by_chance["measured"]["check"]["racy"] is True


@pytest.mark.parametrize("kernel", ["hopper/gemm_fp16", "rmsnorm"])
def test_a_bundled_kernel_is_right_wherever_it_compiles_and_its_launches_are_timed(project, kernel):
    for folder in ("kernels", "probes"):
        shutil.copytree(REPOSITORY / folder, project.root / folder, ignore=shutil.ignore_patterns("*.jsonl"))
    done = project.run("probe", f"kernels/{kernel}.py", *SINGLES, "--stage", "time", timeout=500)
    assert done.code == 0, done.stderr
    values = [v for knob in done.map["knobs"].values() for v in knob["values"]]
    launched = [v for v in values if "measured" in v]
    assert {v["outcome"] for v in launched} == {"PASS"}
    assert all(v["measured"]["timing"]["median_us"] > 0 for v in launched)


def test_inputs_of_another_specialisation_are_skipped_with_the_arguments_name(project):
    for folder in ("kernels", "probes"):
        shutil.copytree(REPOSITORY / folder, project.root / folder, ignore=shutil.ignore_patterns("*.jsonl"))
    probe = (project.root / "probes/rmsnorm.py").read_text()
    odd = probe.replace('M, N = shape["M"], shape["N"]', 'M, N = shape["M"], shape["N"] - 1')
    assert odd != probe
    project.write("odd.py", odd)
    stage = ("--stage", "launch", "--probe-file", "odd.py")
    done = project.run("probe", "kernels/rmsnorm.py", *SINGLES, *stage)
    assert done.code == 1
    assert (done.map["outcome"], done.map["kind"]) == ("SKIPPED", "specialisation")
    assert "stride_xm is i32, compiled for i32:16" in done.map["reason"]
