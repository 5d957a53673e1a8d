"""The sanitizer: errors that hardware does not report, such as missing waits, data races and reads of unwritten memory.

Shadows of LDS hold, for each byte: the wave of the work-group that wrote it since the last barrier, and the one that
read it (its number plus 1; 255 for several readers); whether it was never written; whether an asynchronous copy to it
is in flight. Aligned dwords are checked through views of 32 bits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.access import Access
from gluonmap.cdna.findings import Findings, Kind
from gluonmap.cdna.memory import Memory
from gluonmap.cdna.program import MachineProgram
from gluonmap.cdna.state import LANES, Waves
from gluonmap.cdna.text import Instruction
from gluonmap.cdna.waits import Operation, OperationTrack

Array = npt.NDArray[Any]
u8, u32, i32, i64 = np.uint8, np.uint32, np.int32, np.int64
_FOUR = u32(0x01010101)
_SEVERAL_OF = {1: 0xFF, 4: 0xFFFFFFFF}
"""Size of a unit in bytes → mark of several readers."""


class _Shadow:
    """One byte for each byte of a memory, with a view by dwords."""

    def __init__(self, size: int, value: int = 0) -> None:
        self.bytes = np.full((size + 3) & ~3, value, u8)
        self.words = self.bytes.view(u32)


class Sanitizer:
    """An observer of a launch. It adds to `findings`."""

    def __init__(
        self,
        program: MachineProgram,
        memory: Memory,
        findings: Findings,
        lds_bytes: int,
        waves: int,
        unwritten: list[int],
        together: int = 1,
    ) -> None:
        """`waves`: waves of one work-group; `unwritten`: offsets of buffers without content; `together`: work-groups
        that run together, each with `lds_bytes`."""
        self.program, self.memory, self.findings = program, memory, findings
        self.waves, self.together = waves, together
        lds_bytes *= together
        self._shadows = _Shadow(lds_bytes), _Shadow(lds_bytes), _Shadow(lds_bytes, 1), _Shadow(lds_bytes)
        """Writers, readers, never written, target of a copy in flight."""
        self._global = np.ones(memory.bytes.nbytes, bool)
        self._empty = [b for b in memory.buffers if b.offset in unwritten]
        for buffer in self._empty:
            self._global[buffer.offset : buffer.offset + buffer.size] = False
        self._owner_of_word = np.zeros(memory.words.size, i32)
        self._owner_of_byte = np.zeros(memory.bytes.size, i32)
        self._current: Operation | None = None
        # A lock orders the writes of work-groups: one releases it through an atomic, another one takes it through a
        # later atomic.
        self._locks: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """Offset in memory → (time, work-group) of each atomic there that a single lane of a wave executed."""
        self._clock = 1
        locked = any(a.action == "atomic" and a.space != "lds" for a in program.accesses.values())
        self._written_at = np.zeros(memory.bytes.size, i32) if locked else None
        self._waited: Counter[tuple[int, str]] = Counter()

    # Waits

    def touch(self, w: Waves, instruction: Instruction, registers: frozenset[int]) -> None:
        """Check the waits before an instruction that reads `registers`, or writes them and is not a load."""
        for track in w.tracks:
            if track.pending and not registers.isdisjoint(track.pending):
                self._missing(track, instruction, min(registers & track.pending.keys()))

    def _missing(self, track: OperationTrack, instruction: Instruction, register: int) -> None:
        detail = f"{self.program.register_name(register)}, of an outstanding {track.pending[register].what}"
        self.findings.add(Kind.MISSING_WAIT, instruction, int(track.ids[0]), -1, detail)

    def issue(self, w: Waves, instruction: Instruction, access: Access | None, written: frozenset[int]) -> None:
        """Record a memory operation before it is issued."""
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
            # Loads of one counter return in order, so the value of the later load stays: no wait is needed between.
            late = [r for r in written & track.pending.keys() if not track.pending[r].before(operation)]
            if late:
                self._missing(track, instruction, min(late))
            track.issue(operation, self._landed)
            if access is not None and access.space == "flat":
                # Both counters count a flat access. Among the operations of LDS it has no order.
                track.issue(Operation(instruction.pc, "lgkmcnt", what, ordered=False), self._landed)

    def wait(self, w: Waves, pc: int, vmcnt: int | None, lgkmcnt: int | None) -> None:
        """Execute s_waitcnt."""
        for track in w.tracks:
            over = track.wait(vmcnt, lgkmcnt, self._landed)
            for counter, limit, count in zip(("vmcnt", "lgkmcnt"), (vmcnt, lgkmcnt), over, strict=True):
                if limit is not None:
                    self._waited[pc, counter] += count

    def idle_waits(self) -> tuple[tuple[int, str], ...]:
        """Return (pc, counter) of each wait that never had anything to wait for."""
        return tuple(sorted(where for where, count in self._waited.items() if not count))

    def barrier(self, w: Waves, instruction: Instruction) -> None:
        """Check s_barrier before it is executed."""
        for track in w.tracks:
            for operation in track.lgkmcnt:
                if operation.writes_lds:
                    text = self._text(operation.pc)
                    self.findings.add(Kind.BARRIER_WRITES, instruction, int(track.ids[0]), -1, f"of {text}")
                    break

    def release(self, groups: Array | None = None) -> None:
        """Clear the marks after a barrier: of all work-groups, or of `groups`, each of which is at its own barrier."""
        for shadow in self._shadows[:2]:
            if groups is None:
                shadow.bytes[:] = 0
            else:
                shadow.bytes.reshape(self.together, -1)[groups % self.together] = 0

    def fresh(self) -> None:
        """Reset the shadows of LDS: other work-groups begin."""
        for shadow, value in zip(self._shadows, (0, 0, 1, 0), strict=True):
            shadow.bytes[:] = value

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
        owners, cells, first, count = (
            (self._owner_of_word, self.memory.words, at >> 2, size // 4)
            if whole
            else (self._owner_of_byte, self.memory.bytes, at, size)
        )
        for k in range(count):
            unit = first + k
            before = owners[unit]
            owners[unit] = groups
            again, clash = (before != 0) & (before != groups), owners[unit] != groups
            if again.any() and self._written_at is not None:
                again &= ~self._ordered(before, groups, self._written_at[at + (4 * k if whole else k)], again)
            if not again.any() and not clash.any():
                continue
            value = _stored(w, access, active, k, whole)
            # Writing the value that is already there does no harm.
            bad = (again & (cells[unit] != value)) | (clash & _at_odds(value, unit))
            if bad.any():
                lanes = np.zeros(active.shape, bool)
                lanes[active] = bad
                other = before[bad][0] if again[bad][0] else owners[unit][bad][0]
                detail = f"work-groups {int(groups[bad][0]) - 1} and {int(other) - 1}"
                self.findings.add_lanes(Kind.GROUP_RACE, access.instruction, w.ids, lanes, detail)
        if self._written_at is not None:
            for k in range(size):
                self._written_at[at + k] = self._clock
        self._mark(at, size)

    def _ordered(self, before: Array, groups: Array, written_at: Array, again: Array) -> Array:
        """Return where a lock orders two writes.

        The earlier writer's work-group executed an atomic after its write, and the later writer's work-group then
        executed one at the same place.
        """
        result = np.zeros(again.shape, bool)
        known: dict[tuple[int, int, int], bool] = {}
        for i in np.flatnonzero(again):
            case = int(before[i]) - 1, int(groups[i]) - 1, int(written_at[i])
            if case not in known:
                known[case] = any(_handed_over(log, *case) for log in self._locks.values())
            result[i] = known[case]
        return result

    def global_atomic(self, w: Waves, access: Access, offsets: Array, active: Array) -> None:
        for wave in np.flatnonzero(active.sum(axis=1) == 1):
            self._clock += 1
            place = int(offsets[wave, active[wave].argmax()])
            self._locks[place].append((self._clock, int(w.ids[wave]) // self.waves))
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
        """Check an access of `access.size` bytes before it happens. `at`: offsets into the LDS of the whole launch."""
        places, tags = self._flat(w, at, active)
        if not len(places):
            return
        whole, first, count, tags = self._units(places, access.size, tags)
        writers, readers, unwritten, flying = (shadow.words if whole else shadow.bytes for shadow in self._shadows)
        # Atomics of several waves at one place are no data race.
        may_race = access.action != "atomic"
        for k in range(count):
            unit = first + k
            bad = _foreign(writers[unit], tags)
            if store:
                bad |= _foreign(readers[unit], tags)
                writers[unit] = tags
                clash = writers[unit] != tags
                if clash.any():
                    bad |= clash & _at_odds(_stored(w, access, active, k, whole), unit)
                unwritten[unit] = 0
            else:
                before = readers[unit]
                marks = np.where(_foreign(before, tags), before.dtype.type(_SEVERAL_OF[before.itemsize]), tags)
                readers[unit] = marks
                # If several waves read one place in one instruction, only the last one's mark is left.
                lost = readers[unit] != marks
                if lost.any():
                    readers[unit[lost]] = _SEVERAL_OF[before.itemsize]
                fresh = unwritten[unit] != 0
                if fresh.any():
                    self._add(Kind.LDS_UNWRITTEN, w, access, active, fresh)
            if may_race and bad.any():
                self._add(Kind.LDS_RACE, w, access, active, bad)
            in_flight = flying[unit] != 0
            if in_flight.any():
                self._add(Kind.ASYNC_UNLANDED, w, access, active, in_flight)

    def copy_issued(self, w: Waves, access: Access, at: Array, active: Array) -> None:
        """Record an issued copy to LDS. It may write at any time from now until it is waited for."""
        places, tags = self._flat(w, at, active)
        if not len(places):
            return
        waves = np.broadcast_to(w.ids[:, None], active.shape)[active]
        whole, first, count, tags = self._units(places, access.size, tags)
        writers, readers, unwritten, flying = (shadow.words if whole else shadow.bytes for shadow in self._shadows)
        for k in range(count):
            unit = first + k
            bad = _foreign(writers[unit], tags) | _foreign(readers[unit], tags)
            if bad.any():
                self._add(Kind.LDS_RACE, w, access, active, bad)
            unwritten[unit] = 0
            flying[unit] = _FOUR if whole else 1
        assert self._current is not None and self._current.landing is not None
        self._current.landing.append((waves, tags, whole, first, count))

    def _landed(self, operation: Operation, ids: Array) -> None:
        """Record a copy that the waves `ids` waited for. It counts as their write now."""
        for waves, tags, whole, first, count in operation.landing or ():
            writers, _, _, flying = (shadow.words if whole else shadow.bytes for shadow in self._shadows)
            mine = np.isin(waves, ids)
            for k in range(count):
                unit = (first + k)[mine]
                flying[unit] = 0
                writers[unit] = tags[mine]

    def _flat(self, w: Waves, at: Array, active: Array) -> tuple[Array, Array]:
        tags = np.broadcast_to((w.ids % self.waves + 1).astype(u8)[:, None], (w.count, LANES))
        if active.all():
            return at.reshape(-1), tags.reshape(-1)
        return at[active], tags[active]

    @staticmethod
    def _units(places: Array, size: int, tags: Array) -> tuple[bool, Array, int, Array]:
        """Return (whether units are dwords, first unit of each access, units per access, tags as wide as a unit)."""
        if size >= 4 and not (places & 3).any():
            return True, places >> 2, size // 4, tags.astype(u32) * _FOUR
        return False, places, size, tags

    def _add(self, kind: Kind, w: Waves, access: Access, active: Array, bad: Array) -> None:
        lanes = np.zeros(active.shape, bool)
        lanes[active] = bad
        self.findings.add_lanes(kind, access.instruction, w.ids, lanes)


def _handed_over(log: list[tuple[int, int]], earlier: int, later: int, time: int) -> bool:
    """Return whether work-group `earlier` executed an atomic of `log` after `time`, and `later` one after that."""
    released = next((t for t, group in log if group == earlier and t > time), None)
    return released is not None and any(group == later and t > released for t, group in log)


def _stored(w: Waves, access: Access, active: Array, step: int, whole: bool) -> Array:
    """Return the dword or byte number `step` of what the active lanes store."""
    if whole:
        return np.broadcast_to(w.U[access.data[0] + step], active.shape)[active]
    register = np.broadcast_to(w.U[access.data[0] + step // 4], active.shape)[active]
    shift = 8 * (step % 4) + (16 if access.high else 0)
    return ((register >> u32(shift)) & u32(255)).astype(u8)


def _at_odds(value: Array, unit: Array) -> bool:
    """Return whether lanes that write to one place in one instruction write different values there."""
    order = np.argsort(unit, kind="stable")
    same_place = unit[order][1:] == unit[order][:-1]
    return bool((same_place & (value[order][1:] != value[order][:-1])).any())


def _foreign(seen: Array, tags: Array) -> Array:
    """Return where marks belong to another wave than `tags`. A dword whose bytes differ is checked byte by byte."""
    bad = np.asarray((seen != 0) & (seen != tags))
    if seen.itemsize > 1 and bad.any():
        bytes_, own = seen[bad].view(u8).reshape(-1, 4), tags[bad].view(u8).reshape(-1, 4)
        bad[bad] = ((bytes_ != 0) & (bytes_ != own)).any(axis=1)
    return bad
