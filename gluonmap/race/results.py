"""The results of a race: the winner, what ties with it, the noise, and whether one configuration serves all sizes.

A configuration wins only above the noise floor, which is measured on two runs of one program (`gluonmap.model.noise`).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gluonmap.model import noise
from gluonmap.model.candidate import Config
from gluonmap.model.errors import UsageError
from gluonmap.model.noise import Comparison, RaceStanding
from gluonmap.model.race_record import Finalist, Penalty, RaceRecord, Split
from gluonmap.race.lineup import RaceLineup
from gluonmap.worker.track import Finish, Heat, Leg

CONFIDENCE = 0.95
ONE_FOR_ALL = "one for all"


def race_records(lineup: RaceLineup, finish: Finish) -> list[RaceRecord]:
    """Return the record of each heat.

    Raises:
        UsageError: the baseline's results are wrong, so there is nothing to compare with.
    """
    if 0 in finish.failures:
        raise UsageError(
            f"the baseline of {lineup.space.kernel!r} cannot race: {finish.failures[0]}. gluonmap probe "
            f"{lineup.space.file} --stage check looks at every value."
        )
    return [_race_record(lineup, finish, heat, leg) for heat, leg in zip(lineup.track.heats, finish.legs, strict=True)]


def _race_record(lineup: RaceLineup, finish: Finish, heat: Heat, leg: Leg) -> RaceRecord:
    track, rounds = lineup.track, leg.rounds_us
    floor, leading, winner = _ranking(lineup, leg)
    base = rounds[0]
    finalists = tuple(
        Finalist(
            config=lineup.configs[n],
            digest=lineup.programs[n].digest,
            median_us=statistics.median(times),
            low_us=min(times),
            high_us=max(times),
            against_baseline=noise.compare(times, base, floor, CONFIDENCE),
            resources=lineup.programs[n].resources,
            leads=n in leading,
            error=leg.errors.get(n),
        )
        for n, times in sorted(rounds.items())
        if n not in track.twins
    )
    space = lineup.space
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
        floor_from=lineup.floor_from,
        autotuner=lineup.configs[leg.winner],
        winner=lineup.configs[winner],
        verdict=_verdict(winner, leading, noise.compare(rounds[winner], base, floor, CONFIDENCE)),
        finalists=finalists,
        raced_us=tuple((lineup.configs[n], us) for n, us in enumerate(leg.raced_us) if n not in track.twins),
        failures=tuple((lineup.configs[n], text) for n, text in finish.failures.items()),
        unchecked=finish.unchecked,
    )


class Ranking(NamedTuple):
    """The best runners of one heat."""

    floor: float
    """Noise of the heat: two runs of one program differ by this share of their time."""
    leading: set[int]
    """Runners that lose to none."""
    winner: int
    """The leading runner that a fixed rule prefers."""


def _ranking(lineup: RaceLineup, leg: Leg) -> Ranking:
    track, rounds = lineup.track, leg.rounds_us
    floor = noise.floor_of([(rounds[0], rounds[n]) for n in track.twins if n in rounds], CONFIDENCE)
    racing = {str(n): times for n, times in rounds.items() if n not in track.twins}
    leading = {int(n) for n in noise.leaders(racing, floor, CONFIDENCE)}
    # A runner that is faster than the baseline is preferred to one that only ties with that runner.
    winning = {
        n for n in leading if noise.compare(rounds[n], rounds[0], floor, CONFIDENCE).standing is RaceStanding.WIN
    }
    return Ranking(floor, leading, min(winning or leading, key=lambda n: _preferred(lineup, n)))


def split(lineup: RaceLineup, finish: Finish) -> Split:
    """Return whether one configuration can serve all heats, and what it would cost each of them."""
    heats, legs = lineup.track.heats, finish.legs
    rankings = [_ranking(lineup, leg) for leg in legs]
    winners = [ranking.winner for ranking in rankings]
    one = _one_for_all(lineup, legs)

    def served(number: int, at: int) -> Comparison:
        rounds = legs[at].rounds_us
        return noise.compare(rounds[number], rounds[winners[at]], rankings[at].floor, CONFIDENCE)

    penalties = [
        Penalty(name, lineup.configs[number], heats[at].name, served(number, at))
        for name, number in [*zip((heat.name for heat in heats), winners, strict=True), (ONE_FOR_ALL, one)]
        for at in range(len(heats))
    ]
    serves: dict[str, Config] = {}
    chosen: list[int] = []
    for at, heat in enumerate(heats):
        fit = [n for n in chosen if served(n, at).standing is not RaceStanding.LOSS]
        chosen.append(fit[0] if fit else winners[at])
        serves[heat.name] = lineup.configs[chosen[-1]]
    costs = {heats[at].name: served(one, at) for at in range(len(heats))}
    losing = {name: cost for name, cost in costs.items() if cost.standing is RaceStanding.LOSS}
    return Split(
        kernel=lineup.space.kernel,
        file=lineup.space.file,
        target=lineup.space.target,
        device=finish.device,
        triton=finish.triton,
        shapes={heat.name: heat.shape for heat in heats},
        winners={heat.name: lineup.configs[n] for heat, n in zip(heats, winners, strict=True)},
        one_for_all=lineup.configs[one],
        penalties=tuple(penalties),
        serves=serves,
        split=bool(losing) and len(set(chosen)) > 1,
        verdict=_split_verdict(losing),
    )


def _one_for_all(lineup: RaceLineup, legs: Sequence[Leg]) -> int:
    """Return the runner whose largest slowdown against the fastest of a heat is smallest."""
    medians = [{n: statistics.median(times) for n, times in leg.rounds_us.items()} for leg in legs]
    best = [min(heat.values()) for heat in medians]
    running = [n for n in medians[0] if n not in lineup.track.twins]
    return min(running, key=lambda n: max(heat[n] / least for heat, least in zip(medians, best, strict=True)))


def _split_verdict(losing: Mapping[str, Comparison]) -> str:
    if not losing:
        return "one configuration serves all: nowhere does it lose to a size's own winner by more than the noise"
    costs = ", ".join(f"{name} {(c.ratio.ratio - 1) * 100:.1f} %" for name, c in losing.items())
    return f"split: the best single configuration costs {costs}, above the noise"


def _preferred(lineup: RaceLineup, number: int) -> tuple[int, int, int]:
    """Return a sort key for programs that tie: fewest registers, least shared memory, signature order."""
    resources = lineup.programs[number].resources
    return resources.vgpr or 0, resources.shared_bytes, number


def _verdict(winner: int, leading: set[int], comparison: Comparison) -> str:
    ratio = comparison.ratio
    percent = f"{(1 - ratio.ratio) * 100:.1f} % faster ({(1 - ratio.high) * 100:.1f} to {(1 - ratio.low) * 100:.1f} %)"
    tied = f"; {len(leading) - 1} more tie with it" if len(leading) > 1 else ""
    if comparison.standing is noise.RaceStanding.WIN:
        return f"win: {percent} than the baseline, above a noise of {comparison.floor * 100:.1f} %{tied}"
    if 0 in leading:
        return (
            f"tie: nothing is faster than the baseline by more than the noise of {comparison.floor * 100:.1f} %{tied}"
        )
    return f"{comparison.standing}: against the baseline {percent}, noise {comparison.floor * 100:.1f} %{tied}"
