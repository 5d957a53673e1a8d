"""A race of configurations on this machine's device: the standard autotuner over passing ones, then rounds.

`python -m gluonmap.worker.race TRACK FINISH`: two files, see `track`. The steps:
1. Several processes compile every configuration into Triton's cache. None of them touches the device.
2. The autotuner races the configurations, at one size of the problem after the other.
3. The fastest are compared with the probe file's reference.
4. At each size the fastest of all sizes, the baseline and its twins run in turn, round after round. Each round begins
   with another one.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gluonmap.model import targets
from gluonmap.model.candidate import Candidate
from gluonmap.worker import check, compile, load, preload, turns, vendor
from gluonmap.worker.launch import argument
from gluonmap.worker.tensors import Mismatch
from gluonmap.worker.track import Finish, Heat, Leg, Track

FEW, MORE = 3, 20
"""Launches of every configuration, and further launches of those that may still win."""
HOPELESS = 1.3
"""A configuration slower than the best so far by more than this factor gets no further launches."""
FIELDS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Arguments of `triton.Config` next to its dict. It passes them to the compiler even if they were not set."""
LAUNCHES = 10
"""Launches of each finalist in a round. Their median is its time."""


class Race:
    """One race. Launches go through Triton's own `run`, as the user's do."""

    def __init__(self, track: Track, device: vendor.Vendor, kernel: load.Kernel) -> None:
        self.track, self.device, self.kernel = track, device, kernel
        self.target = targets.find(track.target)
        self.failures: dict[int, str] = {}
        self.errors: dict[str, dict[int, float]] = {heat.name: {} for heat in track.heats}
        self.unchecked = ""
        self._reference: Any = None
        self._given: dict[str, dict[str, Any]] = {}

    # -- before the device -------------------------------------------------------------------------------------------

    def compile_all(self) -> float:
        """Compile every runner into Triton's cache; return the seconds that it took."""
        started = time.perf_counter()
        # The first compile is in this process: the forks then find every reachable function parsed and hashed.
        runners = self.track.heats[0].runners
        self._compile(runners[0])
        self.kernel.jit.device_caches.clear()
        context = multiprocessing.get_context("fork")  # safe, since this process has not touched the device
        running: dict[int, tuple[Any, float]] = {}
        waiting = [number for number in self.track.order if number]
        while waiting or running:
            while waiting and len(running) < self.track.jobs:
                number = waiting.pop(0)
                process = context.Process(target=self._compile_apart, args=(runners[number],))
                process.start()
                running[number] = process, time.monotonic() + self.track.deadline_s
            multiprocessing.connection.wait([p.sentinel for p, _ in running.values()], timeout=1.0)
            for number, (process, deadline) in list(running.items()):
                if process.is_alive() and time.monotonic() > deadline:
                    _kill(process)
                    self.failures[number] = f"its compile did not end within {self.track.deadline_s:.0f} s"
                if not process.is_alive():
                    process.join()
                    del running[number]
                    if process.exitcode:
                        self.failures.setdefault(number, f"its compile ended with status {process.exitcode}")
        return time.perf_counter() - started

    def _compile_apart(self, candidate: Candidate) -> None:
        os.setsid()  # an assembler that it started is in the same session, and ends with it
        self._compile(candidate)

    def _compile(self, candidate: Candidate) -> None:
        positional, keywords = compile.bind(self.kernel, candidate, self.target)
        self.kernel.jit.warmup(*positional, grid=candidate.grid or (1,), **keywords)

    # -- on the device -----------------------------------------------------------------------------------------------

    def make_inputs(self, module: Any, heat: Heat) -> None:
        self._reference = getattr(module, "reference", None)
        if self._reference is None:
            self.unchecked = "the probe file has no reference"
        baseline = heat.runners[0]
        config = {n: compile.value_of(n, v, self.kernel) for n, v in baseline.config.items()} | self.track.hosts[0]
        made = module.inputs(dict(heat.shape), config, self.device.device, self.track.seed)
        self._given[heat.name] = dict(made)
        self.device.synchronize()

    def keywords(self, heat: Heat, number: int, outputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return all arguments of a launch, by name. `outputs` replace the race's own tensors."""
        given, candidate = {**self._given[heat.name], **(outputs or {})}, heat.runners[number]
        args = {
            n: argument(v, given[n], self.device, self.target) if n in given else v for n, v in candidate.args.items()
        }
        positional, keywords = compile.bind(self.kernel, candidate, self.target, args)
        names = list(self.kernel.jit.signature.parameters)
        return dict(zip(names, positional, strict=False)) | keywords

    def autotune(self, heat: Heat) -> tuple[float, list[float | None], int]:
        """Run the standard autotuner over all runners of a heat.

        Return its seconds, its time of each runner in microseconds (None: no time), and the number of its choice.
        """
        import triton  # weight of Triton; `preload` sets the environment before it

        racing = [n for n in range(len(heat.runners)) if n not in {*self.failures, *self.track.twins}]
        calls = {n: self.keywords(heat, n) for n in racing}
        shared, own = _divided([calls[n] for n in racing])
        configs = [self._config(triton, mine) for mine in own]
        numbers = dict(zip(map(id, configs), racing, strict=True))
        # A grid is a function of the kernel's parameters; the compiler's options do not reach it.
        known = {n for mine in own for n in mine if n in self.kernel.jit.signature.parameters and _is_plain(mine[n])}
        grids = {_key(mine, known): heat.runners[n].grid or (1,) for n, mine in zip(racing, own, strict=True)}
        clock = None if self.track.plain else _Judge(self.device).measure
        tuner = triton.autotune(configs=configs, key=[], **({} if clock is None else {"do_bench": clock}))(
            self.kernel.jit
        )
        started = time.perf_counter()
        tuner.run(grid=lambda call: grids[_key(call, known)], warmup=False, **shared)
        self.device.synchronize()
        seconds = time.perf_counter() - started
        if len(configs) == 1:
            return seconds, [None] * len(heat.runners), racing[0]
        found: list[float | None] = [None] * len(heat.runners)
        for config, timings in tuner.configs_timings.items():
            middle = timings[0] if isinstance(timings, list | tuple) else timings
            found[numbers[id(config)]] = middle * 1000.0 if middle != float("inf") else None
        return seconds, found, numbers[id(tuner.best_config)]

    def _config(self, triton: Any, own: dict[str, Any]) -> Any:
        """Return a `triton.Config` of a runner's own arguments.

        Tensor descriptors are not hashable, so a hook sets them before the launch.
        """
        hooked = {n: v for n, v in own.items() if hasattr(v, "block_shape")}
        plain = {n: v for n, v in own.items() if n not in hooked}
        # None leaves an option to the compiler. The defaults of `triton.Config` differ from the compiler's.
        fields = {name: plain.pop(name, None) for name in FIELDS}
        return triton.Config(plain, **fields, pre_hook=_hook(hooked) if hooked else None)

    def right(self, heat: Heat, numbers: Sequence[int], most: int) -> list[int]:
        """Return the first runners, at most `most`, whose results match the reference. Mismatches become failures."""
        found: list[int] = []
        for number in numbers:
            if len(found) < most and number not in self.failures:
                if text := self._complaint(heat, number):
                    self.failures[number] = text
                else:
                    found.append(number)
        return found

    def _complaint(self, heat: Heat, number: int) -> str:
        """Return the error in a runner's results; "" if there is none, or if they cannot be compared."""
        if self.unchecked or number in self.errors[heat.name]:
            return ""
        checker = check.Checker(self.device.tensors, self.track.tolerance)

        def reference(inputs: Mapping[str, Any]) -> Any:
            return self._reference(dict(inputs), dict(heat.shape))

        def launch(outputs: Mapping[str, Any]) -> None:
            keywords, grid = self.keywords(heat, number, outputs), heat.runners[number].grid or (1,)
            self.device.launch(self.kernel.jit, (), keywords, grid)
            self.device.synchronize()

        # The seed only selects the poison of the outputs: the inputs are those of the race.
        case = check.Case(heat.name or "raced", check.SEEDS[-1], self._given[heat.name], reference, launch)
        try:
            checker.run(case)
        except check.Wrong as wrong:
            return f"WRONG: {wrong}"
        except Mismatch as mistake:
            self.unchecked = str(mistake)
            return ""
        self.errors[heat.name][number] = max((e.relative for e in checker.found().errors), default=0.0)
        return ""

    def rounds(self, heat: Heat, numbers: Sequence[int]) -> dict[int, tuple[float, ...]]:
        """Return the times of each runner in microseconds, one a round. Each round begins with another runner."""
        launches = {n: self._launch(heat, n) for n in numbers}
        for launch in launches.values():
            self.device.times_us(launch, LAUNCHES)
        times: dict[int, list[float]] = {n: [] for n in numbers}
        for turn in range(self.track.rounds):
            at = turn % len(numbers)
            for number in [*numbers[at:], *numbers[:at]]:
                times[number].append(statistics.median(self.device.times_us(launches[number], LAUNCHES)))
        return {n: tuple(round(t, 3) for t in found) for n, found in times.items()}

    def _launch(self, heat: Heat, number: int) -> Callable[[], None]:
        keywords, grid = self.keywords(heat, number), heat.runners[number].grid or (1,)
        return lambda: self.device.launch(self.kernel.jit, (), keywords, grid)


def _kill(process: Any) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has not made its session yet
        process.kill()
    process.join()


class _Judge:
    """A `do_bench` that times three launches of every configuration, and more of those that may still win."""

    def __init__(self, device: vendor.Vendor) -> None:
        self.device = device
        self.best = float("inf")

    def measure(self, launch: Callable[[], None], quantiles: Sequence[float] = (0.5, 0.2, 0.8)) -> list[float]:
        """Return the times at the quantiles in milliseconds, the unit of the autotuner."""
        launch()
        found = list(self.device.times_us(launch, FEW))
        if min(found) <= HOPELESS * self.best:
            found += self.device.times_us(launch, MORE)
        self.best = min(self.best, statistics.median(found))
        ordered = sorted(found)
        return [ordered[min(len(ordered) - 1, int(q * len(ordered)))] / 1000.0 for q in quantiles]


def finalists(raced: Sequence[float | None], winner: int, most: int) -> list[int]:
    """Return the winner and the fastest others within 10 % of the best, at most `most`."""
    timed = sorted((us, n) for n, us in enumerate(raced) if us is not None)
    near = [n for us, n in timed if us <= 1.1 * timed[0][0] and n != winner]
    return [winner, *near][:most]


def compromise(raced: Sequence[Sequence[float | None]]) -> int | None:
    """Return the runner with the smallest largest slowdown against the best of each heat.

    Only runners with a time in every heat count; None if there is none.
    """
    best = [min((us for us in heat if us is not None), default=0.0) for heat in raced]
    behind = {
        n: max(us / least for us, least in zip(times, best, strict=True) if us is not None)
        for n, times in enumerate(zip(*raced, strict=True))
        if all(us is not None for us in times)
    }
    return min(behind, key=lambda n: behind[n], default=None)


def _hook(descriptors: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    contents = {name: dict(vars(descriptor)) for name, descriptor in descriptors.items()}

    def put_in_place(call: dict[str, Any]) -> None:
        for name, content in contents.items():
            vars(call[name]).update(content)

    return put_in_place


def _divided(calls: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arguments that all calls share, and the others of each call. A descriptor is in both: see `_hook`."""
    first = calls[0]
    same = {n for n, v in first.items() if n not in FIELDS and all(_alike(v, call.get(n)) for call in calls)}
    shared = {n: v for n, v in first.items() if n in same or hasattr(v, "block_shape")}
    return shared, [{n: v for n, v in call.items() if n not in same} for call in calls]


def _alike(one: Any, other: Any) -> bool:
    if hasattr(one, "data_ptr") or hasattr(one, "block_shape"):
        return one is other
    return type(one) is type(other) and bool(one == other)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _key(call: Mapping[str, Any], names: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, repr(getattr(call[name], "value", call[name]))) for name in sorted(names))


def run(track: Track) -> Finish:
    """Run the race, from its first compile to its last round."""
    os.environ["TRITON_CACHE_DIR"] = track.cache
    preload.preload()
    os.environ.pop("TRITON_ALWAYS_COMPILE", None)
    target = targets.find(track.target)
    preload.pretend(target)
    module, _ = load.load_module(track.file)
    kernel = load.find_kernel(module, track.file.kernel)
    device = vendor.VENDORS[target.backend]()
    race = Race(track, device, kernel)
    compile_seconds = race.compile_all()
    device.open(turns.take(device.lock_files()))
    kernel.jit.device_caches.clear()
    probe_file = load.load_module(msgspec.structs.replace(track.file, path=track.probe_file))[0]
    before, tuned = [], []
    for heat in track.heats:
        race.make_inputs(probe_file, heat)
        before.append(device.clock_mhz())
        tuned.append(race.autotune(heat))
    goes_on: list[int] = [0]
    for heat, (_, raced, winner) in zip(track.heats, tuned, strict=True):
        goes_on += race.right(heat, finalists(raced, winner, len(raced)), track.finalists)
    if len(tuned) > 1 and (middle := compromise([raced for _, raced, _ in tuned])) is not None:
        goes_on.append(middle)
    goes_on = list(dict.fromkeys(goes_on))
    for heat in track.heats:  # a finalist of one size must be right at the other sizes too
        goes_on = race.right(heat, goes_on, len(goes_on))
    goes_on += [n for n in track.twins if n not in race.failures]
    legs = []
    for heat, clock, (seconds, raced, winner) in zip(track.heats, before, tuned, strict=True):
        rounds = race.rounds(heat, goes_on) if 0 in goes_on else {}
        clocks = (clock, device.clock_mhz())
        legs.append(Leg(seconds, tuple(raced), winner, rounds, clocks, race.errors[heat.name]))
    import torch  # after `preload`, which sets the environment
    import triton

    return Finish(
        device=str(torch.cuda.get_device_name()),
        driver=_driver(),
        torch=str(torch.__version__),
        triton=str(triton.__version__),
        compile_seconds=compile_seconds,
        legs=tuple(legs),
        failures=race.failures,
        unchecked=race.unchecked,
    )


def _driver() -> str:
    """Return the version of the kernel driver; "" if it cannot be read."""
    for path in (Path("/proc/driver/nvidia/version"), Path("/sys/module/amdgpu/version")):
        try:
            return path.read_text().splitlines()[0].strip()
        except OSError:
            continue
    return ""


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python -m gluonmap.worker.race TRACK FINISH   (`gluonmap race` makes it)")
    finish = run(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Track))
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(finish))


if __name__ == "__main__":
    main()
