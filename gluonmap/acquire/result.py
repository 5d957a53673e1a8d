"""The result of learning: constraints in words with their evidence, certificate, coverage, inertness of the knobs."""

from __future__ import annotations

import msgspec

from gluonmap.acquire.answers import Answer
from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Certificate, Constraint, CoverageCount, Inertness, Unstable, ValueClasses


class AnsweredQuestion(msgspec.Struct, frozen=True):
    """A question, its kind, and the answer."""

    config: Config
    kind: str
    """baseline, doubt, cover2, cover3, repair, repair2, border, validate, again, enumerate, inertness."""
    answer: Answer


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The learned feasible region with its evidence."""

    domains: dict[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]
    asked: tuple[AnsweredQuestion, ...]
    """Questions in the order of the answers."""
    before_validation: int
    """Number of questions before the first that served the certificate."""
    certificate: Certificate
    coverage: tuple[CoverageCount, ...]
    inertness: tuple[Inertness, ...] = ()
    value_classes: tuple[ValueClasses, ...] = ()
    unstable: tuple[Unstable, ...] = ()
    unknown: tuple[Config, ...] = ()
    """Configurations without an answer that is evidence (deadline, fault)."""
    size: int = 0
    """Number of configurations that may be asked."""
    feasible: int | None = None
    """Number of these that meet all constraints; None if the constraints are too entangled to count."""
    enumerated: bool = False
    """Every configuration was asked."""
    formula: str = ""
    """Formula of the bytes of shared memory that matches all reported bytes; "" if none was found."""
    notes: tuple[str, ...] = ()
    """The most important facts for a reader, and the next step."""

    def allows(self, config: Config) -> bool:
        """Return whether a configuration meets all constraints."""
        return all(holds(item.relation, config) for item in self.constraints)

    def broken_by(self, config: Config) -> tuple[Constraint, ...]:
        """Return the constraints that a configuration violates."""
        return tuple(item for item in self.constraints if not holds(item.relation, config))
