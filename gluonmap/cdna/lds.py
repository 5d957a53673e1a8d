"""LDS: a part for each work-group, and the accesses to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.access import Access
from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.figures import Counters
from gluonmap.cdna.findings import Findings, Kind
from gluonmap.cdna.memory import extended, loaded
from gluonmap.cdna.sanitizer import Sanitizer
from gluonmap.cdna.state import LANES, Waves

Array = npt.NDArray[Any]
u8, u16, u32, i64 = np.uint8, np.uint16, np.uint32, np.int64
_LANE = np.arange(LANES)


class Lds:
    """The LDS of all work-groups that run together, in one array of bytes."""

    def __init__(
        self,
        groups: int,
        size: int,
        waves_per_group: int,
        findings: Findings,
        rng: np.random.Generator,
        sanitizer: Sanitizer | None,
        figures: Counters | None,
    ) -> None:
        self.size = size
        self.stride = max((size + 15) & ~15, 16)
        self.bytes = rng.integers(0, 256, groups * self.stride, u8)
        self.words = self.bytes.view(u32)
        self.halves = self.bytes.view(u16)
        self._starts = (np.arange(groups * waves_per_group) // waves_per_group * self.stride).astype(i64)
        self.findings, self.sanitizer, self.figures = findings, sanitizer, figures

    def starts(self, w: Waves) -> Any:
        """Return (n, 1): the start of the LDS of each wave's work-group, in bytes.

        Work-groups that do not run together have the same place.
        """
        return self._starts[w.ids % len(self._starts)][:, None]

    def load(self, w: Waves, access: Access) -> None:
        size = access.size
        results: list[tuple[int, Array]] = []
        for register, offset in zip(access.data, access.offsets, strict=True):
            at, active = self._located(w, access, offset, store=False)
            for k, value in enumerate(self._read(at, size, access.signed)):
                results.append((register + k, value if active is None else np.where(active, value, u32(0))))
        # Write after both reads: the address register may be one of the destinations.
        for register, value in results:
            loaded(w, access, register, value)

    def store(self, w: Waves, access: Access) -> None:
        for register, offset in zip(access.data, access.offsets, strict=True):
            at, active = self._located(w, access, offset, store=True)
            everywhere = w.mask is True and active is None
            chosen = w.active if active is None else active
            where = at if everywhere else at[chosen]
            for k in range(max(1, access.size // 4)):
                value = w.U[register + k] if everywhere else w.U[register + k][chosen]
                if access.size >= 4:
                    if not (where & 3).any():
                        self.words[(where >> 2) + k] = value
                    else:
                        spread = (where + 4 * k)[..., None] + np.arange(4)
                        self.bytes[spread] = np.ascontiguousarray(value)[..., None].view(u8)
                    continue
                value = value >> u32(16) if access.high else value
                if access.size == 1:
                    self.bytes[where] = value.astype(u8)
                elif (where & 1).any():
                    raise NotExecuted(f"{access.instruction.text}: 16 bits at an odd address")
                else:
                    self.halves[where >> 1] = value.astype(u16)

    def transpose(self, w: Waves, access: Access) -> None:
        """Execute ds_read_b64_tr_b<bits>: 16 lanes read 16 rows of 64 bits and get them as columns.

        A row has n elements. Element j of lane i (of the 16) is element i % n of lane j * (16 // n) + i // n.
        """
        bits = int(access.operation)
        at, active = self._located(w, access, access.offsets[0], store=False)
        if active is not None or (at & 7).any():
            raise NotExecuted(f"{access.instruction.text}: out of bounds or at no multiple of 8")
        n = 64 // bits
        lane, element = _LANE % 16, np.arange(n)
        source = (_LANE // 16 * 16)[:, None] + element * (16 // n) + (lane // n)[:, None]
        column = np.broadcast_to((lane % n)[:, None], source.shape)
        rows = self.bytes[at[..., None] + np.arange(8)]
        result = np.ascontiguousarray(rows.view(u16 if bits == 16 else u8)[:, source, column]).view(u32)
        for k in range(2):
            np.copyto(w.U[access.data[0] + k], result[..., k], where=w.mask)

    def atomic(self, w: Waves, access: Access) -> None:
        at, active = self._located(w, access, access.offsets[0], store=True)
        chosen = w.active if active is None else active
        update = _UPDATES.get(access.operation)
        if update is None or (at[chosen] & 3).any():
            raise NotExecuted(access.instruction.text)
        old = np.zeros((w.count, LANES), u32)
        for wave, lane in np.argwhere(chosen):
            cell = at[wave, lane] >> 2
            old[wave, lane] = self.words[cell]
            self.words[cell] = update(self.words[cell], w.U[access.data[0]][wave, lane])
        if access.returns:
            np.copyto(w.U[access.result], old, where=w.mask)

    def land(self, w: Waves, access: Access, places: Array, active: Array, values: Array) -> None:
        """Write the data of a copy from global memory: `values` (n, 64, size) at `places` of the work-group's LDS."""
        inside = (places >= 0) & (places + access.size <= self.size)
        bad = active & ~inside
        if bad.any():
            detail = f"byte {int(places[bad].max()) + access.size} of {self.size}"
            self.findings.add_lanes(Kind.LDS_BOUNDS, access.instruction, w.ids, bad, detail)
            active = active & inside
        at = places + self.starts(w)
        if self.sanitizer:
            self.sanitizer.copy_issued(w, access, at, active)
        if self.figures:
            self.figures.lds_copy(access, active)
        self.bytes[at[active][:, None] + np.arange(access.size)] = values[active]

    def _located(self, w: Waves, access: Access, offset: int, store: bool) -> tuple[Array, Array | None]:
        """Return (offsets into `bytes`, remaining active lanes; None if all active lanes remain).

        Lanes out of bounds are reported and dropped. Inactive lanes get harmless offsets.
        """
        assert access.address is not None
        # The sum wraps at 32 bits (LLVM's hasUsableDSOffset): the register may hold a negative number.
        local = (w.U[access.address.index] + u32(offset)).astype(i64)
        active: Array | None = None
        last = local + access.size
        if not bool((last <= self.size).all()):
            bad = w.active & (last > self.size)
            if bad.any():
                detail = f"byte {int(last[bad].max())} of {self.size}"
                self.findings.add_lanes(Kind.LDS_BOUNDS, access.instruction, w.ids, bad, detail)
                active = w.active & ~bad
            local = np.where(last <= self.size, local, 0)
        at = local + self.starts(w)
        if self.sanitizer:
            self.sanitizer.lds(w, access, at, w.active if active is None else active, store)
        if self.figures:
            self.figures.lds_access(access, local, w.active if active is None else active)
        return at, active

    def _read(self, at: Array, size: int, signed: bool) -> list[Array]:
        if size >= 4:
            if not (at & 3).any():
                words = at >> 2
                return [self.words.take(words + k if k else words) for k in range(size // 4)]
            values = self.bytes[at[..., None] + np.arange(size)].view(u32)
            return [values[..., k] for k in range(size // 4)]
        if size == 1:
            return [extended(self.bytes.take(at), signed)]
        if (at & 1).any():
            return [extended(self.bytes[at[..., None] + np.arange(2)].view(u16)[..., 0], signed)]
        return [extended(self.halves.take(at >> 1), signed)]


_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add_u32": np.add,
    "sub_u32": np.subtract,
    "min_u32": np.minimum,
    "max_u32": np.maximum,
    "and_b32": np.bitwise_and,
    "or_b32": np.bitwise_or,
    "xor_b32": np.bitwise_xor,
    "min_i32": lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(u32),
    "max_i32": lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)).view(u32),
    "add_f32": lambda a, b: (a.view(np.float32) + b.view(np.float32)).view(u32),
}
