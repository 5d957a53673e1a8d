"""A project folder of its own for each test, and the tool run in it as a user runs it."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
KERNELS = Path(__file__).resolve().parent / "kernels"
SETTLED_S = 10.0
"""Processes that were told to end have ended after this."""


@dataclass(frozen=True)
class Finished:
    """What one run of the tool left: its exit code, what it said, and how long it took."""

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def map(self) -> dict[str, Any]:
        """The map that `--json` printed; the whole run is shown where it is none."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            raise AssertionError(f"no map was printed: {self}") from None


class Project:
    """A folder with kernels, and a folder for temporary files that nothing else uses."""

    def __init__(self) -> None:
        # Not pytest's tmp_path: the name of a socket may have 107 bytes, and a test's name is a sentence.
        self.home = Path(tempfile.mkdtemp(prefix="gm-"))
        self.root = self.home / "project"
        self.temporary = self.home / "tmp"
        self.root.mkdir()
        self.temporary.mkdir()

    def write(self, name: str, text: str | bytes) -> Path:
        """A file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def kernel(self, name: str, **knobs: list[Any]) -> str:
        """One of the kernels beside these tests, copied; a probe file turns the knobs given, and no others."""
        shutil.copy(KERNELS / f"{name}.py", self.write(f"kernels/{name}.py", ""))
        if knobs:
            self.probe_file(name, knobs)
        return f"kernels/{name}.py"

    def probe_file(self, name: str, knobs: dict[str, list[Any]], **arguments: Any) -> Path:
        """A probe file of the knobs, the first value of each its baseline; x, y and z are arrays if not said else."""
        baseline = {n: values[0] for n, values in knobs.items()}
        args = {"x": "*fp16", "y": "*fp16", "stride": "i32:16", "n": "i32:16"} | arguments
        return self.write(f"probes/{name}.py", f"KNOBS = {knobs!r}\nBASELINE = {baseline!r}\nARGS = {args!r}\n")

    def start(self, *arguments: str, prefix: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
        """`python -m gluonmap` with these arguments, begun; stdout and stderr are pipes."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON_", "COLUMNS"))}
        path = os.pathsep.join(filter(None, [str(REPOSITORY), inherited.get("PYTHONPATH", "")]))
        own = {"PYTHONPATH": path, "TMPDIR": str(self.temporary), "HOME": str(self.home)}
        own["GLUONMAP_PROBE_DEPTH"] = "singles"  # what most tests are about; the others say --depth joint
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "gluonmap", *arguments],
            cwd=self.root,
            env={**inherited, **own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def run(self, *arguments: str, timeout: float = 150, **more: Any) -> Finished:
        """`python -m gluonmap` with these arguments, to its end."""
        started = time.monotonic()
        process = self.start(*arguments, **more)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        return Finished(process.returncode, stdout, stderr, time.monotonic() - started)

    def journal(self, name: str) -> list[dict[str, Any]]:
        """The records of a journal, by its path below probes/ without suffix."""
        return [json.loads(line) for line in (self.root / "probes" / f"{name}.jsonl").read_text().splitlines()]

    def processes(self) -> list[str]:
        """Running processes that descend from a run here: they have this project's TMPDIR in their environment."""
        found = []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                if str(self.temporary).encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
        return found

    def leftovers(self) -> list[str]:
        """Processes and temporary files that are still there when everything has had time to end."""
        last = time.monotonic() + SETTLED_S
        while (left := self.processes() + [p.name for p in self.temporary.iterdir()]) and time.monotonic() < last:
            time.sleep(0.05)
        return left

    def close(self) -> None:
        left = self.leftovers()
        subprocess.run(["chmod", "-R", "u+w", str(self.home)], check=False)
        shutil.rmtree(self.home)
        assert not left, f"the run left behind: {left}"


def _project() -> Iterator[Project]:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed here: nothing can be compiled")
    project = Project()
    yield project
    project.close()


@pytest.fixture
def project() -> Iterator[Project]:
    """An empty project; after the test no process and no temporary file of its runs may be left."""
    yield from _project()


@pytest.fixture(scope="module")
def shared_project() -> Iterator[Project]:
    """A project that the tests of a module share, for runs that they only look at."""
    yield from _project()


@pytest.fixture
def run_cli(project: Project) -> Callable[..., Finished]:
    """`python -m gluonmap …` in the test's project."""
    return project.run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample-slow", type=int, default=0, help="of the slow tests run this many, always the same ones")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a seeded sample of the slow tests, where one is asked for."""
    wanted = config.getoption("--sample-slow")
    slow = [item for item in items if item.get_closest_marker("slow")]
    if not wanted or len(slow) <= wanted:
        return
    kept = set(random.Random(0).sample(range(len(slow)), wanted))
    dropped = {id(item) for place, item in enumerate(slow) if place not in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
    items[:] = [item for item in items if id(item) not in dropped]
