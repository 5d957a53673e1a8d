"""The bundled kernels: the seeds' table from the mxfp4 GEMM, and the committed reports."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from gluonmap.handoff import launches
from gluonmap.model import codec
from gluonmap.model.candidate import Config
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Answer, Verdict
from gluonmap.probe.recompile import open_recompiler

triton = pytest.importorskip("triton")

REPOSITORY = Path(__file__).resolve().parents[2]
MAPS = sorted((REPOSITORY / "reports").rglob("*.json"))


def with_kernels(project) -> None:
    for folder in ("kernels", "probes"):
        shutil.copytree(REPOSITORY / folder, project.root / folder, ignore=shutil.ignore_patterns("*.jsonl"))


def test_the_mxfp4_gemm_shows_the_table_of_the_seeds(run_cli, project) -> None:
    with_kernels(project)
    space = run_cli("probe", "kernels/cdna4/gemm_mxfp4.py", "--target", "gfx950", "--json").map
    classes = {name: knob["class"] for name, knob in space["knobs"].items()}
    assert classes == {
        "BLOCK_SIZE_M": "pinned",
        "BLOCK_SIZE_N": "pinned",
        "BLOCK_SIZE_K": "pinned",
        "num_warps": "pinned",
        "num_stages": "inert",
        "matrix_instr_nonkdim": "inert",
        "kpack": "inert",
        "GROUP_SIZE_M": "live",
        "NUM_KSPLIT": "live",
        "waves_per_eu": "live",
        "cache_modifier": "live",
    }
    tiles = [v for n in ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K") for v in space["knobs"][n]["values"]]
    assert {(v["outcome"], v["kind"]) for v in tiles if v["effect"] == "aborting"} == {("CRASHED", "SIGABRT")}
    assert [0, 1] in space["knobs"]["waves_per_eu"]["equivalent"]
    assert "declared, never read" in space["knobs"]["num_stages"]["why"]
    assert "option ignored by the back end" in space["knobs"]["kpack"]["why"]
    assert "3 warp bases mean num_warps = 8" in space["knobs"]["num_warps"]["why"]


def test_a_cdna4_kernel_is_refused_on_gfx942_with_the_api_that_is_lacking(run_cli, project) -> None:
    with_kernels(project)
    result = run_cli("probe", "kernels/cdna4/gemm_mxfp4.py", "--target", "gfx942", "--json")
    assert result.code == 1
    assert "cdna4.mfma_scaled" in result.map["reason"]
    assert "which gfx942 lacks; the compile confirms it" in result.map["reason"]


def test_every_bundled_kernel_has_a_committed_map() -> None:
    mapped = {json.loads(path.read_text())["file"] for path in MAPS}
    kernels = {str(p.relative_to(REPOSITORY)) for p in (REPOSITORY / "kernels").rglob("*.py")}
    assert mapped == kernels


@pytest.mark.parametrize("path", MAPS, ids=lambda p: p.stem)
def test_a_committed_report_names_no_folder_of_any_machine(path: Path) -> None:
    for file in (path, path.with_suffix(".md")):
        text = file.read_text()
        assert not [
            word for word in text.replace('"', " ").split() if word.startswith(("/home", "/root", "/tmp", "/usr"))
        ]


@pytest.mark.slow
@pytest.mark.parametrize("path", MAPS, ids=lambda p: p.stem)
def test_a_committed_map_is_what_a_probe_gives_today(path: Path, run_cli, project) -> None:
    committed = json.loads(path.read_text())
    if committed["triton"] != triton.__version__:
        pytest.skip(f"made with Triton {committed['triton']}")
    with_kernels(project)
    today = run_cli("probe", committed["file"], "--target", committed["target"], "--json", timeout=900).map
    assert today == {**committed, "joint": None}


def hand_off(path: Path) -> tuple[SpaceMap, list[Config]]:
    space = codec.read_map(path)
    if space.triton != triton.__version__:
        pytest.skip(f"made with Triton {space.triton}")
    listed = launches(space)
    assert listed
    return space, listed


def failing(space: SpaceMap, configs: list[Config], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Config, Answer]]:
    monkeypatch.chdir(REPOSITORY)
    with open_recompiler(space) as ask:
        answers = list(ask([{**space.baseline, **config} for config in configs]))
    assert len(answers) == len(configs)
    return [(config, a) for config, a in answers if not (isinstance(a, Verdict) and a.outcome is Outcome.PASS)]


@pytest.mark.slow
@pytest.mark.parametrize("path", MAPS, ids=lambda p: p.stem)
def test_every_configuration_that_is_handed_off_passes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failing(*hand_off(path), monkeypatch) == []


@pytest.mark.parametrize("path", MAPS, ids=lambda p: p.stem)
def test_a_sample_of_what_is_handed_off_passes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space, listed = hand_off(path)
    assert failing(space, random.Random(0).sample(listed, min(3, len(listed))), monkeypatch) == []


def budget_of(path: str) -> tuple[int, SpaceMap]:
    """The least use of shared memory that was refused for its size, with its map."""
    space = codec.read_map(REPOSITORY / "reports" / path)
    assert space.joint is not None and space.joint.formula
    budgets = [c for c in space.joint.constraints if c.outcome == Outcome.NO_RESOURCES and "shared memory" in c.reason]
    assert len(budgets) == 1
    return int(budgets[0].reason.rpartition("> ")[2].replace(",", "")), space


def test_the_maps_of_cdna3_and_cdna4_have_budgets_of_their_own() -> None:
    (small, cdna3), (large, cdna4) = budget_of("cdna3/gemm_bf16.gfx942.json"), budget_of("cdna4/gemm_bf16.gfx950.json")
    assert (small, large) == (65_536, 163_840)
    for space, limit in ((cdna3, small), (cdna4, large)):
        assert space.joint is not None
        used = [program.resources.shared_bytes for program in space.joint.programs]
        assert max(used) <= limit
        assert space.joint.sizes.feasible
    assert max(p.resources.shared_bytes for p in cdna4.joint.programs) > small
