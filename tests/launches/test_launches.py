"""A program that is watched: what is seen of it, and that it notices nothing. Its device is a double."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from maps import single_map
from msgspec.structs import replace

from gluonmap.launches import Ended, Launched, LaunchStanding, Recorded, compare, records, run
from gluonmap.model import codec
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Inertness, Verified
from gluonmap.model.knobs import KnobKind
from gluonmap.model.space_map import Recipe, SpaceMap
from gluonmap.model.verdict import Resources
from gluonmap.report import engaged as launched

REPOSITORY = Path(__file__).resolve().parents[2]

DEVICE = '''
import os, sys
import triton, triton.language as tl
from triton.backends.amd.compiler import HIPBackend
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

HIPBackend.is_within_2gb = staticmethod(lambda pointer: True)


class Utils:
    handles = 1000

    def load_binary(self, name, kernel, shared, device):
        Utils.handles += 1
        return object(), Utils.handles, 10, 0, 1024

    def unload_module(self, module):
        pass

    def get_device_properties(self, device):
        return {"max_shared_mem": 65536}


class Launcher:
    def __init__(self, src, metadata):
        pass

    def __call__(self, x, y, z, stream, function, packed, metadata, enter, leave, *args):
        enter(metadata)
        leave(metadata)


class Driver:
    utils, launcher_cls = Utils(), Launcher

    def get_current_target(self):
        return GPUTarget("hip", "gfx942", 64)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=0):
        return 0

    def get_benchmarker(self):
        return lambda call, quantiles: [call() or 1.0] * 3


class Pointer:
    dtype = "fp16"

    def data_ptr(self):
        return 4096

    def ptr_range(self):
        return 1 << 20


driver.set_active(Driver())


@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def go(times, BLOCK, num_warps=4):
    for _ in range(times):
        scale[(1,)](Pointer(), 4096, BLOCK=BLOCK, num_warps=num_warps)
'''  # fmt: skip

SERVE = """
from device import *

seen = []
triton.knobs.runtime.launch_enter_hook.add(lambda metadata: seen.append(metadata.get()["name"]))
go(3, 128)
go(1, 256, num_warps=8)
tuned = triton.autotune([triton.Config({"BLOCK": b}, num_stages=2) for b in (64, 512)], key=["n"])(scale)
tuned[(1,)](Pointer(), 4096)
tuned[(1,)](Pointer(), 4096)
if os.fork() == 0:
    go(2, 128)
    os._exit(0)
os.wait()
print(len(seen), sys.argv[1:])
sys.stdout.flush()
if "again" in sys.argv:
    os.execv(sys.executable, [sys.executable, "-c", "from device import *; go(5, 128); os.kill(os.getpid(), 9)"])
sys.exit(5)
"""


def space_of(target: str = "gfx942", blocks: tuple[int, ...] = (128, 256), **more: Any) -> SpaceMap:
    """A map of `scale`: BLOCK and num_warps, the baseline (128, 4); a block of 512 fails."""
    from gluonmap.model.relations import Bound, Op

    domains: dict[str, tuple[Value, ...]] = {"BLOCK": (64, 128, 256, 512), "num_warps": (4, 8), "chunks": (1, 2)}
    space = single_map(domains, {"BLOCK": 128, "num_warps": 4, "chunks": 1}, (Bound("BLOCK", Op.AT_MOST, 256),))
    knobs = {**space.knobs, "num_warps": replace(space.knobs["num_warps"], kind=KnobKind.OPTION)}
    knobs["chunks"] = replace(knobs["chunks"], kind=KnobKind.HOST)
    return replace(space, kernel="scale", file="kernels/device.py", target=target, knobs=knobs, **more)


def joint_space(*programs: Config, inert: str = "") -> SpaceMap:
    from gluonmap.model.joint_map import Certificate, Joint, Sizes

    space = space_of()
    found = tuple(Verified({**space.baseline, **p}, repr(p), Resources(256, 0)) for p in programs)
    joint = Joint(
        depth="joint", domains={n: tuple(v.value for v in k.values) for n, k in space.knobs.items()}, constraints=(),
        sizes=Sizes(16), certificate=Certificate(0.95, 1, (), ()), coverage=(), programs=found,
        inertness=(Inertness(inert, "", f"{inert} never matters", 0, 4),) if inert else (),
    )  # fmt: skip
    return replace(space, joint=joint)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("triton")
    found = tmp_path_factory.mktemp("program")
    (found / "device.py").write_text(DEVICE)
    (found / "serve.py").write_text(SERVE)
    return found


def environment(folder: Path) -> dict[str, str]:
    own = {"PYTHONPATH": str(folder), "TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
    return {**{k: v for k, v in os.environ.items() if not k.startswith("TRITON_")}, **own}


@pytest.fixture(scope="module")
def served(folder: Path) -> Ended:
    return run([sys.executable, "serve.py", "again"], {**environment(folder), "PYTHONPATH": str(folder)})


# ---- what is seen --------------------------------------------------------------------------------------------------


def by_block(recorded: Recorded) -> dict[Any, tuple[int, int, int]]:
    return {i.config["BLOCK"]: (i.launches, i.trials, i.processes) for i in recorded.launched if i.config}


@pytest.fixture(scope="module", autouse=True)
def _here(folder: Path) -> Any:
    before = Path.cwd()
    os.chdir(folder)
    yield
    os.chdir(before)


def test_every_launch_is_counted_however_a_process_ends(served: Ended) -> None:
    assert served.status == -9 and served.code == 137 and served.how == "SIGKILL"
    assert by_block(served.recorded) == {128: (3 + 2 + 5, 0, 3), 256: (1, 0, 1), 64: (2, 1, 1), 512: (0, 1, 1)}
    first = next(item for item in served.recorded.launched if item.config and item.config["BLOCK"] == 256)
    assert (first.kernel, Path(first.file).name, first.target) == ("scale", "device.py", "gfx942")
    assert (first.options["num_warps"], first.options["waves_per_eu"]) == (8, 0)


def test_what_a_tuner_has_chosen_is_seen_where_triton_tells(served: Ended) -> None:
    triton = pytest.importorskip("triton")
    if not hasattr(triton.knobs.autotuning, "listener"):
        pytest.skip(f"Triton {triton.__version__} has no listener for it")
    (chosen,) = served.recorded.tunings
    assert (chosen.kernel, chosen.key, chosen.candidates) == ("scale", ("4096", "'fp16'"), 2)
    assert chosen.config["BLOCK"] == 64


def test_a_program_does_not_notice(folder: Path) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "sitecustomize.py").write_text("import sys\nprint('own', __name__)\nsys.own = 1\n")
    script = (
        "import os, sys; print([p for p in sys.path], sys.own, sys.modules['sitecustomize'].__file__);"
        "print([type(f).__name__ if not isinstance(f, type) else f.__name__ for f in sys.meta_path]);"
        "from device import go, triton, sys; go(2, 128);"
        "print([type(f).__name__ if not isinstance(f, type) else f.__name__ for f in sys.meta_path]);"
        "print(triton.knobs.__spec__.loader.__dict__.keys(), sys.stdin.read(), file=sys.stderr); sys.exit(9)"
    )
    own = {**environment(folder), "PYTHONPATH": os.pathsep.join([str(folder / "own"), str(folder)])}
    plain = subprocess.run(
        [sys.executable, "-c", script], env=own, input="in", capture_output=True, text=True, check=False
    )
    watch = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from gluonmap.launches import run; "
    watch += "print(run(sys.argv[1:]).recorded.launched[0].launches)"
    seen = subprocess.run(
        [sys.executable, "-c", watch, sys.executable, "-c", script],
        env=own, input="in", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert plain.returncode == 9
    # The watching process itself begins with the same sitecustomize.
    said = seen.stdout.removeprefix("own sitecustomize\n").removesuffix("2\n")
    first, rest = plain.stdout.split("\n", 2)[:2], plain.stdout.split("\n", 2)[2]
    assert said.split("\n", 2)[:2] == first
    # One finder waits for Triton, and is gone when it has come.
    assert said.split("\n", 2)[2].replace("'Hooks', ", "", 1) == rest
    assert seen.stderr == plain.stderr


def test_without_triton_nothing_is_imported(tmp_path: Path) -> None:
    def modules(into: Path) -> list[str]:
        return ["-c", f"import sys; open({str(into)!r}, 'w').write(' '.join(sys.modules))"]

    subprocess.run([sys.executable, *modules(tmp_path / "plain")], check=True)
    run([sys.executable, *modules(tmp_path / "seen")])
    plain, seen = (set((tmp_path / name).read_text().split()) for name in ("plain", "seen"))
    assert seen - plain <= {"sitecustomize", "__future__"}


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import os; os._exit(4)", 4),
        ("raise ValueError", 1),
        ("import os; os.abort()", -signal.SIGABRT),
        ("", 0),
    ],
)
def test_its_exit_status_is_its_own(script: str, status: int) -> None:
    ended = run([sys.executable, "-c", script])
    assert (ended.status, ended.recorded) == (status, Recorded(pythons=1))


def test_a_program_that_leaves_pythonpath_out_is_not_seen() -> None:
    ended = run([sys.executable, "-I", "-c", ""])
    assert ended.recorded.pythons == 0
    assert "could be watched" in launched.render(ended, ())


def test_a_broken_sitecustomize_is_as_broken_as_before(folder: Path) -> None:
    (folder / "broken").mkdir()
    (folder / "broken" / "sitecustomize.py").write_text("import not_there_at_all\n")
    command = [sys.executable, "-c", "print('runs')"]
    own = {**environment(folder), "PYTHONPATH": str(folder / "broken")}
    plain = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    watch = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from gluonmap.launches import run; run(sys.argv[1:])"
    seen = subprocess.run([sys.executable, "-c", watch, *command], env=own, capture_output=True, text=True, check=False)
    assert "not_there_at_all" in plain.stderr and seen.stdout == plain.stdout
    assert seen.stderr == plain.stderr * 2  # the watching process has it, too


def test_what_cannot_run_is_refused() -> None:
    from gluonmap.model.errors import UsageError

    with pytest.raises(UsageError, match="cannot run not-a-program"):
        run(["not-a-program"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_handed_on(tmp_path: Path, number: signal.Signals) -> None:
    script = (
        "import signal, sys, time, pathlib\n"
        "def end(number, frame): sys.exit(number)\n"
        f"signal.signal({int(number)}, end)\n"
        f"pathlib.Path({str(tmp_path / 'ready')!r}).touch()\n"
        "time.sleep(60)\n"
    )
    watch = "import sys; from gluonmap.launches import run; sys.exit(run(sys.argv[1:]).code)"
    own = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen([sys.executable, "-c", watch, sys.executable, "-c", script], env=own)
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(20) == number


def test_records_that_a_dying_process_wrote_in_part_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    line = {"kernel": "k", "file": "f.py", "target": "gfx942", "config": {"B": 1}, "options": {"hash": "a"}}
    whole = json.dumps({"place": 0, **line})
    (tmp_path / "1-1.jsonl").write_text(f'{{"triton": "3.9.0"}}\n{whole}\n{whole[:30]}')
    (tmp_path / "1-1.counts").write_bytes((7).to_bytes(8, sys.byteorder) + bytes(24))
    (tmp_path / "2-1.jsonl").write_text(whole + "\n")
    assert records.read(tmp_path) == Recorded(
        (Launched("k", "f.py", "gfx942", {"B": 1}, {"hash": "a"}, 7),), (), 0, ("3.9.0",)
    )


# ---- what the maps say ---------------------------------------------------------------------------------------------


def ran(block: int, launches: int = 1, trials: int = 0, **more: Any) -> Launched:
    fields = {"kernel": "scale", "file": "/opt/ops/device.py", "target": "gfx942", "num_warps": 4, **more}
    options = {"num_warps": fields.pop("num_warps"), "kpack": fields.pop("kpack", 1)}
    config = {"BLOCK": block, **fields.pop("config", {})}
    return Launched(**{"config": config, "options": options, "launches": launches, "trials": trials, **fields})


def standings(space: SpaceMap, *items: Launched) -> list[LaunchStanding]:
    (verdict,) = compare(Recorded(items), [space])
    return [item.standing for item in verdict.programs]


def test_a_configuration_is_on_the_list_or_it_is_said_why_not() -> None:
    space = joint_space({}, {"BLOCK": 256}, inert="")
    space = replace(space, recipe=Recipe(fixed={"kpack": 1, "EVEN": True}))
    assert standings(
        space,
        ran(128),
        ran(256),
        ran(64),
        ran(512),
        ran(1024),
        ran(128, kpack=2),
        ran(128, config={"EVEN": False}),
        ran(128, target="gfx950"),
        replace(ran(128), config=None),
        replace(ran(128), options={}),
    ) == [
        LaunchStanding.LISTED,
        LaunchStanding.LISTED,
        LaunchStanding.UNLISTED,
        LaunchStanding.FORBIDDEN,
        LaunchStanding.UNKNOWN,
        LaunchStanding.UNLISTED,
        LaunchStanding.UNKNOWN,
        LaunchStanding.NO_MAP,
        LaunchStanding.UNKNOWN,
        LaunchStanding.UNKNOWN,
    ]


def test_a_configuration_that_is_one_program_with_a_listed_one_is_as_good() -> None:
    assert standings(joint_space({}, inert="num_warps"), ran(128, num_warps=8)) == [LaunchStanding.TWIN]
    assert standings(joint_space({}), ran(128, num_warps=8)) == [LaunchStanding.UNLISTED]


def test_a_mapped_kernel_must_run_and_by_the_list_alone() -> None:
    space = space_of()

    def said(*items: Launched) -> tuple[bool, str]:
        (verdict,) = compare(Recorded(items), [space])
        return verdict.tuned, verdict.words

    assert said() == (False, "never ran")
    assert said(ran(128, 0, trials=9)) == (False, "was launched to be tuned, and never by the program")
    assert said(ran(128, 40), ran(512, 0, trials=3)) == (
        True,
        "all 40 launches were of configurations on the map's list",
    )
    assert said(ran(128, 40), ran(256, 2, num_warps=8)) == (
        False,
        "2 of 42 launches were of no configuration on the map's list",
    )


def test_kernels_of_one_name_are_told_apart_by_their_files_if_one_is_the_maps() -> None:
    other = ran(512, 3, file="/opt/other.py")
    (verdict,) = compare(Recorded((other, ran(128))), [space_of()])
    assert verdict.tuned and len(verdict.programs) == 1
    (alone,) = compare(Recorded((other,)), [space_of()])
    assert not alone.tuned


def test_maps_of_several_targets_are_one_kernels() -> None:
    maps = [space_of(), space_of(target="gfx950")]
    (verdict,) = compare(Recorded((ran(128), ran(256, target="gfx950"))), maps)
    assert verdict.tuned and verdict.targets == ("gfx942", "gfx950")


# ---- the command ---------------------------------------------------------------------------------------------------


def engaged(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    own = environment(folder)
    own["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), str(folder)])
    command = [sys.executable, "-m", "gluonmap", "engaged", *arguments]
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_the_command_reports_on_stderr_and_ends_with_1_where_a_kernel_ran_untuned(folder: Path) -> None:
    path, absent, out = folder / "scale.json", folder / "absent.json", folder / "out.json"
    codec.write(path, codec.dumps(space_of()))
    codec.write(absent, codec.dumps(replace(space_of(), kernel="gone")))
    program = ("--", sys.executable, "-c", "from device import *; go(2, 128); print('out'); sys.exit(6)")
    done = engaged(folder, "--map", str(path), "--json", str(out), *program)
    assert (done.returncode, done.stdout) == (6, "out\n"), done.stderr
    assert "scale: all 2 launches were of configurations on the map's list" in done.stderr
    document = json.loads(out.read_text())
    assert (document["exit_status"], document["tuned"]) == (6, True)
    assert document["maps"][0]["programs"][0]["launched"]["launches"] == 2
    done = engaged(folder, "--map", str(path), "--map", str(absent), *program)
    assert done.returncode == 1 and "gone: never ran" in done.stderr
    assert engaged(folder, *program).returncode == 6


def test_what_follows_the_program_is_its_own(folder: Path) -> None:
    done = engaged(folder, sys.executable, "-c", "import sys; print(sys.argv)", "--map", "--help")
    assert done.stdout == "['-c', '--map', '--help']\n"
    assert engaged(folder).returncode == 2
