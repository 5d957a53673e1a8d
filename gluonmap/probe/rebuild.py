"""Jobs of a stored map's candidates, rebuilt from the map alone, and the run of one in a fresh interpreter."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from gluonmap.model import codec, exitcode, targets
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.inspection import Parameter
from gluonmap.model.knobs import KnobKind
from gluonmap.model.outcomes import OUTCOME_OF_STATUS, Outcome
from gluonmap.model.space_map import SpaceMap, ValueMap
from gluonmap.spec.description import Description, ExecutionRequest, Knob
from gluonmap.worker.protocol import EVIDENCE_FILE, Bench, Evidence, Job, KernelFile


def description_of(space: SpaceMap, *, execute: bool = False) -> Description:
    """Return the description that a map was made from, as far as candidates need it.

    With `execute`, its candidates have the map's stage; else they are compiled only.
    """
    recipe = space.recipe
    run_time = set(space.specialisation)
    options = {n for n, k in space.knobs.items() if k.kind is KnobKind.OPTION}
    knobs = {
        n: Knob(n, space.knobs[n].kind if n in space.knobs else KnobKind.CONSTEXPR, (v,), v)
        for n, v in space.baseline.items()
    }
    host = {n for n, k in space.knobs.items() if k.kind is KnobKind.HOST}
    # A map lists derived constexpr parameters in `fixed`; only host code reads the other derived names.
    derived = [n for n in recipe.derive if n in space.fixed]
    constexprs = [n for n in [*space.baseline, *recipe.fixed, *derived] if n not in run_time | options | host]
    parameters = {n: Parameter(n, constexpr=False) for n in space.specialisation}
    parameters |= {n: Parameter(n, constexpr=True) for n in constexprs}
    return Description(
        target=targets.find(space.target),
        knobs=knobs,
        fixed=recipe.fixed,
        args=recipe.args,
        derive=recipe.derive,
        shape=space.shape,
        grid=recipe.grid,
        parameters=parameters,
        options=tuple(options),
        why_fixed={},
        not_probed={},
        notes=(),
        execution=_execution_request(space) if execute else None,
    )


def _execution_request(space: SpaceMap) -> ExecutionRequest | None:
    trial = space.recipe.trial
    if trial is None or isinstance(space.execution, msgspec.UnsetType):
        return None
    return ExecutionRequest(
        space.execution.stage,
        trial.device,
        trial.probe,
        trial.tolerance,
        trial.ragged.shape if trial.ragged else {},
        trial.shapes,
        not trial.baseline,
        trial.watch,
    )


def job_of(space: SpaceMap, moves: Config, *, execute: bool = False) -> Job:
    """Return the job that compiles the map's baseline with `moves` made; with `execute`, up to the map's stage.

    Raises:
        UnknownKnob: a move of a name that is no knob of the map.
        UsageError: the kernel's file is not where the map says.
    """
    for name in moves:
        if name not in space.baseline:
            raise UnknownKnob(f"the map of {space.kernel!r}", name, space.baseline)
    path = Path(space.file).resolve()
    if not path.is_file():
        raise UsageError(
            f"the map's kernel file {space.file} is not here; run this from the folder that the map was made in."
        )
    candidate = description_of(space, execute=execute).candidate(moves)
    bench = Bench(str(Path(space.recipe.probe_file).resolve()), "") if candidate.stage.executes else None
    file = KernelFile(str(path), space.kernel, space.recipe.stubs)
    return Job("compile", space.target, file, candidate, bench=bench)


NO_VERDICT = 3
"""Exit status of a job that left no evidence."""


def _command(job: Job) -> list[str]:
    return [sys.executable, "-m", "gluonmap.worker", codec.canonical(job).decode()]


def command_line(job: Job) -> str:
    """Return the command that runs a job in a fresh interpreter, quoted for a shell."""
    return shlex.join(_command(job))


def run_in_fresh_interpreter(job: Job, space: SpaceMap, moves: Config) -> int:
    """Run the job in a fresh interpreter on this terminal; return its exit status, or die by its signal.

    The last line printed is the outcome, and whether the map has the same.
    """
    with tempfile.TemporaryDirectory(prefix=f"gluonmap-{os.getpid()}-") as folder:
        status = subprocess.run([*_command(job), folder], check=False).returncode
        try:
            evidence = msgspec.json.decode((Path(folder) / EVIDENCE_FILE).read_bytes(), type=Evidence)
        except OSError:
            evidence = None
    outcome, digest = _outcome(status, evidence)
    how = exitcode.signal_name(status) or f"exit status {status}"
    said = f"{outcome}, program {digest[:8]}" if digest else f"{outcome}, {how}"
    print(f"gluonmap: {said}; {_compared(outcome, digest, space, moves)}", file=sys.stderr, flush=True)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status if evidence else NO_VERDICT


def _outcome(status: int, evidence: Evidence | None) -> tuple[str, str]:
    """Return the outcome in the words of a map, and the program's digest."""
    if exitcode.crashed(status):
        return Outcome.CRASHED.value, ""
    if evidence is None or evidence.status != status:
        return "unknown", ""
    digest = evidence.program.digest if evidence.program else ""
    return OUTCOME_OF_STATUS[status].value, digest


def _compared(outcome: str, digest: str, space: SpaceMap, moves: Config) -> str:
    """Return how the map's outcome and program of this candidate compare, in words."""
    if not moves:
        recorded, program = space.outcome, space.digest
    elif len(moves) == 1 and (value := _value(space, *next(iter(moves.items())))):
        recorded, program = value.outcome, value.digest
    else:
        return "the map has no such candidate"
    if (outcome, digest) == (recorded, program):
        return "the map says the same"
    was = f"{recorded}, program {program[:8]}" if program else recorded
    return f"the map says {was}: kernel, Triton or environment have changed since"


def _value(space: SpaceMap, name: str, value: Value) -> ValueMap | None:
    found = space.knobs[name].values if name in space.knobs else ()
    return next((v for v in found if same(v.value, value)), None)
