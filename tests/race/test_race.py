"""Races without a device: who goes on, what is shared between launches, and what times are worth."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_device
import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from maps import joint_map
from project import REPOSITORY

from gluonmap.cli.command_group import cli
from gluonmap.export import dispatch
from gluonmap.handoff.launches import handed_over, launches
from gluonmap.model import codec
from gluonmap.model.candidate import Candidate, Config
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Verified
from gluonmap.model.noise import RaceStanding
from gluonmap.model.race_record import RaceRecord
from gluonmap.model.verdict import Resources
from gluonmap.race.lineup import RaceLineup
from gluonmap.race.results import ONE_FOR_ALL, race_records, split
from gluonmap.runner import environment
from gluonmap.worker import load
from gluonmap.worker.protocol import KernelFile
from gluonmap.worker.race import Race, _divided, _hook, _Judge, compromise, finalists
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


def line(registers: Sequence[int], twins: Sequence[int], heats: int = 1) -> RaceLineup:
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
    return RaceLineup(space, track, configs, programs, "the baseline twice")


def leg(factors: dict[int, float], winner: int, seed: int = 0, count: int = 15) -> Leg:
    chance = random.Random(seed)
    clocks = [1 + 0.2 * chance.random() for _ in range(count)]
    rounds = {n: tuple(100 * f * c * (1 + chance.gauss(0, 0.002)) for c in clocks) for n, f in factors.items()}
    return Leg(2.0, tuple(100 * factors.get(n, 1.5) for n in range(5)), winner, rounds, (1980, 1975))


def finish(*legs: Leg) -> Finish:
    return Finish(device="GPU", driver="1", torch="2", triton="3", compile_seconds=1.0, legs=legs)


def only(line: RaceLineup, leg: Leg) -> RaceRecord:
    (record,) = race_records(line, finish(leg))
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


def test_what_wins_against_the_baseline_comes_before_what_ties_with_both() -> None:
    times = {0: (100.0,) * 15, 4: (100.0,) * 15, 1: (99.0,) * 15, 2: (98.6, 100.4, 99.5) * 5}
    record = only(line([9, 9, 1, 9, 9], [4]), Leg(1.0, (99.0,) * 5, 1, times, (None, None)))
    assert [f.config["n"] for f in record.finalists if f.leads] == [1, 2]
    assert record.winner["n"] == 1
    assert record.verdict.startswith("win: 1.0 % faster")


def test_the_record_keeps_the_autotuners_own_choice() -> None:
    record = only(line([100, 90, 80, 70, 100], twins=[4]), leg({0: 1.0, 1: 1.3, 4: 1.0}, winner=1))
    assert record.autotuner["n"] == 1
    assert record.winner["n"] == 0
    assert record.verdict.startswith("tie")


def test_the_compromise_is_least_behind_where_it_is_farthest_behind() -> None:
    assert compromise([[100.0, 150.0, 110.0, None], [300.0, 100.0, 120.0, 90.0]]) == 2
    assert compromise([[None, 1.0], [1.0, None]]) is None


EVEN = {0: 1.0, 4: 1.0}


def test_sizes_whose_winners_cost_each_other_are_split() -> None:
    result = split(
        line([1] * 5, [4], heats=2),
        finish(leg({**EVEN, 1: 0.5, 2: 0.8, 3: 0.7}, 1), leg({**EVEN, 1: 2.0, 2: 0.8, 3: 0.9}, 2, seed=1)),
    )
    costs = {(item.served, item.at): item.comparison for item in result.penalties}
    assert {k: round(c.ratio.ratio, 1) for k, c in costs.items()} == {
        ("M=16", "M=16"): 1.0, ("M=16", "M=4096"): 2.5, ("M=4096", "M=16"): 1.6, ("M=4096", "M=4096"): 1.0,
        (ONE_FOR_ALL, "M=16"): 1.4, (ONE_FOR_ALL, "M=4096"): 1.1,
    }  # fmt: skip
    assert [costs[key].standing for key in [("M=16", "M=4096"), ("M=16", "M=16")]] == [
        RaceStanding.LOSS,
        RaceStanding.TIE,
    ]
    assert (result.winners["M=16"]["n"], result.winners["M=4096"]["n"], result.one_for_all["n"]) == (1, 2, 3)
    assert {name: config["n"] for name, config in result.serves.items()} == {"M=16": 1, "M=4096": 2}
    assert result.split
    assert result.verdict.startswith("split: the best single configuration costs M=16 39.")


def test_sizes_that_one_configuration_serves_are_not_split() -> None:
    result = split(
        line([3, 2, 1, 1, 3], [4], heats=2),
        finish(leg({**EVEN, 1: 0.5, 2: 0.9}, 1), leg({**EVEN, 1: 0.7, 2: 0.7}, 2, seed=1)),
    )
    assert result.winners["M=4096"]["n"] == 2  # a tie, and fewer registers
    assert {name: config["n"] for name, config in result.serves.items()} == {"M=16": 1, "M=4096": 1}
    assert not result.split
    assert result.verdict.startswith("one configuration serves all")


def test_the_dispatcher_chooses_the_nearest_size_and_needs_nothing() -> None:
    result = split(
        line([1] * 5, [4], heats=2),
        finish(leg({**EVEN, 1: 0.5, 2: 0.8}, 1), leg({**EVEN, 1: 2.0, 2: 0.8}, 2, seed=1)),
    )
    text = dispatch.render(joint_map(), result)
    names: dict[str, Any] = {}
    exec(text, names)
    assert [names["regime"](M) for M in (1, 16, 200, 300, 8192)] == ["M=16", "M=16", "M=16", "M=4096", "M=4096"]
    assert names["configuration"](8192)["n"] == 2
    assert names["configuration"](M=4)["n"] == 1
    assert "gluonmap" not in text


def test_sizes_that_differ_in_no_number_have_no_dispatcher() -> None:
    result = split(line([1] * 5, [4], heats=1), finish(leg({**EVEN, 1: 0.5}, 1)))
    with pytest.raises(UsageError, match="differ in no number"):
        dispatch.render(joint_map(), result)


class Double:
    """Stands in for the process on the device: what it was given, and times by runner."""

    def __init__(self, *factors: dict[int, float]) -> None:
        self.factors = factors
        self.lines: list[RaceLineup] = []

    def __call__(self, line: RaceLineup) -> Finish:
        self.lines.append(line)
        twin = dict.fromkeys(line.track.twins, 1.0)
        legs = []
        for heat, factors in zip(line.track.heats, self.factors, strict=True):
            one = leg({0: 1.0, **factors, **twin}, next(iter(factors)), seed=len(legs))
            legs.append(msgspec.structs.replace(one, raced_us=(100.0,) * len(heat.runners)))
        return finish(*legs)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the Hopper GEMM, its probe file and its map."""
    for name in ("kernels/hopper/gemm_fp16.py", "probes/hopper/gemm_fp16.py", "reports/hopper/gemm_fp16.sm_90.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    space = codec.read_map(tmp_path / MAP)
    here = environment.triton_version(environment.triton_folder())
    (tmp_path / MAP).write_bytes(codec.dumps(msgspec.structs.replace(space, triton=here)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


MAP = "reports/hopper/gemm_fp16.sm_90.json"


def test_a_race_of_regimes_writes_records_penalties_and_a_dispatcher(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = Double({1: 0.5, 2: 0.9}, {1: 2.0, 2: 0.5})
    monkeypatch.setattr("gluonmap.race.run.run", double)
    done = CliRunner().invoke(cli, ["race", MAP, "--regimes", "prefill,decode", "--limit", "8"])
    assert done.exit_code == 0, done.output
    (raced,) = double.lines
    assert [heat.shape["M"] for heat in raced.track.heats] == [4096, 16]
    assert raced.track.heats[1].runners[0].grid == (1 * 16, 1, 1)
    assert [len(heat.runners) for heat in raced.track.heats] == [9, 9]
    assert "split: the best single configuration costs prefill" in done.output
    assert re.search(r"^prefill +4\.\d\d× \(", done.output, re.MULTILINE)
    names = sorted(path.name for path in (folder / "reports/hopper").iterdir())
    assert names == [
        "gemm_fp16.sm_90.M16-N4096-K4096.race.json",
        "gemm_fp16.sm_90.M4096-N4096-K4096.race.json",
        "gemm_fp16.sm_90.json",
        "gemm_fp16.sm_90.prefill-decode.split.json",
        "gemm_fp16_sm_90_dispatch.py",
    ]
    module: dict[str, Any] = {}
    exec((folder / "reports/hopper/gemm_fp16_sm_90_dispatch.py").read_text(), module)
    assert module["configuration"](M=32) == raced.configs[2]
    assert module["configuration"](M=2048) == raced.configs[1]


def test_the_key_is_measured_at_values_of_one_argument(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gluonmap.race.run.run", Double({1: 0.5, 2: 0.6}, {1: 1.9, 2: 0.5}))
    command = ["key", "kernels/hopper/gemm_fp16.py", "--map", MAP, "--measure", "M=16,4096"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert "M=4096 served the winner of M=16: 3.8" in done.output
    assert "M=16 served the winner of M=4096: 1.2" in done.output
    assert "M: belongs into the key" in done.output


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["race", MAP, "--regimes", "chat"], "has no regime 'chat'"),
        (["race", MAP, "--regimes", "prefill,ragged"], "compiler makes other programs than the map's"),
        (["race", MAP, "--shape", "M=17"], "M is i32, in the map i32:16"),
        (["key", "kernels/hopper/gemm_fp16.py", "--map", MAP, "--measure", "Q=1,2"], "no argument 'Q'"),
        (["key", "kernels/hopper/gemm_fp16.py", "--map", MAP, "--measure", "M=16"], "compares two values"),
    ],
)
def test_a_race_that_cannot_be_says_why(folder: Path, command: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_a_map_of_another_triton_is_not_raced(folder: Path) -> None:
    space = codec.read_map(folder / MAP)
    (folder / MAP).write_bytes(codec.dumps(msgspec.structs.replace(space, triton="3.1.0")))
    done = CliRunner().invoke(cli, ["race", MAP])
    assert done.exit_code == 2
    assert "gluonmap race kernels/hopper/gemm_fp16.py maps it here first" in done.output


def test_a_kernel_is_raced_only_where_a_device_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gluonmap.probe.campaign.Campaign.find_device", lambda self: ("", ""))
    done = CliRunner().invoke(cli, ["race", "kernels/hopper/gemm_fp16.py"])
    assert done.exit_code == 2
    assert "a race needs a GPU" in done.output


def test_winners_of_races_are_exported_by_size(tmp_path: Path) -> None:
    space = joint_map()
    passed = handed_over(space)
    (tmp_path / "map.json").write_bytes(codec.dumps(space))
    for size, number in ((16, 1), (4096, 2)):
        record = only(line([1] * 5, [4]), leg({**EVEN, number: 0.5}, number))
        config = passed[number]
        stored = msgspec.structs.replace(record, shape={"M": size}, winner=config)
        (tmp_path / f"{size}.race.json").write_bytes(codec.dumps(stored))
    races = [text for size in (16, 4096) for text in ("--race", str(tmp_path / f"{size}.race.json"))]
    done = CliRunner().invoke(cli, ["export", str(tmp_path / "map.json"), "--format", "aiter", *races])
    assert done.exit_code == 0, done.output
    written = json.loads(done.stdout)
    assert written == {"M_LEQ_16": launches(space)[1], "any": launches(space)[2]}
    stale = msgspec.structs.replace(stored, shape={"M": 16}, winner={**passed[1], "M": 999})
    (tmp_path / "16.race.json").write_bytes(codec.dumps(stale))
    done = CliRunner().invoke(cli, ["export", str(tmp_path / "map.json"), "--format", "aiter", *races])
    assert done.exit_code == 2
    assert "its winner is none of the configurations that passed" in done.output
    done = CliRunner().invoke(cli, ["export", str(tmp_path / "map.json"), "--format", "python", *races])
    assert done.exit_code == 2


class Runner(Race):
    """A race of the doubling kernel's ways to go wrong, on the double of a device."""

    def __init__(self, hows: Sequence[str], reference: Callable[..., Any] | None) -> None:
        path = REPOSITORY / "tests/kernels/on_device.py"
        file = KernelFile(str(path), "on_device")
        args: dict[str, Any] = {"x": "*fp32", "y": "*fp32", "n": 64}
        heat = Heat("M=64", {"n": 64}, tuple(Candidate("gfx942", args, {"HOW": h, "TILE": 64}, (1,)) for h in hows))
        track = msgspec.structs.replace(line([1], []).track, target="gfx942", file=file, heats=(heat,))
        super().__init__(track, fake_device.FakeDevice(), load.find_kernel(load.load_module(file)[0], "on_device"))
        module = SimpleNamespace(inputs=self._inputs, reference=reference)
        if reference is None:
            del module.reference
        self.make_inputs(module, heat)

    def _inputs(self, shape: dict[str, int], config: Config, device: str, seed: int) -> dict[str, Any]:
        x = np.random.default_rng(seed).standard_normal(shape["n"], dtype=np.float32)
        return {"x": x, "y": np.empty_like(x), "n": shape["n"]}


HOWS = ["right", "wrong", "NaN", "also right", "past its end", "unwritten", "right too"]


def test_only_runners_with_right_numbers_go_on_to_the_rounds() -> None:
    race = Runner(HOWS, lambda inputs, shape: {"y": inputs["x"] * 2})
    heat = race.track.heats[0]
    assert race.right(heat, [1, 2, 3, 4, 5, 6, 0], most=2) == [3, 6]
    assert {n: text.split(":")[0] for n, text in race.failures.items()} == dict.fromkeys((1, 2, 4, 5), "WRONG")
    assert race.failures[1].startswith("WRONG: y: relative error 6.5 > 1e-05")
    assert "(M=64 shape, seed 0)" in race.failures[1]
    assert race.errors == {"M=64": {3: 0.0, 6: 0.0}}
    assert race.right(heat, [0, 3, 1], most=9) == [0, 3]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (None, "the probe file has no reference"),
        (lambda inputs, shape: {"q": 1}, "reference() names 'q', which is no tensor of inputs()"),
    ],
)
def test_numbers_that_cannot_be_checked_are_said_to_be_unchecked(reference: Any, said: str) -> None:
    race = Runner(HOWS, reference)
    assert race.right(race.track.heats[0], [1, 0], most=2) == [1, 0]
    assert race.unchecked == said
    assert race.failures == {}


def test_a_baseline_with_wrong_numbers_ends_the_race_in_one_sentence() -> None:
    wrong = msgspec.structs.replace(finish(leg(EVEN, 1)), failures={0: "WRONG: y: relative error 1 > 1e-05"})
    with pytest.raises(UsageError, match="cannot race: WRONG: y: relative error 1"):
        race_records(line([1] * 5, [4]), wrong)
