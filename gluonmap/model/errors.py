"""The error tree. Outcomes of candidates are values (`model.Verdict`); what stands here stops a command.

GluonmapError                  exit 3
  Fault errors                 the tool's or the machine's doing
    OracleFault                no answer could be had from the children
    StorageFault               a file could not be written (disk full, no permission)
  UsageError                   exit 2: the user's mistake, with the next step
    UnknownKnob  UnknownTarget  UnknownKernel  NeedsHelp
  Finding                      exit 1: what the command was asked to find
    BaselineError
"""

from __future__ import annotations

from collections.abc import Iterable


class GluonmapError(Exception):
    """Base of all errors that the command line shows without a traceback."""

    exit_code = 3


class OracleFault(GluonmapError):
    """A child or a server ended in a way that is no evidence about the kernel."""


class StorageFault(GluonmapError):
    """A journal, map or report could not be read or written."""


class UsageError(GluonmapError):
    """What the user asked cannot be done as asked."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that is not in a known set; names the set and the closest member."""

    what = "name"

    def __init__(self, owner: str, name: str, known: Iterable[str], hint: str = "", *, otherwise: str = "") -> None:
        members = sorted(known)
        import difflib  # every `gluonmap --help` imports this module

        close = difflib.get_close_matches(name, members, n=1, cutoff=0.5)
        text = f"{owner} has no {self.what} {name!r} (it has {', '.join(members) or 'none'})."
        text += f" Did you mean {close[0]}?" if close else f" {otherwise}" if otherwise else ""
        super().__init__(f"{text} {hint}".rstrip())


class UnknownKnob(UnknownName):
    what = "knob"


class UnknownKernel(UnknownName):
    what = "kernel"


class UnknownTarget(UnknownName):
    what = "target"


class NeedsHelp(UsageError):
    """Something that the source does not tell and that cannot be inferred; names the flag that gives it."""
