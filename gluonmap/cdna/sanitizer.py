"""Watches a run for what hardware would not tell: missing waits, races, reads of what nobody wrote.

Shadows of LDS hold, for each byte, which wave of the work-group wrote and read it since the last barrier (its number
plus 1, 255 for several readers), whether it was ever written, and whether an asynchronous copy to it is under way.
Whole dwords are looked at through views of 32 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.access import Access
from gluonmap.cdna.findings import Findings, Kind
from gluonmap.cdna.memory import Memory
from gluonmap.cdna.program import SCALAR, Program
from gluonmap.cdna.state import LANES, Waves
from gluonmap.cdna.text import Instruction
from gluonmap.cdna.waits import Operation, Track

Array = npt.NDArray[Any]
u8, u32, i32, i64 = np.uint8, np.uint32, np.int32, np.int64
_FOUR = u32(0x01010101)
_SEVERAL = 255


class _Shadow:
    """One byte for each byte of a memory, and the same by dwords."""

    def __init__(self, size: int, value: int = 0) -> None:
        self.bytes = np.full((size + 3) & ~3, value, u8)
        self.words = self.bytes.view(u32)


class Sanitizer:
    """Collects what it sees in `findings`."""

    def __init__(
        self, program: Program, memory: Memory, findings: Findings, lds_bytes: int, waves: int, unwritten: list[int]
    ) -> None:
        """`waves`: of one work-group; `unwritten`: offsets of buffers that hold nothing yet."""
        self.program, self.memory, self.findings = program, memory, findings
        self.waves = waves
        self._writer, self._reader = _Shadow(lds_bytes), _Shadow(lds_bytes)
        self._unwritten, self._flying = _Shadow(lds_bytes, 1), _Shadow(lds_bytes)
        self._global = np.ones(memory.bytes.nbytes, bool)
        self._empty = [b for b in memory.buffers if b.offset in unwritten]
        for buffer in self._empty:
            self._global[buffer.offset : buffer.offset + buffer.size] = False
        self._owner_of_word = np.zeros(memory.words.size, i32)
        self._owner_of_byte = np.zeros(memory.bytes.size, i32)
        self._current: Operation | None = None

    # Waits

    def touch(self, w: Waves, instruction: Instruction, registers: frozenset[int]) -> None:
        """Before an instruction that reads or writes `registers`."""
        for track in w.tracks:
            if track.pending and not registers.isdisjoint(track.pending):
                register = min(registers & track.pending.keys())
                operation = track.pending[register]
                name = self.program.register_name(register)
                detail = f"{name}, of an outstanding {operation.what}"
                self.findings.add(Kind.MISSING_WAIT, instruction, int(track.ids[0]), -1, detail)

    def issue(self, w: Waves, instruction: Instruction, access: Access | None, written: frozenset[int]) -> None:
        """Before a memory operation is issued."""
        scalar = access is not None and access.space == "scalar"
        lds = access is None or access.space == "lds"
        store = access is not None and access.action in ("store", "atomic")
        what = " ".join(
            (
                "LDS" if lds else access.space if access is not None else "",
                "copy to LDS" if access is not None and access.to_lds else "store" if store and not written else "load",
            )
        )
        operation = Operation(
            instruction.pc,
            "lgkmcnt" if lds or scalar else "vmcnt",
            what,
            written,
            ordered=not scalar,
            writes_lds=lds and store,
            landing=[] if access is not None and access.to_lds else None,
        )
        self._current = operation
        for track in w.tracks:
            track.issue(operation, self._landed)

    def wait(self, w: Waves, vmcnt: int | None, lgkmcnt: int | None) -> None:
        """s_waitcnt."""
        for track in w.tracks:
            track.wait(vmcnt, lgkmcnt, self._landed)

    def barrier(self, w: Waves, instruction: Instruction) -> None:
        """Before s_barrier."""
        for track in w.tracks:
            for operation in track.lgkmcnt:
                if operation.writes_lds:
                    text = self._text(operation.pc)
                    self.findings.add(Kind.BARRIER_WRITES, instruction, int(track.ids[0]), -1, f"of {text}")
                    break

    def release(self) -> None:
        """All waves have met at a barrier."""
        self._writer.bytes[:] = 0
        self._reader.bytes[:] = 0

    def _text(self, pc: int) -> str:
        return self.program.code.instructions[pc].text

    # Global memory

    def global_read(self, w: Waves, access: Access, offsets: Array, active: Array) -> None:
        if not self._empty or not self._near_empty(offsets, access.size):
            return
        known = self._global[offsets] & self._global[offsets + (access.size - 1)]
        bad = active & ~known
        if bad.any():
            self.findings.add_lanes(Kind.GLOBAL_UNWRITTEN, access.instruction, w.ids, bad)

    def global_write(self, w: Waves, access: Access, offsets: Array, active: Array) -> None:
        size = access.size
        at = offsets[active]
        groups = np.broadcast_to((w.ids // self.waves + 1).astype(i32)[:, None], active.shape)[active]
        whole = size >= 4 and not (at & 3).any()
        owners, first, count = (self._owner_of_word, at >> 2, size // 4) if whole else (self._owner_of_byte, at, size)
        for k in range(count):
            before = owners[first + k]
            owners[first + k] = groups
            bad = ((before != 0) & (before != groups)) | (owners[first + k] != groups)
            if bad.any():
                lanes = np.zeros(active.shape, bool)
                lanes[active] = bad
                other = before[bad][0] or owners[first + k][bad][0]
                detail = f"work-groups {int(groups[bad][0]) - 1} and {int(other) - 1}"
                self.findings.add_lanes(Kind.GROUP_RACE, access.instruction, w.ids, lanes, detail)
        self._mark(at, size)

    def global_atomic(self, w: Waves, access: Access, offsets: Array, active: Array) -> None:
        self.global_read(w, access, offsets, active)
        self._mark(offsets[active], access.size)

    def _mark(self, at: Array, size: int) -> None:
        if self._empty:
            for k in range(size):
                self._global[at + k] = True

    def _near_empty(self, offsets: Array, size: int) -> bool:
        low, high = int(offsets.min()), int(offsets.max()) + size
        return any(low < b.offset + b.size and b.offset < high for b in self._empty)

    # LDS

    def lds(self, w: Waves, access: Access, at: Array, active: Array, store: bool) -> None:
        """Before lanes access `access.size` bytes at `at`, places in the LDS of the whole launch."""
        places, tags = self._flat(w, at, active)
        if not len(places):
            return
        whole, first, count, tags = self._units(places, access.size, tags)
        atomic = access.action == "atomic"
        for k in range(count):
            unit = first + k
            writer = (self._writer.words if whole else self._writer.bytes)[unit]
            bad = (writer != 0) & (writer != tags)
            if store:
                reader = (self._reader.words if whole else self._reader.bytes)[unit]
                bad |= (reader != 0) & (reader != tags)
                writers = self._writer.words if whole else self._writer.bytes
                writers[unit] = tags
                clash = writers[unit] != tags
                if clash.any() and not atomic:
                    self._report_clash(w, access, active, clash, unit, whole, k)
                (self._unwritten.words if whole else self._unwritten.bytes)[unit] = 0
            else:
                self._read_checks(w, access, active, unit, whole, tags)
            if bad.any() and not atomic:
                self._report_race(w, access, active, bad, unit, whole, tags, writer, store, k)
            flying = (self._flying.words if whole else self._flying.bytes)[unit]
            if flying.any():
                self._add(Kind.ASYNC_UNLANDED, w, access, active, flying != 0)

    def copy_issued(self, w: Waves, access: Access, at: Array, active: Array) -> None:
        """A copy to LDS was issued: it may write any time from now on, and has written once it is waited for."""
        places, tags = self._flat(w, at, active)
        if not len(places):
            return
        waves = np.broadcast_to(w.ids[:, None], active.shape)[active]
        whole, first, count, tags = self._units(places, access.size, tags)
        for k in range(count):
            unit = first + k
            for shadow in (self._writer, self._reader):
                seen = (shadow.words if whole else shadow.bytes)[unit]
                bad = (seen != 0) & (seen != tags)
                if bad.any():
                    self._report_race(w, access, active, bad, unit, whole, tags, seen, True, -1)
            (self._unwritten.words if whole else self._unwritten.bytes)[unit] = 0
            (self._flying.words if whole else self._flying.bytes)[unit] = _FOUR if whole else 1
        assert self._current is not None and self._current.landing is not None
        self._current.landing.append((places, waves, tags, whole, first, count))

    def _landed(self, operation: Operation, ids: Array) -> None:
        """A copy of the waves `ids` was waited for: it counts as their write now."""
        for _, waves, tags, whole, first, count in operation.landing or ():
            mine = np.isin(waves, ids)
            for k in range(count):
                unit = (first + k)[mine]
                (self._flying.words if whole else self._flying.bytes)[unit] = 0
                (self._writer.words if whole else self._writer.bytes)[unit] = tags[mine]

    def _read_checks(self, w: Waves, access: Access, active: Array, unit: Array, whole: bool, tags: Array) -> None:
        readers = self._reader.words if whole else self._reader.bytes
        before = readers[unit]
        other = (before != 0) & (before != tags)
        # Several waves of one instruction may read one place: what was stored last is not all.
        readers[unit] = np.where(other, u32(0xFFFFFFFF) if whole else u8(_SEVERAL), tags)
        lost = readers[unit] != np.where(other, u32(0xFFFFFFFF) if whole else u8(_SEVERAL), tags)
        if lost.any():
            readers[unit[lost]] = u32(0xFFFFFFFF) if whole else u8(_SEVERAL)
        unwritten = (self._unwritten.words if whole else self._unwritten.bytes)[unit]
        if unwritten.any():
            self._add(Kind.LDS_UNWRITTEN, w, access, active, unwritten != 0)

    def _flat(self, w: Waves, at: Array, active: Array) -> tuple[Array, Array]:
        tags = np.broadcast_to((w.ids % self.waves + 1).astype(u8)[:, None], (w.count, LANES))
        if active.all():
            return at.reshape(-1), tags.reshape(-1)
        return at[active], tags[active]

    @staticmethod
    def _units(places: Array, size: int, tags: Array) -> tuple[bool, Array, int, Array]:
        """Dwords or bytes: which, the first of each access, how many, and the tags in that width."""
        if size >= 4 and not (places & 3).any():
            return True, places >> 2, size // 4, tags * _FOUR
        return False, places, size, tags

    def _report_race(
        self,
        w: Waves,
        access: Access,
        active: Array,
        bad: Array,
        unit: Array,
        whole: bool,
        tags: Array,
        writer: Array,
        store: bool,
        step: int,
    ) -> None:
        """A dword whose bytes are of different state may look like a race: look at the bytes."""
        del writer
        places = (unit[bad] * 4)[:, None] + np.arange(4) if whole else unit[bad][:, None]
        mine = (tags[bad] & 255).astype(u8)[:, None]
        # The writer's shadow already holds this store, so only readers are left to look at; what it held came in `bad`.
        readers = self._reader.bytes[places]
        real = ((readers != 0) & (readers != mine)).any(axis=1) if store else np.zeros(len(places), bool)
        del step
        if not whole or not store:
            real = np.ones(len(places), bool)
        lanes = bad.copy()
        lanes[bad] = real
        if lanes.any():
            self._add(Kind.LDS_RACE, w, access, active, lanes)

    def _report_clash(
        self, w: Waves, access: Access, active: Array, clash: Array, unit: Array, whole: bool, step: int
    ) -> None:
        """Waves that write one place in one instruction are at odds where they write different values."""
        register = access.data[0] + (step if whole else 0)
        value = np.broadcast_to(w.U[register], active.shape)[active]
        order = np.argsort(unit, kind="stable")
        same_place = unit[order][1:] == unit[order][:-1]
        differs = value[order][1:] != value[order][:-1]
        if (same_place & differs).any():
            self._add(Kind.LDS_RACE, w, access, active, clash)

    def _add(self, kind: Kind, w: Waves, access: Access, active: Array, bad: Array) -> None:
        lanes = np.zeros(active.shape, bool)
        lanes[active] = bad
        self.findings.add_lanes(kind, access.instruction, w.ids, lanes)


def fresh_track(ids: Array) -> Track:
    """Nothing outstanding."""
    return Track(ids)


__all__ = ["SCALAR", "Sanitizer", "fresh_track"]
