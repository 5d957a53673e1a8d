"""Learning the joint constraints of a space from few questions to an oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gluonmap.acquire.answers import Answer, Oracle
from gluonmap.acquire.explain import finish
from gluonmap.acquire.learner import Learner, Progress, Settings
from gluonmap.acquire.region import ReadRule, stated_atom
from gluonmap.acquire.result import Learned
from gluonmap.acquire.space import Space, space_of
from gluonmap.acquire.universe import Universe
from gluonmap.model import Config, LiteralRule, Value
from gluonmap.relation import scope_of
from gluonmap.terms import Relation, Written

__all__ = ["Answer", "Learned", "Oracle", "Progress", "learn"]


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
    batch: int = 2,
    only: Sequence[Config] | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Learned:
    """Return the feasible region of `space` (ordered domains), as far as it was learned from `oracle`.

    `given` are restrictions: what violates one is never asked. `read` are demands read from the source: believed until
    a pass contradicts them, and confirmed by probing. `budget` bounds the questions for learning, `validate` those for
    the certificate. `only`: the configurations that may be asked at all, where that is not the whole product.
    """
    settings = Settings(budget, validate, confidence, seed, batch)
    domain_space = space_of(space)
    relations = [Written(item) if isinstance(item, str) else item for item in given]
    found = [stated_atom(domain_space, relation, 1.0) for relation in relations]
    random = np.random.default_rng(seed + 1)
    universe = Universe(domain_space, [atom for atom in found if atom], _listed(domain_space, only), random)
    learner = Learner(oracle, domain_space, universe, _rules(domain_space, read), settings, watch)
    learner.run(None if baseline is None else domain_space.encode(baseline))
    return finish(learner, relations, read)


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
