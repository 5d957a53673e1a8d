"""ask(candidates) -> answers: from the journal where it knows them, from isolated children where not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from gluonmap import diagnostics, journal
from gluonmap.errors import OracleFault, StorageFault
from gluonmap.isolate import Ending, Isolation
from gluonmap.journal import Journal
from gluonmap.model import Answer, Candidate, Fault, FunctionSource, Proof, Verdict
from gluonmap.worker.protocol import Job, KernelFile, Limits

MOST_FAULTS_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """One candidate with its answer, and whether a child had to be asked."""

    candidate: Candidate
    answer: Answer
    fresh: bool


class Oracle:
    """Answers for one kernel on one target. Nothing is asked twice; nothing that was answered is lost."""

    def __init__(
        self,
        *,
        journal: Journal,
        isolation: Isolation,
        stamp: str,
        file: KernelFile,
        target: str,
        functions: Sequence[FunctionSource],
        limits: Limits,
        loadable: bool,
        retry: bool = False,
    ) -> None:
        self.journal = journal
        self.isolation = isolation
        self.stamp = stamp
        self.file = file
        self.target = target
        self.functions = functions
        self.limits = limits
        self.retry = retry
        """Ask again what had no answer in an earlier run."""
        self.loadable = loadable
        """A server may import the kernel's file: an isolated import was quiet."""
        self.baseline: Candidate | None = None
        self._faults_in_a_row = 0

    def known(self, candidate: Candidate) -> Answer | None:
        """The journal's answer; None: a child must be asked."""
        return self.journal.answer(
            self.stamp,
            journal.key_of(candidate),
            deadline_s=self.limits.deadline_s,
            memory_bytes=self.limits.memory_bytes,
            retry=self.retry,
        )

    def prepare(self, baseline: Candidate) -> None:
        """Use a warm server for what comes, if a child has shown that the file and the baseline are harmless."""
        self.baseline = baseline

    def ask(self, candidates: Iterable[Candidate]) -> Iterator[Asked]:
        """Answers of all candidates: known ones first, then fresh ones as they come.

        Raises:
            OracleFault: three candidates in a row had no answer, nor has the baseline any more.
            StorageFault: the journal cannot be written.
        """
        unknown: dict[str, Candidate] = {}
        for candidate in candidates:
            answer = self.known(candidate)
            if answer is None:
                unknown[journal.key_of(candidate)] = candidate
            else:
                yield Asked(candidate, answer, fresh=False)
        # One that the tool died with before is asked alone, so that nothing else is lost if it happens again.
        alone = {k: c for k, c in unknown.items() if self.journal.was_in_flight(self.stamp, k)}
        together = {k: c for k, c in unknown.items() if k not in alone}
        if unknown:
            self._warm_up()
        faulty: dict[str, Candidate] = {}
        for key, ending in self._run(together):
            answer = self._answer(ending)
            if isinstance(answer, Fault):
                self.journal.write(journal.Cancelled(self.stamp, key))
                faulty[key] = together[key]
                continue
            yield self._record(key, together[key], answer)
        for key, candidate in [*alone.items(), *faulty.items()]:
            for _, ending in self._run({key: candidate}):
                yield self._record(key, candidate, self._answer(ending))

    def _warm_up(self) -> None:
        if not self.loadable or self.baseline is None or self.isolation.is_warm(self._server_key()):
            return
        job = Job("compile", self.target, self.file, self.baseline)
        if not self.isolation.warm(self._server_key(), job):
            self.loadable = False

    def _server_key(self) -> object:
        return (self.target, self.file)

    def _run(self, candidates: dict[str, Candidate]) -> Iterator[tuple[str, Ending]]:
        """Endings by key. Intents go to the journal as the candidates start; those that do not end are cancelled."""
        in_flight: set[str] = set()

        def jobs() -> Iterator[tuple[str, Job]]:
            for key, candidate in candidates.items():
                self.journal.write(journal.Intent(self.stamp, key, candidate))
                in_flight.add(key)
                known_ir = str(self.isolation.folder / "ir") if candidate.proof is Proof.IR else ""
                yield key, Job("compile", self.target, self.file, candidate, known_ir)

        running = self.isolation.run(jobs(), self.limits, warm=self._server_key())
        try:
            for key, ending in running:
                in_flight.discard(key)
                yield key, ending
        finally:
            running.close()  # type: ignore[attr-defined]
            with contextlib.suppress(StorageFault):  # has been raised already by what could not be written before
                for key in in_flight:
                    self.journal.write(journal.Cancelled(self.stamp, key))

    def _answer(self, ending: Ending) -> Answer:
        return diagnostics.answer(ending, self.functions, self.limits.deadline_s)

    def _record(self, key: str, candidate: Candidate, answer: Answer) -> Asked:
        self.journal.write(journal.Answered(self.stamp, key, answer, self.limits.deadline_s, self.limits.memory_bytes))
        if isinstance(answer, Verdict):
            self._faults_in_a_row = 0
            self._remember_ir(answer)
        else:
            self._faults_in_a_row += 1
            if self._faults_in_a_row >= MOST_FAULTS_IN_A_ROW and not self._is_well():
                raise OracleFault(
                    f"{MOST_FAULTS_IN_A_ROW} candidates in a row had no answer; the last: {answer.text}. "
                    "What is known has been kept; see `gluonmap probe --help` for --memory and --jobs."
                )
        return Asked(candidate, answer, fresh=True)

    def _is_well(self) -> bool:
        """True where the baseline, asked again, still has an answer: the faults are the candidates' own doing."""
        self._faults_in_a_row = 0
        if self.baseline is None:
            return False
        job = Job("compile", self.target, self.file, self.baseline)
        return isinstance(self._answer(self.isolation.ask(job, self.limits)), Verdict)

    def _remember_ir(self, verdict: Verdict) -> None:
        """Keep the program of an LLVM IR for candidates that do not insist on machine code."""
        program = verdict.program
        if program is None or verdict.resources is None or not program.ir or program.proof is not Proof.CODE:
            return
        folder = self.isolation.folder / "ir"
        folder.mkdir(exist_ok=True)
        part = folder / (program.ir + ".part")
        part.write_bytes(msgspec.json.encode({"program": program, "resources": verdict.resources}))
        part.rename(folder / program.ir)
