"""What an audit finds, as frozen data."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from gluonmap.model.candidate import Config
from gluonmap.model.verdict import Resources


class Severity(StrEnum):
    """How much a finding matters. Only ever added to."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


class Kind(StrEnum):
    """What was found. Only ever added to."""

    ABORTS = "aborts"
    REJECTED = "rejected"
    OVER_BUDGET = "over-budget"
    HUNG = "hung"
    ADMITS_INFEASIBLE = "admits-infeasible"
    RULE_FAILS = "rule-fails"
    UNKNOWN_KEY = "unknown-key"
    SPILLS = "spills"
    DUPLICATE = "duplicate"
    INERT_KNOB = "inert-knob"
    OVERRIDDEN = "overridden"
    DROPS_FEASIBLE = "drops-feasible"
    UNREAD_ENTRY = "unread-entry"
    OTHER_TARGET = "other-target"
    NO_ANSWER = "no-answer"
    REPEATED = "repeated"
    EQUAL_VALUE = "equal-value"
    INERT_HERE = "inert-here"
    OTHER_TRITON = "other-triton"


SEVERITY: dict[Kind, Severity] = {
    Kind.ABORTS: Severity.ERROR,
    Kind.REJECTED: Severity.ERROR,
    Kind.OVER_BUDGET: Severity.ERROR,
    Kind.HUNG: Severity.ERROR,
    Kind.ADMITS_INFEASIBLE: Severity.ERROR,
    Kind.RULE_FAILS: Severity.ERROR,
    Kind.UNKNOWN_KEY: Severity.WARNING,
    Kind.SPILLS: Severity.WARNING,
    Kind.DUPLICATE: Severity.WARNING,
    Kind.INERT_KNOB: Severity.WARNING,
    Kind.OVERRIDDEN: Severity.WARNING,
    Kind.DROPS_FEASIBLE: Severity.WARNING,
    Kind.UNREAD_ENTRY: Severity.WARNING,
    Kind.OTHER_TARGET: Severity.WARNING,
    Kind.NO_ANSWER: Severity.WARNING,
    Kind.REPEATED: Severity.NOTICE,
    Kind.EQUAL_VALUE: Severity.NOTICE,
    Kind.INERT_HERE: Severity.NOTICE,
    Kind.OTHER_TRITON: Severity.NOTICE,
}
"""Of each kind, unless a finding says otherwise."""


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where something is shipped."""

    file: str
    line: int | None = None
    entry: str = ""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong, or that does nothing."""

    kind: Kind
    severity: Severity
    text: str
    """One sentence, with text of compilers and files in it."""
    places: tuple[Place, ...] = ()
    """All that it is about, the first one to annotate. Empty: an option of the command line."""
    details: tuple[str, ...] = ()
    knob: str = ""
    outcome: str = ""
    reason: str = ""
    at: str = ""
    """Where in the kernel's source: "file.py:112"."""
    repeat: str = ""
    """Command that repeats it by hand."""


def found(kind: Kind, text: str, *places: Place, severity: Severity | None = None, **more: Any) -> Finding:
    """Return a finding of the kind's severity, if no other is given."""
    return Finding(kind, severity or SEVERITY[kind], text, places, **more)


class Checked(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry and what became of it."""

    file: str
    entry: str
    config: Config
    """As it is shipped."""
    outcome: str
    """An `Outcome`, or "unknown"."""
    basis: str
    """"compiled" (now, or for an earlier run), "map", "predicted", "pruned" (its own list drops it), "no answer"."""
    line: int | None = None
    reason: str = ""
    at: str = ""
    digest: str = ""
    resources: Resources | None = None


class Tally(msgspec.Struct, frozen=True):
    """How a rule fared on the feasible, or on the infeasible, configurations of a map."""

    size: int | None
    """How many there are; None: not counted."""
    looked_at: int
    mistaken: int
    """Of those looked at: feasible ones that it drops, infeasible ones that it keeps."""


class Example(msgspec.Struct, frozen=True, omit_defaults=True):
    """A configuration that a rule is wrong about."""

    config: Config
    moves: Config
    """Against the map's baseline."""
    outcome: str
    compiled: bool
    """False: predicted by the map."""
    why: str = ""
    """Constraints that it breaks, or how it failed."""
    repeat: str = ""


class RuleChecked(msgspec.Struct, frozen=True, omit_defaults=True):
    """A restriction list or a pruning function, judged over a map's space."""

    name: str
    feasible: Tally
    infeasible: Tally
    programs: int | None = None
    """Distinct programs among the feasible ones looked at, by the map's rules of sameness; None: not counted."""
    lost: int | None = None
    """Of them, those of which it keeps no configuration: to drop the others costs nothing."""
    strange: int = 0
    """Configurations that a function returned and that it was not given."""
    drops: tuple[Example, ...] = ()
    admits: tuple[Example, ...] = ()
    refuted: int = 0
    """Examples that a compile refuted: there the map is wrong, not the rule."""


class FileChecked(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file in numbers."""

    file: str
    form: str
    entries: int
    passed: int
    failed: int
    programs: int
    """Distinct programs and launches among those that passed."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on one target."""

    kernel: str
    file: str
    target: str
    triton: str
    map: str = ""
    """The map that was used; empty: every entry was compiled."""
    compiled: int = 0
    """Candidates compiled now; answers of earlier runs are not among them."""
    files: tuple[FileChecked, ...] = ()
    entries: tuple[Checked, ...] = ()
    rules: tuple[RuleChecked, ...] = ()
    findings: tuple[Finding, ...] = ()
    """The worst first; of one severity by file and line."""
    notes: tuple[str, ...] = ()

    def count(self, severity: Severity) -> int:
        """How many findings are of it."""
        return sum(item.severity is severity for item in self.findings)
