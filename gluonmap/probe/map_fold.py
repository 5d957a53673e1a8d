"""Fold of answers into a map: baseline, effects and classes of single values. No I/O, no clock."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gluonmap.model.candidate import Candidate, Config, Value, same
from gluonmap.model.inspection import Inspection
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import COMPILED, Outcome
from gluonmap.model.space_map import ExecutedStage, KnobMap, Measured, Recipe, SpaceMap, ValueMap
from gluonmap.model.verdict import Answer, Fault, Verdict, compiled, digest_of
from gluonmap.probe.current_lines import Lines
from gluonmap.probe.effects import changes_result, classify, program_difference
from gluonmap.probe.reasons import KnobReasons
from gluonmap.probe.spelling import quoted
from gluonmap.runner.journal import compile_key, key_of
from gluonmap.spec.description import Description

UNSTABLE = "unstable code: another compile of it gave another program, so equal programs prove nothing"


@dataclass(frozen=True, slots=True)
class MapIdentity:
    """Facts that a map states about itself and that are in no answer."""

    file: str
    """Path as the user names it."""
    triton: str
    stubs: tuple[str, ...]
    map_path: str
    """Path of the map, for the commands that repeat a candidate."""
    probe_file: str = ""
    """Path as the user would name it."""
    source: dict[str, str] = field(default_factory=dict)
    """Hash of the syntax tree by file, as in the map."""


def fold(
    description: Description,
    inspection: Inspection,
    identity: MapIdentity,
    answers: Mapping[str, Answer],
    stable: Mapping[str, bool],
    lines: Lines,
) -> SpaceMap:
    """Return the map that the answers give, by candidate key. The baseline must have an answer.

    `stable` says, by compile key, whether a second compile under another hash seed gave the same program.
    """
    return _Fold(description, inspection, identity, answers, stable, lines).map()


class _Fold:
    """Fold of the answers into a map."""

    def __init__(
        self,
        description: Description,
        inspection: Inspection,
        identity: MapIdentity,
        answers: Mapping[str, Answer],
        stable: Mapping[str, bool],
        lines: Lines,
    ) -> None:
        self.description, self.inspection, self.identity = description, inspection, identity
        self.answers, self.confirmed = answers, stable
        self.reasons = KnobReasons(description, inspection, lines)
        self.baseline = description.candidate({})
        self.base_answer = answers[key_of(self.baseline)]
        self.stable = stable.get(compile_key(self.baseline))
        self.missing = 0

    def map(self) -> SpaceMap:
        base = self.base_answer
        feasible = compiled(base)
        knobs = {name: self._knob(name) for name in self.description.knobs} if feasible else {}
        verdict = base if isinstance(base, Verdict) else None
        reason = verdict.reason if verdict else None
        description, trial = self.description, self.baseline.trial
        return SpaceMap(
            kernel=self.inspection.kernel,
            file=self.identity.file,
            target=description.target.name,
            triton=self.identity.triton,
            specialisation=description.specialisation(),
            baseline=description.baseline,
            knobs=knobs,
            source=self.identity.source,
            recipe=Recipe(
                description.args,
                description.fixed,
                description.derive,
                description.grid,
                self.identity.stubs,
                trial,
                self.identity.probe_file if trial else "",
            ),
            shape=description.shape,
            grid=self.baseline.grid,
            outcome=verdict.outcome.value if verdict else "unknown",
            stable=self.stable,
            resources=verdict.resources if verdict else None,
            digest=digest_of(base),
            stage=reason.phase if reason else "",
            kind=reason.kind if reason else "",
            exit_status=None if feasible or not verdict else verdict.exit_status,
            reason=reason.text if reason else base.text if isinstance(base, Fault) else "",
            line=self.reasons.line(reason.location) if reason else None,
            because=() if feasible else self.reasons.broken_demands({}),
            next_step="" if feasible else self._next_step(),
            warnings=verdict.warnings if verdict else (),
            fixed=self._fixed(),
            not_probed={n: w for n, w in description.not_probed.items() if n not in description.fixed},
            literals=self.reasons.demand_texts(self.reasons.demands),
            notes=self._notes(),
            unanswered=self.missing,
            repeat=self._repeat({}),
            execution=ExecutedStage(self.baseline.stage, trial.device) if trial else msgspec.UNSET,
            measured=_measured(base),
        )

    def _notes(self) -> tuple[str, ...]:
        notes = list(self.description.notes)
        if self.stable is False:
            notes.insert(
                0,
                "two compiles of the baseline gave two programs: this kernel's code is unstable, so no value can be "
                "called inert or live",
            )
        return tuple(notes)

    def _next_step(self) -> str:
        base = self.base_answer
        if isinstance(base, Verdict) and base.outcome is Outcome.SKIPPED:
            return "see that inputs(), reference() and the device fit the candidate, or map it without --stage"
        if isinstance(base, Verdict) and base.stage.executes:
            return "repair the kernel or the probe file's reference, or start from a configuration that is right"
        if isinstance(base, Verdict) and base.outcome is Outcome.HUNG:
            return "give it more time with --deadline, or start from a smaller tile with --set NAME=VALUE"
        return (
            "start from a configuration that compiles (--set NAME=VALUE, --config FILE.json, or the probe file); "
            "gluonmap find-default, with the same flags, looks for one"
        )

    def _fixed(self) -> dict[str, str]:
        fixed = dict(self.description.why_fixed)
        for name in self.description.derive:
            if name in self.description.parameters and self.description.parameters[name].constexpr:
                fixed[name] = f"{self.baseline.config.get(name)!r}: derived, {self.description.derive[name]}"
        for name, parameter in self.description.parameters.items():
            if parameter.heuristic:
                fixed[name] = "computed by @triton.heuristics"
        for name, value in self.description.fixed.items():
            fixed[name] = f"{value!r}: {fixed.get(name) or self.description.not_probed.get(name) or 'set, not turned'}"
        return {n: w if w else "not turned" for n, w in fixed.items()}

    # -- one knob ------------------------------------------------------------------------------------------------

    def _knob(self, name: str) -> KnobMap:
        knob = self.description.knobs[name]
        values = tuple(self._value(name, value) for value in knob.domain)
        moved = [v for v in values if v.effect is not Effect.BASELINE]
        knob_class = classify(moved)
        return KnobMap(
            knob_class=knob_class,
            kind=knob.kind,
            baseline=knob.baseline,
            why=self.reasons.why(name, knob.kind, knob_class, moved),
            values=values,
            equivalent=self._equivalent(name, values),
            line=self.reasons.declared_line(name),
        )

    def _value(self, name: str, value: Value) -> ValueMap:
        moves: Config = {name: value}
        candidate = self.description.candidate(moves)
        is_baseline = same(value, self.description.knobs[name].baseline)
        answer = self.base_answer if is_baseline else self.answers.get(key_of(candidate))
        repeat = self._repeat({} if is_baseline else moves)
        if answer is None:
            self.missing += 1
            return ValueMap(value, "unknown", Effect.UNKNOWN, reason="not asked", repeat=repeat)
        if isinstance(answer, Fault):
            return ValueMap(
                value, "unknown", Effect.UNKNOWN, reason=answer.text, exit_status=answer.exit_status, repeat=repeat
            )
        reason = answer.reason
        effect, detail = (Effect.BASELINE, "") if is_baseline else self._effect(candidate, answer)
        return ValueMap(
            value=value,
            outcome=answer.outcome.value,
            effect=effect,
            reason=reason.text if reason else UNSTABLE if detail == "unstable code" else "",
            line=self.reasons.line(reason.location) if reason else None,
            file=reason.location.file if reason and reason.location else "",
            stage=reason.phase if reason else "",
            kind=reason.kind if reason else "",
            exit_status=answer.exit_status,
            digest=digest_of(answer),
            code=answer.program.code if answer.program else "",
            detail=detail,
            because=self.reasons.broken_demands(moves) if effect is Effect.ABORTING else (),
            resources=answer.resources,
            warnings=answer.warnings,
            repeat=repeat,
            measured=_measured(answer),
        )

    def _effect(self, candidate: Candidate, verdict: Verdict) -> tuple[Effect, str]:
        """Return the effect of a move, and what differs from the baseline."""
        if verdict.outcome is Outcome.SKIPPED:
            return Effect.UNKNOWN, ""
        if changes_result(verdict):
            return Effect.CHANGES_RESULT, ""
        if not verdict.outcome.compiled:
            return Effect.ABORTING, ""
        base = self.base_answer
        assert isinstance(base, Verdict) and base.program and verdict.program
        if self.stable is False:
            return Effect.UNKNOWN, "unstable code"
        if verdict.program.digest != base.program.digest:
            return Effect.LIVE, program_difference(base.program, verdict.program)
        if candidate.grid != self.baseline.grid:
            return Effect.LIVE_HOST, "grid"
        if candidate.args != self.baseline.args:
            return Effect.LIVE_HOST, "arguments"
        match self.confirmed.get(compile_key(candidate)):
            case True:
                return Effect.INERT, ""
            case False:
                return Effect.UNKNOWN, "unstable code"
            case None:
                return Effect.UNKNOWN, "same program, compiled once"

    def _equivalent(self, name: str, values: Sequence[ValueMap]) -> tuple[tuple[Value, ...], ...]:
        """Return groups of values with equal programs, grids and arguments; unstable code proves nothing."""
        if self.stable is False:
            return ()
        groups: dict[object, list[Value]] = {}
        for value in values:
            if value.outcome in COMPILED and value.digest:
                candidate = self.description.candidate({name: value.value})
                if self.confirmed.get(compile_key(candidate)) is False:
                    continue
                groups.setdefault((value.digest, candidate.grid, repr(candidate.args)), []).append(value.value)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def _repeat(self, moves: Config) -> str:
        settings = "".join(f" {quoted(n, v)}" for n, v in moves.items())
        return f"gluonmap repeat {shlex.quote(self.identity.map_path)}{settings}"


def _measured(answer: Answer) -> Measured | msgspec.UnsetType:
    """Return what an execution measured; UNSET: the candidate was not executed."""
    if isinstance(answer, Verdict) and answer.stage.executes:
        return Measured(answer.stage, answer.check, answer.timing, answer.figures)
    return msgspec.UNSET
