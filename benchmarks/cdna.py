"""Measure the cost of executing machine code: a GEMM's work-groups, with and without the sanitizer, and their compile.

    python benchmarks/cdna.py [--repeats 15] [--out benchmarks/cdna.md]

Processor time of this process, least and median of the repeats, on one thread: other work on the machine shows in the
wall time and little in this. Triton is needed; no GPU.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import platform
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "cdna")]

from compiling import bundled, compiled  # noqa: E402

from gluonmap import cdna  # noqa: E402


@dataclass(frozen=True)
class Work:
    """A kernel with its launch."""

    name: str
    target: str
    kernel: Any
    types: dict[str, Any]
    config: dict[str, Any]
    grid: tuple[int, ...]
    arguments: dict[str, Any]


def gemm(target: str, tile: int, waves: tuple[int, int]) -> Work:
    """Return the work of one work-group of an fp16 GEMM, `tile` in all three directions."""
    import gluon_kernels

    numbers = {"M": tile, "N": tile, "K": tile, "stride_a": tile, "stride_b": tile, "stride_c": tile}
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (tile, tile)).astype(np.float16) for _ in range(2))
    return Work(
        f"fp16 GEMM, {tile} x {tile} x {tile}, {waves[0] * waves[1]} warps, one work-group",
        target,
        gluon_kernels.gemm,
        {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", **numbers},
        {"BLOCK_M": tile, "BLOCK_N": tile, "BLOCK_K": 64, "VERSION": 3 if target == "gfx942" else 4, "NONKDIM": 32}
        | {"INSTR_K": 8 if target == "gfx942" else 16, "K_WIDTH": 4 if target == "gfx942" else 8}
        | {"WAVES_M": waves[0], "WAVES_N": waves[1], "TRANSPOSED": True, "num_warps": waves[0] * waves[1]},
        (1, 1),
        {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((tile, tile), np.float32), **numbers},
    )


def bundled_gemm(target: str) -> Work:
    """Return the work of the bundled bf16 GEMM at its baseline, on a ragged problem of 4 work-groups."""
    M, N, K = 200, 136, 208
    numbers = {"M": M, "N": N, "K": K, "stride_am": K, "stride_ak": 1, "stride_bn": K, "stride_bk": 1}
    numbers |= {"stride_cm": N, "stride_cn": 1}
    rng = np.random.default_rng(0)
    a, b = (cdna.encode(rng.standard_normal(shape), "bf16") for shape in ((M, K), (N, K)))
    config = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "NONKDIM": 16, "num_warps": 4}
    config |= {"NUM_BUFFERS": 2} if target == "gfx942" else {"NUM_BUFFERS": 3, "EVEN_K": False}
    folder = "cdna3" if target == "gfx942" else "cdna4"
    return Work(
        f"kernels/{folder}/gemm_bf16.py, baseline, {M} x {N} x {K}, 4 work-groups of 4 warps",
        target,
        bundled(f"{folder}/gemm_bf16").gemm_bf16,
        {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16", **numbers},
        config,
        (4,),
        {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((M, N), np.uint16), **numbers},
    )


def milliseconds(action: Any, repeats: int) -> list[float]:
    """Return the processor time of each repeat without the first."""
    times = []
    for _ in range(repeats + 1):
        started = time.process_time()
        action()
        times.append(1e3 * (time.process_time() - started))
    return times[1:]


def row(work: Work, repeats: int) -> str:
    """Return one line of the table."""
    started = time.process_time()
    code = compiled(work.kernel, work.target, work.types, work.config)
    compile_ms = 1e3 * (time.process_time() - started)
    started = time.process_time()
    kernel = cdna.prepare(code)
    kernel.generated(False)
    prepare_ms = 1e3 * (time.process_time() - started)
    kernel.generated(True)

    def launch(**how: Any) -> Any:
        return cdna.run(kernel, work.grid, work.arguments, **how)

    plain = milliseconds(launch, repeats)
    watched = milliseconds(lambda: launch(sanitize=True), repeats)
    least, median = min(plain), statistics.median(plain)
    ratio = statistics.median(watched) / median
    return (
        f"| {work.name} | {work.target} | {launch().executed} | {least:.1f} ms | {median:.1f} ms | {ratio:.1f} times | "
        f"{prepare_ms:.0f} ms | {compile_ms:.0f} ms |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    import triton

    works = [
        work
        for target in ("gfx942", "gfx950")
        for work in (gemm(target, 64, (2, 2)), gemm(target, 256, (4, 2)), bundled_gemm(target))
    ]
    # The first compile of a target pays for imports.
    for work in (gemm("gfx942", 32, (1, 1)), gemm("gfx950", 32, (1, 1))):
        compiled(work.kernel, work.target, work.types, work.config | {"BLOCK_K": 32})
    lines = [
        f"`python benchmarks/cdna.py --repeats {chosen.repeats}`: Triton {triton.__version__}, Python "
        f"{platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores, one thread, no GPU. "
        "Times are processor times. An instruction counts once for all waves that execute it together.",
        "",
        "| what | target | instructions | least | median | sanitizer | parse and generate | compile |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(row(work, chosen.repeats) for work in works),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if chosen.out:
        head = "# Executing machine code\n\nThe cost of `gluonmap.cdna`, next to the compile that it follows.\n\n"
        # The sections below the table come from other measurements, so keep them.
        _, mark, rest = (chosen.out.read_text() if chosen.out.exists() else "").partition("\n## ")
        chosen.out.write_text(head + text + mark + rest)


if __name__ == "__main__":
    main()
