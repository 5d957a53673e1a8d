"""What to ask about kernels/splitk_reduce.py."""

KERNEL = "splitk_reduce"

KNOBS = {
    "BLOCK_M": [1, 2, 4, 8, 16],
    "BLOCK_N": [256, 512, 768, 1024, 2048, 4096],
    "VEC": [1, 2, 3, 4, 8, 16],
    "num_warps": [1, 2, 4, 8, 16, 32],
}
BASELINE = {"BLOCK_M": 1, "BLOCK_N": 1024, "VEC": 4, "num_warps": 4}

# NUM_KSPLIT is the GEMM's choice.
ARGS = {"x_ptr": "*fp32", "y_ptr": "*bf16", "NUM_KSPLIT": 8, "WARP_SIZE": 64}
SHAPES = {
    "decode": {"M": 16, "N": 4096},
    "prefill": {"M": 256, "N": 4096},
    "ragged": {"M": 101, "N": 777},
}
DERIVE = {"stride_xk": "M * N", "stride_xm": "N", "stride_ym": "N"}
GRID = "(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1)"
# The loads of all shares are under way together: beyond 32 elements a lane they spill.
RESTRICT = ["BLOCK_M * BLOCK_N <= 32 * WARP_SIZE * num_warps"]
TARGETS = {
    "gfx942": {},
    "gfx950": {},
    "gfx1250": {"ARGS": {"WARP_SIZE": 32}},
    "sm_90": {"ARGS": {"WARP_SIZE": 32}},
    "sm_100": {"ARGS": {"WARP_SIZE": 32}},
}


def inputs(shape, config, device, seed):
    """Return x: (NUM_KSPLIT, M, N) fp32 with y: (M, N) bf16 poisoned."""
    import torch

    M, N = shape["M"], shape["N"]
    rng = torch.Generator(device="cpu").manual_seed(seed)
    return {
        "x_ptr": torch.randn((config["NUM_KSPLIT"], M, N), generator=rng).to(device),
        "y_ptr": torch.full((M, N), float("nan"), device=device, dtype=torch.bfloat16),
        "M": M,
        "N": N,
        "stride_xk": M * N,
        "stride_xm": N,
        "stride_ym": N,
    }


def reference(inputs, shape):
    """Return y in float32."""
    return {"y_ptr": inputs["x_ptr"].sum(dim=0)}


TOLERANCE = {"y_ptr": 1e-2}
