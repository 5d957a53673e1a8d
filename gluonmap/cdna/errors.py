"""What ends a run without a verdict on the kernel."""

from __future__ import annotations


class NotExecuted(Exception):
    """An opcode, a modifier or a detail of the ABI that this package does not know for certain. Names the instruction.

    The numbers of such a program are unknown; nothing is guessed.
    """


class BadProgram(ValueError):
    """The text is no amdgcn assembly of one kernel."""


class BadLaunch(ValueError):
    """Arguments or grid do not fit the kernel."""


class StepLimit(Exception):
    """More instructions were executed than the caller allows: a loop that may have no end."""
