"""The smallest change of a failing baseline that passes: what to compile next, from what has failed so far.

First what the source itself demands, the fewest knobs first; then every knob alone; then one knob more beside what came
furthest. What was found is cut down at last. No I/O, no clock: the same answers bring the same questions.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gluonmap.constraints import expressions
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.outcomes import Outcome
from gluonmap.model.targets import Target
from gluonmap.model.verdict import Answer, Verdict, passed

BATCH = 8
"""Candidates that are asked before their answers decide about the next: more keeps more cores busy, and wastes more."""
MOST_VISITED = 5_000
"""Configurations that the search through the demands looks at, for each number of knobs."""
MOST_COUNTED = 5_000
"""Smaller changes that are looked at one by one to say whether any was left out."""
MOST_SHOWN = 3

Ask = Callable[[Sequence[Config]], Sequence[Answer]]
"""Compiles the baseline with each of these moves."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a change is looked for."""

    target: Target
    baseline: Config
    domains: Mapping[str, tuple[Value, ...]]
    """Of the knobs that reach the compiler."""
    names: Callable[[Config], Mapping[str, Value]]
    """All names that an expression may read, with some moves made."""
    depends: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Derived name -> the knobs that it is computed from."""
    demands: Sequence[LiteralRule] = ()
    """Of the source. What breaks one is asked late, not never: they are read, not compiled."""
    restrict: Sequence[str] = ()
    """Of the user. What breaks one is never asked."""


class Change(msgspec.Struct, frozen=True):
    """Moves against the baseline, and what came of them."""

    moves: Config
    answer: Answer


class Mended(msgspec.Struct, frozen=True):
    """What a search came to."""

    passing: tuple[Change, ...]
    """The smallest first; empty: none was found. The others change as few knobs."""
    asked: int
    minimal: bool = False
    """Every part of the first with one move less was compiled and fails."""
    smaller: int | None = None
    """Changes of fewer knobs than the first that there are; None: too many to look at."""
    smaller_tried: int = 0
    smaller_forbidden: int = 0
    """Of the others, those that break a demand of the source."""
    exhausted: bool = False
    """Nothing was left to ask."""


def search(ground: Ground, baseline: Answer, ask: Ask, budget: int) -> Mended:
    """The smallest change found with `budget` compiles at most; `baseline` is the answer to no change at all."""
    return _Search(ground, baseline, ask, budget).run()


Key = tuple[tuple[str, str], ...]
Size = tuple[int, int, list[tuple[int, int]]]
Rank = tuple[int, tuple[int, float], bool, Size]


def _key(moves: Config) -> Key:
    return tuple(sorted((name, repr(value)) for name, value in moves.items()))


class _Search:
    def __init__(self, ground: Ground, baseline: Answer, ask: Ask, budget: int) -> None:
        self.ground, self.base, self.ask, self.budget = ground, baseline, ask, budget
        self.tried: dict[Key, Change] = {(): Change({}, baseline)}
        self.asked = 0
        self._broken: dict[Key, int] = {}
        self._order = {name: place for place, name in enumerate(ground.domains)}
        self._places = {n: {repr(v): i for i, v in enumerate(d)} for n, d in ground.domains.items()}

    def run(self) -> Mended:
        half = self.budget // 2
        for level in self._repairs() if self.broken({}) else ():
            if self._try(level, half):
                break
        if not self.passing():
            self._try(sorted(self._singles(), key=lambda moves: (self.broken(moves), self.size(moves))), self.budget)
        exhausted = False
        if not self.passing():
            exhausted = self._go_on()
        if not self.passing():
            return Mended((), self.asked, exhausted=exhausted)
        minimal = self._cut_down()
        best = self.passing()
        shown = [change for change in best if len(change.moves) == len(best[0].moves)][:MOST_SHOWN]
        return Mended(tuple(shown), self.asked, minimal, *self._smaller(len(best[0].moves)))

    def passing(self) -> list[Change]:
        """Changes that passed, the smallest first."""
        found = [change for change in self.tried.values() if passed(change.answer)]
        return sorted(found, key=lambda change: self.size(change.moves))

    def size(self, moves: Config) -> Size:
        """How large a change is: knobs, then steps in their domains, then their order in the signature."""
        steps = [(self._order[name], self._steps(name, value)) for name, value in moves.items()]
        return len(moves), sum(step for _, step in steps), sorted(steps)

    def broken(self, moves: Config) -> int:
        """How many demands of the source a configuration breaks."""
        key = _key(moves)
        if key not in self._broken:
            self._broken[key] = sum(1 for _ in self._violated(moves))
        return self._broken[key]

    # ---- asking ----------------------------------------------------------------------------------------------------

    def _try(self, wanted: Iterable[Config], most: int) -> bool:
        """Ask in this order until something passes and nothing as small is left; whether anything has passed."""
        waiting = iter([moves for moves in wanted if _key(moves) not in self.tried and self._allowed(moves)])
        while batch := list(itertools.islice(waiting, max(0, min(BATCH, most - self.asked)))):
            best = next(iter(self.passing()), None)
            if best is not None:
                limit = self.size(best.moves)[:2]
                batch = [moves for moves in batch if self.size(moves)[:2] <= limit]
            self._ask(batch)
        return bool(self.passing())

    def _ask(self, batch: Sequence[Config]) -> None:
        for moves, answer in zip(batch, self.ask(batch) if batch else (), strict=True):
            ordered = {name: moves[name] for name in self.ground.domains if name in moves}
            self.tried[_key(moves)] = Change(ordered, answer)
        self.asked += len(batch)

    def _allowed(self, moves: Config) -> bool:
        names = self.ground.names(moves)
        return all(_holds(text, names) for text in self.ground.restrict)

    def _singles(self) -> Iterator[Config]:
        for name in self.ground.domains:
            for value in self._values(name):
                yield {name: value}

    def _values(self, name: str) -> list[Value]:
        """The values of a knob besides its baseline's, the nearest first."""
        others = [v for v in self.ground.domains[name] if not same(v, self.ground.baseline[name])]
        return sorted(others, key=lambda value: self._steps(name, value))

    def _steps(self, name: str, value: Value) -> int:
        places = self._places[name]
        return abs(places[repr(value)] - places[repr(self.ground.baseline[name])])

    # ---- what the source demands -----------------------------------------------------------------------------------

    def _violated(self, moves: Config) -> Iterator[LiteralRule]:
        names = self.ground.names(moves)
        return (rule for rule in self.ground.demands if not _holds(rule.expression, names))

    def _repairs(self) -> Iterator[list[Config]]:
        """The changes that meet all demands and of which no part does, by the number of their knobs.

        What meets a demand that was broken differs in one of its knobs, so that only these are turned.
        """
        for count in range(1, len(self.ground.domains) + 1):
            found: dict[Key, Config] = {}
            visited: set[Key] = set()
            self._walk({}, count, found, visited)
            if found:
                yield sorted(found.values(), key=self.size)
            if len(visited) >= MOST_VISITED:
                return

    def _walk(self, moves: Config, left: int, found: dict[Key, Config], visited: set[Key]) -> None:
        if _key(moves) in visited or len(visited) >= MOST_VISITED:
            return
        visited.add(_key(moves))
        violated = list(self._violated(moves))
        if not violated:
            if left == 0:
                found[_key(moves)] = moves
            return
        scopes = [[n for n in self._knobs_of(rule) if n not in moves] for rule in violated]
        if left == 0 or not all(scopes):
            return
        for name in min(scopes, key=len):
            for value in self._values(name):
                self._walk({**moves, name: value}, left - 1, found, visited)

    def _knobs_of(self, rule: LiteralRule) -> list[str]:
        """The knobs that a demand is about, those behind derived values too."""
        named = {*rule.knobs, *expressions.names_in(rule.expression)}
        reached = named.union(*(self.ground.depends.get(name, frozenset()) for name in named))
        return [name for name in self.ground.domains if name in reached]

    # ---- one knob more ---------------------------------------------------------------------------------------------

    def _go_on(self) -> bool:
        """Turn one knob more beside what came furthest, until something passes; whether nothing was left to ask."""
        heap: list[tuple[Rank, int, Config]] = []
        queued: dict[Key, Rank] = {}
        counter = itertools.count()

        def push(parent: Change) -> None:
            if not _tells(parent.answer):
                return  # what has hung would hang again, whatever else is turned
            for single in self._singles():
                (name,) = single
                child = {**parent.moves, **single}
                alone = self.tried.get(_key(single))
                if name in parent.moves or _key(child) in self.tried or (alone and not _tells(alone.answer)):
                    continue
                worse = alone is not None and self._distance(alone.answer) > self._distance(self.base)
                rank = (self.broken(child), self._distance(parent.answer), worse, self.size(child))
                if _key(child) not in queued or rank < queued[_key(child)]:
                    queued[_key(child)] = rank
                    heapq.heappush(heap, (rank, next(counter), child))

        for change in list(self.tried.values()):
            push(change)
        while heap and self.asked < self.budget and not self.passing():
            batch: dict[Key, Config] = {}
            while heap and len(batch) < min(BATCH, self.budget - self.asked):
                *_, child = heapq.heappop(heap)
                if _key(child) not in self.tried and self._allowed(child):
                    batch[_key(child)] = child
            self._ask(list(batch.values()))
            for key in batch:
                push(self.tried[key])
        return not heap and self.asked < self.budget

    def _distance(self, answer: Answer) -> tuple[int, float]:
        """How far a failure is from passing: later stages, later lines and less over a budget are nearer."""
        if not isinstance(answer, Verdict) or answer.reason is None:
            return 9, 0.0
        reason = answer.reason
        if answer.outcome is Outcome.NO_RESOURCES and reason.kind == "budget":
            return 0, _excess(answer, self.ground.target)
        early = {"": 4, "import": 4, "arguments": 3, "front end": 2}
        line = reason.location.line if reason.location else 0
        return early.get(reason.phase, 1), -float(line)

    # ---- less ------------------------------------------------------------------------------------------------------

    def _cut_down(self) -> bool:
        """Take back what need not be turned, then bring values nearer; whether no single move can be left out."""
        while True:
            best = self.passing()[0].moves
            parts = [{n: v for n, v in best.items() if n != name} for name in best] if len(best) > 1 else []
            self._ask(self._affordable(parts))
            if self.passing()[0].moves != best:
                continue
            nearer = [
                {**best, name: value}
                for name in best
                for value in self._values(name)
                if self._steps(name, value) < self._steps(name, best[name])
            ]
            self._ask(self._affordable(sorted(nearer, key=self.size)))
            if self.passing()[0].moves == best:
                return all(_key(part) in self.tried for part in parts)

    def _affordable(self, wanted: Iterable[Config]) -> list[Config]:
        new = [moves for moves in wanted if _key(moves) not in self.tried and self._allowed(moves)]
        return new[: max(0, self.budget - self.asked)]

    def _smaller(self, count: int) -> tuple[int | None, int, int]:
        """Changes of fewer knobs than `count`: all, those that were tried, and the others that break a demand."""
        sizes = [len(self._values(name)) for name in self.ground.domains]
        total = sum(math.prod(chosen) for n in range(1, count) for chosen in itertools.combinations(sizes, n))
        if total > MOST_COUNTED:
            return None, 0, 0
        tried = forbidden = 0
        for number in range(1, count):
            for chosen in itertools.combinations(self.ground.domains, number):
                for values in itertools.product(*map(self._values, chosen)):
                    moves = dict(zip(chosen, values, strict=True))
                    if _key(moves) in self.tried:
                        tried += 1
                    elif self.broken(moves) or not self._allowed(moves):
                        forbidden += 1
        return total, tried, forbidden


def _holds(text: str, names: Mapping[str, Value]) -> bool:
    try:
        return bool(expressions.evaluate(text, names))
    except UsageError:
        return True  # it speaks of something that this configuration does not have


def _tells(answer: Answer) -> bool:
    """Whether an answer says something of the configurations beside it."""
    return isinstance(answer, Verdict) and answer.outcome is not Outcome.HUNG


def _excess(verdict: Verdict, target: Target) -> float:
    """By what factor a program exceeds the budget that it exceeds most; a size that wrapped is beyond measure."""
    used = verdict.resources
    if used is None or used.shared_bytes < 0:
        return math.inf
    ratios = [used.shared_bytes / target.shared_bytes, used.threads / target.threads]
    if target.tensor_columns and used.tensor_columns:
        ratios.append(used.tensor_columns / target.tensor_columns)
    if target.registers and used.vgpr:
        ratios.append(used.vgpr * used.threads / target.registers)
    return max(ratios)
