"""Places where a project's Python code names a key. Host code may read keys that kernel and compiler do not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

MOST_FILES = 4000
_ROOTS = (".git", "pyproject.toml", "setup.py")


def find_mentions(keys: Iterable[str], kernel_file: Path) -> dict[str, str]:
    """Return the first place of each key that occurs in quotes below the project's root: "ops/gemm.py:12".

    The root is the nearest folder above the kernel's file that is a repository or a package to be installed.
    """
    left = set(keys)
    if not left:
        return {}
    above = [folder for folder in kernel_file.parents if any((folder / name).exists() for name in _ROOTS)]
    root = above[0] if above else kernel_file.parent
    mentions: dict[str, str] = {}
    for number, path in enumerate(sorted(root.rglob("*.py"))):
        if not left or number >= MOST_FILES:
            break
        try:
            text = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        for key in [key for key in left if key in text]:
            if match := re.search(rf"""(["']){re.escape(key)}\1""", text):
                mentions[key] = f"{path.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
                left.discard(key)
    return mentions
