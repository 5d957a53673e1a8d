"""Programs to hand over are executed, and so taken further than the compile; such answers read as a compile's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Candidate, Config, Stage, Value, same
from gluonmap.model.events import Event, Listener
from gluonmap.model.joint_map import Joint, Refused, Verified
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Answer, Outcome, Verdict, compiled
from gluonmap.probe.joint_search import INTERRUPTED
from gluonmap.query.feasibility import execution_constraints
from gluonmap.runner import journal
from gluonmap.runner.oracle import Oracle
from gluonmap.spec.description import Description

COMPILES = "Everything compiles, and not everything is right when executed:"
"""In the place of what the compiles alone would say."""
TRIED = 4
"""Programs with a value that failed by itself: if none of so many passes, no more are asked."""


def as_compile(answer: Answer) -> Answer:
    """What an answer says of the compile alone: whatever was executed had compiled."""
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


def settled(joint: Joint, space: SpaceMap) -> Joint:
    """Without programs that have a value which executions forbid: on small problems one can be right by chance."""
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


def taken(
    joint: Joint, oracle: Oracle, description: Description, listen: Listener, failing: Mapping[str, Sequence[Value]]
) -> Joint:
    """The same with its programs taken to the description's stage: what does not pass there is not handed over.

    `failing`: values by knob that failed there by themselves. Few programs with one are asked, and the others only if
    one of these passed: `settled` refuses them. Any other program without an answer stays, and a note says so: it
    compiled, and nothing speaks against it. Ctrl-C ends the asking, not the result.
    """
    programs: dict[str, tuple[Verified, Candidate]] = {}
    for program in joint.programs:
        candidate = description.candidate(program.config)
        programs[journal.key_of(candidate)] = (program, candidate)
    plan = "programs to execute" if description.runs_on_cpu else "programs to take to the device"
    answers: dict[str, Answer] = {}
    stopped = joint.stopped

    def ask(keys: Sequence[str]) -> None:
        candidates = [programs[key][1] for key in keys]
        known = sum(oracle.known(candidate) is not None for candidate in candidates)
        listen(Event("plan", plan, len(candidates), known))
        for asked in oracle.ask(candidates):
            answers[journal.key_of(asked.candidate)] = asked.answer
            if asked.fresh:
                listen(Event("answer", answer=asked.answer))

    if description.execution and description.execution.stage is Stage.LAUNCH:
        failing = {}  # a pass leaves no trace in a program there, so `settled` cannot tell which values are wrong
    bad = {key: _bad_values(program.config, failing) for key, (program, _) in programs.items()}
    first = _first(bad)
    unasked: set[str] = set()
    try:
        ask(first)
        harmless = {value for key in first if compiled(answers.get(key)) for value in bad[key]}
        unasked = {key for key in programs if key not in answers and not bad[key] <= harmless}
        if rest := [key for key in programs if key not in answers and key not in unasked]:
            ask(rest)
    except KeyboardInterrupt:
        stopped = INTERRUPTED
    kept: list[Verified] = []
    refused: list[Refused] = []
    silent = 0
    for key, (program, _) in programs.items():
        answer = answers.get(key)
        if key in unasked:
            kept.append(program)
        elif not isinstance(answer, Verdict) or answer.outcome in (Outcome.SKIPPED, Outcome.NOT_EXECUTED):
            silent += 1
            kept.append(program)
        elif answer.outcome is Outcome.PASS:
            kept.append(
                msgspec.structs.replace(program, check=answer.check, timing=answer.timing, figures=answer.figures)
            )
        else:
            refused.append(_refused(program, answer))
    notes = joint.notes
    if silent:
        where = "when executed" if description.runs_on_cpu else "on the device"
        notes += (f"{silent} of {len(programs)} programs had no answer {where}; they only compiled",)
    return msgspec.structs.replace(joint, programs=tuple(kept), refused=tuple(refused), notes=notes, stopped=stopped)


def _bad_values(config: Config, failing: Mapping[str, Sequence[Value]]) -> frozenset[tuple[str, str]]:
    """The values of a configuration that failed by themselves."""
    return frozenset((n, repr(config[n])) for n, values in failing.items() if any(same(config[n], v) for v in values))


def _first(bad: Mapping[str, frozenset[tuple[str, str]]]) -> list[str]:
    """Programs to ask first: all without a bad value, and few with each."""
    seen: dict[tuple[str, str], int] = {}
    found = []
    for key, values in bad.items():
        if not values or any(seen.get(value, 0) < TRIED for value in values):
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
