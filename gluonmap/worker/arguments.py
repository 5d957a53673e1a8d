"""Stand-ins for run-time arguments. They have what a compile reads: a dtype, an alignment, a size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gluonmap.model.candidate import Value
from gluonmap.model.dtypes import DESCRIPTOR, DTYPES, INTEGERS, POINTER


class Dtype(str):
    """A dtype that prints like torch's, so that torch need not be imported."""

    itemsize: int

    def __new__(cls, short: str) -> Dtype:
        name, itemsize = DTYPES.get(short, (short, 4))
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
    """A stand-in for a tensor on the device. It has no memory."""

    dtype: Dtype
    address: int = 0
    shape: tuple[int, ...] = (1 << 20,)

    def data_ptr(self) -> int:
        return self.address

    def ptr_range(self) -> int:
        """Return the size of the tensor's storage in bytes: below 2 GB, so that buffer instructions may be used."""
        return 1 << 20

    def stride(self, dim: int | None = None) -> Any:
        return 1 if dim is not None else (1,) * len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return math.prod(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    ndim = property(dim)

    def is_contiguous(self) -> bool:
        return True

    def element_size(self) -> int:
        return self.dtype.itemsize


def make(value: Value, target_backend: str) -> Any:
    """Return the argument that a text such as "*bf16", "i32:16" or "tensordesc<fp16[64, 32]>" describes.

    A value that is not a text is returned as it is. The text must be valid according to `dtypes`.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if match := POINTER.match(text):
        alignment = int(match["alignment"] or 16)
        return Pointer(Dtype(match["dtype"]), 0 if alignment % 16 == 0 else alignment)
    if match := DESCRIPTOR.match(text):
        return _descriptor(match["dtype"], [int(d) for d in match["dims"].split(",")], target_backend)
    if text in INTEGERS:
        return INTEGERS[text]
    return True if text == "i1" else 1.5


def _descriptor(dtype: str, block: list[int], backend: str) -> Any:
    """Return a host tensor descriptor over a stand-in tensor of 4096 elements a side."""
    shape = [4096] * len(block)
    strides = [4096**i for i in reversed(range(len(block)))]
    return descriptor(Pointer(Dtype(dtype), shape=tuple(shape)), shape, strides, dtype, block, backend)


def descriptor(base: Any, shape: list[int], strides: list[int], dtype: str, block: list[int], backend: str) -> Any:
    """Return a host tensor descriptor over a tensor, in the default layout for its block."""
    # Triton's modules are imported here: the worker's parent never imports Triton.
    if backend == "hip":
        try:  # the module's name differs between Triton releases
            from triton.experimental.gluon.amd.cdna5 import TensorDescriptor
        except ImportError:
            from triton.experimental.gluon.amd.gfx1250 import TensorDescriptor
    else:
        from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
    return TensorDescriptor(base, shape, strides, block, default_layout(dtype, block, backend))


def default_layout(dtype: str, block: list[int], backend: str) -> Any:
    """Return the layout in shared memory that a descriptor's block gets if none is named."""
    from triton.experimental.gluon import language as gl  # weight of Triton

    if backend == "hip":
        return gl.PaddedSharedLayout.with_identity_for([[block[-1], 8]], block, [1, 0])
    return gl.NVMMASharedLayout.get_default_for(block, getattr(gl, element_name(dtype)))


def element_name(dtype: str) -> str:
    """Return Gluon's name of a type in a descriptor's text: "float16" for "fp16"."""
    names = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "u8": "uint8", "i8": "int8"}
    return names.get(dtype, dtype).replace("fp8e4nv", "float8e4nv").replace("fp8e5", "float8e5")
