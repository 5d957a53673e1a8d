"""Explanation of one configuration: why it fails and what to change, or which knobs matter if it passes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.joint_map import Inertness, ValueClasses
from gluonmap.model.knobs import KnobClass
from gluonmap.model.outcomes import COMPILED, Feasibility
from gluonmap.query.feasibility import Basis, Judge, Judgement, moves_of
from gluonmap.query.observations import config_key

MOST_CHANGED = 3
"""Number of knobs that the search for feasible neighbours changes. Beyond it, only compiled ones are considered."""
MOST_VISITED = 20_000
"""Number of configurations that one distance of that search visits."""
MOST_COMPILED = 6
"""Number of predicted neighbours that are compiled to find three."""

Ask = Callable[[Config], Judgement]
"""Compile one configuration and judge the answer."""


class FailingPart(msgspec.Struct, frozen=True):
    """A set of moves that fails by itself."""

    moves: Config
    """Moves from the baseline; empty: the baseline itself fails."""
    judgement: Judgement
    """Judgement of the baseline with these moves alone."""
    proved: bool
    """It was compiled and failed, and each part with one move less was compiled and passed."""


class Neighbour(msgspec.Struct, frozen=True):
    """A feasible configuration near another one."""

    config: Config
    moves: Config
    """Changes that lead to it."""
    judgement: Judgement


class KnobRelevance(msgspec.Struct, frozen=True):
    """Relevance of one knob at a configuration: whether another value of it alone gives another program."""

    knob: str
    matters: bool | None
    """None: unknown."""
    why: str


class Explanation(msgspec.Struct, frozen=True):
    """Explanation of one configuration."""

    config: Config
    moves: Config
    """Moves from the baseline."""
    judgement: Judgement
    fresh: bool
    """The judgement is of a compile made for this explanation."""
    part: FailingPart | None = None
    nearest: tuple[Neighbour, ...] = ()
    matters: tuple[KnobRelevance, ...] = ()


def explain(judge: Judge, config: Config, ask: Ask | None = None) -> Explanation:
    """Return why a complete configuration fails and what to change, or which knobs matter at it.

    With `ask`, a configuration that was not compiled and is not predicted to be feasible is compiled now.
    """
    judgement, fresh = judge(config), False
    if ask is not None and not judgement.final and judgement.verdict is not Feasibility.FEASIBLE:
        answer = ask(config)
        if answer.verdict is not Feasibility.UNKNOWN or judgement.verdict is Feasibility.UNKNOWN:
            judgement, fresh = answer, True
    moves = moves_of(judge.space, config)
    if judgement.verdict is Feasibility.FEASIBLE:
        return Explanation(config, moves, judgement, fresh, matters=tuple(knob_relevance(judge, config)))

    def answered(asked: Config) -> Judgement:
        return judgement if config_key(asked) == config_key(config) else ask(asked) if ask is not None else judge(asked)

    part = smallest_failing(judge, config, answered)
    near = nearest_feasible(judge, config, ask=ask, blamed=part.moves if part else ())
    return Explanation(config, moves, judgement, fresh, part, tuple(near))


# ---- the smallest failing part --------------------------------------------------------------------------------------


def smallest_failing(judge: Judge, config: Config, ask: Ask | None = None) -> FailingPart | None:
    """Return the smallest part found of the moves of `config` that still fails; None if no part is known to fail.

    No single move can be left out of it, as far as the answers go: unknown parts are assumed to pass. `ask` is called
    only where a compile would add to the map's judgement.
    """
    space = judge.space
    known: dict[tuple[str, ...], Judgement] = {}

    def look(names: Sequence[str]) -> Judgement:
        if tuple(names) not in known:
            part = {**space.baseline, **{name: config[name] for name in names}}
            judgement = judge(part)
            known[tuple(names)] = judgement if judgement.final or ask is None else ask(part)
        return known[tuple(names)]

    def fails(names: Sequence[str]) -> bool:
        return look(names).verdict is Feasibility.INFEASIBLE

    moved = list(moves_of(space, config))
    if look(moved).verdict is Feasibility.FEASIBLE:
        return None
    start = [] if fails([]) else _start(judge, config, moved, fails)
    if not fails(start):
        return None
    found = minimal(start, fails)
    smaller = [look([n for n in found if n != name]) for name in found]
    proved = all(part.basis is Basis.COMPILED for part in (look(found), *smaller))
    proved = proved and all(part.verdict is Feasibility.FEASIBLE for part in smaller)
    return FailingPart({name: config[name] for name in found}, look(found), proved)


def minimal(items: Sequence[str], fails: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return a 1-minimal failing part of `items`: without any one of its items it does not fail. `items` must fail.

    This is Zeller and Hildebrandt's ddmin: halves first, then finer pieces and their complements. Failing need not be
    monotone.
    """
    left, pieces = list(items), 2
    while len(left) > 1:
        cuts = [len(left) * i // pieces for i in range(pieces + 1)]
        spans = list(itertools.pairwise(cuts))
        if piece := next((left[a:b] for a, b in spans if fails(left[a:b])), None):
            left, pieces = piece, 2
        elif pieces > 2 and (rest := next((r for a, b in spans if fails(r := left[:a] + left[b:])), None)):
            left, pieces = rest, max(pieces - 1, 2)
        elif pieces == len(left):
            return left
        else:
            pieces = min(2 * pieces, len(left))
    return left


def _start(judge: Judge, config: Config, moved: list[str], fails: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return the fewest failing moves that the map knows: one alone, or those in the scope of a broken constraint."""
    alone = [[name] for name in moved if judge({**judge.space.baseline, name: config[name]}).final]
    scopes = [[name for name in moved if name in item.scope] for item in judge(config).broken]
    parts = [*alone, *sorted(scopes, key=len)]
    return next((part for part in parts if 0 < len(part) < len(moved) and fails(part)), moved)


# ---- the nearest feasible configurations ----------------------------------------------------------------------------


def nearest_feasible(
    judge: Judge, config: Config, most: int = 3, ask: Ask | None = None, blamed: Iterable[str] = ()
) -> list[Neighbour]:
    """Return the feasible configurations that change the fewest knobs, then by the smallest steps, compiled ones first.

    A configuration whose changes contain those of another is left out. With `ask`, predicted ones are compiled, and
    those that fail are left out too. `blamed`: if no constraint says why `config` fails, one of these knobs is changed.
    """
    passing = [Neighbour(other, _changes(config, other), judge(other)) for other in judge.passing()]
    passing = [item for item in passing if item.moves and not item.judgement.forbidden]
    found: list[Neighbour] = []
    compiled = 0
    for distance in range(1, len(config) + 1):
        near = {config_key(item.config): item for item in passing if len(item.moves) == distance}
        if distance <= MOST_CHANGED and judge.space.joint is not None:
            near |= {config_key(item.config): item for item in _NeighbourSearch(judge, config, blamed).at(distance)}
        for item in sorted(near.values(), key=lambda each: _rank(judge, config, each)):
            if len(found) == most or any(_contains(item.moves, other.moves) for other in found):
                continue
            if ask is not None and item.judgement.basis is not Basis.COMPILED:
                if compiled == MOST_COMPILED:
                    continue
                compiled += 1
                item = msgspec.structs.replace(item, judgement=ask(item.config))
            if item.judgement.verdict is Feasibility.FEASIBLE:
                found.append(item)
        if len(found) == most:
            break
    return found


class _NeighbourSearch:
    """Search for feasible configurations at one distance. Each step changes a knob of a violated constraint.

    A configuration that meets a violated constraint differs in one of the constraint's knobs. So no feasible
    configuration is missed, and the other knobs are never enumerated.
    """

    def __init__(self, judge: Judge, config: Config, blamed: Iterable[str] = ()) -> None:
        self.judge, self.origin, self.blamed = judge, config, frozenset(blamed)
        self._visited: set[tuple[str, ...]] = set()

    def at(self, distance: int) -> Iterator[Neighbour]:
        """Yield the feasible configurations that change `distance` knobs, and become feasible by the last change."""
        return self._walk(self.origin, frozenset(), distance)

    def _walk(self, config: Config, changed: frozenset[str], left: int) -> Iterator[Neighbour]:
        key = config_key(config)
        if key in self._visited or len(self._visited) >= MOST_VISITED:
            return
        self._visited.add(key)
        judgement = self.judge(config)
        if changed and judgement.verdict is Feasibility.FEASIBLE and not judgement.forbidden:
            if left == 0:
                yield Neighbour(config, {n: v for n, v in config.items() if n in changed}, judgement)
            return
        if left == 0:
            return
        for name in self._options(judgement, changed, left):
            for value in self.judge.domains[name]:
                if not same(value, config[name]):
                    yield from self._walk({**config, name: value}, changed | {name}, left - 1)

    def _options(self, judgement: Judgement, changed: frozenset[str], left: int) -> list[str]:
        """Return the knobs that may be changed next."""
        free = [name for name in self.origin if name not in changed and len(self.judge.domains[name]) > 1]
        tied = [set(item.scope) for item in judgement.broken] + [{name} for name in judgement.untried]
        if not tied:  # it fails, and no constraint says why
            return [name for name in free if name in self.blamed or not self.blamed or changed & self.blamed]
        wanted = set.intersection(*tied) if left == 1 else min((t - changed for t in tied), key=len)
        return [name for name in self.origin if name in wanted and name not in changed]


def _changes(config: Config, other: Config) -> Config:
    return {name: value for name, value in other.items() if not same(value, config[name])}


def _rank(judge: Judge, config: Config, item: Neighbour) -> tuple[int, bool, list[int]]:
    """Return the sort key: small steps first, then compiled ones, then the order of the signature and domains."""
    steps = [_steps(judge.domains[n], config[n], value) for n, value in item.moves.items()]
    places = [list(item.config).index(name) for name in item.moves] + steps
    return sum(steps), item.judgement.basis is not Basis.COMPILED, places


def _steps(domain: Sequence[Value], one: Value, other: Value) -> int:
    """Return the distance of two values in a domain. A number that is not in it is placed by its size."""
    places = {repr(value): place for place, value in enumerate(domain)}
    if repr(other) not in places:
        return len(domain)
    if repr(one) in places:
        return abs(places[repr(one)] - places[repr(other)])
    numbers = [number for value in (one, other, *domain) if (number := _number(value)) is not None]
    if len(numbers) < len(domain) + 2:
        return len(domain)
    low, high = sorted(numbers[:2])
    return 1 + sum(low < number < high for number in numbers)


def _number(value: Value) -> int | float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _contains(moves: Config, others: Config) -> bool:
    return all(name in moves and same(moves[name], value) for name, value in others.items())


# ---- relevance of knobs ---------------------------------------------------------------------------------------------


def knob_relevance(judge: Judge, config: Config) -> list[KnobRelevance]:
    """Return for each knob of a feasible configuration whether it changes the program, in signature order."""
    return [KnobRelevance(name, *_relevance(judge, config, name)) for name in config]


def _relevance(judge: Judge, config: Config, name: str) -> tuple[bool | None, str]:
    if untried := judge.untried(config):
        return None, "nothing was tried with " + ", ".join(f"{n}={v}" for n, v in untried.items())
    others = [value for value in judge.domains[name] if not same(value, config[name])]
    judgements = [(value, judge({**config, name: value})) for value in others]
    if all(each.verdict is Feasibility.INFEASIBLE for _, each in judgements):
        return False, _pinned(each for _, each in judgements)
    left = [value for value, each in judgements if each.verdict is Feasibility.FEASIBLE]
    if not left and judge.space.joint is not None:
        return None, "of no other value is it known whether it passes here"
    return (
        _by_compiles(judge, config, name, left)
        or _by_rules(judge, config, name, left)
        or _by_class(judge, config, name)
    )


def _pinned(judgements: Iterable[Judgement]) -> str:
    found = list(judgements)
    if not found:
        return "it has no other value"
    words = list(dict.fromkeys(item.words for each in found for item in each.shown_constraints))
    return "pinned here: every other value fails" + (f": {'; '.join(words[:2])}" if words else "")


def _by_compiles(judge: Judge, config: Config, name: str, left: Sequence[Value]) -> tuple[bool, str] | None:
    """Decide by the programs that were compiled here with this knob alone changed."""
    mine = judge.launch_key(config)
    others = {repr(value): judge.launch_key({**config, name: value}) for value in left} if mine else {}
    apart = [value for value in left if others.get(repr(value), mine) not in (mine, "")]
    if apart:
        return True, f"{name}={apart[0]} was compiled here and is another program"
    if left and others and all(launch_key == mine for launch_key in others.values()):
        return False, "every other value that passes was compiled here: one program"
    return None


def _by_rules(judge: Judge, config: Config, name: str, left: Sequence[Value]) -> tuple[bool | None, str] | None:
    """Decide by the rules that were learned about the knob in other places."""
    joint = judge.space.joint
    if joint is None:
        return None
    if merged := _merged([c for c in joint.value_classes if c.knob == name], config, name, left):
        return False, merged
    found = next((item for item in joint.inertness if item.knob == name), None)
    return _inert(found, config) if found else None


def _merged(classes: Sequence[ValueClasses], config: Config, name: str, left: Sequence[Value]) -> str:
    """Return the rule by which all values that pass here are one program, in words; "" if there is none."""
    for item in classes:
        if item.relation is not None and not holds(item.relation, config):
            continue
        for group in item.classes:
            members = {repr(value) for value in group}
            if {repr(value) for value in (config[name], *left)} <= members:
                values = ", ".join(map(str, group))
                return f"{name} = {values} are one program" + (f" where {item.where}" if item.where else "")
    return ""


def _inert(item: Inertness, config: Config) -> tuple[bool | None, str]:
    compared = f"{item.changed + item.same} comparison{'' if item.changed + item.same == 1 else 's'}"
    if item.relation is not None:
        met = holds(item.relation, config)
        return met, f"{item.words}, which {'holds' if met else 'does not hold'} here"
    match item.condition:
        case "":
            return False, f"it changed nothing in {compared}"
        case "always":
            return True, f"it changed the program in each of {compared}"
        case _:
            return None, item.words


def _by_class(judge: Judge, config: Config, name: str) -> tuple[bool | None, str]:
    """Decide by the knob's class, which holds where all other knobs are at the baseline."""
    space = judge.space
    if name not in space.knobs:
        return None, "nothing is known of it"
    knob = space.knobs[name]
    if any(other != name for other in moves_of(space, config)):
        return None, f"{knob.knob_class} at the baseline; it was not turned here"
    match knob.knob_class:
        case KnobClass.INERT:
            return False, knob.why
        case KnobClass.LIVE:
            return True, knob.why
        case KnobClass.PINNED | KnobClass.BOUNDED | KnobClass.UNKNOWN:
            passing = {value.digest for value in knob.values if value.outcome in COMPILED and value.digest}
            return True if len(passing) > 1 and space.stable is not False else None, knob.why
