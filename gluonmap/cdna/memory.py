"""Global memory: buffers with gaps between them, and the accesses to it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.access import ATOMICS, Access
from gluonmap.cdna.arithmetic import bf16_bits
from gluonmap.cdna.errors import BadLaunch, NotExecuted
from gluonmap.cdna.figures import Counters
from gluonmap.cdna.findings import Findings, Kind
from gluonmap.cdna.operands import M0
from gluonmap.cdna.runtime import put_half
from gluonmap.cdna.state import LANES, Waves

if TYPE_CHECKING:  # `lds` and `sanitizer` import this module
    from gluonmap.cdna.lds import Lds
    from gluonmap.cdna.sanitizer import Sanitizer

Array = npt.NDArray[Any]
u8, u16, u32, u64, i64 = np.uint8, np.uint16, np.uint32, np.uint64, np.int64

BASE = 0x7F00_0000_0000
"""Address of the first byte. It is so high that a 32-bit offset alone is never a valid address."""
GAP = 4096
"""Bytes between buffers. No access may touch them."""
LANE = np.arange(LANES)
_NO_COPY = 0x7FFF_FFFF
"""M0 of a wave whose copy to LDS is dropped (Triton 3.9): its LDS address lies outside."""
_OTHER_BUFFERS = u32(0xC0800000)
"""Bits of a descriptor's last word that mark other types than a buffer, and addresses that add the lane's number."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """One allocation."""

    name: str
    offset: int
    size: int


class Memory:
    """All buffers of one launch in one array of bytes."""

    def __init__(self, sizes: list[int]) -> None:
        total = GAP + sum((size + GAP + 255) & ~255 for size in sizes) + GAP
        total = (total + 7) & ~7
        self.bytes = np.zeros(total, u8)
        self.words = self.bytes.view(u32)
        self.by_size: dict[int, Array] = {
            1: self.bytes,
            2: self.bytes.view(u16),
            4: self.words,
            8: self.bytes.view(u64),
        }
        self.buffers: list[Buffer] = []
        self.starts: list[int] = []
        self.unknown: list[tuple[int, int]] = []
        """Byte ranges of unknown content: hidden arguments that this model does not define."""
        self._top = GAP

    def allocate(self, name: str, content: Array) -> int:
        """Create a buffer with the bytes `content`; return its address."""
        if self._top + content.nbytes + GAP > self.bytes.nbytes:
            raise BadLaunch(f"no room for {content.nbytes} bytes of {name}")
        buffer = Buffer(name, self._top, content.nbytes)
        self.bytes[buffer.offset : buffer.offset + buffer.size] = content
        self.buffers.append(buffer)
        self.starts.append(buffer.offset)
        self._top = (self._top + buffer.size + GAP + 255) & ~255
        return BASE + buffer.offset

    def content(self, address: int) -> Array:
        """Return the bytes of the buffer at `address` without a copy."""
        buffer = self.buffers[self.starts.index(address - BASE)]
        return self.bytes[buffer.offset : buffer.offset + buffer.size]

    def inside(self, low: int, high: int) -> bool:
        """Return whether the bytes from `low` up to `high` (exclusive) lie in one buffer."""
        k = bisect_right(self.starts, low) - 1
        return k >= 0 and high <= self.buffers[k].offset + self.buffers[k].size

    def outside(self, offsets: Array, size: int) -> Array:
        """Return a mask of the `offsets` whose `size` bytes do not lie in one buffer."""
        k = np.searchsorted(self.starts, offsets, side="right") - 1
        ends = np.array([b.offset + b.size for b in self.buffers])
        return (k < 0) | (offsets + size > ends[np.maximum(k, 0)])

    def nearest(self, offset: int, size: int) -> str:
        """Return a description of the place of an access of `size` bytes that is not inside one buffer."""
        k = bisect_right(self.starts, offset) - 1
        if k < 0:
            return f"at {BASE + offset:#x}, below all buffers"
        buffer = self.buffers[k]
        beyond = offset - buffer.offset - buffer.size
        if beyond < 0:
            return f"{beyond + size} of its bytes lie behind the {buffer.size} bytes of {buffer.name}"
        behind = f"{beyond} bytes behind the end of" if beyond else "right behind"
        return f"{behind} the {buffer.size} bytes of {buffer.name}"


class GlobalAccess:
    """The scalar, global and buffer accesses of waves."""

    def __init__(
        self,
        memory: Memory,
        lds: Lds,
        findings: Findings,
        wide_m0: bool,
        sanitizer: Sanitizer | None,
        figures: Counters | None,
    ) -> None:
        self.memory, self.lds, self.findings = memory, lds, findings
        self.wide_m0 = wide_m0
        self.sanitizer, self.figures = sanitizer, figures

    def scalar_load(self, w: Waves, access: Access) -> None:
        assert access.base is not None and access.offset is not None
        extra: Any = w.SU[access.offset.index].astype(i64) if access.offset.kind == "s" else int(access.offset.value)
        offsets = (w.SQ[access.base.index] - u64(BASE)).view(i64) + extra + access.offsets[0]
        low, high = int(offsets.min()), int(offsets.max()) + access.size
        if not self.memory.inside(low, high) and self.memory.outside(offsets, access.size).any():
            wave = int(self.memory.outside(offsets, access.size).argmax())
            self.findings.add(
                Kind.GLOBAL_BOUNDS,
                access.instruction,
                int(w.ids[wave]),
                -1,
                self.memory.nearest(int(offsets[wave, 0]), access.size),
            )
            offsets = np.zeros_like(offsets)
        elif any(low < end and start < high for start, end in self.memory.unknown):
            raise NotExecuted(f"{access.instruction.text}: reads a hidden argument that is not known")
        words = offsets >> 2
        for k in range(access.size // 4):
            w.SU[access.data[0] + k][...] = self.memory.words[words + k]

    def load(self, w: Waves, access: Access) -> None:
        addresses, active, hidden = self._addresses(w, access)
        offsets, active = self._located(w, access, addresses, active)
        if offsets is None:
            if hidden:
                self._write(w, access, [np.zeros((w.count, LANES), u32)] * max(1, access.size // 4))
            return
        if self.sanitizer:
            self.sanitizer.global_read(w, access, offsets, active)
        values = self._read(offsets, access.size, access.signed)
        if not active.all():
            values = [np.where(active, v, u32(0)) for v in values]
        self._write(w, access, values)

    def store(self, w: Waves, access: Access) -> None:
        addresses, active, _ = self._addresses(w, access)
        offsets, active = self._located(w, access, addresses, active)
        if offsets is None:
            return
        if self.sanitizer:
            self.sanitizer.global_write(w, access, offsets, active)
        everywhere = bool(active.all())
        at = offsets if everywhere else offsets[active]
        for k in range(max(1, access.size // 4)):
            value = w.U[access.data[0] + k]
            value = value if everywhere else value[active]
            if access.size >= 4:
                if not (at & 3).any():
                    self.memory.words[(at >> 2) + k] = value
                else:
                    spread = (at + 4 * k)[..., None] + np.arange(4)
                    self.memory.bytes[spread] = np.ascontiguousarray(value)[..., None].view(u8)
            else:
                value = value >> u32(16) if access.high else value
                kind = u8 if access.size == 1 else u16
                if access.size == 2 and (at & 1).any():
                    spread = at[..., None] + np.arange(2)
                    self.memory.bytes[spread] = np.ascontiguousarray(value.astype(u16))[..., None].view(u8)
                else:
                    self.memory.by_size[access.size][at >> (access.size >> 1)] = value.astype(kind)

    def atomic(self, w: Waves, access: Access) -> None:
        addresses, active, hidden = self._addresses(w, access)
        offsets, active = self._located(w, access, addresses, active)
        size = access.size
        if offsets is None:
            if hidden and access.returns:
                self._return(w, access, np.zeros((w.count, LANES), u32 if size == 4 else u64))
            return
        if (offsets[active] & (size - 1)).any():
            raise NotExecuted(f"{access.instruction.text}: atomic at an address that is no multiple of {size}")
        if self.sanitizer:
            self.sanitizer.global_atomic(w, access, offsets, active)
        cells = self.memory.by_size[size]
        data = access.data[0]
        given = [w.U[data + k] for k in range(2 if size == 8 or access.operation == "cmpswap" else 1)]
        old = np.zeros((w.count, LANES), u32 if size == 4 else u64)
        update = _update(access.operation)
        for wave, lane in np.argwhere(active):
            cell = offsets[wave, lane] // size
            old[wave, lane] = cells[cell]
            values = [g[wave, lane] for g in given]
            cells[cell] = update(cells[cell], *values)
        if access.returns:
            self._return(w, access, old)

    def copy_to_lds(self, w: Waves, access: Access) -> None:
        """Execute a load whose data goes to LDS. The data of lane l goes to M0 + offset + l * size, for each wave."""
        addresses, active, _ = self._addresses(w, access)
        m0 = w.SU[M0].astype(i64)
        if not self.wide_m0:
            m0 = m0 & 0xFFFF
        wanted = m0 != _NO_COPY
        places = np.broadcast_to(m0 + access.offsets[0] + LANE * access.size, (w.count, LANES))
        active = active & wanted
        offsets, active = self._located(w, access, addresses, active)
        values = np.zeros((w.count, LANES, access.size), u8)
        if offsets is not None:
            if self.sanitizer:
                self.sanitizer.global_read(w, access, offsets, active)
            fetched = self.memory.bytes[offsets[..., None] + np.arange(access.size)]
            values = fetched if active.all() else np.where(active[..., None], fetched, u8(0))
        # Lanes outside the buffer's range write zeros; inactive lanes write nothing.
        self.lds.land(w, access, places, w.active & wanted, values)

    def _addresses(self, w: Waves, access: Access) -> tuple[Array, Array, bool]:
        """Return (byte addresses (n, 64) uint64, accessing lanes, whether a descriptor masked active lanes)."""
        address, base, offset = access.address, access.base, access.offset
        assert address is not None
        immediate = access.offsets[0]
        if access.space != "buffer":
            if base is not None and base.kind == "s":
                where = w.SQ[base.index] + w.U[address.index].astype(u64)
            else:
                where = w.U[address.index].astype(u64) | (w.U[address.index + 1].astype(u64) << u64(32))
            if immediate:
                where = where + u64(immediate & 0xFFFF_FFFF_FFFF_FFFF)
            return where, w.active, False
        assert base is not None and offset is not None
        words = [w.SU[base.index + k] for k in range(3)]
        if (words[1] >> u32(31)).any():
            raise NotExecuted(f"{access.instruction.text}: a swizzled buffer")
        if (w.SU[base.index + 3] & _OTHER_BUFFERS).any():
            raise NotExecuted(f"{access.instruction.text}: no descriptor of a plain buffer")
        start = words[0].astype(u64) | ((words[1] & u32(0xFFFF)).astype(u64) << u64(32))
        scalar: Any = w.SU[offset.index].astype(i64) if offset.kind == "s" else i64(int(offset.value))
        voffset: Any = w.U[address.index].astype(i64) if "offen" in access.instruction.modifiers else i64(0)
        local = voffset + immediate
        records = words[2].astype(i64)
        # Documents differ on whether the range check includes the scalar offset, so both rules must agree here. The
        # first and the last byte must agree too: no document defines an access that is partly in range.
        within = np.broadcast_to(local + access.size <= records, (w.count, LANES))
        loosely = np.broadcast_to(local + np.minimum(scalar, 0) < records, (w.count, LANES))
        strictly = np.broadcast_to(local + scalar + access.size <= records, (w.count, LANES))
        if ((loosely != strictly) & w.active).any():
            raise NotExecuted(f"{access.instruction.text}: at the very end of a buffer's range")
        active = w.active & within
        where = np.broadcast_to(start + (local + scalar).astype(u64), (w.count, LANES))
        return where, active, bool((w.active & ~within).any())

    def _located(self, w: Waves, access: Access, addresses: Array, active: Array) -> tuple[Array | None, Array]:
        """Return (offsets into the memory, remaining active lanes). The offsets are None if no lane is active.

        Lanes out of bounds are reported and dropped. Inactive lanes get harmless offsets.
        """
        offsets = (addresses - u64(BASE)).view(i64)
        if not active.all():
            first = int(active.argmax())
            if not active.flat[first]:
                return None, active
            offsets = np.where(active, offsets, offsets.flat[first])
        low, high = int(offsets.min()), int(offsets.max())
        if not self.memory.inside(low, high + access.size):
            bad = active & self.memory.outside(offsets, access.size)
            if bad.any():
                where = self.memory.nearest(int(offsets[bad][0]), access.size)
                self.findings.add_lanes(Kind.GLOBAL_BOUNDS, access.instruction, w.ids, bad, where)
                active = active & ~bad
                if not active.any():
                    return None, active
                offsets = np.where(active, offsets, offsets[active][0])
        if self.figures:
            self.figures.global_access(access, offsets, active)
        return offsets, active

    def _read(self, offsets: Array, size: int, signed: bool) -> list[Array]:
        memory = self.memory
        if size >= 4:
            if not (offsets & 3).any():
                words = offsets >> 2
                return [memory.words.take(words + k if k else words) for k in range(size // 4)]
            spread = offsets[..., None] + np.arange(size)
            values = memory.bytes[spread].view(u32)
            return [values[..., k] for k in range(size // 4)]
        if size == 2 and (offsets & 1).any():
            value = memory.bytes[offsets[..., None] + np.arange(2)].view(u16)[..., 0]
        else:
            value = memory.by_size[size].take(offsets >> (size >> 1))
        return [extended(value, signed)]

    def _write(self, w: Waves, access: Access, values: list[Array]) -> None:
        for k, value in enumerate(values):
            loaded(w, access, access.data[0] + k, value)

    def _return(self, w: Waves, access: Access, old: Array) -> None:
        np.copyto(w.U[access.result], old.astype(u32), where=w.mask)
        if access.size == 8:
            np.copyto(w.U[access.result + 1], (old >> u64(32)).astype(u32), where=w.mask)


def loaded(w: Waves, access: Access, register: int, value: Array) -> None:
    """Write the value of a load to a register of the active lanes."""
    if access.keeps:
        put_half(w.U[register], value.astype(u16), int(access.high), w.mask)
    else:
        np.copyto(w.U[register], value, where=w.mask)


def extended(value: Array, signed: bool) -> Array:
    """Extend 8 or 16 bits to 32, with zeros or with the sign."""
    if not signed:
        return value.astype(u32)
    return value.view(np.int8 if value.itemsize == 1 else np.int16).astype(np.int32).view(u32)


def _update(operation: str) -> Callable[..., Any]:
    """Return the function of an atomic: (old bits, given bits …) → new bits."""
    name = operation.split("_")[0]
    kind = ATOMICS[operation]
    if operation == "swap":
        return lambda old, new: new
    if operation == "cmpswap":
        # The lower register is the new value, the upper one the value to compare with.
        return lambda old, new, expected: new if old == expected else old
    if kind == "bf16":
        return _add_bf16_pair
    if kind == "f16":
        return lambda old, new: (np.array([old]).view(np.float16) + np.array([new]).view(np.float16)).view(u32)[0]
    if kind == "f32":
        return lambda old, new: (old.view(np.float32) + new.view(np.float32)).view(u32)
    if kind == "f64":
        return lambda old, low, high: (old.view(np.float64) + _joined(low, high).view(np.float64)).view(u64)
    if kind == "u64":
        return lambda old, low, high: old + _joined(low, high)
    functions: dict[str, Callable[..., Any]] = {
        "add": np.add,
        "sub": np.subtract,
        "smax": np.maximum,
        "smin": np.minimum,
        "umax": np.maximum,
        "umin": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    function = functions[name]
    if kind == "i32":
        return lambda old, new: function(old.view(np.int32), new.view(np.int32)).view(u32)
    return function


def _joined(low: Any, high: Any) -> Any:
    return u64(low) | (u64(high) << u64(32))


def _add_bf16_pair(old: Any, new: Any) -> Any:
    pair = np.array([[old & u32(0xFFFF), old >> u32(16)], [new & u32(0xFFFF), new >> u32(16)]], u32)
    values = (pair << u32(16)).view(np.float32)
    low, high = bf16_bits(values[0] + values[1])
    return u32(low | (high << u32(16)))
