"""What was really tried: tuples of values on both sides of a constraint; combinations of one, two and three values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from gluonmap.constraints.semantics import holds, scope_of
from gluonmap.model.candidate import Config, same
from gluonmap.model.joint_map import Constraint, Joint, Standing, Tried
from gluonmap.model.outcomes import Outcome, is_evidence

MOST_TUPLES = 10_000
"""Tuples of a constraint's knobs that are walked."""


class Side(msgspec.Struct, frozen=True):
    """Tuples of values of a constraint's knobs that lie on one side of it."""

    possible: int
    tried: int
    """In some configuration whose answer is evidence: a deadline is none."""
    passed: int
    """In some configuration that passed."""


class Sides(msgspec.Struct, frozen=True):
    """A constraint's tuples: those that meet it, and those that break it."""

    meet: Side
    broken: Side

    @property
    def settled(self) -> bool:
        """Every tuple was tried: those that meet it were all seen passing, of the others none was."""
        return self.meet.passed == self.meet.possible and self.broken.tried == self.broken.possible


class Combinations(msgspec.Struct, frozen=True):
    """Combinations of values of `order` different knobs."""

    order: int
    possible: int
    """In the signature, feasible or not."""
    tried: int
    """In some configuration whose answer is evidence, whatever came of it."""


def sides(joint: Joint, constraint: Constraint) -> Sides | None:
    """Return how many tuples of values of the constraint's own knobs there are on its sides, and how many were tried.

    None where it reads something that is no knob, or has too many tuples to walk.
    """
    scope = scope_of(constraint.relation)
    names = [name for name in joint.domains if name in scope]
    if not names or len(names) < len(scope) or math.prod(len(joint.domains[n]) for n in names) > MOST_TUPLES:
        return None
    places = [place for place, name in enumerate(joint.domains) if name in scope]
    tried: set[tuple[str, ...]] = set()
    passed: set[tuple[str, ...]] = set()
    for item in joint.tried:
        key = tuple(repr(item.values[place]) for place in places)
        if is_evidence(item.outcome):
            tried.add(key)
        if item.outcome == Outcome.PASS:
            passed.add(key)
    found: dict[bool, list[tuple[str, ...]]] = {True: [], False: []}
    for values in itertools.product(*(joint.domains[name] for name in names)):
        met = holds(constraint.relation, dict(zip(names, values, strict=True)))
        found[met].append(tuple(map(repr, values)))
    meet, broken = (
        Side(len(side), sum(key in tried for key in side), sum(key in passed for key in side))
        for side in (found[True], found[False])
    )
    return Sides(meet, broken)


class Seen(msgspec.Struct, frozen=True):
    """A configuration that breaks a constraint and failed, one near it that passed, and what became of the first."""

    failing: Config
    passing: Config
    """Empty: none passed."""
    outcome: str
    stage: str
    reason: str
    line: str


def seen(joint: Joint, constraint: Constraint, near: Config | None = None) -> Seen:
    """Return the constraint's example with the message of that very configuration.

    With `near`, a configuration that breaks it: the example is as like it as any that was asked, above all in the
    constraint's own knobs. One that breaks no other constraint comes first, since the message is then this one's.
    """
    item = constraint
    stored = Seen(item.failing_example, item.passing_example, item.outcome, item.stage, item.reason, item.line)
    failed = [t for t in joint.tried if is_evidence(t.outcome) and t.outcome != Outcome.PASS]
    if near is None:
        entry = next((t for t in failed if _like(_config(joint, t), item.failing_example)), None)
        return stored if entry is None else _seen(entry, stored.failing, stored.passing)
    firm = [other for other in joint.constraints if other.confirmed and other.standing is not Standing.IMPLIED]
    others = [other.relation for other in firm if other is not item]
    scope = scope_of(item.relation)

    def rank(entry: Tried) -> tuple[bool, bool, int]:
        config = _config(joint, entry)
        apart = _apart(config, near)
        return not all(holds(other, config) for other in others), bool(scope & apart), len(apart)

    breaking = [t for t in failed if not holds(item.relation, _config(joint, t))]
    if not breaking:
        return stored
    entry = min(breaking, key=rank)
    failing = _config(joint, entry)
    passing = [_config(joint, t) for t in joint.tried if t.outcome == Outcome.PASS]
    return _seen(entry, failing, min(passing, key=lambda config: len(_apart(failing, config)), default={}))


def _seen(entry: Tried, failing: Config, passing: Config) -> Seen:
    return Seen(failing, passing, entry.outcome, entry.stage, entry.reason, entry.line)


def _config(joint: Joint, entry: Tried) -> Config:
    return dict(zip(joint.domains, entry.values, strict=True))


def _apart(one: Config, other: Config) -> set[str]:
    """The knobs in which two configurations differ, of those that both have."""
    return {name for name, value in one.items() if name in other and not same(value, other[name])}


def _like(one: Config, other: Config) -> bool:
    return bool(other) and not _apart(one, other) and one.keys() <= other.keys()


def combinations(joint: Joint, orders: Iterable[int] = (1, 2, 3)) -> tuple[Combinations, ...]:
    """Return, for each order, how many combinations of values the signature has and how many were tried."""
    answered = [item.values for item in joint.tried if is_evidence(item.outcome)]
    # Each knob's values by number: in deep maps of many knobs there are millions of triples to tell apart.
    columns = [
        np.unique([repr(values[place]) for values in answered], return_inverse=True)[1]
        for place, _ in enumerate(joint.domains)
    ]
    sizes = [len(values) for values in joint.domains.values()]
    found = []
    for order in orders:
        if order > len(sizes):
            break
        groups = list(itertools.combinations(range(len(sizes)), order))
        possible = sum(math.prod(sizes[place] for place in group) for group in groups)
        tried = sum(_distinct([columns[place] for place in group]) for group in groups)
        found.append(Combinations(order, possible, tried))
    return tuple(found)


def _distinct(columns: Sequence[npt.NDArray[np.intp]]) -> int:
    """How many different rows the columns make."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = code * (int(column.max(initial=0)) + 1) + column
    return len(np.unique(code))
