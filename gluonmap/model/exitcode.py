"""The exit status of a candidate's process, and the outcome that it stands for. Documented for users; only added to.

A status counts only together with complete evidence (a file that the worker renames into place last): `sys.exit(0)`
or `os._exit(10)` in a kernel file is a fault, not a verdict. Signals need no evidence: a dying process cannot lie.
"""

from __future__ import annotations

import signal

from gluonmap.model.verdict import Outcome

PASS = 0
"""It passed up to the stage that was asked for."""
REJECTED_FRONT_END = 10
"""An exception of Triton's front end."""
REJECTED_BACK_END = 11
"""An exception of a compiler pass."""
NO_RESOURCES = 12
"""Over a limit of the hardware, or the compiler over its limit of memory."""
REJECTED_LAUNCH = 13
"""Triton or the driver refused the launch."""
WRONG = 14
"""It ran, and its numbers are not the reference's."""
CRASHED_DEVICE = 15
"""An error on the device: illegal address, misaligned address, illegal instruction."""
UNSAFE = 16
"""Executed on the CPU: it reads or writes what it must not, or before it may."""
ENDLESS = 17
"""Executed on the CPU: it went past the limit of instructions."""
SKIPPED = 20
"""No evidence: no such device, no inputs, or inputs of another specialisation."""
NOT_EXECUTED = 21
"""It compiled, and a run on the CPU came to what its model does not know: no evidence of its numbers."""

OUTCOME_OF_STATUS: dict[int, Outcome] = {
    PASS: Outcome.PASS,
    REJECTED_FRONT_END: Outcome.REJECTED,
    REJECTED_BACK_END: Outcome.REJECTED,
    NO_RESOURCES: Outcome.NO_RESOURCES,
    REJECTED_LAUNCH: Outcome.REJECTED,
    WRONG: Outcome.WRONG,
    CRASHED_DEVICE: Outcome.CRASHED,
    UNSAFE: Outcome.UNSAFE,
    ENDLESS: Outcome.HUNG,
    SKIPPED: Outcome.SKIPPED,
    NOT_EXECUTED: Outcome.NOT_EXECUTED,
}

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
"""Signals that a process draws upon itself. SIGKILL is not among them: the kernel's OOM killer sends it too."""


def signal_name(status: int) -> str:
    """Name of the signal in a negative exit status ("SIGABRT"); "" for any other status."""
    if status >= 0:
        return ""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def crashed(status: int) -> bool:
    """True where the status says that the process died of its own doing."""
    return status < 0 and -status in {int(s) for s in CRASH_SIGNALS}
