"""A run of the learner, one question at a time. The caller decides how many questions are in flight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gluonmap.acquire.answers import Answer
from gluonmap.acquire.explain import finish
from gluonmap.acquire.learner import AGAIN, Learner
from gluonmap.acquire.plan import Proposal, Row
from gluonmap.acquire.result import Learned
from gluonmap.model.candidate import Config, Value
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.relations import Relation


@dataclass(frozen=True)
class Question:
    """A configuration to ask, and the kind of the question."""

    config: Config
    kind: str
    again: bool = False
    """The configuration is asked a second time to see whether the answer is stable: do not answer from records."""


class Session:
    """Questions and answers. Answers may arrive in any order; the same seed and order give the same questions."""

    def __init__(
        self, learner: Learner, baseline: Row | None, given: Sequence[Relation], read: Sequence[LiteralRule]
    ) -> None:
        self._learner, self._given, self._read = learner, given, read
        self._script = learner.script(baseline)
        self._held: Proposal | None = None
        self._over = False

    def next(self) -> Question | None:
        """Return the next configuration to ask; None if an answer in flight is needed first, or if the run is over."""
        self._look()
        proposal, self._held = self._held, None
        if proposal is None:
            return None
        self._learner.in_flight[proposal.row] = proposal
        return Question(self._learner.space.decode(proposal.row), proposal.kind, proposal.kind == AGAIN)

    def tell(self, config: Mapping[str, Value], answer: Answer) -> None:
        """Take an answer. If its configuration is not in flight, it is evidence but counts as no question."""
        self._learner.take(self._learner.space.encode(config), answer)

    def stop(self) -> None:
        """Ask no more. Answers to questions in flight are still accepted."""
        self._over, self._held = True, None

    def finish(self) -> Learned:
        """Return the result so far. Questions in flight are ignored."""
        self._learner.settle()
        return finish(self._learner, self._given, self._read)

    @property
    def done(self) -> bool:
        """Return whether nothing is in flight and there is no further question."""
        if not self.in_flight:
            self._look()
        return self._over and not self.in_flight

    @property
    def in_flight(self) -> int:
        """Number of questions without an answer."""
        return len(self._learner.in_flight)

    @property
    def asked(self) -> int:
        """Number of answered questions. Configurations that the caller knew do not count."""
        return self._learner.asked

    @property
    def validating(self) -> bool:
        """Return whether validation has begun."""
        return self._learner.before_validation is not None

    def _look(self) -> None:
        """Fetch and hold the next question, if there is one now."""
        if self._over or self._held is not None:
            return
        self._learner.refresh()
        try:
            self._held = next(self._script)
        except StopIteration:
            self._over = True
