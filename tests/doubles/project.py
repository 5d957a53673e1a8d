"""A project folder, and the tool run in it as a user runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


KERNELS = REPOSITORY / "tests" / "kernels"


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
