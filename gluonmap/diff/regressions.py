"""What of a difference is a regression: docs/diff.md says it in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from gluonmap.diff.bridge import Bridge, PairedJudgement
from gluonmap.diff.circumstances import vendor
from gluonmap.diff.flips import Flip, MapJudgement
from gluonmap.diff.resources import Growth, ProgramPair, Tolerance, beyond, distinct
from gluonmap.handoff.launches import dropped, verified
from gluonmap.model.candidate import Config
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.feasibility import moves_of
from gluonmap.query.observations import ConfigKey, config_key


class RegressionKind(StrEnum):
    """What has become worse."""

    BASELINE = "baseline"
    """It fails."""
    VALUE = "value"
    """One knob moved from the baseline fails."""
    COMBINATION = "combination"
    """Several knobs moved together fail."""
    PROGRAM = "program"
    """It passes, and is no longer handed over: its resources condemn it."""
    SPILLS = "spills"
    REGISTERS = "registers"


class Regression(msgspec.Struct, frozen=True, omit_defaults=True):
    """One configuration that was compiled and passed for the first map, and is worse off in the second."""

    kind: RegressionKind
    config: Config
    moves: Config
    again: Config
    """Moves from the second map's baseline that lead there."""
    handed_over: bool
    """It was one of the first map's hand-over."""
    after: MapJudgement | None = None
    """Why it fails."""
    growth: Growth | None = None
    """What it takes more of."""
    why: str = ""
    """Why it is no longer handed over."""
    file: str = ""
    line: int | None = None
    """Where in the kernel's source, today; the knob's declaration where no message tells."""


@dataclass(frozen=True, slots=True)
class _Cause:
    kind: RegressionKind
    config: Config
    after: MapJudgement | None = None
    growth: Growth | None = None
    why: str = ""


def regressions(
    bridge: Bridge,
    told: Iterable[PairedJudgement],
    flips: Iterable[Flip],
    pairs: Iterable[ProgramPair],
    tolerance: Tolerance,
) -> list[Regression]:
    """Return the regressions: by kind, what grew most first, then what is nearest to the first baseline."""
    handed = handed_over(bridge.before)
    causes = [*_failing(flips), *_condemned(bridge, handed, told), *_grown(bridge, pairs, tolerance)]
    found = [_regression(bridge, handed, cause) for cause in causes]
    kinds = list(RegressionKind)
    return sorted(found, key=lambda r: (kinds.index(r.kind), -r.growth.amount if r.growth else 0, len(r.moves)))


def handed_over(space: SpaceMap) -> set[ConfigKey]:
    """Return the configurations that a map hands over."""
    return {config_key(entry.config) for entry in verified(space)} - {
        config_key(config) for config, _ in dropped(space)
    }


def _failing(flips: Iterable[Flip]) -> Iterator[_Cause]:
    kinds = RegressionKind.BASELINE, RegressionKind.VALUE, RegressionKind.COMBINATION
    for flip in flips:
        if flip.lost and flip.before.compiled and not flip.deeper:
            yield _Cause(kinds[min(len(flip.moves), 2)], flip.config, after=flip.after)


def _condemned(bridge: Bridge, handed: set[ConfigKey], told: Iterable[PairedJudgement]) -> Iterator[_Cause]:
    condemned = {config_key(config): why for config, why in dropped(bridge.after)}
    for item in told:
        why = condemned.get(config_key(item.other))
        if why and config_key(item.config) in handed and item.after.verdict is Feasibility.FEASIBLE:
            yield _Cause(RegressionKind.PROGRAM, item.config, why=why)


def _grown(bridge: Bridge, pairs: Iterable[ProgramPair], tolerance: Tolerance) -> Iterator[_Cause]:
    kinds = {"spills": RegressionKind.SPILLS, "vgpr": RegressionKind.REGISTERS}
    for pair in distinct(pairs):
        for growth in beyond(pair, tolerance, vendor(bridge.after)):
            yield _Cause(kinds[growth.resource], pair.config, growth=growth)


def _regression(bridge: Bridge, handed: set[ConfigKey], cause: _Cause) -> Regression:
    moves = bridge.moves(cause.config)
    again = moves_of(bridge.after, bridge.to_after(cause.config) or {})
    said = cause.after.line if cause.after else ""
    return Regression(
        cause.kind, cause.config, moves, again, config_key(cause.config) in handed, cause.after, cause.growth,
        cause.why, *_place(said, moves, bridge.after),
    )  # fmt: skip


def _place(said: str, moves: Config, space: SpaceMap) -> tuple[str, int | None]:
    """The file and the line of "file.py:112"; else the kernel's file, and where a moved knob is declared."""
    file, _, number = said.rpartition(":")
    if file and number.isdecimal():
        return file, int(number)
    declared = (space.knobs[name].line for name in moves if name in space.knobs)
    return space.file, next((line for line in declared if line is not None), None)
