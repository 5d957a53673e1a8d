"""The regressions among the differences of two maps, as docs/diff.md defines them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from gluonmap.diff.bridge import Bridge, PairedJudgement
from gluonmap.diff.circumstances import vendor
from gluonmap.diff.flips import Flip, MapJudgement
from gluonmap.diff.resources import Growth, ProgramPair, Tolerance, distinct_programs, excessive_growth
from gluonmap.handoff.launches import dropped, verified
from gluonmap.model.candidate import Config
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.feasibility import moves_of
from gluonmap.query.observations import ConfigKey, config_key


class RegressionKind(StrEnum):
    """Kinds of regression, in the order of a report."""

    BASELINE = "baseline"
    """The baseline fails."""
    VALUE = "value"
    """One knob moved from the baseline fails."""
    COMBINATION = "combination"
    """Several knobs moved together fail."""
    PROGRAM = "program"
    """The program passes, and is no longer handed over because of its resources."""
    SPILLS = "spills"
    REGISTERS = "registers"


class Regression(msgspec.Struct, frozen=True, omit_defaults=True):
    """One configuration that was compiled and passed in the first map, and is worse in the second."""

    kind: RegressionKind
    config: Config
    moves: Config
    again: Config
    """Moves from the second map's baseline to the same configuration."""
    handed_over: bool
    """The first map hands it over."""
    after: MapJudgement | None = None
    """The second map's judgement, if it fails."""
    growth: Growth | None = None
    """The resource that grew, if it spills more or takes more registers."""
    why: str = ""
    """Reason why it is no longer handed over."""
    file: str = ""
    line: int | None = None
    """Line of the kernel's source where it fails today; without one, the line that declares a moved knob."""


@dataclass(frozen=True, slots=True)
class _Cause:
    kind: RegressionKind
    config: Config
    after: MapJudgement | None = None
    growth: Growth | None = None
    why: str = ""


def regressions(
    bridge: Bridge,
    judgements: Iterable[PairedJudgement],
    flips: Iterable[Flip],
    pairs: Iterable[ProgramPair],
    tolerance: Tolerance,
) -> list[Regression]:
    """Return the regressions by kind, then by growth (largest first), then by number of moves (fewest first)."""
    handed = handed_over_keys(bridge.before)
    causes = [*_failing(flips), *_condemned(bridge, handed, judgements), *_grown(bridge, pairs, tolerance)]
    found = [_regression(bridge, handed, cause) for cause in causes]
    kinds = list(RegressionKind)
    return sorted(found, key=lambda r: (kinds.index(r.kind), -r.growth.amount if r.growth else 0, len(r.moves)))


def handed_over_keys(space: SpaceMap) -> set[ConfigKey]:
    """Return the configurations that a map hands over."""
    return {config_key(entry.config) for entry in verified(space)} - {
        config_key(config) for config, _ in dropped(space)
    }


def _failing(flips: Iterable[Flip]) -> Iterator[_Cause]:
    kinds = RegressionKind.BASELINE, RegressionKind.VALUE, RegressionKind.COMBINATION
    for flip in flips:
        if flip.lost and flip.before.compiled and not flip.deeper:
            yield _Cause(kinds[min(len(flip.moves), 2)], flip.config, after=flip.after)


def _condemned(bridge: Bridge, handed: set[ConfigKey], judgements: Iterable[PairedJudgement]) -> Iterator[_Cause]:
    condemned = {config_key(config): why for config, why in dropped(bridge.after)}
    for item in judgements:
        why = condemned.get(config_key(item.other))
        if why and config_key(item.config) in handed and item.after.verdict is Feasibility.FEASIBLE:
            yield _Cause(RegressionKind.PROGRAM, item.config, why=why)


def _grown(bridge: Bridge, pairs: Iterable[ProgramPair], tolerance: Tolerance) -> Iterator[_Cause]:
    kinds = {"spills": RegressionKind.SPILLS, "vgpr": RegressionKind.REGISTERS}
    for pair in distinct_programs(pairs):
        for growth in excessive_growth(pair, tolerance, vendor(bridge.after)):
            yield _Cause(kinds[growth.resource], pair.config, growth=growth)


def _regression(bridge: Bridge, handed: set[ConfigKey], cause: _Cause) -> Regression:
    moves = bridge.moves(cause.config)
    again = moves_of(bridge.after, bridge.to_after(cause.config) or {})
    place = cause.after.line if cause.after else ""
    return Regression(
        cause.kind, cause.config, moves, again, config_key(cause.config) in handed, cause.after, cause.growth,
        cause.why, *_file_and_line(place, moves, bridge.after),
    )  # fmt: skip


def _file_and_line(place: str, moves: Config, space: SpaceMap) -> tuple[str, int | None]:
    """Return the file and line of "file.py:112"; else the kernel's file and the line that declares a moved knob."""
    file, _, number = place.rpartition(":")
    if file and number.isdecimal():
        return file, int(number)
    declared = (space.knobs[name].line for name in moves if name in space.knobs)
    return space.file, next((line for line in declared if line is not None), None)
