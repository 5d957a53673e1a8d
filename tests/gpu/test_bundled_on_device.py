"""The bundled kernels against their references on a GPU of capability 9.0, through the probe files' own inputs.

Run from the repository root: `python -m pytest tests/gpu -m gpu`. As a script,
`python tests/gpu/test_bundled_on_device.py` prints every error and the GEMM's speed beside torch.matmul.
"""

import importlib.util
import itertools
import sys
from pathlib import Path

import pytest
from device_needed import missing

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[2]
GEMM = "hopper/gemm_fp16"
RMSNORM = "rmsnorm"

GEMM_SHAPES = [
    (128, 256, 64),  # one tile
    (512, 768, 1024),
    (16, 512, 256),  # fewer rows than a tile
    (1000, 777, 520),  # ragged on all sides
    (129, 257, 72),  # one more than a tile; K needs a second tile of 8 columns
    (1, 8, 8),
]
GEMM_MOVES = [
    {},
    {"STAGES": 1},
    {"STAGES": 2},
    {"STAGES": 3},
    {"GROUP_M": 1},
    {"GROUP_M": 16},
    {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4},
    {"BLOCK_M": 64},  # two warp groups along N
    {"BLOCK_N": 128, "num_warps": 4},
    {"BLOCK_M": 256, "BLOCK_N": 128, "STAGES": 3},
    {"BLOCK_K": 16},
    {"BLOCK_K": 32},
    {"BLOCK_K": 128, "STAGES": 2},
    {"num_warps": 16},  # two warp groups along M, two along N
]
RMSNORM_SHAPES = [(1, 1), (7, 33), (64, 1024), (1001, 1337), (300, 8192)]
RMSNORM_MOVES = [
    {},
    {"BLOCK_N": 256},
    {"BLOCK_N": 4096, "num_warps": 8},
    {"ROWS_PER_PROGRAM": 4},
    {"ROWS_PER_PROGRAM": 8, "num_warps": 2},
    {"VEC": 1},
    {"VEC": 16, "BLOCK_N": 512},
    {"num_warps": 1},
    {"num_warps": 16},
    {"NUM_PROGRAMS": 3},  # every program has many blocks of rows
]


def load_file(kind, path):
    """Return the module of `kernels/<path>.py` or `probes/<path>.py`, under a name that no other module has."""
    name = f"bundled_{kind}_{path.replace('/', '_')}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / kind / f"{path}.py")
        module = importlib.util.module_from_spec(spec)
        # Triton looks its jit functions' module up by name.
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="module")
def device():
    reason = missing()
    if reason:
        pytest.skip(reason)
    return "cuda"


def run_gemm(shape, move, device, seed):
    """Return (error, tolerance) of one launch; the error is ||c - reference|| / ||reference||."""
    kernel, probe = load_file("kernels", GEMM), load_file("probes", GEMM)
    config = {**probe.BASELINE, **move}
    shape = dict(zip("MNK", shape, strict=True))
    given = probe.inputs(shape, config, device, seed)
    kernel.matmul(given["a_desc"], given["b_desc"], given["c_ptr"], **config)
    return relative_error(given, probe, shape, "c_ptr")


def run_rmsnorm(shape, move, device, seed):
    """Return (error, tolerance) of one launch; the error is ||y - reference|| / ||reference||."""
    kernel, probe = load_file("kernels", RMSNORM), load_file("probes", RMSNORM)
    config = {**probe.BASELINE, **move}
    shape = dict(zip("MN", shape, strict=True))
    given = probe.inputs(shape, config, device, seed)
    kernel.normalize(given["x_ptr"], given["w_ptr"], given["y_ptr"], eps=given["eps"], **config)
    return relative_error(given, probe, shape, "y_ptr")


def relative_error(given, probe, shape, output):
    import torch

    # TF32 would round the reference to 10 bits, the precision that is being judged.
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        wanted = probe.reference(given, shape)[output]
    finally:
        torch.set_float32_matmul_precision(before)
    error = (given[output].float() - wanted).norm() / wanted.norm()
    return error.item(), probe.TOLERANCE[output]


def label(value):
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return " ".join(f"{knob}={setting}" for knob, setting in value.items()) or "baseline"


# A NaN left in the poisoned output makes the error NaN, and NaN is not below any tolerance.
@pytest.mark.parametrize("move", GEMM_MOVES, ids=label)
@pytest.mark.parametrize("shape", GEMM_SHAPES, ids=label)
def test_hopper_gemm_agrees_with_its_reference(device, shape, move):
    for seed in (0, 1):
        error, tolerance = run_gemm(shape, move, device, seed)
        assert error < tolerance


@pytest.mark.parametrize("move", RMSNORM_MOVES, ids=label)
@pytest.mark.parametrize("shape", RMSNORM_SHAPES, ids=label)
def test_rmsnorm_agrees_with_its_reference(device, shape, move):
    for seed in (0, 1):
        error, tolerance = run_rmsnorm(shape, move, device, seed)
        assert error < tolerance


def test_hopper_gemm_gives_the_same_bits_ten_times(device):
    """A race between a refill and a matrix instruction would show as bits that change from launch to launch."""
    import torch

    kernel, probe = load_file("kernels", GEMM), load_file("probes", GEMM)
    given = probe.inputs({"M": 2048, "N": 2048, "K": 2048}, probe.BASELINE, device, 0)
    first = kernel.matmul(given["a_desc"], given["b_desc"], **probe.BASELINE)
    for _ in range(10):
        assert torch.equal(first, kernel.matmul(given["a_desc"], given["b_desc"], **probe.BASELINE))


def main():
    reason = missing()
    if reason:
        print(f"nothing to run: {reason}")
        return 1
    import torch
    import triton

    print(f"triton {triton.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
    bad = 0
    for name, run, shapes, moves in (
        (GEMM, run_gemm, GEMM_SHAPES, GEMM_MOVES),
        (RMSNORM, run_rmsnorm, RMSNORM_SHAPES, RMSNORM_MOVES),
    ):
        for shape, move in itertools.product(shapes, moves):
            error, tolerance = run(shape, move, "cuda", 2)
            wrong = not error < tolerance
            bad += wrong
            print(f"{'WRONG' if wrong else 'right'}  {name}  {label(shape)}  {label(move)}  error {error:.2e}")

    kernel, probe = load_file("kernels", GEMM), load_file("probes", GEMM)
    size = 4096
    flop = 2 * size**3
    given = probe.inputs({"M": size, "N": size, "K": size}, probe.BASELINE, "cuda", 0)
    a, b, c = given["a_desc"], given["b_desc"], given["c_ptr"]
    candidates = [
        {},
        {"STAGES": 3},
        {"GROUP_M": 4},
        {"GROUP_M": 16},
        {"BLOCK_M": 256, "BLOCK_N": 128},
        {"BLOCK_N": 128, "STAGES": 4, "num_warps": 4},
        {"BLOCK_K": 128, "STAGES": 2},
    ]
    torch_ms = triton.testing.do_bench(lambda: torch.matmul(a, b.T), warmup=200, rep=500)
    print(f"torch.matmul {size}^3 fp16: {flop / torch_ms * 1e-9:.0f} TFLOP/s")
    for move in candidates:
        config = {**probe.BASELINE, **move}
        # do_bench times the GPU's own clock between events; the host's work per launch hides behind 0.2 ms of GEMM.
        ms = triton.testing.do_bench(lambda: kernel.matmul(a, b, c, **config), warmup=200, rep=500)  # noqa: B023
        print(f"{label(move)}: {flop / ms * 1e-9:.0f} TFLOP/s, {torch_ms / ms:.1%} of torch.matmul")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
