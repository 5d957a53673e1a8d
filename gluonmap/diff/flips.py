"""Configurations that pass by one map and fail by the other, and how many the two can be compared on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from gluonmap.diff.bridge import Bridge, PairedJudgement
from gluonmap.diff.circumstances import stage, watched
from gluonmap.diff.resources import ProgramPair
from gluonmap.model.candidate import Config
from gluonmap.model.joint_map import Standing
from gluonmap.model.outcomes import Feasibility, Outcome
from gluonmap.query.feasibility import Basis, Judgement


class MapJudgement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one map says of one configuration."""

    verdict: Feasibility
    compiled: bool
    """This very configuration was asked; false: its constraints tell."""
    outcome: str = ""
    reason: str = ""
    line: str = ""
    """Where in the kernel's source it ended, or what it breaks stands: "kernels/gemm.py:112"."""
    stage: str = ""
    broken: tuple[str, ...] = ()
    """The constraints that forbid it, in words."""


class Flip(msgspec.Struct, frozen=True):
    """A configuration that passes by one map and fails by the other; at least one of them asked it."""

    config: Config
    """As the first map spells it."""
    moves: Config
    """Against the first map's baseline."""
    before: MapJudgement
    after: MapJudgement
    deeper: bool = False
    """It fails when executed, which the other map was not as far: the compiles do not differ."""

    @property
    def lost(self) -> bool:
        """It passes by the first map."""
        return self.before.verdict is Feasibility.FEASIBLE


class ComparedCount(msgspec.Struct, frozen=True):
    """How many configurations the two maps can be compared on."""

    both: int
    """ComparedCount for both."""
    passed_both: int
    one_program: int | None
    """Of those that passed in both and whose programs are known: how many are one program. None: none is known."""
    programs: int
    """How many those are."""
    unknown_after: int
    """Passed for the first map; the second neither asked nor predicts them."""
    unknown_before: int


def flips(bridge: Bridge, told: Iterable[PairedJudgement]) -> list[Flip]:
    """Return the configurations that changed sides."""
    return [
        Flip(item.config, bridge.moves(item.config), _said(item.before), _said(item.after), _deeper(bridge, item))
        for item in told
        if {item.before.verdict, item.after.verdict} == {Feasibility.FEASIBLE, Feasibility.INFEASIBLE}
        and Basis.COMPILED in (item.before.basis, item.after.basis)
        and _claims(item.before)
        and _claims(item.after)
    ]


def _claims(told: Judgement) -> bool:
    """The compiler, or a constraint that some failure confirmed, says it: no demand of the user alone."""
    if told.basis is Basis.COMPILED or told.verdict is Feasibility.FEASIBLE:
        return True
    return any(item.confirmed and item.standing is not Standing.GIVEN for item in told.broken)


def _said(told: Judgement) -> MapJudgement:
    broken = told.shown_constraints if told.verdict is Feasibility.INFEASIBLE else ()
    line = told.line or next((item.line for item in broken if item.line), "")
    compiled = told.basis is Basis.COMPILED
    texts = tuple(item.words for item in broken)
    return MapJudgement(told.verdict, compiled, told.outcome, told.reason, line, told.stage, texts)


def _deeper(bridge: Bridge, item: PairedJudgement) -> bool:
    """It failed when executed, and the map by which it passes was not executed, or not watched, as far."""
    before, after = bridge.judges
    if stage(bridge.before) is stage(bridge.after):
        if watched(bridge.before) is watched(bridge.after):
            return False
        return Outcome.UNSAFE in (item.before.outcome, item.after.outcome)
    return before.failed_on_device(item.config) or after.failed_on_device(item.other)


def compared_count(told: Sequence[PairedJudgement], pairs: Sequence[ProgramPair]) -> ComparedCount:
    """Return on how many configurations the maps can be compared; `pairs` are those that passed in both."""
    both = [item for item in told if item.before.basis is item.after.basis is Basis.COMPILED]
    return ComparedCount(
        both=len(both),
        passed_both=sum(item.before.verdict is item.after.verdict is Feasibility.FEASIBLE for item in both),
        one_program=sum(pair.one_program for pair in pairs) if pairs else None,
        programs=len(pairs),
        unknown_after=sum(_passed_unknown(item.before, item.after) for item in told),
        unknown_before=sum(_passed_unknown(item.after, item.before) for item in told),
    )


def _passed_unknown(one: Judgement, other: Judgement) -> bool:
    """It passed for the one map, and nothing is known of it on the other side."""
    return one.outcome == Outcome.PASS and other.verdict is Feasibility.UNKNOWN
