"""A run of a script in an interpreter that has Triton and nothing else."""

from __future__ import annotations

import os
import subprocess
import tempfile
import venv
from pathlib import Path

import msgspec

from gluonmap.runner import environment

FAILS_AS_RECORDED = 1


class ScriptRun(msgspec.Struct, frozen=True):
    """One run of a script."""

    status: int
    said: str
    """Text on stdout and stderr."""

    @property
    def holds(self) -> bool:
        """The failing call failed as recorded, and the passing one passed."""
        return self.status == FAILS_AS_RECORDED


def run(script: Path) -> ScriptRun:
    """Run the script in a new virtual environment that holds this interpreter's Triton alone."""
    triton = environment.triton_folder()
    with tempfile.TemporaryDirectory(prefix=f"gluonmap-{os.getpid()}-") as folder:
        venv.EnvBuilder(symlinks=True).create(folder)
        (packages,) = Path(folder).glob("lib/python*/site-packages")
        for found in (triton, *triton.parent.glob("*triton*.dist-info")):  # back ends are found by the latter
            (packages / found.name).symlink_to(found)
        done = subprocess.run(
            [str(Path(folder) / "bin" / "python"), "-I", str(script.resolve())],
            cwd=folder,
            env={**os.environ, "TMPDIR": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    return ScriptRun(done.returncode, done.stdout)
