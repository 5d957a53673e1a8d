"""Measure how few questions the learner needs, against the goals, on recorded tables and hidden constraints.

    python benchmarks/learning.py [--seeds N] [--tables DIR] [--out benchmarks/learning.md] [GROUP[:SEEDS] …]

`kernels` are the tables in `benchmarks/tables`; `recorded` those in `../shared/truth/rows`, where that exists; the
other groups are the oracles of `oracles.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

import oracles  # noqa: E402

from gluonmap.acquire import Answer, Learned, LearningProgress, Oracle, learn  # noqa: E402
from gluonmap.acquire.answers import ReasonKey, reason_key  # noqa: E402
from gluonmap.acquire.space import Mask, Rows  # noqa: E402
from gluonmap.model.candidate import Config, Value  # noqa: E402
from gluonmap.model.outcomes import Outcome  # noqa: E402
from gluonmap.probe.recorded_table import ModelWatcher, RecordedTable, Score, read_table  # noqa: E402

WITHIN = 250
TABLES = Path(__file__).parent / "tables"
ORACLES: dict[str, tuple[str, Sequence[oracles.Hidden]]] = {
    "held out": ("tables in the manner of real kernels, only scored on", oracles.HELD_OUT),
    "fresh": ("tables in the manner of real kernels, written after the learner was finished", oracles.FRESH),
    "islands": ("pins with partner values, islands", oracles.ISLANDS),
    "nogoods": ("rare nogoods of three knobs, with `deep`", oracles.NOGOODS),
    "outside": ("plain sums, random tables", oracles.OUTSIDE),
    "large": ("spaces of 10^4 to 5·10^10", oracles.LARGE),
    "design": ("tables in the manner of real kernels, designed with", oracles.DESIGN),
}
GROUPS = {
    "kernels": "complete tables of kernels that others wrote, and of the bundled ones",
    "recorded": "recorded tables of compile verdicts, designed with",
    **{name: title for name, (title, _) in ORACLES.items()},
}


@dataclass(frozen=True)
class Run:
    """One run of the learner."""

    group: str
    name: str
    size: int
    seed: int
    score: Score
    ms: float
    """The learner's own time, in milliseconds per question: without the oracle and the scoring."""
    scopes: tuple[int, int] = (0, 0)
    """Number of reasons whose constraints read exactly the hidden rules' knobs, and of all reasons."""
    role: str = ""

    @property
    def exact(self) -> int | None:
        return self.score.exact_from

    @property
    def is_within(self) -> bool:
        return self.exact is not None and self.exact <= WITHIN


class Clock:
    """Clock that adds up the time spent in the functions that it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments)
            finally:
                self.seconds += time.process_time() - start

        return wrapped


def scored(
    oracle: Oracle,
    domains: Mapping[str, Sequence[Value]],
    baseline: Config,
    judged: tuple[Rows, Mask],
    seed: int,
    only: Sequence[Config] | None = None,
    *,
    deep: bool = False,
) -> tuple[Learned, Score, float]:
    """Return the learned model, its score, and the learner's milliseconds per question."""
    watcher, others = ModelWatcher(*judged), Clock()
    watch: Callable[[LearningProgress], None] = others.timed(watcher)
    start = time.process_time()
    learned = learn(others.timed(oracle), domains, baseline=baseline, seed=seed, deep=deep, only=only, watch=watch)
    seconds = time.process_time() - start - others.seconds
    return learned, watcher.score(learned), 1000 * seconds / len(learned.asked)


def table_runs(group: str, tables: Sequence[tuple[RecordedTable, str]], seeds: int) -> Iterator[Run]:
    for table, role in tables:
        only, judged = None if table.complete else table.configs, table.rows_with_evidence()
        for seed in range(seeds):
            _, score, ms = scored(table.oracle(), table.domains, table.likely_baseline(), judged, seed, only)
            yield Run(group, table.name, len(table), seed, score, ms, role=role)


def kernel_tables() -> list[tuple[RecordedTable, str]]:
    """Return the tables of the index; those with the role "score" come first."""
    index = json.loads((TABLES / "index.json").read_text(encoding="utf-8"))
    found = []
    for name, entry in sorted(index.items(), key=lambda item: (item[1]["role"] != "score", item)):
        path = next((p for p in (TABLES / f"{name}.jsonl", TABLES / f"{name}.jsonl.gz") if p.exists()), None)
        if path is not None:
            found.append((read_table(path), str(entry["role"])))
    return found


def oracle_runs(group: str, hidden: Sequence[oracles.Hidden], seeds: int) -> Iterator[Run]:
    for oracle in hidden:
        rows = oracle.judged()
        judged = rows, oracle.labels(rows) != 0
        for seed in range(seeds):
            learned, score, ms = scored(oracle, oracle.domains, oracle.baseline, judged, seed, deep=group == "nogoods")
            yield Run(group, oracle.name, oracle.space.size, seed, score, ms, exact_scopes(oracle, learned))


def exact_scopes(oracle: oracles.Hidden, learned: Learned) -> tuple[int, int]:
    """Return the number of reasons whose constraints read exactly the hidden rules' knobs, and of all reasons."""
    hidden = oracle.scopes()
    found: dict[ReasonKey, frozenset[str]] = {}
    for item in learned.constraints:
        key = reason_key(Answer(Outcome(item.outcome), item.stage, item.reason))
        found[key] = found.get(key, frozenset()) | frozenset(item.scope)
    return sum(found.get(key) == scope for key, scope in hidden.items()), len(hidden)


# ---- the goals -----------------------------------------------------------------------------------------------------


def goals(runs: Sequence[Run]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the subject of each goal, the goal, the measured figure, and whether it is met, for the groups that ran."""
    of: dict[str, list[Run]] = {group: [run for run in runs if run.group == group] for group in GROUPS}
    real = [run for run in [*of["recorded"], *of["kernels"]] if run.role != "score"]
    if wide := [run for run in real if run.size >= 1_000]:
        share = statistics.median(_at(run) / run.size for run in wide)
        yield "tables of ≥ 1,000 rows, not held back: exact after", "≤ 5 %, median", f"{share:.1%}", share <= 0.05
    if real:
        at = statistics.median(_at(run) for run in real)
        yield "tables not held back: exact at", "≤ 60, median", f"{at:g}", at <= 60
    for title, group in (("tables of kernels, only scored on", "kernels"), ("`held out`", ""), ("`fresh`", "")):
        mine = [run for run in of[group or title.strip("`")] if not group or run.role == "score"]
        if mine:
            yield from _never_seen(title, mine)
    tables = [run for group in ("kernels", "recorded", "held out", "fresh", "design") for run in of[group]]
    if tables:
        before = [run.score.before_validation for run in tables]
        measured = f"median {statistics.median(before):g}, worst {max(before)}"
        met = statistics.median(before) <= 60 and max(before) <= 100
        yield "before validation, all tables", "≤ 60 median, ≤ 100 always", measured, met
    if large := [run for run in of["large"] if run.size >= 1e5]:
        at, before = statistics.median(_at(run) for run in large), [run.score.before_validation for run in large]
        measured = f"median {at:g} ({_share(sum(run.is_within for run in large), len(large))} within {WITHIN}), "
        measured += f"{max(before)} before"
        goal = "exact at ≤ 60 median, ≤ 200 before validation"
        yield "spaces of 10^5 and more", goal, measured, at <= 60 and max(before) <= 200
    for group in ("islands", "nogoods"):
        if of[group]:
            exact, total = sum(run.exact is not None for run in of[group]), len(of[group])
            yield f"{GROUPS[group]}: exact", "≥ 95 % of seeds", f"{exact} of {total}", exact >= 0.95 * total
    for title, most, mine in (
        ("plain sums", 150, [run for run in of["outside"] if "sum" in run.name]),
        ("random tables", 300, [run for run in of["outside"] if "random" in run.name]),
    ):
        if mine:
            yield f"{title}: exact at", f"≤ {most}", _extremes([run.exact for run in mine]), max(map(_at, mine)) <= most
    mean = {name: statistics.mean(run.ms for run in runs if run.name == name) for name in {run.name for run in runs}}
    measured = f"median {statistics.median(mean.values()):.0f} ms, worst {max(mean.values()):.0f} ms"
    yield "the learner's own time a question", "≤ 30 ms: 20 % of 0.3 s by two", measured, max(mean.values()) <= 30
    exact, total = sum(run.scopes[0] for run in runs), sum(run.scopes[1] for run in runs)
    if total:
        yield "reasons with exact scopes, all oracles", "≥ 90 %", _share(exact, total), exact >= 0.9 * total


def _never_seen(title: str, runs: Sequence[Run]) -> Iterator[tuple[str, str, str, bool]]:
    within, total = sum(run.is_within for run in runs), len(runs)
    least = min(min(run.score.precision, run.score.recall) for run in runs)
    yield f"{title}: exact within {WITHIN}", "≥ 28 of 30", f"{within} of {total}", within * 30 >= 28 * total
    yield f"{title}: precision and recall, worst", "≥ 0.99", f"{least:.4f}", least >= 0.99


def _at(run: Run) -> float:
    return float("inf") if run.exact is None else run.exact


def _extremes(values: Sequence[int | None]) -> str:
    known = [value for value in values if value is not None]
    return f"median {_median(known)}, worst {max(known) if len(known) == len(values) else 'never'}"


# ---- the report ----------------------------------------------------------------------------------------------------


def summary(runs: Sequence[Run]) -> str:
    """Return the whole report in Markdown."""
    lines = [
        "# How few questions the learner needs",
        "",
        "Written by `benchmarks/learning.py`.",
        "",
        "| what | goal | measured | met |",
        "| --- | --- | --- | --- |",
        *(
            f"| {what} | {goal} | {measured} | {'yes' if met else '**no**'} |"
            for what, goal, measured, met in goals(runs)
        ),
        "",
        "*exact*: number of questions after which the model was right on every row and stayed right (in spaces above",
        "two million configurations: on 400,000 drawn ones). *before validation*: questions before those for the",
        f"certificate. *within*: runs exact within {WITHIN} questions. *ms*: the learner's own processor time per",
        "question, on one core of a machine that others used too. *scopes exact*: reasons whose constraints read",
        "exactly the knobs of the hidden rules. Rules that no configuration violates are left out. Reasons that",
        "differ only in numbers count as one.",
        "",
    ]
    for group in dict.fromkeys(run.group for run in runs):
        mine = [run for run in runs if run.group == group]
        seeds = len({run.seed for run in mine})
        lines += [f"## {group}: {GROUPS[group]} ({seeds} {'seeds' if seeds > 1 else 'seed'})", "", *_table(mine), ""]
    return "\n".join(lines)


def _table(runs: Sequence[Run]) -> Iterator[str]:
    columns = ("space", "role", "configurations", "runs", "exact", "within", "exact at: median", "worst")
    columns += ("before validation: median", "worst", "precision, worst", "recall, worst", "ms", "scopes exact")
    kept = [i for i, name in enumerate(columns) if _is_filled(name, runs)]
    yield f"| {' | '.join(columns[i] for i in kept)} |"
    yield "| --- " * len(kept) + "|"
    for name in [*dict.fromkeys(run.name for run in runs), "**all**"]:
        cells = _cells(name, [run for run in runs if name in (run.name, "**all**")])
        yield f"| {' | '.join(cells[i] for i in kept)} |"


def _is_filled(column: str, runs: Sequence[Run]) -> bool:
    """Return whether any run fills the column: only tables have roles, only oracles have scopes."""
    if column == "role":
        return any(run.role for run in runs)
    return column != "scopes exact" or any(run.scopes[1] for run in runs)


def _cells(name: str, runs: Sequence[Run]) -> list[str]:
    exact = [run.exact for run in runs if run.exact is not None]
    before = [run.score.before_validation for run in runs]
    sizes, roles = {run.size for run in runs}, {run.role for run in runs}
    return [
        name,
        roles.pop() if len(roles) == 1 else "",
        f"{sizes.pop():,}" if len(sizes) == 1 else "",
        str(len(runs)),
        str(len(exact)),
        str(sum(run.is_within for run in runs)),
        _median(exact),
        str(max(exact)) if len(exact) == len(runs) else "never",
        _median(before),
        str(max(before)),
        f"{min(run.score.precision for run in runs):.4f}",
        f"{min(run.score.recall for run in runs):.4f}",
        f"{statistics.mean(run.ms for run in runs):.0f}",
        _share(sum(run.scopes[0] for run in runs), sum(run.scopes[1] for run in runs)),
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _median(values: Sequence[int]) -> str:
    return f"{statistics.median(values):g}" if values else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "groups", nargs="*", default=list(GROUPS), help=f"{', '.join(GROUPS)}; with a number of seeds: islands:5"
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
            print(run.group, run.name, run.seed, run.score, f"{run.ms:.1f} ms", file=sys.stderr, flush=True)
        options.out.write_text(summary(runs), encoding="utf-8")


def runs_of(group: str, seeds: int, recorded: Path) -> Iterator[Run]:
    match group:
        case "kernels":
            return table_runs(group, kernel_tables(), seeds)
        case "recorded":
            return table_runs(group, [(read_table(path), "design") for path in sorted(recorded.glob("*.jsonl"))], seeds)
        case _:
            return oracle_runs(group, ORACLES[group][1], seeds)


if __name__ == "__main__":
    main()
