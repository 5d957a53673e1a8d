"""The registry of exporters: one declaration reaches the command, its help and the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from maps import joint_map
from msgspec.structs import replace
from project import REPOSITORY

from gluonmap.cli.command_group import cli
from gluonmap.cli.export import export_command
from gluonmap.export.registry import EXPORTERS, Exporter, by_name
from gluonmap.model import codec

CSV = Exporter(
    name="x-none",
    description="a table with one row per kernel",
    file_name=lambda request: f"{request.space.target}.csv",
    render=lambda request: f"kernel,limit\n{request.space.kernel},{request.limit}\n",
    note=lambda request: "nothing in it was timed",
    takes_limit=True,
)
WITH_CSV = {**EXPORTERS, "x-none": CSV}


def run(command: click.Command, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], terminal_width=1000)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "gemm.gfx950.json"
    codec.write(path, codec.dumps(replace(joint_map(()), kernel="gemm", target="gfx950")))
    return path


def in_docs(exporter: Exporter) -> str:
    """The row of docs/export.md that an exporter must have."""
    options = ", ".join(f"`{option}`" for option in exporter.options)
    return f"| `{exporter.name}` | {exporter.description} | {options or ' '} |"


def undocumented(exporters: dict[str, Exporter]) -> list[str]:
    rows = (REPOSITORY / "docs/export.md").read_text(encoding="utf-8").splitlines()
    return [name for name, exporter in exporters.items() if in_docs(exporter) not in rows]


def test_a_new_exporter_is_offered_and_described_by_help() -> None:
    shown = run(export_command(WITH_CSV), "--help").output
    assert "prune|x-none]" in shown
    assert "x-none: a table with one row per kernel" in shown
    assert "(python, triton-json, prune, x-none)" in shown


def test_a_new_exporter_writes_its_own_file(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    done = run(export_command(WITH_CSV), stored, "--format", "x-none", "--limit", 3, "--out", folder)
    assert done.exit_code == 0, done.output
    assert (folder / "gfx950.csv").read_text() == "kernel,limit\ngemm,3\n"
    assert done.stderr.splitlines() == [f"gluonmap: {folder}/gfx950.csv written", "gluonmap: nothing in it was timed"]


def test_options_that_a_format_does_not_take_are_refused(stored: Path) -> None:
    refused = run(export_command(WITH_CSV), stored, "--format", "x-none", "--race", "m16.race.json")
    assert refused.exit_code == 2
    assert "--race goes with one map and the formats aiter, vllm." in refused.output
    for name, exporter in EXPORTERS.items():
        done = run(cli, "export", stored, "--format", name, "--limit", 3)
        assert ("--limit goes with" in done.output) is not exporter.takes_limit, name


def test_an_unknown_format_is_a_usage_error(stored: Path) -> None:
    done = run(cli, "export", stored, "--format", "x-none")
    assert done.exit_code == 2
    assert "'x-none' is not one of 'python'" in done.output


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"name": "kernel tuner"}, "needs a name"),
        ({"name": ""}, "needs a name"),
        ({"description": " "}, "needs a description of one line"),
        ({"description": "two\nlines"}, "needs a description of one line"),
    ],
)
def test_a_malformed_exporter_cannot_be_declared(changed: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        by_name([CSV._replace(**changed)])


@pytest.mark.parametrize("missing", ["name", "description", "file_name", "render"])
def test_a_half_declared_exporter_is_an_error(missing: str) -> None:
    parts: dict[str, Any] = CSV._asdict()
    del parts[missing]
    with pytest.raises(TypeError, match=missing):
        Exporter(**parts)


def test_two_exporters_cannot_have_one_name() -> None:
    with pytest.raises(ValueError, match="two exporters are named 'x-none'"):
        by_name([CSV, CSV])


def test_docs_describe_every_exporter() -> None:
    assert undocumented(EXPORTERS) == []
    assert undocumented(WITH_CSV) == ["x-none"]


def test_the_readme_names_every_format() -> None:
    formats = r"\|".join(EXPORTERS)
    assert f"| `gluonmap export MAP --format {formats}` |" in (REPOSITORY / "README.md").read_text(encoding="utf-8")
