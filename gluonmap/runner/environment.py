"""Circumstances that an answer depends on: the installed Triton, the interpreter and environment variables.

Nothing is imported to find them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
from pathlib import Path

from gluonmap.model.errors import UsageError

# Variables that this tool sets itself, or that do not change what is compiled.
_NO_INFLUENCE = frozenset({"TRITON_CACHE_DIR", "TRITON_ALWAYS_COMPILE", "TRITON_PRINT_AUTOTUNING", "TRITON_HOME"})
_PREFIXES = ("TRITON_", "AMDGCN_", "LLVM_", "MLIR_", "PTXAS_")
_OLDEST, _BEYOND = (3, 6), (3, 10)


def triton_folder() -> Path:
    """Return the folder of the Triton that this interpreter would import.

    Raises:
        UsageError: there is none.
    """
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            "Triton is not installed in this environment. Install it with:  pip install 'gluonmap[compile]'\n"
            "  or name an environment that has it:  --python VENV"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def triton_version(folder: Path) -> str:
    """Return the version of the Triton in `folder`, read from its text.

    Raises:
        UsageError: a release that gluonmap does not know.
    """
    match = re.search(r"__version__ = ['\"]([^'\"]+)['\"]", (folder / "__init__.py").read_text())
    version = match[1] if match else "unknown"
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    if numbers and not _OLDEST <= numbers < _BEYOND:
        raise UsageError(f"Triton {version} is installed; gluonmap knows 3.6 to 3.9: pip install 'triton>=3.6,<3.10'")
    return version


def identity(folder: Path) -> str:
    """Return a hash that changes with any file of the Triton in `folder` and with the interpreter's version."""
    digest = hashlib.sha256(platform.python_version().encode())
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".so", ".bc")) or "bin" in Path(root).parts:
                status = os.stat(os.path.join(root, name))
                digest.update(
                    f"{os.path.relpath(root, folder)}/{name} {status.st_size} {status.st_mtime_ns}\n".encode()
                )
    return digest.hexdigest()[:20]


def model_identity(folder: Path = Path(__file__).parent.parent) -> str:
    """Return a hash of torch's version and of the modules that execute programs on the CPU and compare their results.

    `folder` is the folder of gluonmap.
    """
    parts = sorted((folder / "cdna").rglob("*.py"))
    parts += [folder / "worker" / f"{name}.py" for name in ("execute", "launch", "check", "tensors")]
    digest = hashlib.sha256()
    for path in parts:
        digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        digest.update(importlib.metadata.version("torch").encode())
    return digest.hexdigest()[:20]


def environment() -> dict[str, str]:
    """Return the variables that can change what Triton compiles."""
    return {k: v for k, v in sorted(os.environ.items()) if k.startswith(_PREFIXES) and k not in _NO_INFLUENCE}
