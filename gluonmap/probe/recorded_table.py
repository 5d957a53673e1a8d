"""Recorded tables of verdicts: read them, answer from them in the compiler's place, and score what was learned."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gluonmap.acquire import Learned, LearningProgress, learn
from gluonmap.acquire.answers import KNOWN, Answer
from gluonmap.acquire.space import Mask, Rows, space_of
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import StorageFault, UsageError
from gluonmap.model.outcomes import Outcome


@dataclass(frozen=True)
class RecordedTable:
    """Verdicts by configuration, in the order of the file."""

    name: str
    configs: tuple[Config, ...]
    answers: tuple[Answer, ...]
    domains: dict[str, tuple[Value, ...]]
    unstable: tuple[Config, ...] = ()
    """Configurations that the table has with two outcomes; they have no verdict."""

    def __len__(self) -> int:
        return len(self.configs)

    @property
    def complete(self) -> bool:
        """Return whether the table has every combination of the values."""
        return len(self.configs) == int(np.prod([len(values) for values in self.domains.values()], dtype=object))

    def oracle(self) -> TableOracle:
        return TableOracle(self)

    def rows_with_evidence(self) -> tuple[Rows, Mask]:
        """Return the rows with a verdict that is evidence, and a mask of those that fail."""
        space = space_of(self.domains)
        places = [i for i, answer in enumerate(self.answers) if answer.outcome in KNOWN]
        rows: Rows = np.array([space.encode(self.configs[i]) for i in places], np.int16).reshape(len(places), -1)
        return rows, np.array([not self.answers[i].passed for i in places], bool)

    def likely_baseline(self) -> Config:
        """Return the passing configuration that is nearest to the median of all passing ones."""
        space = space_of(self.domains)
        passing = [c for c, a in zip(self.configs, self.answers, strict=True) if a.passed]
        if not passing:
            return self.configs[0]
        rows = np.array([space.encode(config) for config in passing])
        middle = np.median(rows, 0)
        return passing[int(np.abs(rows - middle).sum(1).argmin())]


class TableOracle:
    """Oracle that answers the configurations of a table, and records what was asked."""

    def __init__(self, table: RecordedTable) -> None:
        self._answers = {_key(c): a for c, a in zip(table.configs, table.answers, strict=True)}
        self.asked: list[Config] = []

    def __call__(self, configs: Sequence[Config]) -> list[Answer]:
        self.asked += configs
        return [self._answers[_key(config)] for config in configs]


@dataclass(frozen=True)
class Score:
    """Score of learning a table. Rows without a verdict that is evidence are not counted."""

    rows: int
    asked: int
    """Number of distinct rows asked."""
    before_validation: int
    exact_from: int | None
    """Number of questions after which the model was right on every row until the end; None: it is not right."""
    precision: float
    recall: float


def read_table(path: Path) -> RecordedTable:
    """Return the table in a file of JSON lines, compressed where its name ends in .gz.

    Raises:
        StorageFault: the file cannot be read.
        UsageError: a line is no row.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise StorageFault(f"cannot read the table {path}: {error}") from error
    rows = [_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise UsageError(f'{path} holds no rows; a row is {{"config": {{…}}, "outcome": "PASS"}}.')
    return make_table(path.name.removesuffix(".gz").removesuffix(".jsonl"), rows)


def make_table(name: str, rows: Sequence[tuple[Config, Answer]]) -> RecordedTable:
    """Return a table of configurations with their answers; a configuration with two outcomes gets no verdict."""
    first = rows[0][0]
    found: dict[str, tuple[Config, Answer]] = {}
    outcomes: dict[str, set[str]] = {}
    for number, (config, answer) in enumerate(rows, 1):
        if config.keys() != first.keys():
            odd = ", ".join(sorted(config.keys() ^ first.keys()))
            raise UsageError(
                f"row {number} of {name} has other knobs than the first row: {odd}. All rows need the same."
            )
        key = _key(config)
        found.setdefault(key, (config, answer))
        outcomes.setdefault(key, set()).add(str(answer.outcome))
    unstable = {key for key, seen in outcomes.items() if len(seen) > 1}
    for key in unstable:
        found[key] = (found[key][0], Answer(None, reason=f"two outcomes: {', '.join(sorted(outcomes[key]))}"))
    configs = tuple(config for config, _ in found.values())
    domains = {knob: _ordered([config[knob] for config in configs]) for knob in first}
    answers = tuple(answer for _, answer in found.values())
    return RecordedTable(name, configs, answers, domains, tuple(found[key][0] for key in sorted(unstable)))


def learn_table(
    table: RecordedTable,
    *,
    baseline: Mapping[str, Value] | None = None,
    budget: int = 300,
    validate: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    deep: bool = False,
    batch: int = 2,
) -> tuple[Learned, Score]:
    """Learn a table row by row, as if it were the compiler, and score the model after every question."""
    watcher = ModelWatcher(*table.rows_with_evidence())
    learned = learn(
        table.oracle(),
        table.domains,
        baseline=dict(baseline or table.likely_baseline()),
        only=None if table.complete else table.configs,
        budget=budget,
        validate=validate,
        confidence=confidence,
        seed=seed,
        deep=deep,
        batch=batch,
        watch=watcher,
    )
    return learned, watcher.score(learned)


class ModelWatcher:
    """Comparison of the model with the recorded verdicts after every change of the model."""

    def __init__(self, rows: Rows, fails: Mask) -> None:
        self._rows, self._fails = rows, fails
        self._version = -1
        self._predicted: Mask = np.zeros(len(rows), bool)
        self.exact_from: int | None = None

    def __call__(self, progress: LearningProgress) -> None:
        if progress.version != self._version or progress.asked <= 2:
            self._version = progress.version
            self._predicted = progress.fails(self._rows)
        if not np.array_equal(self._predicted, self._fails):
            self.exact_from = None
        elif self.exact_from is None:
            self.exact_from = progress.asked

    def score(self, learned: Learned) -> Score:
        right = int((~self._predicted & ~self._fails).sum())
        claimed, passing = int((~self._predicted).sum()), int((~self._fails).sum())
        return Score(
            rows=len(self._rows),
            asked=len({_key(item.config) for item in learned.asked}),
            before_validation=learned.before_validation,
            exact_from=self.exact_from,
            precision=right / claimed if claimed else 1.0,
            recall=right / passing if passing else 1.0,
        )


def _row(path: Path, number: int, line: str) -> tuple[Config, Answer]:
    try:
        record = json.loads(line)
        config = dict(record["config"])
        outcome = Outcome(record["outcome"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f'line {number} of {path} is no row ({error}); a row is {{"config": {{…}}, "outcome": "PASS"}}.'
        ) from None
    return {name: _plain(value) for name, value in config.items()}, _answer(outcome, record)


def _answer(outcome: Outcome, record: Mapping[str, Any]) -> Answer:
    shared = record.get("shared_bytes")
    return Answer(
        outcome,
        stage=str(record.get("stage") or ""),
        reason=str(record.get("reason") or ""),
        line=str(record.get("line") or ""),
        digest=str(record.get("digest") or ""),
        shared_bytes=int(shared) if isinstance(shared, (int, float)) else None,
    )


def _plain(value: Any) -> Value:
    return value if isinstance(value, (int, float, str, bool)) or value is None else json.dumps(value)


def _key(config: Mapping[str, Value]) -> str:
    return json.dumps(config, sort_keys=True)


def _ordered(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return each value once: numbers ascending, then the others by their text."""
    unique = list({json.dumps(value): value for value in values}.values())
    numbers = [v for v in unique if isinstance(v, (int, float)) and not isinstance(v, bool)]
    others = [v for v in unique if not isinstance(v, (int, float)) or isinstance(v, bool)]
    return (*sorted(numbers), *sorted(others, key=str))
