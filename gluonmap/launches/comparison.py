"""The launches of a program, compared with the configurations that its maps hand over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from gluonmap.export.heading import is_spelled
from gluonmap.handoff.launches import launches, options_of
from gluonmap.launches.records import Launched, Recorded
from gluonmap.model.candidate import Config, Value, same
from gluonmap.model.errors import UsageError
from gluonmap.model.knobs import KnobKind
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.feasibility import Judge
from gluonmap.query.reduced_space import ReducedSpace, reduced_space_of


class LaunchStanding(StrEnum):
    """The relation of a launched configuration to its kernel's map."""

    LISTED = "on the map's list"
    TWIN = "the same program as one on the list"
    UNLISTED = "feasible, not on the list"
    FORBIDDEN = "fails by the map"
    UNKNOWN = "the map cannot tell"
    NO_MAP = "no map of this target"


TUNED = (LaunchStanding.LISTED, LaunchStanding.TWIN)


class Judged(msgspec.Struct, frozen=True):
    """A launched program of a mapped kernel, compared with the map."""

    launched: Launched
    standing: LaunchStanding
    moves: Config = {}
    """Knobs whose values differ from the map's baseline."""
    why: str = ""


class MapVerdict(msgspec.Struct, frozen=True):
    """The verdict on one mapped kernel."""

    kernel: str
    targets: tuple[str, ...]
    tuned: bool
    """True if the kernel was launched, and only with configurations on the map's list."""
    words: str
    programs: tuple[Judged, ...]


def compare(recorded: Recorded, maps: Sequence[SpaceMap]) -> tuple[MapVerdict, ...]:
    """Return a verdict on each mapped kernel, in the order of the maps."""
    kernels = {(space.kernel, Path(space.file).name): None for space in maps}
    verdicts = []
    for kernel, file in kernels:
        mine = [space for space in maps if (space.kernel, Path(space.file).name) == (kernel, file)]
        known = {space.target: _MapIndex(space) for space in mine}
        judged = tuple(_judged(item, known) for item in _of_kernel(recorded.launched, kernel, file))
        tuned, words = _summary(judged)
        verdicts.append(MapVerdict(kernel, tuple(known), tuned, words, judged))
    return tuple(verdicts)


def _of_kernel(launched: Iterable[Launched], kernel: str, file: str) -> list[Launched]:
    """Return the launches of a kernel: those with its file's name, else all with the function's name."""
    named = [item for item in launched if item.kernel == kernel]
    here = [item for item in named if Path(item.file).name == file]
    return here or named


def _summary(judged: Sequence[Judged]) -> tuple[bool, str]:
    """Return whether all launches were tuned, and a sentence about them."""
    ran = [item for item in judged if item.launched.launches]
    if not ran:
        return False, "was launched to be tuned, and never by the program" if judged else "never ran"
    total = sum(item.launched.launches for item in ran)
    untuned = sum(item.launched.launches for item in ran if item.standing not in TUNED)
    if untuned:
        return False, f"{untuned:,} of {total:,} launches were of no configuration on the map's list"
    return True, f"all {total:,} launches were of configurations on the map's list"


class _MapIndex:
    """A map with its list of configurations, to compare launches with."""

    def __init__(self, space: SpaceMap) -> None:
        self.space, self.judge = space, Judge(space)
        self.options = options_of(space.target)
        self.host = {name for name, knob in space.knobs.items() if knob.kind is KnobKind.HOST}
        self.reduced: ReducedSpace = reduced_space_of(space)
        try:
            self.list = launches(space)
        except UsageError:  # nothing passed: every launch is untuned
            self.list = []
        self.forms = {repr(self._form({n: v for n, v in item.items() if n in space.baseline})) for item in self.list}

    def judge_launch(self, item: Launched) -> Judged:
        """Compare one launch with the map."""
        if item.config is None:
            return Judged(item, LaunchStanding.UNKNOWN, why="a process that was not watched compiled it")
        had: Config = {**item.options, **item.config}
        for name, value in self.space.recipe.fixed.items():
            if name not in self.options and name in item.config and not _same(item.config[name], value):
                why = f"{name} is {item.config[name]!r}, and {value!r} in the map"
                return Judged(item, LaunchStanding.UNKNOWN, why=why)
        seen = {name: had[name] for name in self.space.baseline if name in had and name not in self.host}
        moves = {name: value for name, value in seen.items() if not _same(value, self.space.baseline[name])}
        missing = [name for name in self.space.baseline if name not in had and name not in self.host]
        if missing:
            return Judged(item, LaunchStanding.UNKNOWN, moves, f"{', '.join(missing)} cannot be seen")
        if any(all(n in had and _same(had[n], v) for n, v in launch.items()) for launch in self.list):
            return Judged(item, LaunchStanding.LISTED, moves)
        full = {**self.space.baseline, **seen}
        fixed = {n: v for n, v in self.space.recipe.fixed.items() if n in self.options and n in had}
        if strange := [name for name, value in fixed.items() if not _same(had[name], value)]:
            why = ", ".join(f"{name} is {had[name]!r}, and {fixed[name]!r} in the map" for name in strange)
            return Judged(item, LaunchStanding.UNLISTED, moves, why)
        if repr(self._form(seen)) in self.forms:
            return Judged(item, LaunchStanding.TWIN, moves)
        judgement = self.judge(full)
        match judgement.verdict:
            case Feasibility.FEASIBLE:
                return Judged(item, LaunchStanding.UNLISTED, moves)
            case Feasibility.INFEASIBLE:
                why = judgement.reason or "; ".join(broken.words for broken in judgement.shown_constraints)
                return Judged(item, LaunchStanding.FORBIDDEN, moves, why)
            case Feasibility.UNKNOWN:
                return Judged(item, LaunchStanding.UNKNOWN, moves, str(judgement.basis))

    def _form(self, seen: Config) -> Config:
        """Return the canonical form of a launched configuration.

        Host knobs have the baseline's values, because a launch does not show them.
        """
        return self.reduced.canonical({**self.space.baseline, **seen})


def _judged(item: Launched, known: dict[str, _MapIndex]) -> Judged:
    index = known.get(item.target)
    if index is None:
        of = f"there is one of {', '.join(sorted(known))}" if item.target else "its target cannot be seen"
        return Judged(item, LaunchStanding.NO_MAP if item.target else LaunchStanding.UNKNOWN, why=of)
    return index.judge_launch(item)


def _same(had: Value, mapped: Value) -> bool:
    """Return whether two values are equal and of one type.

    A value that the map can only spell counts as equal, because a launch spells it otherwise.
    """
    return same(had, mapped) or is_spelled(mapped)
