"""The order of a run: learn, freeze the model, validate it, and learn again after a surprising answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gluonmap.acquire.answers import Answer
from gluonmap.acquire.certificate import Validation
from gluonmap.acquire.evidence import PASSED, UNKNOWN, EvidenceTable
from gluonmap.acquire.forms import Forms
from gluonmap.acquire.inert import Sameness
from gluonmap.acquire.plan import Planner, Proposal, Row
from gluonmap.acquire.predicates import Predicates
from gluonmap.acquire.region import Model, ReadRule
from gluonmap.acquire.space import Mask, Rows, Space
from gluonmap.acquire.universe import Universe

ENUMERATED = 150
"""Spaces of up to this many configurations are asked completely."""
VALIDATE_FROM = 92
"""Questions after which the model is frozen and validated, even if something is still open."""
DEEP_PER_VALIDATION = 4
"""After the first freeze, one of so many questions serves the certificate while there is something left to learn."""
HOPELESS = 60
"""Questions without a single pass, after which the search for one ends."""

KEPT_FOR_INERTNESS = 5
"""One of so many questions of the budget is reserved for inertness, if answers carry digests."""
MOST_AGAIN = 8
MOST_NEIGHBOURS = 150
"""Most questions about inertness."""

BASELINE, KNOWN, VALIDATE, AGAIN = "baseline", "known", "validate", "again"
"""Kinds of questions that are counted separately. KNOWN was never asked: the caller had the answer."""

Script = Iterator[Proposal | None]
"""Yields questions, one after the other. None means that an answer in flight is needed first."""


@dataclass(frozen=True)
class LearningSettings:
    """The limits on questions, and the confidence of the certificate."""

    budget: int = 300
    validate: int = 200
    confidence: float = 0.95
    seed: int = 0
    deep: bool = False
    """Ask for rare combinations until the budget is used."""
    needs_baseline: bool = False
    """End if the baseline fails."""


@dataclass(frozen=True)
class LearningProgress:
    """The model after some questions."""

    asked: int
    fails: Callable[[Rows], Mask]
    version: int
    validating: bool


@dataclass(frozen=True)
class Record:
    """A configuration, the kind of the question, and the answer."""

    row: Row
    kind: str
    answer: Answer


class Learner:
    """One run over one space. `explain.finish` turns it into the result."""

    def __init__(
        self,
        space: Space,
        universe: Universe,
        read: Sequence[ReadRule],
        settings: LearningSettings,
        watch: Callable[[LearningProgress], None] | None = None,
    ) -> None:
        self.space, self.universe, self.settings, self._watch = space, universe, settings, watch
        random = np.random.default_rng(settings.seed)
        self._random = random
        forms = Forms(space)
        self.evidence = EvidenceTable(space, forms, Predicates(space, forms))
        self.model = Model(self.evidence, read)
        self.planner = Planner(universe, self.evidence, self.model, random, settings.deep)
        self.validation = Validation(universe, random, settings.confidence)
        self.records: list[Record] = []
        """Answered configurations in the order of the answers. Those that the caller knew come first."""
        self.in_flight: dict[Row, Proposal] = {}
        self.baseline: Row | None = None
        self.before_validation: int | None = None
        self.enumerated = False
        self._fitted = 0
        self._frozen_version = -1
        self._deep_turn = 0
        self._again: set[Row] = set()

    # ---- counts ----------------------------------------------------------------------------------------------------

    @property
    def asked(self) -> int:
        """Number of answered questions."""
        return sum(record.kind != KNOWN for record in self.records)

    @property
    def _spent(self) -> int:
        return self.asked + len(self.in_flight)

    @property
    def _validated(self) -> int:
        answered = sum(record.kind == VALIDATE for record in self.records)
        return answered + sum(proposal.kind == VALIDATE for proposal in self.in_flight.values())

    @property
    def may_learn(self) -> int:
        """Number of questions left for learning."""
        return self.settings.budget - (self._spent - self._validated)

    @property
    def _tells_programs(self) -> bool:
        return any(answer.digest for answer in self.evidence.answers)

    # ---- answers ---------------------------------------------------------------------------------------------------

    def take(self, row: Row, answer: Answer) -> None:
        """Record an answer. `refresh` fits the model to it."""
        proposal = self.in_flight.pop(row, None)
        kind = KNOWN if proposal is None else proposal.kind
        self.evidence.add([row], [answer])
        self.records.append(Record(row, kind, answer))
        if kind != VALIDATE:
            return
        if not answer.known or self.evidence.labels[self.evidence.place(row)] == UNKNOWN:
            self.validation.skip(row)
        elif bool(self.model.fails(np.array([row], np.int16))[0]) != answer.passed:
            self.validation.confirm(row)

    def refresh(self) -> None:
        """Fit the model to the answers, if there are new ones."""
        if self._fitted == len(self.records):
            return
        self._fitted = len(self.records)
        self.model.refit()
        if self._watch is not None:
            validating = self.before_validation is not None
            self._watch(LearningProgress(self.asked, self.model.fails, self.model.version, validating))

    def settle(self) -> None:
        """End the run here. The certificate then refers to the present model."""
        self.refresh()
        if self._frozen_version == self.model.version:
            return
        if not self.enumerated:
            self.model.shorten()
        self._freeze()

    # ---- the run ---------------------------------------------------------------------------------------------------

    def script(self, baseline: Row | None) -> Script:
        """Yield questions until nothing is left to learn or all questions are used."""
        self.baseline = baseline
        if baseline is not None:
            if baseline not in self.evidence:
                yield Proposal(baseline, BASELINE)
                yield from self._wait()
            if self.settings.needs_baseline and self.evidence.labels[self.evidence.place(baseline)] != PASSED:
                return
        if self.universe.rows is not None and self.universe.size <= ENUMERATED:
            yield from self._enumerate(self.universe.rows)
            return
        while not self._is_hopeless():
            proposal = yield from self._plan()
            if proposal is None and not self.in_flight:
                break
            yield proposal
        yield from self._probe_inertness()
        yield from self._wait()
        if self._frozen_version != self.model.version:
            yield from self._prepare_validation()

    def _wait(self) -> Script:
        while self.in_flight:
            yield None

    def _enumerate(self, rows: Rows) -> Script:
        for row in map(tuple, rows.tolist()):
            if row not in self.evidence:
                yield Proposal(row, "enumerate")
        yield from self._wait()
        yield from self._ask_again()
        yield from self._wait()
        self.enumerated = True
        self._freeze()
        answered = bool((self.evidence.labels != UNKNOWN).all())
        self.validation.complete = dict.fromkeys(self.validation.complete, answered)

    def _is_hopeless(self) -> bool:
        return len(self.evidence) >= HOPELESS and not (self.evidence.labels == PASSED).any()

    def _plan(self) -> Generator[Proposal | None, None, Proposal | None]:
        """Return the next question; None if none is left, or if an answer in flight is needed first."""
        if self.before_validation is None:
            if self.may_learn > 0 and self._spent < VALIDATE_FROM:
                proposal = self._learn(deep=False)
                if proposal is not None or self.in_flight:
                    return proposal
            self.before_validation = self._spent
        learns_first = (self._deep_turn + 1) % DEEP_PER_VALIDATION > 0
        proposal = self._learn(deep=True) if learns_first else (yield from self._validate())
        if proposal is None:
            proposal = (yield from self._validate()) if learns_first else self._learn(deep=True)
        self._deep_turn += proposal is not None
        return proposal

    def _learn(self, *, deep: bool) -> Proposal | None:
        kept = self.settings.budget // KEPT_FOR_INERTNESS if deep and self._tells_programs else 0
        if self.may_learn <= kept:
            return None
        return self.planner.propose(list(self.in_flight.values()), deep=deep)

    def _validate(self) -> Generator[Proposal | None, None, Proposal | None]:
        if self._validated >= self.settings.validate:
            return None
        if self._frozen_version != self.model.version:
            yield from self._prepare_validation()
        row = self.validation.propose(self.evidence, self.in_flight)
        return None if row is None else Proposal(row, VALIDATE)

    def _prepare_validation(self) -> Script:
        yield from self._wait()
        self.model.shorten()
        yield from self._ask_again()
        yield from self._wait()
        self._freeze()

    def _freeze(self) -> None:
        self._frozen_version = self.model.version
        self.validation.restart(self.model.groups())

    def _ask_again(self) -> Script:
        """Ask again about each failure that alone supports an atom: an unstable answer looks like that."""
        for atoms in list(self.model.by_reason.values()):
            for atom in atoms:
                if len(self._again) >= MOST_AGAIN:
                    return
                rows = self.evidence.rows[atom.fails(self.evidence.rows)]
                row = tuple(rows[0].tolist()) if len(rows) == 1 else None
                if row is not None and row not in self._again and self.may_learn > 0:
                    self._again.add(row)
                    yield Proposal(row, AGAIN)

    def _probe_inertness(self) -> Script:
        """Ask neighbours of passes until every claim of one program was compared in every context."""
        asked = 0
        while True:
            yield from self._wait()
            left = min(self.may_learn, MOST_NEIGHBOURS - asked)
            rows = Sameness(self.evidence, self.model, self.universe).wanted(left) if left > 0 else []
            if not rows:
                return
            asked += len(rows)
            for row in rows:
                yield Proposal(row, "inertness")
