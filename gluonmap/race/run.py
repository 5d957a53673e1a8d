"""From a map to a race and from its times to a verdict: what won, what merely tied, and above which noise."""

from __future__ import annotations

import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from gluonmap.handoff.launches import handed_over
from gluonmap.model import noise
from gluonmap.model.candidate import Config, Value
from gluonmap.model.dtypes import describe_argument
from gluonmap.model.errors import OracleFault, UsageError
from gluonmap.model.joint_map import Verified
from gluonmap.model.knobs import KnobKind
from gluonmap.model.noise import Comparison, Standing
from gluonmap.model.race_record import Finalist, Penalty, RaceRecord, Split
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Resources
from gluonmap.probe.rebuild import description_of
from gluonmap.spec.description import Description
from gluonmap.worker.protocol import KernelFile
from gluonmap.worker.track import Finish, Heat, Leg, Track

ROUNDS = 40
FINALISTS = 6
CONFIDENCE = 0.95
COMPILE_DEADLINE_S = 120.0
ONE_FOR_ALL = "one for all"


@dataclasses.dataclass(frozen=True)
class Line:
    """A race that can be run: the track, and what stands behind each runner."""

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
) -> Line:
    """The race of a map's programs, at one size after the other: name → the sizes that differ from the map's.

    At most `limit` programs, chosen as the hand-off does.

    Raises:
        UsageError: the map has no programs, or holds for other arguments than a size's.
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
    return Line(space, track, (*configs, twin), (*programs, programs[0]), floor_from)


def _racing(space: SpaceMap, limit: int | None) -> list[Verified]:
    """The programs that the hand-off would give, the baseline's first: it is what the others are compared with."""
    assert space.joint is not None
    kept = [repr(config) for config in handed_over(space, limit)]
    known = {repr({**space.baseline, **program.config}): program for program in space.joint.programs}
    base = known.get(repr(space.baseline)) or Verified({}, space.digest, space.resources or Resources(0, 0))
    return [base, *(known[key] for key in kept if key in known and known[key] is not base)]


def _longest_first(programs: Sequence[Verified]) -> tuple[int, ...]:
    """The order of their compiles: those whose registers spill take longest, then those with most code."""
    used = [program.resources for program in programs]
    return tuple(sorted(range(len(used)), key=lambda n: (-(used[n].spills or 0), -(used[n].code_bytes or 0), n)))


def _demand_specialisation(space: SpaceMap, description: Description) -> None:
    """Stop where the compiler would know something else of the arguments than it knew for the map."""
    given = {n: describe_argument(v) for n, v in description.candidate({}).args.items()}
    other = [f"{n} is {v}, in the map {space.specialisation.get(n)}" for n, v in given.items()]
    other = [text for text, (n, v) in zip(other, given.items(), strict=True) if space.specialisation.get(n) != v]
    if other:
        raise UsageError(
            f"at this shape the compiler makes other programs than the map's: {'; '.join(other)}. "
            "Map it first: gluonmap probe KERNEL --regime NAME, or --arg."
        )


def _twin(space: SpaceMap) -> tuple[Config, str]:
    """Another configuration that is the baseline's very program; the baseline itself where the map knows none."""
    assert space.joint is not None
    names = tuple(space.joint.domains)
    configs = [{**space.baseline, **dict(zip(names, t.values, strict=True))} for t in space.joint.tried]
    digests = {repr(config): t.digest for config, t in zip(configs, space.joint.tried, strict=True)}
    own = digests.get(repr(space.baseline), "")
    for config in configs if space.stable else []:
        if own and digests[repr(config)] == own and config != space.baseline:
            moved = ", ".join(f"{n}={config[n]}" for n in config if config[n] != space.baseline[n])
            return config, f"the baseline and the same program under {moved}"
    return dict(space.baseline), "the baseline twice"


def run(line: Line) -> Finish:
    """Race in a process of its own, which has the device to itself as far as this tool goes.

    Raises:
        OracleFault: it did not finish.
    """
    with tempfile.TemporaryDirectory(prefix=f"gluonmap-{os.getpid()}-") as folder:
        track, finish = Path(folder) / "track.json", Path(folder) / "finish.json"
        track.write_bytes(msgspec.json.encode(line.track))
        done = subprocess.run(
            [sys.executable, "-m", "gluonmap.worker.race", str(track), str(finish)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        try:
            return msgspec.json.decode(finish.read_bytes(), type=Finish)
        except OSError:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise OracleFault(
                f"the race did not finish: {last}. A launch that faults ends it for all: gluonmap probe "
                f"{line.space.file} --target {line.space.target} --stage check launches each program apart."
            ) from None


def judged(line: Line, finish: Finish) -> list[RaceRecord]:
    """What the times say, by heat.

    Raises:
        UsageError: the baseline's numbers are wrong, so there is nothing to compare with.
    """
    if 0 in finish.failures:
        raise UsageError(
            f"the baseline of {line.space.kernel!r} cannot race: {finish.failures[0]}. gluonmap probe "
            f"{line.space.file} --stage check looks at every value."
        )
    return [_judged(line, finish, heat, leg) for heat, leg in zip(line.track.heats, finish.legs, strict=True)]


def _judged(line: Line, finish: Finish, heat: Heat, leg: Leg) -> RaceRecord:
    track, rounds = line.track, leg.rounds_us
    floor, leading, winner = _standing(line, leg)
    base = rounds[0]
    finalists = tuple(
        Finalist(
            config=line.configs[n],
            digest=line.programs[n].digest,
            median_us=statistics.median(times),
            low_us=min(times),
            high_us=max(times),
            against_baseline=noise.compare(times, base, floor, CONFIDENCE),
            resources=line.programs[n].resources,
            leads=n in leading,
            error=leg.errors.get(n),
        )
        for n, times in sorted(rounds.items())
        if n not in track.twins
    )
    space = line.space
    return RaceRecord(
        kernel=space.kernel,
        file=space.file,
        target=space.target,
        shape=heat.shape,
        device=finish.device,
        driver=finish.driver,
        triton=finish.triton,
        torch=finish.torch,
        clocks_mhz=leg.clocks_mhz,
        configurations=len(heat.runners) - len(track.twins),
        compile_seconds=round(finish.compile_seconds, 3),
        compile_jobs=track.jobs,
        race_seconds=round(leg.race_seconds, 3),
        timed_by="triton" if track.plain else "gluonmap",
        rounds=len(base),
        floor=floor,
        floor_from=line.floor_from,
        autotuner=line.configs[leg.winner],
        winner=line.configs[winner],
        verdict=_verdict(winner, leading, noise.compare(rounds[winner], base, floor, CONFIDENCE)),
        finalists=finalists,
        raced_us=tuple((line.configs[n], us) for n, us in enumerate(leg.raced_us) if n not in track.twins),
        failures=tuple((line.configs[n], text) for n, text in finish.failures.items()),
        unchecked=finish.unchecked,
    )


def _standing(line: Line, leg: Leg) -> tuple[float, set[int], int]:
    """The noise of a heat, who loses to nobody there, and which of them the fixed rule prefers."""
    track, rounds = line.track, leg.rounds_us
    floor = noise.floor_of([(rounds[0], rounds[n]) for n in track.twins if n in rounds], CONFIDENCE)
    racing = {str(n): times for n, times in rounds.items() if n not in track.twins}
    leading = {int(n) for n in noise.leaders(racing, floor, CONFIDENCE)}
    winning = {
        n for n in leading if noise.compare(rounds[n], rounds[0], floor, CONFIDENCE).standing is Standing.WIN
    }  # what is faster than the baseline comes before what only ties with that
    return floor, leading, min(winning or leading, key=lambda n: _preferred(line, n))


def split(line: Line, finish: Finish) -> Split:
    """Whether one configuration can serve all heats, and what it would cost each."""
    heats, legs = line.track.heats, finish.legs
    standings = [_standing(line, leg) for leg in legs]
    winners = [winner for _, _, winner in standings]
    one = _one_for_all(line, legs)

    def served(number: int, at: int) -> Comparison:
        rounds = legs[at].rounds_us
        return noise.compare(rounds[number], rounds[winners[at]], standings[at][0], CONFIDENCE)

    penalties = [
        Penalty(name, line.configs[number], heats[at].name, served(number, at))
        for name, number in [*zip((heat.name for heat in heats), winners, strict=True), (ONE_FOR_ALL, one)]
        for at in range(len(heats))
    ]
    serves: dict[str, Config] = {}
    chosen: list[int] = []
    for at, heat in enumerate(heats):
        fit = [n for n in chosen if served(n, at).standing is not Standing.LOSS]
        chosen.append(fit[0] if fit else winners[at])
        serves[heat.name] = line.configs[chosen[-1]]
    costs = {heats[at].name: served(one, at) for at in range(len(heats))}
    losing = {name: cost for name, cost in costs.items() if cost.standing is Standing.LOSS}
    return Split(
        kernel=line.space.kernel,
        file=line.space.file,
        target=line.space.target,
        device=finish.device,
        triton=finish.triton,
        shapes={heat.name: heat.shape for heat in heats},
        winners={heat.name: line.configs[n] for heat, n in zip(heats, winners, strict=True)},
        one_for_all=line.configs[one],
        penalties=tuple(penalties),
        serves=serves,
        split=bool(losing) and len(set(chosen)) > 1,
        verdict=_split_verdict(losing),
    )


def _one_for_all(line: Line, legs: Sequence[Leg]) -> int:
    """The runner of the rounds that is least behind the fastest where it is farthest behind."""
    medians = [{n: statistics.median(times) for n, times in leg.rounds_us.items()} for leg in legs]
    best = [min(heat.values()) for heat in medians]
    running = [n for n in medians[0] if n not in line.track.twins]
    return min(running, key=lambda n: max(heat[n] / least for heat, least in zip(medians, best, strict=True)))


def _split_verdict(losing: Mapping[str, Comparison]) -> str:
    if not losing:
        return "one configuration serves all: nowhere does it lose to a size's own winner by more than the noise"
    told = ", ".join(f"{name} {(c.ratio.ratio - 1) * 100:.1f} %" for name, c in losing.items())
    return f"split: the best single configuration costs {told}, above the noise"


def _preferred(line: Line, number: int) -> tuple[int, int, int]:
    """The order among programs that tie: fewest registers, least shared memory, signature order."""
    resources = line.programs[number].resources
    return resources.vgpr or 0, resources.shared_bytes, number


def _verdict(winner: int, leading: set[int], comparison: Comparison) -> str:
    ratio = comparison.ratio
    percent = f"{(1 - ratio.ratio) * 100:.1f} % faster ({(1 - ratio.high) * 100:.1f} to {(1 - ratio.low) * 100:.1f} %)"
    tied = f"; {len(leading) - 1} more tie with it" if len(leading) > 1 else ""
    if comparison.standing is noise.Standing.WIN:
        return f"win: {percent} than the baseline, above a noise of {comparison.floor * 100:.1f} %{tied}"
    if 0 in leading:
        return (
            f"tie: nothing is faster than the baseline by more than the noise of {comparison.floor * 100:.1f} %{tied}"
        )
    return f"{comparison.standing}: against the baseline {percent}, noise {comparison.floor * 100:.1f} %{tied}"
