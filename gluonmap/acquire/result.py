"""What was learned: constraints in words with their evidence, the certificate, coverage, and what each knob needs."""

from __future__ import annotations

import msgspec

from gluonmap.acquire.answers import Answer
from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Certificate, Constraint, CoverageCount, Inertness, Unstable, ValueClasses


class AnsweredQuestion(msgspec.Struct, frozen=True):
    """One question, why it was asked, and the answer."""

    config: Config
    kind: str
    """baseline, doubt, cover2, cover3, repair, repair2, border, validate, again, enumerate, inertness."""
    answer: Answer


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The feasible region as far as it was learned."""

    domains: dict[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]
    asked: tuple[AnsweredQuestion, ...]
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
