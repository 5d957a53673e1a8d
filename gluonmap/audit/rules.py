"""Restrictions and pruning functions against a map: what they drop that passes, and keep that fails.

A restriction in the language of `expression` is counted exactly, without walking the space. Whatever has to be run (a
function, other Python) is asked about a `Pool`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from gluonmap.audit.entry_findings import listed, shown
from gluonmap.audit.findings import Example, Finding, Kind, Place, RuleChecked, Severity, Tally, found
from gluonmap.constraints import expressions
from gluonmap.constraints.counting import TooEntangled
from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.relations import Relation, Written
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Outcome
from gluonmap.query.feasibility import Basis, Judge, domains_of, moves_of
from gluonmap.query.observations import config_key
from gluonmap.query.reduced_space import ReducedSpace, reduced_space

MOST_SHOWN = 3
"""Counterexamples of one kind that are shown, each compiled."""
MOST_TRIED = 6
"""Configurations that are looked at to show them."""


class Rule(msgspec.Struct, frozen=True):
    """What a project rules configurations out with."""

    name: str
    """As the user names it: a file, a file with a function, or "--restriction"."""
    places: tuple[Place, ...] = ()
    """Of each restriction, or of the function."""
    restrictions: tuple[str, ...] = ()
    """Expressions; empty: it is a function."""
    file: str = ""
    """Of the function."""
    function: str = ""
    domains: dict[str, tuple[Value, ...]] = {}
    """The values that it is for, where it says so."""


@dataclass(frozen=True)
class Pool:
    """Configurations to ask a rule about, by what the map says of them."""

    feasible: tuple[Config, ...]
    infeasible: tuple[Config, ...]
    feasible_size: int | None
    """How many there are; more than are in the pool where they were drawn; None: not known."""
    infeasible_size: int | None

    @property
    def configs(self) -> tuple[Config, ...]:
        return (*self.feasible, *self.infeasible)


class Ground:
    """A map as far as rules are judged by it."""

    def __init__(self, space: SpaceMap, judge: Judge, more: Iterable[tuple[Config, str]] = ()) -> None:
        """`more`: complete configurations that were compiled besides, and their outcomes."""
        self.space, self.judge = space, judge
        self.domains = domains_of(space)
        self.more = {config_key(config): (config, outcome) for config, outcome in more}
        given = [c for c in judge.constraints if c.standing.binding]
        self.allowed = [c.relation for c in given]
        """What its author demands: nothing outside is any rule's business."""
        self.demands = [c.relation for c in judge.constraints if not c.standing.binding]

    def within(self, domains: dict[str, tuple[Value, ...]]) -> Ground:
        """The same for these values only, as far as the map has them."""
        told = Ground(self.space, self.judge, self.more.values())
        for name, values in domains.items():
            wanted = {repr(value) for value in values}
            kept = tuple(value for value in told.domains.get(name, ()) if repr(value) in wanted)
            if kept:
                told.domains[name] = kept
        return told

    def reduced(self, *relations: Relation, feasible: bool = True) -> ReducedSpace:
        joint = self.space.joint
        rules = (joint.inertness, joint.value_classes) if joint else ((), ())
        demands = self.demands if feasible else []
        return reduced_space(self.domains, self.space.baseline, [*self.allowed, *demands, *relations], *rules)

    def known(self) -> list[tuple[Config, bool]]:
        """Configurations that were compiled, and whether they passed; those of the fewest moves first."""
        found = {key: (config, outcome == Outcome.PASS) for key, (config, outcome) in self.more.items()}
        for item in self.judge.observations:
            config, told = item.config, self.judge(item.config)
            if told.basis is Basis.COMPILED and told.verdict is not Feasibility.UNKNOWN:
                found.setdefault(config_key(config), (config, told.verdict is Feasibility.FEASIBLE))
        inside = [pair for pair in found.values() if self._inside(pair[0])]
        return sorted(inside, key=lambda pair: len(moves_of(self.space, pair[0])))

    def _inside(self, config: Config) -> bool:
        wanted = {name: {repr(value) for value in domain} for name, domain in self.domains.items()}
        in_domains = all(repr(value) in wanted[name] for name, value in config.items())
        return in_domains and all(holds(relation, config) for relation in self.allowed)

    def pool(self, samples: int, seed: int = 0) -> Pool:
        """What was compiled, and of the rest, where the map knows all knobs together, everything or a draw."""
        known = self.known()
        feasible = {config_key(c): c for c, passed in known if passed}
        infeasible = {config_key(c): c for c, passed in known if not passed}
        if self.space.joint is None:
            return Pool(tuple(feasible.values()), tuple(infeasible.values()), None, None)
        whole, good = self.reduced(feasible=False), self.reduced()
        size, passing = whole.feasible_count, good.feasible_count
        for config in _some(good, passing, samples, seed):
            if config_key(config) not in infeasible:
                feasible.setdefault(config_key(config), config)
        for config in _some(whole, size, samples, seed):
            if config_key(config) not in feasible and not self.passes(config):
                infeasible.setdefault(config_key(config), config)
        rest = size - passing if size is not None and passing is not None else None
        return Pool(tuple(feasible.values()), tuple(infeasible.values()), passing, rest)

    def passes(self, config: Config) -> bool:
        """As the map says."""
        if (found := self.more.get(config_key(config))) is not None:
            return found[1] == Outcome.PASS
        return self.judge(config).verdict is Feasibility.FEASIBLE

    def example(self, config: Config) -> Example:
        """The configuration with what the map says of it."""
        told = self.judge(config)
        why = "; ".join(item.words for item in told.shown_constraints)
        moves = moves_of(self.space, config)
        if (found := self.more.get(config_key(config))) is not None:
            return Example(config, moves, found[1], True, why)
        compiled = told.basis is Basis.COMPILED
        return Example(config, moves, told.outcome if compiled else "", compiled, why or told.reason)


def _some(reduced: ReducedSpace, count: int | None, samples: int, seed: int) -> list[Config]:
    if count is not None and count <= samples:
        return list(reduced.listed())
    try:
        return reduced.sample(samples, seed=seed)
    except TooEntangled:
        return []


# ---- restrictions --------------------------------------------------------------------------------------------------


def plain(text: str, space: SpaceMap) -> str:
    """A restriction with what is no knob put in: fixed values, sizes, derived ones.

    Raises:
        UsageError: bad syntax.
        UnknownKnob: it reads a name that the map does not have.
    """
    numbers = {n: v for n, v in space.recipe.args.items() if not isinstance(v, str)}
    values = {n: v for n, v in {**numbers, **space.shape, **space.recipe.fixed}.items() if n not in space.baseline}
    written = expressions.substituted(text, values, space.recipe.derive)
    for name in sorted(expressions.names_in(written) - space.baseline.keys()):
        raise UnknownKnob(f"the restriction {text!r} cannot be judged: the map", name, space.baseline)
    return written


def is_spoken(text: str, space: SpaceMap) -> bool:
    """Whether a restriction is an expression of this tool's language, so that nothing has to be run."""
    try:
        expressions.evaluate(text, space.baseline)
    except UsageError:
        return False
    return True


def counted(rule: Rule, texts: Sequence[str], ground: Ground) -> tuple[RuleChecked, tuple[int | None, ...]] | None:
    """What restrictions in the language do, exactly, and how many feasible configurations each alone drops.

    None: the constraints tie too many knobs together to be counted.
    """
    relations = [Written(text) for text in texts]
    good, kept = ground.reduced(), ground.reduced(*relations)
    whole, admitted = ground.reduced(feasible=False), ground.reduced(*relations, feasible=False)
    passing, passing_kept = good.feasible_count, kept.feasible_count
    size, size_kept = whole.feasible_count, admitted.feasible_count
    if passing is None or passing_kept is None or size is None or size_kept is None:
        return None
    lost, programs, missing = _lost(ground, good, kept)
    told = RuleChecked(
        rule.name,
        Tally(passing, passing, passing - passing_kept),
        Tally(size - passing, size - passing, size_kept - passing_kept),
        programs,
        missing,
        drops=tuple(ground.example(c) for c in lost[:MOST_TRIED]),
        admits=tuple(_admitted(ground, relations, admitted)),
    )
    alone = [ground.reduced(relation).feasible_count for relation in relations]
    return told, tuple(None if count is None else passing - count for count in alone)


MOST_PROGRAMS = 4096


def _lost(ground: Ground, good: ReducedSpace, kept: ReducedSpace) -> tuple[list[Config], int | None, int | None]:
    """One configuration of each program that is lost, the number of programs, and of those lost."""
    known = [config for config, passed in ground.known() if passed]
    forms = {config_key(kept.canonical(c)) for c in kept.representatives(MOST_PROGRAMS)}
    every = good.representatives(MOST_PROGRAMS, known=known)
    lost = [c for c in every if config_key(good.canonical(c)) not in forms]
    count = good.program_count
    complete = count is not None and count <= MOST_PROGRAMS
    lost.sort(key=lambda c: (not ground.example(c).compiled, len(moves_of(ground.space, c))))
    return lost, count, len(lost) if complete else None


def _admitted(ground: Ground, relations: Sequence[Relation], admitted: ReducedSpace) -> Iterable[Example]:
    """Some that the rule keeps and that fail, compiled ones first."""
    known = {config_key(c): c for c, passed in ground.known() if not passed and all(holds(r, c) for r in relations)}
    found = list(known.values())[:MOST_TRIED]
    if len(found) < MOST_SHOWN:
        drawn = _some(admitted, admitted.feasible_count, 512, 0)
        found += [c for c in drawn if config_key(c) not in known and not ground.passes(c)][: MOST_TRIED - len(found)]
    return [ground.example(config) for config in found]


# ---- what has to be run --------------------------------------------------------------------------------------------


def decided(rule: Rule, pool: Pool, kept: Iterable[int], ground: Ground, strange: int = 0) -> RuleChecked:
    """What a rule does that kept the configurations of the pool at these places."""
    places = set(kept)
    configs = pool.configs
    first = len(pool.feasible)
    reduced = ground.reduced()

    def form(config: Config) -> object:
        return config_key(reduced.canonical(config))

    remaining = {form(configs[place]) for place in places if place < first}
    dropped = [config for place, config in enumerate(pool.feasible) if place not in places]
    lost = [config for config in dropped if form(config) not in remaining]
    admitted = [configs[place] for place in sorted(places) if place >= first]
    for wrong in (lost, admitted):
        wrong.sort(key=lambda c: (not ground.example(c).compiled, len(moves_of(ground.space, c))))
    one_of_each = list({form(config): config for config in lost}.values())
    return RuleChecked(
        rule.name,
        Tally(pool.feasible_size, first, len(dropped)),
        Tally(pool.infeasible_size, len(pool.infeasible), len(admitted)),
        len({form(config) for config in pool.feasible}),
        len(one_of_each),
        strange,
        drops=tuple(ground.example(c) for c in one_of_each[:MOST_TRIED]),
        admits=tuple(ground.example(c) for c in admitted[:MOST_TRIED]),
    )


# ---- findings ------------------------------------------------------------------------------------------------------


def findings_of(rule: Rule, told: RuleChecked, space: SpaceMap, alone: Sequence[int | None] = ()) -> list[Finding]:
    """What is to be said of one rule. `alone`: how many feasible configurations each restriction drops by itself."""
    found_here = list(_unjudged(rule, space))
    if told.infeasible.mistaken:
        sure = any(example.compiled for example in told.admits)
        text = f"{_of(told.infeasible, 'infeasible')} are kept by {rule.name}"
        severity = None if sure or not told.refuted else Severity.WARNING
        details = [f"{_said(e)}{f': {e.why}' if e.why else ''}" for e in told.admits]
        found_here.append(
            found(Kind.ADMITS_INFEASIBLE, text, *rule.places, severity=severity, details=(*details, *_refuted(told)))
        )
    if told.feasible.mistaken and told.lost != 0:
        lost = f", and {told.lost:,} of {told.programs:,} programs are lost" if told.lost and told.programs else ""
        text = f"{_of(told.feasible, 'feasible')} are dropped by {rule.name}{lost}"
        blame = sorted(zip(alone, rule.restrictions, rule.places or [None] * len(alone), strict=False), key=_most)
        details = [f"{words!r} alone drops {count:,}" for count, words, _ in blame if count and len(alone) > 1]
        details += [_said(e) for e in told.drops]
        places = [place for _, _, place in blame if place is not None] or rule.places
        found_here.append(found(Kind.DROPS_FEASIBLE, text, *places, details=(*details, *_refuted(told))))
    return found_here


def _unjudged(rule: Rule, space: SpaceMap) -> Iterator[Finding]:
    """What a rule's own list of values has and the map has not."""
    known = domains_of(space)
    for name, values in rule.domains.items():
        if name not in known:
            text = f"tune_params has {name}, which is no knob of the map"
            yield found(Kind.UNKNOWN_KEY, text, *rule.places[:1], knob=name)
        elif strange := [repr(v) for v in values if not any(same(v, other) for other in known[name])]:
            text = f"tune_params has {name} = {listed(strange, word='or')}, which the map never tried: not judged"
            yield found(Kind.NO_ANSWER, text, *rule.places[:1], severity=Severity.NOTICE, knob=name)


def _most(blame: tuple[int | None, str, Place | None]) -> int:
    return -(blame[0] or 0)


def _refuted(told: RuleChecked) -> tuple[str, ...]:
    if not told.refuted:
        return ()
    return (f"{told.refuted} more that the map predicts so were compiled, and there the map is wrong",)


def _of(tally: Tally, word: str) -> str:
    """ "12 of 2,304 feasible configurations", "12 of 4,096 … drawn from 440,064", "1 of 3 … that were compiled"."""
    many = f"{tally.mistaken:,} of {tally.looked_at:,} {word} configurations"
    if tally.size == tally.looked_at:
        return many
    return f"{many} drawn from {tally.size:,}" if tally.size else f"{many} that were compiled"


def _said(example: Example) -> str:
    moves = listed([shown(name, value) for name, value in example.moves.items()], 12) or "the baseline"
    if not example.compiled:
        return f"{moves} (predicted)"
    return f"{moves} ({example.outcome})"


def unreadable(rule: Rule, why: str) -> Finding:
    """A rule that gave no answer."""
    return found(Kind.RULE_FAILS, f"{rule.name} fails: {why}", *rule.places)
