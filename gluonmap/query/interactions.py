"""Pairs of interacting knobs, as tables over their values: the feasible share, and the program of each pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from gluonmap.constraints.counting import Elimination, TooEntangled, relation_factor
from gluonmap.constraints.semantics import scope_of
from gluonmap.model.candidate import Config, Value
from gluonmap.model.outcomes import Feasibility, Outcome, is_evidence
from gluonmap.model.relations import Relation
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.feasibility import Judge, complete, domains_of
from gluonmap.query.observations import Observations, observations
from gluonmap.query.reduced_space import reduced_space_of

Shares = npt.NDArray[np.float64]

LEAST_STRENGTH = 1e-9
"""Strength below which an interaction is a rounding error."""


class PairCell(msgspec.Struct, frozen=True):
    """One pair of values."""

    share: float | None
    """Share of the other knobs' combinations that are feasible with the pair, by the constraints. None: not counted."""
    passed: int
    """Asked configurations with the pair that passed."""
    failed: int
    """Asked configurations with the pair that failed, without answers that are no evidence."""


class PairTable(msgspec.Struct, frozen=True):
    """Feasible shares for each pair of values of two knobs that constrain each other."""

    down: str
    across: str
    cells: tuple[tuple[PairCell, ...], ...]
    """One row for each value of `down`, in the order of the domain."""
    strength: float
    """0 to 1: the share of the feasible space that would lie elsewhere if the two knobs were independent."""


class ProgramCell(msgspec.Struct, frozen=True):
    """The program of the baseline with one pair of values."""

    program: int
    """Equal for pairs that are one program and launch, from 0 in order of appearance; -1: unknown, or it fails."""
    asked: bool
    """It was compiled; false: the equivalence rules predict the program, or nothing does."""
    fails: bool = False


class ProgramTable(msgspec.Struct, frozen=True):
    """Programs of each pair of values, all other knobs at the baseline."""

    down: str
    across: str
    cells: tuple[tuple[ProgramCell, ...], ...]
    reason: str
    """Rule by which the two knobs interact, in words."""


def feasible_pairs(space: SpaceMap) -> tuple[PairTable, ...]:
    """Return a table for each two knobs that constrain each other, the strongest interaction first.

    Two knobs constrain each other if one constraint reads both, and their values are not independent over the feasible
    configurations. Without a joint part there are none. If the constraints are too entangled to count, every two knobs
    of one constraint have a table, without shares.
    """
    joint = space.joint
    if joint is None:
        return ()
    found = observations(space)
    domains = domains_of(space)
    relations = [item.relation for item in joint.constraints if scope_of(item.relation) <= domains.keys()]
    scopes = [[name for name in domains if name in scope_of(relation)] for relation in relations]
    place = {name: number for number, name in enumerate(domains)}
    tied = {pair for scope in scopes for pair in itertools.combinations(scope, 2)}
    ordered = sorted(tied, key=lambda pair: (place[pair[0]], place[pair[1]]))
    counts = _counts(domains, relations, [(place[one], place[other]) for one, other in ordered])
    if counts is None:
        return tuple(PairTable(one, other, _cells(found, domains, one, other, None), 0.0) for one, other in ordered)
    whole = math.prod(len(values) for values in domains.values())
    tables = []
    for (one, other), table in zip(ordered, counts, strict=True):
        strength = _strength(table)
        if strength > LEAST_STRENGTH:
            cells = _cells(found, domains, one, other, table * table.size / whole)
            tables.append(PairTable(one, other, cells, strength))
    return tuple(sorted(tables, key=lambda pair: -round(pair.strength, 9)))


def _counts(
    domains: dict[str, tuple[Value, ...]], relations: Iterable[Relation], pairs: Iterable[tuple[int, int]]
) -> list[Shares] | None:
    """Return the number of feasible configurations with each pair of values; None: too entangled to count."""
    names, values = tuple(domains), tuple(domains.values())
    try:
        factors = [relation_factor(names, values, relation) for relation in relations]
        return [Elimination([len(domain) for domain in values], factors, keep=pair).table for pair in pairs]
    except TooEntangled:
        return None


def _strength(table: Shares) -> float:
    total = float(table.sum())
    if not total:
        return 0.0
    apart = np.outer(table.sum(1), table.sum(0)) / total
    return float(np.abs(table - apart).sum() / (2 * total))


def _cells(
    found: Observations, domains: dict[str, tuple[Value, ...]], one: str, other: str, shares: Shares | None
) -> tuple[tuple[PairCell, ...], ...]:
    asked: dict[tuple[str, str, bool], int] = {}
    for item in found.joint:
        if is_evidence(item.outcome):
            key = (repr(item.config[one]), repr(item.config[other]), item.outcome == Outcome.PASS)
            asked[key] = asked.get(key, 0) + 1
    return tuple(
        tuple(
            PairCell(
                None if shares is None else round(float(shares[row, column]), 9),
                asked.get((repr(down), repr(across), True), 0),
                asked.get((repr(down), repr(across), False), 0),
            )
            for column, across in enumerate(domains[other])
        )
        for row, down in enumerate(domains[one])
    )


def program_pairs(space: SpaceMap) -> tuple[ProgramTable, ...]:
    """Return a table for each knob that matters only with certain values of another one."""
    joint = space.joint
    if joint is None:
        return ()
    domains = domains_of(space)
    wanted: dict[tuple[str, str], str] = {}
    rules = [(i.knob, i.relation, i.words) for i in joint.inertness]
    rules += [(c.knob, c.relation, f"values of {c.knob} are one program where {c.where}") for c in joint.value_classes]
    for knob, relation, words in rules:
        scope = scope_of(relation) - {knob} if relation is not None else frozenset()
        for other in (name for name in domains if name in scope):
            wanted.setdefault((knob, other), words)
    if not wanted:
        return ()
    known = _KnownPrograms(space)
    return tuple(
        ProgramTable(one, other, _program_cells(known, domains, one, other), words)
        for (one, other), words in wanted.items()
        if one in domains
    )


class _KnownPrograms:
    """Programs of configurations, as far as the map knows them."""

    def __init__(self, space: SpaceMap) -> None:
        self.space = space
        self.judge = Judge(space)
        self.reduced = reduced_space_of(space)
        self.by_form: dict[str, str] = {}
        for config in self.judge.passing():
            if launch := self.judge.launch_key(config):
                self.by_form.setdefault(repr(self.reduced.canonical(config)), launch)

    def of(self, config: Config) -> tuple[str, bool, bool]:
        """Return the program ("": unknown), whether the configuration was asked, and whether it fails."""
        judgement = self.judge(config)
        if judgement.verdict is Feasibility.INFEASIBLE:
            return "", bool(judgement.outcome), True
        if launch := self.judge.launch_key(config):
            return launch, True, False
        return self.by_form.get(repr(self.reduced.canonical(config)), ""), False, False


def _program_cells(
    known: _KnownPrograms, domains: dict[str, tuple[Value, ...]], one: str, other: str
) -> tuple[tuple[ProgramCell, ...], ...]:
    numbers: dict[str, int] = {}
    rows = []
    for down in domains[one]:
        row = []
        for across in domains[other]:
            launch, asked, fails = known.of(complete(known.space, {one: down, other: across}))
            number = numbers.setdefault(launch, len(numbers)) if launch else -1
            row.append(ProgramCell(number, asked, fails))
        rows.append(tuple(row))
    return tuple(rows)
