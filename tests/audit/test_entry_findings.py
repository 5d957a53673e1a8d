"""Findings about entries that a map judges, without a compile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from audits import checked, findings
from click.testing import CliRunner
from maps import (
    joint_map,
    single_map,
    tried,
)
from msgspec.structs import replace
from project import REPOSITORY

from gluonmap.audit.key_mentions import find_mentions
from gluonmap.cli.command_group import cli
from gluonmap.model.joint_map import Inertness, ValueClasses
from gluonmap.model.knobs import KnobClass
from gluonmap.model.relations import Member


def test_what_triton_config_says_by_itself_is_nothing_that_a_map_must_turn(tmp_path: Path) -> None:
    tiles = ", ".join(f"triton.Config({{'BLOCK_SIZE_M': {m}}}, num_warps=8, num_stages=2)" for m in (128, 256))
    (tmp_path / "shipped.py").write_text(f"import triton\nCONFIGS = [{tiles}]\n")
    place = REPOSITORY / "reports/cdna4/gemm_mxfp4.gfx950.json"
    command = ["check", "gemm_mxfp4.py", "--map", str(place), "--no-compile", "--json", str(tmp_path / "shipped.py")]
    document = json.loads(CliRunner().invoke(cli, command).stdout)
    assert [entry["outcome"] for entry in document["entries"]] == ["CRASHED", "PASS"]


def test_a_forbidden_entry_is_an_error_with_its_line_and_the_constraint(tmp_path: Path) -> None:
    text = '{\n"M_LEQ_16": {"M": 16},\n"any": {"M": 128, "N": 128}\n}'
    shown = checked(tmp_path, joint_map(), text)
    assert shown.exit_code == 1
    assert (
        f'{tmp_path}/shipped.json:3: error: entry "any" fails by the map\'s constraints, uncompiled [rejected]'
        in shown.stdout
    )
    assert "    forbidden by M * N * STAGES <= 8192 (learned)" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "1 error"
    assert checked(tmp_path, joint_map(), {"any": {"M": 16}}).exit_code == 0


def test_what_was_compiled_for_the_map_is_reported_with_its_outcome_and_place(tmp_path: Path) -> None:
    moves = {"M": 128, "FLAG": True}
    space = joint_map((), tried=[tried(moves, "CRASHED", reason="LLVM ERROR: no", line="double.py:12")])
    rows = findings(checked(tmp_path, space, {"M_LEQ_16": moves, "any": moves}, "--json"))
    assert rows[0] == (
        "error",
        "aborts",
        'entries "M_LEQ_16" and "any" crash the compiler at double.py:12: LLVM ERROR: no',
    )


@pytest.mark.parametrize(("choice", "code"), [("error", 0), ("warning", 1), ("never", 0)])
def test_fail_on_says_which_findings_fail(tmp_path: Path, choice: str, code: int) -> None:
    shown = checked(tmp_path, joint_map(), {"any": {"M": 32, "NN": 1}}, "--fail-on", choice)
    assert "warning: NN is no parameter of the kernel and no option of gfx950's compiler" in shown.stdout
    assert shown.exit_code == code
    assert checked(tmp_path, joint_map(), {"any": {"M": 128, "N": 128}}, "--fail-on", "never").exit_code == 0


INERT = joint_map(
    (),
    inertness=[
        Inertness("FLAG", "", "FLAG changed nothing in 9 comparisons", 0, 9),
        Inertness("MODE", "STAGES = 1", "MODE matters only if STAGES = 1", 4, 4, Member("STAGES", (1,))),
    ],
    value_classes=[ValueClasses("FLAG", ((False, True),)), ValueClasses("N", ((16, 32), (64,)))],
)
INERT = replace(INERT, knobs={**INERT.knobs, "FLAG": replace(INERT.knobs["FLAG"], knob_class=KnobClass.INERT)})


def test_inert_knobs_are_reported_with_the_reach_of_the_evidence(tmp_path: Path) -> None:
    config = {
        "M_LEQ_16": {"N": 32, "FLAG": True, "MODE": ".cg", "STAGES": 2},
        "any": {"M": 16, "MODE": ".ca", "STAGES": 1},
    }
    rows = findings(checked(tmp_path, INERT, config, "--json"))
    assert rows == [
        ("warning", "inert-knob", "FLAG = True changes nothing: by hand"),
        ("notice", "equal-value", "N=32 is the program of N=16"),
        ("notice", "inert-here", "MODE changes nothing in M_LEQ_16: it matters only if STAGES = 1"),
    ]


def test_entries_of_one_program_are_duplicates_and_equal_buckets_a_notice(tmp_path: Path) -> None:
    one, other = {"N": 16, "FLAG": True, "STAGES": 1}, {"N": 32, "FLAG": False, "STAGES": 1}
    rows = findings(checked(tmp_path, INERT, {"M_LEQ_16": one, "M_LEQ_32": other, "any": one}, "--json"))
    text = 'entries "M_LEQ_16" and "M_LEQ_32" are one program: they differ in FLAG (False, True) and N (16, 32), which'
    assert ("warning", "duplicate", f"{text} changes nothing between them") in rows
    assert ("notice", "repeated", "entries with the same configuration: M_LEQ_16 and any") in rows
    lines = "".join(json.dumps(each) + "\n" for each in (one, one))
    raced = findings(checked(tmp_path, INERT, lines, "--json", name="c.jsonl"))
    assert ("warning", "duplicate", "the same configuration occurs more than once: line 1 and line 2") in raced


def test_an_unknown_key_is_reported_with_the_nearest_known_one(tmp_path: Path) -> None:
    rows = findings(checked(tmp_path, joint_map(), {"any": {"M": 16, "STAGE": 1}}, "--json"))
    text = (
        "STAGE is no parameter of the kernel and no option of gfx950's compiler: no code reads it; did you mean STAGES?"
    )
    assert rows == [("warning", "unknown-key", text)]


def test_host_code_that_names_a_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "a.py").write_text("# SPLITS\n\nsplits = config['SPLIT']\n")
    found = find_mentions({"SPLIT", "SPLITS"}, tmp_path / "kernels" / "k.py")
    assert found == {"SPLIT": "host/a.py:3"}


def test_a_value_that_the_map_never_tried_has_no_answer(tmp_path: Path) -> None:
    rows = findings(checked(tmp_path, joint_map(), {"any": {"M": 48}}, "--json"))
    assert rows == [("warning", "no-answer", 'entry "any" has no answer: never tried value M=48')]


def test_a_file_of_another_target_is_reported(tmp_path: Path) -> None:
    rows = findings(checked(tmp_path, joint_map(), {"any": {"M": 16}}, "--json", name="gfx942-GEMM.json"))
    assert rows == [("warning", "other-target", "the file is named for gfx942 and audited on gfx950")]


def test_text_of_files_reaches_neither_terminal_nor_page_unescaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    name = "\x1b[31m<b>|`\n::error::x"
    shown = checked(tmp_path, joint_map(), {"any": {"M": 16, name: 1}})
    assert "\x1b" not in shown.stdout
    page = (tmp_path / "page.md").read_text()
    assert "<b>" not in page and "\x1b" not in page
    assert "1 warning." in page
    warning = [line for line in shown.stderr.splitlines() if line.startswith("::")]
    assert len(warning) == 1
    assert warning[0].startswith("::warning file=shipped.json,line=1,title=gluonmap check (gfx950)%3A unknown-key::")


def test_a_map_of_single_values_judges_its_single_values(tmp_path: Path) -> None:
    shown = checked(tmp_path, single_map(), {"M_LEQ_16": {"M": 64}, "any": {"M": 64, "N": 64}}, "--json")
    outcomes = [(e["entry"], e["outcome"]) for e in json.loads(shown.stdout)["entries"]]
    assert outcomes == [("M_LEQ_16", "PASS"), ("any", "unknown")]


def test_a_name_that_breaks_the_line_does_not_end_the_sentence(tmp_path: Path) -> None:
    shown = checked(tmp_path, joint_map(), {"x\ny": {"M": 128, "N": 128}})
    (line,) = [line for line in shown.stdout.splitlines() if "error" in line and "x y" in line]
    assert line.endswith("]")
