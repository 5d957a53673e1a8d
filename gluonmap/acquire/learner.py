"""The loop: ask, fit, plan; freeze the model and validate it; begin again where an answer surprises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gluonmap.acquire.answers import Answer, Oracle
from gluonmap.acquire.certificate import Validation
from gluonmap.acquire.evidence import PASSED, UNKNOWN, Evidence
from gluonmap.acquire.forms import Forms
from gluonmap.acquire.inert import wanted
from gluonmap.acquire.plan import Planner, Proposal, Row
from gluonmap.acquire.predicates import Predicates
from gluonmap.acquire.region import Model, ReadRule
from gluonmap.acquire.space import Mask, Rows, Space
from gluonmap.acquire.universe import Universe

ENUMERATED = 150
"""Spaces up to this size are asked completely."""
VALIDATE_FROM = 92
"""Questions after which the model is frozen and validated, whatever is still open."""
DEEP_PER_VALIDATION = 4
"""Of so many batches after the first freeze, one serves the certificate while there is something left to learn."""
HOPELESS = 60
"""Questions without a single pass after which the search for one ends."""

MOST_AGAIN = 8
MOST_NEIGHBOURS = 40
"""Questions about inertness, at most."""

VALIDATE = "validate"


@dataclass(frozen=True)
class Settings:
    """How much may be asked, and how sure the certificate must be."""

    budget: int = 300
    validate: int = 200
    confidence: float = 0.95
    seed: int = 0
    batch: int = 2


@dataclass(frozen=True)
class Progress:
    """The model as it stands after some questions."""

    asked: int
    fails: Callable[[Rows], Mask]
    version: int
    validating: bool


@dataclass(frozen=True)
class Question:
    """A configuration that was asked, and why."""

    row: Row
    kind: str
    answer: Answer


class Learner:
    """One run over one space. `finish` of the package turns it into the result."""

    def __init__(
        self,
        oracle: Oracle,
        space: Space,
        universe: Universe,
        read: Sequence[ReadRule],
        settings: Settings,
        watch: Callable[[Progress], None] | None = None,
    ) -> None:
        self.oracle, self.space, self.universe, self.settings, self._watch = oracle, space, universe, settings, watch
        random = np.random.default_rng(settings.seed)
        self._random = random
        forms = Forms(space)
        self.evidence = Evidence(space, forms, Predicates(space, forms))
        self.model = Model(self.evidence, read)
        self.planner = Planner(universe, self.evidence, self.model, random)
        self.validation = Validation(universe, random, settings.confidence)
        self.questions: list[Question] = []
        self.before_validation: int | None = None
        self.enumerated = False
        self.surprises = 0
        self._frozen_version = -1
        self._deep_turn = 0
        self._again: set[Row] = set()

    # ---- the run ---------------------------------------------------------------------------------------------------

    def run(self, baseline: Row | None) -> None:
        """Ask until nothing is left to learn, or all questions are used."""
        if baseline is not None:
            self._ask([Proposal(baseline, "baseline")])
        if self.universe.size <= ENUMERATED and self.universe.rows is not None:
            self._enumerate()
            return
        while not self._is_hopeless():
            proposals = self._plan()
            if not proposals:
                break
            self._ask(proposals)
        self._probe_inertness()
        if self._frozen_version != self.model.version:
            self._freeze()

    def _probe_inertness(self) -> None:
        """Ask beside what passed, for knobs that were compared too rarely to say whether they matter."""
        left = min(self.settings.budget - self.learning_asked, MOST_NEIGHBOURS)
        rows = wanted(self.evidence, self.model, self.universe, self._random, left) if left > 0 else []
        for start in range(0, len(rows), self.settings.batch):
            self._ask([Proposal(row, "inertness") for row in rows[start : start + self.settings.batch]])

    def _enumerate(self) -> None:
        assert self.universe.rows is not None
        rows = [tuple(row) for row in self.universe.rows.tolist()]
        left = [row for row in rows if row not in self.evidence]
        for start in range(0, len(left), 8):
            self._ask([Proposal(row, "enumerate") for row in left[start : start + 8]])
        self._ask_again()
        self.enumerated = True
        self._freeze()
        self.validation.complete = dict.fromkeys(self.validation.complete, True)

    def _is_hopeless(self) -> bool:
        return len(self.evidence) >= HOPELESS and not (self.evidence.labels == PASSED).any()

    @property
    def learning_asked(self) -> int:
        return sum(question.kind != VALIDATE for question in self.questions)

    def _plan(self) -> list[Proposal]:
        may_learn = self.settings.budget - self.learning_asked
        validated = len(self.questions) - self.learning_asked
        may_validate = self.settings.validate - validated
        batch = self.settings.batch
        if self.before_validation is None:
            if may_learn > 0 and len(self.questions) < VALIDATE_FROM:
                proposals = self.planner.propose(min(batch, may_learn), deep=False)
                if proposals:
                    return proposals
            self.before_validation = len(self.questions)
        self._deep_turn = (self._deep_turn + 1) % DEEP_PER_VALIDATION
        if self._deep_turn:
            return self._learn_more(min(batch, may_learn)) or self._validate(min(batch, may_validate))
        return self._validate(min(batch, may_validate)) or self._learn_more(min(batch, may_learn))

    def _learn_more(self, count: int) -> list[Proposal]:
        return self.planner.propose(count, deep=True) if count > 0 else []

    def _validate(self, count: int) -> list[Proposal]:
        if self._frozen_version != self.model.version:
            self._freeze()
        proposals: list[Proposal] = []
        for _ in range(count):
            row = self.validation.propose(self.evidence)
            if row is None:
                break
            proposals.append(Proposal(row, VALIDATE))
        return proposals

    def _ask_again(self) -> None:
        """Ask once more what is the only failure of its kind: an unstable answer looks like that.

        An oracle that remembers its answers must ask afresh for a configuration that it is given a second time.
        """
        for atoms in list(self.model.by_reason.values()):
            for atom in atoms:
                if len(self._again) >= MOST_AGAIN:
                    return
                rows = self.evidence.rows[atom.fails(self.evidence.rows)]
                row = tuple(rows[0].tolist()) if len(rows) == 1 else None
                if row is not None and row not in self._again and self.learning_asked < self.settings.budget:
                    self._again.add(row)
                    self._ask([Proposal(row, "again")])

    def _freeze(self) -> None:
        if not self.enumerated:
            self.model.shorten()
            self._ask_again()
        self._frozen_version = self.model.version
        self.validation.restart(self.model.groups())

    # ---- asking ----------------------------------------------------------------------------------------------------

    def _ask(self, proposals: Sequence[Proposal]) -> None:
        rows = np.array([proposal.row for proposal in proposals], np.int16)
        predicted = self.model.fails(rows)
        answers = self.oracle([self.space.decode(row) for row in rows.tolist()])
        self.evidence.add([proposal.row for proposal in proposals], answers)
        surprised = False
        for proposal, fails, answer in zip(proposals, predicted, answers, strict=True):
            self.questions.append(Question(proposal.row, proposal.kind, answer))
            surprised |= self._take(proposal, bool(fails), answer)
        self.model.refit()
        if surprised:
            self.surprises += 1
        if self._watch is not None:
            asked = len(self.questions)
            self._watch(Progress(asked, self.model.fails, self.model.version, self.before_validation is not None))

    def _take(self, proposal: Proposal, fails: bool, answer: Answer) -> bool:
        """Count a validation; whether the answer surprises."""
        if not answer.known or self.evidence.labels[self.evidence.place(proposal.row)] == UNKNOWN:
            self.validation.skip(proposal.row)
            return False
        wrong = fails == answer.passed
        if proposal.kind == VALIDATE and not wrong:
            self.validation.confirm(proposal.row)
        return wrong
