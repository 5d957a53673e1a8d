"""Processes: the only module that starts, watches and ends them. What they do is `worker`'s business.

One base server per run holds Triton; a warm server per kernel and target holds the kernel too. Candidates are forks of
the warmest server that is there, each in its own session with its own limits, and never reused.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from gluonmap.model.errors import OracleFault, StorageFault
from gluonmap.runner import interrupts
from gluonmap.worker.protocol import (
    COMPILED_FILE,
    EVIDENCE_FILE,
    LOCK_FILE,
    STDERR_FILE,
    STDOUT_FILE,
    Evidence,
    Job,
    Limits,
    Notice,
    Progress,
    Request,
)

SERVER_START_S = 120.0
SOCKET_FOLDER_BYTES = 80
TEXT_BYTES = 64 * 1024
"""As much of a child's output is kept from its beginning, and as much from its end."""
_PREFIX = "gluonmap-"
_FOLDER = re.compile(_PREFIX + r"\d+-[a-z0-9_]{8}")
SERVER_GRACE_S = 20.0
"""A server that is silent for so long after a deadline is taken for stopped."""
Tag = TypeVar("Tag")


@dataclass(frozen=True, slots=True)
class Ending:
    """How one child ended, and everything that it left behind."""

    status: int
    hung: bool
    seconds: float
    progress: Progress
    evidence: Evidence | None
    stdout: str
    stderr: str
    lost: bool = False
    """The server died, not (only) the child."""
    compiled: Evidence | None = None
    """What a child had compiled before it went to a device."""


class Server:
    """A fork server and the socket to it."""

    def __init__(self, channel: Any, process: subprocess.Popen[bytes] | None) -> None:
        self.channel = channel
        self.process = process

    def send(self, request: Request) -> None:
        self.channel.send_bytes(msgspec.json.encode(request))

    def receive(self, patience_s: float) -> Notice:
        """The next notice. Raises EOFError where the server is gone, or says nothing for so long."""
        if not self.channel.poll(patience_s):
            raise EOFError
        return msgspec.json.decode(self.channel.recv_bytes(), type=Notice)


class Isolation:
    """A folder of temporary files, a base server and its warm forks; leaves neither process nor file behind."""

    def __init__(self, *, jobs: int, hash_seed: str = "0", modules: Sequence[str] = ()) -> None:
        """`modules` are imported by the base server, where they are installed: torch, for what goes to a device."""
        self.jobs = jobs
        self._modules = tuple(modules)
        self._hash_seed = hash_seed
        self._numbers = itertools.count(1)
        self._base: Server | None = None
        self._starting: tuple[subprocess.Popen[bytes], socket.socket, Path] | None = None
        self._warm: dict[object, Server] = {}
        self._lock: int | None = None

    def __enter__(self) -> Isolation:
        _sweep()
        prefix = f"{_PREFIX}{os.getpid()}-"
        # The name of a Unix socket has 107 bytes at most, which a long TMPDIR alone can fill.
        short = len(os.path.join(tempfile.gettempdir(), prefix)) < SOCKET_FOLDER_BYTES
        try:
            self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=None if short else "/tmp"))
            self._lock = _locked(self.folder / LOCK_FILE)
        except OSError as error:
            raise StorageFault(
                f"cannot make a folder for temporary files: {error}. Set TMPDIR to a writable one."
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with interrupts.ignored():
            self._close()

    def _close(self) -> None:
        if self._starting and not self._base:
            self._starting[0].kill()
            self._starting[0].wait()
        for server in [*self._warm.values(), *([self._base] if self._base else [])]:
            with contextlib.suppress(OSError):
                server.send(Request("stop"))
            server.channel.close()
        if self._base and self._base.process:
            try:
                self._base.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._base.process.kill()
                self._base.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)

    def start(self) -> None:
        """Begin to start the base server; does not wait for it."""
        if self._base or self._starting:
            return
        path = self.folder / "base.sock"
        listener = _listen(path)
        log = open(self.folder / "base.log", "wb")  # noqa: SIM115  the child keeps it
        environment = os.environ | {"PYTHONHASHSEED": self._hash_seed}
        process = subprocess.Popen(
            [sys.executable, "-c", _boot(), str(path), *self._modules],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
        log.close()
        self._starting = (process, listener, path)

    def base(self) -> Server:
        """The base server, started now if it was not.

        Raises:
            OracleFault: it does not start; its own last words are in the message.
        """
        if self._base is None:
            self.start()
            assert self._starting
            process, listener, _ = self._starting
            channel = _accept(listener, lambda: process.poll() is None)
            self._starting = None
            if channel is None:
                process.kill()
                log = (self.folder / "base.log").read_text(errors="replace").strip().splitlines()
                raise OracleFault(_no_server(log[-1] if log else f"exit status {process.wait()}"))
            self._base = Server(channel, process)
        return self._base

    def warm(self, key: object, job: Job) -> bool:
        """Fork a server that has imported the job's kernel and compiled its candidate; False where it does not come."""
        number = next(self._numbers)
        path = self.folder / f"warm-{number}.sock"
        listener = _listen(path)
        try:
            self.base().send(Request("warm", folder=str(self.folder / f"warm-{number}"), job=job, address=str(path)))
        except OSError:
            return False
        died = self.folder / f"warm-{number}" / "died"
        channel = _accept(listener, lambda: not died.exists())
        if channel is None:
            return False
        self._warm[key] = Server(channel, None)
        return True

    def is_warm(self, key: object) -> bool:
        return key in self._warm

    def run(
        self, jobs: Iterable[tuple[Tag, Job] | None], limits: Limits, *, warm: object = None, at_once: int = 0
    ) -> Iterator[tuple[Tag, Ending]]:
        """Endings of all jobs, in the order in which they end; at most `at_once` (default: `jobs`) run together.

        The next job is fetched when there is room for it. None in place of one: not before another ending is known.
        Closing the iterator ends the children that still run.
        """
        waiting = iter(jobs)
        running: dict[str, tuple[Tag, Path]] = {}
        try:
            while True:
                while len(running) < (at_once or self.jobs) and (item := next(waiting, None)) is not None:
                    id_, folder = self._spawn(item[1], limits, warm)
                    running[id_] = (item[0], folder)
                if not running:
                    return
                try:
                    # While some wait for a device another one has it, and its deadline runs.
                    longest = max(limits.deadline_s, limits.device_deadline_s)
                    notice = self._server(warm).receive(longest + SERVER_GRACE_S)
                except (EOFError, OSError):
                    self._forget(warm)
                    for tag, folder in running.values():
                        yield tag, _ending(Notice("", 255), folder, lost=True)
                    running.clear()
                    continue
                if notice.id in running:
                    tag, folder = running.pop(notice.id)
                    yield tag, _ending(notice, folder)
        finally:
            for id_, (_, folder) in running.items():
                with contextlib.suppress(OSError):
                    self._server(warm).send(Request("cancel", id=id_))
                shutil.rmtree(folder, ignore_errors=True)

    def ask(self, job: Job, limits: Limits) -> Ending:
        """Ending of one job, asked alone of the base server."""
        ((_, ending),) = self.run([(None, job)], limits)
        return ending

    def _server(self, warm: object) -> Server:
        return self._warm[warm] if warm in self._warm else self.base()

    def _forget(self, warm: object) -> None:
        """Drop a server that is gone or silent; the next job starts another. A warm one dies with its base."""
        if warm in self._warm:
            self._warm.pop(warm).channel.close()
        if self._base and self._base.process:
            self._base.process.kill()
            self._base.process.wait()
            self._base.channel.close()
        self._base, self._warm = None, {}

    def _spawn(self, job: Job, limits: Limits, warm: object) -> tuple[str, Path]:
        id_ = str(next(self._numbers))
        folder = self.folder / id_
        request = Request("spawn", id=id_, folder=str(folder), job=job, limits=limits)
        try:
            self._server(warm).send(request)
        except OSError:
            self._forget(warm)
            self._server(warm).send(request)
        return id_, folder


def _boot() -> str:
    """Program text of the base server: this very package, from wherever this process has it."""
    here = str(Path(__file__).resolve().parents[2])
    return (
        "import sys; sys.argv[0] = 'gluonmap-server'; "
        f"sys.path[:] = [p for p in sys.path if p] + [p for p in {[*sys.path, here]!r} if p and p not in sys.path]; "
        "from gluonmap.worker.server import main; main()"
    )


def _no_server(last_words: str) -> str:
    advice = ""
    if "No module named 'triton'" in last_words:
        advice = "\n  Triton is not installed in this environment: pip install 'gluonmap[compile]'"
    return f"the fork server did not start: {last_words}{advice}"


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)  # of a server that died
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    listener.settimeout(0.02)
    return listener


def _accept(listener: socket.socket, alive: Any) -> Any:
    """Channel to the server that reports at `listener` and says that it is ready; None if it dies or is too late."""
    from multiprocess.connection import Connection

    deadline = time.monotonic() + SERVER_START_S
    with listener:
        while alive() and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                peer, _ = listener.accept()
                peer.setblocking(True)
                channel = Connection(peer.detach())
                try:
                    channel.recv_bytes()
                except (EOFError, OSError):
                    return None
                return channel
    return None


def _ending(notice: Notice, folder: Path, lost: bool = False) -> Ending:
    ending = Ending(
        status=notice.status,
        hung=notice.hung,
        seconds=notice.seconds,
        progress=notice.progress,
        evidence=_evidence(folder / EVIDENCE_FILE),
        stdout=_ends_of(folder / STDOUT_FILE),
        stderr=_ends_of(folder / STDERR_FILE),
        lost=lost,
        compiled=_evidence(folder / COMPILED_FILE),
    )
    shutil.rmtree(folder, ignore_errors=True)
    return ending


def _evidence(path: Path) -> Evidence | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Evidence)
    return None


def _ends_of(path: Path) -> str:
    """The beginning and the end of a text file that may be huge and need not be text."""
    try:
        with path.open("rb") as file:
            head = file.read(TEXT_BYTES)
            size = path.stat().st_size
            if size > 2 * TEXT_BYTES:
                file.seek(size - TEXT_BYTES)
                head += b"\n"
            return (head + file.read()).decode(errors="replace")
    except OSError:
        return ""


def _sweep() -> None:
    """Remove folders of runs that were killed together with their server."""
    places = dict.fromkeys((tempfile.gettempdir(), "/tmp"))
    for folder in (f for place in places for f in Path(place).glob(f"{_PREFIX}*-*")):
        lock = folder / LOCK_FILE
        if not _FOLDER.fullmatch(folder.name) or not lock.is_file() or lock.stat().st_uid != os.getuid():
            continue  # a user's folder of a similar name, or another user's
        with contextlib.suppress(OSError):
            held = _locked(lock)
            if held is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def _locked(path: Path) -> int | None:
    """Descriptor of a lock file that this process now holds; None where another one does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
