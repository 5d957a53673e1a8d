"""What was learned: constraints in words with their evidence, the certificate, coverage, and what each knob needs."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gluonmap.acquire.answers import Answer
from gluonmap.acquire.certificate import Certificate
from gluonmap.acquire.coverage import CoverageCount
from gluonmap.model import Config, Value
from gluonmap.relation import Relation, holds


class Standing(StrEnum):
    """Where a constraint comes from."""

    GIVEN = "given"
    READ = "read"
    LEARNED = "learned"
    IMPLIED = "implied"
    """It follows from the others; kept because a failure names it."""


class Constraint(msgspec.Struct, frozen=True, omit_defaults=True):
    """One relation that a feasible configuration meets."""

    relation: Relation
    words: str
    scope: tuple[str, ...]
    standing: Standing
    reason: str = ""
    line: str = ""
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


class Asked(msgspec.Struct, frozen=True):
    """One question, why it was asked, and the answer."""

    config: Config
    kind: str
    """baseline, doubt, cover2, cover3, repair, repair2, border, validate, again, enumerate, inertness."""
    answer: Answer


class Inertness(msgspec.Struct, frozen=True):
    """When a knob changes the program at all."""

    knob: str
    condition: str
    """ "" where it never did; else what must hold for the knob to matter, or "always"."""
    words: str
    changed: int
    """Neighbours that differ in this knob only and in their program."""
    same: int
    """Neighbours that differ in this knob only and have one program."""


class ValueClasses(msgspec.Struct, frozen=True):
    """Values of a knob that gave one program wherever two of them were compared."""

    knob: str
    classes: tuple[tuple[Value, ...], ...]
    where: str = ""
    """The condition under which they do; empty: in every context that was tried."""


class Unstable(msgspec.Struct, frozen=True):
    """A configuration that was answered in two ways: reported, never fitted."""

    config: Config
    outcomes: tuple[str, ...]


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The feasible region as far as it was learned."""

    domains: dict[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]
    asked: tuple[Asked, ...]
    """In the order asked."""
    before_validation: int
    """Questions before the first that served the certificate."""
    certificate: Certificate
    coverage: tuple[CoverageCount, ...]
    inertness: tuple[Inertness, ...] = ()
    value_classes: tuple[ValueClasses, ...] = ()
    unstable: tuple[Unstable, ...] = ()
    unknown: tuple[Config, ...] = ()
    """Configurations without an answer that is evidence (deadline, fault)."""
    size: int = 0
    """Configurations that could be asked."""
    feasible: int | None = None
    """Of them, those that meet all constraints; None: too entangled to count."""
    enumerated: bool = False
    """Every configuration was asked."""
    formula: str = ""
    """Bytes of shared memory, where a formula meets all that was reported."""
    notes: tuple[str, ...] = ()
    """What a reader should know first, and what to do next."""

    def allows(self, config: Config) -> bool:
        """Whether all constraints are met."""
        return all(holds(item.relation, config) for item in self.constraints)

    def broken_by(self, config: Config) -> tuple[Constraint, ...]:
        """The constraints that a configuration violates."""
        return tuple(item for item in self.constraints if not holds(item.relation, config))
