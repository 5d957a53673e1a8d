"""The error tree: exceptions that end a command. Outcomes of candidates are values instead (`model.verdict`).

GluonmapError        exit 3
  Interrupted        exit 130
  OracleFault        exit 3
  StorageFault       exit 3
  UsageError         exit 2
    NeedsHelp        exit 2
    TooEntangled     exit 2
    UnknownName      exit 2
      UnknownKernel  exit 2
      UnknownKnob    exit 2
      UnknownTarget  exit 2

Two of them carry data of other packages and are defined there: `probe.session.Interrupted` and
`constraints.counting.TooEntangled`.
"""

from __future__ import annotations

from collections.abc import Iterable


class GluonmapError(Exception):
    """Base of all errors that the command line shows without a traceback."""

    exit_code = 3


class OracleFault(GluonmapError):
    """The end of a child or of a server that is no evidence about the kernel."""


class StorageFault(GluonmapError):
    """A journal, map or report that could not be read or written."""


class UsageError(GluonmapError):
    """A request that cannot be met as given; the message names the next step."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that is not in a known set; the message names the set and the closest member."""

    what = "name"

    def __init__(self, owner: str, name: str, known: Iterable[str], hint: str = "", *, otherwise: str = "") -> None:
        members = sorted(known)
        import difflib  # every `gluonmap --help` imports this module

        close = difflib.get_close_matches(name, members, n=1, cutoff=0.5)
        text = f"{owner} has no {self.what} {name!r} (it has {', '.join(members) or 'none'})."
        text += f" Did you mean {close[0]}?" if close else f" {otherwise}" if otherwise else ""
        super().__init__(f"{text} {hint}".rstrip())


class UnknownKnob(UnknownName):
    """A knob that the kernel does not have."""

    what = "knob"


class UnknownKernel(UnknownName):
    """A kernel that the file does not have."""

    what = "kernel"


class UnknownTarget(UnknownName):
    """A target that the table does not have."""

    what = "target"


class NeedsHelp(UsageError):
    """A fact that the source does not state and that cannot be inferred; the message names the flag that gives it."""
