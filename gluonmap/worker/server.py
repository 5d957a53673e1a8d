"""The fork server. It imports Triton once, then forks one process per candidate.

A server never compiles a candidate itself, so an abort costs one child. A *warm* server is a fork of the base server
that has also imported the kernel and compiled the baseline, after a child has shown that both are safe. Its children
skip parsing and hashing every reachable jit function. It holds no GPU context.

Run as `python -m gluonmap.worker.server ADDRESS`; ADDRESS is a socket in a folder that only this user can enter.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import multiprocess
from multiprocess.connection import Client, wait

from gluonmap.worker import jobs, preload, progress
from gluonmap.worker.protocol import Job, Limits, Notice, Request

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
NO_ANSWER = 99
"""Exit status of a child in which the tool itself failed: a fault, never a verdict."""
MAX_FILE_BYTES = 1 << 30
GENERATIONS = 8
LOOK_S = 0.5
"""Seconds between two looks of a server at children that are on a device or wait for one."""

_fork = multiprocess.get_context("fork")
_libc = ctypes.CDLL(None, use_errno=True)


class _Child:
    """A running child: its process, its limits, and its slot of shared memory."""

    def __init__(self, process: Any, limits: Limits, slot: progress.Slot, *, for_device: bool) -> None:
        self.process = process
        self.pidfd = os.pidfd_open(process.pid)
        self.started = time.monotonic()
        self.limits = limits
        self.slot = slot
        self.for_device = for_device
        self.hung = False

    def left_s(self) -> float:
        """Return the seconds until the server must look at this child again."""
        deadline = self.slot.deadline(self.started, self.limits.deadline_s, self.limits.device_deadline_s)
        left = LOOK_S if deadline is None else max(0.0, deadline - time.monotonic())
        # No message announces that a child got its device. From then on it has another deadline, which may be nearer.
        return min(left, LOOK_S) if self.for_device else left

    def is_late(self) -> bool:
        deadline = self.slot.deadline(self.started, self.limits.deadline_s, self.limits.device_deadline_s)
        return deadline is not None and time.monotonic() >= deadline

    def kill(self) -> None:
        """End the child and everything that it started in its session."""
        for send in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                send(self.process.pid, signal.SIGKILL)


def serve(address: str) -> None:
    """Answer requests until the parent sends "stop" or goes away. Then end all children.

    If the parent went away without "stop" (`kill -9`), its folder of temporary files is removed too.
    """
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    children: dict[str, _Child] = {}
    servers: dict[str, Any] = {}
    orphaned = False
    # Without it a child's first garbage collection touches, and so copies, every page of Python objects (Python 3.11:
    # with it the front end of a passing candidate fell from 63 to 43 ms).
    gc.collect()
    gc.freeze()
    try:
        channel = Client(address, family="AF_UNIX")
        _send(channel, Notice(id=""))
        while True:
            watched = [channel, *(c.pidfd for c in children.values()), *(s.sentinel for s in servers.values())]
            for ready in wait(watched, _patience(children)):
                if ready is channel and not _obey(channel, children, servers):
                    return
            _reap(channel, children, servers)
    except (EOFError, OSError):
        orphaned = True  # the parent is gone: nobody is left to notify
    finally:
        for child in children.values():
            child.kill()
        for server in servers.values():
            with suppress(ProcessLookupError):
                os.kill(server.pid, signal.SIGKILL)
            server.join()
        for _ in range(GENERATIONS):  # children of a killed process become ours in turn
            _bury(set())
        if orphaned:
            shutil.rmtree(os.path.dirname(address), ignore_errors=True)


def _patience(children: dict[str, _Child]) -> float | None:
    """Return the seconds until the next deadline; None while nothing runs."""
    if not children:
        return None
    return min(child.left_s() for child in children.values())


def _send(channel: Any, notice: Notice) -> None:
    channel.send_bytes(msgspec.json.encode(notice))


def _obey(channel: Any, children: dict[str, _Child], servers: dict[str, Any]) -> bool:
    """Carry out one request; return False for "stop"."""
    request = msgspec.json.decode(channel.recv_bytes(), type=Request)
    match request.op:
        case "spawn":
            assert request.job and request.limits
            try:
                slot = progress.Slot()
                arguments = (channel, slot, request.folder, request.job, request.limits)
                process = _fork.Process(target=_candidate, args=arguments)
                process.start()
                for_device = request.job.bench is not None
                children[request.id] = _Child(process, request.limits, slot, for_device=for_device)
            except OSError as error:  # too many processes or descriptors: report a fault and go on
                print(f"cannot start a candidate: {error}", file=sys.stderr, flush=True)
                _send(channel, Notice(request.id, NO_ANSWER))
        case "warm":
            process = _fork.Process(target=_warm, args=(channel, request))
            process.start()
            servers[request.folder] = process
        case "cancel":
            if child := children.get(request.id):
                child.kill()
        case _:
            return False
    return True


def _reap(channel: Any, children: dict[str, _Child], servers: dict[str, Any]) -> None:
    """Report the children that have ended, and end those that are past their deadline."""
    for id_, child in list(children.items()):
        status = child.process.exitcode
        if status is None:
            if not child.is_late():
                continue
            child.hung = True
            child.kill()
            child.process.join()
            status = child.process.exitcode
        seconds = time.monotonic() - child.started
        child.kill()  # processes that it started in its session may outlive it
        os.close(child.pidfd)
        del children[id_]
        _send(channel, Notice(id_, status, child.hung, seconds, child.slot.read()))
    for folder, server in list(servers.items()):
        if server.exitcode is not None:
            say_died(folder)
            del servers[folder]
    _bury({c.process.pid for c in children.values()} | {s.pid for s in servers.values()})


def say_died(folder: str) -> None:
    """Report to the waiting parent that the warm server has failed: create the file `died` in its folder."""
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        open(os.path.join(folder, "died"), "w").close()


def _bury(known: set[int]) -> None:
    """Kill processes that escaped their session. This server is a subreaper and so became their parent."""
    for pid in _children_of_this_process() - known:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children_of_this_process() -> set[int]:
    try:
        return {int(p) for p in Path("/proc/thread-self/children").read_text().split()}
    except OSError:  # a kernel built without CONFIG_PROC_CHILDREN
        return set()


def _candidate(channel: Any, slot: progress.Slot, folder: str, job: Job, limits: Limits) -> None:
    """Run the body of one child. It never returns: exit handlers of the code under test must not run."""
    status = NO_ANSWER
    try:
        channel.close()
        settle(folder, limits, keep_hard=job.bench is not None)
        evidence = jobs.carry_out(job, slot)
        jobs.write_evidence(folder, evidence)
        status = evidence.status
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else 1
    except BaseException:  # a fault: its text goes to the child's stderr, and the status stays NO_ANSWER
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(status & 0xFF)


def settle(folder: str, limits: Limits, *, keep_hard: bool = False) -> None:
    """Give this process its own session, folder, limits and files. It dies with its server.

    `keep_hard`: it may lift the limit on its memory later. A context on a device maps far more than it uses.
    """
    os.setsid()
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _redirect(folder)
    os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")
    use_temporary(folder)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _bound(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
    if limits.memory_bytes:
        _bound(resource.RLIMIT_AS, limits.memory_bytes + _address_space(), keep_hard=keep_hard)


def use_temporary(folder: str) -> None:
    """Make `tempfile` of this process and its children use `folder`, which is removed as a whole."""
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = None  # drops the cached folder: the server may have used `tempfile` before the fork


def _bound(what: int, most: int, *, keep_hard: bool = False) -> None:
    """Lower a limit of this process. A lower limit of the user (`ulimit`) stays."""
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, hard if keep_hard else most))


def _address_space() -> int:
    """Return the bytes of address space that this process has mapped already, mostly libraries."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _redirect(folder: str) -> None:
    """Redirect the descriptors 0, 1 and 2 from the user's terminal to files: unlike a pipe, a file does not fill up."""
    os.makedirs(folder, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, path, how in (
        (0, os.devnull, os.O_RDONLY),
        (1, os.path.join(folder, "stdout"), flags),
        (2, os.path.join(folder, "stderr"), flags),
    ):
        source = os.open(path, how, 0o600)
        os.dup2(source, number)
        if source != number:
            os.close(source)


def _warm(channel: Any, request: Request) -> None:
    """Run the body of a warm server: import the kernel, compile the baseline in this process, then serve."""
    try:
        channel.close()
        assert request.job
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _redirect(request.folder)
        use_temporary(request.folder)
        os.environ["TRITON_CACHE_DIR"] = os.path.join(request.folder, "cache")
        jobs.warm_up(request.job)
        if _has_context():
            raise RuntimeError("the kernel's file opens a context on the GPU at import: no fork of it could open one")
        serve(request.address)
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
            say_died(request.folder)
    finally:
        os._exit(0)


def _has_context() -> bool:
    """Return whether this process has begun to use the GPU through torch."""
    torch: Any = sys.modules.get("torch")
    return bool(torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized() is True)


def main() -> None:
    """Serve at the given address. Modules named after it are imported first, so that candidates find them loaded."""
    address, *modules = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    preload.preload()
    for module in modules:
        with suppress(ImportError):  # a candidate that needs the module reports its absence
            importlib.import_module(module)
    serve(address)


if __name__ == "__main__":
    main()
