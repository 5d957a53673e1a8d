"""The certificate: uniform draws from three strata of a frozen model, and the bounds that they prove."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from gluonmap.acquire.atoms import Atom, any_fails
from gluonmap.acquire.evidence import UNKNOWN, EvidenceTable
from gluonmap.acquire.space import Rows
from gluonmap.acquire.universe import Universe, elimination
from gluonmap.constraints.counting import Elimination, TooEntangled
from gluonmap.model.joint_map import Certificate, StratumCertificate

VALID, FAILING, SHELL = "predicted to pass", "predicted to fail", "predicted to fail for one reason only"
STRATA = (VALID, FAILING, SHELL)
MOST_FREE_DRAWS = 400
"""Draws in a row that hit known configurations before the search skips a stratum for now."""


class Validation:
    """Uniform draws from the three strata of a frozen model."""

    def __init__(self, universe: Universe, random: np.random.Generator, confidence: float) -> None:
        self.universe = universe
        self.confidence = confidence
        self.restarts = 0
        self._random = random
        self._next = 0
        self._waiting: dict[tuple[int, ...], str] = {}
        self._held: dict[str, tuple[int, ...]] = {}

    def restart(self, groups: Sequence[Sequence[Atom]]) -> None:
        """Freeze a new model. `groups` holds the atoms of each reason."""
        self.restarts += 1
        self.groups = tuple(tuple(group) for group in groups if group)
        self.atoms = tuple(dict.fromkeys(atom for group in self.groups for atom in group))
        self.draws = dict.fromkeys(STRATA, 0)
        self.fresh = dict.fromkeys(STRATA, 0)
        self.complete = dict.fromkeys(STRATA, False)
        self.sizes: dict[str, int | None] = dict.fromkeys(STRATA, None)
        self._waiting.clear()
        self._held.clear()
        self._listed: dict[str, Rows] | None = None
        self._shells: list[Elimination] = []
        self._valid: Elimination | None = None
        self._prepare()

    def _prepare(self) -> None:
        rows = self.universe.rows
        if rows is not None:
            broken = reasons_broken(self.groups, rows)
            self._listed = {VALID: rows[broken == 0], FAILING: rows[broken > 0], SHELL: rows[broken == 1]}
            self.sizes = {name: len(found) for name, found in self._listed.items()}
            self.complete = {name: not len(found) for name, found in self._listed.items()}
            return
        space, atoms = self.universe.space, [*self.universe.given, *self.atoms]
        try:
            self._valid = elimination(space, atoms)
            self._shells = list(self._one_reason())
        except TooEntangled:
            self._shells = []
        if self._valid is not None:
            shell = sum(item.count for item in self._shells)
            self.sizes = {VALID: self._valid.count, FAILING: self.universe.size - self._valid.count, SHELL: shell}
        self.complete = {name: self.sizes[name] == 0 for name in STRATA}

    def _one_reason(self) -> Iterator[Elimination]:
        """Yield the configurations that violate exactly one reason, in parts that do not overlap."""
        space = self.universe.space
        for group in self.groups:
            others = [atom for other in self.groups if other is not group for atom in other if atom not in group]
            for place, atom in enumerate(group):
                kept = [*self.universe.given, *others, *group[: place + 1]]
                yield elimination(space, kept, broken=atom)

    def propose(self, evidence: EvidenceTable, in_flight: Container[tuple[int, ...]]) -> tuple[int, ...] | None:
        """Return the next configuration to ask. A drawn configuration that is known counts at once.

        Return None if every stratum is complete, or if its next draw is in flight: it counts when it is answered.
        """
        for _ in STRATA:
            name = STRATA[self._next % len(STRATA)]
            self._next += 1
            if self.complete[name]:
                continue
            row = self._draw_fresh(name, evidence, in_flight)
            if row is not None:
                self._waiting[row] = name
                return row
        return None

    def _draw_fresh(
        self, name: str, evidence: EvidenceTable, in_flight: Container[tuple[int, ...]]
    ) -> tuple[int, ...] | None:
        for _ in range(MOST_FREE_DRAWS):
            row = self._held.pop(name, None) or self._draw(name)
            if row is None:
                return None
            if row in in_flight:
                self._held[name] = row
                return None
            if row not in evidence:
                return row
            self.draws[name] += int(evidence.labels[evidence.place(row)] != UNKNOWN)
        if self._listed is not None:
            self.complete[name] = all(tuple(row) in evidence for row in self._listed[name].tolist())
        return None

    def _draw(self, name: str) -> tuple[int, ...] | None:
        if self._listed is not None:
            rows = self._listed[name]
            return tuple(rows[self._random.integers(len(rows))].tolist())
        if name == VALID and self._valid is not None:
            return tuple(self._valid.sample(1, self._random)[0].tolist())
        if name == SHELL and self._shells:
            weights = np.array([item.total for item in self._shells])
            chosen = self._shells[self._random.choice(len(weights), p=weights / weights.sum())]
            return tuple(chosen.sample(1, self._random)[0].tolist())
        return self._rejected(name)

    def _rejected(self, name: str) -> tuple[int, ...] | None:
        """Return a draw by rejection: the first of many uniform rows that lies in the stratum."""
        rows = self.universe.space.random_rows(4096, self._random)
        rows = rows[self.universe.contains(rows)]
        broken = reasons_broken(self.groups, rows)
        inside = np.flatnonzero({VALID: broken == 0, FAILING: broken > 0, SHELL: broken == 1}[name])
        return tuple(rows[inside[0]].tolist()) if len(inside) else None

    def confirm(self, row: tuple[int, ...]) -> None:
        """Record that the model was right on a drawn configuration."""
        name = self._waiting.pop(row, None)
        if name is not None:
            self.draws[name] += 1
            self.fresh[name] += 1

    def skip(self, row: tuple[int, ...]) -> None:
        """Record that a drawn configuration had no answer. It counts for nothing."""
        self._waiting.pop(row, None)

    @property
    def finished(self) -> bool:
        return all(self.complete.values())

    def certificate(self, statements: Sequence[str]) -> Certificate:
        """Return what the draws prove so far, with further statements."""
        strata = tuple(self._stratum(name) for name in STRATA)
        return Certificate(self.confidence, self.restarts, strata, (*self._words(strata), *statements))

    def _stratum(self, name: str) -> StratumCertificate:
        complete = self.complete[name]
        bound = 0.0 if complete else error_bound(self.draws[name], self.confidence, self.restarts)
        return StratumCertificate(name, self.draws[name], self.fresh[name], self.sizes[name], complete, bound)

    def _words(self, strata: Sequence[StratumCertificate]) -> list[str]:
        found = [stratum_words(item, self.confidence) for item in strata]
        valid, failing = strata[0], strata[1]
        if valid.size is not None and failing.size and not failing.complete and valid.telling and failing.telling:
            missed = failing.error_bound * failing.size
            if missed > valid.size:
                found.append(
                    "This says nothing about how many passing configurations are missed: "
                    f"{failing.error_bound:.1%} of the {failing.size:,} predicted failures is more than all "
                    f"{valid.size:,} that are predicted to pass."
                )
            else:
                sure = (1 - valid.error_bound) * valid.size
                recall = sure / (sure + missed) if sure else 0.0
                found.append(
                    f"Where both bounds hold, at least {recall:.1%} of all passing configurations are in the map."
                )
        return found


def error_bound(draws: int, confidence: float, restarts: int) -> float:
    """Return the largest share of mistakes that so many right draws in a row allow. Restarts share the confidence."""
    if draws == 0:
        return 1.0
    left = (1 - confidence) / (max(1, restarts) * (max(1, restarts) + 1))
    return float(1 - left ** (1 / draws))


def stratum_words(item: StratumCertificate, confidence: float) -> str:
    """Return a sentence about one stratum."""
    size = "" if item.size is None else f" ({item.size:,} configurations)"
    if item.size == 0:
        return f"{item.name}: there is none."
    if item.complete:
        return f"{item.name}{size}: every one was asked."
    if item.draws == 0:
        return f"{item.name}{size}: nothing was drawn, so nothing is claimed."
    known = item.draws - item.fresh
    before = f" ({known} of them known before)" if known else ""
    if not item.telling:
        right = "uniform draw was right" if item.draws == 1 else "uniform draws in a row were right"
        return f"{item.name}{size}: {item.draws} {right}{before}: too few to say anything."
    return (
        f"{item.name}{size}: {item.draws} uniform draws in a row were right{before}, so with {confidence:.0%} "
        f"confidence at most {item.error_bound:.1%} of them are mistaken."
    )


def reasons_broken(groups: Sequence[Sequence[Atom]], rows: Rows) -> npt.NDArray[np.int64]:
    """Return the number of reasons that forbid each row."""
    found = np.zeros(len(rows), np.int64)
    for group in groups:
        found += any_fails(group, rows)
    return found
