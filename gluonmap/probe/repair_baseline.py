"""Repair of a failing baseline: search the smallest change that passes, planned by what has failed so far.

Changes that meet the demands of the source are asked first, those of the fewest knobs before others; then every knob
alone; then one more knob on top of the change that got furthest. The change found is reduced at the end. No I/O, no
clock: the same answers bring the same questions.
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
"""Candidates that are asked at once. More would keep more cores busy, and ask more that an answer makes needless."""
MOST_VISITED = 5_000
"""Configurations that the search through the demands visits, for each number of knobs."""
MOST_COUNTED = 5_000
"""Smaller changes that are enumerated to count those that were not tried."""
MOST_SHOWN = 3

Ask = Callable[[Sequence[Config]], Sequence[Answer]]
"""Compile the baseline with each of these moves, and return the answers."""


@dataclass(frozen=True, slots=True)
class RepairSpace:
    """Space in which a change is searched."""

    target: Target
    baseline: Config
    domains: Mapping[str, tuple[Value, ...]]
    """Domains of the knobs that reach the compiler."""
    names: Callable[[Config], Mapping[str, Value]]
    """Return the values of all names that an expression may read, with some moves made."""
    depends: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Derived name -> the knobs that it is computed from."""
    demands: Sequence[LiteralRule] = ()
    """Demands of the source. A change that breaks one is asked late, not never: they are read, not compiled."""
    restrict: Sequence[str] = ()
    """Restrictions of the user. A change that breaks one is never asked."""


class BaselineChange(msgspec.Struct, frozen=True):
    """Moves against the baseline, and the answer to them."""

    moves: Config
    answer: Answer


class BaselineRepair(msgspec.Struct, frozen=True):
    """Result of a search."""

    passing: tuple[BaselineChange, ...]
    """The smallest change, then others of as few knobs; empty: none was found."""
    asked: int
    minimal: bool = False
    """Each part of the first change with one move less was compiled and fails."""
    smaller: int | None = None
    """Number of changes of fewer knobs than the first; None: too many to enumerate."""
    smaller_tried: int = 0
    smaller_forbidden: int = 0
    """Number of those that were not tried and break a demand of the source."""
    exhausted: bool = False
    """Every change was asked."""


def search(space: RepairSpace, baseline: Answer, ask: Ask, budget: int) -> BaselineRepair:
    """Return the smallest change found with `budget` compiles at most; `baseline` is the answer to no change."""
    return _RepairSearch(space, baseline, ask, budget).search()


Key = tuple[tuple[str, str], ...]
Size = tuple[int, int, list[tuple[int, int]]]
Rank = tuple[int, tuple[int, float], bool, Size]


def _key(moves: Config) -> Key:
    return tuple(sorted((name, repr(value)) for name, value in moves.items()))


class _RepairSearch:
    def __init__(self, space: RepairSpace, baseline: Answer, ask: Ask, budget: int) -> None:
        self.space, self.base, self.ask, self.budget = space, baseline, ask, budget
        self.tried: dict[Key, BaselineChange] = {(): BaselineChange({}, baseline)}
        self.asked = 0
        self._broken: dict[Key, int] = {}
        self._order = {name: place for place, name in enumerate(space.domains)}
        self._places = {n: {repr(v): i for i, v in enumerate(d)} for n, d in space.domains.items()}

    def search(self) -> BaselineRepair:
        half = self.budget // 2
        for level in self._repairs() if self.broken({}) else ():
            if self._try(level, half):
                break
        if not self.passing():
            self._try(sorted(self._singles(), key=lambda moves: (self.broken(moves), self.size(moves))), self.budget)
        exhausted = False
        if not self.passing():
            exhausted = self._extend()
        if not self.passing():
            return BaselineRepair((), self.asked, exhausted=exhausted)
        minimal = self._reduce()
        best = self.passing()
        shown = [change for change in best if len(change.moves) == len(best[0].moves)][:MOST_SHOWN]
        return BaselineRepair(tuple(shown), self.asked, minimal, *self._smaller(len(best[0].moves)))

    def passing(self) -> list[BaselineChange]:
        """Return the changes that passed, the smallest first."""
        found = [change for change in self.tried.values() if passed(change.answer)]
        return sorted(found, key=lambda change: self.size(change.moves))

    def size(self, moves: Config) -> Size:
        """Return the size of a change: knobs, then steps in their domains, then their order in the signature."""
        steps = [(self._order[name], self._steps(name, value)) for name, value in moves.items()]
        return len(moves), sum(step for _, step in steps), sorted(steps)

    def broken(self, moves: Config) -> int:
        """Return how many demands of the source a configuration breaks."""
        key = _key(moves)
        if key not in self._broken:
            self._broken[key] = sum(1 for _ in self._violated(moves))
        return self._broken[key]

    # ---- asking ----------------------------------------------------------------------------------------------------

    def _try(self, wanted: Iterable[Config], most: int) -> bool:
        """Ask in this order until a change passes and none as small is left; return whether any has passed."""
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
            ordered = {name: moves[name] for name in self.space.domains if name in moves}
            self.tried[_key(moves)] = BaselineChange(ordered, answer)
        self.asked += len(batch)

    def _allowed(self, moves: Config) -> bool:
        names = self.space.names(moves)
        return all(_holds(text, names) for text in self.space.restrict)

    def _singles(self) -> Iterator[Config]:
        for name in self.space.domains:
            for value in self._values(name):
                yield {name: value}

    def _values(self, name: str) -> list[Value]:
        """Return the values of a knob other than the baseline's, the nearest first."""
        others = [v for v in self.space.domains[name] if not same(v, self.space.baseline[name])]
        return sorted(others, key=lambda value: self._steps(name, value))

    def _steps(self, name: str, value: Value) -> int:
        places = self._places[name]
        return abs(places[repr(value)] - places[repr(self.space.baseline[name])])

    # ---- what the source demands -----------------------------------------------------------------------------------

    def _violated(self, moves: Config) -> Iterator[LiteralRule]:
        names = self.space.names(moves)
        return (rule for rule in self.space.demands if not _holds(rule.expression, names))

    def _repairs(self) -> Iterator[list[Config]]:
        """Yield the changes that meet all demands and of which no part does, by the number of their knobs.

        A change that meets a broken demand moves one of its knobs, so only these are turned.
        """
        for count in range(1, len(self.space.domains) + 1):
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
        """Return the knobs that a demand reads, directly or through derived values."""
        named = {*rule.knobs, *expressions.names_in(rule.expression)}
        reached = named.union(*(self.space.depends.get(name, frozenset()) for name in named))
        return [name for name in self.space.domains if name in reached]

    # ---- extend ---------------------------------------------------------------------------------------------

    def _extend(self) -> bool:
        """Turn one more knob of the change that got furthest, until one passes; return whether none is left."""
        heap: list[tuple[Rank, int, Config]] = []
        queued: dict[Key, Rank] = {}
        counter = itertools.count()

        def push(parent: BaselineChange) -> None:
            if not _may_be_extended(parent.answer):
                return  # a candidate that hangs would hang again with one more knob turned
            for single in self._singles():
                (name,) = single
                child = {**parent.moves, **single}
                alone = self.tried.get(_key(single))
                if name in parent.moves or _key(child) in self.tried or (alone and not _may_be_extended(alone.answer)):
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
        """Return how far a failure is from passing: a later stage, a later line and a smaller excess are nearer."""
        if not isinstance(answer, Verdict) or answer.reason is None:
            return 9, 0.0
        reason = answer.reason
        if answer.outcome is Outcome.NO_RESOURCES and reason.kind == "budget":
            return 0, _excess(answer, self.space.target)
        early = {"": 4, "import": 4, "arguments": 3, "front end": 2}
        line = reason.location.line if reason.location else 0
        return early.get(reason.phase, 1), -float(line)

    # ---- reduce ------------------------------------------------------------------------------------------------------

    def _reduce(self) -> bool:
        """Take back moves that are not needed, then bring values nearer; return whether no move can be left out."""
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
        """Count the changes of fewer knobs than `count`: all, those tried, and others that break a demand."""
        sizes = [len(self._values(name)) for name in self.space.domains]
        total = sum(math.prod(chosen) for n in range(1, count) for chosen in itertools.combinations(sizes, n))
        if total > MOST_COUNTED:
            return None, 0, 0
        tried = forbidden = 0
        for number in range(1, count):
            for chosen in itertools.combinations(self.space.domains, number):
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
        return True  # the expression reads a name that this configuration does not have


def _may_be_extended(answer: Answer) -> bool:
    """Return whether an answer says something about configurations with more moves."""
    return isinstance(answer, Verdict) and answer.outcome is not Outcome.HUNG


def _excess(verdict: Verdict, target: Target) -> float:
    """Return the factor by which a program exceeds its budgets, at most; infinite for a size that overflowed."""
    used = verdict.resources
    if used is None or used.shared_bytes < 0:
        return math.inf
    ratios = [used.shared_bytes / target.shared_bytes, used.threads / target.threads]
    if target.tensor_columns and used.tensor_columns:
        ratios.append(used.tensor_columns / target.tensor_columns)
    if target.registers and used.vgpr:
        ratios.append(used.vgpr * used.threads / target.registers)
    return max(ratios)
