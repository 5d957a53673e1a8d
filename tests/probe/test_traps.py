"""Kinds of kernels, files and inputs that once led to a wrong map, through the command line."""

from __future__ import annotations

import fcntl

import pytest

triton = pytest.importorskip("triton")

FILL = """
import triton
import triton.language as tl

@triton.jit
def fill(x, TILE: tl.constexpr, V: tl.constexpr{default}):
    tl.store(x + tl.arange(0, TILE), V)
"""
FACTORY = """
import triton
import triton.language as tl

def make(constant):
    @triton.jit
    def kernel(x, TILE: tl.constexpr, V: tl.constexpr):
        tl.store(x + tl.arange(0, TILE), {body})
    return kernel
"""
ARGUMENTS = ("--arg", "x=*fp32", "--set", "TILE=64", "--domain", "num_warps=4", "--json")


def probed(run_cli, file: str, *more: str):
    return run_cli("probe", file, "--target", "gfx942", *ARGUMENTS, *more)


@pytest.mark.long
def test_code_that_remembers_its_first_configuration_is_not_called_inert(run_cli, project) -> None:
    file = project.kernel("remembering")
    space = probed(run_cli, file, "--set", "V=1", "--domain", "V=1,2,3,4,5").map
    assert "inert" not in {v["effect"] for v in space["knobs"]["V"]["values"]}


@pytest.mark.long
def test_two_kernels_of_one_function_name_are_told_apart_by_their_names_in_the_module(run_cli, project) -> None:
    first = FACTORY.format(body="V")
    second = FACTORY.replace("def make", "def other").format(body="7")
    project.write("two.py", first + "k1 = make(1)\n" + second + "k2 = other(2)\n")
    flags = ("--set", "V=1", "--domain", "V=1,2")
    assert probed(run_cli, "two.py", "--kernel", "k1", *flags).map["knobs"]["V"]["class"] == "live"
    assert probed(run_cli, "two.py", "--kernel", "k2", *flags).map["knobs"]["V"]["class"] == "inert"


@pytest.mark.long
def test_heuristics_around_a_kernel_of_another_name_are_kept(run_cli, project) -> None:
    text = FILL.format(default="").replace("def fill", "def bare")
    project.write("wrapped.py", text + '\nfill = triton.heuristics({"V": lambda args: args["TILE"]})(bare)\n')
    assert probed(run_cli, "wrapped.py").map["outcome"] == "PASS"


@pytest.mark.long
def test_infinities_reach_the_kernel_and_zero_has_a_sign(run_cli, project) -> None:
    project.write("fill.py", FILL.format(default=' = float("-inf")'))
    assert probed(run_cli, "fill.py").map["outcome"] == "PASS"
    space = probed(run_cli, "fill.py", "--set", "V=0.0", "--domain", "V=0.0,-0.0,1e999").map
    zero, negative, infinity = space["knobs"]["V"]["values"]
    assert (zero["value"], str(negative["value"]), infinity["value"]) == (0.0, "-0.0", "py:float('inf')")
    assert zero["effect"] == "baseline"
    # Whether -0.0 is another program is Triton's business (3.9: yes, 3.6: no); that it was asked is ours.
    assert negative["effect"] in ("live", "inert")
    assert infinity["effect"] == "live"


def test_an_option_is_not_derived_and_turned(run_cli, project) -> None:
    project.write("fill.py", FILL.format(default=""))
    result = probed(run_cli, "fill.py", "--set", "V=1.0", "--derive", "num_warps=TILE // 64")
    assert result.code == 2
    assert "num_warps" in result.stderr
    assert "derived and set or turned as well" in result.stderr


@pytest.mark.long
def test_a_derived_option_reaches_the_compiler(run_cli, project) -> None:
    project.write("fill.py", FILL.format(default=""))
    flags = ("--target", "gfx942", "--arg", "x=*fp32", "--set", "TILE=128", "--set", "V=1.0", "--json")
    space = run_cli("probe", "fill.py", *flags, "--derive", "num_warps=TILE // 64").map
    assert space["resources"]["threads"] == 128
    assert "num_warps" not in space["knobs"]


@pytest.mark.long
def test_a_host_knob_that_is_turned_can_be_repeated(run_cli, project) -> None:
    project.write("fill.py", FILL.format(default=""))
    grid = ("--grid", "(PROGRAMS,)", "--set", "PROGRAMS=4", "--domain", "PROGRAMS=4,8", "--set", "V=1.0")
    assert probed(run_cli, "fill.py", *grid).map["knobs"]["PROGRAMS"]["values"][1]["effect"] == "live (host)"
    again = run_cli("repeat", "reports/fill.gfx942.json", "PROGRAMS=8")
    assert again.code == 0
    assert "the map says the same" in again.stderr


@pytest.mark.long
def test_a_folder_of_the_users_own_that_looks_like_ours_is_left_alone(run_cli, project) -> None:
    for name in ("gluonmap-2024-results", "gluonmap-999999-abcdefgh"):
        (project.temporary / name).mkdir()
        (project.temporary / name / "data.txt").write_text("precious")
    project.write("fill.py", FILL.format(default=""))
    assert probed(run_cli, "fill.py", "--set", "V=1.0").code == 0
    for name in ("gluonmap-2024-results", "gluonmap-999999-abcdefgh"):
        data = project.temporary / name / "data.txt"
        assert data.read_text() == "precious"
        data.unlink()
        data.parent.rmdir()


@pytest.mark.long
def test_only_folders_whose_lock_is_free_are_swept(run_cli, project) -> None:
    dead, alive = (project.temporary / f"gluonmap-1-{name}" for name in ("dead0000", "alive000"))
    for folder in (dead, alive):
        folder.mkdir()
        (folder / "lock").touch()
    project.write("fill.py", FILL.format(default=""))
    with (alive / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert probed(run_cli, "fill.py", "--set", "V=1.0").code == 0
        assert [p.name for p in project.temporary.iterdir()] == [alive.name]
    (alive / "lock").unlink()
    alive.rmdir()


@pytest.mark.long
def test_keyword_only_parameters_are_bound(run_cli, project) -> None:
    if triton.__version__.startswith("3.6."):
        pytest.skip("Triton 3.6 takes no keyword-only parameters")
    text = FILL.format(default="").replace("x, TILE", "x, *, TILE")
    project.write("fill.py", text)
    assert probed(run_cli, "fill.py", "--set", "V=1.0").map["outcome"] == "PASS"


@pytest.mark.long
def test_a_dtype_in_an_autotune_list_reaches_the_kernel(run_cli, project) -> None:
    text = FILL.format(default="").replace("tl.arange(0, TILE), V", "tl.arange(0, TILE), tl.full([TILE], 1.0, V)")
    tuned = (
        "@triton.autotune([triton.Config({'V': tl.float16}), triton.Config({'V': tl.float32})], key=[])\n@triton.jit"
    )
    project.write("fill.py", text.replace("@triton.jit", tuned))
    space = probed(run_cli, "fill.py").map
    assert space["outcome"] == "PASS"
    assert [v["outcome"] for v in space["knobs"]["V"]["values"]] == ["PASS", "PASS"]


@pytest.mark.long
def test_a_reader_that_goes_away_does_not_stop_the_mapping(project) -> None:
    project.write("fill.py", FILL.format(default=""))
    flags = ("--target", "gfx942,gfx950", "--arg", "x=*fp32", "--set", "TILE=64", "--set", "V=1.0", "-q")
    process = project.start("probe", "fill.py", *flags)
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    process.stderr.close()
    assert (project.root / "reports" / "fill.gfx950.json").is_file()


def test_a_knob_with_a_live_value_and_one_whose_code_is_unstable_is_mapped(project) -> None:
    kernel = project.kernel("half_stable", SOURCE=["fixed", "hash seed", "chance"], TILE=[256])
    knob = project.run("probe", kernel, "-t", "gfx942", "--json").map["knobs"]["SOURCE"]
    assert [(v["value"], v["effect"]) for v in knob["values"]] == [
        ("fixed", "baseline"),
        ("hash seed", "unknown"),
        ("chance", "live"),
    ]
    assert knob["why"] == "changes instructions"
