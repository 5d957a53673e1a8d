"""What differs between two maps: two maps in, a frozen `Difference` out.

Configurations are compared, not settings: where a knob is turned by one map alone, the two are compared at the value
that the other map holds it at. What a map says of a configuration that it was not asked is the judgement of `judge`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from gluonmap import targets
from gluonmap.difference import (
    Asked,
    Budget,
    Circumstance,
    ConstraintChange,
    Count,
    Difference,
    Direction,
    Flip,
    Formula,
    Growth,
    KnobChange,
    KnobState,
    Move,
    Pair,
    Regression,
    RegressionKind,
    ResourceChange,
    Said,
    Shared,
    Side,
    Tolerance,
    Turn,
    ValueChange,
)
from gluonmap.errors import UsageError
from gluonmap.handoff.launches import dropped, verified
from gluonmap.joint import Constraint, Joint, Standing
from gluonmap.judge import Basis, Feasibility, Judge, Judgement, feasibility, key_of, moves_of, same
from gluonmap.merging import place_of, shape_of, table_over
from gluonmap.model import Config, Effect, KnobClass, Outcome, Resources, Stage, Value
from gluonmap.reduce import Elimination, Factor, TooEntangled, relation_factor
from gluonmap.relation import scope_of, words
from gluonmap.space import KnobMap, SpaceMap, ValueMap
from gluonmap.terms import Relation

FEW_ROWS = 100_000
"""Configurations that an example is looked for among; of more, as many are drawn as `DRAWN` says."""
DRAWN = 4096

DEFAULT = Tolerance()


def difference(before: SpaceMap, after: SpaceMap, tolerance: Tolerance = DEFAULT) -> Difference:
    """Return what differs from `before` to `after`.

    Raises:
        UsageError: the maps have no knob in common, so nothing can be compared.
    """
    if before.baseline and after.baseline and not before.baseline.keys() & after.baseline.keys():
        raise UsageError(
            f"the maps of {before.kernel!r} and {after.kernel!r} have no knob in common ({', '.join(before.baseline)}; "
            f"{', '.join(after.baseline)}): give two maps of one kernel."
        )
    return _Comparison(before, after, tolerance).difference()


class _Bridge:
    """The configurations of one map as those of the other."""

    def __init__(self, before: SpaceMap, after: SpaceMap) -> None:
        self.before, self.after = before, after
        self.held: Config = {
            n: after.recipe.fixed.get(n, v) for n, v in before.baseline.items() if n not in after.baseline
        }
        self.held |= {n: before.recipe.fixed.get(n, v) for n, v in after.baseline.items() if n not in before.baseline}
        self.shared = tuple(n for n in before.baseline if n in after.baseline)
        self.baseline = {**before.baseline, **{n: v for n, v in self.held.items() if n in before.baseline}}

    def to_after(self, config: Config) -> Config | None:
        """A configuration of the first map; None where it turns a knob that the second map does not."""
        return self._across(config, self.after.baseline)

    def to_before(self, config: Config) -> Config | None:
        """A configuration of the second map; None where it turns a knob that the first map does not."""
        return self._across(config, self.before.baseline)

    def _across(self, config: Config, names: Iterable[str]) -> Config | None:
        if any(name in self.held and not same(value, self.held[name]) for name, value in config.items()):
            return None
        return {name: self.held[name] if name in self.held else config[name] for name in names}


class _Comparison:
    def __init__(self, before: SpaceMap, after: SpaceMap, tolerance: Tolerance) -> None:
        self.before, self.after, self.tolerance = before, after, tolerance
        self.bridge = _Bridge(before, after)
        self.judges = Judge(before), Judge(after)
        self.device = _failed_on_device(before), _failed_on_device(after)
        self.handed = _handed(before)
        self.one_baseline = all(same(before.baseline[n], after.baseline[n]) for n in self.bridge.shared)

    def difference(self) -> Difference:
        told = list(self._told())
        flips = tuple(flip for config, one, other in told if (flip := self._flip(config, one, other)))
        pairs = tuple(self._pairs(told))
        shared, constraints = self._together()
        return Difference(
            before=_side(self.before),
            after=_side(self.after),
            circumstances=tuple(_circumstances(self.before, self.after)),
            notes=tuple(self._notes()),
            regressions=tuple(self._regressions(told, flips, pairs)),
            values=tuple(self._values()),
            knobs=tuple(self._knobs()),
            constraints=tuple(constraints),
            formula=_formula(self.before, self.after),
            counts=tuple(_counts(self.before, self.after)),
            shared=shared,
            asked=_asked(told, pairs),
            flips=flips,
            pairs=pairs,
            resources=tuple(_resource_changes(pairs)),
            tolerance=self.tolerance,
        )

    # ---- single values and knobs ---------------------------------------------------------------------------------

    def _values(self) -> Iterator[ValueChange]:
        found = []
        for name, one, other in self._turned():
            later = {repr(v.value): v for v in other.values}
            alone = all(same(self.before.baseline[n], self.after.baseline[n]) for n in self.bridge.shared if n != name)
            for value in one.values:
                if (now := later.get(repr(value.value))) and (turn := _turn(value, now, effects=self.one_baseline)):
                    found.append(ValueChange(name, value.value, turn, alone, value, now))
        order = list(Turn)
        yield from sorted(found, key=lambda change: order.index(change.turn))

    def _turned(self) -> Iterator[tuple[str, KnobMap, KnobMap]]:
        for name in self.bridge.shared:
            if name in self.before.knobs and name in self.after.knobs:
                yield name, self.before.knobs[name], self.after.knobs[name]

    def _knobs(self) -> Iterator[KnobChange]:
        passed = self.before.outcome == self.after.outcome == Outcome.PASS  # else one of the maps has no knobs
        if not passed:
            return
        for name in dict.fromkeys((*self.before.baseline, *self.after.baseline)):
            one, other = self.before.knobs.get(name), self.after.knobs.get(name)
            tried = [_values_of(self.before, name), _values_of(self.after, name)]
            common = {repr(v) for v in tried[0]} & {repr(v) for v in tried[1]}
            states = self._state(self.before, name, common), self._state(self.after, name, common)
            if one is None or other is None:
                if one or other:
                    yield KnobChange(name, *states, self.bridge.held.get(name))
                continue
            only = [tuple(v for v in values if repr(v) not in common) for values in tried]
            if any(only) or _says_otherwise(*states, effects=self.one_baseline):
                yield KnobChange(name, *states, None, *only)

    def _state(self, space: SpaceMap, name: str, common: set[str]) -> KnobState | None:
        """What a map says of a knob; of all knobs together only where both maps say it."""
        if name not in space.knobs:
            return None
        knob, groups, condition = space.knobs[name], space.knobs[name].equivalent, None
        if self.before.joint and self.after.joint and space.joint:
            classes = [item for item in space.joint.value_classes if item.knob == name and item.relation is None]
            groups = tuple(group for item in classes for group in item.classes)
            condition = next((item.condition for item in space.joint.inertness if item.knob == name), None)
        kept = (tuple(value for value in group if repr(value) in common) for group in groups)
        equal = tuple(group for group in kept if len(group) > 1)
        return KnobState(knob.knob_class, knob.kind, knob.why, equal, condition)

    # ---- configurations ------------------------------------------------------------------------------------------

    def _told(self) -> Iterator[tuple[Config, Judgement, Judgement]]:
        """What both maps say of every configuration that one of them was asked, as the first map spells it."""
        found: dict[tuple[str, ...], tuple[Config, Config]] = {}
        for config in _known(self.before):
            if (other := self.bridge.to_after(config)) is not None:
                found.setdefault(key_of(config), (config, other))
        for other in _known(self.after):
            if (back := self.bridge.to_before(other)) is not None:
                found.setdefault(key_of(back), (back, other))
        for one, two in found.values():
            yield one, self.judges[0](one), self.judges[1](two)

    def _flip(self, config: Config, one: Judgement, other: Judgement) -> Flip | None:
        if {one.verdict, other.verdict} != {Feasibility.FEASIBLE, Feasibility.INFEASIBLE}:
            return None
        if Basis.COMPILED not in (one.basis, other.basis) or not (_claims(one) and _claims(other)):
            return None
        return Flip(config, self._moves(config), _said(one), _said(other), self._deeper(config))

    def _deeper(self, config: Config) -> bool:
        """It failed on a device, and the map by which it passes was not taken as far."""
        far = [_stage(space) for space in (self.before, self.after)]
        failed = [key_of(config) in self.device[0], key_of(self.bridge.to_after(config) or {}) in self.device[1]]
        return any(failed) and far[0] is not far[1]

    def _moves(self, config: Config) -> Config:
        return {n: v for n, v in config.items() if not same(v, self.bridge.baseline[n])}

    def _pairs(self, told: Iterable[tuple[Config, Judgement, Judgement]]) -> Iterator[Pair]:
        """Configurations that passed in both maps, their programs known; only within one maker's devices."""
        if _vendor(self.before) != _vendor(self.after):
            return
        for config, one, other in told:
            passed = one.outcome == other.outcome == Outcome.PASS
            if passed and one.digest and other.digest and one.resources and other.resources:
                yield Pair(config, self._moves(config), one.digest, other.digest, one.resources, other.resources)

    # ---- regressions ---------------------------------------------------------------------------------------------

    def _regressions(
        self, told: Sequence[tuple[Config, Judgement, Judgement]], flips: Sequence[Flip], pairs: Sequence[Pair]
    ) -> list[Regression]:
        kinds = RegressionKind.BASELINE, RegressionKind.VALUE, RegressionKind.COMBINATION
        found = [
            self._regression(kinds[min(len(flip.moves), 2)], flip.config, after=flip.after)
            for flip in flips
            if flip.lost and flip.before.compiled and not flip.deeper
        ]
        condemned = {key_of(config): why for config, why in dropped(self.after)}
        for config, _, other in told:
            why = condemned.get(key_of(self.bridge.to_after(config) or {}))
            if why and key_of(config) in self.handed and other.verdict is Feasibility.FEASIBLE:
                found.append(self._regression(RegressionKind.PROGRAM, config, why=why))
        for pair in _distinct(pairs):
            for kind, growth in _grown(pair, self.tolerance, _vendor(self.after)):
                found.append(self._regression(kind, pair.config, growth=growth))
        order = list(RegressionKind)
        return sorted(found, key=lambda r: (order.index(r.kind), -_amount(r.growth), len(r.moves)))

    def _regression(
        self,
        kind: RegressionKind,
        config: Config,
        after: Said | None = None,
        growth: Growth | None = None,
        why: str = "",
    ) -> Regression:
        moves = self._moves(config)
        file, line = _place(after.line if after else "", self.after)
        if line is None:
            declared = (self.after.knobs[name].line for name in moves if name in self.after.knobs)
            line = next((number for number in declared if number is not None), None)
        again = moves_of(self.after, self.bridge.to_after(config) or {})
        handed_over = key_of(config) in self.handed
        return Regression(kind, config, moves, again, handed_over, after, growth, why, file, line)

    # ---- all knobs together --------------------------------------------------------------------------------------

    def _together(self) -> tuple[Shared | None, list[ConstraintChange]]:
        if self.before.joint is None or self.after.joint is None:
            return None, []
        return _Together(self.before, self.after, self.bridge).compared()

    def _notes(self) -> Iterator[str]:
        one, other = self.before, self.after
        changed = {item.name for item in _circumstances(one, other)}
        causes = [n for n in ("kernel", "target", "Triton", "source", "arguments", "fixed", "derived") if n in changed]
        if one.kernel != other.kernel and Path(one.file).name != Path(other.file).name:
            yield "these seem to be two kernels, and no two states of one"
        if other.outcome != Outcome.PASS or one.outcome != Outcome.PASS:
            yield "a map whose baseline fails knows nothing else: only the baselines are compared"
        if not self.one_baseline:
            yield (
                "the baselines differ, so single values are moves from different configurations: whether they pass is "
                "compared all the same, what they change is not. A regression is always one of equal configurations"
            )
        if len(causes) > 1:
            yield f"{_listed(causes)} differ at once: no difference can be put down to one of them"
        if not one.source or not other.source:
            yield "a map does not record the source that it was made from: whether the kernel has changed is not known"
        for name, space in (("A", one), ("B", other)):
            if space.joint is None and space.outcome == Outcome.PASS:
                yield f"{name} knows one knob at a time only, so no whole spaces are compared: probe with --depth joint"
            if space.unanswered or (space.joint and space.joint.stopped):
                yield f"{name} is incomplete: its probe ended before its time"
            if space.stable is False:
                yield f"{name} is of unstable code: two compiles gave two programs, so equal ones prove nothing there"
        if _vendor(one) != _vendor(other):
            yield "registers and spills of different makers are different things: resources are not compared"
        if _stage(one) is not _stage(other):
            yield "one map was taken further on a device: what fails there alone is told, and is no regression"
        elif _stage(one) is Stage.TIME:
            yield "times are not compared: two runs drift. gluonmap race compares programs in turns"


# ---- one configuration ----------------------------------------------------------------------------------------------


def _known(space: SpaceMap) -> Iterator[Config]:
    """The configurations that a map has an answer for; those with the fewest moves first."""
    yield space.baseline
    for name, knob in space.knobs.items():
        yield from ({**space.baseline, name: v.value} for v in knob.values)
    if space.joint:
        for tried in space.joint.tried:
            yield {**space.baseline, **dict(zip(space.joint.domains, tried.values, strict=True))}
        yield from ({**space.baseline, **program.config} for program in space.joint.programs)
        yield from ({**space.baseline, **refused.config} for refused in space.joint.refused)


def _claims(told: Judgement) -> bool:
    """The compiler, or a constraint that some failure confirmed, says it: no demand of the user alone."""
    if told.basis is Basis.COMPILED or told.verdict is Feasibility.FEASIBLE:
        return True
    return any(item.confirmed and item.standing is not Standing.GIVEN for item in told.broken)


def _said(told: Judgement) -> Said:
    broken = told.telling if told.verdict is Feasibility.INFEASIBLE else ()
    line = told.line or next((item.line for item in broken if item.line), "")
    compiled = told.basis is Basis.COMPILED
    texts = tuple(item.words for item in broken)
    return Said(told.verdict, compiled, told.outcome, told.reason, line, told.stage, texts)


def _failed_on_device(space: SpaceMap) -> set[tuple[str, ...]]:
    """Configurations that compiled and failed on the device."""
    found = {key_of({**space.baseline, **item.config}) for item in space.joint.refused} if space.joint else set()
    if space.measured and space.outcome != Outcome.PASS:
        found.add(key_of(space.baseline))
    for name, knob in space.knobs.items():
        found |= {
            key_of({**space.baseline, name: v.value}) for v in knob.values if v.measured and v.outcome != Outcome.PASS
        }
    return found


def _handed(space: SpaceMap) -> set[tuple[str, ...]]:
    """The configurations that a map hands over."""
    condemned = {key_of(config) for config, _ in dropped(space)}
    return {key_of(entry.config) for entry in verified(space)} - condemned


def _asked(told: Iterable[tuple[Config, Judgement, Judgement]], pairs: Sequence[Pair]) -> Asked:
    judged = [(one, other) for _, one, other in told]
    both = [(one, other) for one, other in judged if one.basis is other.basis is Basis.COMPILED]
    passed = [pair for pair in both if all(each.verdict is Feasibility.FEASIBLE for each in pair)]

    def unknown(one: Judgement, other: Judgement) -> bool:
        """`one` passed, and nothing is known of it on the other side."""
        return one.outcome == Outcome.PASS and other.verdict is Feasibility.UNKNOWN

    return Asked(
        both=len(both),
        passed_both=len(passed),
        one_program=sum(pair.one_program for pair in pairs) if pairs else None,
        programs=len(pairs),
        unknown_after=sum(unknown(one, other) for one, other in judged),
        unknown_before=sum(unknown(other, one) for one, other in judged),
    )


# ---- single values --------------------------------------------------------------------------------------------------


def _turn(before: ValueMap, after: ValueMap, *, effects: bool) -> Turn | None:
    """What became of a value; None: nothing that matters. `effects`: whether what it changes can be compared."""
    passes = [feasibility(value.outcome) for value in (before, after)]
    if Feasibility.UNKNOWN in passes:
        return None if passes[0] is passes[1] else Turn.UNKNOWN
    crashes = after.outcome == Outcome.CRASHED and before.outcome != Outcome.CRASHED
    if passes[1] is Feasibility.INFEASIBLE:
        if crashes:
            return Turn.ABORTING
        if passes[0] is Feasibility.FEASIBLE:
            return Turn.FAILING
        return None if (before.outcome, before.kind) == (after.outcome, after.kind) else Turn.OTHERWISE
    if passes[0] is Feasibility.INFEASIBLE:
        return Turn.PASSING
    return _turn_of_effect(before.effect, after.effect) if effects else None


def _turn_of_effect(before: Effect, after: Effect) -> Turn | None:
    live = (Effect.LIVE, Effect.LIVE_HOST)
    if before in live and after is Effect.INERT:
        return Turn.INERT
    if before is Effect.INERT and after in live:
        return Turn.LIVE
    return Turn.ELSEWHERE if before in live and after in live and before is not after else None


def _values_of(space: SpaceMap, name: str) -> tuple[Value, ...]:
    return tuple(v.value for v in space.knobs[name].values) if name in space.knobs else ()


def _says_otherwise(one: KnobState | None, other: KnobState | None, *, effects: bool) -> bool:
    """Whether two maps say different things of a knob; `effects`: whether what it changes can be compared."""
    if one is None or other is None:
        return one is not other
    live = (KnobClass.LIVE, KnobClass.INERT)
    one_class = one.knob_class is other.knob_class or (not effects and {one.knob_class, other.knob_class} <= set(live))
    if not one_class or one.kind is not other.kind:
        return True
    groups = [sorted(sorted(map(repr, group)) for group in state.one_program) for state in (one, other)]
    conditions = one.condition, other.condition
    return effects and (groups[0] != groups[1] or (None not in conditions and conditions[0] != conditions[1]))


# ---- circumstances --------------------------------------------------------------------------------------------------


def _side(space: SpaceMap) -> Side:
    depth = space.joint.depth if space.joint else "singles"
    return Side(
        space.kernel, space.file, space.target, space.triton, space.baseline, space.outcome, space.stable, depth,
        _stage(space).value,
    )  # fmt: skip


def _vendor(space: SpaceMap) -> str:
    return targets.find(space.target).vendor


def _stage(space: SpaceMap) -> Stage:
    return space.on_device.stage if isinstance(space.on_device, msgspec.Struct) else Stage.COMPILE


def _circumstances(before: SpaceMap, after: SpaceMap) -> Iterator[Circumstance]:
    """What differs that is no finding, in the order of its weight."""

    def differing(name: str, one: object, other: object) -> Iterator[Circumstance]:
        if repr(one) != repr(other):
            yield Circumstance(name, str(one), str(other))

    yield from differing("kernel", before.kernel, after.kernel)
    yield from differing("file", before.file, after.file)
    yield from differing("target", before.target, after.target)
    yield from differing("Triton", before.triton, after.triton)
    if before.source and after.source and sorted(before.source.values()) != sorted(after.source.values()):
        yield from _entries("source", before.source, after.source)
    yield from _entries("arguments", before.specialisation, after.specialisation)
    yield from _entries("sizes", before.shape, after.shape)
    yield from differing("grid", before.recipe.grid, after.recipe.grid)
    yield from _entries("fixed", before.recipe.fixed, after.recipe.fixed)
    yield from _entries("derived", before.recipe.derive, after.recipe.derive)
    if before.joint and after.joint:
        yield from differing("restrictions", _given(before.joint), _given(after.joint))
    shared = [n for n in before.baseline if n in after.baseline]
    yield from _entries("baseline", _only(before.baseline, shared), _only(after.baseline, shared))
    yield from differing("depth", _side(before).depth, _side(after).depth)
    yield from differing("stage", _stage(before).value, _stage(after).value)
    devices = [s.on_device.device if isinstance(s.on_device, msgspec.Struct) else "" for s in (before, after)]
    if all(devices):
        yield from differing("device", *devices)


def _given(joint: Joint) -> str:
    return "; ".join(sorted({item.words for item in joint.constraints if item.standing is Standing.GIVEN})) or "none"


def _entries(name: str, before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterator[Circumstance]:
    """The entries of two dictionaries that differ, as one circumstance."""
    names = [n for n in dict.fromkeys((*before, *after)) if repr(before.get(n, ...)) != repr(after.get(n, ...))]
    texts = ("; ".join(f"{n}: {d[n]}" if n in d else f"no {n}" for n in names) for d in (before, after))
    if names:
        yield Circumstance(name, *texts)


def _only(config: Config, names: Iterable[str]) -> Config:
    return {name: config[name] for name in names}


# ---- constraints and whole spaces -----------------------------------------------------------------------------------


_OF_THE_KERNEL = (Standing.READ, Standing.LEARNED, Standing.IMPLIED)
"""All but what the user demands."""


class _Together:
    """Two maps with a joint part, over the values that both tried; a knob of one map alone is held."""

    def __init__(self, before: SpaceMap, after: SpaceMap, bridge: _Bridge) -> None:
        assert before.joint and after.joint
        self.before, self.after, self.bridge = before, after, bridge
        self.joints = before.joint, after.joint
        self.domains: dict[str, tuple[Value, ...]] = {n: (v,) for n, v in bridge.held.items()}
        for name in bridge.shared:
            other = after.joint.domains[name]
            self.domains[name] = tuple(v for v in before.joint.domains[name] if place_of(other, v) is not None)
        self.names = tuple(self.domains)
        self.values = tuple(self.domains.values())
        self.empty = any(not domain for domain in self.values)

    def compared(self) -> tuple[Shared | None, list[ConstraintChange]]:
        try:
            given = self._factors(Standing.GIVEN)
            before, after = (self._factors(*_OF_THE_KERNEL, of=place) for place in (0, 1))
            shared = self._shared(given, before, after)
        except TooEntangled:
            return None, self._changes(None)
        return shared, self._changes((given, before, after))

    def _factors(self, *standings: Standing, of: int | None = None) -> list[Factor]:
        """The tables of the constraints of one map or of both; those that read something else say nothing here."""
        joints = self.joints if of is None else (self.joints[of],)
        relations = [item.relation for joint in joints for item in joint.constraints if item.standing in standings]
        return [relation_factor(self.names, self.values, r) for r in relations if scope_of(r) <= set(self.names)]

    def _count(self, factors: Iterable[Factor]) -> int:
        return 0 if self.empty else self._eliminated(factors).count

    def _eliminated(self, factors: Iterable[Factor]) -> Elimination:
        return Elimination([len(domain) for domain in self.values], factors)

    def _shared(self, given: list[Factor], before: list[Factor], after: list[Factor]) -> Shared | None:
        if self.empty:
            return None
        asked = [joint.enumerated or joint.sizes.complete for joint in self.joints]
        return Shared(
            signature=self._count(given),
            before=self._count([*given, *before]),
            after=self._count([*given, *after]),
            both=self._count([*given, *before, *after]),
            proved=all(asked),
            lost_example=self._example([*given, *before], after, self.before.baseline),
            gained_example=self._example([*given, *after], before, self.after.baseline),
        )

    def _example(self, allowed: list[Factor], refused: list[Factor], baseline: Config) -> Config | None:
        """A configuration that is allowed and that one of `refused` forbids, as near to the baseline as any."""
        home = {**baseline, **self.bridge.held}
        start = [p if (p := place_of(d, home[n])) is not None else -1 for n, d in self.domains.items()]
        best: tuple[int, list[int]] | None = None
        for factor in refused:
            found = self._eliminated([*allowed, _negated(factor)])
            if not found.count:
                continue
            rows = found.rows() if found.count <= FEW_ROWS else found.sample(DRAWN, np.random.default_rng(0))
            moves = (rows != np.array(start, np.int16)).sum(1)
            place = int(moves.argmin())
            if best is None or moves[place] < best[0]:
                best = int(moves[place]), rows[place].tolist()
        if best is None:
            return None
        config = {n: d[i] for (n, d), i in zip(self.domains.items(), best[1], strict=True)}
        return {name: config[name] for name in baseline}

    # ---- which constraint became which ---------------------------------------------------------------------------

    def _changes(self, factors: tuple[list[Factor], list[Factor], list[Factor]] | None) -> list[ConstraintChange]:
        one, other = _telling(self.before), _telling(self.after)
        found = []
        for move in (None, Move.LIMIT, Move.OTHER):
            for first in list(one):
                second = next((item for item in other if self._became(move, first, item)), None)
                if second is not None:
                    one.remove(first)
                    other.remove(second)
                    found += [self._change(move, first, second, factors)] if move else []
        found += [self._change(Move.GONE, item, None, factors) for item in one]
        found += [self._change(Move.NEW, None, item, factors) for item in other]
        order = list(Move)
        return sorted(found, key=lambda c: (not (c.freed or c.forbidden), order.index(c.move)))

    def _became(self, move: Move | None, before: Constraint, after: Constraint) -> bool:
        """Whether the second constraint is the first one after such a move; None: it says the same."""
        match move:
            case None:
                return before.relation == after.relation or self._direction(before.relation, after.relation) == ""
            case Move.LIMIT:
                return _shape(before) == _shape(after)
            case _:
                return _why(before) == _why(after) or (before.scope == after.scope and len(before.scope) == 1)

    def _change(
        self,
        move: Move,
        before: Constraint | None,
        after: Constraint | None,
        factors: tuple[list[Factor], list[Factor], list[Factor]] | None,
    ) -> ConstraintChange:
        direction = Direction.LOOSER if after is None else Direction.TIGHTER if before is None else None
        if before and after:
            said = self._direction(before.relation, after.relation)
            direction = said if isinstance(said, Direction) else None
        freed = forbidden = None
        if factors:
            given, first, second = factors
            freed = self._breaking([*given, *second], before)
            forbidden = self._breaking([*given, *first], after)
        budget = _budget(self.before, before, self.after, after)
        return ConstraintChange(move, before, after, direction, budget, freed, forbidden)

    def _breaking(self, allowed: list[Factor], constraint: Constraint | None) -> int | None:
        """How many of the allowed configurations break a constraint; None: it cannot be told."""
        if constraint is None or not scope_of(constraint.relation) <= set(self.names):
            return None
        try:
            return self._count([*allowed, _negated(relation_factor(self.names, self.values, constraint.relation))])
        except TooEntangled:
            return None

    def _direction(self, before: Relation, after: Relation) -> Direction | str | None:
        """How the second relation differs from the first where both tried; "": in nothing. None: it cannot be told."""
        if self.empty or not scope_of(before) | scope_of(after) <= set(self.names):
            return None
        try:
            tables = [relation_factor(self.names, self.values, relation) for relation in (before, after)]
            columns = tuple(sorted({c for table in tables for c in table.columns}))
            shape = shape_of(self.values, columns)
        except TooEntangled:
            return None
        one, other = (np.broadcast_to(table_over(table, columns), shape) > 0 for table in tables)
        looser, tighter = bool((other & ~one).any()), bool((one & ~other).any())
        if looser and tighter:
            return Direction.SHIFTED
        return Direction.LOOSER if looser else Direction.TIGHTER if tighter else ""


def _negated(factor: Factor) -> Factor:
    return Factor(factor.columns, 1.0 - factor.table)


def _telling(space: SpaceMap) -> list[Constraint]:
    """The constraints that say something of their own about the kernel."""
    assert space.joint
    return [c for c in space.joint.constraints if c.confirmed and c.standing in (Standing.READ, Standing.LEARNED)]


def _shape(item: Constraint) -> str:
    """A constraint without its numbers."""
    return re.sub(r"(?<![\w.])\d[\d.]*(?![\w.])", "#", words(item.relation))


def _why(item: Constraint) -> tuple[str, str, str]:
    """What a constraint is the reason of, without numbers; never equal to another's where it is not said."""
    return item.outcome, item.stage, re.sub(r"\d[\d,.]*", "#", item.reason) or repr(item.relation)


def _budget(before: SpaceMap, one: Constraint | None, after: SpaceMap, other: Constraint | None) -> Budget | None:
    """The limit of the hardware behind two forms of one constraint, where it has moved."""
    if one is None or other is None or not one.outcome == other.outcome == Outcome.NO_RESOURCES:
        return None
    limits = targets.find(before.target), targets.find(after.target)
    for unit, field in (
        ("bytes of shared memory", "shared_bytes"),
        ("threads", "threads"),
        ("columns", "tensor_columns"),
    ):
        if unit in one.reason and unit in other.reason:
            old, new = (int(getattr(limit, field)) for limit in limits)
            return Budget(unit, old, new) if old != new else None
    return None


def _formula(before: SpaceMap, after: SpaceMap) -> Formula | None:
    texts = [space.joint.formula if space.joint else "" for space in (before, after)]
    limits = [targets.find(space.target).shared_bytes for space in (before, after)]
    if not all(texts) or (texts[0] == texts[1] and limits[0] == limits[1]):
        return None
    return Formula(texts[0], limits[0], texts[1], limits[1])


def _counts(before: SpaceMap, after: SpaceMap) -> Iterator[Count]:
    def sizes(space: SpaceMap) -> tuple[int | None, int | None, int | None]:
        found = space.joint.sizes if space.joint else None
        return (found.signature, found.feasible, found.programs) if found else (None, None, None)

    for name, one, other in zip(
        ("configurations of the signature", "feasible configurations", "distinct programs"),
        sizes(before),
        sizes(after),
        strict=True,
    ):
        if one is not None or other is not None:
            yield Count(name, one, other, effort=one is None or other is None)
    asked = [len({key_of(config) for config in _known(space)}) for space in (before, after)]
    yield Count("configurations asked", asked[0], asked[1], effort=True)
    yield Count("programs compiled and passed", len(verified(before)), len(verified(after)), effort=True)
    yield Count("configurations handed over", len(_handed(before)), len(_handed(after)), effort=True)


# ---- resources ------------------------------------------------------------------------------------------------------


def _distinct(pairs: Iterable[Pair]) -> list[Pair]:
    """One pair for each two programs, the one with the fewest moves."""
    found: dict[tuple[str, str], Pair] = {}
    for pair in sorted(pairs, key=lambda pair: len(pair.moves)):
        found.setdefault((pair.before_digest, pair.after_digest), pair)
    return list(found.values())


def _resource_changes(pairs: Iterable[Pair]) -> Iterator[ResourceChange]:
    distinct = _distinct(pairs)
    for name in Resources.__struct_fields__:
        both = [(pair, getattr(pair.before, name), getattr(pair.after, name)) for pair in distinct]
        told = [Growth(pair.moves, name, one, other) for pair, one, other in both if None not in (one, other)]
        if not told:
            continue
        most, least = max(told, key=_amount), min(told, key=_amount)
        yield ResourceChange(
            name,
            len(told),
            sum(growth.after > growth.before for growth in told),
            sum(growth.after < growth.before for growth in told),
            most if most.after > most.before else None,
            least if least.after < least.before else None,
        )


def _amount(growth: Growth | None) -> int:
    return growth.after - growth.before if growth else 0


def _grown(pair: Pair, tolerance: Tolerance, vendor: str) -> Iterator[tuple[RegressionKind, Growth]]:
    """Spills and registers of a pair that grew beyond the tolerance; code that begins to spill always did."""
    factor = 1 + tolerance.percent / 100
    # NVIDIA tells spills in bytes of local memory: a register is four.
    floors = {"spills": tolerance.registers * (1 if vendor == "AMD" else 4), "vgpr": tolerance.registers}
    kinds = {"spills": RegressionKind.SPILLS, "vgpr": RegressionKind.REGISTERS}
    for name, kind in kinds.items():
        one, other = _number(pair.before, name), _number(pair.after, name)
        if one is None or other is None:
            continue
        begins = name == "spills" and one == 0 < other
        if begins or (other - one > floors[name] and other > one * factor):
            yield kind, Growth(pair.moves, name, one, other)


def _number(resources: Resources, name: str) -> int | None:
    found = getattr(resources, name)
    return found if found is None else int(found)


# ---- text -----------------------------------------------------------------------------------------------------------


def _place(line: str, space: SpaceMap) -> tuple[str, int | None]:
    """The file and the line of "file.py:112"; the kernel's file where there is none."""
    file, _, number = line.rpartition(":")
    return (file, int(number)) if file and number.isdecimal() else (space.file, None)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
