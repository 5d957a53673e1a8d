"""The result of a finished run: constraints in words with their evidence, and what is left open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gluonmap.acquire import statements
from gluonmap.acquire.answers import Answer
from gluonmap.acquire.atoms import Atom, any_fails
from gluonmap.acquire.coverage import count_coverage
from gluonmap.acquire.doubt import atom_of
from gluonmap.acquire.evidence import PASSED, UNKNOWN
from gluonmap.acquire.inert import Sameness
from gluonmap.acquire.learner import Learner
from gluonmap.acquire.result import AnsweredQuestion, Learned
from gluonmap.acquire.space import Rows
from gluonmap.acquire.universe import elimination
from gluonmap.constraints.counting import TooEntangled
from gluonmap.constraints.semantics import as_power_of_two, folded, holds, scope_of, term_words, with_values, words
from gluonmap.model.candidate import Config, Value
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.joint_map import Constraint, Standing, Unstable
from gluonmap.model.relations import Relation, Written

REFERENCE_ROWS = 6_000
"""Configurations on which relations are compared if there are too many to compare on all."""
MOST_ALTERNATIVES = 3
EQUALLY_NATURAL_BITS = 4.0
"""Alternatives longer by more than this are not named."""


def finish(learner: Learner, given: Sequence[Relation], read: Sequence[LiteralRule]) -> Learned:
    """Return the result of a run."""
    space, evidence, formula = learner.space, learner.evidence, learner.model.formula
    pinned = _pinned(learner, given)
    constraints = tuple(_constraints(learner, given, read, pinned))
    sameness = Sameness(evidence, learner.model, learner.universe)
    coverage = tuple(count_coverage(space, evidence.rows[evidence.labels == PASSED], _feasible_rows(learner)))
    size, feasible = learner.universe.size, _feasible_count(learner)
    before = learner.before_validation
    unknown = [i for i, answer in enumerate(evidence.answers) if not answer.known]
    return Learned(
        domains=_domains(learner),
        constraints=constraints,
        asked=tuple(
            AnsweredQuestion(space.decode(record.row), record.kind, record.answer) for record in learner.records
        ),
        before_validation=learner.asked if before is None else before,
        certificate=learner.validation.certificate(statements.structural(learner, coverage)),
        coverage=coverage,
        inertness=tuple(sameness.inertness()),
        value_classes=tuple(sameness.value_classes()),
        unstable=tuple(
            Unstable(space.decode(row), tuple(str(answer.outcome) for answer in answers))
            for row, answers in evidence.unstable.items()
        ),
        unknown=tuple(space.decode(evidence.rows[i].tolist()) for i in unknown),
        size=size,
        feasible=feasible,
        enumerated=learner.enumerated,
        formula="" if formula is None else term_words(with_values(formula.term, pinned)),
        notes=tuple(statements.notes(learner, size, feasible)),
    )


def _domains(learner: Learner) -> dict[str, tuple[Value, ...]]:
    space = learner.space
    fixed: dict[str, tuple[Value, ...]] = {name: (value,) for name, value in space.fixed.items()}
    return {**dict(zip(space.names, space.domains, strict=True)), **fixed}


def _feasible_rows(learner: Learner) -> Rows:
    return (
        learner.universe.valid(learner.model.atoms(), REFERENCE_ROWS)
        if learner.universe.rows is None
        else (learner.universe.rows[~learner.model.fails(learner.universe.rows)])
    )


def _feasible_count(learner: Learner) -> int | None:
    if not (learner.evidence.labels == PASSED).any():
        return 0
    rows = learner.universe.rows
    if rows is not None:
        return int((~learner.model.fails(rows)).sum())
    try:
        return elimination(learner.space, [*learner.universe.given, *learner.model.atoms()]).count
    except TooEntangled:
        return None


# ---- constraints ---------------------------------------------------------------------------------------------------


def _pinned(learner: Learner, given: Sequence[Relation]) -> Config:
    """Return the knobs that have one value left under the constraints that read no other knob."""
    if not (learner.evidence.labels == PASSED).any():  # no pass bounds the atoms: some cannot be put into words
        return {}
    single = [r for r in (*given, *(atom.relation() for atom in learner.model.atoms())) if len(scope_of(r)) == 1]
    found: Config = {}
    for name, domain in _domains(learner).items():
        mine = [relation for relation in single if scope_of(relation) == {name}]
        left = [value for value in domain if all(holds(relation, {name: value}) for relation in mine)]
        if len(left) == 1:
            found[name] = left[0]
    return found


def _constraints(
    learner: Learner, given: Sequence[Relation], read: Sequence[LiteralRule], pinned: Config
) -> list[Constraint]:
    found = [_given(relation) for relation in given]
    if not (learner.evidence.labels == PASSED).any():
        return [*found, Constraint(Written("False"), "no configuration is known to pass", (), Standing.LEARNED)]
    reference = _reference(learner)
    texts = {rule.expression: rule for rule in read}
    named: set[tuple[object, ...]] = set()
    every = [(r, atom) for r, atoms in learner.model.by_reason.items() for atom in atoms]
    for reason, atom in every:
        if atom.parts in named:
            continue
        named.add(atom.parts)
        others = [other for _, other in every if other.parts != atom.parts]
        found.append(_learned(learner, reason, atom, others, reference, texts, pinned))
    for rule in learner.model.read:
        if rule.atom.parts not in named:
            relation = rule.atom.relation()
            source = texts.get(relation.text) if isinstance(relation, Written) else None
            line = f"{source.location.function}+{source.location.line}" if source else ""
            found.append(_stated(relation, rule.text, line))
    return found


def _given(relation: Relation) -> Constraint:
    return Constraint(relation, words(relation), tuple(sorted(scope_of(relation))), Standing.GIVEN)


def _stated(relation: Relation, text: str, line: str) -> Constraint:
    scope = tuple(sorted(scope_of(relation)))
    return Constraint(relation, words(relation), scope, Standing.READ, text, line, confirmed=False)


def _learned(
    learner: Learner,
    reason: int,
    atom: Atom,
    others: Sequence[Atom],
    reference: Rows,
    texts: dict[str, LiteralRule],
    pinned: Config,
) -> Constraint:
    evidence = learner.evidence
    allowed = reference[~any_fails(others, reference)]
    shortest, *equal = _equal_atoms(learner, reason, atom, allowed)
    relation = shortest.relation()
    failed = evidence.positives(reason)
    violating = int(shortest.fails(evidence.rows[failed]).sum())
    example = _example(learner, reason, shortest)
    source = texts.get(relation.text) if isinstance(relation, Written) else None
    domains = _domains(learner)
    named = as_power_of_two(relation, example.reason, domains)
    texts_of = [named] if named else []
    texts_of += [words(folded(each.relation(), pinned)) for each in (shortest, *equal)]
    texts_of = list(dict.fromkeys(texts_of))
    return Constraint(
        relation=relation,
        words=texts_of[0],
        scope=tuple(sorted(scope_of(relation))),
        standing=_standing(source, shortest, allowed),
        reason=example.reason.strip().splitlines()[0] if example.reason.strip() else "",
        line=example.line or (f"{source.location.function}+{source.location.line}" if source else ""),
        stage=example.stage,
        outcome=str(example.outcome),
        failed=violating,
        passed=len(evidence.negatives(reason)),
        alternatives=tuple(texts_of[1 : 1 + MOST_ALTERNATIVES]),
    )


def _standing(source: LiteralRule | None, atom: Atom, allowed: Rows) -> Standing:
    if source is not None:
        return Standing.READ
    return Standing.LEARNED if not len(allowed) or atom.fails(allowed).any() else Standing.IMPLIED


def _example(learner: Learner, reason: int, atom: Atom) -> Answer:
    """Return an answer that the atom explains."""
    evidence = learner.evidence
    places = evidence.positives(reason)
    explained = places[atom.fails(evidence.rows[places])]
    return evidence.answers[int((explained if len(explained) else places)[0])]


def _equal_atoms(learner: Learner, reason: int, atom: Atom, allowed: Rows) -> list[Atom]:
    """Return the shortest atom that forbids the same as `atom` among `allowed`, then others that are nearly as short.

    `allowed` holds the configurations that the other constraints allow.
    """
    if atom.parts and isinstance(atom.relation(), Written):
        return [atom]
    problem = learner.model.problem(reason)
    same = atom.fails(allowed)
    found = [atom]
    for item in learner.model.open_alternatives(reason, atom)[:120]:
        other = atom_of(problem, item)
        if other.parts != atom.parts and np.array_equal(other.fails(allowed), same):
            found.append(other)
    found.sort(key=lambda other: other.bits)
    return [other for other in found if other.bits <= found[0].bits + EQUALLY_NATURAL_BITS]


def _reference(learner: Learner) -> Rows:
    """Return the configurations on which relations are compared: all, or draws near and inside the feasible set."""
    universe = learner.universe
    if universe.rows is not None and len(universe.rows) <= REFERENCE_ROWS:
        return universe.rows
    evidence = learner.evidence
    passing = evidence.rows[evidence.labels == PASSED]
    failing = evidence.rows[(evidence.labels != PASSED) & (evidence.labels != UNKNOWN)]
    return universe.pool(learner.model.groups(), passing, failing)
