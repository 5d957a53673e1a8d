"""The append-only record of one kernel on one target: what was asked and what came back, one JSON object a line.

`head` says under which circumstances the lines after it were written; its `stamp` is a hash of all that can change an
answer. `intent` goes to the file before a candidate starts, `answer` after it ended, `cancelled` where the user ended
it: an intent without either was in flight when the tool died.
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
    stamp: str
    key: str
    candidate: Candidate


class Answered(msgspec.Struct, frozen=True, tag_field="type", tag="answer"):
    stamp: str
    key: str
    answer: Answer
    deadline_s: float
    memory_bytes: int


class Cancelled(msgspec.Struct, frozen=True, tag_field="type", tag="cancelled"):
    stamp: str
    key: str


class Stability(msgspec.Struct, frozen=True, tag_field="type", tag="stability"):
    """Whether two compiles of a candidate under different hash seeds gave one program."""

    stamp: str
    key: str
    same: bool


class Concluded(msgspec.Struct, frozen=True, tag_field="type", tag="concluded"):
    """What all answers together were found to mean, so that it need not be found again."""

    stamp: str
    key: str
    """Hash of what was wanted, and of the answers that it began with."""
    joint: msgspec.Raw


Record = Head | Intent | Answered | Cancelled | Stability | Concluded


class Journal:
    """A journal file, read once and held open for appending; only one process has it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heads: list[Head] = []
        self.damaged: list[int] = []
        """Numbers of the lines that are no record (torn by a crash, or edited)."""
        self._answers: dict[tuple[str, str], Answered] = {}
        self._open_intents: dict[tuple[str, str], int] = {}
        self._stability: dict[tuple[str, str], bool] = {}
        self._conclusions: dict[tuple[str, str], bytes] = {}
        self._clock = 0
        self._times: dict[tuple[str, str], tuple[int, int]] = {}
        self._this_time: set[tuple[str, str]] = set()
        """Candidates that were answered since the file was opened."""
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
        while self._file is None or os.fstat(self._file.fileno()).st_nlink == 0:  # 0: taken away in the meantime
            if self._file:
                self._file.close()
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b", buffering=0)  # or what a full disk refused is written again on close
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            if os.fstat(self._file.fileno()).st_size == 0:  # a run that came to nothing leaves nothing
                with contextlib.suppress(OSError):
                    self.path.unlink()
                    self.path.parent.rmdir()
            self._file.close()

    def adopt(self, other: Path) -> None:
        """Take over the records of a journal that lies elsewhere (the kernel's file has moved)."""
        assert self._file
        data = other.read_bytes()
        self._write(data if data.endswith(b"\n") else data + b"\n")
        self._read()

    def answer(
        self, stamp: str, key: str, *, deadline_s: float, memory_bytes: int, retry: bool = False, afresh: bool = False
    ) -> Answer | None:
        """What is known of a candidate; None: ask.

        What came of a tighter bound than today's is not known; with `retry`, neither is what had no answer; with
        `afresh`, nothing that was answered before this file was opened.
        """
        if afresh and (stamp, key) not in self._this_time:
            return None
        found = self._answers.get((stamp, key))
        if retry and (found is None or (isinstance(found.answer, Fault) and (stamp, key) not in self._this_time)):
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
        """True where the tool died while this candidate ran."""
        return self._open_intents.get((stamp, key), 0) > 0

    def stability(self, stamp: str, key: str) -> bool | None:
        return self._stability.get((stamp, key))

    def times(self, stamp: str, key: str) -> tuple[int, int]:
        """When a candidate was asked and when it was answered, counted in records; 0: never."""
        return self._times.get((stamp, key), (0, 0))

    def conclusion(self, stamp: str, key: str) -> Joint | None:
        """What was concluded from the same answers for the same wishes."""
        found = self._conclusions.get((stamp, key))
        try:
            return msgspec.json.decode(found, type=Joint) if found else None
        except (msgspec.DecodeError, RecursionError):  # damaged, or of another version: concluded anew
            return None

    def conclude(self, stamp: str, key: str, joint: Joint) -> None:
        """Write a conclusion down.

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
            self._this_time.add((record.stamp, record.key))
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
            self._write(b"\n")  # a torn last line must not swallow the next record

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
                # One less, not none: a death before this run still counts.
                self._open_intents[stamp, key] = max(0, self._open_intents.get((stamp, key), 0) - 1)
            case Stability(stamp, key, same):
                self._stability[stamp, key] = same
            case Concluded(stamp, key, joint):
                self._conclusions[stamp, key] = bytes(joint)


def key_of(candidate: Candidate) -> str:
    """What a candidate is known by: all that reaches the compiler. The grid does not, nor does the wanted proof.

    On a device the grid counts, and so does all that the launch is given.
    """
    compiled = [candidate.target, candidate.args, candidate.config, candidate.stage]
    return codec.digest([*compiled, candidate.grid, candidate.trial] if candidate.trial else compiled)


def compile_key(candidate: Candidate) -> str:
    """What the compile of a candidate of any stage is known by."""
    return key_of(compile_of(candidate))


def compile_of(candidate: Candidate) -> Candidate:
    """The question that a candidate of a later stage begins with."""
    return msgspec.structs.replace(candidate, stage=Stage.COMPILE, trial=None)


def stamp_of(
    kernel: str,
    files: tuple[SourceFile, ...],
    target: str,
    installation: str,
    environment: dict[str, str],
    stubs: tuple[str, ...],
) -> str:
    """Hash of the circumstances. Files count by the names given and by syntax tree."""
    named = sorted((f.path, f.ast) for f in files)
    return codec.digest([SCHEMA, kernel, named, target, installation, environment, stubs])
