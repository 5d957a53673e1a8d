"""Runs of the tool that a test watches or interrupts."""

from __future__ import annotations

import collections
import os
import subprocess
import time
from typing import Any

from project import REPOSITORY, Project


def per_candidate(records: list[dict[str, Any]], type_: str) -> collections.Counter[str]:
    return collections.Counter(record["key"] for record in records if record["type"] == type_)


NO_PROCESSES = """
import sys

def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"):
        raise RuntimeError(f"{event} {arguments}")

sys.addaudithook(refuse)
"""


def without_processes(project: Project) -> dict[str, str]:
    """An environment in which the tool's own interpreter cannot start any process."""
    site = project.write("site/sitecustomize.py", NO_PROCESSES).parent
    return {"PYTHONPATH": os.pathsep.join([str(site), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])}


def answers(project: Project, name: str) -> int:
    path = project.root / "probes" / f"{name}.jsonl"
    return path.read_bytes().count(b'{"type":"answer"') if path.is_file() else 0


def wait_for_answers(project: Project, name: str, least: int, process: subprocess.Popen[str]) -> None:
    last = time.monotonic() + 60
    while answers(project, name) < least and process.poll() is None and time.monotonic() < last:
        time.sleep(0.005)
