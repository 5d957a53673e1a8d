"""Journal: the append-only record of the questions about one kernel on one target, and of their answers.

Each line is one JSON object. `head` states the circumstances under which the lines after it were written; its `stamp`
is a hash of all that can change an answer. `intent` is written before a candidate starts, `answer` after it ended,
`cancelled` where the user ended it. An intent with neither was in flight when the tool died.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from gluonmap.model import codec
from gluonmap.model.candidate import Candidate, Stage
from gluonmap.model.errors import StorageFault, UsageError
from gluonmap.model.inspection import Inspection, SourceFile
from gluonmap.model.joint_map import Joint
from gluonmap.model.verdict import Answer, Fault

SCHEMA = "gluonmap.journal/1"
MOST_INTENTS = 2
"""A candidate that was in flight this often when the tool died is not asked again."""


class Head(msgspec.Struct, frozen=True, tag_field="type", tag="head"):
    """Circumstances of the lines that follow."""

    stamp: str
    target: str
    triton: str
    installation: str
    """Identity of the installed Triton and of the interpreter."""
    environment: dict[str, str]
    stubs: tuple[str, ...]
    inspection: Inspection
    folder: str = ""
    """The kernel file's folder; the files of the inspection lie relative to it where they can."""
    schema: str = SCHEMA


class Intent(msgspec.Struct, frozen=True, tag_field="type", tag="intent"):
    """A candidate that is about to start."""

    stamp: str
    key: str
    candidate: Candidate


class Answered(msgspec.Struct, frozen=True, tag_field="type", tag="answer"):
    """An answer with the limits that it was given under."""

    stamp: str
    key: str
    answer: Answer
    deadline_s: float
    memory_bytes: int


class Cancelled(msgspec.Struct, frozen=True, tag_field="type", tag="cancelled"):
    """A candidate that was ended before it had an answer."""

    stamp: str
    key: str


class Stability(msgspec.Struct, frozen=True, tag_field="type", tag="stability"):
    """Result of a second compile under another hash seed; `same`: it gave the same program."""

    stamp: str
    key: str
    same: bool


class Concluded(msgspec.Struct, frozen=True, tag_field="type", tag="concluded"):
    """Conclusion from all answers together, kept so that it need not be computed again."""

    stamp: str
    key: str
    """Hash of the settings and of the answers that the search began with."""
    joint: msgspec.Raw


Record = Head | Intent | Answered | Cancelled | Stability | Concluded


class Journal:
    """A journal file, read once and held open for appending. A lock keeps other processes out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heads: list[Head] = []
        self.damaged: list[int] = []
        """Numbers of the lines that are no record: written half by a process that died, or edited."""
        self._answers: dict[tuple[str, str], Answered] = {}
        self._open_intents: dict[tuple[str, str], int] = {}
        self._stability: dict[tuple[str, str], bool] = {}
        self._conclusions: dict[tuple[str, str], bytes] = {}
        self._clock = 0
        self._times: dict[tuple[str, str], tuple[int, int]] = {}
        self._answered_now: set[tuple[str, str]] = set()
        """Candidates that were answered since the file was opened, by stamp and key."""
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        """Open and read the file.

        Raises:
            StorageFault: it cannot be opened.
            UsageError: another process has it.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and not self.path.is_file():
                raise OSError(errno.EINVAL, "it is no regular file")
            self._open()
        except BlockingIOError:
            assert self._file
            self._file.close()
            raise UsageError(
                f"another gluonmap is writing {self.path}; wait for it, or name another folder with --out."
            ) from None
        except OSError as error:
            raise StorageFault(
                f"cannot open the journal {self.path}: {error.strerror}. Name another folder with --out."
            ) from error
        self._read()
        return self

    def _open(self) -> None:
        while self._file is None or os.fstat(self._file.fileno()).st_nlink == 0:  # 0: the file has been deleted
            if self._file:
                self._file.close()
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: a buffer would write again on close what a full disk has refused.
            self._file = self.path.open("a+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            if os.fstat(self._file.fileno()).st_size == 0:  # a run without any record leaves no file
                with contextlib.suppress(OSError):
                    self.path.unlink()
                    self.path.parent.rmdir()
            self._file.close()

    def adopt(self, other: Path) -> None:
        """Copy the records of a journal at another path, where the kernel's file was before it moved."""
        assert self._file
        data = other.read_bytes()
        self._write(data if data.endswith(b"\n") else data + b"\n")
        self._read()

    def answer(
        self, stamp: str, key: str, *, deadline_s: float, memory_bytes: int, retry: bool = False, afresh: bool = False
    ) -> Answer | None:
        """Return the answer to a candidate; None: ask.

        An answer that a tighter limit than today's caused does not count. With `retry`, neither do faults of earlier
        runs; with `afresh`, no answer of an earlier run counts.
        """
        if afresh and (stamp, key) not in self._answered_now:
            return None
        found = self._answers.get((stamp, key))
        if retry and (found is None or (isinstance(found.answer, Fault) and (stamp, key) not in self._answered_now)):
            return None
        if found is None:
            if self._open_intents.get((stamp, key), 0) >= MOST_INTENTS:
                return Fault(f"the tool died {MOST_INTENTS} times while this candidate ran: not asked again")
            return None
        kind = getattr(getattr(found.answer, "reason", None), "kind", "")
        if kind == "deadline" and deadline_s > found.deadline_s:
            return None
        if kind == "host memory" and found.memory_bytes and (memory_bytes == 0 or memory_bytes > found.memory_bytes):
            return None
        return found.answer

    def was_in_flight(self, stamp: str, key: str) -> bool:
        """Return whether the tool died while this candidate ran."""
        return self._open_intents.get((stamp, key), 0) > 0

    def stability(self, stamp: str, key: str) -> bool | None:
        """Return whether a second compile gave the same program; None: there was none."""
        return self._stability.get((stamp, key))

    def times(self, stamp: str, key: str) -> tuple[int, int]:
        """Return the positions of a candidate's latest intent and answer, counted in records; 0: there is none."""
        return self._times.get((stamp, key), (0, 0))

    def conclusion(self, stamp: str, key: str) -> Joint | None:
        """Return the conclusion for these settings and first answers; None: there is none that can be read."""
        found = self._conclusions.get((stamp, key))
        try:
            return msgspec.json.decode(found, type=Joint) if found else None
        except (msgspec.DecodeError, RecursionError):  # damaged, or of another version: it is computed again
            return None

    def conclude(self, stamp: str, key: str, joint: Joint) -> None:
        """Write a conclusion.

        Raises:
            StorageFault: the disk is full, or the file is gone.
        """
        self.write(Concluded(stamp, key, msgspec.Raw(msgspec.json.encode(joint))))

    def write(self, record: Record) -> None:
        """Append one record; an answer is on the disk when this returns.

        Raises:
            StorageFault: the disk is full, or the file is gone.
        """
        self._take(record)
        if isinstance(record, Answered):
            self._answered_now.add((record.stamp, record.key))
        self._write(msgspec.json.encode(record) + b"\n", sync=isinstance(record, Answered))

    def _write(self, data: bytes, sync: bool = False) -> None:
        assert self._file
        try:
            while data:
                data = data[self._file.write(data) :]
            if sync:
                os.fdatasync(self._file.fileno())
        except OSError as error:
            raise StorageFault(
                f"cannot write the journal {self.path}: {error.strerror}. What it holds is kept; "
                "make room and run the same command again."
            ) from error

    def _read(self) -> None:
        assert self._file
        self._file.seek(0)
        data = self._file.read()
        self.heads.clear()
        self.damaged.clear()
        self._answers.clear()
        self._open_intents.clear()
        self._stability.clear()
        self._conclusions.clear()
        self._times.clear()
        for number, line in enumerate(data.splitlines(), 1):
            if not line.strip():
                continue
            try:
                record = msgspec.json.decode(line, type=Record)
                if isinstance(record, Head) and (record.schema != SCHEMA or not record.inspection.functions):
                    raise msgspec.DecodeError("a head of another schema")
                self._take(record)
            except (msgspec.DecodeError, ValueError):
                self.damaged.append(number)
        if data and not data.endswith(b"\n"):
            self._write(b"\n")  # ends a line that was written half, so that the next record is a line of its own

    def _take(self, record: Record) -> None:
        self._clock += 1
        match record:
            case Head():
                self.heads.append(record)
            case Intent(stamp, key):
                self._open_intents[stamp, key] = self._open_intents.get((stamp, key), 0) + 1
                self._times[stamp, key] = (self._clock, 0)
            case Answered(stamp, key):
                self._answers[stamp, key] = record
                self._open_intents.pop((stamp, key), None)
                self._times[stamp, key] = (self.times(stamp, key)[0], self._clock)
            case Cancelled(stamp, key):
                # One less, not zero: an intent of an earlier run that died still counts.
                self._open_intents[stamp, key] = max(0, self._open_intents.get((stamp, key), 0) - 1)
            case Stability(stamp, key, same):
                self._stability[stamp, key] = same
            case Concluded(stamp, key, joint):
                self._conclusions[stamp, key] = bytes(joint)


def key_of(candidate: Candidate) -> str:
    """Return the hash that identifies a candidate: of all that reaches the compiler, so not of grid and proof.

    For a candidate that is executed, grid and trial count too.
    """
    compiled = [candidate.target, candidate.args, candidate.config, candidate.stage]
    return codec.digest([*compiled, candidate.grid, candidate.trial] if candidate.trial else compiled)


def compile_key(candidate: Candidate) -> str:
    """Return the hash that identifies the compile of a candidate of any stage."""
    return key_of(compile_of(candidate))


def compile_of(candidate: Candidate) -> Candidate:
    """Return the candidate of the compile that a candidate of a later stage begins with."""
    return msgspec.structs.replace(candidate, stage=Stage.COMPILE, trial=None)


def stamp_of(
    kernel: str,
    files: tuple[SourceFile, ...],
    target: str,
    installation: str,
    environment: dict[str, str],
    stubs: tuple[str, ...],
) -> str:
    """Return the hash of the circumstances. Of files, the given names and the syntax trees count."""
    named = sorted((f.path, f.ast) for f in files)
    return codec.digest([SCHEMA, kernel, named, target, installation, environment, stubs])
