"""Exceptions that end a run without a verdict on the kernel."""

from __future__ import annotations


class NotExecuted(Exception):
    """An opcode, a modifier or a detail of the ABI is not known for certain. The text names the instruction.

    The results of such a program are unknown, and nothing is guessed.
    """


class BadProgram(ValueError):
    """The text is not the amdgcn assembly of one kernel."""


class BadLaunch(ValueError):
    """The arguments or the grid do not fit the kernel."""


class StepLimit(Exception):
    """The run executed more instructions than the caller allows: a loop may have no end."""
