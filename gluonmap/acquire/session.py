"""A run of the learner one question at a time, so that the caller keeps as many in flight as it has cores."""

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
    """A configuration to ask, and why."""

    config: Config
    kind: str
    again: bool = False
    """It is asked a second time to see whether the answer is stable: ask afresh, not from records."""


class Session:
    """Questions and answers, in any order. The same seed and the same order of answers bring the same questions."""

    def __init__(
        self, learner: Learner, baseline: Row | None, given: Sequence[Relation], read: Sequence[LiteralRule]
    ) -> None:
        self._learner, self._given, self._read = learner, given, read
        self._script = learner.script(baseline)
        self._held: Proposal | None = None
        self._over = False

    def next(self) -> Question | None:
        """The next configuration to ask; None: none before an answer that is in flight, or the run is over."""
        self._look()
        proposal, self._held = self._held, None
        if proposal is None:
            return None
        self._learner.in_flight[proposal.row] = proposal
        return Question(self._learner.space.decode(proposal.row), proposal.kind, proposal.kind == AGAIN)

    def tell(self, config: Mapping[str, Value], answer: Answer) -> None:
        """Take an answer. One to a configuration that is not in flight is evidence, and counts as no question."""
        self._learner.take(self._learner.space.encode(config), answer)

    def stop(self) -> None:
        """Ask no more; answers to what is in flight may still be told."""
        self._over, self._held = True, None

    def finish(self) -> Learned:
        """What was learned so far, at any time; what is in flight counts for nothing."""
        self._learner.settle()
        return finish(self._learner, self._given, self._read)

    @property
    def done(self) -> bool:
        """Whether nothing is in flight and nothing more is to be asked."""
        if not self.in_flight:
            self._look()
        return self._over and not self.in_flight

    @property
    def in_flight(self) -> int:
        """Questions without an answer."""
        return len(self._learner.in_flight)

    @property
    def asked(self) -> int:
        """Questions that were answered; what the caller knew before does not count."""
        return self._learner.asked

    @property
    def validating(self) -> bool:
        """Whether the first question for the certificate is behind."""
        return self._learner.before_validation is not None

    def _look(self) -> None:
        """Hold the next question, if there is one now."""
        if self._over or self._held is not None:
            return
        self._learner.refresh()
        try:
            self._held = next(self._script)
        except StopIteration:
            self._over = True
