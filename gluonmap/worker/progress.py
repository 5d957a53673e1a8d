"""The line of the kernel that a child was compiling when it died, kept in shared memory.

LLVM's `abort()` names the cause but never the line. A slot is an anonymous mapping that exists before the fork: the
child writes, and the server reads it after the child's end.
"""

from __future__ import annotations

import mmap
import struct
import time
from typing import Any

from gluonmap.worker.protocol import Progress
from gluonmap.worker.reach import in_triton

_SIZE = 4096
_LINE = struct.Struct("<Ii")  # index of the function in the table, line of the file
_OWN_AT = 8  # the same for the last line outside Triton's own library
_TEXT_AT = 64
_PHASE_AT = 16
_PHASE_BYTES = 40
_CLOCK = struct.Struct("<d")
_CLOCK_AT = 56  # monotonic time since it has a device (positive) or waits for one (negative), in seconds; 0: neither
_ENTRY_BYTES = 224
_ENTRIES = (_SIZE - _TEXT_AT) // _ENTRY_BYTES


class Slot:
    """One child's page: a phase, a line, and a small table of the functions visited."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._entries: dict[tuple[str, str], int] = {}

    def phase(self, name: str) -> None:
        """Record that a phase has begun."""
        text = name.encode()[:_PHASE_BYTES]
        self._memory[_PHASE_AT : _PHASE_AT + _PHASE_BYTES] = text.ljust(_PHASE_BYTES, b"\0")

    def wait_for_device(self) -> None:
        """Record that this child waits for a device from now on. The wait does not count against its deadline."""
        self.phase("waiting for the device")
        _CLOCK.pack_into(self._memory, _CLOCK_AT, -time.monotonic())

    def begin_on_device(self) -> None:
        """Record that this child has a device for itself from now on."""
        _CLOCK.pack_into(self._memory, _CLOCK_AT, time.monotonic())

    def deadline(self, started: float, deadline_s: float, device_deadline_s: float) -> float | None:
        """Return the deadline of a child that began at `started`, in monotonic seconds; None while it waits."""
        (clock,) = _CLOCK.unpack_from(self._memory, _CLOCK_AT)
        if clock < 0:
            return None
        return float(clock) + device_deadline_s if clock else started + deadline_s

    def entry(self, file: str, function: str) -> int:
        """Return the index of a function in the table. If the table is full, further functions share the last entry."""
        key = (file, function)
        if key not in self._entries:
            index = min(len(self._entries), _ENTRIES - 1)
            self._entries[key] = index
            text = f"{file[-(_ENTRY_BYTES - 80) :]}\n{function[:70]}".encode()[:_ENTRY_BYTES]
            at = _TEXT_AT + index * _ENTRY_BYTES
            self._memory[at : at + _ENTRY_BYTES] = text.ljust(_ENTRY_BYTES, b"\0")
        return self._entries[key]

    def line(self, entry: int, line: int, own: bool = True) -> None:
        """Record the visited line. This is cheap, since the front end visits thousands of nodes.

        `own`: the line belongs to the kernel or its helper, not to one of Triton's library functions.
        """
        _LINE.pack_into(self._memory, _OWN_AT if own else 0, entry, line)

    def read(self) -> Progress:
        """Return the last record of the child."""
        entry, line = _LINE.unpack_from(self._memory, _OWN_AT)
        if not line:
            entry, line = _LINE.unpack_from(self._memory, 0)
        at = _TEXT_AT + min(entry, _ENTRIES - 1) * _ENTRY_BYTES
        text = self._memory[at : at + _ENTRY_BYTES].rstrip(b"\0").decode(errors="replace")
        file, _, function = text.partition("\n")
        phase = self._memory[_PHASE_AT : _PHASE_AT + _PHASE_BYTES].rstrip(b"\0").decode(errors="replace")
        (clock,) = _CLOCK.unpack_from(self._memory, _CLOCK_AT)
        return Progress(phase, file, function, line, clock > 0)


def follow_front_end(slot: Slot) -> None:
    """Patch Triton's code generator so that it records each visited line in `slot`.

    Triton has no hook for it (3.6 to 3.9). `begin_line` counts from 0, a node's line from 1.
    """
    from triton.compiler.code_generator import CodeGenerator  # weight of Triton

    visit = CodeGenerator.visit

    def noted(self: Any, node: Any) -> Any:
        line = getattr(node, "lineno", None)
        if line is not None:
            entry = self.__dict__.get("_gluonmap_entry")
            if entry is None:
                entry = self._gluonmap_entry = slot.entry(str(self.file_name), str(self.function_name))
                self._gluonmap_own = not in_triton(str(self.file_name))
            slot.line(entry, self.begin_line + line, self._gluonmap_own)
        return visit(self, node)

    CodeGenerator.visit = noted
