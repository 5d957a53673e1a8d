"""`gluonmap diff`: exit codes, formats, GitHub annotations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from compared_maps import NAMES, compared, text, with_value
from maps import single_map
from msgspec.structs import replace

from gluonmap.cli.command_group import cli
from gluonmap.diff.comparison import difference
from gluonmap.model import codec
from gluonmap.model.knobs import Effect
from gluonmap.model.space_map import SpaceMap
from gluonmap.report.diff.rendered import render_markdown


def written(folder: Path, *spaces: SpaceMap) -> list[str]:
    paths = [folder / name for name in NAMES]
    for path, space in zip(paths, spaces, strict=True):
        codec.write(path, codec.dumps(space))
    return [str(path) for path in paths]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["diff", *arguments])


LOST = with_value(single_map(), "N", 128, outcome="CRASHED", effect=Effect.ABORTING, kind="SIGABRT", reason="died")
LIVE = with_value(single_map(), "MODE", ".cg", effect=Effect.INERT)


@pytest.mark.parametrize(
    ("other", "fail_on", "code"),
    [
        (LOST, (), 0),
        (LOST, ("--fail-on", "regression"), 1),
        (LOST, ("--fail-on", "change"), 1),
        (LIVE, ("--fail-on", "regression"), 0),
        (LIVE, ("--fail-on", "change"), 1),
        (single_map(), ("--fail-on", "change"), 0),
        (replace(single_map(), triton="3.6.0"), ("--fail-on", "change"), 0),
    ],
)
def test_the_exit_code_is_1_only_where_it_was_asked_for(
    tmp_path: Path, other: SpaceMap, fail_on: tuple[str, ...], code: int
) -> None:
    result = run(*written(tmp_path, single_map(), other), *fail_on)
    assert result.exit_code == code, result.output


def test_a_file_that_is_no_map_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"schema": "gluonmap.map/9"}')
    result = run(str(tmp_path / "a.json"), str(tmp_path / "a.json"))
    assert result.exit_code == 2
    assert "gluonmap.map/9" in result.output


def test_a_map_from_before_the_source_was_recorded_is_read(tmp_path: Path) -> None:
    document = json.loads(codec.dumps(single_map()))
    del document["source"]
    (tmp_path / "a.json").write_text(json.dumps(document))
    result = run(str(tmp_path / "a.json"), str(tmp_path / "a.json"))
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "A → B: No difference.")


def test_json_holds_all_of_it(tmp_path: Path) -> None:
    paths = written(tmp_path, single_map(), LOST)
    document = json.loads(run(*paths, "--json").output)
    assert document == json.loads(run(*paths, "--format", "json").output)
    assert (document["schema"], document["A"], document["B"], document["changed"]) == ("gluonmap.diff/1", *paths, True)
    (regression,) = document["regressions"]
    assert (regression["kind"], regression["moves"]) == ("value", {"N": 128})
    (value,) = document["values"]
    assert (value["turn"], value["before"]["outcome"], value["after"]["kind"]) == ("newly aborting", "PASS", "SIGABRT")


def test_text_says_which_map_is_which_and_what_to_run_next(tmp_path: Path) -> None:
    paths = written(tmp_path, single_map(), LOST)
    said = run(*paths).output
    assert said.startswith(f"A  {paths[0]}: double on gfx950 (cdna4), Triton 3.9.0\nB  {paths[1]}: ")
    assert "A → B: Regression: 1 value fails. 1 value newly aborting." in " ".join(said.split())
    assert "newly aborting: N = 128: Δ live → ✗ CRASHED SIGABRT" in said
    assert f"gluonmap explain {paths[1]} N=128" in said


HOSTILE = "\x1b[31mred\x1b[0m <b>|`*_x_ & \u202e"


def test_texts_of_compilers_act_on_no_terminal_and_no_page() -> None:
    after = with_value(single_map(), "N", 128, outcome="CRASHED", effect=Effect.ABORTING, kind=HOSTILE, reason=HOSTILE)
    found = difference(single_map(), replace(after, triton=HOSTILE))
    for shown in (text(found), render_markdown(found, NAMES)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    page = render_markdown(found, NAMES)
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


@pytest.mark.parametrize("width", [20, 60, 200])
def test_at_any_width_nothing_is_cut(width: int) -> None:
    found = difference(single_map(), LOST)
    assert "SIGABRT" in text(found, width).replace("\n", "").replace(" ", "")


def test_on_github_regressions_are_at_their_lines_and_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    lost = with_value(LOST, "N", 128, file="kernels/double.py", line=74)
    paths = written(tmp_path, single_map(), lost)
    for arguments, level in (((), "warning"), (("--fail-on", "regression"), "error")):
        result = run(*paths, "--json", *arguments)
        (line,) = result.stderr.splitlines()
        assert line.startswith(
            f"::{level} file=kernels/double.py,line=74,title=gluonmap diff%3A regression::N=128: "
            "passed, and now fails: CRASHED, died (kernels/double.py:74)"
        )
        json.loads(result.stdout)
    assert page.read_text().count("# `double`: A → B") == 2


@pytest.mark.parametrize("form", ["html", "markdown", "json", "text"])
def test_out_writes_what_is_printed_without_it(tmp_path: Path, form: str) -> None:
    paths = written(tmp_path, *compared())
    printed = run(*paths, "--format", form)
    assert printed.exit_code == 0, printed.output
    result = run(*paths, "--format", form, "--out", str(tmp_path / "out"), "--fail-on", "regression")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"gluonmap: {tmp_path / 'out'} written\n"
    assert (tmp_path / "out").read_text() == printed.stdout
    if form == "html":
        assert printed.stdout.startswith("<!doctype html>")
