"""A sample of what `gluonmap lint` finds in a checkout, with the code around it, to be judged by reading.

    python benchmarks/lint.py CHECKOUT/aiter/ops/triton --seed 5

How the last one was judged: benchmarks/lint.md.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

from gluonmap.lint import RULES, LintFinding, LintSettings, lint

ALL_OF = 31
"""Findings of one code up to which all are shown; of more, a draw of 30."""


def main() -> None:
    """Print the counts, then the sample in the order of its codes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--seed", type=int, default=5)
    options.add_argument("--lines", type=int, default=4, help="lines of code around each")
    told = options.parse_args()
    start = time.perf_counter()
    found = lint([told.folder], LintSettings(frozenset(RULES)))
    print(f"{found.files} files in {time.perf_counter() - start:.1f} s")
    by_code: dict[str, list[LintFinding]] = {}
    for item in found.findings:
        by_code.setdefault(item.code, []).append(item)
    print(dict(Counter(item.code for item in found.findings)))
    for items in (by_code[code] for code in sorted(by_code)):
        drawn = items if len(items) <= ALL_OF else random.Random(told.seed).sample(items, 30)
        for item in sorted(drawn, key=lambda item: (item.path, item.line)):
            _show(item, told.folder, told.lines)


def _show(item: LintFinding, folder: Path, around: int) -> None:
    print(f"\n{Path(item.path).relative_to(folder)}:{item.line} {item.code} {item.message}")
    lines = Path(item.path).read_text().splitlines()
    for number in range(max(item.line - around, 1), min(item.line + around, len(lines)) + 1):
        print(f"{number:6} {lines[number - 1]}")


if __name__ == "__main__":
    main()
