"""What to ask about hostile.py."""

KERNEL = "hostile"
KNOBS = {
    "HOW": [
        "right",
        "hangs",
        "far out of bounds",
        "misaligned",
        "wrong mask",
        "no mask",
        "before its output",
        "one bad element",
        "NaN",
        "no barrier",
    ],
    "BLOCK": [1024, 512],
}
BASELINE = {"HOW": "right", "BLOCK": 1024, "num_warps": 4}
ARGS = {"x": "*fp32", "y": "*fp32"}
SHAPES = {"whole": {"n": 1_048_576}, "ragged": {"n": 1_000_003}}
GRID = "(cdiv(n, BLOCK),)"
TARGETS = {"sm_90": {}}
TOLERANCE = {"y": 1e-6}


def inputs(shape, config, device, seed):
    """Return x: (n,) fp32 and y, empty."""
    import torch

    rng = torch.Generator(device="cpu").manual_seed(seed)
    x = torch.randn((shape["n"],), generator=rng).to(device)
    return {"x": x, "y": torch.empty_like(x), "n": shape["n"]}


def reference(inputs, shape):
    """Return y in float64."""
    return {"y": inputs["x"].double() * 2}
