"""Coverage by the asked configurations: values on both sides of a constraint, and combinations of values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from gluonmap.constraints.semantics import holds, scope_of
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.joint_map import Constraint, Standing
from gluonmap.model.outcomes import Outcome, is_evidence
from gluonmap.query.observations import Observation, Observations

MOST_TUPLES = 10_000
"""Number of tuples of a constraint's knobs beyond which they are not counted."""


class TupleCount(msgspec.Struct, frozen=True):
    """Tuples of values of a constraint's knobs that lie on one side of it."""

    possible: int
    tried: int
    """Tuples in some configuration whose answer is evidence: a deadline is none."""
    passed: int
    """Tuples in some configuration that passed."""


class ConstraintCoverage(msgspec.Struct, frozen=True):
    """Tuples of values of a constraint's knobs on its two sides."""

    meet: TupleCount
    broken: TupleCount

    @property
    def exhaustive(self) -> bool:
        """Return whether every tuple was tried, and all that meet the constraint were seen passing."""
        return self.meet.passed == self.meet.possible and self.broken.tried == self.broken.possible


class Combinations(msgspec.Struct, frozen=True):
    """Combinations of values of `order` different knobs."""

    order: int
    possible: int
    """Combinations in the signature, feasible or not."""
    tried: int
    """Combinations in some configuration whose answer is evidence, passing or failing."""


class FailureExample(msgspec.Struct, frozen=True):
    """A configuration that breaks a constraint and failed, its message, and a near one that passed."""

    failing: Config
    passing: Config
    """Empty: none passed."""
    outcome: str
    stage: str
    reason: str
    line: str


def constraint_coverage(found: Observations, constraint: Constraint) -> ConstraintCoverage | None:
    """Return the number of tuples of the constraint's knobs on its two sides, and how many of them were tried.

    None if it reads something that is no knob, or has more than `MOST_TUPLES` tuples.
    """
    domains = _domains(found)
    scope = scope_of(constraint.relation)
    names = [name for name in domains if name in scope]
    if not names or len(names) < len(scope) or math.prod(len(domains[n]) for n in names) > MOST_TUPLES:
        return None
    tried: set[tuple[str, ...]] = set()
    passed: set[tuple[str, ...]] = set()
    for item in found.joint:
        key = tuple(repr(item.config[name]) for name in names)
        if is_evidence(item.outcome):
            tried.add(key)
        if item.outcome == Outcome.PASS:
            passed.add(key)
    sides: dict[bool, list[tuple[str, ...]]] = {True: [], False: []}
    for values in itertools.product(*(domains[name] for name in names)):
        met = holds(constraint.relation, dict(zip(names, values, strict=True)))
        sides[met].append(tuple(map(repr, values)))
    meet, broken = (
        TupleCount(len(side), sum(key in tried for key in side), sum(key in passed for key in side))
        for side in (sides[True], sides[False])
    )
    return ConstraintCoverage(meet, broken)


def constraint_example(found: Observations, constraint: Constraint, near: Config | None = None) -> FailureExample:
    """Return the constraint's example with the message of that very configuration.

    `near` is a configuration that breaks the constraint. With it, the example is the asked configuration nearest to
    it, first of all in the constraint's own knobs. Configurations that break no other constraint are preferred, since
    their message is about this constraint.
    """
    item = constraint
    stored = FailureExample(
        item.failing_example, item.passing_example, item.outcome, item.stage, item.reason, item.line
    )
    failed = [t for t in found.joint if is_evidence(t.outcome) and t.outcome != Outcome.PASS]
    if near is None:
        entry = next((t for t in failed if _is_example(found, t, item.failing_example)), None)
        return stored if entry is None else _example(entry, stored.failing, stored.passing)
    constraints = found.space.joint.constraints if found.space.joint else ()
    firm = [other for other in constraints if other.confirmed and other.standing is not Standing.IMPLIED]
    others = [other.relation for other in firm if other is not item]
    scope = scope_of(item.relation)

    def rank(entry: Observation) -> tuple[bool, bool, int]:
        apart = _apart(entry.config, near)
        return not all(holds(other, entry.config) for other in others), bool(scope & apart), len(apart)

    breaking = [t for t in failed if not holds(item.relation, t.config)]
    if not breaking:
        return stored
    entry = min(breaking, key=rank)
    passing = [t.config for t in found.joint if t.outcome == Outcome.PASS]
    nearest = min(passing, key=lambda config: len(_apart(entry.config, config)), default={})
    return _example(entry, entry.config, nearest)


def _example(entry: Observation, failing: Config, passing: Config) -> FailureExample:
    return FailureExample(failing, passing, entry.outcome, entry.stage, entry.reason, entry.place)


def _domains(found: Observations) -> dict[str, tuple[Value, ...]]:
    return found.space.joint.domains if found.space.joint else {}


def _apart(one: Config, other: Config) -> set[str]:
    """Return the knobs in which two configurations differ, of those that both have."""
    return {name for name, value in one.items() if name in other and not same(value, other[name])}


def _is_example(found: Observations, entry: Observation, example: Config) -> bool:
    return bool(example) and not _apart(entry.config, example) and _domains(found).keys() <= example.keys()


def combinations(found: Observations, orders: Iterable[int] = (1, 2, 3)) -> tuple[Combinations, ...]:
    """Return, for each order, how many combinations of values the signature has and how many were tried."""
    domains = _domains(found)
    answered = [item.config for item in found.joint if is_evidence(item.outcome)]
    # Values are compared as numbers, because deep maps of many knobs have millions of triples.
    columns = [np.unique([repr(config[name]) for config in answered], return_inverse=True)[1] for name in domains]
    sizes = [len(values) for values in domains.values()]
    counts = []
    for order in orders:
        if order > len(sizes):
            break
        groups = list(itertools.combinations(range(len(sizes)), order))
        possible = sum(math.prod(sizes[place] for place in group) for group in groups)
        tried = sum(_distinct([columns[place] for place in group]) for group in groups)
        counts.append(Combinations(order, possible, tried))
    return tuple(counts)


def _distinct(columns: Sequence[npt.NDArray[np.intp]]) -> int:
    """Return how many different rows the columns have."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = code * (int(column.max(initial=0)) + 1) + column
    return len(np.unique(code))
