"""When a knob changes the program at all: pairs of passing configurations that differ in one knob, by their digests."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gluonmap.acquire.atoms import Atom
from gluonmap.acquire.evidence import PASSED, Evidence
from gluonmap.acquire.plan import Row
from gluonmap.acquire.region import Model
from gluonmap.acquire.space import Mask, Rows, Space
from gluonmap.acquire.universe import Universe
from gluonmap.joint import Inertness, ValueClasses
from gluonmap.relation import words
from gluonmap.terms import Relation

WANTED_PAIRS = 5
"""Neighbours of a knob, below which one more is asked for."""
LEAST_SUPPORT = 3
"""Neighbours on each side, below which a condition may be chance."""
WANTED_WHERE_MIXED = 12
"""The same for a knob that changes the program sometimes: so many tell when."""


@dataclass(frozen=True)
class Neighbours:
    """Two passing configurations that differ in one knob only."""

    column: int
    first: Row
    second: Row
    same: bool
    """They are one program."""


def neighbours(evidence: Evidence) -> list[Neighbours]:
    """All pairs among what was asked and passed with a digest."""
    passed = [i for i in np.flatnonzero(evidence.labels == PASSED) if evidence.answers[i].digest]
    rows = [tuple(evidence.rows[i].tolist()) for i in passed]
    digests = [evidence.answers[i].digest for i in passed]
    found = []
    for column in range(len(evidence.space.names)):
        groups: dict[Row, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            groups[(*row[:column], *row[column + 1 :])].append(place)
        for places in groups.values():
            found += [
                Neighbours(column, rows[i], rows[j], digests[i] == digests[j])
                for i, j in itertools.combinations(places, 2)
            ]
    return found


def wanted(evidence: Evidence, model: Model, universe: Universe, random: np.random.Generator, most: int) -> list[Row]:
    """Configurations, predicted to pass, that lie beside one that passed: for knobs with few such pairs."""
    passed = evidence.rows[evidence.labels == PASSED]
    if not len(passed) or not any(answer.digest for answer in evidence.answers):
        return []
    compared: list[list[Neighbours]] = [[] for _ in evidence.space.names]
    for pair in neighbours(evidence):
        compared[pair.column].append(pair)
    chosen: list[Row] = []
    for column, pairs in sorted(enumerate(compared), key=lambda item: len(item[1])):
        candidates = _beside(passed, column, evidence.space, random)
        candidates = candidates[universe.contains(candidates) & ~model.fails(candidates)]
        fresh = [row for row in map(tuple, candidates.tolist()) if row not in evidence and row not in chosen]
        mixed = len({pair.same for pair in pairs}) > 1
        met = {cell for pair in pairs for cell in enumerate(pair.first)}
        for _ in range((WANTED_WHERE_MIXED if mixed else WANTED_PAIRS) - len(pairs)):
            if not fresh:
                break
            best = max(fresh, key=lambda row: len(set(enumerate(row)) - met))  # in contexts not met before
            fresh.remove(best)
            met |= set(enumerate(best))
            chosen.append(best)
    return chosen[:most]


def _beside(passed: Rows, column: int, space: Space, random: np.random.Generator) -> Rows:
    rows = passed[random.permutation(len(passed))[:60]].copy()
    step = random.integers(1, space.sizes[column], len(rows))
    rows[:, column] = (rows[:, column] + step) % space.sizes[column]
    return rows


def value_classes(space: Space, pairs: Iterable[Neighbours]) -> list[ValueClasses]:
    """Values that gave one program wherever two of them were compared; at least one comparison each."""
    compared: dict[tuple[int, int, int], list[bool]] = defaultdict(list)
    for pair in pairs:
        low, high = sorted((pair.first[pair.column], pair.second[pair.column]))
        compared[pair.column, low, high].append(pair.same)
    found = []
    for column, name in enumerate(space.names):
        classes = _classes(space.sizes[column], {(i, j): all(v) for (c, i, j), v in compared.items() if c == column})
        if any(len(group) > 1 for group in classes):
            domain = space.domains[column]
            found.append(ValueClasses(name, tuple(tuple(domain[i] for i in group) for group in classes)))
    return found


def conditional_classes(evidence: Evidence, pairs: Sequence[Neighbours]) -> list[ValueClasses]:
    """Two values that are one program in some contexts and two in others, with the condition that tells which."""
    space = evidence.space
    compared: dict[tuple[int, int, int], list[Neighbours]] = defaultdict(list)
    for pair in pairs:
        low, high = sorted((pair.first[pair.column], pair.second[pair.column]))
        compared[pair.column, low, high].append(pair)
    idle = _idle(evidence, pairs)
    found: dict[tuple[int, Relation], dict[tuple[int, int], bool]] = defaultdict(dict)
    for (column, low, high), mine in sorted(compared.items()):
        same, changed = [p for p in mine if p.same], [p for p in mine if not p.same]
        where = _shortest_condition(evidence, {column, *idle}, same, changed)
        if where is not None:
            found[column, where][low, high] = True
    result = []
    for (column, where), together in found.items():
        domain = space.domains[column]
        groups = [group for group in _classes(space.sizes[column], together) if len(group) > 1]
        classes = tuple(tuple(domain[i] for i in group) for group in groups)
        result.append(ValueClasses(space.names[column], classes, words(where), where))
    return result


def _classes(size: int, same: dict[tuple[int, int], bool]) -> list[list[int]]:
    classes: list[list[int]] = []
    for value in range(size):
        home = next((g for g in classes if _joins(value, g, same)), None)
        if home is None:
            classes.append([value])
        else:
            home.append(value)
    return classes


def _joins(value: int, group: list[int], same: dict[tuple[int, int], bool]) -> bool:
    known = [
        same[min(value, other), max(value, other)] for other in group if (min(value, other), max(value, other)) in same
    ]
    return bool(known) and all(known)


def inertness(evidence: Evidence, pairs: list[Neighbours], classes: list[ValueClasses]) -> list[Inertness]:
    """For each knob that was compared: when it changes the program."""
    space = evidence.space
    merged = {item.knob: item.classes for item in classes}
    idle = _idle(evidence, pairs)
    found = []
    for column, name in enumerate(space.names):
        mine = [pair for pair in pairs if pair.column == column]
        if not mine:
            continue
        changed = [pair for pair in mine if not pair.same]
        same = [pair for pair in mine if pair.same]
        whole = any(len(group) == space.sizes[column] for group in merged.get(name, ()))
        apart = same if whole else [pair for pair in same if not _in_one_class(space, pair, merged.get(name, ()))]
        condition, text, relation = _condition(evidence, column, idle, changed, apart)
        found.append(Inertness(name, condition, text, len(changed), len(same), relation))
    return found


def _in_one_class(space: Space, pair: Neighbours, classes: tuple[tuple[object, ...], ...]) -> bool:
    domain = space.domains[pair.column]
    values = {domain[pair.first[pair.column]], domain[pair.second[pair.column]]}
    return any(values <= set(group) for group in classes)


def _idle(evidence: Evidence, pairs: Iterable[Neighbours]) -> set[int]:
    """Columns of knobs that never changed a program: nothing depends on them."""
    return set(range(len(evidence.space.names))) - {pair.column for pair in pairs if not pair.same}


def _condition(
    evidence: Evidence, column: int, idle: set[int], changed: list[Neighbours], same: list[Neighbours]
) -> tuple[str, str, Relation | None]:
    name = evidence.space.names[column]
    if not changed:
        return "", f"{name} changed nothing in {len(same)} comparisons", None
    if not same:
        return "always", f"{name} changes the program", None
    best = _shortest_condition(evidence, {column, *idle}, changed, same)
    if best is None:
        text = f"{name} matters in {len(changed)} of {len(changed) + len(same)} comparisons; nothing tells when"
        return "sometimes", text, None
    return words(best), f"{name} matters only if {words(best)}", best


def _rows(pairs: Sequence[Neighbours]) -> Rows:
    return np.array([pair.first for pair in pairs], np.int16)


def _shortest_condition(
    evidence: Evidence, without: set[int], where: Sequence[Neighbours], elsewhere: Sequence[Neighbours]
) -> Relation | None:
    """The shortest predicate that holds in all pairs of the one kind and in none of the other; None: nothing tells.

    It reads no knob of the columns `without`. A handful of pairs proves nothing: some predicate always fits them.
    """
    if min(len(where), len(elsewhere)) < LEAST_SUPPORT:
        return None
    predicates = evidence.predicates
    allowed: Mask = np.array([without.isdisjoint(item.columns) for item in predicates.items], bool)
    negated = ~predicates.truth(_rows(where)).any(1) & predicates.truth(_rows(elsewhere)).all(1) & allowed
    places = np.flatnonzero(negated)
    if not len(places):
        return None
    item = predicates.items[int(places[predicates.bits[places].argmin()])]
    return Atom((item.part,), item.bits).relation()
