"""What is written for GitHub Actions."""

from __future__ import annotations

from pathlib import Path

import pytest

from gluonmap.report.github import Level, annotate, summarise


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The page of a run in GitHub Actions."""
    page = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    return page


def test_an_annotation_stands_at_its_line_and_hides_no_command_of_its_own(
    actions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    annotate(Level.ERROR, "100 %\n::stop-commands::x", file=actions.parent / "a,b:c.py", line=3, title="T1")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "::error file=a%2Cb%3Ac.py,line=3,title=T1::100 %25%0A::stop-commands::x\n"


def test_a_long_message_is_cut_between_characters(actions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    annotate(Level.NOTICE, "é" * 5000)
    assert capsys.readouterr().err == f"::notice::{'é' * 2000}\n"


def test_the_page_grows(actions: Path) -> None:
    summarise("# one")
    summarise("two\n")
    assert actions.read_text() == "# one\n\ntwo\n\n"


def test_elsewhere_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page"))
    annotate(Level.WARNING, "text")
    summarise("text")
    assert capsys.readouterr() == ("", "")
    assert not (tmp_path / "page").exists()
