"""Measure the cost of isolation and the gain of the warm server, as ratios within one run.

    python benchmarks/overhead.py [--repeats 5] [--out benchmarks/overhead.md]

Each candidate of the bundled mxfp4 kernel (gfx950) is compiled three ways, one after the other, interleaved: in a
fresh interpreter with nothing but Triton, in a fork of the base server, and in a fork of the warm server.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gluonmap.model import targets
from gluonmap.model.candidate import Candidate, Proof
from gluonmap.runner import environment as installation
from gluonmap.runner.processes import Isolation
from gluonmap.spec import probe_file
from gluonmap.spec.description_builder import Overrides, describe
from gluonmap.worker.protocol import Job, KernelFile, Limits

REPOSITORY = Path(__file__).resolve().parent.parent
KERNEL = REPOSITORY / "kernels" / "cdna4" / "gemm_mxfp4.py"
PROBE = REPOSITORY / "probes" / "cdna4" / "gemm_mxfp4.py"
TARGET = targets.find("gfx950")
PASSING = ({"GROUP_SIZE_M": 4}, {"NUM_KSPLIT": 2}, {"waves_per_eu": 2})
FAILING = ({"BLOCK_SIZE_M": 128}, {"BLOCK_SIZE_K": 512}, {"num_warps": 4})
LIMITS = Limits(deadline_s=120.0, memory_bytes=0)

# The smallest script that compiles one candidate in its own process, as a user without this tool would write it.
# Triton's AMD back end imports torch, if it is installed, to read a tensor's size, so the table says whether it is.
FRESH = """
import importlib.util, json, sys
from types import SimpleNamespace
import triton
from triton.backends.compiler import GPUTarget
gpu = GPUTarget("hip", "gfx950", 64)
triton.runtime.driver.set_active(SimpleNamespace(
    get_current_target=lambda: gpu, get_current_device=lambda: 0, get_current_stream=lambda device=0: 0))
class Dtype(str):
    def __str__(self): return "torch." + str.__str__(self)
class Pointer:
    def __init__(self, name): self.dtype = Dtype({"*u8": "uint8", "*bf16": "bfloat16"}[name])
    def data_ptr(self): return 0
    def ptr_range(self): return 0
path, args, config = json.loads(sys.argv[1])
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
args = {k: Pointer(v) if isinstance(v, str) else v for k, v in args.items()}
module.gemm_mxfp4.warmup(grid=(1,), **args, **config)
"""


def fresh(candidate: Candidate) -> tuple[float, float]:
    """Return the wall seconds of one candidate in a fresh interpreter, and 0: its compile is not timed separately."""
    asked = json.dumps([str(KERNEL), candidate.args, candidate.config])
    with tempfile.TemporaryDirectory() as cache:
        started = time.perf_counter()
        environment = os.environ | {"TRITON_CACHE_DIR": cache, "TRITON_ALWAYS_COMPILE": "1"}
        subprocess.run([sys.executable, "-c", FRESH, asked], env=environment, capture_output=True, check=False)
        return time.perf_counter() - started, 0.0


def forked(isolation: Isolation, warm: object) -> Callable[[Candidate], tuple[float, float]]:
    """Return a function for the wall and compile seconds of one candidate in a fork of the base or warm server."""
    file = KernelFile(str(KERNEL), "gemm_mxfp4")

    def ask(candidate: Candidate) -> tuple[float, float]:
        known = str(isolation.folder / "ir") if candidate.proof is Proof.IR else ""
        job = Job("compile", TARGET.name, file, candidate, known)
        started = time.perf_counter()
        ((_, ending),) = isolation.run([(None, job)], LIMITS, warm=warm)
        seconds = time.perf_counter() - started
        if candidate.proof is Proof.CODE and ending.evidence and ending.evidence.program:
            stored = isolation.folder / "ir" / ending.evidence.program.ir
            stored.parent.mkdir(exist_ok=True)
            evidence = ending.evidence
            stored.write_text(
                json.dumps({"program": _plain(evidence.program), "resources": _plain(evidence.resources)})
            )
        return seconds, ending.evidence.compile_seconds if ending.evidence else 0.0

    return ask


def _plain(value: object) -> object:
    return msgspec.to_builtins(value)


def median(values: list[float]) -> float:
    return statistics.median(values)


def measure(repeats: int) -> list[tuple[str, str]]:
    """Return the rows of the table: subject and figure."""
    probe = probe_file.read_probe(PROBE, TARGET.name)
    with Isolation(jobs=1) as isolation:
        ending = isolation.ask(Job("inspect", TARGET.name, KernelFile(str(KERNEL), "gemm_mxfp4")), LIMITS)
        assert ending.evidence and ending.evidence.inspection
        description = describe(ending.evidence.inspection, TARGET, probe, Overrides())
        baseline = description.candidate({})
        assert isolation.warm("warm", Job("compile", TARGET.name, KernelFile(str(KERNEL), "gemm_mxfp4"), baseline))
        ways = {"fresh": fresh, "cold": forked(isolation, None), "warm": forked(isolation, "warm")}
        wall: dict[tuple[str, str], list[float]] = {}
        overhead: list[float] = []
        for _ in range(repeats):
            for kind, moves in (("passing", PASSING), ("failing", FAILING)):
                for move in moves:
                    for way, ask in ways.items():
                        seconds, compiled = ask(description.candidate(move))
                        wall.setdefault((kind, way), []).append(seconds)
                        if way == "warm" and compiled:
                            overhead.append(seconds - compiled)
        code = [ways["warm"](description.candidate(move))[0] for _ in range(repeats) for move in PASSING]
        by_ir = [_by_ir(description.candidate(move)) for move in PASSING]
        early = [ways["warm"](candidate)[0] for _ in range(repeats) for candidate in by_ir]
    rows = [("overhead of a candidate: wall - compile, median", f"{1000 * median(overhead):.1f} ms")]
    for kind in ("passing", "failing"):
        base = median(wall[kind, "fresh"])
        for way in ("cold", "warm"):
            ratio = base / median(wall[kind, way])
            rows.append(
                (f"{kind} candidates: fork of the {way} server against a fresh interpreter", f"{ratio:.1f} times")
            )
    rows.append(
        (
            "passing candidates whose LLVM IR is known, against code generation",
            f"{median(code) / median(early):.1f} times",
        )
    )
    return rows


def _by_ir(candidate: Candidate) -> Candidate:
    return msgspec.structs.replace(candidate, proof=Proof.IR)


def commands(repeats: int) -> list[tuple[str, str]]:
    """Return the rows for whole commands: the help text and a repeated run."""
    gluonmap = [sys.executable, "-m", "gluonmap"]
    with tempfile.TemporaryDirectory() as folder:
        probe = [*gluonmap, "probe", str(KERNEL), "--target", "gfx950", "--out", folder, "--quiet", "--jobs", "2"]

        def seconds(command: list[str]) -> float:
            started = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True, cwd=REPOSITORY)
            return time.perf_counter() - started

        first = seconds(probe)
        again = median([seconds(probe) for _ in range(repeats)])
        help_text = median([seconds([*gluonmap, "--help"]) for _ in range(repeats)])
        python = median([seconds([sys.executable, "-c", "pass"]) for _ in range(repeats)])
    return [
        ("gluonmap --help", f"{help_text:.3f} s ({help_text / python:.1f} times an empty Python)"),
        ("the whole probe of the mxfp4 kernel, first run", f"{first:.1f} s"),
        ("the same again, nothing asked", f"{again:.2f} s ({first / again:.0f} times less)"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    version = installation.triton_version(installation.triton_folder())
    rows = measure(options.repeats) + commands(options.repeats)
    table = "\n".join(["| what | figure |", "| --- | --- |", *(f"| {what} | {figure} |" for what, figure in rows)])
    torch = "torch installed" if importlib.util.find_spec("torch") else "no torch"
    cores = len(os.sched_getaffinity(0))
    head = (
        f"`python benchmarks/overhead.py --repeats {options.repeats}`: Triton {version}, Python "
        f"{platform.python_version()}, {cores} cores, no GPU, {torch}; bundled mxfp4 kernel on gfx950.\n"
    )
    text = f"{head}\n{table}\n"
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
