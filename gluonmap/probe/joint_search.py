"""All knobs together: the learner's questions as candidates, and the `Joint` that their answers give."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gluonmap import __version__, acquire
from gluonmap.acquire import Answer as Told
from gluonmap.acquire import Learned, Session
from gluonmap.acquire.learner import ENUMERATED
from gluonmap.acquire.result import Asked as LearnedAsked
from gluonmap.constraints import expressions
from gluonmap.constraints.semantics import holds, words
from gluonmap.model import codec
from gluonmap.model.candidate import Candidate, Config, Proof, Value, same
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.events import Event, Listener
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.joint_map import Constraint, Joint, Sizes, Tried, ValueClasses, Verified
from gluonmap.model.relations import Member, Written
from gluonmap.model.verdict import Answer, Fault, Location, Outcome, Verdict, digest_of, passed
from gluonmap.query import reduced_space
from gluonmap.runner import interrupts, journal
from gluonmap.runner.oracle import Oracle, Query
from gluonmap.spec.description import Description
from gluonmap.worker.protocol import Limits

INTERRUPTED = "interrupted"
DEPTHS = ("singles", "joint", "deep")
BUDGETS = {"joint": (300, 200), "deep": (1500, 600)}
"""Questions to learn and to certify, by depth."""
MOST_PROGRAMS = {"joint": 128, "deep": 512}
"""Distinct programs that are compiled for the hand-off, where learning has not compiled more."""
MOST_COMPARED = 20
"""Failing configurations among which the example of a constraint is looked for."""
MOST_HUNG = 6
"""Deadlines, beyond those of single values, after which no more is asked: each costs a core half a minute or more."""
LEAST_DEADLINE_S = 30.0
MOST_ROUNDS = 4
"""Times that the reduced space is filled, where a program of it did not pass."""
SEPARATOR = "::"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much may be asked about all knobs together."""

    depth: str = "joint"
    budget: int | None = None
    validate: int | None = None
    seconds: float | None = None
    """Wall time for learning; None: as long as it takes."""
    confidence: float = 0.95
    restrict: tuple[str, ...] = ()
    seed: int = 0
    deadline_s: float | None = None
    """As the user named it."""


class Jointly:
    """One run about all knobs of one kernel on one target, after the one-at-a-time screen."""

    def __init__(
        self,
        oracle: Oracle,
        description: Description,
        rules: Sequence[LiteralRule],
        effort: Effort,
        lines: Callable[[Location], int | None],
        listen: Listener,
        unread: Iterable[str] = (),
    ) -> None:
        """`rules` are demands read from the source; `unread` are knobs that nothing reads, as the source shows.

        Raises:
            UsageError: a restriction that has no value, or that the baseline breaks.
        """
        self.oracle, self.description, self.effort = oracle, description, effort
        self.lines, self.listen = lines, listen
        self.unread = frozenset(unread)
        self.stable = True
        self.given = tuple(self._restriction(text) for text in effort.restrict)
        self.read = tuple(self._over_knobs(rules))
        self.answers: dict[str, Answer] = {}
        self.hung = 0
        self.stopped = ""
        self.notes: list[str] = []
        self.chosen: list[Config] = []

    # -- what is asked -----------------------------------------------------------------------------------------------

    def run(self, singles: Mapping[str, Answer], *, stable: bool) -> Joint:
        """Learn, then compile the programs of the reduced space.

        `singles` are answers by candidate key. `stable`: equal digests mean equal programs. Ctrl-C ends the asking, not
        the result: what is known by then is the result, and `stopped` says so.
        """
        self.answers |= singles
        self.stable = stable
        key = self._wanted_key(singles)
        anew = self.oracle.afresh or self.oracle.retry
        joint = None if anew else self.oracle.journal.conclusion(self.oracle.stamp, key)
        if joint is None:
            joint = self._learned()
            if not joint.stopped:
                self.oracle.journal.conclude(self.oracle.stamp, key, joint)
        return localised(joint, self.lines)

    def _wanted_key(self, singles: Mapping[str, Answer]) -> str:
        """Hash of all that the result depends on, besides the answers to come."""
        description = self.description
        knobs = {n: (k.domain, k.baseline) for n, k in description.knobs.items()}
        told = {k: (a.outcome, digest_of(a)) if isinstance(a, Verdict) else None for k, a in singles.items()}
        limits = (self.oracle.limits.deadline_s, self.oracle.limits.memory_bytes)
        rules = [(rule.text, rule.expression, rule.location) for rule in self.read]
        candidate = description.candidate({})
        recipe = (candidate, description.shape, description.derive, description.grid)
        asked = [self.effort, knobs, told, limits, self.given, rules, recipe, self.stable, sorted(self.unread)]
        return codec.digest([__version__, *asked])

    def _learned(self) -> Joint:
        domains = self._domains()
        session = acquire.start(
            domains,
            baseline=self.description.baseline,
            given=self.given,
            read=self.read,
            known=list(self._known(domains)),
            budget=self._budget[0],
            validate=self._budget[1],
            confidence=self.effort.confidence,
            seed=self.effort.seed,
            deep=self.effort.depth == "deep",
        )
        usual = self.oracle.limits
        try:
            self.oracle.limits = self._limits(usual)
            self._converse(session, math.prod(map(len, domains.values())))
            for _ in range(MOST_ROUNDS):
                if self.stopped or not self._compile_programs(session):
                    break
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED
            with interrupts.ignored():
                self._replay(session)
            session.stop()
        finally:
            self.oracle.limits = usual
        with interrupts.put_off() if not self.stopped else interrupts.ignored():
            return self._joint(self._sound(self._with_unread(session.finish())))

    def _limits(self, usual: Limits) -> Limits:
        """A shorter deadline than for single values, where the user named none: some tiles compile for minutes."""
        if self.effort.deadline_s is not None:
            return usual
        slowest = max((a.seconds for a in self.answers.values() if passed(a)), default=0.0)
        return msgspec.structs.replace(usual, deadline_s=min(usual.deadline_s, max(LEAST_DEADLINE_S, 10 * slowest)))

    @property
    def _budget(self) -> tuple[int, int]:
        learning, validating = BUDGETS[self.effort.depth]
        return (
            learning if self.effort.budget is None else self.effort.budget,
            validating if self.effort.validate is None else self.effort.validate,
        )

    def _domains(self) -> dict[str, tuple[Value, ...]]:
        """The knobs' domains, without values that alone passed the deadline or cost the tool its answer.

        Either would happen again beside every other value.
        """
        domains = {}
        for name, knob in self.description.knobs.items():
            answers = [(value, self._answer({name: value})) for value in knob.domain]
            bad = [value for value, answer in answers if isinstance(answer, Fault) or self._hung(answer)]
            if bad:
                values = ", ".join(map(str, bad))
                self.notes.append(f"{name} = {values} had no answer alone, and was not tried beside other values")
            domains[name] = self._told_apart(name, [v for v in knob.domain if not any(same(v, b) for b in bad)])
        return domains

    def _told_apart(self, name: str, values: Sequence[Value]) -> tuple[Value, ...]:
        """Those that arithmetic tells apart: 1, 1.0 and True are one number in a constraint. The baseline's stays."""
        baseline = self.description.knobs[name].baseline
        kept: list[Value] = []
        for value in sorted(values, key=lambda v: not same(v, baseline)):
            if value in kept:
                self.notes.append(f"{name} = {value!r} is the number of another value, and was not tried beside others")
            else:
                kept.append(value)
        return tuple(value for value in values if any(same(value, k) for k in kept))

    def _known(self, domains: Mapping[str, Sequence[Value]]) -> Iterator[tuple[Config, Told]]:
        """What the screen has answered already."""
        baseline = self.description.baseline
        for name, domain in domains.items():
            for value in domain:
                answer = self._answer({name: value})
                config = {**baseline, name: value}
                allowed = all(holds(Written(text), config) for text in self.given)
                if allowed and not same(value, baseline[name]) and answer is not None:
                    yield {**baseline, name: value}, self._told(self._candidate({name: value}), answer)

    def _replay(self, session: Session) -> None:
        """Ask on as long as the journal answers: an interrupted run knows no less than the one before it."""
        while (question := session.next()) is not None and not question.again:
            candidate = self._candidate_or_text(question.config)
            known = None if isinstance(candidate, str) else self.oracle.known(candidate)
            if isinstance(candidate, str) or known is None:
                return
            self.answers[journal.key_of(candidate)] = known
            session.tell(question.config, self._told(candidate, known))

    def _converse(self, session: Session, size: int) -> None:
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
                with interrupts.put_off():
                    question = session.next()
                if question is None:
                    yield None
                    continue
                candidate = self._candidate_or_text(question.config)
                if isinstance(candidate, str):
                    session.tell(question.config, Told(Outcome.REJECTED, stage="host", reason=candidate))
                else:
                    yield Query(question.config, msgspec.structs.replace(candidate, proof=Proof.IR), question.again)

        def take(query: Query, answer: Answer, fresh: bool) -> None:
            if not query.again:
                self.answers[query.key] = answer
            with interrupts.put_off():
                session.tell(query.tag, self._told(query.candidate, answer))
            self.listen(Event("answer" if fresh else "known", answer=answer))
            self.hung += self._hung(answer)
            if self.hung >= MOST_HUNG and not self.stopped:
                self.stopped = "too many deadlines"
                session.stop()

        self.oracle.converse(queries(), take)

    def _compile_programs(self, session: Session) -> bool:
        """Compile what the reduced space still lacks: every program if there are few, else a choice that fills it.

        Returns whether an answer contradicted the model: then it has learned from it, and there is more to compile.
        """
        with interrupts.put_off():
            learned = self._sound(self._with_unread(session.finish()))
        if learned.feasible == 0:
            return False
        passing = [a.config for a in learned.asked if a.answer.passed]
        limit = MOST_PROGRAMS[self.effort.depth]
        self.chosen = self._reduced(learned).representatives(limit, seed=self.effort.seed, known=passing)
        by_code = {digest_of(a) for a in self.answers.values() if _proved_by_code(a)}
        wanted = {
            journal.key_of(candidate): (config, candidate)
            for config in self.chosen
            if (candidate := self._uncompiled(config, by_code)) is not None
        }
        self.listen(Event("plan", "programs of the reduced space", len(wanted)))
        try:
            for asked in self.oracle.ask(candidate for _, candidate in wanted.values()):
                self.answers[journal.key_of(asked.candidate)] = asked.answer
                self.listen(Event("answer" if asked.fresh else "known", answer=asked.answer))
        finally:  # told in an order that does not depend on which compile ended first
            surprised = False
            for key, (config, candidate) in wanted.items():
                if (answer := self.answers.get(key)) is not None:
                    session.tell(config, self._told(candidate, answer))
                    surprised |= not passed(answer)
        return surprised

    def _uncompiled(self, config: Config, by_code: set[str]) -> Candidate | None:
        """The candidate of a configuration whose program has not been generated; None: it has, or host code fails."""
        candidate = self._candidate_or_text(config)
        if isinstance(candidate, str):
            return None
        known = self.answers.get(journal.key_of(candidate))
        if known is None:
            return candidate
        return candidate if passed(known) and digest_of(known) not in by_code else None

    def _with_unread(self, learned: Learned) -> Learned:
        """With knobs that nothing reads inert everywhere: the source shows it, so no comparison has to."""
        idle = {item.knob for item in learned.inertness if item.uncompared} & self.unread
        said = "is declared and never read, and changed nothing where it was compared"
        return msgspec.structs.replace(
            learned,
            inertness=tuple(
                msgspec.structs.replace(i, condition="", words=f"{i.knob} {said}") if i.knob in idle else i
                for i in learned.inertness
            ),
            value_classes=(
                *learned.value_classes,
                *(ValueClasses(name, (domain,)) for name, domain in learned.domains.items() if name in idle),
            ),
        )

    def _sound(self, learned: Learned) -> Learned:
        """Without the rules of sameness that some asked configuration contradicts: what they would merge differs."""
        while (knobs := self._contradicted(learned)) is not None:
            said = (
                f"together with {' and '.join(sorted(knobs))} it changed a program, although no comparison shows when"
            )
            learned = msgspec.structs.replace(
                learned,
                inertness=tuple(
                    msgspec.structs.replace(i, condition="sometimes", relation=None, words=f"{i.knob}: {said}")
                    if i.knob in knobs
                    else i
                    for i in learned.inertness
                ),
                value_classes=tuple(c for c in learned.value_classes if c.knob not in knobs),
            )
        return learned

    def _contradicted(self, learned: Learned) -> set[str] | None:
        """The knobs that two asked configurations differ in, which the rules call one program and which are two."""
        reduced = self._reduced(learned)
        seen: dict[str, tuple[Config, str]] = {}
        for item in learned.asked:
            if item.answer.passed and item.answer.digest:
                form = repr(reduced.canonical(item.config))
                config, digest = seen.setdefault(form, (item.config, item.answer.digest))
                moved = {name for name, value in config.items() if not same(value, item.config[name])}
                if digest != item.answer.digest and moved:  # without a move it is one configuration, asked again
                    return moved
        return None

    def _reduced(self, learned: Learned) -> reduced_space.ReducedSpace:
        relations = [item.relation for item in learned.constraints]
        merged = (learned.inertness, learned.value_classes) if self.stable else ((), ())
        return reduced_space.reduced_space(learned.domains, self.description.baseline, relations, *merged)

    # -- candidates and answers --------------------------------------------------------------------------------------

    def _candidate(self, moves: Config) -> Candidate:
        return self.description.candidate(moves)

    def _candidate_or_text(self, config: Config) -> Candidate | str:
        """The candidate; or why host code has none for this configuration."""
        try:
            return self._candidate(config)
        except UsageError as error:
            return str(error)

    def _answer(self, moves: Config) -> Answer | None:
        candidate = self._candidate_or_text(moves)
        return None if isinstance(candidate, str) else self.answers.get(journal.key_of(candidate))

    @staticmethod
    def _hung(answer: Answer | None) -> bool:
        return isinstance(answer, Verdict) and answer.outcome is Outcome.HUNG

    def _told(self, candidate: Candidate, answer: Answer) -> Told:
        """An answer in the learner's words. Its digest tells programs and launches apart."""
        if isinstance(answer, Fault):
            return Told(None, reason=answer.text)
        reason = answer.reason
        return Told(
            answer.outcome,
            stage=reason.phase if reason else "",
            reason=f"{reason.kind}: {reason.text}" if reason else "",
            line=self._place(reason.location) if reason else "",
            digest=self._digest(candidate, answer),
            shared_bytes=answer.resources.shared_bytes if answer.resources else None,
        )

    def _digest(self, candidate: Candidate, answer: Answer) -> str:
        digest = digest_of(answer) if self.stable else ""
        return codec.digest([digest, candidate.grid, candidate.args])[:12] if digest else ""

    def _place(self, location: Location | None) -> str:
        """A place that neither comments nor the function's place in its file move."""
        return f"{location.file}{SEPARATOR}{location.function}+{location.line}" if location else ""

    # -- restrictions and demands ------------------------------------------------------------------------------------

    def _restriction(self, text: str) -> str:
        names = expressions.names_in(text)
        known = self.description.namespace({})
        for name in sorted(names):
            if name not in known:
                raise UnknownKnob(f"the restriction {text!r}", name, known)
        if not expressions.evaluate(text, known):
            raise UsageError(f"the baseline breaks the restriction {text!r}; choose another one with --set NAME=VALUE.")
        return self._written(text)

    def _over_knobs(self, rules: Sequence[LiteralRule]) -> Iterator[LiteralRule]:
        """The demands as expressions over knobs alone, each once."""
        seen = set()
        for rule in rules:
            text = self._written(rule.expression)
            if expressions.names_in(text) and text not in seen:
                seen.add(text)
                yield LiteralRule(rule.text, text, rule.knobs, rule.location)

    def _written(self, text: str) -> str:
        """An expression with everything that is no knob replaced: by its value, or by what it is derived from."""
        description = self.description
        numbers = {n: v for n, v in description.args.items() if not isinstance(v, str)}
        values = {**numbers, **description.shape, **description.fixed}
        derived = {n: t for n, t in description.derive.items() if n not in description.knobs}
        values = {n: v for n, v in values.items() if n not in derived and n not in description.knobs}
        return expressions.substituted(text, values, derived)

    # -- what comes out ----------------------------------------------------------------------------------------------

    def _joint(self, learned: Learned) -> Joint:
        domains = learned.domains
        verified = self._verified(learned)
        counted = self._reduced(learned).program_count
        passing = sum(1 for item in learned.asked if item.answer.passed)
        complete = learned.enumerated or (learned.feasible is not None and passing >= learned.feasible)
        programs_ = len(verified) if complete else counted
        return Joint(
            depth=self.effort.depth,
            domains=domains,
            constraints=tuple(
                self._constraint(item, learned.constraints, learned.asked) for item in learned.constraints
            ),
            sizes=Sizes(math.prod(map(len, domains.values())), learned.feasible, programs_, complete),
            certificate=learned.certificate,
            coverage=learned.coverage,
            formula=learned.formula,
            inertness=learned.inertness,
            value_classes=learned.value_classes,
            programs=verified,
            tried=tuple(self._tried(item, tuple(domains)) for item in learned.asked),
            learning=sum(a.kind not in ("known", "validate") for a in learned.asked),
            validating=sum(a.kind == "validate" for a in learned.asked),
            unstable=learned.unstable,
            unknown=learned.unknown,
            enumerated=learned.enumerated,
            stopped=self.stopped,
            notes=(*self.notes, *learned.notes),
        )

    @staticmethod
    def _tried(item: LearnedAsked, names: Sequence[str]) -> Tried:
        answer = item.answer
        return Tried(
            values=tuple(item.config[n] for n in names),
            outcome=str(answer.outcome) if answer.outcome else "unknown",
            why=item.kind,
            digest=answer.digest,
            reason=answer.reason,
            line=answer.line,
            stage=answer.stage,
        )

    def _constraint(self, item: Constraint, others: Sequence[Constraint], asked: Sequence[LearnedAsked]) -> Constraint:
        """With its place, and with the nearest two configurations that stand on its two sides."""
        lines = {f"{r.location.function}+{r.location.line}": self._place(r.location) for r in self.read}
        failing, passing = _nearest_pair(item, others, asked)
        given = dict(zip(self.given, self.effort.restrict, strict=True))
        shown = item.words
        if isinstance(item.relation, Written):
            shown = given.get(item.relation.text) or self._allowed(item) or shown
        return msgspec.structs.replace(
            item,
            words=shown,
            line=lines.get(item.line, item.line),
            failing_example=failing,
            passing_example=passing,
        )

    def _allowed(self, item: Constraint) -> str:
        """A demand that reads one knob only, by the values that are left: "BLOCK_K // 2 == 128" is BLOCK_K = 256."""
        if len(item.scope) != 1 or item.scope[0] not in self.description.knobs:
            return ""
        (name,) = item.scope
        domain = self.description.knobs[name].domain
        left = tuple(value for value in domain if holds(item.relation, {name: value}))
        return words(Member(name, left)) if left and len(left) <= 2 else ""

    def _verified(self, learned: Learned) -> tuple[Verified, ...]:
        """One entry for each program and launch that passed and whose code was generated; the baseline's first."""
        found: list[Verified] = []
        by_ir: list[Verified] = []
        first = self._candidate({}).args
        for config in self._passing(learned):
            candidate = self._candidate(config)
            answer = self.answers.get(journal.key_of(candidate))
            if passed(answer) and answer.program and answer.resources:
                arguments = "" if candidate.args == first else codec.digest(candidate.args)
                digest = answer.program.digest if self.stable else journal.key_of(candidate)
                entry = Verified(config, digest, answer.resources, candidate.grid, arguments=arguments)
                (found if _proved_by_code(answer) else by_ir).append(entry)
        proved = {entry.digest for entry in found}
        return tuple(reduced_space.distinct([*found, *(entry for entry in by_ir if entry.digest in proved)]))

    def _passing(self, learned: Learned) -> Iterator[Config]:
        """Every configuration with an answer, the baseline first, then in signature order of their values."""
        baseline = self.description.baseline
        torn = {codec.canonical(item.config) for item in learned.unstable}
        asked = [a.config for a in learned.asked if a.answer.passed]
        keys = {codec.canonical(config): config for config in [baseline, *asked, *self.chosen]}
        for key, config in keys.items():
            if key not in torn and learned.allows(config):
                yield config


def localised(joint: Joint, lines: Callable[[Location], int | None]) -> Joint:
    """The same with places in the source as lines of today's files."""

    def today(place: str) -> str:
        file, _, rest = place.rpartition(SEPARATOR)
        function, _, line = rest.rpartition("+")
        number = lines(Location(function, file, int(line))) if file and line.isdigit() else None
        return f"{file}:{number}" if number else ""

    return msgspec.structs.replace(
        joint,
        constraints=tuple(msgspec.structs.replace(c, line=today(c.line)) for c in joint.constraints),
        tried=tuple(msgspec.structs.replace(t, line=today(t.line)) if t.line else t for t in joint.tried),
    )


def _proved_by_code(answer: Answer) -> bool:
    return isinstance(answer, Verdict) and answer.program is not None and answer.program.proof is Proof.CODE


def _nearest_pair(
    item: Constraint, others: Sequence[Constraint], asked: Sequence[LearnedAsked]
) -> tuple[Config, Config]:
    """A failing configuration that breaks the constraint, no other if there is one, and a passing one near to it."""
    breaking = [
        a.config for a in asked if a.answer.known and not a.answer.passed and not holds(item.relation, a.config)
    ]
    alone = [c for c in breaking if not any(o is not item and not holds(o.relation, c) for o in others)]
    passing = [a.config for a in asked if a.answer.passed]
    pairs = itertools.product((alone or breaking)[:MOST_COMPARED], passing)
    return min(pairs, key=lambda pair: _moves(*pair), default=({}, {}))


def _moves(one: Config, other: Config) -> int:
    return sum(not same(value, other[name]) for name, value in one.items())
