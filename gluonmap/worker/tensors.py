"""Tensors of a check: buffers with guards, poison, and distances from a reference.

This is the only module of a check that knows torch. torch is imported in the functions: the tests replace this class
where there is no torch, and `jobs` imports this module for every compile.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

GUARD_BYTES = 1 << 16
"""Bytes before and after every output."""
_ALIGNMENT = 256
_PATTERN = 251
"""Guards hold 0, 1, … 250, 0, …: a store of one value always changes them."""
HUGE = 1e30
"""Value of an unbounded error (the reference is zero, the output is not): JSON has no infinity."""


class Distance(NamedTuple):
    """Distance of an output from its reference: two relative errors, and the number of misplaced NaN or infinities."""

    relative: float
    elementwise: float
    misplaced: int


class Mismatch(Exception):
    """The reference cannot be compared with the output: a mistake of the probe, no evidence about the kernel."""


class Guarded:
    """A tensor with the shape, strides, dtype and alignment of another one, between guards."""

    def __init__(self, like: Any) -> None:
        import torch

        item = like.element_size()
        span = 1 + sum((n - 1) * s for n, s in zip(like.shape, like.stride(), strict=True)) if like.numel() else 0
        size = span * item
        self._raw = torch.empty(2 * GUARD_BYTES + size + _ALIGNMENT, dtype=torch.uint8, device=like.device)
        # The alignment is that of `like`: with another one the compiler would specialise differently.
        begin = GUARD_BYTES + (like.data_ptr() - self._raw.data_ptr() - GUARD_BYTES) % _ALIGNMENT
        numbers = torch.arange(_PATTERN, dtype=torch.uint8, device=like.device)
        self._pattern = numbers.repeat(self._raw.numel() // _PATTERN + 1)[: self._raw.numel()]
        self._raw.copy_(self._pattern)
        self._place = slice(begin, begin + size)
        self._seen: list[tuple[Any, Any]] = []
        """Tensors on this memory, each with the part of the pattern at its place."""
        self.tensor = self.seen_as(like)

    def seen_as(self, like: Any) -> Any:
        """Return the same memory as a tensor with the shape, strides and dtype of `like`, which spans as many bytes."""
        import torch

        def inside(raw: Any, dtype: Any) -> Any:
            return raw[self._place].view(dtype).as_strided(like.shape, like.stride())

        # A copy of bool tensors turns the pattern's other bytes into ones, so compare bytes.
        bits = torch.uint8 if like.dtype is torch.bool else like.dtype
        self._seen.append((inside(self._raw, bits), inside(self._pattern, bits)))
        return inside(self._raw, like.dtype)

    def intact(self) -> bool:
        """Return whether only the tensors' own elements were written. Overwrites these elements."""
        import torch

        for tensor, under in self._seen:
            _distinct(tensor).copy_(_distinct(under))
        return bool(torch.equal(self._raw, self._pattern))


class Tensors:
    """Operations on tensors of torch, on any device."""

    def is_tensor(self, value: Any) -> bool:
        return hasattr(value, "data_ptr") and hasattr(value, "stride")

    def guarded(self, like: Any) -> Guarded:
        return Guarded(like)

    def poison(self, tensor: Any, byte: int) -> None:
        """Fill a tensor with one byte. 0xFF is NaN in every float type except the fnuz ones."""
        import torch

        value = torch.full((tensor.element_size(),), byte, dtype=torch.uint8, device=tensor.device)
        if tensor.dtype is torch.bool:
            _distinct(tensor).fill_(bool(byte & 1))
        elif tensor.numel():
            own = _distinct(tensor)
            own.copy_(value.view(tensor.dtype).expand(own.shape))

    def copy(self, tensor: Any) -> Any:
        return tensor.clone()

    def restore(self, tensor: Any, copy: Any) -> None:
        _distinct(tensor).copy_(_distinct(copy, tensor))

    def shared(self, one: Any, other: Any) -> str:
        """Return "all" if two tensors span the same bytes, "part" if they share some of them, else ""."""
        (start, end), (begin, stop) = span(one), span(other)
        if start >= stop or begin >= end:
            return ""
        if (start, end) == (begin, stop):
            return "all"
        import torch

        mark = torch.zeros(max(end, stop) - min(start, begin), dtype=torch.bool)

        def bytes_of(tensor: Any, place: int) -> Any:
            tensor, item = _distinct(tensor), tensor.element_size()
            strides = [item * stride for stride in tensor.stride()]
            return mark.as_strided((*tensor.shape, item), (*strides, 1), place - min(start, begin))

        bytes_of(one, start).fill_(True)
        return "part" if bool(bytes_of(other, begin).any()) else ""

    def has_finite(self, tensor: Any) -> bool:
        """Return whether a tensor has a finite number, so that there is something to compare."""
        import torch

        return bool(torch.isfinite(tensor.float() if tensor.element_size() == 1 else tensor).any())

    def same_bits(self, one: Any, other: Any) -> bool:
        import torch

        def raw(tensor: Any) -> Any:
            return tensor.contiguous().reshape(-1).view(torch.uint8)

        same_kind = one.dtype == other.dtype and one.shape == other.shape
        return same_kind and bool(torch.equal(raw(one), raw(other.to(one.device))))

    def dtype(self, tensor: Any) -> str:
        """Return torch's name of a tensor's dtype, such as "float16"."""
        return str(tensor.dtype).removeprefix("torch.")

    @contextlib.contextmanager
    def exactly(self) -> Iterator[None]:
        """Compute matrix products of float32 in float32. TF32 keeps 10 bits, no more than the results under test."""
        import torch

        before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before[0])
            torch.backends.cudnn.allow_tf32 = before[1]

    def distance(self, out: Any, reference: Any) -> Distance:
        """Return the distance of `out` from `reference`, computed in float32 or better.

        `out` must be NaN or infinite exactly where the reference is, after rounding it to `out`'s dtype.

        Raises:
            Mismatch: the reference is not a tensor, or has another shape, or is complex and `out` is not.
        """
        import torch

        if not self.is_tensor(reference):
            raise Mismatch(f"is no tensor but {type(reference).__name__}")
        if reference.shape != out.shape:
            raise Mismatch(f"has shape {tuple(reference.shape)} where the output has {tuple(out.shape)}")
        if not out.numel():
            return Distance(0.0, 0.0, 0)
        reference = reference.to(out.device)
        if out.is_complex():
            out, reference = (torch.view_as_real(t.to(torch.complex128).resolve_conj()) for t in (out, reference))
        elif reference.is_complex():
            raise Mismatch("is complex where the output is not")
        whole = not out.is_floating_point()
        wide = torch.float64 if whole or out.element_size() == 8 else torch.float32
        found, wanted = out.to(wide), reference.to(wide)
        rounded = reference.to(out.dtype).to(wide)
        finite = torch.isfinite(found) & torch.isfinite(rounded)
        alike = finite | (found == rounded) | (torch.isnan(found) & torch.isnan(rounded))
        zero = torch.zeros((), dtype=wide, device=out.device)
        wanted = torch.where(finite, wanted, zero)
        error = torch.where(finite, found - wanted, zero).abs()
        if whole and not reference.is_floating_point():  # float64 holds only 53 of an integer's 64 bits
            unequal = out.to(torch.int64) != reference.to(torch.int64)
            error = torch.where(unequal, error.clamp(min=1.0), error)
        # Sums of squares are in float64: in float32 those of large numbers overflow.
        size = _norm(wanted)
        root_mean_square = size / math.sqrt(max(1, int(finite.sum())))
        scale = wanted.abs() + root_mean_square
        each = torch.where(scale > 0, error / scale, torch.where(error > 0, HUGE, 0.0))
        return Distance(
            relative=_quotient(_norm(error), size),
            elementwise=min(HUGE, float(each.max())),
            misplaced=int((~alike).sum()),
        )


def span(tensor: Any) -> tuple[int, int]:
    """Return the address of a tensor's first byte, and the address after its last byte."""
    start = tensor.data_ptr()
    if not tensor.numel():
        return start, start
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (last + 1) * tensor.element_size()


def _distinct(tensor: Any, like: Any = None) -> Any:
    """Return a tensor without the repeated elements of expanded dimensions (stride 0): only the first of each is kept.

    The strides are those of `like`, if it is given.
    """
    for dimension, stride in enumerate((tensor if like is None else like).stride()):
        if stride == 0 and tensor.shape[dimension] > 1:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def _norm(tensor: Any) -> float:
    import torch

    return float(torch.linalg.vector_norm(tensor, dtype=torch.float64))


def _quotient(error: float, size: float) -> float:
    return min(HUGE, error / size) if size else HUGE if error else 0.0
