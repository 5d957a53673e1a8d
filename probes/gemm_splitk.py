"""What to ask about kernels/cdna3/gemm_splitk.py (gfx942) and kernels/cdna4/gemm_splitk.py (gfx950)."""

KERNEL = "gemm_splitk"

KNOBS = {
    "BLOCK_M": [16, 32, 64, 128],
    "BLOCK_N": [32, 64, 128, 256],
    "BLOCK_K": [16, 32, 64, 128, 256, 512],
    "NUM_KSPLIT": [1, 2, 3, 4, 8, 16],
    "num_warps": [1, 2, 4, 8, 16, 32],
    "waves_per_eu": [0, 1, 2, 4],
}
BASELINE = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 128, "NUM_KSPLIT": 8, "num_warps": 4, "waves_per_eu": 0}

ARGS = {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*fp32", "stride_ak": 1, "stride_bk": 1, "stride_cn": 1}
SHAPES = {
    "decode": {"M": 16, "N": 4096, "K": 8192},
    "prefill": {"M": 256, "N": 4096, "K": 8192},
    # 9 tiles of 128 in K: of 8 shares four have 2 tiles, the fifth has a part of one and the others have nothing.
    "ragged": {"M": 100, "N": 777, "K": 1072},
}
DERIVE = {"stride_am": "K", "stride_bn": "K", "stride_ck": "M * N", "stride_cm": "N"}
GRID = "(NUM_KSPLIT * cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1)"
# A lane has 512 registers: accumulators beyond that spill by the thousand, and compile for minutes.
RESTRICT = ["BLOCK_M * BLOCK_N <= 512 * 64 * num_warps"]
TARGETS = {"gfx942": {}, "gfx950": {}}


def inputs(shape, config, device, seed):
    """Return a: (M, K) and b: (N, K), bf16, with c: (NUM_KSPLIT, M, N) fp32 poisoned, and `share_k`, a share of K."""
    import torch

    M, N, K = shape["M"], shape["N"], shape["K"]
    splits, block_k = config["NUM_KSPLIT"], config["BLOCK_K"]
    rng = torch.Generator(device="cpu").manual_seed(seed)
    return {
        "a_ptr": torch.randn((M, K), generator=rng).to(device, torch.bfloat16),
        "b_ptr": torch.randn((N, K), generator=rng).to(device, torch.bfloat16),
        "c_ptr": torch.full((splits, M, N), float("nan"), device=device, dtype=torch.float32),
        "M": M,
        "N": N,
        "K": K,
        "stride_am": K,
        "stride_ak": 1,
        "stride_bn": K,
        "stride_bk": 1,
        "stride_ck": M * N,
        "stride_cm": N,
        "stride_cn": 1,
        "share_k": -(-K // (splits * block_k)) * block_k,
    }


def reference(inputs, shape):
    """Return each share's product in float32, from the bf16 values that the kernel saw."""
    import torch

    a, b, share = inputs["a_ptr"].float(), inputs["b_ptr"].float(), inputs["share_k"]
    starts = [s * share for s in range(inputs["c_ptr"].shape[0])]
    return {"c_ptr": torch.stack([a[:, k : k + share] @ b[:, k : k + share].T for k in starts])}


TOLERANCE = {"c_ptr": 1e-4}
