"""Processes of candidates: this module alone starts, watches and ends them. `worker` decides what they do.

One base server per run holds Triton; a warm server per kernel and target holds the kernel too. Candidates are forks of
the warmest server there is, each in its own session with its own limits, and never reused.

Other modules start processes that are no candidates of a run: `cli.reexec` replaces the tool by another Python's,
`probe.rebuild` repeats one candidate on the user's terminal, `launches.watched_program` runs the user's program,
`repro.trial` a script of `explain --repro`, and `race.run` the race on a device. The children of a race and of a script
are started there, by `worker.race` and `repro.outcome`.
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
"""Bytes of a child's output that are kept from its beginning, and again from its end."""
_PREFIX = "gluonmap-"
_FOLDER = re.compile(_PREFIX + r"\d+-[a-z0-9_]{8}")
SERVER_GRACE_S = 20.0
"""A server that sends nothing for so long after a deadline counts as stopped."""
Tag = TypeVar("Tag")


@dataclass(frozen=True, slots=True)
class Ending:
    """Ending of one child: its wait status and everything that it left behind."""

    status: int
    hung: bool
    seconds: float
    progress: Progress
    evidence: Evidence | None
    stdout: str
    stderr: str
    lost: bool = False
    """The server died, with the child or without it."""
    compiled: Evidence | None = None
    """Result of the compile, written before the child went to a device."""


class Server:
    """A fork server and the socket to it."""

    def __init__(self, channel: Any, process: subprocess.Popen[bytes] | None) -> None:
        self.channel = channel
        self.process = process

    def send(self, request: Request) -> None:
        self.channel.send_bytes(msgspec.json.encode(request))

    def receive(self, patience_s: float) -> Notice:
        """Return the next notice.

        Raises:
            EOFError: the server is gone, or sent nothing for `patience_s`.
        """
        if not self.channel.poll(patience_s):
            raise EOFError
        return msgspec.json.decode(self.channel.recv_bytes(), type=Notice)


class Isolation:
    """A base server and its warm forks, with a folder of temporary files; none of them outlives the `with` block."""

    def __init__(self, *, jobs: int, hash_seed: str = "0", modules: Sequence[str] = ()) -> None:
        """`modules` are imported by the base server where they are installed: torch, to execute candidates."""
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
        # The path of a Unix socket has 107 bytes at most (sockaddr_un); a long TMPDIR alone can exceed that.
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
        """Return the base server; start it if it does not run.

        Raises:
            OracleFault: it does not start; the last line of its log is in the message.
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
        """Fork a server that imports the job's kernel and compiles its candidate; return whether it is ready."""
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
        """Yield the endings of all jobs as they end; at most `at_once` (default: `jobs`) run together.

        The next job is fetched when there is room for it. A job that is None means: fetch no job before another
        ending is known. Closing the iterator ends the children that still run.
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
                    # While children wait for a device, another child has it and its device deadline runs.
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
        """Run one job alone on the base server, and return its ending."""
        ((_, ending),) = self.run([(None, job)], limits)
        return ending

    def _server(self, warm: object) -> Server:
        return self._warm[warm] if warm in self._warm else self.base()

    def _forget(self, warm: object) -> None:
        """Drop a server that is gone or silent; the next job starts another. A warm server dies with its base."""
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
    """Return the program text of the base server; it imports gluonmap from where this process has it."""
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
    path.unlink(missing_ok=True)  # a socket of a server that died
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    listener.settimeout(0.02)
    return listener


def _accept(listener: socket.socket, alive: Any) -> Any:
    """Return the channel to the server that connects to `listener` and is ready; None: it died or was too late."""
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
    """Return the beginning and the end of a file that may be huge and need not be text."""
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
            continue  # a folder with a similar name, or another user's
        with contextlib.suppress(OSError):
            held = _locked(lock)
            if held is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def _locked(path: Path) -> int | None:
    """Lock a file; return its descriptor, or None where another process holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
