"""What to ask about kernels/cdna3/gemm_xcd.py (gfx942) and kernels/cdna4/gemm_xcd.py (gfx950)."""

KERNEL = "gemm_xcd"

KNOBS = {
    "BLOCK_M": [32, 64, 128, 256],
    "BLOCK_N": [32, 64, 128, 256],
    "BLOCK_K": [16, 32, 64, 128, 256],
    "NUM_XCDS": [1, 4, 6, 8],
    "GROUP_M": [1, 4, 8, 16],
    # What loads and stores accept, and one that is for the other.
    "CACHE_A": [None, ".ca", ".cg", ".cs", ".cv", ".wt"],
    "CACHE_B": [None, ".ca", ".cg", ".cs", ".cv", ".wt"],
    "CACHE_C": [None, ".wb", ".cg", ".cs", ".wt", ".cv"],
    "num_warps": [1, 2, 4, 8, 16, 32],
    "waves_per_eu": [0, 1, 2, 4],
}
BASELINE = {
    "BLOCK_M": 128,
    "BLOCK_N": 128,
    "BLOCK_K": 64,
    "NUM_XCDS": 8,
    "GROUP_M": 4,
    "CACHE_A": None,
    "CACHE_B": None,
    "CACHE_C": None,
    "num_warps": 4,
    "waves_per_eu": 0,
}

ARGS = {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16", "stride_ak": 1, "stride_bk": 1, "stride_cn": 1}
SHAPES = {
    "prefill": {"M": 4096, "N": 4096, "K": 4096},
    "decode": {"M": 16, "N": 4096, "K": 4096},
    "ragged": {"M": 1000, "N": 777, "K": 528},
}
DERIVE = {"stride_am": "K", "stride_bn": "K", "stride_cm": "N"}
GRID = "(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1)"
# A lane has 512 registers: accumulators beyond that spill by the thousand, and compile for minutes.
RESTRICT = ["BLOCK_M * BLOCK_N <= 512 * 64 * num_warps"]
TARGETS = {"gfx942": {}, "gfx950": {}}


def inputs(shape, config, device, seed):
    """Return a: (M, K) and b: (N, K), bf16, with c: (M, N) poisoned."""
    import torch

    M, N, K = shape["M"], shape["N"], shape["K"]
    rng = torch.Generator(device="cpu").manual_seed(seed)
    return {
        "a_ptr": torch.randn((M, K), generator=rng).to(device, torch.bfloat16),
        "b_ptr": torch.randn((N, K), generator=rng).to(device, torch.bfloat16),
        "c_ptr": torch.full((M, N), float("nan"), device=device, dtype=torch.bfloat16),
        "M": M,
        "N": N,
        "K": K,
        "stride_am": K,
        "stride_ak": 1,
        "stride_bn": K,
        "stride_bk": 1,
        "stride_cm": N,
        "stride_cn": 1,
    }


def reference(inputs, shape):
    """Return c in float32, from the bf16 values that the kernel saw."""
    return {"c_ptr": inputs["a_ptr"].float() @ inputs["b_ptr"].float().T}


TOLERANCE = {"c_ptr": 1e-2}
