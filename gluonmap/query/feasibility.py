"""Feasibility of any configuration by a map, without compiling it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from gluonmap.constraints.semantics import holds, scope_of, words
from gluonmap.model.candidate import Config, Stage, Value, same
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.joint_map import Constraint, Standing
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import Feasibility, feasibility, is_evidence
from gluonmap.model.relations import Member
from gluonmap.model.space_map import SpaceMap, ValueMap
from gluonmap.model.verdict import Answer, Resources, Verdict
from gluonmap.query.observations import Observation, config_key, observation_of, observations


class Basis(StrEnum):
    """The ground of a judgement."""

    COMPILED = "compiled"
    """This very configuration was asked."""
    PREDICTED = "predicted"
    """The map's constraints say it."""
    UNTRIED = "never tried value"
    UNSTABLE = "unstable"
    NO_ANSWER = "no answer"
    NO_JOINT = "no joint map and more than one knob moved"


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """Feasibility of one configuration, and its ground."""

    verdict: Feasibility
    basis: Basis
    outcome: str = ""
    """Outcome of the compile; empty: it was not compiled."""
    reason: str = ""
    line: str = ""
    """Place in the kernel's source where it ended: "file.py:112"."""
    stage: str = ""
    digest: str = ""
    """Digest of the program alone, where the map has it."""
    resources: Resources | None = None
    untried: Config = {}
    """Values that no answered configuration had, so that nothing is known of them."""
    broken: tuple[Constraint, ...] = ()
    """Constraints that it violates, whatever the ground of the verdict."""
    contradicts: bool = False
    """The compile and the constraints disagree."""

    @property
    def shown_constraints(self) -> tuple[Constraint, ...]:
        """The broken constraints to show a reader, each sentence once.

        Constraints that others imply, or that no failure confirms, are left out unless there are no others.
        """
        firm = [c for c in self.broken if c.confirmed and c.standing is not Standing.IMPLIED]
        firm += [c for c in self.broken if c.standing.binding and c not in firm]
        return tuple({item.words: item for item in firm or self.broken}.values())

    @property
    def forbidden(self) -> bool:
        """The user or an execution ruled it out: no compile can change that."""
        return any(item.standing.binding for item in self.broken)

    @property
    def final(self) -> bool:
        """A compile would say nothing new."""
        return self.basis in (Basis.COMPILED, Basis.UNSTABLE) or self.forbidden


def complete(space: SpaceMap, moves: Config, where: str = "") -> Config:
    """Return the baseline with `moves` made, in signature order. `where` begins a message: the place of the moves.

    Raises:
        UnknownKnob: a move of something that is no knob of the map.
        UsageError: a value that no candidate can hold.
    """
    for name, value in moves.items():
        if name not in space.baseline:
            hint = f"{name} is no knob here: {space.fixed[name]}." if name in space.fixed else ""
            raise UnknownKnob(f"{where}the map of {space.kernel!r}", name, space.baseline, hint)
        if problem := value_problem(value):
            raise UsageError(f"{where}the value of {name} {problem}.")
    return {**space.baseline, **moves}


def value_problem(value: Value) -> str:
    """Return why a candidate, which is stored as JSON, cannot hold a value; "" where it can."""
    if isinstance(value, float) and not math.isfinite(value):
        return "is not finite"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "does not fit into 64 bits"
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        return "is no Unicode text"
    return ""


def moves_of(space: SpaceMap, config: Config) -> Config:
    """Return the values that are not the baseline's."""
    return {name: value for name, value in config.items() if not same(value, space.baseline[name])}


def domains_of(space: SpaceMap) -> dict[str, tuple[Value, ...]]:
    """Return the values of every knob of the map, in their order."""
    domains: dict[str, tuple[Value, ...]] = {name: (value,) for name, value in space.baseline.items()}
    domains |= {name: tuple(v.value for v in knob.values) for name, knob in space.knobs.items()}
    return domains | (space.joint.domains if space.joint else {})


def agrees(recorded: Judgement, fresh: Judgement) -> bool | None:
    """Return whether a compile made now confirms the map; None where one of them does not speak of the compiler."""
    if recorded.forbidden and recorded.basis is not Basis.COMPILED:
        return None
    if Feasibility.UNKNOWN in (recorded.verdict, fresh.verdict):
        return None
    return recorded.verdict is fresh.verdict


def judgement_of(space: SpaceMap, config: Config) -> Judgement:
    """Return the map's judgement of one complete configuration. For many, keep a `Judge`."""
    return Judge(space)(config)


class Judge:
    """Judgements by one map. Its tables are built once."""

    def __init__(self, space: SpaceMap) -> None:
        self.space = space
        self.observations = observations(space)
        self.domains = domains_of(space)
        self.constraints = (*(space.joint.constraints if space.joint else ()), *execution_constraints(space))
        self._scopes = [scope_of(item.relation) for item in self.constraints]
        self._executed = [item for item in self.constraints if item.standing is Standing.EXECUTED]
        self._answered: dict[str, set[str]] = {name: {repr(value)} for name, value in space.baseline.items()}
        for key, item in self.observations.by_key.items():
            if is_evidence(item.outcome):
                for name, spelled in zip(space.baseline, key, strict=True):
                    self._answered[name].add(spelled)

    def __call__(self, config: Config) -> Judgement:
        """Return the map's judgement of one complete configuration (see `complete`)."""
        key, untried = config_key(config), self.untried(config)
        broken = tuple(item for item, met in zip(self.constraints, self._met(config, untried), strict=True) if not met)
        if outcomes := self.observations.unstable.get(key):
            reason = f"answered in two ways: {', '.join(outcomes)}"
            return Judgement(Feasibility.UNKNOWN, Basis.UNSTABLE, reason=reason, untried=untried, broken=broken)
        executed = any(item.standing is Standing.EXECUTED for item in broken)
        observed = self.observations.by_key.get(key)
        known = feasibility(observed.outcome) if observed else Feasibility.UNKNOWN
        if observed and known is not Feasibility.UNKNOWN and not (executed and known is Feasibility.FEASIBLE):
            return self._observed(observed, untried, broken)
        if any(item.standing.binding for item in broken):
            return Judgement(Feasibility.INFEASIBLE, Basis.PREDICTED, untried=untried, broken=broken)
        if observed or key in self.observations.unanswered:
            reason = observed.reason if observed else ""
            return Judgement(Feasibility.UNKNOWN, Basis.NO_ANSWER, reason=reason, untried=untried, broken=broken)
        if self.space.joint is None and len(moves_of(self.space, config)) > 1:
            return Judgement(Feasibility.UNKNOWN, Basis.NO_JOINT, untried=untried)
        if untried:
            return Judgement(Feasibility.UNKNOWN, Basis.UNTRIED, untried=untried, broken=broken)
        verdict = Feasibility.INFEASIBLE if broken else Feasibility.FEASIBLE
        return Judgement(verdict, Basis.PREDICTED, broken=broken)

    def judgement_of_answer(self, config: Config, answer: Answer, place: str = "") -> Judgement:
        """Return the judgement of a configuration that was compiled now, with the map's constraints that it breaks.

        `place` is where in the kernel's source a failure ended.
        """
        recorded = self(config)
        if isinstance(answer, Verdict) and feasibility(answer.outcome) is not Feasibility.UNKNOWN:
            return self._observed(observation_of(config, answer, place), recorded.untried, recorded.broken)
        failure = answer.reason if isinstance(answer, Verdict) else answer
        reason = failure.text if failure else ""
        return Judgement(
            Feasibility.UNKNOWN, Basis.NO_ANSWER, reason=reason, untried=recorded.untried, broken=recorded.broken
        )

    def passing(self) -> Iterator[Config]:
        """Yield the configurations that were compiled and passed, less those that were answered in two ways."""
        for key, item in self.observations.by_key.items():
            if item.compiled and key not in self.observations.unstable and not self.failed_on_device(item.config):
                yield item.config

    def failed_on_device(self, config: Config) -> bool:
        """Return whether it compiled and failed when it was executed, or has a value that does."""
        observed = self.observations.get(config)
        return (observed is not None and observed.failed_on_device) or not all(
            holds(c.relation, config) for c in self._executed
        )

    def launch_key(self, config: Config) -> str:
        """Return a key that is equal for asked configurations of one program and launch; "" where none is known."""
        observed = self.observations.get(config)
        return observed.launch_key if observed and self.space.stable is not False else ""

    def untried(self, config: Config) -> Config:
        """Return its values that no answered configuration had."""
        return {name: value for name, value in config.items() if repr(value) not in self._answered[name]}

    def _observed(self, observed: Observation, untried: Config, broken: tuple[Constraint, ...]) -> Judgement:
        verdict = feasibility(observed.outcome)
        # A user's restriction says nothing of the compiler, and constraints do not cover untried values.
        forbids = any(not item.standing.binding for item in broken)
        covered = self.space.joint is not None and not untried and not observed.failed_on_device
        comparable = covered and is_evidence(observed.outcome)
        return Judgement(
            verdict,
            Basis.COMPILED,
            observed.outcome,
            observed.reason,
            observed.place,
            observed.stage,
            observed.digest,
            observed.resources,
            untried,
            broken,
            contradicts=comparable and (forbids if verdict is Feasibility.FEASIBLE else not broken),
        )

    def _met(self, config: Config, untried: Config) -> Iterator[bool]:
        """Yield for each constraint whether the configuration meets it; True where it cannot be evaluated."""
        for item, scope in zip(self.constraints, self._scopes, strict=True):
            strange = scope & untried.keys()
            if not scope <= config.keys() or not all(self._has_known_type(name, config[name]) for name in strange):
                yield True
                continue
            try:
                yield holds(item.relation, config)
            except (TypeError, ValueError, ArithmeticError):
                if not strange:
                    raise
                yield True

    def _has_known_type(self, name: str, value: Value) -> bool:
        """Return whether relations over the knob's own values can be evaluated: text times a number is no number."""
        return any(type(value) is type(known) for known in self.domains[name])


def execution_constraints(space: SpaceMap) -> tuple[Constraint, ...]:
    """Return what executions of single values forbid everywhere, one constraint for each knob and cause.

    A value that changes the result solves another problem, whatever the other knobs are. A value that failed when it
    was executed is forbidden unless a program with it was executed and passed.
    """
    programs = space.joint.programs if space.joint else ()
    # A LAUNCH that passed leaves no check in a program, so it cannot show which values are right.
    conclusive = space.execution and space.execution.stage is not Stage.LAUNCH
    found = []
    for name, knob in space.knobs.items():
        right = {repr({**space.baseline, **p.config}[name]) for p in programs if p.check is not None}
        changing = [v for v in knob.values if v.effect is Effect.CHANGES_RESULT]
        failing = [
            v for v in knob.values if v not in changing and _failed(v) and repr(v.value) not in right and conclusive
        ]
        for values, why in (
            (changing, "changes the result: part of the problem, not of the tuning"),
            (failing, "fails when executed, and no program with it passed"),
        ):
            if values:
                relation = Member(name, tuple(v.value for v in values), inside=False)
                first = values[0]
                place = f"{first.file}:{first.line}" if first.line is not None else ""
                example = {**space.baseline, name: first.value}
                found.append(
                    Constraint(
                        relation, words(relation), (name,), Standing.EXECUTED, why, place, first.stage, first.outcome,
                        failing_example=example, passing_example=space.baseline,
                    )
                )  # fmt: skip
    return tuple(found)


def _failed(value: ValueMap) -> bool:
    return bool(value.measured) and feasibility(value.outcome) is Feasibility.INFEASIBLE
