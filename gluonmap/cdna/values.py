"""Conversion between numbers and bytes of GPU memory, for the types that numpy does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.arithmetic import bf16_bits, to_byte_float
from gluonmap.cdna.formats import BF8, E2M1, FP8

Array = npt.NDArray[Any]

PLAIN: dict[str, Any] = {
    "fp16": np.float16,
    "fp32": np.float32,
    "fp64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
}
"""Triton's names of the types that numpy has."""
TABLES = {"fp8e4nv": FP8[False], "fp8e4b8": FP8[True], "fp8e5": BF8[False], "fp8e5b16": BF8[True]}
"""Triton's names of the 8-bit floats → the values of their codes."""


def decode(raw: Array, dtype: str) -> Array:
    """Return the numbers in `raw` of Triton's type `dtype`.

    bf16 and 8-bit floats are returned as float32. "e2m1" has two values a byte.
    """
    data = np.ascontiguousarray(raw).reshape(-1).view(np.uint8)
    if dtype == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype == "e2m1":
        return np.stack([E2M1[data & 15], E2M1[data >> 4]], axis=-1).reshape(-1)
    if dtype in TABLES:
        return TABLES[dtype][data]
    return data.view(PLAIN[dtype])


def encode(numbers: Array, dtype: str) -> Array:
    """Return `numbers` as GPU memory holds them, in the same shape.

    The dtype is numpy's own if there is one; bf16 is uint16, 8-bit floats are uint8.
    """
    if dtype == "bf16":
        return bf16_bits(np.asarray(numbers, np.float32)).astype(np.uint16)
    if dtype in TABLES:
        return to_byte_float(np.asarray(numbers, np.float32), TABLES[dtype]).astype(np.uint8)
    return np.asarray(numbers, PLAIN[dtype])
