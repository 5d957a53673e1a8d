"""Races without a device: who goes on, what is shared between launches, and what times are worth."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from mapped import joint_map

from gluonmap.joint import Verified
from gluonmap.model import Candidate, Config, Resources
from gluonmap.race import Line, judged
from gluonmap.worker.protocol import KernelFile
from gluonmap.worker.race import _divided, _hook, _Judge, finalists
from gluonmap.worker.track import Finish, Track


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


def line(registers: Sequence[int], twins: Sequence[int]) -> Line:
    space = joint_map()
    configs = tuple({**space.baseline, "n": i} for i in range(len(registers)))
    used = [Resources(256, 1024, vgpr=number) for number in registers]
    programs = tuple(Verified(c, f"p{i}", used[i]) for i, c in enumerate(configs))
    track = Track(
        target="gfx950", file=KernelFile("/k.py", "k"), probe_file="/p.py", shape={"M": 16},
        runners=tuple(Candidate("gfx950", {}, c) for c in configs), hosts=({},) * len(configs), twins=tuple(twins),
        rounds=15, finalists=6, jobs=2, cache="/cache",
    )  # fmt: skip
    return Line(space, track, configs, programs, "the baseline twice")


def finish(factors: dict[int, float], winner: int, seed: int = 0, count: int = 15) -> Finish:
    chance = random.Random(seed)
    clocks = [1 + 0.2 * chance.random() for _ in range(count)]
    rounds = {n: tuple(100 * f * c * (1 + chance.gauss(0, 0.002)) for c in clocks) for n, f in factors.items()}
    return Finish(
        device="GPU", driver="1", torch="2", triton="3", compile_seconds=1.0, race_seconds=2.0,
        raced_us=tuple(100 * factors.get(n, 1.5) for n in range(5)), winner=winner, rounds_us=rounds,
        clocks_mhz=(1980, 1975),
    )  # fmt: skip


def test_a_program_that_is_faster_beyond_the_noise_wins() -> None:
    record = judged(line([100, 90, 80, 70, 100], twins=[4]), finish({0: 1.0, 1: 0.9, 4: 1.0}, winner=1))
    assert record.winner["n"] == 1
    assert record.verdict.startswith(("win: 9.", "win: 10."))
    assert 0 < record.floor < 0.01
    assert [f.config["n"] for f in record.finalists] == [0, 1]


def test_identical_programs_tie() -> None:
    verdicts = [
        judged(line([100, 90, 80, 70, 100], twins=[4]), finish({0: 1.0, 1: 1.0, 2: 1.0, 4: 1.0}, 1, seed)).verdict
        for seed in range(40)
    ]
    assert sum(verdict.startswith("win") for verdict in verdicts) <= 2
    assert sum("nothing is faster than the baseline" in verdict for verdict in verdicts) >= 36


def test_ties_go_to_the_fewest_registers_then_the_least_shared_memory() -> None:
    even = dict.fromkeys((0, 1, 2, 4), 1.0)
    winners = {judged(line([100, 90, 80, 70, 100], [4]), finish(even, 1, seed)).winner["n"] for seed in range(5)}
    assert winners == {2}


def test_the_autotuners_own_choice_is_kept_beside_the_verdict() -> None:
    record = judged(line([100, 90, 80, 70, 100], twins=[4]), finish({0: 1.0, 1: 1.3, 4: 1.0}, winner=1))
    assert record.autotuner["n"] == 1
    assert record.winner["n"] == 0
    assert record.verdict.startswith("tie")
