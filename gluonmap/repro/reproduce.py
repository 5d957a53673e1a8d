"""Stand-alone scripts that show a failure of the compiler with nothing but Triton installed."""

from __future__ import annotations

from pathlib import Path

from gluonmap.model import codec
from gluonmap.probe import rebuild
from gluonmap.probe.recompile import Recompiler
from gluonmap.query.explain import Explanation
from gluonmap.query.feasibility import Judge
from gluonmap.repro import pair, script, trial
from gluonmap.repro.pair import FailingPair
from gluonmap.repro.trial import ScriptRun
from gluonmap.runner import environment

__all__ = ["FailingPair", "ScriptRun", "write"]


def write(file: Path, judged: Judge, explanation: Explanation, asking: Recompiler) -> tuple[FailingPair, ScriptRun]:
    """Write the script of an infeasible configuration to `file` and run it once; return its configurations and the run.

    Raises:
        UsageError: a compile alone does not show the failure, or a definition that the kernel reaches cannot be copied.
        OracleFault: the configuration, which fails by the map, does not fail today.
        StorageFault: the file cannot be written.
    """
    space = judged.space
    found = pair.find(judged, explanation, asking.answer)
    description = rebuild.description_of(space)
    text = script.render(
        script.RecordedFailure(
            file=Path(space.file).resolve(),
            shown=space.file,
            kernel=space.kernel,
            triton=environment.triton_version(environment.triton_folder()),
            failing=description.candidate(found.failing),
            verdict=found.verdict,
            line=asking.source_line(found.verdict),
            passing=None if found.passing is None else description.candidate(found.passing),
            deadline_s=asking.limits.deadline_s,
            environment=environment.environment(),
        )
    )
    codec.write(file, text.encode())
    return found, trial.run(file)
