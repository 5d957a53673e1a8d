"""Runs of `gluonmap check` on one map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from project import Finished

from gluonmap.cli.command_group import cli
from gluonmap.model import codec
from gluonmap.model.space_map import SpaceMap


def checked(folder: Path, space: SpaceMap, config: Any, *arguments: str, name: str = "shipped.json") -> Result:
    """`gluonmap check --no-compile` of one file by one map."""
    codec.write(folder / "map.json", codec.dumps(space))
    (folder / name).write_text(config if isinstance(config, str) else json.dumps(config))
    files = ["--configs", str(folder / name)] if config else []
    return CliRunner().invoke(
        cli, ["check", "double.py", "--map", str(folder / "map.json"), "--no-compile", *files, *arguments]
    )


def findings(shown: Result | Finished) -> list[tuple[str, str, str]]:
    """Severity, kind and text of each, as --json tells them."""
    return [(f["severity"], f["kind"], f["text"]) for f in json.loads(shown.stdout)["findings"]]
