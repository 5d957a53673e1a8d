"""What is known of all knobs together, as frozen data: constraints, conditions, the certificate, the programs."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gluonmap.model.candidate import Config, Value
from gluonmap.model.relations import Relation
from gluonmap.model.verdict import Check, Figures, Resources, Timing


class Standing(StrEnum):
    """Where a constraint comes from."""

    GIVEN = "given"
    READ = "read"
    LEARNED = "learned"
    IMPLIED = "implied"
    """It follows from the others; kept because a failure names it."""
    EXECUTED = "executed"
    """Values that failed when they were executed, or that change the result: no compile says so. Of no map's own
    constraints: it is read from single values, see `query.feasibility.execution_constraints`."""

    @property
    def binding(self) -> bool:
        """No compile can change it, so it holds whatever a compile says."""
        return self in (Standing.GIVEN, Standing.EXECUTED)


class Constraint(msgspec.Struct, frozen=True, omit_defaults=True):
    """One relation that a feasible configuration meets."""

    relation: Relation
    words: str
    scope: tuple[str, ...]
    standing: Standing
    reason: str = ""
    line: str = ""
    """Where the kernel demands it: "file.py:112"."""
    stage: str = ""
    outcome: str = ""
    failed: int = 0
    """Asked configurations that violate it and failed for its reason."""
    passed: int = 0
    """Asked configurations that meet it and got past its reason."""
    alternatives: tuple[str, ...] = ()
    """Relations that say the same on every configuration that the other constraints allow."""
    confirmed: bool = True
    """Some asked configuration violates it, and failed."""
    failing_example: Config = {}
    """One that violates it and failed, and beside it, as near as any that was asked, one that passed."""
    passing_example: Config = {}


class CoverageCount(msgspec.Struct, frozen=True):
    """Of the combinations that the model holds for possible: how many were seen passing."""

    order: int
    seen: int
    possible: int
    """Found among the feasible configurations that were looked at."""


MOST_ERROR = 0.5
"""A greater bound on the share of mistakes is not told: too few were drawn."""


class StratumCertificate(msgspec.Struct, frozen=True):
    """What the draws from one stratum prove."""

    name: str
    draws: int
    """Independent uniform draws in a row that the frozen model was right on."""
    fresh: int
    """Of them, asked for this; the others were known already."""
    size: int | None
    """Configurations in the stratum; None where they were not counted."""
    complete: bool
    """Every configuration of the stratum was asked: nothing is left to prove."""
    error_bound: float
    """With the certificate's confidence, at most this share of the stratum is mistaken."""

    @property
    def telling(self) -> bool:
        """The bound says something: that as many as all or half of the predictions may be mistaken is no news."""
        return self.complete or (self.draws > 0 and self.error_bound <= MOST_ERROR)


class Certificate(msgspec.Struct, frozen=True):
    """Three strata, with their counts, and what they do not say."""

    confidence: float
    restarts: int
    """Times a surprise changed the model and the draws began anew, the first start included."""
    strata: tuple[StratumCertificate, ...]
    statements: tuple[str, ...]


UNCOMPARED = "not compared everywhere"
"""The condition of a knob that changed nothing, but was not compared in every context: it is no relation."""


class Inertness(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a knob changes the program at all."""

    knob: str
    condition: str
    """ "" where it never did; else what must hold for the knob to matter, or "always", "sometimes", or `UNCOMPARED`."""
    words: str
    changed: int
    """Neighbours that differ in this knob only and in their program."""
    same: int
    """Neighbours that differ in this knob only and have one program."""
    relation: Relation | None = None
    """The condition, where it is one: the knob matters only where this holds."""

    @property
    def uncompared(self) -> bool:
        """It changed nothing where it was compared, and elsewhere it was not: that is no reason to say it matters."""
        return self.condition == UNCOMPARED


class ValueClasses(msgspec.Struct, frozen=True, omit_defaults=True):
    """Values of a knob that gave one program wherever two of them were compared."""

    knob: str
    classes: tuple[tuple[Value, ...], ...]
    where: str = ""
    """The condition under which they do; empty: in every context that was tried."""
    relation: Relation | None = None
    """The same condition; None: everywhere."""


class Unstable(msgspec.Struct, frozen=True):
    """A configuration that was answered in two ways: reported, never fitted."""

    config: Config
    outcomes: tuple[str, ...]


class Tried(msgspec.Struct, frozen=True, omit_defaults=True):
    """One configuration that was asked, and what came of it."""

    values: tuple[Value, ...]
    """In the order of the domains."""
    outcome: str
    """An `Outcome`, or "unknown" where no answer could be had."""
    why: str
    """Why it was asked: baseline, known, doubt, cover2, cover3, repair, repair2, border, validate, enumerate, …"""
    digest: str = ""
    """Of the program and of its launch: grid and arguments, where these depend on a knob."""
    reason: str = ""
    line: str = ""
    stage: str = ""


class Verified(msgspec.Struct, frozen=True, omit_defaults=True):
    """One distinct program of the reduced space: compiled to machine code, in its own process, and passed."""

    config: Config
    """One configuration that gives it; one value for every knob, in signature order."""
    digest: str
    """Of the program alone."""
    resources: Resources
    grid: tuple[int, ...] | None = None
    same: int = 1
    """Asked configurations that are this very program and launch."""
    check: Check | None = None
    """What a device said of it, where one was asked; it passed there."""
    timing: Timing | None = None
    figures: Figures | None = None
    """What a run on the CPU counted."""
    arguments: str = ""
    """Digest of the run-time arguments, where a knob changes them: another launch of the same program."""


class Refused(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program that compiled, and did not pass on the device: it is not handed over."""

    config: Config
    digest: str
    outcome: str
    stage: str
    kind: str = ""
    reason: str = ""


class Sizes(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much of the signature is left."""

    signature: int
    """Product of the domains."""
    feasible: int | None = None
    """Configurations that meet all constraints; None: too entangled to count."""
    programs: int | None = None
    """Distinct programs and launches among them, counted by the rules that say which values are equal."""
    complete: bool = False
    """Every feasible configuration was compiled: `programs` is a fact, not an inference."""


class Joint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was learned of all knobs together on one target."""

    depth: str
    domains: dict[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]
    sizes: Sizes
    certificate: Certificate
    coverage: tuple[CoverageCount, ...]
    formula: str = ""
    """Bytes of shared memory, where a formula meets all that was reported."""
    inertness: tuple[Inertness, ...] = ()
    value_classes: tuple[ValueClasses, ...] = ()
    programs: tuple[Verified, ...] = ()
    """The reduced space as far as it was compiled: each entry passed, and no two are one program and launch."""
    refused: tuple[Refused, ...] = ()
    """Programs that a device was asked about and that did not pass there."""
    tried: tuple[Tried, ...] = ()
    """In the order asked."""
    learning: int = 0
    """Questions asked to learn, and to certify; those that the one-at-a-time screen had answered count nowhere."""
    validating: int = 0
    unstable: tuple[Unstable, ...] = ()
    unknown: tuple[Config, ...] = ()
    """Configurations without an answer that is evidence (deadline, fault)."""
    enumerated: bool = False
    """Every configuration was asked."""
    stopped: str = ""
    """Why it ended before its time: "interrupted", "out of time"; empty: it did not."""
    notes: tuple[str, ...] = ()

    @property
    def at_most(self) -> bool:
        """`sizes.programs` is a bound: not all of what the rules leave apart was compiled, so some may be equal."""
        size = self.sizes
        return size.programs is not None and not size.complete and len(self.programs) < size.programs
