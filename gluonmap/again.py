"""The job of one candidate of a stored map, made again from the map alone."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from gluonmap import codec, exitcode, targets
from gluonmap.describe import Description, Knob
from gluonmap.errors import UnknownKnob, UsageError
from gluonmap.model import Config, KnobKind, Parameter, SpaceMap
from gluonmap.worker.protocol import EVIDENCE_FILE, Job, KernelFile


def description_of(space: SpaceMap) -> Description:
    """The description that a map was made from, as far as candidates need it."""
    recipe = space.recipe
    run_time = set(space.specialisation)
    options = {n for n, k in space.knobs.items() if k.kind is KnobKind.OPTION}
    knobs = {
        n: Knob(n, space.knobs[n].kind if n in space.knobs else KnobKind.CONSTEXPR, (v,), v)
        for n, v in space.baseline.items()
    }
    constexprs = [n for n in [*space.baseline, *recipe.fixed, *recipe.derive] if n not in run_time | options]
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
        why_fixed={},
        not_probed={},
        notes=(),
    )


def job_of(space: SpaceMap, moves: Config) -> Job:
    """The compile of the map's baseline with `moves` made.

    Raises:
        UnknownKnob: a move of something that is no knob of the map.
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
    candidate = description_of(space).candidate(moves)
    return Job("compile", space.target, KernelFile(str(path), space.kernel, space.recipe.stubs), candidate)


NO_VERDICT = 3


def _command(job: Job, folder: str) -> list[str]:
    return [sys.executable, "-m", "gluonmap.worker", codec.canonical(job).decode(), folder]


def command_line(job: Job) -> str:
    """The command of the fresh interpreter, for a shell."""
    return shlex.join(_command(job, os.path.join(tempfile.gettempdir(), "gluonmap-by-hand")))


def run(job: Job) -> int:
    """Exit status of the job in a fresh interpreter on this terminal; dies of the signal that the job died of."""
    with tempfile.TemporaryDirectory(prefix=f"gluonmap-{os.getpid()}-") as folder:
        status = subprocess.run(_command(job, folder), check=False).returncode
        evidence = (Path(folder) / EVIDENCE_FILE).is_file()
    if status < 0:
        print(f"gluonmap: died by {exitcode.signal_name(status)}", file=sys.stderr, flush=True)
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    if evidence:
        return status
    print(f"gluonmap: no verdict: exit status {status} without evidence", file=sys.stderr)
    return NO_VERDICT
