"""Findings in a GitHub Actions run: an annotation at a line of the pull request, and the page of the run.

Both are no-ops elsewhere, so commands call them without asking where they are.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

import click

MESSAGE_BYTES = 4000
"""GitHub cuts an annotation at 4 KiB, without a mark."""


class Level(StrEnum):
    """Severity of an annotation, as GitHub names it."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


def active() -> bool:
    """Return whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotate(level: Level, message: str, *, file: str | Path = "", line: int | None = None, title: str = "") -> None:
    """Annotate a line of a file below the workspace. The annotation goes to stderr: stdout is for JSON."""
    if not active():
        return
    where = {"file": _below_workspace(file) if file else "", "line": str(line or ""), "title": title}
    given = ",".join(f"{name}={_property(value)}" for name, value in where.items() if value)
    text = message.encode()[:MESSAGE_BYTES].decode(errors="ignore")
    click.echo(f"::{level}{' ' if given else ''}{given}::{_data(text)}", err=True)


def summarise(markdown: str) -> None:
    """Append Markdown to the page of the run."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if active() and path:
        with open(path, "a", encoding="utf-8") as page:
            page.write(markdown.rstrip("\n") + "\n\n")


def _below_workspace(file: str | Path) -> str:
    workspace = os.environ.get("GITHUB_WORKSPACE")
    path = Path(file)
    if workspace and path.is_absolute() and path.is_relative_to(workspace):
        path = path.relative_to(workspace)
    return path.as_posix()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
