"""Whole differences: equal maps, other baselines, committed maps, and a kernel built to differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compared_maps import REPOSITORY, committed, kinds, text, with_value
from maps import BASELINE, joint_map, single_map
from msgspec.structs import replace
from project import Project

from gluonmap.diff.circumstances import Circumstance
from gluonmap.diff.comparison import difference
from gluonmap.diff.constraints import Budget, ConstraintChange, ConstraintTransition
from gluonmap.diff.knobs import ValueTransition
from gluonmap.model import codec
from gluonmap.model.knobs import Effect
from gluonmap.report.diff.headline import headline

MAPS = sorted((REPOSITORY / "reports").rglob("*.json"))


@pytest.mark.parametrize("path", MAPS, ids=lambda p: p.stem)
def test_a_map_does_not_differ_from_itself(path: Path) -> None:
    space = codec.read_map(path)
    found = difference(space, space)
    assert not found.changed
    assert (found.circumstances, found.regressions, found.flips, found.values, found.knobs) == ((), (), (), (), ())
    assert headline(found) == "No difference."
    assert found.shared is None or found.shared.lost == found.shared.gained == 0


def test_circumstances_alone_are_no_change() -> None:
    found = difference(joint_map(), replace(joint_map(), triton="3.6.0"))
    assert not found.changed
    assert headline(found) == "No difference but the circumstances."


# ---- baselines ------------------------------------------------------------------------------------------------------


def test_with_other_baselines_only_equal_configurations_regress() -> None:
    other = single_map(baseline={**BASELINE, "STAGES": 4})
    # M = 128 with STAGES = 2 is 8192 and passes; with STAGES = 4 it is 16384 and fails.
    found = difference(single_map(), other)
    assert [(v.knob, v.value, v.turn, v.one_configuration) for v in found.values] == [
        ("M", 128, ValueTransition.FAILING, False),
        ("N", 128, ValueTransition.FAILING, False),
    ]
    assert found.regressions == ()
    assert Circumstance("baseline", "STAGES: 2", "STAGES: 4") in found.circumstances
    assert any(note.startswith("the baselines differ") for note in found.notes)
    assert "newly failing: M = 128: Δ live → ↑ NO_RESOURCES, with different baselines" in text(found)


def test_with_other_baselines_effects_of_values_are_not_compared() -> None:
    other = with_value(single_map(baseline={**BASELINE, "N": 64}, relations=()), "MODE", ".cg", effect=Effect.INERT)
    found = difference(single_map(relations=()), other)
    assert found.values == ()


def test_a_baseline_that_fails_now_is_the_regression() -> None:
    failing = replace(
        single_map(), outcome="REJECTED", reason="no such layout", line=9, stage="front end", knobs={}, joint=None
    )
    found = difference(joint_map(), failing)
    assert kinds(found) == [("baseline", {})]
    assert (found.regressions[0].file, found.regressions[0].line) == ("kernels/double.py", 9)
    assert found.knobs == found.values == ()
    assert "the baseline fails: REJECTED, no such layout (kernels/double.py:9)" in text(found)
    again = difference(failing, joint_map())
    assert again.regressions == ()
    assert again.changed


# ---- committed maps -------------------------------------------------------------------------------------------------


def test_one_gemm_on_cdna3_and_cdna4() -> None:
    found = difference(committed("cdna3/gemm_bf16.gfx942.json"), committed("cdna3/gemm_bf16.gfx950.json"))
    assert [(c.name, c.before, c.after) for c in found.circumstances][:2] == [
        ("target", "gfx942", "gfx950"),
        ("baseline", "NUM_BUFFERS: 2", "NUM_BUFFERS: 3"),
    ]
    assert [(v.knob, v.value, v.turn, v.one_configuration) for v in found.values] == [
        ("BLOCK_M", 256, ValueTransition.PASSING, False),
        ("BLOCK_N", 256, ValueTransition.PASSING, False),
        ("NUM_BUFFERS", 3, ValueTransition.PASSING, True),
        ("NUM_BUFFERS", 4, ValueTransition.PASSING, True),
    ]
    assert [(k.knob, k.only_after) for k in found.knobs] == [("NUM_BUFFERS", (6,))]
    assert found.regressions == ()


def test_the_lds_limits_of_cdna3_and_cdna4_in_their_gemms() -> None:
    found = difference(committed("cdna3/gemm_bf16.gfx942.json"), committed("cdna4/gemm_bf16.gfx950.json"))
    moved: list[ConstraintChange] = [c for c in found.constraints if c.move is ConstraintTransition.LIMIT]
    assert [(c.before and c.before.words, c.after and c.after.words, c.budget) for c in moved] == [
        (
            "(BLOCK_M + BLOCK_N) * BLOCK_K * NUM_BUFFERS <= 32768",
            "(BLOCK_M + BLOCK_N) * BLOCK_K * NUM_BUFFERS <= 81920",
            Budget("bytes of shared memory", 65_536, 163_840),
        )
    ]
    assert found.formula and (found.formula.before_limit, found.formula.after_limit) == (65_536, 163_840)
    assert found.shared and found.shared.gained == moved[0].freed
    assert found.shared.lost == sum(c.forbidden or 0 for c in found.constraints if c.move is ConstraintTransition.NEW)


# ---- a kernel built to differ ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_kernel_built_to_differ_between_cdna3_and_cdna4(project: Project) -> None:
    kernel = project.kernel("differing")
    project.write(
        "probes/differing.py",
        'KNOBS = {"BUFFERS": [2, 6, 12], "SCALE": [1, 2], "WIDTH": [4, 8]}\n'
        'BASELINE = {"BUFFERS": 2, "SCALE": 1, "WIDTH": 4}\nARGS = {"x": "*fp16", "y": "*fp16"}\n',
    )
    done = project.run("probe", kernel, "-t", "cdna3,cdna4", "--depth", "joint", "--quiet")
    assert done.code == 0, done.stderr
    maps = "reports/differing.gfx942.json", "reports/differing.gfx950.json"
    sources = [json.loads((project.root / path).read_text())["source"] for path in maps]
    assert sources[0] == sources[1]
    assert list(sources[0]) == ["differing.py"]
    compared = project.run("diff", *maps, "--json", "--fail-on", "regression")
    found = json.loads(compared.stdout)
    assert compared.code == 1
    assert found["circumstances"] == [{"name": "target", "before": "gfx942", "after": "gfx950"}]
    assert [(v["knob"], v["value"], v["turn"]) for v in found["values"]] == [
        ("WIDTH", 8, "newly failing"),
        ("BUFFERS", 6, "newly passing"),
        ("SCALE", 2, "newly live"),
    ]
    classes = {k["knob"]: (k["before"]["class"], k["after"]["class"]) for k in found["knobs"]}
    assert classes == {"BUFFERS": ("pinned", "bounded"), "SCALE": ("inert", "live"), "WIDTH": ("live", "pinned")}
    assert {(r["kind"], r["moves"]["WIDTH"], r["file"], r["line"]) for r in found["regressions"]} == {
        ("value", 8, "kernels/differing.py", 15),
        ("combination", 8, "kernels/differing.py", 15),
    }
    # BUFFERS = 2 or 6 with SCALE and WIDTH free; on gfx942 no 6, on gfx950 no WIDTH = 8.
    shared = found["shared"]
    assert (shared["before"], shared["after"], shared["both"], shared["proved"]) == (4, 4, 2, True)
    moved = [c["budget"] for c in found["constraints"] if c["budget"]]
    assert moved == [{"unit": "bytes of shared memory", "before": 65_536, "after": 163_840}]
    assert project.run("diff", maps[0], maps[0], "--fail-on", "change").code == 0
