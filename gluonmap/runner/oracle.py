"""Oracle of one kernel on one target: answers from the journal, and from isolated children where it has none."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gluonmap.model.candidate import Candidate, Proof, Stage
from gluonmap.model.errors import OracleFault, StorageFault
from gluonmap.model.inspection import FunctionSource
from gluonmap.model.verdict import Answer, Fault, Verdict, passed
from gluonmap.runner import diagnostics, journal
from gluonmap.runner.journal import Journal
from gluonmap.runner.processes import Ending, Isolation
from gluonmap.worker.protocol import Bench, Job, KernelFile, Limits

MOST_FAULTS_IN_A_ROW = 3
SECOND_TIME = "#2"
"""Ends the key of a second answer to one candidate."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One candidate with its answer."""

    candidate: Candidate
    answer: Answer
    fresh: bool
    """A child gave the answer now; False: the journal had it."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a conversation."""

    tag: Any
    """The asker's name for the question."""
    candidate: Candidate
    repeated: bool = False
    """The candidate is asked a second time: another child must answer, regardless of the first answer."""

    @property
    def key(self) -> str:
        return journal.key_of(self.candidate) + (SECOND_TIME if self.repeated else "")


@dataclass(slots=True)
class _RunState:
    """Counters that all oracles derived from one share."""

    faults_in_a_row: int = 0
    latest_record: int = 0
    """Number of the latest journal record that this run has used. The run's time is counted in records."""
    warm_server_failed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Oracle:
    """Answers for one kernel on one target. Nothing is asked twice; nothing that was answered is lost.

    An oracle does not change. A later phase that needs other limits derives its own with `with_limits`, so that no
    phase has to restore the limits of another one.
    """

    journal: Journal
    isolation: Isolation
    stamp: str
    file: KernelFile
    target: str
    functions: Sequence[FunctionSource]
    limits: Limits
    loadable: bool
    """A server may import the kernel's file: an isolated import was quiet."""
    retry: bool = False
    """Ask again what had no answer in an earlier run."""
    afresh: bool = False
    """Use no answer of an earlier run."""
    probe_file: str = ""
    """The file with the functions that stages beyond the compile need."""
    baseline: Candidate | None = None
    """A candidate that an isolated child has survived; a warm server may compile it."""
    _state: _RunState = field(default_factory=_RunState)

    def with_limits(self, limits: Limits) -> Oracle:
        """Return the same oracle with other limits for its children."""
        return dataclasses.replace(self, limits=limits)

    def with_baseline(self, baseline: Candidate, *, warm: bool = True) -> Oracle:
        """Return the same oracle for the candidates around a baseline that has an answer.

        With `warm`, they are forks of a server that has loaded the kernel and compiled the baseline.
        """
        return dataclasses.replace(self, baseline=baseline, loadable=self.loadable and warm)

    def known(self, candidate: Candidate, key: str = "") -> Answer | None:
        """Return the journal's answer; None: a child must be asked."""
        found = self._recorded(key or journal.key_of(candidate))
        if found is None and candidate.stage.executes:
            # A candidate that does not compile is not executed. An earlier run for compiles alone may have shown that.
            known = self._recorded(journal.key_of(journal.compile_of(candidate)))
            if isinstance(known, Verdict) and not passed(known):
                return known
        program = found.program if isinstance(found, Verdict) else None
        insists = candidate.proof is Proof.CODE and program is not None and program.proof is Proof.IR
        return None if insists else found

    def _recorded(self, key: str) -> Answer | None:
        return self.journal.answer(
            self.stamp,
            key,
            deadline_s=self.limits.deadline_s,
            memory_bytes=self.limits.memory_bytes,
            retry=self.retry,
            afresh=self.afresh,
        )

    def ask(self, candidates: Iterable[Candidate]) -> Iterator[Reply]:
        """Yield the answers of all candidates: known ones first, then fresh ones in the order in which they end.

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
                self.replay_answer(journal.key_of(candidate))
                yield Reply(candidate, answer, fresh=False)
        # A candidate that was in flight when the tool died is asked alone: if the tool dies again, no other is lost.
        alone = {k: c for k, c in unknown.items() if self.journal.was_in_flight(self.stamp, k)}
        together = {k: c for k, c in unknown.items() if k not in alone}
        if unknown:
            self.warm_up()
        faulty: dict[str, Candidate] = {}
        for key, ending in self._run(together):
            answer = self.answer_from(ending, together[key].stage)
            if isinstance(answer, Fault):
                self.journal.write(journal.Cancelled(self.stamp, key))
                faulty[key] = together[key]
                continue
            yield self.record(key, together[key], answer)
        for key, candidate in [*alone.items(), *faulty.items()]:
            for _, ending in self._run({key: candidate}):
                yield self.record(key, candidate, self.answer_from(ending, candidate.stage))

    def converse(self, queries: Iterable[Query | None], take: Callable[[Query, Answer, bool], None]) -> None:
        """Answer queries: fetch the next one when a child is free, or at once where the journal has its answer.

        `take(query, answer, fresh)` gets every answer. A query that is None means: the next question depends on an
        answer that has not been taken yet. A candidate without an answer, and one that was in flight when the tool
        died, is asked again while nothing else runs.

        Raises:
            OracleFault: three candidates in a row had no answer, nor has the baseline any more.
            StorageFault: the journal cannot be written.
        """
        schedule = _QuerySchedule(self, iter(queries), take)
        running = self.isolation.run(schedule.jobs(), self.limits, warm=self._server_key())
        try:
            for key, ending in running:
                schedule.end(key, ending)
        finally:
            running.close()  # type: ignore[attr-defined]
            self._cancel(schedule.in_flight)

    def had_answered(self, key: str) -> bool:
        """Return whether the journal's run had an answer at the point up to which this run has replayed it."""
        return self.journal.times(self.stamp, key)[1] <= self._state.latest_record

    def replay_question(self, key: str) -> int:
        """Advance to the record in which the journal's run asked a question; return the position of its answer."""
        asked, answered = self.journal.times(self.stamp, key)
        self._state.latest_record = max(self._state.latest_record, asked)
        return answered

    def replay_answer(self, key: str) -> None:
        """Advance to the record with the answer to a question."""
        self._state.latest_record = max(self._state.latest_record, self.journal.times(self.stamp, key)[1])

    def start(self, key: str, candidate: Candidate) -> Job:
        """Record the intent to ask a candidate, and return its job."""
        self.journal.write(journal.Intent(self.stamp, key, candidate))
        known_ir = str(self.isolation.folder / "ir") if candidate.proof is Proof.IR else ""
        return Job("compile", self.target, self.file, candidate, known_ir, self._bench(candidate))

    def _bench(self, candidate: Candidate) -> Bench | None:
        return Bench(self.probe_file, str(self.isolation.folder / "bench")) if candidate.stage.executes else None

    def _cancel(self, keys: Iterable[str]) -> None:
        with contextlib.suppress(StorageFault):  # the write that failed first has raised it already
            for key in keys:
                self.journal.write(journal.Cancelled(self.stamp, key))

    def warm_up(self) -> None:
        """Start a server that has the kernel loaded, where one is allowed and does not run yet."""
        state, allowed = self._state, self.loadable and self.baseline is not None
        if not allowed or state.warm_server_failed or self.isolation.is_warm(self._server_key()):
            return
        assert self.baseline is not None
        job = Job("compile", self.target, self.file, journal.compile_of(self.baseline))
        state.warm_server_failed = not self.isolation.warm(self._server_key(), job)

    def _server_key(self) -> object:
        return (self.target, self.file)

    def _run(self, candidates: dict[str, Candidate]) -> Iterator[tuple[str, Ending]]:
        """Yield endings by key. A candidate's intent is recorded when it starts, and cancelled if it does not end."""
        in_flight: set[str] = set()

        def jobs() -> Iterator[tuple[str, Job]]:
            for key, candidate in candidates.items():
                in_flight.add(key)
                yield key, self.start(key, candidate)

        running = self.isolation.run(jobs(), self.limits, warm=self._server_key())
        try:
            for key, ending in running:
                in_flight.discard(key)
                yield key, ending
        finally:
            running.close()  # type: ignore[attr-defined]
            self._cancel(in_flight)

    def answer_from(self, ending: Ending, stage: Stage = Stage.COMPILE) -> Answer:
        """Return what an ending says about a candidate that was asked up to `stage`."""
        limits = self.limits
        return diagnostics.answer_from(ending, self.functions, limits.deadline_s, stage, limits.device_deadline_s)

    def record(self, key: str, candidate: Candidate, answer: Answer) -> Reply:
        """Write an answer to the journal.

        Raises:
            OracleFault: three candidates in a row had no answer, nor has the baseline any more.
        """
        self.journal.write(journal.Answered(self.stamp, key, answer, self.limits.deadline_s, self.limits.memory_bytes))
        self.replay_answer(key)
        if isinstance(answer, Verdict):
            self._state.faults_in_a_row = 0
            self._remember_ir(answer)
        else:
            self._state.faults_in_a_row += 1
            if self._state.faults_in_a_row >= MOST_FAULTS_IN_A_ROW and not self._is_well():
                raise OracleFault(
                    f"{MOST_FAULTS_IN_A_ROW} candidates in a row had no answer; the last: {answer.text}. "
                    "What is known has been kept; see `gluonmap probe --help` for --memory and --jobs."
                )
        return Reply(candidate, answer, fresh=True)

    def _is_well(self) -> bool:
        """Return whether the baseline still has an answer; if so, the candidates themselves cause the faults."""
        self._state.faults_in_a_row = 0
        if self.baseline is None:
            return False
        job = Job("compile", self.target, self.file, self.baseline, bench=self._bench(self.baseline))
        return isinstance(self.answer_from(self.isolation.ask(job, self.limits), self.baseline.stage), Verdict)

    def _remember_ir(self, verdict: Verdict) -> None:
        """Store the program of an LLVM IR, for candidates that need no machine code of their own."""
        program = verdict.program
        if program is None or verdict.resources is None or not program.ir or program.proof is not Proof.CODE:
            return
        folder = self.isolation.folder / "ir"
        folder.mkdir(exist_ok=True)
        part = folder / (program.ir + ".part")
        part.write_bytes(msgspec.json.encode({"program": program, "resources": verdict.resources}))
        part.rename(folder / program.ir)


class _QuerySchedule:
    """Order of the questions of one `Oracle.converse`: which are in flight, replayed or to be asked alone.

    Answers from the journal are taken in the order in which they once came, with as many questions open as there were
    then. An asker who plans by the answers so far therefore asks the same questions again.
    """

    def __init__(
        self, oracle: Oracle, queries: Iterator[Query | None], take: Callable[[Query, Answer, bool], None]
    ) -> None:
        self.oracle, self.queries, self.take = oracle, queries, take
        self.in_flight: dict[str, Query] = {}
        self._replayed: dict[str, tuple[int, Query, Answer]] = {}
        """Open questions whose answers the journal has: position of the answer, question, answer."""
        self._alone: deque[Query] = deque()
        """Questions to be asked while nothing else runs."""
        self._asked_alone: set[str] = set()
        """Keys of questions that are asked alone: their next ending is their answer, a fault included."""
        self._held: Query | None = None
        """The next query, held back because its candidate is open for another query."""
        self._opened_replayed = False
        """The last call of `_next` opened a question whose answer the journal has."""

    def jobs(self) -> Iterator[tuple[str, Job] | None]:
        """Yield the jobs to start; None: no job before another ending is known."""
        while True:
            if self._replayed and len(self._replayed) + len(self.in_flight) >= self.oracle.isolation.jobs:
                self._replay()
            elif self._asked_alone & self.in_flight.keys() or (self._alone and self.in_flight):
                yield None
            elif self._alone:
                query = self._alone.popleft()
                self._asked_alone.add(query.key)
                yield self._start(query)
            elif (fresh := self._next()) is not None:
                yield self._start(fresh)
            elif self._replayed:
                if self._held or not self._opened_replayed:
                    self._replay()
            elif not self._alone:
                yield None

    def _next(self) -> Query | None:
        """Return the next query if it needs a child; None: it does not, or there is none."""
        self._opened_replayed = False
        while (query := self._held or next(self.queries, None)) is not None:
            self._held = None
            known = self.oracle.known(query.candidate, query.key)
            if query.key in self.in_flight or query.key in self._replayed:
                self._held = query
                return None
            if known is not None and self.oracle.had_answered(query.key):
                self.take(query, known, False)
            elif known is not None:
                self._replayed[query.key] = (self.oracle.replay_question(query.key), query, known)
                self._opened_replayed = True
                return None
            elif self.oracle.journal.was_in_flight(self.oracle.stamp, query.key):
                self._alone.append(query)
                return None
            else:
                return query
        return None

    def _replay(self) -> None:
        """Take the answer that came first in the journal's run."""
        key = min(self._replayed, key=lambda k: self._replayed[k][0])
        _, query, answer = self._replayed.pop(key)
        self.oracle.replay_answer(key)
        self.take(query, answer, False)

    def _start(self, query: Query) -> tuple[str, Job]:
        self.oracle.warm_up()
        self.in_flight[query.key] = query
        return query.key, self.oracle.start(query.key, query.candidate)

    def end(self, key: str, ending: Ending) -> None:
        """Take the ending of a question in flight as its answer; after a first fault ask it again, alone."""
        query = self.in_flight.pop(key)
        answer = self.oracle.answer_from(ending)
        if isinstance(answer, Fault) and key not in self._asked_alone:
            self.oracle.journal.write(journal.Cancelled(self.oracle.stamp, key))
            self._alone.append(query)
            return
        self.oracle.record(key, query.candidate, answer)
        self.take(query, answer, True)
