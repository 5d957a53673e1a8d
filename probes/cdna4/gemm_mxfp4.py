"""What to ask about kernels/cdna4/gemm_mxfp4.py."""

KERNEL = "gemm_mxfp4"

KNOBS = {
    "BLOCK_SIZE_M": [64, 128, 256, 512],
    "BLOCK_SIZE_N": [64, 128, 256, 512],
    "BLOCK_SIZE_K": [128, 256, 512],
    "GROUP_SIZE_M": [1, 2, 4, 8],
    "NUM_KSPLIT": [1, 2, 4],
    "num_warps": [2, 4, 8, 16],
    "num_stages": [1, 2, 3, 4],
    "waves_per_eu": [0, 1, 2, 4],
    "matrix_instr_nonkdim": [16, 32],
    "kpack": [1, 2],  # a back-end option, not in the signature
    "cache_modifier": [None, ".cg", ".cv"],
}
BASELINE = {
    "BLOCK_SIZE_M": 256,
    "BLOCK_SIZE_N": 256,
    "BLOCK_SIZE_K": 256,
    "GROUP_SIZE_M": 2,
    "NUM_KSPLIT": 1,
    "num_warps": 8,
    "num_stages": 2,
    "waves_per_eu": 0,
    "matrix_instr_nonkdim": 32,
    "kpack": 1,
    "cache_modifier": None,
}

ARGS = {
    "a_ptr": "*u8",
    "b_ptr": "*u8",
    "c_ptr": "*bf16",
    "a_scales_ptr": "*u8",
    "b_scales_ptr": "*u8",
    "stride_ak": 1,
    "stride_bk": 1,
    "stride_cn": 1,
    "stride_ask": 1,
    "stride_bsk": 1,
}
SHAPES = {
    "prefill": {"M": 4096, "N": 4096, "K": 4096},
    "decode": {"M": 16, "N": 4096, "K": 4096},
    "ragged": {"M": 300, "N": 1040, "K": 1184},
}
DERIVE = {
    # Rounded up to whole tiles, or two splits would read the same tile.
    "SPLITK_BLOCK_SIZE": "cdiv(K, NUM_KSPLIT * BLOCK_SIZE_K) * BLOCK_SIZE_K",
    "stride_am": "K // 2",
    "stride_bn": "K // 2",
    "stride_ck": "M * N",
    "stride_cm": "N",
    "stride_asm": "K // 32",
    "stride_bsn": "K // 32",
}
GRID = "(NUM_KSPLIT * cdiv(M, BLOCK_SIZE_M) * cdiv(N, BLOCK_SIZE_N), 1, 1)"
TARGETS = {"gfx950": {}}

# The sixteen values of e2m1, by code.
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def inputs(shape, config, device, seed):
    """Return packed a: (M, K // 2) and b: (K // 2, N) uint8 with their scales, and c: (NUM_KSPLIT, M, N) poisoned.

    The scales stay within 2**-3 .. 2**3, so that a wrong one shows and the sum does not overflow bf16.
    """
    import torch

    M, N, K = shape["M"], shape["N"], shape["K"]
    rng = torch.Generator(device="cpu").manual_seed(seed)

    def codes(low, high, size):
        return torch.randint(low, high, size, generator=rng, dtype=torch.uint8).to(device)

    # b is stored as (N, K // 2) and seen transposed, which keeps K contiguous.
    return {
        "a_ptr": codes(0, 256, (M, K // 2)),
        "b_ptr": codes(0, 256, (N, K // 2)).T,
        "c_ptr": torch.full((config["NUM_KSPLIT"], M, N), float("nan"), device=device, dtype=torch.bfloat16),
        "a_scales_ptr": codes(124, 131, (M, K // 32)),
        "b_scales_ptr": codes(124, 131, (N, K // 32)),
        "M": M,
        "N": N,
        "K": K,
        "stride_am": K // 2,
        "stride_ak": 1,
        "stride_bk": 1,
        "stride_bn": K // 2,
        "stride_ck": M * N,
        "stride_cm": N,
        "stride_cn": 1,
        "stride_asm": K // 32,
        "stride_ask": 1,
        "stride_bsn": K // 32,
        "stride_bsk": 1,
    }


def reference(inputs, shape):
    """Return c in float32: for one split the product; for more, each split's share of it."""
    import torch

    table = torch.tensor(E2M1, device=inputs["a_ptr"].device)

    def unpack(packed, scales):
        pairs = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(-2)
        return table[pairs.long()] * torch.exp2(scales.float() - 127).repeat_interleave(32, dim=-1)

    a = unpack(inputs["a_ptr"], inputs["a_scales_ptr"])
    b = unpack(inputs["b_ptr"].T, inputs["b_scales_ptr"])
    splits, K = inputs["c_ptr"].shape[0], shape["K"]
    step = -(-K // (splits * 256)) * 256
    shares = [a[:, s * step : (s + 1) * step] @ b[:, s * step : (s + 1) * step].T for s in range(splits)]
    return {"c_ptr": torch.stack(shares)}


TOLERANCE = {"c_ptr": 1e-2}
