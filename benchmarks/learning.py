"""How few questions the learner needs: the floor and the goals, measured on recorded tables and hidden constraints.

    python benchmarks/learning.py [--seeds N] [--tables DIR] [--out benchmarks/learning.md] [GROUP[:SEEDS] …]

Tables of compile verdicts come from `../shared/truth/rows` where that exists; the oracles from `oracles.py`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import oracles  # noqa: E402

from gluonmap.acquire import Learned, learn  # noqa: E402
from gluonmap.table import Score, Watcher, learn_table, read_table  # noqa: E402

WITHIN = 250
GROUPS: dict[str, tuple[str, Sequence[oracles.Hidden]]] = {
    "design": ("tables in the manner of real kernels, designed with", oracles.DESIGN),
    "held out": ("tables in the manner of real kernels, only scored on", oracles.HELD_OUT),
    "fresh": ("tables in the manner of real kernels, written after the learner was finished", oracles.FRESH),
    "islands": ("pins with partner values, islands", oracles.ISLANDS),
    "nogoods": ("rare nogoods of three knobs", oracles.NOGOODS),
    "outside": ("plain sums, random tables", oracles.OUTSIDE),
    "large": ("spaces of 10^4 to 5·10^10", oracles.LARGE),
}


@dataclass(frozen=True)
class Run:
    """One run of the learner."""

    group: str
    name: str
    size: int
    seed: int
    score: Score
    seconds: float
    scopes: tuple[int, int] = (0, 0)
    """Reasons whose constraints read exactly the knobs of the hidden rule, and reasons."""


def table_runs(folder: Path, seeds: int) -> Iterator[Run]:
    for path in sorted(folder.glob("*.jsonl")):
        table = read_table(path)
        for seed in range(seeds):
            start = time.process_time()
            _, score = learn_table(table, seed=seed)
            yield Run("recorded", table.name, len(table), seed, score, time.process_time() - start)


def oracle_runs(group: str, hidden: Sequence[oracles.Hidden], seeds: int) -> Iterator[Run]:
    for oracle in hidden:
        rows = oracle.judged()
        fails = oracle.labels(rows) != 0
        for seed in range(seeds):
            start = time.process_time()
            watcher = Watcher(rows, fails)
            learned = learn(oracle, oracle.domains, baseline=oracle.baseline, seed=seed, watch=watcher)
            seconds = time.process_time() - start
            scopes = exact_scopes(oracle, learned)
            yield Run(group, oracle.name, oracle.space.size, seed, watcher.score(learned), seconds, scopes)


def exact_scopes(oracle: oracles.Hidden, learned: Learned) -> tuple[int, int]:
    hidden = oracle.scopes()
    found: dict[str, frozenset[str]] = {}
    for item in learned.constraints:
        found[item.reason] = found.get(item.reason, frozenset()) | frozenset(item.scope)
    return sum(found.get(reason) == scope for reason, scope in hidden.items()), len(hidden)


def summary(runs: Sequence[Run]) -> str:
    """The whole report, in Markdown."""
    lines = [
        "# How few questions the learner needs",
        "",
        "Written by `benchmarks/learning.py`. *exact*: questions after which the model was right on every row for good",
        "(spaces above two million configurations: on 400,000 drawn ones). *before validation*: questions before those",
        f"for the certificate. *within*: runs exact within {WITHIN} questions. Seconds: learner and oracle together.",
        "*scopes exact*: reasons whose constraints read exactly the knobs of the hidden rule.",
        "",
    ]
    for group in dict.fromkeys(run.group for run in runs):
        title = GROUPS[group][0] if group in GROUPS else "recorded tables of compile verdicts"
        mine = [run for run in runs if run.group == group]
        lines += [f"## {group}: {title}", "", *_table(mine), ""]
    return "\n".join(lines)


def _table(runs: Sequence[Run]) -> Iterator[str]:
    columns = ("space", "configurations", "runs", "exact", "within", "exact at: median", "worst")
    columns += ("before validation: median", "worst", "precision, worst", "recall, worst", "s per run", "scopes exact")
    yield f"| {' | '.join(columns)} |"
    yield "| --- " * len(columns) + "|"
    for name in dict.fromkeys(run.name for run in runs):
        yield _line(name, [run for run in runs if run.name == name])
    yield _line("**all**", runs)


def _line(name: str, runs: Sequence[Run]) -> str:
    exact = [run.score.exact_from for run in runs if run.score.exact_from is not None]
    within = sum(at <= WITHIN for at in exact)
    before = [run.score.before_validation for run in runs]
    sizes = {run.size for run in runs}
    cells = [
        name,
        f"{sizes.pop():,}" if len(sizes) == 1 else "",
        str(len(runs)),
        str(len(exact)),
        str(within),
        _median(exact),
        str(max(exact)) if len(exact) == len(runs) else "never",
        _median(before),
        str(max(before)),
        f"{min(run.score.precision for run in runs):.4f}",
        f"{min(run.score.recall for run in runs):.4f}",
        f"{statistics.mean(run.seconds for run in runs):.1f}",
        _share(sum(run.scopes[0] for run in runs), sum(run.scopes[1] for run in runs)),
    ]
    return f"| {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _median(values: Sequence[int]) -> str:
    return f"{statistics.median(values):g}" if values else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["recorded", *GROUPS]
    parser.add_argument(
        "groups", nargs="*", default=known, help=f"{', '.join(known)}; with a number of seeds: islands:5"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tables", type=Path, default=Path(__file__).parents[2] / "shared" / "truth" / "rows")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "learning.md")
    options = parser.parse_args()
    runs: list[Run] = []
    for wanted in options.groups:
        group, _, seeds = wanted.partition(":")
        for run in runs_of(group, int(seeds or options.seeds), options.tables):
            runs.append(run)
            print(run.group, run.name, run.seed, run.score, f"{run.seconds:.1f} s", file=sys.stderr, flush=True)
        options.out.write_text(summary(runs), encoding="utf-8")


def runs_of(group: str, seeds: int, tables: Path) -> Iterator[Run]:
    return table_runs(tables, seeds) if group == "recorded" else oracle_runs(group, GROUPS[group][1], seeds)


if __name__ == "__main__":
    main()
