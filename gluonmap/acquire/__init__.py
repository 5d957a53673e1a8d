"""Learning the joint constraints of a space from few questions to an oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from gluonmap.acquire.answers import Answer, Oracle
from gluonmap.acquire.atoms import Atom
from gluonmap.acquire.learner import Learner, LearningProgress, LearningSettings
from gluonmap.acquire.plan import Row
from gluonmap.acquire.region import ReadRule, stated_atom
from gluonmap.acquire.result import Learned
from gluonmap.acquire.session import Question, Session
from gluonmap.acquire.space import Space, space_of
from gluonmap.acquire.universe import Universe
from gluonmap.constraints.counting import MOST_CELLS
from gluonmap.constraints.semantics import holds, scope_of, words
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.relations import Relation, Written

__all__ = ["Answer", "Learned", "LearningProgress", "Oracle", "Question", "Session", "learn", "start"]


def start(
    space: Mapping[str, Sequence[Value]],
    *,
    baseline: Config | None,
    given: Sequence[str | Relation] = (),
    read: Sequence[LiteralRule] = (),
    known: Iterable[tuple[Config, Answer]] = (),
    budget: int = 300,
    validate: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    deep: bool = False,
    only: Sequence[Config] | None = None,
    watch: Callable[[LearningProgress], None] | None = None,
) -> Session:
    """Return a run over `space` (ordered domains) that waits for its first `next`; it ends if the baseline fails.

    `given` are restrictions: what violates one is never asked. `read` are demands read from the source: believed until
    a pass contradicts them, and confirmed by probing. `known` was answered before: evidence from the start, and no
    question. `budget` bounds the questions for learning, `validate` those for the certificate. Learning ends where
    nothing is left to doubt and to repair, after a few triples of values and borders; with `deep` it goes on with these
    until its budget is used, which finds rare combinations of three. `only`: the configurations that may be asked at
    all, where that is not the whole product.

    Raises:
        UsageError: the baseline lies outside the domains or violates a restriction.
    """
    settings = LearningSettings(budget, validate, confidence, seed, deep, needs_baseline=True)
    return _session(space, baseline, given, read, known, settings, only, watch)


def learn(
    oracle: Oracle,
    space: Mapping[str, Sequence[Value]],
    *,
    baseline: Config | None,
    given: Sequence[str | Relation] = (),
    read: Sequence[LiteralRule] = (),
    budget: int = 300,
    validate: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    deep: bool = False,
    batch: int = 2,
    only: Sequence[Config] | None = None,
    watch: Callable[[LearningProgress], None] | None = None,
) -> Learned:
    """Return the feasible region of `space`, as far as it was learned from `oracle`, asked `batch` at a time.

    As `start`, but where the baseline fails another start is searched. An oracle that remembers its answers must ask
    afresh for a configuration that it is given a second time.
    """
    settings = LearningSettings(budget, validate, confidence, seed, deep)
    session = _session(space, baseline, given, read, (), settings, only, watch)
    while not session.done:
        asked = _some(session, batch)
        for config, answer in zip(asked, oracle(asked), strict=True):
            session.tell(config, answer)
    return session.finish()


def _some(session: Session, count: int) -> list[Config]:
    found: list[Config] = []
    while len(found) < count and (question := session.next()) is not None:
        found.append(question.config)
    return found


def _session(
    space: Mapping[str, Sequence[Value]],
    baseline: Config | None,
    given: Sequence[str | Relation],
    read: Sequence[LiteralRule],
    known: Iterable[tuple[Config, Answer]],
    settings: LearningSettings,
    only: Sequence[Config] | None,
    watch: Callable[[LearningProgress], None] | None,
) -> Session:
    domains = space_of(space)
    relations = [Written(item) if isinstance(item, str) else item for item in given]
    first = None if baseline is None else _first(domains, baseline, relations)
    random = np.random.default_rng(settings.seed + 1)
    universe = Universe(domains, _restrictions(domains, relations), _listed(domains, only), random)
    learner = Learner(domains, universe, _rules(domains, read), settings, watch)
    for config, answer in known:
        row = _inside(domains, config)
        if row is not None:
            learner.take(row, answer)
    return Session(learner, first, relations, read)


def _first(space: Space, baseline: Config, given: Sequence[Relation]) -> Row:
    """The row of the baseline."""
    row = _inside(space, baseline)
    if row is None:
        domains = {**dict(zip(space.names, space.domains, strict=True)), **{n: (v,) for n, v in space.fixed.items()}}
        odd = [name for name in domains if name not in baseline or baseline[name] not in domains[name]]
        told = "; ".join(f"{name} = {baseline.get(name)!r} is none of {list(domains[name])}" for name in odd)
        raise UsageError(f"The baseline lies outside the domains: {told}. Add the value with --domain.")
    for relation in given:
        if not holds(relation, space.decode(row)):
            values = ", ".join(f"{name} = {baseline[name]}" for name in sorted(scope_of(relation)) if name in baseline)
            raise UsageError(
                f"The baseline violates the restriction {words(relation)} ({values}). Learning starts from a "
                "configuration that may be asked: change the restriction, or the baseline with --set."
            )
    return row


def _inside(space: Space, config: Config) -> Row | None:
    """The row of a configuration; None where it lies outside the domains."""
    if any(name not in config or config[name] != value for name, value in space.fixed.items()):
        return None
    try:
        return space.encode(config)
    except (KeyError, ValueError):
        return None


def _restrictions(space: Space, given: Sequence[Relation]) -> list[Atom]:
    found = []
    for relation in given:
        widths = [space.sizes[space.names.index(name)] for name in scope_of(relation) if name in space.names]
        if math.prod(widths) > MOST_CELLS:
            raise UsageError(
                f"The restriction {words(relation)} reads {len(widths)} knobs with {math.prod(widths):,} combinations; "
                f"at most {MOST_CELLS:,} can be kept to. Split it, or give fewer values with --domain."
            )
        atom = stated_atom(space, relation, 1.0)
        found += [atom] if atom is not None else []
    return found


def _listed(space: Space, only: Sequence[Config] | None) -> np.ndarray[tuple[int, int], np.dtype[np.int16]] | None:
    if only is None:
        return None
    return np.array([space.encode(config) for config in only], np.int16).reshape(len(only), -1)


def _rules(space: Space, read: Sequence[LiteralRule]) -> list[ReadRule]:
    """Demands that say something about open knobs; those that nothing of the space violates say nothing."""
    known = {*space.names, *space.fixed}
    found = []
    for rule in read:
        relation = Written(rule.expression)
        if not scope_of(relation) or not scope_of(relation) <= known:
            continue
        atom = stated_atom(space, relation, 3.0)
        if atom is not None:
            found.append(ReadRule(atom, rule.text))
    return found
