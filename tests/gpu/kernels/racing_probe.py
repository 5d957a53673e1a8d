"""What to ask about racing.py."""

KERNEL = "racing"
KNOBS = {"ORDER": ["fixed", "by chance"]}
BASELINE = {"ORDER": "fixed", "BLOCK": 1024, "num_warps": 4}
ARGS = {"x": "*fp32", "y": "*fp32"}
SHAPES = {"tall": {"n": 1_048_576}}
GRID = "(n // BLOCK,)"
TARGETS = {"sm_90": {}}
TOLERANCE = {"y": 1e-5}


def inputs(shape, config, device, seed):
    """Return x: (n,) fp32, and y: (BLOCK,) with numbers in it, which the sums are added to."""
    import torch

    rng = torch.Generator(device="cpu").manual_seed(seed)
    x = torch.randn((shape["n"],), generator=rng).to(device)
    return {"x": x, "y": torch.randn((config["BLOCK"],), generator=rng).to(device), "n": shape["n"]}


def reference(inputs, shape):
    """Return y in float64."""
    columns = inputs["y"].shape[0]
    return {"y": inputs["y"].double() + inputs["x"].double().view(-1, columns).sum(dim=0)}
