"""ask(candidates) -> answers: from the journal where it knows them, from isolated children where not."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
class Asked:
    """One candidate with its answer, and whether a child had to be asked."""

    candidate: Candidate
    answer: Answer
    fresh: bool


@dataclass(frozen=True, slots=True)
class Query:
    """One question of a conversation, with whatever the asker knows it by."""

    tag: Any
    candidate: Candidate
    again: bool = False
    """Asked a second time: another child must answer, whatever the first one said."""

    @property
    def key(self) -> str:
        return journal.key_of(self.candidate) + (SECOND_TIME if self.again else "")


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
        afresh: bool = False,
        probe_file: str = "",
    ) -> None:
        """`probe_file` holds the functions that stages beyond the compile need."""
        self.probe_file = probe_file
        self.journal = journal
        self.isolation = isolation
        self.stamp = stamp
        self.file = file
        self.target = target
        self.functions = functions
        self.limits = limits
        self.retry = retry
        """Ask again what had no answer in an earlier run."""
        self.afresh = afresh
        """Use no answer of an earlier run."""
        self.loadable = loadable
        """A server may import the kernel's file: an isolated import was quiet."""
        self.baseline: Candidate | None = None
        self._faults_in_a_row = 0
        self._now = 0

    def known(self, candidate: Candidate, key: str = "") -> Answer | None:
        """The journal's answer; None: a child must be asked."""
        found = self._recorded(key or journal.key_of(candidate))
        if found is None and candidate.stage.executes:
            # What does not compile gets nowhere, and that is known from a run that asked no more.
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
                self.look_up(journal.key_of(candidate))
                yield Asked(candidate, answer, fresh=False)
        # One that the tool died with before is asked alone, so that nothing else is lost if it happens again.
        alone = {k: c for k, c in unknown.items() if self.journal.was_in_flight(self.stamp, k)}
        together = {k: c for k, c in unknown.items() if k not in alone}
        if unknown:
            self.warm_up()
        faulty: dict[str, Candidate] = {}
        for key, ending in self._run(together):
            answer = self.judge(ending, together[key].stage)
            if isinstance(answer, Fault):
                self.journal.write(journal.Cancelled(self.stamp, key))
                faulty[key] = together[key]
                continue
            yield self.record(key, together[key], answer)
        for key, candidate in [*alone.items(), *faulty.items()]:
            for _, ending in self._run({key: candidate}):
                yield self.record(key, candidate, self.judge(ending, candidate.stage))

    def converse(self, queries: Iterable[Query | None], take: Callable[[Query, Answer, bool], None]) -> None:
        """Answer queries as they come: the next is fetched when a child is free, or at once where its answer is known.

        `take(query, answer, fresh)` gets every answer. None in place of a query: nothing to ask before another answer
        has been taken. What has no answer, or was in flight when the tool died, is asked again with nothing beside it.

        Raises:
            OracleFault: three candidates in a row had no answer, nor has the baseline any more.
            StorageFault: the journal cannot be written.
        """
        talk = _Conversation(self, iter(queries), take)
        running = self.isolation.run(talk.jobs(), self.limits, warm=self._server_key())
        try:
            for key, ending in running:
                talk.end(key, ending)
        finally:
            running.close()  # type: ignore[attr-defined]
            self._cancel(talk.in_flight)

    # Time is counted in records of the journal, up to the latest that this run has used.

    def knew(self, key: str) -> bool:
        """Whether an answer was there already at this point of the run that the journal tells of."""
        return self.journal.times(self.stamp, key)[1] <= self._now

    def reopen(self, key: str) -> int:
        """Ask again, in mind, what the journal knows; returns when its answer came."""
        asked, answered = self.journal.times(self.stamp, key)
        self._now = max(self._now, asked)
        return answered

    def look_up(self, key: str) -> None:
        """Note that the journal's answer has been used."""
        self._now = max(self._now, self.journal.times(self.stamp, key)[1])

    def start(self, key: str, candidate: Candidate) -> Job:
        """The job of a candidate, its intent recorded."""
        self.journal.write(journal.Intent(self.stamp, key, candidate))
        known_ir = str(self.isolation.folder / "ir") if candidate.proof is Proof.IR else ""
        return Job("compile", self.target, self.file, candidate, known_ir, self._bench(candidate))

    def _bench(self, candidate: Candidate) -> Bench | None:
        return Bench(self.probe_file, str(self.isolation.folder / "bench")) if candidate.stage.executes else None

    def _cancel(self, keys: Iterable[str]) -> None:
        with contextlib.suppress(StorageFault):  # has been raised already by what could not be written before
            for key in keys:
                self.journal.write(journal.Cancelled(self.stamp, key))

    def warm_up(self) -> None:
        """Have a server that has the kernel loaded, where one is allowed."""
        if not self.loadable or self.baseline is None or self.isolation.is_warm(self._server_key()):
            return
        job = Job("compile", self.target, self.file, journal.compile_of(self.baseline))
        if not self.isolation.warm(self._server_key(), job):
            self.loadable = False

    def _server_key(self) -> object:
        return (self.target, self.file)

    def _run(self, candidates: dict[str, Candidate]) -> Iterator[tuple[str, Ending]]:
        """Endings by key. Intents go to the journal as the candidates start; those that do not end are cancelled."""
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

    def judge(self, ending: Ending, stage: Stage = Stage.COMPILE) -> Answer:
        """What an ending says about a candidate that was asked up to `stage`."""
        limits = self.limits
        return diagnostics.answer(ending, self.functions, limits.deadline_s, stage, limits.device_deadline_s)

    def record(self, key: str, candidate: Candidate, answer: Answer) -> Asked:
        """Write an answer down."""
        self.journal.write(journal.Answered(self.stamp, key, answer, self.limits.deadline_s, self.limits.memory_bytes))
        self.look_up(key)
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
        job = Job("compile", self.target, self.file, self.baseline, bench=self._bench(self.baseline))
        return isinstance(self.judge(self.isolation.ask(job, self.limits), self.baseline.stage), Verdict)

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


class _Conversation:
    """What is asked, in flight, and to be asked again, of one `Oracle.converse`.

    Answers from the journal come in the order in which they once came, with as many questions open as there were then:
    so that an asker who plans by what is known asks the same questions again.
    """

    def __init__(
        self, oracle: Oracle, queries: Iterator[Query | None], take: Callable[[Query, Answer, bool], None]
    ) -> None:
        self.oracle, self.queries, self.take = oracle, queries, take
        self.in_flight: dict[str, Query] = {}
        self._replayed: dict[str, tuple[int, Query, Answer]] = {}
        """Open questions with their known answers, and when these once came."""
        self._alone: deque[Query] = deque()
        """To be asked with nothing beside them."""
        self._last: set[str] = set()
        """Keys that are asked alone: whatever comes is their answer."""
        self._held: Query | None = None
        """The next query, whose very candidate is open for another one."""
        self._room_was_used = False
        """By the last look for a query: one was opened whose answer is known."""

    def jobs(self) -> Iterator[tuple[str, Job] | None]:
        while True:
            if self._replayed and len(self._replayed) + len(self.in_flight) >= self.oracle.isolation.jobs:
                self._replay()
            elif self._last & self.in_flight.keys() or (self._alone and self.in_flight):
                yield None
            elif self._alone:
                query = self._alone.popleft()
                self._last.add(query.key)
                yield self._start(query)
            elif (fresh := self._next()) is not None:
                yield self._start(fresh)
            elif self._replayed:
                if self._held or not self._room_was_used:
                    self._replay()
            elif not self._alone:
                yield None

    def _next(self) -> Query | None:
        """The next query that needs a child, if it is the next that there is."""
        self._room_was_used = False
        while (query := self._held or next(self.queries, None)) is not None:
            self._held = None
            known = self.oracle.known(query.candidate, query.key)
            if query.key in self.in_flight or query.key in self._replayed:
                self._held = query
                return None
            if known is not None and self.oracle.knew(query.key):
                self.take(query, known, False)
            elif known is not None:
                self._replayed[query.key] = (self.oracle.reopen(query.key), query, known)
                self._room_was_used = True
                return None
            elif self.oracle.journal.was_in_flight(self.oracle.stamp, query.key):
                self._alone.append(query)
                return None
            else:
                return query
        return None

    def _replay(self) -> None:
        """Take the answer that once came first."""
        key = min(self._replayed, key=lambda k: self._replayed[k][0])
        _, query, answer = self._replayed.pop(key)
        self.oracle.look_up(key)
        self.take(query, answer, False)

    def _start(self, query: Query) -> tuple[str, Job]:
        self.oracle.warm_up()
        self.in_flight[query.key] = query
        return query.key, self.oracle.start(query.key, query.candidate)

    def end(self, key: str, ending: Ending) -> None:
        query = self.in_flight.pop(key)
        answer = self.oracle.judge(ending)
        if isinstance(answer, Fault) and key not in self._last:
            self.oracle.journal.write(journal.Cancelled(self.oracle.stamp, key))
            self._alone.append(query)
            return
        self.oracle.record(key, query.candidate, answer)
        self.take(query, answer, True)
