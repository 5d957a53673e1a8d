"""Joint search: the learner's questions about all knobs together, then the programs of the reduced space.

`JointSearch.search` is where to begin. The learner (`gluonmap.acquire`) plans by the answers so far, so the same
journal brings the same questions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from gluonmap import __version__, acquire
from gluonmap.acquire import Session
from gluonmap.acquire.learner import ENUMERATED
from gluonmap.model import codec
from gluonmap.model.candidate import Candidate, Config, Proof, Value, same
from gluonmap.model.events import Event, Listener
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.joint_map import Joint
from gluonmap.model.verdict import Answer, Fault, Location, Verdict, digest_of, passed
from gluonmap.probe.joint_result import JointResult, proved_by_code, with_current_lines
from gluonmap.probe.learner_answers import candidate_or_reason, has_hung, learner_answer, rejected_by_host_code
from gluonmap.probe.restrictions import Restrictions, demands_over_knobs
from gluonmap.probe.sameness import SamenessRules
from gluonmap.probe.settings import Effort
from gluonmap.runner import interrupts, journal
from gluonmap.runner.oracle import Oracle, Query
from gluonmap.spec.description import Description

INTERRUPTED = "interrupted"
BUDGETS = {"joint": (300, 200), "deep": (1500, 600)}
"""Questions to learn and to certify, by depth."""
MOST_PROGRAMS = {"joint": 128, "deep": 512}
"""Distinct programs that are compiled for the hand-off, where learning has not compiled more."""
MOST_HUNG = 6
"""Deadlines, beyond those of single values, after which the search ends: each costs a core half a minute or more."""
LEAST_DEADLINE_S = 30.0
MOST_ROUNDS = 4
"""Times that the reduced space is filled, where a program of it did not pass."""


class JointSearch:
    """Search over all knobs of one kernel on one target, after the single values."""

    def __init__(
        self,
        oracle: Oracle,
        description: Description,
        demands: Sequence[LiteralRule],
        effort: Effort,
        lines: Callable[[Location], int | None],
        listen: Listener,
        unread: Iterable[str] = (),
    ) -> None:
        """`demands` are read from the source; `unread` are knobs that nothing reads, as the source shows.

        Raises:
            UsageError: a restriction that has no value, or that the baseline breaks.
        """
        self.oracle, self.description, self.effort = oracle, description, effort
        self.lines, self.listen = lines, listen
        self.restrictions = Restrictions(description, effort.restrict)
        self.demands = tuple(demands_over_knobs(description, demands))
        self.sameness = SamenessRules(description.baseline, stable=True, unread=frozenset(unread))
        self.answers: dict[str, Answer] = {}
        self.hung = 0
        self.stopped = ""
        self.notes: list[str] = []
        self.chosen: list[Config] = []

    def search(self, singles: Mapping[str, Answer], *, stable: bool) -> Joint:
        """Learn, then compile the programs of the reduced space; return what is known.

        `singles` are answers by candidate key. `stable`: equal digests mean equal programs. Ctrl-C ends the asking, not
        the result: `stopped` then says so.
        """
        self.answers |= singles
        self.sameness = SamenessRules(self.sameness.baseline, stable, self.sameness.unread)
        oracle, key = self.oracle, self._conclusion_key(singles)
        asks_again = oracle.afresh or oracle.retry
        joint = None if asks_again else oracle.journal.conclusion(oracle.stamp, key)
        if joint is None:
            joint = self._learn()
            if not joint.stopped:
                oracle.journal.conclude(oracle.stamp, key, joint)
        return with_current_lines(joint, self.lines)

    def _conclusion_key(self, singles: Mapping[str, Answer]) -> str:
        """Return a hash of all that the result depends on, besides the answers to come.

        A change of the order or of the names of these values loses the conclusions of earlier journals.
        """
        description = self.description
        knobs = {n: (k.domain, k.baseline) for n, k in description.knobs.items()}
        known = {k: (a.outcome, digest_of(a)) if isinstance(a, Verdict) else None for k, a in singles.items()}
        limits = (self.oracle.limits.deadline_s, self.oracle.limits.memory_bytes)
        demands = [(rule.text, rule.expression, rule.location) for rule in self.demands]
        candidate = description.candidate({})
        recipe = (candidate, description.shape, description.derive, description.grid)
        wanted = [self.effort, knobs, known, limits, self.restrictions.over_knobs, demands, recipe]
        return codec.digest([__version__, *wanted, self.sameness.stable, sorted(self.sameness.unread)])

    def _learn(self) -> Joint:
        domains = self._domains()
        session = acquire.start(
            domains,
            baseline=self.description.baseline,
            given=self.restrictions.over_knobs,
            read=self.demands,
            known=list(self._answered_by_singles(domains)),
            budget=self._budget[0],
            validate=self._budget[1],
            confidence=self.effort.confidence,
            seed=self.effort.seed,
            deep=self.effort.depth == "deep",
        )
        oracle = self._with_shorter_deadline()
        try:
            self._converse(oracle, session, math.prod(map(len, domains.values())))
            for _ in range(MOST_ROUNDS):
                if self.stopped or not self._compile_programs(oracle, session):
                    break
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED
            with interrupts.ignored():
                self._replay(oracle, session)
            session.stop()
        with interrupts.deferred() if not self.stopped else interrupts.ignored():
            return self._result(session).joint()

    def _result(self, session: Session) -> JointResult:
        return JointResult(
            description=self.description,
            depth=self.effort.depth,
            learned=self.sameness.corrected(session.finish()),
            sameness=self.sameness,
            answers=self.answers,
            chosen=self.chosen,
            restrictions=self.restrictions,
            demands=self.demands,
            stopped=self.stopped,
            notes=self.notes,
        )

    # -- before the first question -----------------------------------------------------------------------------------

    def _with_shorter_deadline(self) -> Oracle:
        """Return an oracle with a shorter deadline than for single values, unless the user named one.

        Some tiles compile for minutes.
        """
        limits = self.oracle.limits
        if self.effort.deadline_s is not None:
            return self.oracle
        slowest = max((a.seconds for a in self.answers.values() if passed(a)), default=0.0)
        deadline_s = min(limits.deadline_s, max(LEAST_DEADLINE_S, 10 * slowest))
        return self.oracle.with_limits(msgspec.structs.replace(limits, deadline_s=deadline_s))

    @property
    def _budget(self) -> tuple[int, int]:
        learning, validating = BUDGETS[self.effort.depth]
        return (
            learning if self.effort.budget is None else self.effort.budget,
            validating if self.effort.validate is None else self.effort.validate,
        )

    def _domains(self) -> dict[str, tuple[Value, ...]]:
        """Return the knobs' domains without values that passed the deadline or had no answer as single values.

        The same would happen again in combination with every other value.
        """
        domains = {}
        for name, knob in self.description.knobs.items():
            answers = [(value, self._single_answer(name, value)) for value in knob.domain]
            bad = [value for value, answer in answers if isinstance(answer, Fault) or has_hung(answer)]
            if bad:
                values = ", ".join(map(str, bad))
                self.notes.append(f"{name} = {values} had no answer alone, and was not tried beside other values")
            domains[name] = self._unequal(name, [v for v in knob.domain if not any(same(v, b) for b in bad)])
        return domains

    def _unequal(self, name: str, values: Sequence[Value]) -> tuple[Value, ...]:
        """Return one of the values that are one number in a constraint, as 1, 1.0 and True are; the baseline first."""
        baseline = self.description.knobs[name].baseline
        kept: list[Value] = []
        for value in sorted(values, key=lambda v: not same(v, baseline)):
            if value in kept:
                self.notes.append(f"{name} = {value!r} is the number of another value, and was not tried beside others")
            else:
                kept.append(value)
        return tuple(value for value in values if any(same(value, k) for k in kept))

    def _single_answer(self, name: str, value: Value) -> Answer | None:
        candidate = candidate_or_reason(self.description, {name: value})
        return None if isinstance(candidate, str) else self.answers.get(journal.key_of(candidate))

    def _answered_by_singles(self, domains: Mapping[str, Sequence[Value]]) -> Iterator[tuple[Config, acquire.Answer]]:
        """Yield the configurations that the single values have answered."""
        baseline = self.description.baseline
        for name, domain in domains.items():
            for value in domain:
                answer = self._single_answer(name, value)
                config = {**baseline, name: value}
                if self.restrictions.allow(config) and not same(value, baseline[name]) and answer is not None:
                    yield config, self._for_learner(self.description.candidate({name: value}), answer)

    def _for_learner(self, candidate: Candidate, answer: Answer) -> acquire.Answer:
        return learner_answer(candidate, answer, stable=self.sameness.stable)

    # -- the learner's questions -------------------------------------------------------------------------------------

    def _converse(self, oracle: Oracle, session: Session, size: int) -> None:
        """Answer the learner's questions about a space of `size` configurations until it has no more, or too many hang.

        Ctrl-C is deferred while the learner plans or takes an answer: its model is never half updated.
        """
        most = size if size <= ENUMERATED else sum(self._budget)
        count = min(MOST_PROGRAMS[self.effort.depth], size)
        hand_over = f"after the questions up to {count} distinct programs are compiled, to be handed over"
        self.listen(Event("note", hand_over))
        self.listen(Event("plan", "questions at most about all knobs together", most))
        started = time.monotonic()

        def queries() -> Iterator[Query | None]:
            while not session.done:
                if self.effort.seconds is not None and time.monotonic() - started > self.effort.seconds:
                    self.stopped = self.stopped or "out of time"
                    session.stop()
                with interrupts.deferred():
                    question = session.next()
                if question is None:
                    yield None
                    continue
                candidate = candidate_or_reason(self.description, question.config)
                if isinstance(candidate, str):
                    session.tell(question.config, rejected_by_host_code(candidate))
                else:
                    yield Query(question.config, msgspec.structs.replace(candidate, proof=Proof.IR), question.again)

        def take(query: Query, answer: Answer, fresh: bool) -> None:
            if not query.repeated:
                self.answers[query.key] = answer
            with interrupts.deferred():
                session.tell(query.tag, self._for_learner(query.candidate, answer))
            self.listen(Event("answer" if fresh else "known", answer=answer))
            self.hung += has_hung(answer)
            if self.hung >= MOST_HUNG and not self.stopped:
                self.stopped = "too many deadlines"
                session.stop()

        oracle.converse(queries(), take)

    def _replay(self, oracle: Oracle, session: Session) -> None:
        """Answer the learner's questions from the journal until one is not in it.

        An interrupted run thereby knows no less than the run before it.
        """
        while (question := session.next()) is not None and not question.again:
            candidate = candidate_or_reason(self.description, question.config)
            known = None if isinstance(candidate, str) else oracle.known(candidate)
            if isinstance(candidate, str) or known is None:
                return
            self.answers[journal.key_of(candidate)] = known
            session.tell(question.config, self._for_learner(candidate, known))

    # -- programs to hand over ---------------------------------------------------------------------------------------

    def _compile_programs(self, oracle: Oracle, session: Session) -> bool:
        """Compile what the reduced space still lacks: every program if there are few, else a choice that fills it.

        Return whether an answer contradicted the model: it has learned from it then, and there is more to compile.
        """
        with interrupts.deferred():
            learned = self.sameness.corrected(session.finish())
        if learned.feasible == 0:
            return False
        passing = [a.config for a in learned.asked if a.answer.passed]
        limit = MOST_PROGRAMS[self.effort.depth]
        self.chosen = self.sameness.reduced(learned).representatives(limit, seed=self.effort.seed, known=passing)
        by_code = {digest_of(a) for a in self.answers.values() if proved_by_code(a)}
        wanted = {
            journal.key_of(candidate): (config, candidate)
            for config in self.chosen
            if (candidate := self._uncompiled(config, by_code)) is not None
        }
        self.listen(Event("plan", "programs of the reduced space", len(wanted)))
        try:
            for reply in oracle.ask(candidate for _, candidate in wanted.values()):
                self.answers[journal.key_of(reply.candidate)] = reply.answer
                self.listen(Event("answer" if reply.fresh else "known", answer=reply.answer))
        finally:  # The learner takes the answers in an order that does not depend on which compile ended first.
            contradicted = False
            for key, (config, candidate) in wanted.items():
                if (answer := self.answers.get(key)) is not None:
                    session.tell(config, self._for_learner(candidate, answer))
                    contradicted |= not passed(answer)
        return contradicted

    def _uncompiled(self, config: Config, by_code: set[str]) -> Candidate | None:
        """Return the candidate of a configuration whose code was not generated; None: it was, or host code fails."""
        candidate = candidate_or_reason(self.description, config)
        if isinstance(candidate, str):
            return None
        known = self.answers.get(journal.key_of(candidate))
        if known is None:
            return candidate
        return candidate if passed(known) and digest_of(known) not in by_code else None
