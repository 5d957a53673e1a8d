"""What to ask about kernels/cdna3/gemm_bf16.py (gfx942) and kernels/cdna4/gemm_bf16.py (gfx950)."""

KERNEL = "gemm_bf16"

KNOBS = {
    "BLOCK_M": [32, 64, 128, 256, 512],
    "BLOCK_N": [32, 64, 128, 256, 512],
    "BLOCK_K": [16, 32, 64, 128],  # 16 only with NONKDIM = 32
    "GROUP_M": [1, 4, 8, 16],
    "NUM_BUFFERS": [1, 2, 3, 4],
    "NONKDIM": [8, 16, 32],
    "num_warps": [1, 2, 4, 8, 16, 32],
    "waves_per_eu": [0, 1, 2, 4],
}
BASELINE = {
    "BLOCK_M": 128,
    "BLOCK_N": 128,
    "BLOCK_K": 64,
    "GROUP_M": 8,
    "NUM_BUFFERS": 2,
    "NONKDIM": 16,
    "num_warps": 4,
    "waves_per_eu": 0,
}

ARGS = {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16", "stride_ak": 1, "stride_bk": 1, "stride_cn": 1}
SHAPES = {
    "prefill": {"M": 4096, "N": 4096, "K": 4096},
    "decode": {"M": 16, "N": 4096, "K": 4096},
    "ragged": {"M": 1000, "N": 777, "K": 528},
}
# EVEN_K is a parameter of the gfx950 kernel only.
DERIVE = {"stride_am": "K", "stride_bn": "K", "stride_cm": "N", "EVEN_K": "K % BLOCK_K == 0"}
GRID = "(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1)"
# A lane has 512 registers: accumulators beyond that spill by the thousand, and compile for minutes.
RESTRICT = ["BLOCK_M * BLOCK_N <= 512 * 64 * num_warps"]
TARGETS = {
    "gfx942": {},
    # 160 KiB of LDS: the ring may be deeper before it is over the budget.
    "gfx950": {"BASELINE": {"NUM_BUFFERS": 3}, "KNOBS": {"NUM_BUFFERS": [1, 2, 3, 4, 6]}},
}


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
