"""The result of an audit, as frozen data."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from gluonmap.model.candidate import Config
from gluonmap.model.verdict import Resources


class Severity(StrEnum):
    """The weight of a finding. Severities are only ever added."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def rank(self) -> int:
        """Position in the order of severities; 0 is the worst."""
        return list(Severity).index(self)


class FindingKind(StrEnum):
    """The kind of a finding. Kinds are only ever added."""

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


SEVERITY: dict[FindingKind, Severity] = {
    FindingKind.ABORTS: Severity.ERROR,
    FindingKind.REJECTED: Severity.ERROR,
    FindingKind.OVER_BUDGET: Severity.ERROR,
    FindingKind.HUNG: Severity.ERROR,
    FindingKind.ADMITS_INFEASIBLE: Severity.ERROR,
    FindingKind.RULE_FAILS: Severity.ERROR,
    FindingKind.UNKNOWN_KEY: Severity.WARNING,
    FindingKind.SPILLS: Severity.WARNING,
    FindingKind.DUPLICATE: Severity.WARNING,
    FindingKind.INERT_KNOB: Severity.WARNING,
    FindingKind.OVERRIDDEN: Severity.WARNING,
    FindingKind.DROPS_FEASIBLE: Severity.WARNING,
    FindingKind.UNREAD_ENTRY: Severity.WARNING,
    FindingKind.OTHER_TARGET: Severity.WARNING,
    FindingKind.NO_ANSWER: Severity.WARNING,
    FindingKind.REPEATED: Severity.NOTICE,
    FindingKind.EQUAL_VALUE: Severity.NOTICE,
    FindingKind.INERT_HERE: Severity.NOTICE,
    FindingKind.OTHER_TRITON: Severity.NOTICE,
}
"""Kind -> severity of its findings, unless a finding has another one."""


class ShippedPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """The place of an entry, a key or a rule in a shipped file."""

    file: str
    line: int | None = None
    entry: str = ""


class AuditFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One fault, or one setting without effect."""

    kind: FindingKind
    severity: Severity
    text: str
    """One sentence. It may contain untrusted text of compilers and files."""
    places: tuple[ShippedPlace, ...] = ()
    """All places of the finding; CI annotates the first. Empty: the finding is about an option of the command line."""
    details: tuple[str, ...] = ()
    knob: str = ""
    outcome: str = ""
    reason: str = ""
    at: str = ""
    """Line of the failure in the kernel's source: "file.py:112"."""
    repeat: str = ""
    """Command that repeats the compile."""


def new_finding(
    kind: FindingKind, text: str, *places: ShippedPlace, severity: Severity | None = None, **more: Any
) -> AuditFinding:
    """Return a finding of the kind's severity, if no other is given."""
    return AuditFinding(kind, severity or SEVERITY[kind], text, places, **more)


class CheckedEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry and its outcome."""

    file: str
    entry: str
    config: Config
    """The configuration as the file ships it."""
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
    """The mistakes of a rule on the feasible, or on the infeasible, configurations of a map."""

    size: int | None
    """Number of configurations; None: not counted."""
    looked_at: int
    mistaken: int
    """Number of those that the rule gets wrong: feasible ones that it drops, or infeasible ones that it keeps."""


class Counterexample(msgspec.Struct, frozen=True, omit_defaults=True):
    """A configuration that a rule is wrong about."""

    config: Config
    moves: Config
    """Values that differ from the map's baseline."""
    outcome: str
    compiled: bool
    """True: compiled; False: the map predicts the outcome."""
    why: str = ""
    """Constraints that the configuration violates, or the reason of the failure."""
    repeat: str = ""


class CheckedRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A restriction list or a pruning function, judged over a map's space."""

    name: str
    feasible: Tally
    infeasible: Tally
    programs: int | None = None
    """Distinct programs among the feasible ones looked at, by the map's rules of equality; None: not counted."""
    lost: int | None = None
    """Number of programs of which the rule keeps no configuration. Dropping a part of a program costs nothing."""
    strange: int = 0
    """Number of returned configurations that were not in the input."""
    drops: tuple[Counterexample, ...] = ()
    admits: tuple[Counterexample, ...] = ()
    refuted: int = 0
    """Number of counterexamples that a compile refuted: the map is wrong there, not the rule."""


class CheckedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """Numbers of one file's entries."""

    file: str
    form: str
    entries: int
    passed: int
    failed: int
    programs: int
    """Number of distinct launches (program, grid and arguments) among the passing entries."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The audit of one kernel on one target."""

    kernel: str
    file: str
    target: str
    triton: str
    map: str = ""
    """File of the map that judged entries; empty: every entry was compiled."""
    compiled: int = 0
    """Number of candidates compiled now, without answers of earlier runs."""
    files: tuple[CheckedFile, ...] = ()
    entries: tuple[CheckedEntry, ...] = ()
    rules: tuple[CheckedRule, ...] = ()
    findings: tuple[AuditFinding, ...] = ()
    """Findings sorted by severity (the worst first), file and line."""
    notes: tuple[str, ...] = ()

    def count(self, severity: Severity) -> int:
        """Return the number of findings of this severity."""
        return sum(item.severity is severity for item in self.findings)
