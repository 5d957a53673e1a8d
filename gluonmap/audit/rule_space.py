"""The part of a map that rules are judged on, and the configurations that a function is asked about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gluonmap.audit.findings import Counterexample
from gluonmap.constraints.counting import TooEntangled
from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config, Value
from gluonmap.model.outcomes import Feasibility, Outcome
from gluonmap.model.relations import Relation
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.feasibility import Basis, Judge, domains_of, moves_of
from gluonmap.query.observations import config_key
from gluonmap.query.reduced_space import ReducedSpace, reduced_space


@dataclass(frozen=True)
class ConfigPool:
    """Configurations that a rule is asked about, sorted by the map's verdict."""

    feasible: tuple[Config, ...]
    infeasible: tuple[Config, ...]
    feasible_size: int | None
    """Number of feasible configurations in the space, of which the pool may be a sample; None: unknown."""
    infeasible_size: int | None

    @property
    def configs(self) -> tuple[Config, ...]:
        return (*self.feasible, *self.infeasible)


class RuleSpace:
    """The space of a map that rules are judged on."""

    def __init__(self, space: SpaceMap, judge: Judge, more: Iterable[tuple[Config, str]] = ()) -> None:
        """Take a map and its judge. `more`: complete configurations that the audit compiled, with their outcomes."""
        self.space, self.judge = space, judge
        self.domains = domains_of(space)
        self.more = {config_key(config): (config, outcome) for config, outcome in more}
        given = [c for c in judge.constraints if c.standing.binding]
        self.allowed = [c.relation for c in given]
        """Demands of the kernel's author. Configurations outside them are not part of the space."""
        self.demands = [c.relation for c in judge.constraints if not c.standing.binding]

    def within(self, domains: dict[str, tuple[Value, ...]]) -> RuleSpace:
        """Return the space restricted to these values. Values that the map does not have are ignored."""
        narrowed = RuleSpace(self.space, self.judge, self.more.values())
        for name, values in domains.items():
            wanted = {repr(value) for value in values}
            kept = tuple(value for value in narrowed.domains.get(name, ()) if repr(value) in wanted)
            if kept:
                narrowed.domains[name] = kept
        return narrowed

    def reduced(self, *relations: Relation, feasible: bool = True) -> ReducedSpace:
        joint = self.space.joint
        rules = (joint.inertness, joint.value_classes) if joint else ((), ())
        demands = self.demands if feasible else []
        return reduced_space(self.domains, self.space.baseline, [*self.allowed, *demands, *relations], *rules)

    def known(self) -> list[tuple[Config, bool]]:
        """Return the compiled configurations and whether each passed, those of the fewest moves first."""
        found = {key: (config, outcome == Outcome.PASS) for key, (config, outcome) in self.more.items()}
        for config in (item.config for item in self.judge.observations):
            judgement = self.judge(config)
            if judgement.basis is Basis.COMPILED and judgement.verdict is not Feasibility.UNKNOWN:
                found.setdefault(config_key(config), (config, judgement.verdict is Feasibility.FEASIBLE))
        inside = [pair for pair in found.values() if self._inside(pair[0])]
        return sorted(inside, key=lambda pair: len(moves_of(self.space, pair[0])))

    def _inside(self, config: Config) -> bool:
        wanted = {name: {repr(value) for value in domain} for name, domain in self.domains.items()}
        in_domains = all(repr(value) in wanted[name] for name, value in config.items())
        return in_domains and all(holds(relation, config) for relation in self.allowed)

    def pool(self, samples: int, seed: int = 0) -> ConfigPool:
        """Return the compiled configurations; with a joint part in the map, all others too, or a sample of them."""
        known = self.known()
        feasible = {config_key(c): c for c, passed in known if passed}
        infeasible = {config_key(c): c for c, passed in known if not passed}
        if self.space.joint is None:
            return ConfigPool(tuple(feasible.values()), tuple(infeasible.values()), None, None)
        whole, good = self.reduced(feasible=False), self.reduced()
        size, passing = whole.feasible_count, good.feasible_count
        for config in some_of(good, passing, samples, seed):
            if config_key(config) not in infeasible:
                feasible.setdefault(config_key(config), config)
        for config in some_of(whole, size, samples, seed):
            if config_key(config) not in feasible and not self.passes(config):
                infeasible.setdefault(config_key(config), config)
        rest = size - passing if size is not None and passing is not None else None
        return ConfigPool(tuple(feasible.values()), tuple(infeasible.values()), passing, rest)

    def passes(self, config: Config) -> bool:
        """Return whether the configuration passes by the audit's compiles, else by the map."""
        if (found := self.more.get(config_key(config))) is not None:
            return found[1] == Outcome.PASS
        return self.judge(config).verdict is Feasibility.FEASIBLE

    def example(self, config: Config) -> Counterexample:
        """Return the configuration as a counterexample, with the map's verdict and reason."""
        judgement = self.judge(config)
        why = "; ".join(item.words for item in judgement.shown_constraints)
        moves = moves_of(self.space, config)
        if (found := self.more.get(config_key(config))) is not None:
            return Counterexample(config, moves, found[1], True, why)
        compiled = judgement.basis is Basis.COMPILED
        return Counterexample(config, moves, judgement.outcome if compiled else "", compiled, why or judgement.reason)


def some_of(reduced: ReducedSpace, count: int | None, samples: int, seed: int) -> list[Config]:
    if count is not None and count <= samples:
        return list(reduced.listed())
    try:
        return reduced.sample(samples, seed=seed)
    except TooEntangled:
        return []
