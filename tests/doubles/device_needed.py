"""Why tests of a real GPU cannot run on this machine."""

import importlib.util


def missing():
    """Return why nothing can run here, or an empty string."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    import torch

    if not torch.cuda.is_available():
        return "no CUDA device"
    if torch.cuda.get_device_capability() != (9, 0):
        return "the CUDA device has capability {}.{}, the kernel needs 9.0".format(*torch.cuda.get_device_capability())
    return ""
