"""Which line of the kernel a child was compiling when it died, told through shared memory.

LLVM's `abort()` says what it disliked, never where. A slot is an anonymous mapping made before the fork: the child
writes, the server reads what is left after any death.
"""

from __future__ import annotations

import mmap
import struct
import time
from typing import Any

from gluonmap.worker.protocol import Progress
from gluonmap.worker.reach import in_triton

_SIZE = 4096
_LINE = struct.Struct("<Ii")  # which function of the table, line of the file
_OWN_AT = 8  # the same, for the last line outside Triton's own library
_TEXT_AT = 64
_PHASE_AT = 16
_PHASE_BYTES = 40
_CLOCK = struct.Struct("<d")
_CLOCK_AT = 56  # monotonic seconds: since when it has a device (positive) or waits for one (negative); 0: neither
_ENTRY_BYTES = 224
_ENTRIES = (_SIZE - _TEXT_AT) // _ENTRY_BYTES


class Slot:
    """One child's page: a phase, a line, and a small table of the functions visited."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._entries: dict[tuple[str, str], int] = {}

    def phase(self, name: str) -> None:
        """Note that a phase has begun."""
        text = name.encode()[:_PHASE_BYTES]
        self._memory[_PHASE_AT : _PHASE_AT + _PHASE_BYTES] = text.ljust(_PHASE_BYTES, b"\0")

    def wait_for_device(self) -> None:
        """Note that from now on this child waits for a device: the time does not count."""
        self.phase("waiting for the device")
        _CLOCK.pack_into(self._memory, _CLOCK_AT, -time.monotonic())

    def begin_on_device(self) -> None:
        """Note that from now on this child has a device for itself."""
        _CLOCK.pack_into(self._memory, _CLOCK_AT, time.monotonic())

    def deadline(self, started: float, deadline_s: float, device_deadline_s: float) -> float | None:
        """When a child that started then has to be at its end, in monotonic seconds; None while it waits its turn."""
        (clock,) = _CLOCK.unpack_from(self._memory, _CLOCK_AT)
        if clock < 0:
            return None
        return float(clock) + device_deadline_s if clock else started + deadline_s

    def entry(self, file: str, function: str) -> int:
        """Index of a function in the table; the table's last place is shared once it is full."""
        key = (file, function)
        if key not in self._entries:
            index = min(len(self._entries), _ENTRIES - 1)
            self._entries[key] = index
            text = f"{file[-(_ENTRY_BYTES - 80) :]}\n{function[:70]}".encode()[:_ENTRY_BYTES]
            at = _TEXT_AT + index * _ENTRY_BYTES
            self._memory[at : at + _ENTRY_BYTES] = text.ljust(_ENTRY_BYTES, b"\0")
        return self._entries[key]

    def line(self, entry: int, line: int, own: bool = True) -> None:
        """Note the line that is being visited: cheap, since the front end visits thousands of nodes.

        `own`: it is the kernel's or its helper's, not one of Triton's library functions.
        """
        _LINE.pack_into(self._memory, _OWN_AT if own else 0, entry, line)

    def read(self) -> Progress:
        """What the child noted last."""
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
    """Patch Triton's code generator so that each visited line is noted in `slot`.

    There is no hook for it (3.6 to 3.9). `begin_line` counts from 0, a node's line from 1.
    """
    from triton.compiler.code_generator import CodeGenerator

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
