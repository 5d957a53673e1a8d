"""What a map says of any configuration, without compiling it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from gluonmap.constraints.semantics import holds, scope_of, words
from gluonmap.model.candidate import Config, Stage, Value, same
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.joint_map import Constraint, Standing, Tried, Verified
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import COMPILED, Feasibility, Outcome, feasibility, is_evidence
from gluonmap.model.relations import Member
from gluonmap.model.space_map import SpaceMap, ValueMap
from gluonmap.model.verdict import Answer, Check, Figures, Resources, Verdict, digest_of


class Basis(StrEnum):
    """What a judgement rests on."""

    COMPILED = "compiled"
    """This very configuration was asked."""
    PREDICTED = "predicted"
    """By the map's constraints."""
    UNTRIED = "never tried value"
    UNSTABLE = "unstable"
    NO_ANSWER = "no answer"
    NO_JOINT = "no joint map and more than one knob moved"


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of one configuration, and how."""

    verdict: Feasibility
    basis: Basis
    outcome: str = ""
    """Of the compile; empty: it was not compiled."""
    reason: str = ""
    line: str = ""
    """Where in the kernel's source it ended: "file.py:112"."""
    stage: str = ""
    digest: str = ""
    """Of the program alone, where the map has it."""
    resources: Resources | None = None
    untried: Config = {}
    """Values for which nothing is known to hold: no configuration with one was ever answered."""
    broken: tuple[Constraint, ...] = ()
    """Constraints that it violates, whatever the verdict rests on."""
    contradicts: bool = False
    """The compile and the constraints disagree."""

    @property
    def telling(self) -> tuple[Constraint, ...]:
        """The constraints to name: each once, and what others imply or no failure confirms only where it is all."""
        firm = [c for c in self.broken if c.confirmed and c.standing is not Standing.IMPLIED]
        firm += [c for c in self.broken if c.standing.binding and c not in firm]
        return tuple({item.words: item for item in firm or self.broken}.values())

    @property
    def forbidden(self) -> bool:
        """The user ruled it out, or executions did: no compile can change that."""
        return any(item.standing.binding for item in self.broken)

    @property
    def settled(self) -> bool:
        """A compile would tell nothing new."""
        return self.basis in (Basis.COMPILED, Basis.UNSTABLE) or self.forbidden


Key = tuple[str, ...]


def key_of(config: Config) -> Key:
    """Equal for configurations of the same values: True, 1, 1.0, "1" and -0.0 are all different."""
    return tuple(map(repr, config.values()))


def complete(space: SpaceMap, moves: Config, where: str = "") -> Config:
    """The baseline with `moves` made, in the order of the signature. `where` tells a message where they stand.

    Raises:
        UnknownKnob: a move of something that is no knob of the map.
        UsageError: a value that no candidate can hold.
    """
    for name, value in moves.items():
        if name not in space.baseline:
            hint = f"{name} is no knob here: {space.fixed[name]}." if name in space.fixed else ""
            raise UnknownKnob(f"{where}the map of {space.kernel!r}", name, space.baseline, hint)
        if problem := unfit(value):
            raise UsageError(f"{where}the value of {name} {problem}.")
    return {**space.baseline, **moves}


def unfit(value: Value) -> str:
    """Why a candidate, which is JSON, cannot hold a value; "" where it can."""
    if isinstance(value, float) and not math.isfinite(value):
        return "is not finite"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "does not fit into 64 bits"
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        return "is no Unicode text"
    return ""


def moves_of(space: SpaceMap, config: Config) -> Config:
    """The values that are not the baseline's."""
    return {name: value for name, value in config.items() if not same(value, space.baseline[name])}


def domains_of(space: SpaceMap) -> dict[str, tuple[Value, ...]]:
    """The values of every knob that the map speaks of, in their order."""
    domains: dict[str, tuple[Value, ...]] = {name: (value,) for name, value in space.baseline.items()}
    domains |= {name: tuple(v.value for v in knob.values) for name, knob in space.knobs.items()}
    return domains | (space.joint.domains if space.joint else {})


def agrees(told: Judgement, fresh: Judgement) -> bool | None:
    """Whether a compile made now says what the map said; None where one of them says nothing about the compiler."""
    if told.forbidden and told.basis is not Basis.COMPILED:
        return None
    if Feasibility.UNKNOWN in (told.verdict, fresh.verdict):
        return None
    return told.verdict is fresh.verdict


def judge(space: SpaceMap, config: Config) -> Judgement:
    """What the map says of one complete configuration. For many, keep a `Judge`."""
    return Judge(space)(config)


@dataclass(frozen=True, slots=True)
class _Record:
    """One configuration that the map has an entry for."""

    config: Config
    outcome: str
    reason: str = ""
    line: str = ""
    stage: str = ""
    digest: str = ""
    resources: Resources | None = None
    launch: str = ""
    """Stands for the program and its launch; comparable only with that of another record."""
    on_device: bool = False
    """It failed when executed, of which constraints, learned from compiles, claim nothing."""


class Judge:
    """Answers for one map, from tables that are made once."""

    def __init__(self, space: SpaceMap) -> None:
        self.space = space
        self.domains = domains_of(space)
        self.constraints = (*(space.joint.constraints if space.joint else ()), *of_executions(space))
        self._scopes = [scope_of(item.relation) for item in self.constraints]
        self._executed = [item for item in self.constraints if item.standing is Standing.EXECUTED]
        self._records = _records(space)
        self._unstable: dict[Key, tuple[str, ...]] = {}
        self._unanswered: set[Key] = set()
        if space.joint:
            self._unstable = {key_of(self._full(u.config)): u.outcomes for u in space.joint.unstable}
            self._unanswered = {key_of(self._full(config)) for config in space.joint.unknown}
        self._seen: dict[str, set[str]] = {name: {repr(value)} for name, value in space.baseline.items()}
        for key, record in self._records.items():
            if is_evidence(record.outcome):
                for name, spelled in zip(space.baseline, key, strict=True):
                    self._seen[name].add(spelled)

    def __call__(self, config: Config) -> Judgement:
        """What the map says of one complete configuration (see `complete`)."""
        key, untried = key_of(config), self.untried(config)
        broken = tuple(item for item, met in zip(self.constraints, self._met(config, untried), strict=True) if not met)
        if outcomes := self._unstable.get(key):
            said = f"answered in two ways: {', '.join(outcomes)}"
            return Judgement(Feasibility.UNKNOWN, Basis.UNSTABLE, reason=said, untried=untried, broken=broken)
        executed = any(item.standing is Standing.EXECUTED for item in broken)
        record = self._records.get(key)
        known = feasibility(record.outcome) if record else Feasibility.UNKNOWN
        if record and known is not Feasibility.UNKNOWN and not (executed and known is Feasibility.FEASIBLE):
            return self._compiled(record, untried, broken)
        if any(item.standing.binding for item in broken):
            return Judgement(Feasibility.INFEASIBLE, Basis.PREDICTED, untried=untried, broken=broken)
        if record or key in self._unanswered:
            reason = record.reason if record else ""
            return Judgement(Feasibility.UNKNOWN, Basis.NO_ANSWER, reason=reason, untried=untried, broken=broken)
        if self.space.joint is None and len(moves_of(self.space, config)) > 1:
            return Judgement(Feasibility.UNKNOWN, Basis.NO_JOINT, untried=untried)
        if untried:
            return Judgement(Feasibility.UNKNOWN, Basis.UNTRIED, untried=untried, broken=broken)
        verdict = Feasibility.INFEASIBLE if broken else Feasibility.FEASIBLE
        return Judgement(verdict, Basis.PREDICTED, broken=broken)

    def answered(self, config: Config, answer: Answer, line: str = "") -> Judgement:
        """The judgement of a configuration that was compiled now, beside what the map's constraints say of it."""
        told = self(config)
        if not isinstance(answer, Verdict) or feasibility(answer.outcome) is Feasibility.UNKNOWN:
            reason = answer.reason.text if isinstance(answer, Verdict) and answer.reason else ""
            reason = reason or getattr(answer, "text", "")
            return Judgement(
                Feasibility.UNKNOWN, Basis.NO_ANSWER, reason=reason, untried=told.untried, broken=told.broken
            )
        reason, stage = (answer.reason.text, answer.reason.phase) if answer.reason else ("", "")
        record = _Record(config, answer.outcome, reason, line, stage, digest_of(answer), answer.resources)
        return self._compiled(record, told.untried, told.broken)

    def passing(self) -> Iterator[Config]:
        """The configurations that were compiled and passed, less those that were answered in two ways."""
        for key, record in self._records.items():
            if record.outcome in COMPILED and key not in self._unstable and not self.failed_on_device(record.config):
                yield record.config

    def asked(self) -> Iterator[Config]:
        """The configurations that the map has an entry for."""
        return (record.config for record in self._records.values())

    def failed_on_device(self, config: Config) -> bool:
        """Whether it compiled, and failed when it was executed; or has a value that does."""
        record = self._records.get(key_of(config))
        return (record is not None and record.on_device) or not all(holds(c.relation, config) for c in self._executed)

    def launch(self, config: Config) -> str:
        """Equal for configurations that were tried together and are one program and launch; "" where it was not."""
        record = self._records.get(key_of(config))
        return record.launch if record and self.space.stable is not False else ""

    def untried(self, config: Config) -> Config:
        """Its values that no answered configuration had."""
        return {name: value for name, value in config.items() if repr(value) not in self._seen[name]}

    def _compiled(self, record: _Record, untried: Config, broken: tuple[Constraint, ...]) -> Judgement:
        verdict = feasibility(record.outcome)
        # What the user forbids is no claim about the compiler, and of untried values the constraints claim nothing.
        claimed = any(not item.standing.binding for item in broken)
        claims = self.space.joint is not None and not untried and not record.on_device
        speaks = claims and is_evidence(record.outcome)
        return Judgement(
            verdict,
            Basis.COMPILED,
            record.outcome,
            record.reason,
            record.line,
            record.stage,
            record.digest,
            record.resources,
            untried,
            broken,
            contradicts=speaks and (claimed if verdict is Feasibility.FEASIBLE else not broken),
        )

    def _met(self, config: Config, untried: Config) -> Iterator[bool]:
        for item, scope in zip(self.constraints, self._scopes, strict=True):
            strange = scope & untried.keys()
            if not scope <= config.keys() or not all(self._like(name, config[name]) for name in strange):
                yield True
                continue
            try:
                yield holds(item.relation, config)
            except (TypeError, ValueError, ArithmeticError):
                if not strange:
                    raise
                yield True

    def _like(self, name: str, value: Value) -> bool:
        """A value that relations over the knob's own values can be asked about: text times a number is no number."""
        return any(type(value) is type(known) for known in self.domains[name])

    def _full(self, config: Config) -> Config:
        return {**self.space.baseline, **config}


@dataclass(frozen=True, slots=True)
class Execution:
    """What the execution of one configuration told."""

    outcome: str
    check: Check | None
    figures: Figures | None


def executions(space: SpaceMap) -> dict[Key, Execution]:
    """What the map holds of executions, by the key of the configuration."""
    found: dict[Key, Execution] = {}
    for program in space.joint.programs if space.joint else ():
        if program.check is not None or program.figures is not None:
            key = key_of({**space.baseline, **program.config})
            found[key] = Execution(Outcome.PASS, program.check, program.figures)
    singles: list[tuple[Config, SpaceMap | ValueMap]] = [(space.baseline, space)]
    singles += [({**space.baseline, n: v.value}, v) for n, knob in space.knobs.items() for v in knob.values]
    for config, told in singles:
        if told.measured:
            found[key_of(config)] = Execution(told.outcome, told.measured.check, told.measured.figures)
    return found


def of_executions(space: SpaceMap) -> tuple[Constraint, ...]:
    """What executions of single values forbid everywhere, a constraint for each knob.

    A value that changes the result solves another problem, whatever is beside it. A value that failed when it was
    executed is forbidden unless a program with it was executed and passed.
    """
    programs = space.joint.programs if space.joint else ()
    tells = space.on_device and space.on_device.stage is not Stage.LAUNCH  # which leaves no trace in a program
    found = []
    for name, knob in space.knobs.items():
        right = {repr({**space.baseline, **p.config}[name]) for p in programs if p.check is not None}
        changing = [v for v in knob.values if v.effect is Effect.CHANGES_RESULT]
        failing = [v for v in knob.values if v not in changing and _failed(v) and repr(v.value) not in right and tells]
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


def _records(space: SpaceMap) -> dict[Key, _Record]:
    """What the map has of single configurations: all that were asked; those with one knob moved tell most."""
    records: dict[Key, _Record] = {}
    if space.joint:
        programs = _programs(space)
        for tried in space.joint.tried:
            config = {**space.baseline, **dict(zip(space.joint.domains, tried.values, strict=True))}
            records[key_of(config)] = _of_tried(config, tried, programs.get(tried.digest))
        for program in space.joint.programs:  # some were compiled for the reduced space alone
            config = {**space.baseline, **program.config}
            other = records.get(key_of(config))
            launch = other.launch if other else ""
            records[key_of(config)] = _Record(
                config, Outcome.PASS, digest=program.digest, resources=program.resources, launch=launch
            )
        for item in space.joint.refused:
            config = {**space.baseline, **item.config}
            records[key_of(config)] = _Record(
                config, item.outcome, item.reason, stage=item.stage, digest=item.digest, on_device=True
            )
    singles = [
        _single(space.baseline, space),
        *(_single({**space.baseline, n: v.value}, v) for n, knob in space.knobs.items() for v in knob.values),
    ]
    for record in singles:
        other = records.get(key_of(record.config))
        if other is None or is_evidence(record.outcome) or record.on_device:
            records[key_of(record.config)] = replace(record, launch=other.launch if other else "")
    return records


def _programs(space: SpaceMap) -> dict[str, Verified]:
    """The verified programs by the digest that their configuration has among those that were tried."""
    joint = space.joint
    if joint is None or not joint.programs:
        return {}
    digests = {tuple(map(repr, tried.values)): tried.digest for tried in joint.tried if tried.digest}
    found: dict[str, Verified] = {}
    for program in joint.programs:
        full = {**space.baseline, **program.config}
        digest = digests.get(tuple(repr(full[name]) for name in joint.domains))
        if digest:
            found[digest] = program
    return found


def _of_tried(config: Config, tried: Tried, program: Verified | None) -> _Record:
    digest, resources = (program.digest, program.resources) if program else ("", None)
    return _Record(config, tried.outcome, tried.reason, tried.line, tried.stage, digest, resources, tried.digest)


def _single(config: Config, told: SpaceMap | ValueMap) -> _Record:
    """What is known of the baseline, or of it with one knob moved."""
    place = f"{told.file}:{told.line}" if told.line is not None else ""
    on_device = bool(told.measured) and feasibility(told.outcome) is Feasibility.INFEASIBLE
    return _Record(
        config, told.outcome, told.reason, place, told.stage, told.digest, told.resources, on_device=on_device
    )
