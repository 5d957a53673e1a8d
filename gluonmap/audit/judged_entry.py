"""One entry with the verdict on it."""

from __future__ import annotations

import msgspec

from gluonmap.audit.bound_entries import BoundEntry
from gluonmap.audit.findings import CheckedEntry
from gluonmap.model.candidate import Config
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.verdict import Resources


class JudgedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry with the verdict on it and the evidence."""

    bound: BoundEntry
    verdict: Feasibility
    basis: str
    """Source of the verdict, as in `findings.CheckedEntry`."""
    config: Config = {}
    """A value for every knob of the map."""
    outcome: str = "unknown"
    how: str = ""
    """Signal, exception class, "budget" or "deadline"."""
    reason: str = ""
    at: str = ""
    """The place of the failure in the kernel's source: "file.py:112"."""
    digest: str = ""
    resources: Resources | None = None
    launch: str = ""
    """Equal for entries of one program, grid and arguments; empty: unknown."""
    because: tuple[str, ...] = ()
    """The constraints that forbid the entry, in words."""
    repeat: str = ""
    """Command that compiles the entry again."""
    blame: tuple[str, ...] = ()
    """The fewest keys found whose values make the entry fail."""
    blamed: str = ""
    """The evidence for `blame`, in a sentence."""

    def checked(self) -> CheckedEntry:
        """Return the entry as it is reported."""
        entry = self.bound.entry
        return CheckedEntry(
            file=entry.file,
            entry=entry.name,
            config=entry.config,
            outcome=self.outcome,
            basis=self.basis,
            line=entry.line,
            reason=self.reason,
            at=self.at,
            digest=self.digest,
            resources=self.resources,
        )
