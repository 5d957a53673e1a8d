"""The answered configurations, with the value of every form and predicate on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gluonmap.acquire.answers import Answer, ReasonKey, is_budget, is_later, reason_key
from gluonmap.acquire.forms import Forms
from gluonmap.acquire.predicates import Predicates
from gluonmap.acquire.space import Mask, Numbers, Rows, Space

PASSED = 0
UNKNOWN = -1

Indices = npt.NDArray[np.int64]


class EvidenceTable:
    """Answers in the order of their arrival. A label is a reason's number (from 1), PASSED, or UNKNOWN (not fitted)."""

    def __init__(self, space: Space, forms: Forms, predicates: Predicates) -> None:
        self.space = space
        self.forms = forms
        self.predicates = predicates
        self.answers: list[Answer] = []
        self.reasons: list[ReasonKey] = []
        self.budget: int | None = None
        """Number of the reason "shared memory is too small"."""
        self.unstable: dict[tuple[int, ...], list[Answer]] = {}
        """Configurations with two different outcomes → their answers."""
        self.revision = 0
        """Grows with every answer."""
        self._place: dict[tuple[int, ...], int] = {}
        self._rows = np.zeros((16, len(space.names)), np.int16)
        self._labels = np.zeros(16, np.int64)
        self._values = np.zeros((len(forms), 16))
        self._truth = np.zeros((len(predicates), 16), bool)

    def __len__(self) -> int:
        return len(self.answers)

    def __contains__(self, row: tuple[int, ...]) -> bool:
        return row in self._place

    @property
    def rows(self) -> Rows:
        return self._rows[: len(self)]

    @property
    def labels(self) -> Indices:
        return self._labels[: len(self)]

    @property
    def values(self) -> Numbers:
        """Values of the forms: forms by rows, answered configurations by columns."""
        return self._values[:, : len(self)]

    @property
    def truth(self) -> Mask:
        """Truth of the predicates: predicates by rows, answered configurations by columns."""
        return self._truth[:, : len(self)]

    def answer(self, row: tuple[int, ...]) -> Answer | None:
        place = self._place.get(row)
        return None if place is None else self.answers[place]

    def place(self, row: tuple[int, ...]) -> int:
        """Return the position of an answered configuration."""
        return self._place[row]

    def add(self, rows: Sequence[tuple[int, ...]], answers: Sequence[Answer]) -> None:
        """Add answers. A second, different outcome makes a configuration unstable."""
        self.revision += len(rows)
        fresh = []
        for row, answer in zip(rows, answers, strict=True):
            if row not in self._place:
                self._place[row] = len(self.answers)
                self.answers.append(answer)
                fresh.append(row)
            else:
                self._compare(row, answer)
        if fresh:
            self._append(np.array(fresh, np.int16))

    def _compare(self, row: tuple[int, ...], answer: Answer) -> None:
        place = self._place[row]
        known = self.answers[place]
        if not answer.known:
            return
        if not known.known:
            self.answers[place] = answer
            self._labels[place] = self._label(row, answer)
        elif known.outcome is not answer.outcome:
            self.unstable.setdefault(row, [known]).append(answer)
            self._labels[place] = UNKNOWN

    def _append(self, rows: Rows) -> None:
        end = len(self.answers)
        start = end - len(rows)
        while end > len(self._labels):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._labels = np.concatenate([self._labels, np.zeros_like(self._labels)])
            self._values = np.concatenate([self._values, np.zeros_like(self._values)], 1)
            self._truth = np.concatenate([self._truth, np.zeros_like(self._truth)], 1)
        self._rows[start:end] = rows
        self._values[:, start:end] = self.forms.values(rows)
        self._truth[:, start:end] = self.predicates.truth(rows)
        for place in range(start, end):
            self._labels[place] = self._label(tuple(rows[place - start].tolist()), self.answers[place])

    def _label(self, row: tuple[int, ...], answer: Answer) -> int:
        if row in self.unstable or not answer.known:
            return UNKNOWN
        if answer.passed:
            return PASSED
        key = reason_key(answer)
        if key not in self.reasons:
            self.reasons.append(key)
            if is_budget(answer):
                self.budget = len(self.reasons)
        return self.reasons.index(key) + 1

    def positives(self, reason: int) -> Indices:
        """Return the positions of the configurations that failed for a reason."""
        return np.flatnonzero(self.labels == reason)

    def negatives(self, reason: int) -> Indices:
        """Return the positions of the configurations that got past a reason: they passed or failed at a later stage."""
        rank = self.reasons[reason - 1].rank
        past = [n for n, key in enumerate(self.reasons, 1) if is_later(key.rank, rank)]
        return np.flatnonzero(np.isin(self.labels, [PASSED, *past]))

    def shared_bytes(self) -> tuple[Rows, Numbers]:
        """Return the configurations whose shared memory the compiler reported, and the bytes."""
        known = [i for i, a in enumerate(self.answers) if a.shared_bytes is not None and self._labels[i] != UNKNOWN]
        return self.rows[known], np.array([self.answers[i].shared_bytes for i in known], float)
