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
    """The judgement of one map on one configuration."""

    verdict: Feasibility
    compiled: bool
    """The map asked this very configuration; false: its constraints predict the verdict."""
    outcome: str = ""
    reason: str = ""
    line: str = ""
    """Place in the kernel's source where it ended, or of the constraint that it breaks: "kernels/gemm.py:112"."""
    stage: str = ""
    broken: tuple[str, ...] = ()
    """The constraints that forbid it, in words."""


class Flip(msgspec.Struct, frozen=True):
    """A configuration that passes by one map and fails by the other; at least one of them asked it."""

    config: Config
    """The configuration with the first map's knobs."""
    moves: Config
    """Moves from the first map's baseline."""
    before: MapJudgement
    after: MapJudgement
    deeper: bool = False
    """It fails in an execution that the other map did not make: the compiles do not differ."""

    @property
    def lost(self) -> bool:
        """Return whether it passes by the first map."""
        return self.before.verdict is Feasibility.FEASIBLE


class ComparedCount(msgspec.Struct, frozen=True):
    """Numbers of configurations on which the two maps can be compared."""

    both: int
    """Configurations that both maps asked."""
    passed_both: int
    one_program: int | None
    """Of `programs`, those that are one program in both maps. None: `programs` is 0."""
    programs: int
    """Configurations that passed in both maps and whose programs both maps know."""
    unknown_after: int
    """Configurations that passed in the first map, and that the second neither asked nor predicts."""
    unknown_before: int
    """Configurations that passed in the second map, and that the first neither asked nor predicts."""


def flips(bridge: Bridge, judgements: Iterable[PairedJudgement]) -> list[Flip]:
    """Return the configurations that pass by one map and fail by the other."""
    return [
        Flip(
            item.config,
            bridge.moves(item.config),
            _map_judgement(item.before),
            _map_judgement(item.after),
            _deeper(bridge, item),
        )
        for item in judgements
        if {item.before.verdict, item.after.verdict} == {Feasibility.FEASIBLE, Feasibility.INFEASIBLE}
        and Basis.COMPILED in (item.before.basis, item.after.basis)
        and _has_evidence(item.before)
        and _has_evidence(item.after)
    ]


def _has_evidence(judgement: Judgement) -> bool:
    """Return whether a compile, or a constraint that a failure confirmed, supports it: not a user's demand alone."""
    if judgement.basis is Basis.COMPILED or judgement.verdict is Feasibility.FEASIBLE:
        return True
    return any(item.confirmed and item.standing is not Standing.GIVEN for item in judgement.broken)


def _map_judgement(judgement: Judgement) -> MapJudgement:
    broken = judgement.shown_constraints if judgement.verdict is Feasibility.INFEASIBLE else ()
    line = judgement.line or next((item.line for item in broken if item.line), "")
    return MapJudgement(
        judgement.verdict,
        judgement.basis is Basis.COMPILED,
        judgement.outcome,
        judgement.reason,
        line,
        judgement.stage,
        tuple(item.words for item in broken),
    )


def _deeper(bridge: Bridge, item: PairedJudgement) -> bool:
    """Return whether it failed in an execution, or under the sanitizer, that the other map did not have."""
    before, after = bridge.judges
    if stage(bridge.before) is stage(bridge.after):
        if watched(bridge.before) is watched(bridge.after):
            return False
        return Outcome.UNSAFE in (item.before.outcome, item.after.outcome)
    return before.failed_on_device(item.config) or after.failed_on_device(item.other)


def compared_count(judgements: Sequence[PairedJudgement], pairs: Sequence[ProgramPair]) -> ComparedCount:
    """Return on how many configurations the maps can be compared; `pairs` are those that passed in both."""
    both = [item for item in judgements if item.before.basis is item.after.basis is Basis.COMPILED]
    return ComparedCount(
        both=len(both),
        passed_both=sum(item.before.verdict is item.after.verdict is Feasibility.FEASIBLE for item in both),
        one_program=sum(pair.one_program for pair in pairs) if pairs else None,
        programs=len(pairs),
        unknown_after=sum(_passed_unknown(item.before, item.after) for item in judgements),
        unknown_before=sum(_passed_unknown(item.after, item.before) for item in judgements),
    )


def _passed_unknown(one: Judgement, other: Judgement) -> bool:
    """Return whether it passed in the one map, and the other map does not know it."""
    return one.outcome == Outcome.PASS and other.verdict is Feasibility.UNKNOWN
