"""Print a sample of the findings of `gluonmap lint` in a checkout, with the code around each, for a reader to judge.

    python benchmarks/lint.py CHECKOUT/aiter/ops/triton --seed 5

benchmarks/lint.md says how the last sample was judged.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

from gluonmap.lint import RULES, LintFinding, LintSettings, lint

ALL_OF = 31
"""Largest number of findings of one code that are all shown; of more, 30 are drawn."""


def main() -> None:
    """Print the counts, then the sample in the order of its codes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--seed", type=int, default=5)
    options.add_argument("--lines", type=int, default=4, help="lines of code around each")
    chosen = options.parse_args()
    start = time.perf_counter()
    found = lint([chosen.folder], LintSettings(frozenset(RULES)))
    print(f"{found.files} files in {time.perf_counter() - start:.1f} s")
    by_code: dict[str, list[LintFinding]] = {}
    for item in found.findings:
        by_code.setdefault(item.code, []).append(item)
    print(dict(Counter(item.code for item in found.findings)))
    for items in (by_code[code] for code in sorted(by_code)):
        drawn = items if len(items) <= ALL_OF else random.Random(chosen.seed).sample(items, 30)
        for item in sorted(drawn, key=lambda item: (item.path, item.line)):
            _show(item, chosen.folder, chosen.lines)


def _show(item: LintFinding, folder: Path, around: int) -> None:
    print(f"\n{Path(item.path).relative_to(folder)}:{item.line} {item.code} {item.message}")
    lines = Path(item.path).read_text().splitlines()
    for number in range(max(item.line - around, 1), min(item.line + around, len(lines)) + 1):
        print(f"{number:6} {lines[number - 1]}")


if __name__ == "__main__":
    main()
