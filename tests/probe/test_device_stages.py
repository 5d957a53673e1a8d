"""The stages on a device, through real servers and children, with a double in the place of the device."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import UnsetType
from project import Project

from gluonmap.cli.command_group import cli
from gluonmap.model import targets
from gluonmap.model.candidate import Stage
from gluonmap.model.errors import UsageError
from gluonmap.model.events import Event
from gluonmap.model.space_map import Measured, SpaceMap, ValueMap
from gluonmap.probe import rebuild
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.session import probe_target
from gluonmap.probe.settings import Effort, Settings
from gluonmap.probe.target_choice import TargetChoice
from gluonmap.race import run
from gluonmap.runner.processes import Isolation
from gluonmap.worker import vendor
from gluonmap.worker.track import Finish, Leg

PROBE = """
KERNEL = "on_device"
KNOBS = {knobs!r}
BASELINE = {baseline!r}
ARGS = {{"x": "*fp32", "y": "*fp32"}}
SHAPES = {{"whole": {{"n": 256}}, "ragged": {{"n": 250}}}}
GRID = "(cdiv(n, TILE),)"
TOLERANCE = {{"y": 1e-4}}


def inputs(shape, config, device, seed):
    import numpy as np

    x = np.random.default_rng(seed).standard_normal(shape["n"], dtype=np.float32)
    return {{"x": x, "y": np.empty_like(x), "n": shape["n"]}}


def reference(inputs, shape):
    return {{"y": inputs["x"] * 2}}
"""


class OnDouble(Campaign):
    """A campaign on a machine whose device is a double."""

    def find_device(self) -> tuple[str, str]:
        return "gfx942", "Double"


class Bench:
    """Runs the tool in this process, with servers that have the double."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.events: list[Event] = []

    def probe(self, stage: Stage, hows: list[str], probe: str = PROBE, depth: str = "singles", **more: Any) -> SpaceMap:
        knobs = {"HOW": hows, "TILE": [64, 128]} if depth == "joint" else {"HOW": hows}
        self.project.kernel("on_device")
        text = probe.format(knobs=knobs, baseline={"HOW": hows[0], "TILE": 64})
        self.project.write("probes/on_device.py", text)
        settings = Settings(
            kernel_file=self.project.root / "kernels/on_device.py",
            root=self.project.root,
            stage=stage,
            modules=("fake_device",),
            effort=Effort(depth=depth, budget=10, validate=0),
            **{"jobs": 2, "deadline_s": 20.0} | more,
        )
        with Isolation(jobs=settings.jobs, modules=settings.modules) as isolation:
            campaign = OnDouble(settings, isolation, self.events.append)
            TargetChoice(campaign).require_stage([targets.find("gfx942")])
            return probe_target(campaign, targets.find("gfx942")).space


@pytest.fixture
def bench(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.chdir(project.root)
    yield Bench(project)


def value(space: SpaceMap, how: str) -> ValueMap:
    return next(v for v in space.knobs["HOW"].values if v.value == how)


def measured(value: ValueMap | SpaceMap) -> Measured:
    assert not isinstance(value.measured, UnsetType)
    return value.measured


# --- outcomes ---------------------------------------------------------------------------------------------------------

HOSTILE = {
    "aborts": ("CRASHED", "SIGABRT", "LAUNCH", -6),
    "crashes": ("CRASHED", "illegal memory access", "LAUNCH", 15),
    "unknown error": ("CRASHED", "device error", "LAUNCH", 15),
    "too much": ("NO_RESOURCES", "budget", "LAUNCH", 12),
    "bad grid": ("REJECTED", "ValueError", "LAUNCH", 13),
    "wrong": ("WRONG", "relative error", "CHECK", 14),
    "wrong when ragged": ("WRONG", "relative error", "CHECK", 14),
    "unwritten": ("WRONG", "non-finite values", "CHECK", 14),
    "NaN": ("WRONG", "non-finite values", "CHECK", 14),
    "past its end": ("WRONG", "guard bytes", "CHECK", 14),
}


@pytest.fixture(scope="module")
def checked(shared_project: Project) -> SpaceMap:
    before = Path.cwd()
    os.chdir(shared_project.root)
    try:
        hows = ["right", *HOSTILE, "racy", "does not compile", "also right"]
        return Bench(shared_project).probe(Stage.CHECK, hows)
    finally:
        os.chdir(before)


@pytest.mark.parametrize("how", HOSTILE)
def test_each_way_to_fail_on_a_device_has_its_outcome(checked: SpaceMap, how: str) -> None:
    found = value(checked, how)
    assert (found.outcome, found.kind, measured(found).reached.value, found.exit_status) == HOSTILE[how]
    assert found.digest == checked.digest or found.digest  # the compile's own program stays known


def test_the_text_of_a_wrong_result_names_output_size_and_seed(checked: SpaceMap) -> None:
    assert value(checked, "wrong when ragged").reason.startswith("y: relative error ")
    assert value(checked, "wrong when ragged").reason.endswith("> 0.0001 (ragged shape, seed 1)")


def test_a_right_candidate_passes_the_check_with_its_errors_and_is_not_racy(checked: SpaceMap) -> None:
    for found in (checked, value(checked, "also right")):
        check = measured(found).check
        assert found.outcome == "PASS"
        assert check is not None
        assert (check.runs, check.shapes, check.racy) == (8, ("ragged", "default"), False)
        assert [(e.output, e.relative, e.tolerance, e.declared) for e in check.errors] == [("y", 0.0, 1e-4, True)]


def test_two_launches_that_differ_in_a_bit_are_racy_and_pass_within_the_tolerance(checked: SpaceMap) -> None:
    found = value(checked, "racy")
    check = measured(found).check
    assert found.outcome == "PASS"
    assert check is not None and check.racy


def test_what_does_not_compile_never_comes_to_the_device(checked: SpaceMap) -> None:
    found = value(checked, "does not compile")
    assert (found.outcome, found.stage) == ("REJECTED", "front end")
    assert isinstance(found.measured, UnsetType)


@pytest.mark.long
def test_a_candidate_that_hangs_on_the_device_is_killed_and_the_next_one_is_right(bench: Bench) -> None:
    space = bench.probe(Stage.LAUNCH, ["right", "hangs", "also right"], jobs=1, deadline_s=6.0)
    hung = value(space, "hangs")
    assert (hung.outcome, hung.kind, hung.reason) == ("HUNG", "deadline", "no end within 6 s on the device")
    assert hung.digest
    assert value(space, "also right").outcome == "PASS"


def test_a_launch_is_timed_into_the_map(bench: Bench) -> None:
    timing = measured(bench.probe(Stage.TIME, ["right", "also right"])).timing
    assert timing is not None
    assert timing.repeats == 1000
    assert timing.low_us < timing.median_us < timing.high_us
    assert (timing.clock_before_mhz, timing.clock_after_mhz) == (1000, 1000)


# --- one at a time ----------------------------------------------------------------------------------------------------


def turns(path: Path) -> list[tuple[float, float]]:
    return sorted((float(b), float(e)) for _, b, e in (line.rsplit(" ", 2) for line in path.read_text().splitlines()))


@pytest.fixture
def log(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = project.home / "turns"
    monkeypatch.setenv("FAKE_LOG", str(path))
    return path


@pytest.mark.long
def test_candidates_have_the_device_one_after_the_other_and_their_wait_counts_towards_no_deadline(
    bench: Bench, log: Path
) -> None:
    busy = [f"busy {number}" for number in range(5)]
    space = bench.probe(Stage.LAUNCH, ["right", *busy], jobs=5, deadline_s=6.0)
    assert {value(space, how).outcome for how in busy} == {"PASS"}
    spans = turns(log)
    assert len(spans) == 5
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))


@pytest.mark.long
def test_two_devices_share_the_candidates(bench: Bench, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DEVICES", "2")
    bench.probe(Stage.LAUNCH, ["right", *(f"busy {number}" for number in range(4))], jobs=4)
    spans = turns(log)
    at_once = [sum(b < begin < e for b, e in spans) + 1 for begin, _ in spans]
    assert max(at_once) == 2


# --- nothing to run on, or with ---------------------------------------------------------------------------------------


def test_a_device_that_cannot_be_used_is_skipped_and_no_evidence(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BROKEN", "1")
    space = bench.probe(Stage.LAUNCH, ["right", "also right"])
    assert (space.outcome, space.kind, space.exit_status) == ("SKIPPED", "no device", 20)


def test_inputs_that_fail_are_skipped_with_what_they_raised(bench: Bench) -> None:
    broken = PROBE.replace("    import numpy as np\n", "    raise ValueError('no such shape')\n")
    space = bench.probe(Stage.LAUNCH, ["right", "also right"], broken)
    assert (space.outcome, space.kind) == ("SKIPPED", "no inputs")
    assert space.reason == "inputs() of the probe file fails: ValueError: no such shape"


@pytest.mark.parametrize(
    ("stage", "gone", "named"),
    [(Stage.LAUNCH, "inputs", "inputs(shape, config, device, seed)"), (Stage.CHECK, "reference", "reference(inputs,")],
)
def test_a_probe_file_without_the_functions_is_refused_before_anything_is_compiled(
    bench: Bench, stage: Stage, gone: str, named: str
) -> None:
    with pytest.raises(UsageError) as refused:
        bench.probe(stage, ["right", "also right"], PROBE.replace(f"def {gone}(", f"def {gone}_("))
    assert named in str(refused.value)
    assert not any(event.kind == "answer" for event in bench.events)


def test_on_a_machine_without_the_device_a_stage_is_skipped_in_one_sentence(project: Project) -> None:
    done = project.run("probe", project.kernel("tiled"), "-t", "gfx942", "--stage", "launch")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("gluonmap: SKIPPED: --stage launch runs the kernel on a gfx942 GPU, and ")
    assert "leave --stage out" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- what is known ----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_second_run_asks_nothing_and_a_compile_that_failed_is_not_asked_again_for_a_later_stage(
    bench: Bench,
) -> None:
    hows = ["right", "does not compile", "wrong"]
    bench.probe(Stage.COMPILE, hows)
    bench.events.clear()
    first = bench.probe(Stage.CHECK, hows)
    assert sum(event.kind == "answer" for event in bench.events) == 2  # the baseline and "wrong"
    bench.events.clear()
    assert bench.probe(Stage.CHECK, hows) == first
    assert not any(event.kind == "answer" for event in bench.events)


@pytest.mark.long
def test_other_inputs_are_another_question(bench: Bench) -> None:
    bench.probe(Stage.CHECK, ["right", "also right"])
    bench.events.clear()
    bench.probe(Stage.CHECK, ["right", "also right"], PROBE.replace("standard_normal", "random"))
    assert sum(event.kind == "answer" for event in bench.events) >= 2


@pytest.mark.long
def test_a_candidate_is_repeated_at_the_stage_of_its_map(bench: Bench) -> None:
    space = bench.probe(Stage.CHECK, ["right", "wrong"])
    job = rebuild.job_of(space, {"HOW": "wrong"}, execute=True)
    assert job.candidate and job.candidate.stage is Stage.CHECK and job.bench
    assert job.bench.probe_file == str(bench.project.root.resolve() / "probes/on_device.py")
    intents = [r for r in bench.project.journal("on_device/gfx942") if r["type"] == "intent"]
    assert job.candidate.config in [r["candidate"]["config"] for r in intents]
    plain = rebuild.job_of(space, {"HOW": "wrong"}).candidate
    assert plain and plain.stage is Stage.COMPILE


@pytest.mark.long
def test_a_program_that_is_wrong_on_the_device_is_not_handed_over(bench: Bench) -> None:
    space = bench.probe(Stage.CHECK, ["right", "wrong when ragged", "also right"], depth="joint")
    assert space.joint is not None
    assert {o.outcome for o in space.joint.refused} <= {"WRONG"}
    assert all(p.config["HOW"] != "wrong when ragged" for p in space.joint.programs)
    assert all(p.check is not None for p in space.joint.programs)


class Seen(vendor.Nvidia):
    """Two devices of any machines."""

    def count(self) -> int:
        return 2


def test_all_runs_of_a_user_have_one_lock_for_a_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    plain = Seen().lock_files()
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # each candidate has one of its own
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert Seen().lock_files() == plain
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert Seen().lock_files() == plain[::-1]


@pytest.mark.long
def test_a_kernel_that_is_raced_is_mapped_for_this_machines_device_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[run.Line] = []

    def raced(line: run.Line) -> Finish:
        lines.append(line)
        runners = len(line.track.heats[0].runners)
        rounds = {n: (100.0 + n,) * 40 for n in range(runners)}
        leg = Leg(1.0, (100.0,) * runners, 0, rounds, (None, None))
        return Finish(device="Double", driver="", torch="", triton="", compile_seconds=1.0, legs=(leg,))

    bench.project.kernel("on_device")
    text = PROBE.format(knobs={"HOW": ["right"], "TILE": [64, 128]}, baseline={"HOW": "right", "TILE": 64})
    bench.project.write("probes/on_device.py", text)
    monkeypatch.setattr(run, "run", raced)
    monkeypatch.setattr(Campaign, "find_device", OnDouble.find_device)
    done = CliRunner().invoke(cli, ["race", "kernels/on_device.py", "-q"])
    assert done.exit_code == 0, done.output
    assert [config["TILE"] for config in lines[0].configs] == [64, 128, 64]
    assert (bench.project.root / "reports/on_device.gfx942.json").is_file()
    assert "tie: nothing is faster than the baseline" in done.output
