"""A device that is none: launches run the `imitate` of the kernel's module on numpy arrays. No torch, no GPU.

Servers of a test import it (`Isolation(modules=("fake_device",))`), and it takes the place of AMD's adapter.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gluonmap.worker import vendor
from gluonmap.worker.tensors import Distance, Mismatch

GUARD = 64


class FakeGuarded:
    """An array in the middle of a larger one."""

    def __init__(self, like: Any) -> None:
        self._raw = np.arange(like.nbytes + 2 * GUARD, dtype=np.int64).astype(np.uint8)
        self._size = like.nbytes
        self.tensor = self._raw[GUARD : GUARD + like.nbytes].view(like.dtype).reshape(like.shape)
        self.whole = self._raw

    def intact(self) -> bool:
        untouched = np.arange(self._raw.size, dtype=np.int64).astype(np.uint8)
        outside = np.r_[0:GUARD, GUARD + self._size : self._raw.size]
        return bool((self._raw[outside] == untouched[outside]).all())


class FakeTensors:
    """numpy arrays in the place of tensors."""

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, np.ndarray)

    def guarded(self, like: Any) -> FakeGuarded:
        return FakeGuarded(like)

    def poison(self, tensor: Any, byte: int) -> None:
        tensor.view(np.uint8)[...] = byte

    def copy(self, tensor: Any) -> Any:
        return tensor.copy()

    def restore(self, tensor: Any, copy: Any) -> None:
        tensor[...] = copy

    def same_bits(self, one: Any, other: Any) -> bool:
        return bool(one.tobytes() == other.tobytes())

    def shared(self, one: Any, other: Any) -> str:
        return ""

    def has_finite(self, tensor: Any) -> bool:
        return bool(np.isfinite(tensor).any())

    def dtype(self, tensor: Any) -> str:
        return str(tensor.dtype)

    @contextlib.contextmanager
    def exactly(self) -> Iterator[None]:
        yield

    def distance(self, out: Any, reference: Any) -> Distance:
        if reference.shape != out.shape:
            raise Mismatch(f"has shape {reference.shape} where the output has {out.shape}")
        finite = np.isfinite(out) & np.isfinite(reference)
        error = np.where(finite, out - reference, 0).astype(np.float64)
        wanted = np.where(finite, reference, 0).astype(np.float64)
        size = float(np.linalg.norm(wanted)) or 1.0
        each = np.abs(error) / (np.abs(wanted) + size / np.sqrt(out.size))
        return Distance(float(np.linalg.norm(error)) / size, float(each.max()), int((~finite).sum()))


class FakeDevice(vendor.Amd):
    """As many devices as FAKE_DEVICES says; an error that `imitate` leaves in `pending` is raised on synchronising."""

    pending: Exception | None = None

    def __init__(self) -> None:
        super().__init__()
        self.tensors = FakeTensors()  # type: ignore[assignment]

    def count(self) -> int:
        return int(os.environ.get("FAKE_DEVICES", "1"))

    def lock_files(self) -> list[str]:
        # Tests that run beside each other have devices of their own.
        folder = Path(f"/tmp/gluonmap-double-{os.getuid()}")
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        return [str(folder / f"{worker}-{index}.lock") for index in range(self.count())]

    def open(self, index: int) -> None:
        self.index = index
        if os.environ.get("FAKE_BROKEN"):
            raise vendor.NoDevice("the device cannot be used: it is a double")

    def target(self) -> str:
        return "gfx942"

    def compiled(self, jit: Any, positional: Sequence[Any], keywords: dict[str, Any], grid: tuple[int, ...]) -> Any:
        return None

    def launch(self, jit: Any, positional: Sequence[Any], keywords: dict[str, Any], grid: tuple[int, ...]) -> None:
        FakeDevice.pending = sys.modules[jit.fn.__module__].imitate(*positional, **keywords)

    def synchronize(self) -> None:
        error, FakeDevice.pending = FakeDevice.pending, None
        if error is not None:
            raise error

    def times_us(self, launch: Any, count: int) -> list[float]:
        launch()
        self.synchronize()
        return [10.0 + 0.01 * number for number in range(count)]

    def clock_mhz(self) -> int | None:
        return 1000


vendor.VENDORS["hip"] = FakeDevice


def busy(seconds: float, name: str) -> None:
    """Keep the device busy, and write down when, and which one it was."""
    begin = time.monotonic()
    time.sleep(seconds)
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(f"{name} {begin} {time.monotonic()}\n")
