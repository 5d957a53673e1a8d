"""Run-time arguments that exist only as far as a compile looks: a dtype, an alignment, a size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gluonmap.model import Value

# Triton's short names -> torch's, and bytes per element.
_DTYPES: dict[str, tuple[str, int]] = {
    "i1": ("bool", 1),
    "i8": ("int8", 1), "u8": ("uint8", 1),
    "i16": ("int16", 2), "u16": ("uint16", 2),
    "i32": ("int32", 4), "u32": ("uint32", 4),
    "i64": ("int64", 8), "u64": ("uint64", 8),
    "fp16": ("float16", 2), "bf16": ("bfloat16", 2), "fp32": ("float32", 4), "fp64": ("float64", 8),
    "fp8e4nv": ("float8_e4m3fn", 1), "fp8e5": ("float8_e5m2", 1),
    "fp8e4b8": ("float8_e4m3fnuz", 1), "fp8e5b16": ("float8_e5m2fnuz", 1),
}  # fmt: skip
_DESCRIPTOR = re.compile(r"tensordesc<\s*(\w+)\s*\[([^\]]*)\]\s*>$")
# Stand-ins for integers of which only a property is known: more than 1, divisible by 16 or not, 32 or 64 bits wide.
_INTEGERS = {
    "i32:16": 4096,
    "i32": 4099,
    "i64:16": 1 << 40,
    "i64": (1 << 40) + 3,
    "u64:16": 1 << 63,
    "u64": (1 << 63) + 3,
}


class Dtype(str):
    """Prints like a torch dtype, so that torch need not be imported."""

    itemsize: int

    def __new__(cls, short: str) -> Dtype:
        name, itemsize = _DTYPES.get(short, (short, 4))
        dtype = super().__new__(cls, name)
        dtype.itemsize = itemsize
        return dtype

    def __str__(self) -> str:
        return "torch." + str.__str__(self)

    @property
    def is_floating_point(self) -> bool:
        return str.__str__(self).startswith(("float", "bfloat"))


@dataclass
class Pointer:
    """Stands in for a tensor on the device; it has no memory."""

    dtype: Dtype
    address: int = 0
    shape: tuple[int, ...] = (1 << 20,)

    def data_ptr(self) -> int:
        return self.address

    def ptr_range(self) -> int:
        """Size of the tensor's storage in bytes: below 2 GB, so that buffer instructions may be used."""
        return 1 << 20

    def stride(self) -> tuple[int, ...]:
        return (1,)

    def element_size(self) -> int:
        return self.dtype.itemsize


def make(value: Value, target_backend: str) -> Any:
    """The argument that a text such as "*bf16", "i32:16" or "tensordesc<fp16[64, 32]>" describes, or the number.

    Raises:
        ValueError: the text describes no argument.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("*"):
        name, _, alignment = text[1:].removeprefix("k").partition(":")
        if name not in _DTYPES and not name.startswith(("float", "int", "uint", "bfloat")):
            raise ValueError(f"no dtype {name!r} (there are {', '.join(_DTYPES)})")
        return Pointer(Dtype(name), 0 if alignment in ("", "16") else int(alignment))
    if text in _INTEGERS:
        return _INTEGERS[text]
    if text in ("i32:1", "i64:1"):
        return 1
    if text in ("i1", "fp16", "fp32", "fp64", "bf16"):
        return True if text == "i1" else 1.5
    if match := _DESCRIPTOR.match(text):
        return _descriptor(match[1], [int(d) for d in match[2].split(",")], target_backend)
    raise ValueError(f"cannot make an argument of {value!r}")


def _descriptor(dtype: str, block: list[int], backend: str) -> Any:
    """A host tensor descriptor over a mock tensor of 4096 elements a side, in the default layout for its block."""
    from triton.experimental.gluon import language as gl

    shape = [4096] * len(block)
    strides = [4096**i for i in reversed(range(len(block)))]
    base = Pointer(Dtype(dtype), shape=tuple(shape))
    if backend == "hip":
        try:
            from triton.experimental.gluon.amd.cdna5 import TensorDescriptor
        except ImportError:
            from triton.experimental.gluon.amd.gfx1250 import TensorDescriptor
        layout = gl.PaddedSharedLayout.with_identity_for([[block[-1], 8]], block, [1, 0])
    else:
        from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

        names = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "u8": "uint8", "i8": "int8"}
        element = getattr(gl, names.get(dtype, dtype).replace("fp8e4nv", "float8e4nv").replace("fp8e5", "float8e5"))
        layout = gl.NVMMASharedLayout.get_default_for(block, element)
    return TensorDescriptor(base, shape, strides, block, layout)
