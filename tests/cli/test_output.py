"""Output of every command: help with an example, plain text for pipes, no unwanted colour, sound JSON."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from project import REPOSITORY, Project

from gluonmap.cli.command_group import COMMANDS, cli

MAP = "reports/cdna4/gemm_mxfp4.gfx950.json"
NAMES = sorted(cli.commands)
FINDING = {"engaged", "explain", "find-default", "key", "predict", "probe"}
"""Commands whose exit code 1 is a finding."""
COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")
SHOWN = {
    "report": ["report", MAP],
    "explain, infeasible": ["explain", MAP, "BLOCK_SIZE_M=128", "--no-compile"],
    "explain, feasible": ["explain", MAP, "NUM_KSPLIT=2", "--no-compile"],
    "key": ["key", "kernels/cdna3/gemm_bf16.py"],
    "learn": ["learn", "--from", "verdicts.jsonl"],
    "predict": ["predict", MAP, "--configs", "configs.jsonl"],
    "space": ["space", MAP],
    "targets": ["targets"],
}
JSON = {name: [*arguments, "--json"] for name, arguments in SHOWN.items() if name != "predict"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the bundled kernels and maps, configurations, and a table of verdicts."""
    folder = tmp_path_factory.mktemp("output")
    for name in ("kernels", "probes"):
        (folder / name).symlink_to(REPOSITORY / name)
    (folder / MAP).parent.mkdir(parents=True)
    (folder / MAP).write_bytes((REPOSITORY / MAP).read_bytes())
    (folder / "configs.jsonl").write_text('{"BLOCK_SIZE_M": 128}\n{"num_warps": 8}\n')
    rows = [
        {"config": {"A": a, "B": b}, "outcome": "PASS" if a * b <= 8 else "REJECTED", "reason": "a × b … too large"}
        for a in (1, 2, 4, 8)
        for b in (1, 2, 4, 8)
    ]
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def environment(**more: str) -> dict[str, str]:
    left_out = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "PYTHONIOENCODING", "TTY_COMPATIBLE")
    inherited = {k: v for k, v in os.environ.items() if k not in left_out}
    path = os.pathsep.join([str(REPOSITORY), inherited.get("PYTHONPATH", "")])
    return {**inherited, "PYTHONPATH": path, "TERM": "xterm-256color", **more}


def piped(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "gluonmap", *arguments],
        cwd=folder,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def on_terminal(folder: Path, *arguments: str, seconds: float = 60, **more: str) -> bytes:
    """Return stdout and stderr of a command that runs on its own pseudo-terminal."""
    own, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gluonmap", *arguments],
        cwd=folder,
        env=environment(**more),
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    os.close(other)
    seen, last = b"", time.monotonic() + seconds
    try:
        while time.monotonic() < last:
            if select.select([own], [], [], 0.2)[0]:
                seen += os.read(own, 65536)
            elif process.poll() is not None:
                break
    except OSError:  # the other side is closed
        pass
    finally:
        process.kill()
        process.wait()
        os.close(own)
    return seen


# ---- help -----------------------------------------------------------------------------------------------------------


def helped(name: str) -> str:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("name", NAMES)
def test_every_help_has_an_example_that_the_command_understands(name: str) -> None:
    examples = [line.strip() for line in helped(name).splitlines() if line.startswith(f"  gluonmap {name}")]
    assert examples
    command = cli.commands[name]
    for example in examples:
        words = [word.strip("'") for word in example.split()[2:]]
        with command.make_context(name, words, resilient_parsing=False) as context:
            assert context.params  # an option that does not exist raises


@pytest.mark.parametrize("name", NAMES)
def test_every_option_says_what_it_does(name: str) -> None:
    silent = [
        option.opts[0]
        for option in cli.commands[name].params
        if isinstance(option, click.Option) and not option.help and not option.hidden
    ]
    assert silent == []


@pytest.mark.parametrize("name", sorted(FINDING))
def test_a_command_with_findings_says_what_its_exit_code_1_is(name: str) -> None:
    assert re.search(r"Exit codes:.*\b1 ", " ".join(helped(name).split()))


def test_commands_that_print_data_have_json_and_slow_ones_have_quiet() -> None:
    def options(name: str) -> set[str]:
        return {flag for parameter in cli.commands[name].params for flag in parameter.opts}

    without_json = {name for name in NAMES if "--json" not in options(name)}
    assert without_json <= {"export", "repeat"}  # the one writes files of other formats, the other prints JSON anyway
    assert {name for name in NAMES if "--quiet" in options(name)} >= {"find-default", "predict", "probe"}


# ---- text -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHOWN)
def test_a_pipe_gets_plain_text(folder: Path, name: str) -> None:
    done = piped(folder, *SHOWN[name])
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout and b"\x1b" not in done.stdout + done.stderr
    assert b"\r" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["report", "explain, infeasible", "learn"])
def test_a_terminal_gets_colour_unless_it_is_not_wanted(folder: Path, name: str) -> None:
    assert b"\x1b[" in on_terminal(folder, *SHOWN[name])
    assert not COLOUR.search(on_terminal(folder, *SHOWN[name], NO_COLOR="1"))
    assert b"\x1b" not in on_terminal(folder, *SHOWN[name], TERM="dumb")


def test_a_report_is_coloured_on_a_terminal(folder: Path) -> None:
    assert COLOUR.search(on_terminal(folder, *SHOWN["report"]))


@pytest.mark.parametrize("name", [*SHOWN, "help"])
def test_a_terminal_of_another_encoding_gets_escapes_and_no_traceback(folder: Path, name: str) -> None:
    arguments = SHOWN.get(name, ["explain", "--help"])
    for encoding in ("latin-1", "ascii"):
        done = piped(folder, *arguments, PYTHONIOENCODING=encoding)
        assert done.returncode in (0, 1), done.stderr
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", JSON)
def test_json_is_utf_8_on_every_terminal(folder: Path, name: str) -> None:
    done = piped(folder, *JSON[name], PYTHONIOENCODING="latin-1")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout.decode("utf-8"))
    assert done.stdout == piped(folder, *JSON[name]).stdout


def test_lines_of_json_are_json_one_by_one(folder: Path) -> None:
    done = piped(folder, *SHOWN["predict"], "--json")
    assert [list(json.loads(line))[:1] for line in done.stdout.splitlines()] == [["line"], ["line"], ["summary"]]


# ---- progress -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_progress_is_a_bar_on_a_capable_terminal_and_lines_elsewhere(
    project: Project,
) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0], CHECKED=[1])
    arguments = ["probe", kernel, "-t", "gfx942", "--depth", "singles"]
    said = "gluonmap: baseline PASS in "
    more = {"TMPDIR": str(project.temporary), "HOME": str(project.home)}
    assert said in piped(project.root, *arguments, "--out", "a", **more).stderr.decode()
    assert said.encode() in on_terminal(project.root, *arguments, "--out", "b", TERM="dumb", **more)
    seen = on_terminal(project.root, *arguments, "--out", "c", NO_COLOR="1", **more)
    assert said.encode() not in seen
    assert b"baseline" in seen and b"0/1" in seen
    assert not COLOUR.search(seen)
    assert piped(project.root, *arguments, "--out", "d", "--quiet", **more).stderr == b""


@pytest.mark.long
def test_with_several_targets_each_line_of_progress_names_its_target(
    project: Project,
) -> None:
    kernel = project.kernel("plain", TILE=[256, 128], UNREAD=[0, 1], CHECKED=[1])
    done = project.run("probe", kernel, "-t", "cdna3,cdna4", COLUMNS="100")
    lines = done.stderr.splitlines()
    assert len([line for line in lines if line.startswith("gluonmap: gfx942: baseline PASS in ")]) == 1
    assert len([line for line in lines if line.startswith("gluonmap: gfx950: baseline PASS in ")]) == 1
    assert all(line.startswith(("gluonmap: gfx942: ", "gluonmap: gfx950: ")) for line in lines)
    assert done.stdout.splitlines()[-3:] == [
        "Each target in a sentence",
        "gfx942 (cdna3)  1 of 2 knobs matters on gfx942; UNREAD changes nothing alone.",
        "gfx950 (cdna4)  1 of 2 knobs matters on gfx950; UNREAD changes nothing alone.",
    ]
    assert done.stdout.count("no grid was given") == 2  # once in the notes of each map
    one = project.run("probe", kernel, "-t", "cdna3", "--out", "one")
    assert "gluonmap: baseline PASS in " in one.stderr
    assert "Each target" not in one.stdout


def test_the_list_of_commands_has_a_line_for_each_in_order() -> None:
    shown = CliRunner().invoke(cli, ["--help"], terminal_width=80).output
    assert [line.split()[0] for line in shown.split("Commands:")[1].strip().splitlines()] == [
        command.name for command in COMMANDS
    ]
    assert all(command.short_help for command in COMMANDS)
    assert "..." not in shown.split("Commands:")[1]


def test_a_full_disk_behind_stdout_is_one_sentence() -> None:
    for arguments in (["targets"], ["lint", "kernels/rmsnorm.py"], ["space", MAP]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "gluonmap", *arguments],
                stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=REPOSITORY,
            )  # fmt: skip
        assert done.returncode == 3
        assert done.stderr == "gluonmap: No space left on device: standard output\n"


def test_a_closed_stdout_is_no_finding() -> None:
    command = f"exec {sys.executable} -m gluonmap targets >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False, cwd=REPOSITORY)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_no_file_can_have_is_a_usage_error() -> None:
    name = "a" * 300 + ".py"
    for arguments in (["lint", name], ["key", name], ["probe", name], ["check", name], ["find-default", name]):
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 2, (arguments, done.output)
        assert "File name too long" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_console_script_of_an_older_checkout_still_finds_its_function() -> None:
    """`pip install -e` writes the script once; a later `git pull` does not write it again."""
    script = "import sys; from gluonmap.cli import main; sys.argv = ['gluonmap', '--version']; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gluonmap")
