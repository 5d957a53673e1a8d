"""Result of a joint search: what was learned and compiled, as the map's `Joint`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gluonmap.acquire import Learned
from gluonmap.acquire.result import AnsweredQuestion
from gluonmap.constraints.semantics import holds, words
from gluonmap.model import codec
from gluonmap.model.candidate import Config, Proof, same
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.joint_map import Constraint, Joint, Sizes, Tried, Verified
from gluonmap.model.relations import Member, Written
from gluonmap.model.verdict import Answer, Location, Verdict, passed
from gluonmap.probe.learner_answers import location_of, place_of
from gluonmap.probe.restrictions import Restrictions
from gluonmap.probe.sameness import SamenessRules
from gluonmap.query import reduced_space
from gluonmap.runner import journal
from gluonmap.spec.description import Description

MOST_COMPARED = 20
"""Failing configurations among which the example of a constraint is looked for."""


@dataclass(frozen=True, slots=True)
class JointResult:
    """Everything that a joint search ends with."""

    description: Description
    depth: str
    learned: Learned
    sameness: SamenessRules
    answers: Mapping[str, Answer]
    """Answers by candidate key."""
    chosen: Sequence[Config]
    """Configurations whose programs were compiled for the hand-off."""
    restrictions: Restrictions
    demands: Sequence[LiteralRule]
    """Demands of the source, over knobs alone."""
    stopped: str
    """Why the search ended early; empty: it did not."""
    notes: Sequence[str]

    def joint(self) -> Joint:
        """Return the result for the map, with places that do not depend on today's lines (see `with_current_lines`)."""
        learned, domains = self.learned, self.learned.domains
        programs = self._programs()
        counted = self.sameness.reduced(learned).program_count
        passing = sum(1 for item in learned.asked if item.answer.passed)
        complete = learned.enumerated or (learned.feasible is not None and passing >= learned.feasible)
        program_count = len(programs) if complete else counted
        return Joint(
            depth=self.depth,
            domains=domains,
            constraints=tuple(self._constraint(item) for item in learned.constraints),
            sizes=Sizes(math.prod(map(len, domains.values())), learned.feasible, program_count, complete),
            certificate=learned.certificate,
            coverage=learned.coverage,
            formula=learned.formula,
            inertness=learned.inertness,
            value_classes=learned.value_classes,
            programs=programs,
            tried=tuple(_tried(item, tuple(domains)) for item in learned.asked),
            learning=sum(a.kind not in ("known", "validate") for a in learned.asked),
            validating=sum(a.kind == "validate" for a in learned.asked),
            unstable=learned.unstable,
            unknown=learned.unknown,
            enumerated=learned.enumerated,
            stopped=self.stopped,
            notes=(*self.notes, *learned.notes),
        )

    def _constraint(self, item: Constraint) -> Constraint:
        """Return a constraint with its place and words, and the two nearest configurations on its two sides."""
        lines = {f"{r.location.function}+{r.location.line}": place_of(r.location) for r in self.demands}
        failing, passing = _nearest_pair(item, self.learned)
        given = dict(zip(self.restrictions.over_knobs, self.restrictions.texts, strict=True))
        shown = item.words
        if isinstance(item.relation, Written):
            shown = given.get(item.relation.text) or self._allowed_values(item) or shown
        return msgspec.structs.replace(
            item,
            words=shown,
            line=lines.get(item.line, item.line),
            failing_example=failing,
            passing_example=passing,
        )

    def _allowed_values(self, item: Constraint) -> str:
        """Return a demand of one knob in words, by the values that it allows; empty: it allows more than two.

        "BLOCK_K // 2 == 128" is "BLOCK_K = 256".
        """
        if len(item.scope) != 1 or item.scope[0] not in self.description.knobs:
            return ""
        (name,) = item.scope
        domain = self.description.knobs[name].domain
        left = tuple(value for value in domain if holds(item.relation, {name: value}))
        return words(Member(name, left)) if left and len(left) <= 2 else ""

    def _programs(self) -> tuple[Verified, ...]:
        """Return one entry for each program and launch that passed and whose code was generated; the baseline first."""
        found: list[Verified] = []
        by_ir: list[Verified] = []
        first = self.description.candidate({}).args
        for config in self._passing():
            candidate = self.description.candidate(config)
            answer = self.answers.get(journal.key_of(candidate))
            if passed(answer) and answer.program and answer.resources:
                arguments = "" if candidate.args == first else codec.digest(candidate.args)
                digest = answer.program.digest if self.sameness.stable else journal.key_of(candidate)
                entry = Verified(config, digest, answer.resources, candidate.grid, arguments=arguments)
                (found if proved_by_code(answer) else by_ir).append(entry)
        proved = {entry.digest for entry in found}
        return tuple(reduced_space.one_per_launch([*found, *(entry for entry in by_ir if entry.digest in proved)]))

    def _passing(self) -> Iterator[Config]:
        """Yield the passing configurations: the baseline, those that were asked, those that were chosen; each once."""
        learned = self.learned
        unstable = {codec.canonical(item.config) for item in learned.unstable}
        asked = [a.config for a in learned.asked if a.answer.passed]
        keys = {codec.canonical(config): config for config in [self.description.baseline, *asked, *self.chosen]}
        for key, config in keys.items():
            if key not in unstable and learned.allows(config):
                yield config


def with_current_lines(joint: Joint, lines: Callable[[Location], int | None]) -> Joint:
    """Return the result with places in the source as lines of today's files."""

    def today(place: str) -> str:
        location = location_of(place)
        number = lines(location) if location else None
        return f"{location.file}:{number}" if location and number else ""

    return msgspec.structs.replace(
        joint,
        constraints=tuple(msgspec.structs.replace(c, line=today(c.line)) for c in joint.constraints),
        tried=tuple(msgspec.structs.replace(t, line=today(t.line)) if t.line else t for t in joint.tried),
    )


def proved_by_code(answer: Answer) -> bool:
    """Return whether a program was identified by its machine code, not by its LLVM IR alone."""
    return isinstance(answer, Verdict) and answer.program is not None and answer.program.proof is Proof.CODE


def _tried(item: AnsweredQuestion, names: Sequence[str]) -> Tried:
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


def _nearest_pair(item: Constraint, learned: Learned) -> tuple[Config, Config]:
    """Return a failing configuration that breaks the constraint, no other if possible, and a passing one near it."""
    asked, others = learned.asked, learned.constraints
    breaking = [
        a.config for a in asked if a.answer.known and not a.answer.passed and not holds(item.relation, a.config)
    ]
    alone = [c for c in breaking if not any(o is not item and not holds(o.relation, c) for o in others)]
    passing = [a.config for a in asked if a.answer.passed]
    pairs = itertools.product((alone or breaking)[:MOST_COMPARED], passing)
    return min(pairs, key=lambda pair: _moves(*pair), default=({}, {}))


def _moves(one: Config, other: Config) -> int:
    """Return in how many knobs two configurations differ."""
    return sum(not same(value, other[name]) for name, value in one.items())
