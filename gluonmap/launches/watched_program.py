"""A program that runs watched and otherwise unchanged: input, output, signals and exit status are its own."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gluonmap.launches import recorder, records
from gluonmap.model.errors import UsageError
from gluonmap.model.exitcode import signal_name

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that this process passes on. A signal from the terminal reaches the program directly."""


@dataclass(frozen=True)
class Ended:
    """The end of a program, and its launches."""

    status: int
    """Exit status; negative: the number of the signal that ended it."""
    recorded: records.Recorded

    @property
    def code(self) -> int:
        """Exit status in a shell's form, 128 + N after signal N."""
        return self.status if self.status >= 0 else 128 - self.status

    @property
    def how(self) -> str:
        """Name of the signal, or the exit status in words."""
        return signal_name(self.status) or f"exit status {self.status}"


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Ended:
    """Run a command to its end and return how it ended.

    Raises:
        UsageError: the program cannot be started, or records cannot be written.
    """
    inherited = dict(os.environ if environment is None else environment)
    try:
        home = Path(tempfile.mkdtemp(prefix="gluonmap-engaged-"))
        (home / "records").mkdir()
        (home / "hook").mkdir()
        shutil.copyfile(recorder.__file__, home / "hook" / "sitecustomize.py")
    except OSError as error:
        raise UsageError(f"cannot write records to {tempfile.gettempdir()}: {error.strerror}.") from error
    paths = [str(home / "hook"), *([inherited["PYTHONPATH"]] if inherited.get("PYTHONPATH") else [])]
    try:
        status = _run(command, {**inherited, "PYTHONPATH": os.pathsep.join(paths)})
        return Ended(status, records.read(home / "records"))
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}.") from error
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command to its end, pass signals on to it, and return its exit status."""
    waited = {*PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        process = subprocess.Popen(
            list(command),
            env=dict(environment),
            close_fds=False,  # the program keeps files that the user's shell opened for it
            preexec_fn=functools.partial(_unblock, before),
        )
        while (status := process.poll()) is None:
            received = signal.sigwaitinfo(waited)
            if received.si_signo != signal.SIGCHLD and received.si_code <= 0:  # sent by a process, not by the terminal
                process.send_signal(received.si_signo)
        return status
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _unblock(before: set[int | signal.Signals]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
