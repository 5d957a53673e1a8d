"""Measure the effect of `tl.assume(stride > 0)` on AMD: buffer operations and instructions of one GEMM.

    python benchmarks/assumes.py

Compiles only. Triton before 3.6 also wants AMDGCN_USE_BUFFER_OPS=1 and ROCm's ld.lld (TRITON_HIP_LLD_PATH).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

STRIDES = ["stride_am", "stride_ak", "stride_bk", "stride_bn", "stride_cm", "stride_cn"]
CONTIGUOUS = ["stride_ak", "stride_bk", "stride_cn"]
BLOCKS = {"BM": 128, "BN": 128, "BK": 64, "GM": 4}
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
         BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr):
    {assumes}
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    first = pid // (GM * num_n) * GM
    rows = min(num_m - first, GM)
    pid_m = first + (pid % (GM * num_n)) % rows
    pid_n = (pid % (GM * num_n)) // rows
    tl.assume(pid_m >= 0)
    tl.assume(pid_n >= 0)
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    out_m = pid_m * BM + tl.arange(0, BM)
    out_n = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + out_m[:, None] * stride_cm + out_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(tl.bfloat16), mask=(out_m[:, None] < M) & (out_n[None, :] < N))
"""


def main() -> None:
    """Print a line for each target and set of strides."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"Triton {triton.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for arch in ("gfx942", "gfx950"):
            for label, assumed in (
                ("none", []),
                ("all", STRIDES),
                ("all but stride_cm", [name for name in STRIDES if name != "stride_cm"]),
                ("all but stride_am", [name for name in STRIDES if name != "stride_am"]),
            ):
                print(f"{arch}  assumed positive: {label:<18}", compiled(Path(folder), assumed, arch))


def compiled(folder: Path, assumed: list[str], arch: str) -> str:
    """Compile the kernel; return the numbers of its buffer loads and stores, and a digest of its instructions."""
    names = ["a_ptr", "b_ptr", "c_ptr", "M", "N", "K", *STRIDES, *BLOCKS]
    constants: dict[str, Any] = {**BLOCKS, **dict.fromkeys(CONTIGUOUS, 1)}
    kinds = {n: "*bf16" if n.endswith("_ptr") else "constexpr" if n in constants else "i32" for n in names}
    # The launcher marks what is below 2 GiB with a range of 32 bits.
    marks = {n: [["tt.divisibility", 16], *([["tt.pointer_range", 32]] if n.endswith("_ptr") else [])] for n in names}
    attributes = {(i,): marks[n] for i, n in enumerate(names) if n not in constants}
    source = ASTSource(_loaded(folder, assumed).gemm, kinds, constants, attributes)
    options = {"num_warps": 8, "num_stages": 2}
    text = triton.compile(source, target=GPUTarget("hip", arch, 64), options=options).asm["amdgcn"]
    count = {
        what: len(re.findall(what, text)) for what in ("buffer_load", "buffer_store", "global_load", "global_store")
    }
    lines = (line.split(";")[0].strip() for line in text.split("gemm:", 1)[1].split("s_endpgm")[0].splitlines())
    code = "\n".join(line for line in lines if line and not line.startswith("."))
    loads, stores = count["buffer_load"] + count["global_load"], count["buffer_store"] + count["global_store"]
    return (
        f"{count['buffer_load']} of {loads} loads, {count['buffer_store']} of {stores} stores, instructions "
        f"{hashlib.sha256(code.encode()).hexdigest()[:8]}"
    )


def _loaded(folder: Path, assumed: list[str]) -> ModuleType:
    assumes = "\n    ".join(f"tl.assume({name} > 0)" for name in assumed) or "pass"
    path = folder / f"gemm_{len(assumed)}_{hashlib.sha256(assumes.encode()).hexdigest()[:8]}.py"
    path.write_text(KERNEL.format(assumes=assumes))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
