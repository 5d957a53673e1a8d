"""Answers from endings of children: the wait status decides the outcome, text only explains it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gluonmap.model import exitcode
from gluonmap.model.candidate import Stage
from gluonmap.model.inspection import FunctionSource
from gluonmap.model.outcomes import OUTCOME_OF_STATUS, Outcome
from gluonmap.model.verdict import Answer, Fault, Location, Reason, Verdict
from gluonmap.runner.processes import Ending
from gluonmap.source import code_lines

MAX_TEXT = 500
STAGE_OF_PHASE = {
    "waiting for the device": Stage.LAUNCH,
    "inputs": Stage.LAUNCH,
    "run": Stage.RUN,
    "launch": Stage.LAUNCH,
    "check": Stage.CHECK,
    "time": Stage.TIME,
}
"""Stage of each phase of a child after its compile."""
MOST_CONTINUED = 2
"""Lines of a diagnostic after its first that are kept."""
TRITON = "triton/"
"""Where the files of Triton's own library are, as `FunctionSource.file` names them."""
_AT = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): (?P<level>error|fatal error): (?P<text>.*)$")
_MESSAGES = (
    re.compile(r"(?P<text>LLVM ERROR: .*)"),
    re.compile(r"(?P<text>\S*: .*Assertion `.*' failed\.?)"),
    re.compile(r"^(?:\S+: )?error: (?P<text>.*)$"),
    re.compile(r"(?P<text>fatal error: .*)"),
    re.compile(r"(?P<text>terminate called after .*)"),
    re.compile(r"(?P<text>UNREACHABLE executed.*)"),
    re.compile(r"(?P<text>Memory access fault by GPU.*)"),
)
# Diagnostics that say only that a pass failed, and point to the function's first line.
_VAGUE = ("Failures have been detected while processing an MLIR pass pipeline",)
_OUT_OF_MEMORY = re.compile(r"std::bad_alloc|LLVM ERROR: out of memory|MemoryError|Cannot allocate memory")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
_LAYOUT = re.compile(r"<\{[^{}]*\}>")
_PATH = re.compile(r"(?<![\w.])/(?:[^\s/:'\"]+/)+([^\s/:'\"]+)")
# Exceptions whose text says only that the reason was printed to stderr.
_SEE_STDERR = (
    "error encountered during parsing",
    "PassManager::run failed",
    "failed to translate module",
    "unknown error",
)


def answer_from(
    ending: Ending,
    functions: Sequence[FunctionSource],
    deadline_s: float,
    stage: Stage = Stage.COMPILE,
    device_deadline_s: float = 0.0,
) -> Answer:
    """Return the verdict of one ending, or a fault where the ending is no evidence about the kernel.

    `stage` is the last one asked for: a pass is of that stage, any other outcome of the stage that the child had
    reached. `device_deadline_s` is how long a child may have a device.
    """
    status, evidence = ending.status, ending.evidence
    reached = STAGE_OF_PHASE.get(ending.progress.phase, Stage.COMPILE)
    if stage is Stage.RUN and reached is not Stage.COMPILE:
        reached = stage  # inputs, launches and comparisons on the CPU are one stage
    own = stage is Stage.RUN and reached is stage and ending.compiled is not None
    # It had compiled, and ended in host code: that of the probe file, of torch or of the model of the hardware.
    if ending.hung and own and ending.progress.phase == "inputs":
        reason = Reason("deadline", f"inputs() of the probe file: no end within {deadline_s:g} s", "inputs")
        return _with_program(Verdict(Outcome.SKIPPED, reached, status, ending.seconds, reason=reason), ending, stage)
    if ending.hung:
        within = f"{device_deadline_s:g} s on the device" if ending.progress.on_device else f"{deadline_s:g} s"
        if reached is Stage.RUN:
            within += ": a loop without an end, or sizes too large for a run on a CPU (SHAPES['run'] gives others)"
        reason = Reason("deadline", f"no end within {within}", ending.progress.phase, _last_line(ending, functions))
        return _with_program(Verdict(Outcome.HUNG, reached, status, ending.seconds, reason=reason), ending, stage)
    if exitcode.crashed(status) and own and not _OUT_OF_MEMORY.search(ending.stderr):
        where = "inputs()" if ending.progress.phase == "inputs" else "the run"
        return Fault(f"{exitcode.signal_name(status)} of this machine's CPU in {where}: no kernel's doing", status)
    if exitcode.crashed(status):
        return _with_program(_crash(ending, functions, reached), ending, stage)
    if ending.lost:
        return Fault("the fork server was lost", status)
    if evidence is None or evidence.status != status or status not in OUTCOME_OF_STATUS:
        return Fault(_no_evidence(ending), status)
    outcome = OUTCOME_OF_STATUS[status]
    warnings = (
        () if outcome is not Outcome.PASS else tuple(dict.fromkeys(tidy(t) for t in _all_diagnostics(ending.stderr)))
    )
    return Verdict(
        outcome,
        stage if outcome is Outcome.PASS else reached,
        status,
        ending.seconds,
        evidence.compile_seconds,
        _reason(ending, functions),
        evidence.program,
        evidence.resources,
        warnings[:4],
        evidence.check,
        evidence.timing,
        evidence.figures,
    )


def _with_program(verdict: Verdict, ending: Ending, asked: Stage) -> Verdict:
    """Return the verdict with the program that a candidate had compiled before its execution ended the child."""
    compiled = ending.compiled
    if compiled is None:
        return verdict
    verdict = msgspec.structs.replace(
        verdict, program=compiled.program, resources=compiled.resources, compile_seconds=compiled.compile_seconds
    )
    reason = verdict.reason
    if verdict.stage is not Stage.COMPILE or reason is None:
        return verdict
    # After the first program the child compiles another one, for the sizes that no tile divides.
    further = Stage.RUN if asked is Stage.RUN else Stage.LAUNCH
    reason = msgspec.structs.replace(reason, text=f"at the ragged shape: {reason.text}")
    return msgspec.structs.replace(verdict, stage=further, reason=reason)


def tidy(text: str) -> str:
    """Return one line of a compiler's text without folders, addresses and colours, which differ between machines."""
    text = _CONTROL.sub(" ", _ANSI.sub("", text)).strip()
    text = _ADDRESS.sub("0x…", _PATH.sub(r"\1", text))
    while (shorter := _LAYOUT.sub("<…>", text)) != text:  # from the innermost outwards: layouts contain layouts
        text = shorter
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def locate(file: str, line: int, functions: Sequence[FunctionSource]) -> Location | None:
    """Return the location of a line of an absolute file in one of the kernel's functions; None: in none of them."""
    for function in functions:
        last = function.first_line + function.source.rstrip("\n").count("\n")
        if _same_file(file, function.file) and function.first_line <= line <= last:
            rank = code_lines.code_line(function.source, line - function.first_line + 1)
            return Location(function.name, function.file, rank)
    return None


def _same_file(absolute: str, relative: str) -> bool:
    return Path(absolute).parts[-len(Path(relative).parts) :] == Path(relative).parts


def _crash(ending: Ending, functions: Sequence[FunctionSource], stage: Stage) -> Verdict:
    """Return the verdict of a signal that the process caused; the memory limit is NO_RESOURCES, not a crash."""
    name = exitcode.signal_name(ending.status)
    location, text = _best_diagnostic(ending.stderr, functions)
    phase = ending.progress.phase
    if name == "SIGABRT" and _OUT_OF_MEMORY.search(ending.stderr):
        reason = Reason("host memory", "the compiler ran out of host memory (its limit, not the GPU's)", phase)
        return Verdict(Outcome.NO_RESOURCES, stage, ending.status, ending.seconds, reason=reason)
    location = location or _last_line(ending, functions)
    reason = Reason(name, tidy(text) or f"died by {name} without a message", phase, location)
    return Verdict(Outcome.CRASHED, stage, ending.status, ending.seconds, reason=reason)


def _no_evidence(ending: Ending) -> str:
    """Return the text of a fault: how a process without evidence ended, and the last line that it printed."""
    last = [line for line in ending.stderr.splitlines() if line.strip()]
    said = f"; its last words: {tidy(last[-1])}" if last else ""
    if ending.status == 0:
        return f"exit status 0 without evidence: the code under test ended the process itself{said}"
    if ending.status < 0:
        return f"ended by {exitcode.signal_name(ending.status)} from outside (out of memory?){said}"
    return f"exit status {ending.status} without evidence{said}"


def _reason(ending: Ending, functions: Sequence[FunctionSource]) -> Reason | None:
    evidence = ending.evidence
    assert evidence is not None
    if evidence.reason is None:
        return None
    reason = evidence.reason
    location = locate(evidence.file, evidence.line, functions) if evidence.line else None
    text = reason.text
    if reason.kind not in ("budget", "host memory") and reason.phase not in STAGE_OF_PHASE:
        place, said = _best_diagnostic(ending.stderr, functions)
        if said and any(vague in text for vague in _SEE_STDERR):
            location, text = place or location, said
        location = location or _last_line(ending, functions)
    return Reason(reason.kind, tidy(text), reason.phase, location)


def _last_line(ending: Ending, functions: Sequence[FunctionSource]) -> Location | None:
    """Return the line that the front end visited last; None once the back end has begun, where it explains nothing."""
    progress = ending.progress
    if progress.phase != "front end" or not progress.line:
        return None
    return locate(progress.file, progress.line, functions)


Place = tuple[str, int] | None


def _best_diagnostic(stderr: str, functions: Sequence[FunctionSource]) -> tuple[Location | None, str]:
    """Return place and text of the message that explains a failure best.

    The text: an abort's first, then a diagnostic's, then another message's, then a vague one's. The place: that of the
    first diagnostic in the kernel or its helpers; in Triton's own files only if there is no other.
    """
    aborts, located, others, vague = _diagnostics(stderr)
    places = [found for place, _ in located if place and (found := locate(*place, functions))]
    own = [p for p in places if not p.file.startswith(TRITON)]
    texts = [text for _, text in (*aborts, *located, *others, *vague)]
    place = next(iter(own or places), None)
    return place, texts[0] if texts else ""


def _all_diagnostics(stderr: str) -> list[str]:
    return [text for group in _diagnostics(stderr) for _, text in group]


def _diagnostics(stderr: str) -> tuple[list[tuple[Place, str]], ...]:
    """Return a compiler's error messages in the order printed: aborts, those with a place, others, and vague ones."""
    aborts: list[tuple[Place, str]] = []
    located: list[tuple[Place, str]] = []
    others: list[tuple[Place, str]] = []
    vague: list[tuple[Place, str]] = []
    # Some patterns need time quadratic in the length of a line.
    lines = [_ANSI.sub("", line[: 2 * MAX_TEXT]) for line in stderr.splitlines()]
    for number, line in enumerate(lines):
        if match := _AT.match(line):
            text = " ".join([match["text"], *_continued(lines[number + 1 : number + 1 + MOST_CONTINUED])])
            (vague if text.startswith(_VAGUE) else located).append(((match["file"], int(match["line"])), text))
        elif found := next((m for p in _MESSAGES if (m := p.search(line))), None):
            (aborts if found["text"].startswith("LLVM ERROR") else others).append((None, found["text"]))
    return aborts, located, others, vague


def _continued(lines: Sequence[str]) -> list[str]:
    """Return the lines of a message after its first: they are not indented, the excerpt of the source is."""
    found = []
    for line in lines:
        if not line.strip() or line[0].isspace() or _AT.match(line) or line.startswith(("Traceback", "module ", "#")):
            break
        found.append(line)
    return found
