"""A constant that is drawn from the first configuration that the process has traced, and kept."""

import triton
import triton.language as tl
from triton.runtime.jit import constexpr_function

_chosen = None


@constexpr_function
def chosen(value):
    global _chosen
    if _chosen is None:
        _chosen = value * 3
    return _chosen


@triton.jit
def fill(x, TILE: tl.constexpr, V: tl.constexpr):
    tl.store(x + tl.arange(0, TILE), chosen(V))
