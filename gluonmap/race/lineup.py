"""The start of a race: the programs of a map, the sizes, and the track that the racing process is given."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gluonmap.handoff.launches import handed_over
from gluonmap.model.candidate import Config, Value
from gluonmap.model.dtypes import describe_argument
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Verified
from gluonmap.model.knobs import KnobKind
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Resources
from gluonmap.probe.rebuild import description_of
from gluonmap.query.observations import config_key, observations
from gluonmap.spec.description import Description
from gluonmap.worker.protocol import KernelFile
from gluonmap.worker.track import Heat, Track

ROUNDS = 40
FINALISTS = 6
COMPILE_DEADLINE_S = 120.0


@dataclasses.dataclass(frozen=True)
class RaceLineup:
    """A race that can be run: the track, with the configuration and program of each runner."""

    space: SpaceMap
    track: Track
    configs: tuple[Config, ...]
    programs: tuple[Verified, ...]
    floor_from: str


def line_up(
    space: SpaceMap,
    probe_file: Path,
    heats: Mapping[str, Mapping[str, Value]],
    *,
    jobs: int,
    cache: str = "",
    rounds: int = ROUNDS,
    plain: bool = False,
    limit: int | None = None,
    tolerance: Mapping[str, float] | None = None,
) -> RaceLineup:
    """Return the race of a map's programs at one size after the other.

    `heats`: name -> the sizes that differ from the map's. `limit`: the largest number of programs, chosen as the
    hand-off chooses.

    Raises:
        UsageError: the map has no programs, or was made for another specialisation than a size has.
    """
    if space.joint is None or not space.joint.programs:
        raise UsageError("the map has no compiled programs to race; gluonmap probe KERNEL --depth joint finds them.")
    path = Path(space.file).resolve()
    if not path.is_file():
        raise UsageError(f"the map's kernel file {space.file} is not here; run this from the folder it was made in.")
    programs = _racing(space, limit)
    configs = [{**space.baseline, **program.config} for program in programs]
    twin, floor_from = _twin(space)
    described = description_of(space)
    running = []
    for name, shape in heats.items():
        description = dataclasses.replace(described, shape={**space.shape, **shape})
        _demand_specialisation(space, description)
        candidates = tuple(description.candidate(config) for config in [*configs, twin])
        running.append(Heat(name, dict(description.shape), candidates))
    host = [n for n, k in space.knobs.items() if k.kind is KnobKind.HOST]
    track = Track(
        target=space.target,
        file=KernelFile(str(path), space.kernel, space.recipe.stubs),
        probe_file=str(probe_file.resolve()),
        heats=tuple(running),
        hosts=tuple({n: config[n] for n in host} for config in [*configs, twin]),
        twins=(len(configs),),
        rounds=rounds,
        finalists=FINALISTS,
        jobs=jobs,
        deadline_s=COMPILE_DEADLINE_S,
        order=_longest_first([*programs, programs[0]]),
        cache=cache or os.environ.get("TRITON_CACHE_DIR") or str(Path.home() / ".triton" / "cache"),
        plain=plain,
        tolerance=dict(tolerance or {}),
    )
    return RaceLineup(space, track, (*configs, twin), (*programs, programs[0]), floor_from)


def _racing(space: SpaceMap, limit: int | None) -> list[Verified]:
    """Return the programs of the hand-off. The baseline's comes first, because the others are compared with it."""
    assert space.joint is not None
    kept = [repr(config) for config in handed_over(space, limit)]
    known = {repr({**space.baseline, **program.config}): program for program in space.joint.programs}
    base = known.get(repr(space.baseline)) or Verified({}, space.digest, space.resources or Resources(0, 0))
    return [base, *(known[key] for key in kept if key in known and known[key] is not base)]


def _longest_first(programs: Sequence[Verified]) -> tuple[int, ...]:
    """Return the order of compiles: programs that spill take longest, then programs with much code."""
    used = [program.resources for program in programs]
    return tuple(sorted(range(len(used)), key=lambda n: (-(used[n].spills or 0), -(used[n].code_bytes or 0), n)))


def _demand_specialisation(space: SpaceMap, description: Description) -> None:
    """Check that the arguments have the specialisation that the map was made for.

    Raises:
        UsageError: they have another one, so the compiler would make other programs.
    """
    given = {n: describe_argument(v) for n, v in description.candidate({}).args.items()}
    other = [f"{n} is {v}, in the map {space.specialisation.get(n)}" for n, v in given.items()]
    other = [text for text, (n, v) in zip(other, given.items(), strict=True) if space.specialisation.get(n) != v]
    if other:
        raise UsageError(
            f"at this shape the compiler makes other programs than the map's: {'; '.join(other)}. "
            "Map it first: gluonmap probe KERNEL --regime NAME, or --arg."
        )


def _twin(space: SpaceMap) -> tuple[Config, str]:
    """Return a configuration with the baseline's program, and a sentence about it.

    The two runs of one program measure the noise. Where the map knows no such configuration, it is the baseline itself.
    """
    asked = observations(space).joint
    launch_keys = {config_key(item.config): item.launch_key for item in asked}
    own = launch_keys.get(config_key(space.baseline), "")
    for config in (item.config for item in asked) if space.stable else ():
        if own and launch_keys[config_key(config)] == own and config != space.baseline:
            moved = ", ".join(f"{n}={config[n]}" for n in config if config[n] != space.baseline[n])
            return config, f"the baseline and the same program under {moved}"
    return dict(space.baseline), "the baseline twice"
