"""Recompiler: compiles configurations of a stored map in isolated children, from the map alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from gluonmap.model import exitcode
from gluonmap.model.candidate import Config
from gluonmap.model.errors import OracleFault, UsageError
from gluonmap.model.inspection import Inspection
from gluonmap.model.outcomes import COMPILED
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Answer, Fault, Verdict
from gluonmap.probe import rebuild
from gluonmap.probe.current_lines import current_lines
from gluonmap.probe.settings import IMPORT_DEADLINE_S, LEAST_DEADLINE_S, default_jobs, default_memory_bytes
from gluonmap.runner import diagnostics, environment
from gluonmap.runner.processes import Ending, Isolation
from gluonmap.worker.protocol import Job, Limits


class Recompiler:
    """Compiler of one map's configurations; `open_recompiler` makes one."""

    def __init__(self, space: SpaceMap, isolation: Isolation, inspection: Inspection, limits: Limits) -> None:
        self.space, self.isolation, self.limits = space, isolation, limits
        self.functions = inspection.functions
        self.asked = 0
        """Number of configurations compiled so far."""
        self._lines = current_lines(inspection, {})  # the kernel was inspected just now, so its lines are today's
        self._loadable = inspection.quiet and space.outcome in COMPILED

    def __call__(self, configs: Iterable[Config]) -> Iterator[tuple[Config, Answer]]:
        """Yield answers in the order in which they arrive. A configuration without one is compiled once more, alone."""
        self._warm_up()
        unmade: list[tuple[Config, Answer]] = []
        faulty: list[tuple[Config, Job]] = []
        for (config, job), answer in self._run(self._jobs(configs, unmade)):
            if isinstance(answer, Fault):
                faulty.append((config, job))
            else:
                yield config, answer
            yield from self._drained(unmade)
        yield from self._drained(unmade)
        for item in faulty:
            for (config, _), answer in self._run([item]):
                yield config, answer

    def answer(self, config: Config) -> Answer:
        """Return the answer to one configuration."""
        ((_, answer),) = self([config])
        return answer

    def source_line(self, answer: Answer) -> str:
        """Return the line of today's source that a verdict points to: "file.py:112"; empty: it points to none."""
        location = answer.reason.location if isinstance(answer, Verdict) and answer.reason else None
        line = self._lines(location) if location else None
        return f"{location.file}:{line}" if location and line else ""

    def _jobs(self, configs: Iterable[Config], unmade: list[tuple[Config, Answer]]) -> Iterator[tuple[Config, Job]]:
        for config in configs:
            try:
                yield config, rebuild.job_of(self.space, config)
            except UsageError as error:  # host code cannot compute its arguments, so there is no candidate to ask
                unmade.append((config, Fault(str(error))))

    def _drained(self, unmade: list[tuple[Config, Answer]]) -> Iterator[tuple[Config, Answer]]:
        while unmade:
            yield unmade.pop(0)

    def _run(self, jobs: Iterable[tuple[Config, Job]]) -> Iterator[tuple[tuple[Config, Job], Answer]]:
        running = self.isolation.run((((c, job), job) for c, job in jobs), self.limits, warm=self._server_key())
        try:
            for item, ending in running:
                self.asked += 1
                yield item, diagnostics.answer_from(ending, self.functions, self.limits.deadline_s)
        finally:
            running.close()  # type: ignore[attr-defined]

    def _warm_up(self) -> None:
        """Start a server that has the kernel loaded, if its import was quiet and the map's baseline passed."""
        if self._loadable and not self.isolation.is_warm(self._server_key()):
            self._loadable = self.isolation.warm(self._server_key(), rebuild.job_of(self.space, {}))

    def _server_key(self) -> object:
        return (self.space.target, self.space.file)


@contextlib.contextmanager
def open_recompiler(
    space: SpaceMap,
    jobs: int = 0,
    *,
    deadline_s: float = LEAST_DEADLINE_S,
    memory_bytes: int = 0,
    any_triton: bool = False,
) -> Iterator[Recompiler]:
    """Open a compiler of the map's configurations, `jobs` at once (0: one per core). Its processes end with the block.

    Raises:
        UsageError: the kernel's file is not where the map says or cannot be imported, or another Triton made the map.
        OracleFault: no server starts.
    """
    rebuild.job_of(space, {})
    check_triton(space, any_triton=any_triton)
    jobs = jobs or default_jobs()
    limits = Limits(deadline_s, memory_bytes or default_memory_bytes(jobs))
    with Isolation(jobs=jobs) as isolation:
        yield Recompiler(space, isolation, _inspected(space, isolation, limits), limits)


def check_triton(space: SpaceMap, *, any_triton: bool = False) -> None:
    """Check that the installed Triton is the one that made the map.

    Raises:
        UsageError: it is another one, or there is none.
    """
    here = environment.triton_version(environment.triton_folder())
    if here != space.triton and not any_triton:
        raise UsageError(
            f"the map was made with Triton {space.triton}, and this is {here}. Name the environment that has it with "
            "--python VENV, or try it here with --any-triton."
        )


def _inspected(space: SpaceMap, isolation: Isolation, limits: Limits) -> Inspection:
    """Import the kernel in a child; return its functions and whether its import was quiet."""
    file = rebuild.job_of(space, {}).file
    deadline_s = min(limits.deadline_s, IMPORT_DEADLINE_S)
    ending = isolation.ask(Job("inspect", space.target, file), Limits(deadline_s, limits.memory_bytes))
    if ending.status == 0 and ending.evidence and ending.evidence.inspection:
        return ending.evidence.inspection
    if ending.lost:
        raise OracleFault("the fork server was lost while it imported the kernel's file.")
    raise UsageError(
        f"{space.file} cannot be imported any more: {_why(ending, deadline_s)}. gluonmap probe {space.file} says more."
    )


def _why(ending: Ending, deadline_s: float) -> str:
    if ending.evidence and ending.evidence.reason:
        reason = ending.evidence.reason
        if reason.kind == "KernelNotFound":
            return "the kernel is no longer in it"
        return f"{reason.kind}: {diagnostics.tidy(reason.text)}".rstrip(".")
    if ending.hung:
        return f"its import did not end within {deadline_s:g} s"
    return exitcode.signal_name(ending.status) or f"exit status {ending.status}"
