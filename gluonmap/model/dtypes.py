"""Types of run-time arguments, as Triton spells them."""

from __future__ import annotations

import re

from gluonmap.model.candidate import Value

DTYPES: dict[str, tuple[str, int]] = {
    "i1": ("bool", 1),
    "i8": ("int8", 1), "u8": ("uint8", 1),
    "i16": ("int16", 2), "u16": ("uint16", 2),
    "i32": ("int32", 4), "u32": ("uint32", 4),
    "i64": ("int64", 8), "u64": ("uint64", 8),
    "fp16": ("float16", 2), "bf16": ("bfloat16", 2), "fp32": ("float32", 4), "fp64": ("float64", 8),
    "fp8e4nv": ("float8_e4m3fn", 1), "fp8e5": ("float8_e5m2", 1),
    "fp8e4b8": ("float8_e4m3fnuz", 1), "fp8e5b16": ("float8_e5m2fnuz", 1),
}  # fmt: skip
"""Triton's short name -> torch's name, and bytes per element."""

SCALARS = ("i1", "fp16", "bf16", "fp32", "fp64")
INTEGERS = {
    "i32:1": 1,
    "i64:1": 1,
    "i32:16": 4096,
    "i32": 4099,
    "i64:16": 1 << 40,
    "i64": (1 << 40) + 3,
    "u64:16": 1 << 63,
    "u64": (1 << 63) + 3,
}
"""Type -> an integer with its properties: equal to 1, divisible by 16 or not, 32 or 64 bits wide."""
POINTER = re.compile(r"\*k?(?P<dtype>\w+)(?::(?P<alignment>\d+))?$")
DESCRIPTOR = re.compile(r"(?P<head>tensordesc<\s*(?P<dtype>\w+)\s*)\[(?P<dims>[^\]]*)\](?P<tail>\s*>)$")


def complaint(text: str) -> str:
    """Return what is wrong with the text of an argument's type, in words; "" for a correct type."""
    text = text.strip()
    match = POINTER.match(text) or DESCRIPTOR.match(text)
    if match:
        known = match["dtype"] in DTYPES or match["dtype"] in {name for name, _ in DTYPES.values()}
        return "" if known else f"there is no dtype {match['dtype']!r} (there are {', '.join(DTYPES)})"
    if text in SCALARS or text in INTEGERS:
        return ""
    return f"{text!r} is no type (pointers: *bf16, *u8; numbers: {', '.join((*INTEGERS, *SCALARS))}; or a number)"


def describe_argument(value: Value) -> str:
    """Return Triton's spelling of what it knows about an argument: "*bf16:16", "i32:16", "i32", "i32:1", "fp32"."""
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        width = "i32" if -(2**31) <= value < 2**31 else "i64"
        return f"{width}:1" if value == 1 else f"{width}:16" if value % 16 == 0 else width
    if isinstance(value, float):
        return "fp32"
    if value is None:
        return "None"
    if value.startswith("*") and ":" not in value:
        return f"{value}:16"
    return value
