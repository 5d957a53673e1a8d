"""Execute the programs that are to be handed over, and view the execution verdicts as compile verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Candidate, Config, Stage, Value, same
from gluonmap.model.events import Event, Listener
from gluonmap.model.joint_map import Joint, Refused, Verified
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Answer, Verdict, compiled
from gluonmap.probe.joint_search import INTERRUPTED
from gluonmap.query.feasibility import execution_constraints
from gluonmap.runner import journal
from gluonmap.runner.oracle import Oracle
from gluonmap.spec.description import Description

COMPILES = "Everything compiles, and not everything is right when executed:"
"""Replaces the note that the compiles alone give."""
MOST_WITH_FAILING_VALUE = 4
"""Programs that are executed with one value that failed by itself; if one of them passes, all are."""


def compile_answer(answer: Answer) -> Answer:
    """Return what an answer says about the compile alone: a candidate that was executed had compiled."""
    if not isinstance(answer, Verdict) or not answer.stage.executes or answer.program is None:
        return answer
    return Verdict(
        Outcome.PASS,
        Stage.COMPILE,
        0,
        answer.compile_seconds,
        answer.compile_seconds,
        program=answer.program,
        resources=answer.resources,
        warnings=answer.warnings,
    )


def without_forbidden_programs(joint: Joint, space: SpaceMap) -> Joint:
    """Return the joint part without programs that have a value which the executions of single values forbid.

    Such a program may have passed: on a small problem a wrong value can be right by chance.
    """
    forbidden = execution_constraints(space)
    kept, refused = [], list(joint.refused)
    for program in joint.programs:
        config = {**space.baseline, **program.config}
        broken = next((item for item in forbidden if not holds(item.relation, config)), None)
        if broken is None:
            kept.append(program)
            continue
        (name,) = broken.scope
        value = next(v for v in space.knobs[name].values if same(v.value, config[name]))
        stage = value.measured.reached if value.measured else value.stage
        reason = f"{name}={config[name]} {broken.reason}"
        refused.append(Refused(program.config, program.digest, value.outcome, str(stage), value.kind, reason))
    notes = tuple(n.replace("Everything passes:", COMPILES) for n in joint.notes) if refused else joint.notes
    return msgspec.structs.replace(joint, programs=tuple(kept), refused=tuple(refused), notes=notes)


def execute(
    joint: Joint, oracle: Oracle, description: Description, listen: Listener, failing: Mapping[str, Sequence[Value]]
) -> Joint:
    """Execute the programs at the description's stage; return the joint part with those that pass there.

    `failing` are values by knob that failed there by themselves. Few programs with such a value are asked, and the
    others only if one of the few passed; `without_forbidden_programs` refuses them. Any other program without an answer
    stays, with a note: it compiled, and no answer is against it. Ctrl-C ends the asking, not the result.
    """
    return _ProgramExecutions(joint, oracle, description, listen).joint(failing)


class _ProgramExecutions:
    """Executions of the programs of one joint search."""

    def __init__(self, joint: Joint, oracle: Oracle, description: Description, listen: Listener) -> None:
        self.searched, self.oracle, self.description, self.listen = joint, oracle, description, listen
        self.candidates: dict[str, Candidate] = {}
        self.programs: dict[str, Verified] = {}
        for program in joint.programs:
            candidate = description.candidate(program.config)
            key = journal.key_of(candidate)
            self.candidates[key], self.programs[key] = candidate, program
        self.answers: dict[str, Answer] = {}

    def joint(self, failing: Mapping[str, Sequence[Value]]) -> Joint:
        """Execute the programs; return the joint part with those that pass."""
        if self.description.execution and self.description.execution.stage is Stage.LAUNCH:
            failing = {}  # a launch compares no results, so it cannot show which values are wrong
        bad = {key: _bad_values(program.config, failing) for key, program in self.programs.items()}
        unasked: set[str] = set()
        stopped = self.searched.stopped
        try:
            first = _asked_first(bad)
            self._ask(first)
            harmless = {value for key in first if compiled(self.answers.get(key)) for value in bad[key]}
            unasked = {key for key in self.programs if key not in self.answers and not bad[key] <= harmless}
            if rest := [key for key in self.programs if key not in self.answers and key not in unasked]:
                self._ask(rest)
        except KeyboardInterrupt:
            stopped = INTERRUPTED
        return msgspec.structs.replace(self._folded(unasked), stopped=stopped)

    def _ask(self, keys: Sequence[str]) -> None:
        plan = "programs to execute" if self.description.runs_on_cpu else "programs to take to the device"
        candidates = [self.candidates[key] for key in keys]
        known = sum(self.oracle.known(candidate) is not None for candidate in candidates)
        self.listen(Event("plan", plan, len(candidates), known))
        for reply in self.oracle.ask(candidates):
            self.answers[journal.key_of(reply.candidate)] = reply.answer
            if reply.fresh:
                self.listen(Event("answer", answer=reply.answer))

    def _folded(self, unasked: set[str]) -> Joint:
        """Return the joint part with the answers; `unasked` are kept for `without_forbidden_programs` to refuse."""
        kept: list[Verified] = []
        refused: list[Refused] = []
        silent = 0
        for key, program in self.programs.items():
            answer = self.answers.get(key)
            if key in unasked:
                kept.append(program)
            elif not isinstance(answer, Verdict) or answer.outcome.undecided:
                silent += 1
                kept.append(program)
            elif answer.outcome is Outcome.PASS:
                kept.append(
                    msgspec.structs.replace(program, check=answer.check, timing=answer.timing, figures=answer.figures)
                )
            else:
                refused.append(_refused(program, answer))
        notes = self.searched.notes
        if silent:
            where = "when executed" if self.description.runs_on_cpu else "on the device"
            notes += (f"{silent} of {len(self.programs)} programs had no answer {where}; they only compiled",)
        return msgspec.structs.replace(self.searched, programs=tuple(kept), refused=tuple(refused), notes=notes)


def _bad_values(config: Config, failing: Mapping[str, Sequence[Value]]) -> frozenset[tuple[str, str]]:
    """Return the values of a configuration that failed by themselves, as (knob, repr of the value)."""
    return frozenset((n, repr(config[n])) for n, values in failing.items() if any(same(config[n], v) for v in values))


def _asked_first(bad: Mapping[str, frozenset[tuple[str, str]]]) -> list[str]:
    """Return the programs to ask first: all without a bad value, and few with each bad value."""
    seen: dict[tuple[str, str], int] = {}
    found = []
    for key, values in bad.items():
        if not values or any(seen.get(value, 0) < MOST_WITH_FAILING_VALUE for value in values):
            found.append(key)
            for value in values:
                seen[value] = seen.get(value, 0) + 1
    return found


def _refused(program: Verified, answer: Verdict) -> Refused:
    reason = answer.reason
    return Refused(
        program.config,
        program.digest,
        answer.outcome.value,
        answer.stage.value,
        reason.kind if reason else "",
        reason.text if reason else "",
    )
