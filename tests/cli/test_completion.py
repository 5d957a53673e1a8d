"""Completion of a shell after TAB."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from maps import single_map
from project import REPOSITORY

from gluonmap.cli.command_group import cli
from gluonmap.model import codec


def offered(*words: str) -> list[str]:
    """Return the completions of the last word."""
    *before, last = words
    return [
        item.value for item in ShellComplete(cli, {}, "gluonmap", "_GLUONMAP_COMPLETE").get_completions(before, last)
    ]


@pytest.fixture
def stored(tmp_path: Path) -> str:
    codec.write(tmp_path / "double.gfx950.json", codec.dumps(single_map()))
    return str(tmp_path / "double.gfx950.json")


@pytest.mark.parametrize("command", ["probe", "find-default"])
def test_targets_are_offered_by_name_and_alias_and_after_a_comma(command: str) -> None:
    assert offered(command, "k.py", "--target", "gfx9") == ["gfx942", "gfx950"]
    assert offered(command, "k.py", "-t", "cdna") == ["cdna3", "cdna4"]
    assert offered(command, "k.py", "-t", "gfx942,gfx9") == ["gfx942,gfx950"]


@pytest.mark.parametrize("command", ["explain", "repeat"])
def test_knobs_of_the_map_are_offered_with_their_values(stored: str, command: str) -> None:
    assert offered(command, stored, "F") == ["FLAG=False", "FLAG=True"]
    assert offered(command, stored, "M=32", "MODE=") == ["MODE=None", "MODE=.ca", "MODE=.cg"]
    assert len(offered(command, stored, "")) == 4 + 4 + 4 + 2 + 3


def test_where_the_shell_splits_at_the_equals_sign_the_value_alone_is_offered(stored: str) -> None:
    assert offered("explain", stored, "M", "=") == ["16", "32", "64", "128"]
    assert offered("explain", stored, "M", "=", "1") == ["16", "128"]
    assert offered("explain", stored, "M", "=", "16", "ST") == ["STAGES=1", "STAGES=2", "STAGES=3", "STAGES=4"]


def test_each_value_is_offered_with_its_outcome(stored: str) -> None:
    found = ShellComplete(cli, {}, "gluonmap", "_GLUONMAP_COMPLETE").get_completions(["explain", stored], "M=")
    assert [item.help for item in found] == ["PASS", "PASS", "PASS", "PASS"]


def test_a_map_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    assert offered("explain", str(tmp_path / "broken.json"), "M") == []
    assert offered("explain", str(tmp_path / "none.json"), "M") == []


def test_bash_itself_completes_a_word(stored: str, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed here")
    tool = tmp_path / "gluonmap"
    tool.write_text(f"#!{sys.executable}\nfrom gluonmap.cli import main\nmain()\n")
    tool.chmod(0o755)
    script = f"""
        eval "$(_GLUONMAP_COMPLETE=bash_source gluonmap)"
        COMP_WORDS=(gluonmap explain {stored} M = 1)
        COMP_CWORD=5
        _gluonmap_completion gluonmap
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        [bash, "-c", script],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["16", "128"], "")
