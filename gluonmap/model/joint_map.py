"""All knobs together, as frozen data: constraints, conditions, the certificate, the programs."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gluonmap.model.candidate import Config, Value
from gluonmap.model.relations import Relation
from gluonmap.model.verdict import Check, Figures, Resources, Timing


class Standing(StrEnum):
    """The origin of a constraint."""

    GIVEN = "given"
    READ = "read"
    LEARNED = "learned"
    IMPLIED = "implied"
    """A constraint that follows from the others; a map keeps it because a failure names it."""
    EXECUTED = "executed"
    """A constraint that forbids values that failed when they were executed, or that change the result. A map stores no
    such constraint: `query.feasibility.execution_constraints` makes them from the single values."""

    @property
    def binding(self) -> bool:
        """Return whether the constraint holds even if a compile of a forbidden configuration passes."""
        return self in (Standing.GIVEN, Standing.EXECUTED)


class Constraint(msgspec.Struct, frozen=True, omit_defaults=True):
    """One relation that a feasible configuration meets."""

    relation: Relation
    words: str
    scope: tuple[str, ...]
    standing: Standing
    reason: str = ""
    line: str = ""
    """Place in the kernel that demands it: "file.py:112"."""
    stage: str = ""
    outcome: str = ""
    failed: int = 0
    """Number of asked configurations that violate it and failed for its reason."""
    passed: int = 0
    """Number of asked configurations that meet it and got past its reason."""
    alternatives: tuple[str, ...] = ()
    """Relations that agree with it on every configuration that the other constraints allow."""
    confirmed: bool = True
    """Some asked configuration violates it, and failed."""
    failing_example: Config = {}
    """Asked configuration that violates it and failed; `passing_example` is the nearest one that passed."""
    passing_example: Config = {}


class CoverageCount(msgspec.Struct, frozen=True):
    """The share of the possible combinations of knob values that a passing configuration has shown."""

    order: int
    """Number of knobs in a combination."""
    seen: int
    possible: int
    """Number of combinations among the feasible configurations that were looked at."""


MOST_ERROR = 0.5
"""Reports leave out a greater bound on the share of mistakes: too few configurations were drawn."""


class StratumCertificate(msgspec.Struct, frozen=True):
    """The proof that draws from one stratum give."""

    name: str
    draws: int
    """Number of independent uniform draws in a row on which the frozen model was right."""
    fresh: int
    """Number of these draws that were asked for the certificate; the others were known already."""
    size: int | None
    """Number of configurations in the stratum; None: not counted."""
    complete: bool
    """Every configuration of the stratum was asked, so nothing is left to prove."""
    error_bound: float
    """Largest share of mistaken predictions in the stratum, with the certificate's confidence."""

    @property
    def telling(self) -> bool:
        """Return whether the bound is below one half, or nothing is left to prove."""
        return self.complete or (self.draws > 0 and self.error_bound <= MOST_ERROR)


class Certificate(msgspec.Struct, frozen=True):
    """The bounds on the mistakes of the constraints: three strata, and statements on their limits."""

    confidence: float
    restarts: int
    """Number of starts of the draws: the first one, and one after each surprise that changed the model."""
    strata: tuple[StratumCertificate, ...]
    statements: tuple[str, ...]


UNCOMPARED = "not compared everywhere"
"""Condition of a knob that changed nothing, but was not compared in every context. It is no relation."""


class Inertness(msgspec.Struct, frozen=True, omit_defaults=True):
    """The condition under which a knob changes the program."""

    knob: str
    condition: str
    """The condition in words; "": the knob never changed the program; or "always", "sometimes", or `UNCOMPARED`."""
    words: str
    changed: int
    """Number of pairs of configurations that differ in this knob only, and in their program."""
    same: int
    """Number of pairs of configurations that differ in this knob only, and have one program."""
    relation: Relation | None = None
    """The condition as a relation: the knob matters only where it holds. None: the condition is no relation."""

    @property
    def uncompared(self) -> bool:
        """Return whether the knob changed nothing where it was compared, and was not compared in every context."""
        return self.condition == UNCOMPARED


class ValueClasses(msgspec.Struct, frozen=True, omit_defaults=True):
    """Classes of values of a knob: two values of a class gave one program wherever they were compared."""

    knob: str
    classes: tuple[tuple[Value, ...], ...]
    where: str = ""
    """Condition under which they do; "": in every context that was tried."""
    relation: Relation | None = None
    """The same condition; None: everywhere."""


class Unstable(msgspec.Struct, frozen=True):
    """A configuration with two different answers. It is reported and never fitted."""

    config: Config
    outcomes: tuple[str, ...]


class Tried(msgspec.Struct, frozen=True, omit_defaults=True):
    """One configuration that was asked, and its answer."""

    values: tuple[Value, ...]
    """Values of the knobs, in the order of the domains."""
    outcome: str
    """Name of an `Outcome`, or "unknown" if there was no answer."""
    why: str
    """Cause of the question: baseline, known, doubt, cover2, cover3, repair, repair2, border, validate, enumerate, …"""
    digest: str = ""
    """Digest of the program and of its launch: grid and arguments, if these depend on a knob."""
    reason: str = ""
    line: str = ""
    stage: str = ""


class Verified(msgspec.Struct, frozen=True, omit_defaults=True):
    """One distinct program of the reduced space: compiled to machine code, in its own process, and passed."""

    config: Config
    """One configuration that gives the program: a value for every knob, in signature order."""
    digest: str
    """Digest of the program alone."""
    resources: Resources
    grid: tuple[int, ...] | None = None
    same: int = 1
    """Number of asked configurations with this program and launch."""
    check: Check | None = None
    """Passed comparison of its execution, on a device or on the CPU; None: it was not compared."""
    timing: Timing | None = None
    figures: Figures | None = None
    """Counts of a run on the CPU."""
    arguments: str = ""
    """Digest of the run-time arguments, if a knob changes them: another launch of the same program."""


class Refused(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program that compiled and failed when executed. It is not handed over."""

    config: Config
    digest: str
    outcome: str
    stage: str
    kind: str = ""
    reason: str = ""


class Sizes(msgspec.Struct, frozen=True, omit_defaults=True):
    """The sizes of the space: in the signature, feasible, and distinct."""

    signature: int
    """Number of configurations in the product of the domains."""
    feasible: int | None = None
    """Number of configurations that meet all constraints; None: too entangled to count."""
    programs: int | None = None
    """Number of distinct programs and launches among them, counted by the rules about equal values."""
    complete: bool = False
    """Every feasible configuration was compiled: `programs` is a fact, not an inference."""


class Joint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The knowledge about all knobs together on one target."""

    depth: str
    domains: dict[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]
    sizes: Sizes
    certificate: Certificate
    coverage: tuple[CoverageCount, ...]
    formula: str = ""
    """Formula for the bytes of shared memory, if one meets all reported sizes; "": none does."""
    inertness: tuple[Inertness, ...] = ()
    value_classes: tuple[ValueClasses, ...] = ()
    programs: tuple[Verified, ...] = ()
    """The compiled part of the reduced space: each entry passed, and no two are one program and launch."""
    refused: tuple[Refused, ...] = ()
    """Programs that failed when executed."""
    tried: tuple[Tried, ...] = ()
    """Configurations in the order in which they were asked."""
    learning: int = 0
    """Number of questions that were asked to learn. Answers of the one-at-a-time screen do not count."""
    validating: int = 0
    """Number of questions that were asked to certify, counted in the same way."""
    unstable: tuple[Unstable, ...] = ()
    unknown: tuple[Config, ...] = ()
    """Configurations without an answer that is evidence (deadline, fault)."""
    enumerated: bool = False
    """Every configuration was asked."""
    stopped: str = ""
    """Reason for an early end: "interrupted", "out of time"; "": it was complete."""
    notes: tuple[str, ...] = ()

    @property
    def at_most(self) -> bool:
        """Return whether `sizes.programs` is an upper bound: some programs were not compiled, so some may be equal."""
        size = self.sizes
        return size.programs is not None and not size.complete and len(self.programs) < size.programs
