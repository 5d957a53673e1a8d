"""Races without a device: who goes on, what is shared between launches, and what times are worth."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from mapped import joint_map

from gluonmap.errors import UsageError
from gluonmap.export import dispatch
from gluonmap.joint import Verified
from gluonmap.model import Candidate, Config, Resources
from gluonmap.noise import Standing
from gluonmap.race import ONE_FOR_ALL, Line, judged, split
from gluonmap.raced import RaceRecord
from gluonmap.worker.protocol import KernelFile
from gluonmap.worker.race import _divided, _hook, _Judge, compromise, finalists
from gluonmap.worker.track import Finish, Heat, Leg, Track


def test_the_winner_goes_on_and_all_within_ten_percent_of_the_best() -> None:
    assert finalists([100.0, None, 120.0, 108.0, 101.0], winner=3, most=6) == [3, 0, 4]
    assert finalists([100.0, 101.0, 102.0, 103.0], winner=0, most=2) == [0, 1]


class Clock:
    """A device whose launches last as long as the launch says."""

    def __init__(self) -> None:
        self.launches = 0

    def times_us(self, launch: Callable[[], Any], count: int) -> list[float]:
        self.launches += count
        return [launch() for _ in range(count)]


def test_what_cannot_win_any_more_gets_three_launches() -> None:
    device = Clock()
    judge = _Judge(device)  # type: ignore[arg-type]
    assert judge.measure(lambda: 100.0) == [0.1, 0.1, 0.1]
    assert device.launches == 23
    judge.measure(lambda: 140.0)
    assert device.launches == 26
    judge.measure(lambda: 120.0)
    assert device.launches == 49


def test_what_launches_have_in_common_is_told_from_what_is_each_ones_own() -> None:
    tensor = SimpleNamespace(data_ptr=lambda: 0)
    calls: list[dict[str, Any]] = [
        {"x": tensor, "N": 16, "TILE": 64, "FLAG": True, "num_warps": 4},
        {"x": tensor, "N": 16, "TILE": 128, "FLAG": 1, "num_warps": 4},
    ]
    shared, own = _divided(calls)
    assert shared == {"x": tensor, "N": 16}
    # What `triton.Config` has a field for is always its own: the field's default would win over the call.
    assert own == [{"TILE": 64, "FLAG": True, "num_warps": 4}, {"TILE": 128, "FLAG": 1, "num_warps": 4}]


def test_a_descriptor_is_put_in_place_again_after_another_one_was() -> None:
    first, second = SimpleNamespace(block_shape=[64]), SimpleNamespace(block_shape=[128])
    shared, own = _divided([{"d": first}, {"d": second}])
    hooks = [_hook(mine) for mine in own]
    for hook, block in [(hooks[1], [128]), (hooks[0], [64]), (hooks[1], [128])]:
        hook({"d": shared["d"]})
        assert shared["d"].block_shape == block


BASE: Config = {"M": 32, "N": 32, "FLAG": False, "MODE": None}


def line(registers: Sequence[int], twins: Sequence[int], heats: int = 1) -> Line:
    space = joint_map()
    configs = tuple({**space.baseline, "n": i} for i in range(len(registers)))
    used = [Resources(256, 1024, vgpr=number) for number in registers]
    programs = tuple(Verified(c, f"p{i}", used[i]) for i, c in enumerate(configs))
    track = Track(
        target="gfx950", file=KernelFile("/k.py", "k"), probe_file="/p.py",
        heats=tuple(
            Heat(f"M={m}", {"M": m}, tuple(Candidate("gfx950", {}, c) for c in configs)) for m in (16, 4096)[:heats]
        ),
        hosts=({},) * len(configs), twins=tuple(twins),
        rounds=15, finalists=6, jobs=2, deadline_s=9.0,
        order=tuple(range(len(configs))), cache="/cache",
    )  # fmt: skip
    return Line(space, track, configs, programs, "the baseline twice")


def leg(factors: dict[int, float], winner: int, seed: int = 0, count: int = 15) -> Leg:
    chance = random.Random(seed)
    clocks = [1 + 0.2 * chance.random() for _ in range(count)]
    rounds = {n: tuple(100 * f * c * (1 + chance.gauss(0, 0.002)) for c in clocks) for n, f in factors.items()}
    return Leg(2.0, tuple(100 * factors.get(n, 1.5) for n in range(5)), winner, rounds, (1980, 1975))


def finish(*legs: Leg) -> Finish:
    return Finish(device="GPU", driver="1", torch="2", triton="3", compile_seconds=1.0, legs=legs)


def only(line: Line, leg: Leg) -> RaceRecord:
    (record,) = judged(line, finish(leg))
    return record


def test_a_program_that_is_faster_beyond_the_noise_wins() -> None:
    record = only(line([100, 90, 80, 70, 100], twins=[4]), leg({0: 1.0, 1: 0.9, 4: 1.0}, winner=1))
    assert record.winner["n"] == 1
    assert record.verdict.startswith(("win: 9.", "win: 10."))
    assert 0 < record.floor < 0.01
    assert [f.config["n"] for f in record.finalists] == [0, 1]


def test_identical_programs_tie() -> None:
    verdicts = [
        only(line([100, 90, 80, 70, 100], twins=[4]), leg({0: 1.0, 1: 1.0, 2: 1.0, 4: 1.0}, 1, seed)).verdict
        for seed in range(40)
    ]
    assert sum(verdict.startswith("win") for verdict in verdicts) <= 2
    assert sum("nothing is faster than the baseline" in verdict for verdict in verdicts) >= 36


def test_ties_go_to_the_fewest_registers_then_the_least_shared_memory() -> None:
    even = dict.fromkeys((0, 1, 2, 4), 1.0)
    winners = {only(line([100, 90, 80, 70, 100], [4]), leg(even, 1, seed)).winner["n"] for seed in range(5)}
    assert winners == {2}


def test_the_autotuners_own_choice_is_kept_beside_the_verdict() -> None:
    record = only(line([100, 90, 80, 70, 100], twins=[4]), leg({0: 1.0, 1: 1.3, 4: 1.0}, winner=1))
    assert record.autotuner["n"] == 1
    assert record.winner["n"] == 0
    assert record.verdict.startswith("tie")


def test_the_compromise_is_least_behind_where_it_is_farthest_behind() -> None:
    assert compromise([[100.0, 150.0, 110.0, None], [300.0, 100.0, 120.0, 90.0]]) == 2
    assert compromise([[None, 1.0], [1.0, None]]) is None


EVEN = {0: 1.0, 4: 1.0}


def test_sizes_whose_winners_cost_each_other_are_split() -> None:
    told = split(
        line([1] * 5, [4], heats=2),
        finish(leg({**EVEN, 1: 0.5, 2: 0.8, 3: 0.7}, 1), leg({**EVEN, 1: 2.0, 2: 0.8, 3: 0.9}, 2, seed=1)),
    )
    costs = {(item.served, item.at): item.comparison for item in told.penalties}
    assert {k: round(c.ratio.ratio, 1) for k, c in costs.items()} == {
        ("M=16", "M=16"): 1.0, ("M=16", "M=4096"): 2.5, ("M=4096", "M=16"): 1.6, ("M=4096", "M=4096"): 1.0,
        (ONE_FOR_ALL, "M=16"): 1.4, (ONE_FOR_ALL, "M=4096"): 1.1,
    }  # fmt: skip
    assert [costs[key].standing for key in [("M=16", "M=4096"), ("M=16", "M=16")]] == [Standing.LOSS, Standing.TIE]
    assert (told.winners["M=16"]["n"], told.winners["M=4096"]["n"], told.one_for_all["n"]) == (1, 2, 3)
    assert {name: config["n"] for name, config in told.serves.items()} == {"M=16": 1, "M=4096": 2}
    assert told.split
    assert told.verdict.startswith("split: the best single configuration costs M=16 39.")


def test_sizes_that_one_configuration_serves_are_not_split() -> None:
    told = split(
        line([3, 2, 1, 1, 3], [4], heats=2),
        finish(leg({**EVEN, 1: 0.5, 2: 0.9}, 1), leg({**EVEN, 1: 0.7, 2: 0.7}, 2, seed=1)),
    )
    assert told.winners["M=4096"]["n"] == 2  # a tie, and fewer registers
    assert {name: config["n"] for name, config in told.serves.items()} == {"M=16": 1, "M=4096": 1}
    assert not told.split
    assert told.verdict.startswith("one configuration serves all")


def test_the_dispatcher_chooses_the_nearest_size_and_needs_nothing() -> None:
    told = split(
        line([1] * 5, [4], heats=2),
        finish(leg({**EVEN, 1: 0.5, 2: 0.8}, 1), leg({**EVEN, 1: 2.0, 2: 0.8}, 2, seed=1)),
    )
    text = dispatch.render(joint_map(), told)
    names: dict[str, Any] = {}
    exec(text, names)
    assert [names["regime"](M) for M in (1, 16, 200, 300, 8192)] == ["M=16", "M=16", "M=16", "M=4096", "M=4096"]
    assert names["configuration"](8192)["n"] == 2
    assert names["configuration"](M=4)["n"] == 1
    assert "gluonmap" not in text


def test_sizes_that_differ_in_no_number_have_no_dispatcher() -> None:
    told = split(line([1] * 5, [4], heats=1), finish(leg({**EVEN, 1: 0.5}, 1)))
    with pytest.raises(UsageError, match="differ in no number"):
        dispatch.render(joint_map(), told)
