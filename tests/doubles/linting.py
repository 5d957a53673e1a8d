"""Runs of the linter on the text of one file."""

from __future__ import annotations

import textwrap
from pathlib import Path

from gluonmap.lint import RULES, LintFinding, LintSettings, lint

HEAD = "import triton\nimport triton.language as tl\n\n"
EVERY = LintSettings(frozenset(RULES))
TAIL = (
    HEAD
    + """
@triton.jit
def kernel(x_ptr, y_ptr, M, K, EVEN: tl.constexpr, BM: tl.constexpr):
    pid = tl.program_id(0)
    row = pid * BM
    rows = row + tl.arange(0, BM)
    {line}
    tl.store(y_ptr + rows, x, mask={mask})
{host}
"""
)
"""A kernel whose last tile may reach past the tensor, with slots for a line, a mask and host code."""


def findings(
    folder: Path, text: str, settings: LintSettings = EVERY, name: str = "kernel.py"
) -> tuple[LintFinding, ...]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return lint([path], settings).findings


def codes(folder: Path, text: str, name: str = "kernel.py") -> list[tuple[str, int]]:
    return [(item.code, item.line) for item in findings(folder, text, name=name)]
