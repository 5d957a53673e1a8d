"""The same command in another environment, with the Triton of that environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gluonmap.model.errors import UsageError

_BOOT = """
import importlib.util, sys
def leave(text):
    print(f"gluonmap: {venv} {{text}}", file=sys.stderr)
    sys.exit(2)
if importlib.util.find_spec("triton") is None:
    leave(f"has no Triton: {{sys.executable}} -m pip install 'triton>=3.6,<3.10'")
if importlib.util.find_spec("gluonmap") is None or importlib.util.find_spec("multiprocess") is None:
    if sys.version_info[:2] != {version!r}:
        leave(f"has another Python; install gluonmap there: {{sys.executable}} -m pip install gluonmap")
    sys.path += [p for p in {here!r} if p not in sys.path]
import gluonmap.__main__
"""


def become(venv: str) -> None:
    """Replace this process by the same command in another environment.

    If the Python versions are equal, gluonmap's own dependencies are taken from this environment. Its folders come last
    on the path, so the other environment's packages win.

    Raises:
        UsageError: there is no Python in `venv`.
    """
    given = Path(venv)
    python = given if given.is_file() else given / "bin" / "python"
    if not python.is_file():
        raise UsageError(f"there is no Python in {venv} ({python} does not exist).")
    arguments = [
        a
        for i, a in enumerate(sys.argv[1:], 1)
        if not (a == "--python" or a.startswith("--python=") or sys.argv[i - 1] == "--python")
    ]
    own = str(Path(__file__).resolve().parents[2])  # an editable install adds no folder to sys.path
    here = [p for p in [*sys.path, own] if p and Path(p).is_dir()]
    boot = _BOOT.format(venv=str(venv), version=tuple(sys.version_info[:2]), here=here)
    os.execv(str(python), [str(python), "-c", boot, *arguments])
