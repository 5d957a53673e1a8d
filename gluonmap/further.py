"""Programs to hand over are executed, and so taken further than the compile; such answers read as a compile's."""

from __future__ import annotations

import msgspec

from gluonmap import journal
from gluonmap.describe import Description
from gluonmap.events import Event, Listener
from gluonmap.joint import Joint, Refused, Verified
from gluonmap.jointly import INTERRUPTED
from gluonmap.judge import of_executions, same
from gluonmap.model import Answer, Candidate, Outcome, Stage, Verdict
from gluonmap.oracle import Oracle
from gluonmap.relation import holds
from gluonmap.space import SpaceMap


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
    forbidden = of_executions(space)
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
    return msgspec.structs.replace(joint, programs=tuple(kept), refused=tuple(refused))


def taken(joint: Joint, oracle: Oracle, description: Description, listen: Listener) -> Joint:
    """The same with its programs taken to the description's stage: what does not pass there is not handed over.

    A program without an answer stays, and a note says so: it compiled, and nothing speaks against it. Ctrl-C ends the
    asking, not the result.
    """
    programs: dict[str, tuple[Verified, Candidate]] = {}
    for program in joint.programs:
        candidate = description.candidate(program.config)
        programs[journal.key_of(candidate)] = (program, candidate)
    candidates = [candidate for _, candidate in programs.values()]
    known = sum(oracle.known(candidate) is not None for candidate in candidates)
    plan = "programs to execute" if description.runs_on_cpu else "programs to take to the device"
    listen(Event("plan", plan, len(candidates), known))
    answers: dict[str, Answer] = {}
    stopped = joint.stopped
    try:
        for asked in oracle.ask(candidates):
            answers[journal.key_of(asked.candidate)] = asked.answer
            if asked.fresh:
                listen(Event("answer", answer=asked.answer))
    except KeyboardInterrupt:
        stopped = INTERRUPTED
    kept: list[Verified] = []
    refused: list[Refused] = []
    silent = 0
    for key, (program, _) in programs.items():
        answer = answers.get(key)
        if not isinstance(answer, Verdict) or answer.outcome in (Outcome.SKIPPED, Outcome.NOT_EXECUTED):
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
