"""What to ask about kernels/hopper/gemm_fp16.py."""

KERNEL = "gemm_fp16"

KNOBS = {
    "BLOCK_M": [64, 128, 256],
    "BLOCK_N": [64, 128, 256, 512],
    "BLOCK_K": [16, 32, 64, 128, 256],
    "STAGES": [1, 2, 3, 4, 5],
    "GROUP_M": [1, 4, 8, 16],
    "num_warps": [2, 4, 8, 16],
}
BASELINE = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "STAGES": 4, "GROUP_M": 8, "num_warps": 8}

ARGS = {
    "a_desc": "tensordesc<fp16[BLOCK_M, BLOCK_K]>",
    "b_desc": "tensordesc<fp16[BLOCK_N, BLOCK_K]>",
    "c_ptr": "*fp16",
}
SHAPES = {
    "prefill": {"M": 4096, "N": 4096, "K": 4096},
    "decode": {"M": 16, "N": 4096, "K": 4096},
    "ragged": {"M": 1000, "N": 777, "K": 520},
}
DERIVE = {"stride_cm": "N"}
GRID = "(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1)"
TARGETS = {"sm_90": {}}


def inputs(shape, config, device, seed):
    """Return a: (M, K) and b: (N, K), fp16, with c: (M, N) poisoned."""
    import torch

    M, N, K = shape["M"], shape["N"], shape["K"]
    rng = torch.Generator(device="cpu").manual_seed(seed)
    return {
        "a_desc": torch.randn((M, K), generator=rng).to(device, torch.float16),
        "b_desc": torch.randn((N, K), generator=rng).to(device, torch.float16),
        "c_ptr": torch.full((M, N), float("nan"), device=device, dtype=torch.float16),
        "M": M,
        "N": N,
        "K": K,
        "stride_cm": N,
    }


def reference(inputs, shape):
    """Return c in float32, from the fp16 values that the kernel saw."""
    return {"c_ptr": inputs["a_desc"].float() @ inputs["b_desc"].float().T}


TOLERANCE = {"c_ptr": 1e-3}
