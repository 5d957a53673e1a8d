"""From a map to a race and from its times to a verdict: what won, what merely tied, and above which noise."""

from __future__ import annotations

import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gluonmap import noise
from gluonmap.again import description_of
from gluonmap.describe import Description, describe_argument
from gluonmap.errors import OracleFault, UsageError
from gluonmap.joint import Verified
from gluonmap.model import Config, KnobKind, Value
from gluonmap.noise import Comparison
from gluonmap.raced import Finalist, RaceRecord
from gluonmap.space import SpaceMap
from gluonmap.worker.protocol import KernelFile
from gluonmap.worker.track import Finish, Track

ROUNDS = 15
FINALISTS = 6
CONFIDENCE = 0.95


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
    shape: Mapping[str, Value],
    *,
    jobs: int,
    cache: str = "",
    rounds: int = ROUNDS,
    plain: bool = False,
    limit: int | None = None,
) -> Line:
    """The race of a map's programs at a shape.

    Raises:
        UsageError: the map has no programs, or holds for other arguments than this shape's.
    """
    if space.joint is None or not space.joint.programs:
        raise UsageError("the map has no compiled programs to race; gluonmap probe KERNEL --depth joint finds them.")
    path = Path(space.file).resolve()
    if not path.is_file():
        raise UsageError(f"the map's kernel file {space.file} is not here; run this from the folder it was made in.")
    description = dataclasses.replace(description_of(space), shape={**space.shape, **shape})
    _demand_specialisation(space, description)
    programs = list(space.joint.programs)[:limit]
    configs = [{**space.baseline, **program.config} for program in programs]
    twin, floor_from = _twin(space)
    candidates = [description.candidate(config) for config in [*configs, twin]]
    host = [n for n, k in space.knobs.items() if k.kind is KnobKind.HOST]
    track = Track(
        target=space.target,
        file=KernelFile(str(path), space.kernel, space.recipe.stubs),
        probe_file=str(probe_file.resolve()),
        shape=dict(description.shape),
        runners=tuple(candidates),
        hosts=tuple({n: config[n] for n in host} for config in [*configs, twin]),
        twins=(len(configs),),
        rounds=rounds,
        finalists=FINALISTS,
        jobs=jobs,
        cache=cache or os.environ.get("TRITON_CACHE_DIR") or str(Path.home() / ".triton" / "cache"),
        plain=plain,
    )
    return Line(space, track, (*configs, twin), (*programs, programs[0]), floor_from)


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
            raise OracleFault(f"the race did not finish: {last}") from None


def judged(line: Line, finish: Finish) -> RaceRecord:
    """What the times say."""
    track, rounds = line.track, finish.rounds_us
    base = rounds[0]
    floor = noise.floor_of([(base, rounds[n]) for n in track.twins if n in rounds], CONFIDENCE)
    racing = {n: times for n, times in rounds.items() if n not in track.twins}
    leading = {int(n) for n in noise.leaders({str(n): t for n, t in racing.items()}, floor, CONFIDENCE)}
    winner = min(leading, key=lambda n: _preferred(line, n))
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
        )
        for n, times in sorted(racing.items())
    )
    space = line.space
    return RaceRecord(
        kernel=space.kernel,
        file=space.file,
        target=space.target,
        shape=track.shape,
        device=finish.device,
        driver=finish.driver,
        triton=finish.triton,
        torch=finish.torch,
        clocks_mhz=finish.clocks_mhz,
        configurations=len(track.runners) - len(track.twins),
        compile_seconds=round(finish.compile_seconds, 3),
        compile_jobs=track.jobs,
        race_seconds=round(finish.race_seconds, 3),
        timed_by="triton" if track.plain else "gluonmap",
        rounds=len(base),
        floor=floor,
        floor_from=line.floor_from,
        autotuner=line.configs[finish.winner],
        winner=line.configs[winner],
        verdict=_verdict(line, winner, leading, noise.compare(rounds[winner], base, floor, CONFIDENCE)),
        finalists=finalists,
        raced_us=tuple((line.configs[n], us) for n, us in enumerate(finish.raced_us) if n not in track.twins),
        failures=tuple((line.configs[n], text) for n, text in finish.failures.items()),
    )


def _preferred(line: Line, number: int) -> tuple[int, int, int]:
    """The order among programs that tie: fewest registers, least shared memory, signature order."""
    resources = line.programs[number].resources
    return resources.vgpr or 0, resources.shared_bytes, number


def _verdict(line: Line, winner: int, leading: set[int], comparison: Comparison) -> str:
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
