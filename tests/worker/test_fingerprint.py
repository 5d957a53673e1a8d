"""The program digest of real compiles: what changes it, and what must not."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def add(x, y, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1.0, mask=i < n)
"""
FLAGS = ["--arg", "x=*fp32", "--arg", "y=*fp32", "--set", "TILE=1024", "--domain", "num_warps=4,8", "--json"]


def digest(run_cli, file: str, target: str, *more: str) -> str:
    return run_cli("probe", file, "--target", target, *FLAGS, *more).map["digest"]


@pytest.mark.parametrize("target", ["gfx942", "gfx950", "sm_90"])
def test_path_name_and_debug_lines_are_no_part_of_a_program(run_cli, project, target: str) -> None:
    project.write("add.py", KERNEL)
    renamed = KERNEL.replace("def add", "def a_much_longer_name_of_the_same_kernel")
    project.write("deeply/nested/other.py", "# a comment\n\n" + renamed)
    assert digest(run_cli, "add.py", target) == digest(run_cli, "deeply/nested/other.py", target)


@pytest.mark.long
def test_another_constant_is_another_program(run_cli, project) -> None:
    project.write("add.py", KERNEL)
    project.write("add_two.py", KERNEL.replace("+ 1.0", "+ 2.0"))
    assert digest(run_cli, "add.py", "gfx942") != digest(run_cli, "add_two.py", "gfx942")


@pytest.mark.long
def test_alignment_of_an_argument_changes_the_program(run_cli, project) -> None:
    project.write("add.py", KERNEL)
    aligned = digest(run_cli, "add.py", "gfx942")
    assert digest(run_cli, "add.py", "gfx942", "--arg", "x=*fp32:4") != aligned
