"""The bundled kernels: the seeds' table from the mxfp4 GEMM, and the committed reports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

triton = pytest.importorskip("triton")

REPOSITORY = Path(__file__).resolve().parent.parent
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
    result = run_cli("probe", committed["file"], "--target", committed["target"], "--json", timeout=900)
    assert result.stdout == path.read_text()
