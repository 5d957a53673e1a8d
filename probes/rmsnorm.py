"""What to ask about kernels/rmsnorm.py."""

KERNEL = "rmsnorm"

KNOBS = {
    "BLOCK_N": [256, 512, 768, 1024, 2048, 4096, 8192],
    "ROWS_PER_PROGRAM": [1, 2, 4, 8, 2048],  # 2048 rows pass the limit of 2**20 elements in a tensor
    "VEC": [1, 2, 3, 4, 8, 16],
    "num_warps": [1, 2, 4, 8, 16, 32],
    "NUM_PROGRAMS": [256, 1024, 4096],  # only the grid reads it
}
BASELINE = {"BLOCK_N": 1024, "ROWS_PER_PROGRAM": 1, "VEC": 8, "num_warps": 4, "NUM_PROGRAMS": 1024}

ARGS = {"x_ptr": "*bf16", "w_ptr": "*bf16", "y_ptr": "*bf16", "eps": 1e-6, "WARP_SIZE": 64}
SHAPES = {
    "prefill": {"M": 4096, "N": 4096},
    "decode": {"M": 16, "N": 4096},
    "ragged": {"M": 1001, "N": 1337},
}
DERIVE = {"stride_xm": "N", "stride_ym": "N"}
GRID = "(min(NUM_PROGRAMS, cdiv(M, ROWS_PER_PROGRAM)), 1, 1)"
# Beyond 256 elements a lane the tile spills, and compiles for minutes.
RESTRICT = ["BLOCK_N * ROWS_PER_PROGRAM <= 256 * WARP_SIZE * num_warps"]
TARGETS = {
    "gfx942": {},
    "gfx950": {},
    "gfx1250": {"ARGS": {"WARP_SIZE": 32}},
    "sm_90": {"ARGS": {"WARP_SIZE": 32}},
    "sm_100": {"ARGS": {"WARP_SIZE": 32}},
}


def inputs(shape, config, device, seed):
    """Return x: (M, N) and w: (N,), bf16, with y: (M, N) poisoned. Rows differ in size: a wrong scale shows."""
    import torch

    M, N = shape["M"], shape["N"]
    rng = torch.Generator(device="cpu").manual_seed(seed)
    size = torch.exp2(torch.randint(-4, 5, (M, 1), generator=rng).float())
    return {
        "x_ptr": (torch.randn((M, N), generator=rng) * size).to(device, torch.bfloat16),
        "w_ptr": torch.randn((N,), generator=rng).to(device, torch.bfloat16),
        "y_ptr": torch.full((M, N), float("nan"), device=device, dtype=torch.bfloat16),
        "M": M,
        "N": N,
        "stride_xm": N,
        "stride_ym": N,
        "eps": ARGS["eps"],
    }


def reference(inputs, shape):
    """Return y in float32, from the bf16 values that the kernel saw."""
    x = inputs["x_ptr"].float()
    scale = (x.square().mean(dim=1, keepdim=True) + inputs["eps"]).rsqrt()
    return {"y_ptr": x * scale * inputs["w_ptr"].float()}


TOLERANCE = {"y_ptr": 1e-2}
