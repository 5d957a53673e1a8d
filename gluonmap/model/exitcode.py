"""Exit statuses of a candidate's process. `outcomes` documents each and gives its outcome; they are only added to.

A status counts only together with complete evidence (a file that the worker renames into place last): `sys.exit(0)`
or `os._exit(10)` in a kernel file is a fault, not a verdict. Signals need no evidence: a dying process cannot lie.
"""

from __future__ import annotations

import signal

PASS = 0
REJECTED_FRONT_END = 10
REJECTED_BACK_END = 11
NO_RESOURCES = 12
REJECTED_LAUNCH = 13
WRONG = 14
CRASHED_DEVICE = 15
UNSAFE = 16
ENDLESS = 17
SKIPPED = 20
NOT_EXECUTED = 21

CRASH_SIGNALS = frozenset(
    {
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGSEGV,
        signal.SIGSYS,
    }
)
"""Signals that a process causes itself. SIGKILL is not among them: the kernel's OOM killer sends it too."""


def signal_name(status: int) -> str:
    """Return the name of the signal in a negative exit status ("SIGABRT"); "" for any other status."""
    if status >= 0:
        return ""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def crashed(status: int) -> bool:
    """Return whether the status is a signal that the process caused itself."""
    return status < 0 and -status in {int(s) for s in CRASH_SIGNALS}
