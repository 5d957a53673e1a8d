"""What to ask about kernels/cdna3/gemm_fp8_blockscale.py (gfx942) and kernels/cdna4/gemm_fp8_blockscale.py (gfx950)."""

KERNEL = "gemm_fp8_blockscale"

KNOBS = {
    "BLOCK_M": [16, 32, 64, 128, 256],
    "BLOCK_N": [16, 32, 64, 128, 256],
    "BLOCK_K": [16, 32, 64, 128, 256],  # 16 only with NONKDIM = 32; 256 has two scales a row
    "GROUP_M": [1, 4, 8, 16],
    "NUM_BUFFERS": [1, 2, 3, 4],
    "NONKDIM": [8, 16, 32],
    "num_warps": [1, 2, 4, 8, 16, 32],
    "waves_per_eu": [0, 1, 2, 4],
}
BASELINE = {
    "BLOCK_M": 128,
    "BLOCK_N": 128,
    "BLOCK_K": 128,
    "GROUP_M": 8,
    "NUM_BUFFERS": 1,
    "NONKDIM": 16,
    "num_warps": 4,
    "waves_per_eu": 0,
}

# The scales of a with M contiguous: those of 16 neighbouring rows are one line of memory.
ARGS = {
    "a_ptr": "*fp8e4b8",
    "b_ptr": "*fp8e4b8",
    "c_ptr": "*bf16",
    "a_scale_ptr": "*fp32",
    "b_scale_ptr": "*fp32",
    "stride_ak": 1,
    "stride_bk": 1,
    "stride_cn": 1,
    "stride_asm": 1,
    "stride_bsk": 1,
}
SHAPES = {
    "prefill": {"M": 4096, "N": 4096, "K": 4096},
    "decode": {"M": 16, "N": 4096, "K": 4096},
    "ragged": {"M": 1000, "N": 777, "K": 720},
}
DERIVE = {
    "stride_am": "K",
    "stride_bn": "K",
    "stride_cm": "N",
    "stride_ask": "M",
    "stride_bsn": "cdiv(K, 128)",
    "EVEN_K": "K % BLOCK_K == 0",
}
GRID = "(cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1)"
TARGETS = {
    "gfx942": {},
    # 160 KiB of LDS: the ring may be deeper. LANE_K, the values of K that a lane gives one instruction, is a parameter
    # of the gfx950 kernel only.
    "gfx950": {
        "ARGS": {"a_ptr": "*fp8e4nv", "b_ptr": "*fp8e4nv"},
        "BASELINE": {"NUM_BUFFERS": 3, "LANE_K": 32},
        "KNOBS": {"NUM_BUFFERS": [1, 2, 3, 4, 6], "LANE_K": [8, 16, 32]},
    },
}


def inputs(shape, config, device, seed):
    """Return fp8 a: (M, K) and b: (N, K) with their scales, and c: (M, N) bf16 poisoned.

    Scales are spread over 2**-3 .. 2**3, each row and block its own: a wrong one shows.
    """
    import torch

    M, N, K = shape["M"], shape["N"], shape["K"]
    blocks_n, blocks_k = -(-N // 128), -(-K // 128)
    fp8 = torch.float8_e4m3fn if "LANE_K" in config else torch.float8_e4m3fnuz
    rng = torch.Generator(device="cpu").manual_seed(seed)

    def scales(*size):
        return torch.exp2(6 * torch.rand(size, generator=rng) - 3).to(device)

    return {
        "a_ptr": torch.randn((M, K), generator=rng).to(device, fp8),
        "b_ptr": torch.randn((N, K), generator=rng).to(device, fp8),
        "c_ptr": torch.full((M, N), float("nan"), device=device, dtype=torch.bfloat16),
        "a_scale_ptr": scales(blocks_k, M).T,
        "b_scale_ptr": scales(blocks_n, blocks_k),
        "M": M,
        "N": N,
        "K": K,
        "stride_am": K,
        "stride_ak": 1,
        "stride_bn": K,
        "stride_bk": 1,
        "stride_cm": N,
        "stride_cn": 1,
        "stride_asm": 1,
        "stride_ask": M,
        "stride_bsn": blocks_k,
        "stride_bsk": 1,
    }


def reference(inputs, shape):
    """Return c in float32, from the fp8 values and the scales that the kernel saw."""
    N, K = shape["N"], shape["K"]
    a_scale = inputs["a_scale_ptr"].repeat_interleave(128, dim=1)[:, :K]
    b_scale = inputs["b_scale_ptr"].repeat_interleave(128, dim=0)[:N].repeat_interleave(128, dim=1)[:, :K]
    return {"c_ptr": (inputs["a_ptr"].float() * a_scale) @ (inputs["b_ptr"].float() * b_scale).T}


TOLERANCE = {"c_ptr": 1e-2}
