"""Race the bundled Hopper GEMM on a GPU: against plain autotuning, against a sweep of everything, and repeated.

    python benchmarks/race.py PART… --map reports/hopper/gemm_fp16.sm_90.json --out FOLDER
    python benchmarks/race.py write --out FOLDER [--table benchmarks/race.md]

Parts, each of which leaves FOLDER/PART.json: `dies` (the nominal space given to plain triton.autotune), `cold` (from
empty caches to tuned, against plain triton.autotune over the same list), `sweep` (every feasible configuration timed,
then the best of them next to the race's winner), `repeat` (the same race many times), `torch` (against torch's matmul,
and numbers at sizes that no tile divides). `write` makes the table of them, and of what `gluonmap race --regimes` left
as *.split.json in FOLDER. Needs a GPU of capability 9.0 and a map that this Triton made.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gluonmap.model import codec, noise
from gluonmap.model.candidate import Config
from gluonmap.model.joint_map import Verified
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Resources
from gluonmap.probe.rebuild import description_of
from gluonmap.query.reduced_space import reduced_space_of
from gluonmap.race.lineup import RaceLineup, line_up
from gluonmap.race.results import race_records, split
from gluonmap.race.run import run as run_race
from gluonmap.worker.track import Heat

REPOSITORY = Path(__file__).resolve().parent.parent
KERNEL = REPOSITORY / "kernels" / "hopper" / "gemm_fp16.py"
PROBE = REPOSITORY / "probes" / "hopper" / "gemm_fp16.py"
CORES = os.cpu_count() or 1
CHUNK = 250
"""Number of configurations that one process of the sweep times."""
BEST_OF_SWEEP = 16
SWEEP_DEADLINE_S = 60.0
"""Time limit of each compile in seconds: a tile that spills thousands of registers takes minutes."""
REPEATS = 20
COLD = 128
"""Number of configurations tuned from cold caches: plain autotuning compiles them one after the other."""
ODD_SHAPES = ((1000, 777, 520), (17, 4096, 1032), (4097, 129, 264), (1, 8, 8))


# -- in a separate process ---------------------------------------------------------------------------------------------


def _launcher(shape: tuple[int, int, int]) -> tuple[Any, Callable[[Config], Callable[[], Any]]]:
    """Return the output, and a function that launches a configuration as host code would, with ready descriptors."""
    import torch
    import triton
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    kernel = _module(Path(os.environ["RACE_KERNEL"])).gemm_fp16
    M, N, K = shape
    a = torch.randn((M, K), device="cuda").half()
    b = torch.randn((N, K), device="cuda").half()
    c = torch.empty((M, N), device="cuda", dtype=torch.float16)

    def described(tensor: Any, box: list[int]) -> Any:
        return TensorDescriptor.from_tensor(tensor, box, gl.NVMMASharedLayout.get_default_for(box, gl.float16))

    def launch(config: Config) -> Callable[[], Any]:
        a_desc = described(a, [config["BLOCK_M"], config["BLOCK_K"]])
        b_desc = described(b, [config["BLOCK_N"], config["BLOCK_K"]])
        grid = (triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"]), 1, 1)
        return lambda: kernel[grid](a_desc, b_desc, c, M, N, K, c.stride(0), **config)

    return (a, b, c), launch


def _module(path: Path) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def child_time(configs: list[Config], shape: tuple[int, int, int]) -> None:
    """Print a line for each configuration: its position, and its time in microseconds by `do_bench`."""
    from triton.testing import do_bench

    _, launch = _launcher(shape)
    for number, config in enumerate(configs):
        run = launch(config)
        compiled = run()
        us = do_bench(run, warmup=3, rep=10, return_mode="median") * 1000
        print(number, us, compiled.n_spills, flush=True)


def child_plain(configs: list[Config], shape: tuple[int, int, int]) -> None:
    """Tune with plain `triton.autotune`, as its documentation shows, and print the result as JSON."""
    import torch
    import triton
    from triton.experimental.gluon import language as gl

    (a, b, c), _ = _launcher(shape)
    tried: list[Any] = []

    def hook(call: dict[str, Any]) -> None:
        for name, rows in (("a_desc", "BLOCK_M"), ("b_desc", "BLOCK_N")):
            box = [call[rows], call["BLOCK_K"]]
            call[name].block_shape = box
            call[name].layout = gl.NVMMASharedLayout.get_default_for(box, gl.float16)
        now = {n: call[n] for n in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "STAGES", "GROUP_M", "num_warps")}
        if not tried or tried[-1] != now:
            tried.append(now)
            print(json.dumps(now), file=sys.stderr, flush=True)

    M, N, K = shape
    own = [{n: v for n, v in config.items() if n != "num_warps"} for config in configs]
    listed = [
        triton.Config(mine, num_warps=config["num_warps"], num_stages=None, num_ctas=1, pre_hook=hook)
        for mine, config in zip(own, configs, strict=True)
    ]
    tuner = triton.autotune(configs=listed, key=["M", "N", "K"])(_module(Path(os.environ["RACE_KERNEL"])).gemm_fp16)
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    box = [64, 64]
    layout = gl.NVMMASharedLayout.get_default_for(box, gl.float16)
    a_desc, b_desc = (TensorDescriptor.from_tensor(t, box, layout) for t in (a, b))

    def grid(call: dict[str, Any]) -> tuple[int, int, int]:
        return (triton.cdiv(M, call["BLOCK_M"]) * triton.cdiv(N, call["BLOCK_N"]), 1, 1)

    started = time.perf_counter()
    tuner[grid](a_desc, b_desc, c, M, N, K, c.stride(0))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    print(
        json.dumps(
            {"seconds": seconds, "winner": {**tuner.best_config.kwargs, "num_warps": tuner.best_config.num_warps}}
        )
    )


# -- parts -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Setting:
    """Inputs that all parts share."""

    space: SpaceMap
    out: Path
    shape: tuple[int, int, int]
    cache: str
    """Cache of compiled programs; parts that start cold have their own."""

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip("MNK", self.shape, strict=True))


def part_dies(setting: Setting) -> dict[str, Any]:
    """Give the nominal space to plain triton.autotune: with the kernel as it is, and without its static assertion."""
    domains = {name: [v.value for v in knob.values] for name, knob in setting.space.knobs.items()}
    configs = [dict(zip(domains, values, strict=True)) for values in itertools.product(*domains.values())]
    shuffled = random.Random(0).sample(configs, len(configs))
    bare = setting.out / "unasserted.py"
    bare.write_text(re.sub(r"^    gl\.static_assert.*\n", "", KERNEL.read_text(), flags=re.MULTILINE))
    found = []
    for kernel, path in (("as it is", KERNEL), ("without its static_assert", bare)):
        with _cold() as cache:
            done, seconds = _child("plain", shuffled, setting.shape, cache, timeout=30, kernel=path)
        reached = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        last = [line for line in done.stderr.strip().splitlines() if not line.startswith(("{", " "))][-1:]
        found.append(
            {"kernel": kernel, "configurations": len(configs), "status": done.returncode, "seconds": round(seconds, 1),
             "begun": len(reached), "at": reached[-1] if reached else None, "last": "".join(last)[:300]}
        )  # fmt: skip
    return {"tries": found}


def part_cold(setting: Setting) -> dict[str, Any]:
    """Time both ways from empty caches to tuned, over the map's hand-off, with the map already known."""
    lineup = line_up(setting.space, PROBE, {"": setting.sizes}, jobs=CORES, limit=COLD)
    runs = []
    for _ in range(2):
        with _cold() as cache:
            started = time.perf_counter()
            finish = run_race(_moved(lineup, cache=cache))
            wall = time.perf_counter() - started
        runs.append(
            {"compile_s": finish.compile_seconds, "race_s": finish.legs[0].race_seconds, "wall_with_finals_s": wall,
             "winner": race_records(lineup, finish)[0].winner}
        )  # fmt: skip
    with _cold() as cache:
        finish = run_race(_moved(lineup, cache=cache, plain=True))
    prepared = {"compile_s": finish.compile_seconds, "race_s": finish.legs[0].race_seconds}
    configs = list(lineup.configs[:-1])
    with _cold() as cache:
        done, wall = _child("plain", configs, setting.shape, cache, timeout=500)
    figures = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"failed": done.stderr[-500:]}
    return {"configurations": len(configs), "cores": CORES, "gluonmap": runs, "gluonmap_triton_timing": prepared,
            "plain": {**figures, "wall_s": wall}}  # fmt: skip


def part_sweep(setting: Setting) -> dict[str, Any]:
    """Time every feasible configuration that compiles in time, then the best of them next to the race's winner."""
    feasible = [{**setting.space.baseline, **config} for config in reduced_space_of(setting.space).listed()]
    lineup = line_up(setting.space, PROBE, {"": setting.sizes}, jobs=CORES)
    whole = _with(lineup, feasible, setting)
    started = time.perf_counter()
    _compile(whole, setting)
    compiled = time.perf_counter() - started
    times: dict[int, float] = {}
    spills: dict[int, int] = {}
    problems: list[str] = []
    started = time.perf_counter()
    for first in range(0, len(feasible), CHUNK):
        done, _ = _child("time", feasible[first : first + CHUNK], setting.shape, setting.cache, timeout=120)
        for text in done.stdout.splitlines():
            number, us, spilled = text.split()
            times[first + int(number)] = float(us)
            spills[first + int(number)] = int(spilled)
        if done.returncode:
            problems.append(f"chunk {first}: status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    swept = time.perf_counter() - started
    race = run_race(_moved(lineup, cache=setting.cache))
    winner = race_records(lineup, race)[0].winner
    best = sorted(times, key=lambda n: times[n])[:BEST_OF_SWEEP]
    finals = _with(lineup, [winner, *(feasible[n] for n in best if feasible[n] != winner)], setting)
    finals = _moved(finals, finalists=BEST_OF_SWEEP + 1, cache=setting.cache)
    leg = run_race(finals).legs[0]
    mine = leg.rounds_us[1]
    against = {n: noise.ratio_of(mine, leg.rounds_us[n]) for n in leg.rounds_us if n not in {0, 1, *finals.track.twins}}
    handed = {repr(config) for config in lineup.configs}
    return {
        "feasible": len(feasible), "timed": len(times), "handed_over": len(lineup.configs) - 1, "problems": problems,
        "compile_s": compiled, "sweep_s": swept, "winner": winner,
        "winner_against_each": [
            {"config": finals.configs[n], "ratio": r.ratio, "low": r.low, "high": r.high,
             "handed_over": repr(finals.configs[n]) in handed}
            for n, r in sorted(against.items())
        ],
        "times_us": [[feasible[n], us, spills[n]] for n, us in sorted(times.items(), key=lambda item: item[1])],
    }  # fmt: skip


def part_repeat(setting: Setting) -> dict[str, Any]:
    """Repeat one race, with one more twin of the baseline than the noise is measured on."""
    lineup = line_up(setting.space, PROBE, {"": setting.sizes}, jobs=CORES)
    last = len(lineup.configs)
    heats = tuple(
        msgspec.structs.replace(heat, runners=(*heat.runners, heat.runners[0])) for heat in lineup.track.heats
    )
    track = msgspec.structs.replace(
        lineup.track, heats=heats, hosts=(*lineup.track.hosts, lineup.track.hosts[0]), twins=(last - 1, last),
        cache=setting.cache,
    )  # fmt: skip
    lineup = dataclasses.replace(
        lineup,
        track=track,
        configs=(*lineup.configs, lineup.configs[0]),
        programs=(*lineup.programs, lineup.programs[0]),
    )
    found = []
    for _ in range(REPEATS):
        finish = run_race(lineup)
        leg = finish.legs[0]
        floor = noise.floor_of([(leg.rounds_us[0], leg.rounds_us[last - 1])])
        twin = noise.compare(leg.rounds_us[last], leg.rounds_us[0], floor)
        record = race_records(lineup, finish)[0]
        found.append(
            {"autotuner": record.autotuner, "winner": record.winner, "verdict": record.verdict,
             "leaders": [f.config for f in record.finalists if f.leads], "floor": record.floor,
             "twin": twin.standing, "twin_ratio": twin.ratio.ratio, "race_s": leg.race_seconds,
             "raced_us": dict(zip(["least", "most"], _ends(leg.raced_us), strict=True)), "clocks": leg.clocks_mhz,
             "winner_us": next(f.median_us for f in record.finalists if f.config == record.winner)}
        )  # fmt: skip
    return {"races": found}


def part_torch(setting: Setting) -> dict[str, Any]:
    """Compare the winner at 4096³ and 8192³ with torch's matmul, interleaved; check its results at odd sizes."""
    heats = {str(n): dict.fromkeys("MNK", n) for n in (4096, 8192)}
    lineup = line_up(setting.space, PROBE, heats, jobs=CORES)
    finish = run_race(_moved(lineup, cache=setting.cache))
    records = race_records(lineup, finish)
    winners = {name: record.winner for name, record in zip(heats, records, strict=True)}
    regimes = split(lineup, finish)
    done, _ = _child("torch", list(winners.values()), setting.shape, setting.cache, timeout=120)
    if done.returncode:
        return {"failed": done.stderr[-800:]}
    return {"winners": winners, "split": regimes.verdict, **json.loads(done.stdout.splitlines()[-1])}


def child_torch(configs: list[Config], _: tuple[int, int, int]) -> None:
    """Print times against torch's matmul, by size, and errors at odd shapes."""
    import torch

    from gluonmap.worker.vendor import VENDORS

    device = VENDORS["cuda"]()
    sizes = []
    for size, config in zip((4096, 8192), configs, strict=True):
        (a, b, c), launch = _launcher((size, size, size))
        ours, theirs = launch(config), lambda a=a, b=b: torch.matmul(a, b.T)
        for launched in (ours, theirs):
            device.times_us(launched, 20)
        pairs = [
            tuple(
                statistics.median(device.times_us(launched, 10))
                for launched in ((ours, theirs), (theirs, ours))[turn % 2]
            )[:: 1 if turn % 2 == 0 else -1]
            for turn in range(15)
        ]
        ratio = noise.ratio_of([t for _, t in pairs], [o for o, _ in pairs])
        median = statistics.median(o for o, _ in pairs)
        ours()
        wanted = a.float() @ b.float().T
        sizes.append(
            {"size": size, "of_torch": ratio.ratio, "low": ratio.low, "high": ratio.high, "median_us": median,
             "tflops": 2 * size**3 / median / 1e6, "error": float((c.float() - wanted).norm() / wanted.norm())}
        )  # fmt: skip
    odd = []
    matmul = _module(Path(os.environ["RACE_KERNEL"])).matmul
    for shape in ODD_SHAPES:
        M, N, K = shape
        a, b = torch.randn((M, K), device="cuda").half(), torch.randn((N, K), device="cuda").half()
        wanted = a.double() @ b.double().T
        for config in configs:
            out = matmul(a, b, **config).double()
            odd.append([shape, float((out - wanted).norm() / wanted.norm())])
    print(json.dumps({"sizes": sizes, "odd": odd}))


def _compile(lineup: RaceLineup, setting: Setting) -> None:
    """Compile all programs of a lineup into the cache. The sweep reports those that fail."""
    track = setting.out / "sweep.track"
    track.write_bytes(msgspec.json.encode(_moved(lineup, cache=setting.cache).track))
    subprocess.run([sys.executable, __file__, "child", "compile", str(track)], check=True)


def child_compile(path: str) -> None:
    """Compile the programs of a track, before any device is touched."""
    from gluonmap.model import targets
    from gluonmap.worker import load, preload
    from gluonmap.worker.race import Race
    from gluonmap.worker.track import Track

    track = msgspec.json.decode(Path(path).read_bytes(), type=Track)
    os.environ["TRITON_CACHE_DIR"] = track.cache
    preload.preload()
    os.environ.pop("TRITON_ALWAYS_COMPILE", None)
    preload.pretend(targets.find(track.target))
    kernel = load.find_kernel(load.load_module(track.file)[0], track.file.kernel)
    race = Race(track, None, kernel)  # type: ignore[arg-type]
    print(f"compiled in {race.compile_all():.1f} s, {len(race.failures)} failed", file=sys.stderr)


def _with(lineup: RaceLineup, configs: Sequence[Config], setting: Setting) -> RaceLineup:
    """Return a lineup of the baseline, other configurations, and a twin of the baseline."""
    space = setting.space
    runners = [space.baseline, *configs, space.baseline]
    description = dataclasses.replace(description_of(space), shape={**space.shape, **setting.sizes})
    heat = Heat("", dict(description.shape), tuple(description.candidate(config) for config in runners))
    track = msgspec.structs.replace(
        lineup.track,
        heats=(heat,),
        hosts=({},) * len(runners),
        twins=(len(runners) - 1,),
        order=tuple(range(len(runners))),
        deadline_s=SWEEP_DEADLINE_S,
    )
    blank = Verified({}, "", Resources(0, 0))
    return dataclasses.replace(lineup, track=track, configs=tuple(runners), programs=(blank,) * len(runners))


def _moved(lineup: RaceLineup, **changes: Any) -> RaceLineup:
    return dataclasses.replace(lineup, track=msgspec.structs.replace(lineup.track, **changes))


def _ends(times: Sequence[float | None]) -> tuple[float, float]:
    known = [us for us in times if us is not None]
    return min(known), max(known)


@contextmanager
def _cold() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="race-cold-") as folder:
        yield folder


def _child(
    what: str, configs: Sequence[Config], shape: Sequence[int], cache: str, timeout: float, kernel: Path = KERNEL
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a part in a separate interpreter; return its process and seconds. Status -9: the time limit killed it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([list(configs), list(shape)], file)
        file.flush()
        command = [sys.executable, __file__, "child", what, file.name]
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            env={**os.environ, "TRITON_CACHE_DIR": cache, "RACE_KERNEL": str(kernel)},
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        seconds = time.perf_counter() - started
        return subprocess.CompletedProcess(command, process.returncode, out, err), seconds


# -- the table ---------------------------------------------------------------------------------------------------------


def written(folder: Path) -> str:
    """Return the parts in a folder as Markdown."""
    parts = {path.stem: json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json")) if path.stem in PARTS}
    machine = next(iter(parts.values()))["machine"]
    lines = [
        "# Races",
        "",
        f"The bundled Hopper GEMM (kernels/hopper/gemm_fp16.py, TMA and wgmma) on {machine}.",
        "`python benchmarks/race.py write` wrote this page from the measurements of its parts. All times are of one",
        "machine on one day: read the ratios.",
    ]
    for name in ("dies", "cold", "sweep", "repeat", "torch"):
        if name in parts:
            lines += ["", *TABLES[name](parts[name])]
    for path in sorted(folder.glob("*.split.json")):
        lines += ["", *table_split(json.loads(path.read_bytes()))]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[tuple[str, str]]) -> list[str]:
    return ["| what | figure |", "| --- | --- |", *(f"| {what} | {figure} |" for what, figure in rows)]


def _named(config: Config) -> str:
    return ", ".join(f"{n}={v}" for n, v in config.items())


def table_dies(part: dict[str, Any]) -> list[str]:
    lines = ["## The nominal space, shuffled, given to plain triton.autotune", ""]
    lines += [
        "| kernel | configurations | begun in how long | ended with | the last one |",
        "| --- | --- | --- | --- | --- |",
    ]
    for item in part["tries"]:
        how = "killed at the limit" if item["status"] == -9 else f"status {item['status']}: `{item['last']}`"
        at = _named(item["at"]) if item["at"] else ""
        lines.append(
            f"| {item['kernel']} | {item['configurations']:,} | {item['begun']} in {item['seconds']:.0f} s | "
            f"{how.replace('|', '/')} | {at} |"
        )
    return lines


def table_cold(part: dict[str, Any]) -> list[str]:
    plain, ours = part["plain"], part["gluonmap"]
    tuned = [run["compile_s"] + run["race_s"] for run in ours]
    rows = [
        (
            f"gluonmap race, {part['cores']} cores: compiles + race",
            "; ".join(f"{run['compile_s']:.1f} + {run['race_s']:.1f} s" for run in ours),
        )
    ]
    prepared = part["gluonmap_triton_timing"]
    rows.append(
        ("the same with Triton's own timing (`--plain`)", f"{prepared['compile_s']:.1f} + {prepared['race_s']:.1f} s")
    )
    if "seconds" in plain:
        rows.append(("plain triton.autotune over the same list", f"{plain['seconds']:.1f} s"))
        rows.append(
            (
                "plain against gluonmap",
                f"{plain['seconds'] / max(tuned):.1f} to {plain['seconds'] / min(tuned):.1f} times",
            )
        )
        rows.append(
            (
                "whole processes, interpreter and finals included",
                f"{plain['wall_s']:.1f} s against " + "; ".join(f"{run['wall_with_finals_s']:.1f} s" for run in ours),
            )
        )
    else:
        rows.append(("plain triton.autotune over the same list", f"failed: {plain['failed'][-200:]}"))
    return [f"## From cold caches to tuned, {part['configurations']} configurations, the map known", "", *_table(rows)]


def table_sweep(part: dict[str, Any]) -> list[str]:
    against = part["winner_against_each"]
    worst = max(against, key=lambda item: item["ratio"])
    rows = [
        ("feasible configurations, all compiled and timed", f"{part['timed']:,} of {part['feasible']:,}"),
        ("seconds: compiles, timing", f"{part['compile_s']:.0f}, {part['sweep_s']:.0f}"),
        ("handed over and raced", f"{part['handed_over']:,}"),
        ("the race's winner", _named(part["winner"])),
        (f"its time against the best of the sweep, interleaved ({len(against)} rivals)",
         f"{worst['ratio']:.4f} ({worst['low']:.4f} to {worst['high']:.4f})"),
        ("that rival", _named(worst["config"])),
        ("best that spills registers against the best",
         f"{_best(part, 1):.2f} times; more than 255: {_best(part, 256):.2f} times"),
        ("slowest of the sweep against the fastest", f"{part['times_us'][-1][1] / part['times_us'][0][1]:.0f} times"),
    ]  # fmt: skip
    return ["## The race's winner against a sweep of everything feasible", "", *_table(rows)]


def _best(part: dict[str, Any], spilled: int) -> float:
    """Return the least time of those that spill that many registers or more, relative to the least of all."""
    times = part["times_us"]
    return next((us / times[0][1] for _, us, spills in times if spills >= spilled), float("nan"))


def table_repeat(part: dict[str, Any]) -> list[str]:
    found = part["races"]
    leading = collections.Counter(_named(config) for item in found for config in item["leaders"])
    steady, led = leading.most_common(1)[0]
    winners = collections.Counter(_named(item["winner"]) for item in found)
    pairs = [(one, other) for one in found for other in found if one is not other]
    agreed = sum(one["winner"] in other["leaders"] for one, other in pairs) / len(pairs)
    chosen = collections.Counter(_named(item["autotuner"]) for item in found)
    twins = collections.Counter(item["twin"] for item in found)
    least = [item["raced_us"]["least"] for item in found]
    often = chosen.most_common(1)[0][1]
    rows = [
        ("races", str(len(found))),
        ("different choices of the autotuner alone", f"{len(chosen)}; the most frequent {often} times"),
        (f"won, or was declared a tie with the winner: {steady}", f"{led} of {len(found)} races"),
        ("different winners after ties were broken", "; ".join(f"{n} × {c}" for c, n in winners.most_common())),
        ("the winner of one race leads in another", f"{agreed:.0%} of pairs of races"),
        ("noise, least to most", f"{min(i['floor'] for i in found):.2%} to {max(i['floor'] for i in found):.2%}"),
        ("a second twin of the baseline, judged against the noise of the first",
         ", ".join(f"{n} × {s}" for s, n in sorted(twins.items()))),
        ("verdicts that begin with win", str(sum(i["verdict"].startswith("win") for i in found))),
        ("the autotuner's best time, least to most", f"{min(least):.1f} to {max(least):.1f} µs"),
    ]  # fmt: skip
    return ["## The same race, repeated", "", *_table(rows)]


def table_torch(part: dict[str, Any]) -> list[str]:
    rows = [
        (f"{item['size']}³, time of torch.matmul against the winner's",
         f"{item['of_torch']:.1%} ({item['low']:.1%} to {item['high']:.1%}), {item['tflops']:.0f} TFLOP/s, "
         f"relative error {item['error']:.1e}")
        for item in part["sizes"]
    ]  # fmt: skip
    odd = {tuple(shape): error for shape, error in part["odd"]}
    rows += [("×".join(map(str, shape)) + ", relative error", f"{error:.1e}") for shape, error in odd.items()]
    rows += [(f"winner at {name}³", _named(config)) for name, config in part["winners"].items()]
    return ["## Against torch", "", *_table(rows)]


def table_split(split: dict[str, Any]) -> list[str]:
    """Return the section on the regimes that `gluonmap race --regimes` stored."""
    names = list(split["shapes"])
    rows: dict[str, dict[str, str]] = {}
    for item in split["penalties"]:
        ratio = item["comparison"]["ratio"]
        text = f"{ratio['ratio']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
        rows.setdefault(item["served"], {})[item["at"]] = "1" if item["served"] == item["at"] else text
    lines = ["## Regimes: times with another one's winner, of the own winner's", "", f"{split['verdict']}.", ""]
    lines += ["| winner of | " + " | ".join(f"at {name}" for name in names) + " |", "| --- |" + " --- |" * len(names)]
    lines += [f"| {name} | " + " | ".join(costs[at] for at in names) + " |" for name, costs in rows.items()]
    sizes = (
        f"{name} is {_named(shape)}, served by {_named(split['serves'][name])}"
        for name, shape in split["shapes"].items()
    )
    return [*lines, "", f"{'; '.join(sizes)}. One for all: {_named(split['one_for_all'])}."]


TABLES = {"dies": table_dies, "cold": table_cold, "sweep": table_sweep, "repeat": table_repeat, "torch": table_torch}
PARTS = {"dies": part_dies, "cold": part_cold, "sweep": part_sweep, "repeat": part_repeat, "torch": part_torch}
CHILDREN = {"time": child_time, "plain": child_plain, "torch": child_torch}


def machine() -> str:
    """Return the GPU, the versions and the number of cores in words."""
    import torch
    import triton

    versions = f"Triton {triton.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    return f"one {torch.cuda.get_device_name()}, {CORES} cores, {versions}"


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        what, path = sys.argv[2:]
        if what == "compile":
            child_compile(path)
        else:
            configs, shape = json.loads(Path(path).read_bytes())
            CHILDREN[what](configs, tuple(shape))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "write"])
    parser.add_argument("--map", type=Path, default=REPOSITORY / "reports" / "hopper" / "gemm_fp16.sm_90.json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", type=Path, default=REPOSITORY / "benchmarks" / "race.md")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "gluonmap-race-cache"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.parts == ["write"]:
        asked.table.write_text(written(asked.out))
        return
    os.chdir(REPOSITORY)
    setting = Setting(codec.read_map(asked.map), asked.out, (4096, 4096, 4096), asked.cache)
    for name in asked.parts:
        started = time.perf_counter()
        found = {"machine": machine_in_child(), **PARTS[name](setting)}
        (asked.out / f"{name}.json").write_bytes(codec.dumps(found))
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


def machine_in_child() -> str:
    """Return the text of `machine` from another process: this one never touches the device."""
    code = "import race; print(race.machine())"
    folder = str(Path(__file__).resolve().parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
