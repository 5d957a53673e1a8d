"""Learn the joint constraints of a space from few questions to an oracle.

This package decides what to ask and what the answers prove. It compiles nothing and starts no process: the caller
answers. It imports numpy, `constraints` and `model`, and no other package of gluonmap.

Begin with `learner.py` (`Learner.script` is the order of a run). Then read `plan` (the next question), `region` (the
model), `fit` (atoms that explain failures), `doubt` (what is undecided) and `certificate` (what the draws prove).
"""

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
    """Return a session over `space` (ordered domains); it waits for its first `next` and ends if the baseline fails.

    given: restrictions. A configuration that violates one is never asked.
    read: demands read from the source. They hold until a pass contradicts them, and probing confirms them.
    known: answers from before. They are evidence from the start and count as no question.
    budget, validate: most questions for learning, and for the certificate.
    deep: use the whole budget on triples of values and on borders, which finds rare combinations of three values.
        Otherwise learning asks a few of these, and ends when no doubt and no repair is left.
    only: the configurations that may be asked, if that is not the whole product.

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
    """Return the feasible region of `space`, as far as `oracle` reveals it. Questions go out `batch` at a time.

    The arguments are those of `start`. If the baseline fails, the learner searches for another start. An oracle that
    remembers its answers must ask again for a configuration that it gets a second time.
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
    """Return the row of the baseline."""
    row = _inside(space, baseline)
    if row is None:
        domains = {**dict(zip(space.names, space.domains, strict=True)), **{n: (v,) for n, v in space.fixed.items()}}
        odd = [name for name in domains if name not in baseline or baseline[name] not in domains[name]]
        values = "; ".join(f"{name} = {baseline.get(name)!r} is none of {list(domains[name])}" for name in odd)
        raise UsageError(f"The baseline lies outside the domains: {values}. Add the value with --domain.")
    for relation in given:
        if not holds(relation, space.decode(row)):
            values = ", ".join(f"{name} = {baseline[name]}" for name in sorted(scope_of(relation)) if name in baseline)
            raise UsageError(
                f"The baseline violates the restriction {words(relation)} ({values}). Learning starts from a "
                "configuration that may be asked: change the restriction, or the baseline with --set."
            )
    return row


def _inside(space: Space, config: Config) -> Row | None:
    """Return the row of a configuration, or None if it lies outside the domains."""
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
    """Return the demands that constrain open knobs. A demand that no configuration violates is dropped."""
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
