"""The trace of a run on the CPU, instruction by instruction, as tab-separated text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

HEAD = ("step", "waves", "pc", "line", "instruction")


class Trace:
    """A file with one row for each instruction that waves execute together. `step` counts the rows."""

    def __init__(self, path: str) -> None:
        self._file: IO[str] = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 (open until the run ends)
        self._file.write("\t".join(HEAD) + "\n")
        self._step = 0

    def __call__(self, block: Any, waves: Any) -> None:
        who = _ranges([int(number) for number in waves.ids])
        for instruction in block.instructions:
            line = os.path.basename(str(instruction.line or "")).split(" called from ")[0]
            text = " ".join(instruction.text.split())
            self._file.write(f"{self._step}\t{who}\t{instruction.pc}\t{line}\t{text}\n")
            self._step += 1

    def close(self) -> None:
        self._file.close()


def _ranges(numbers: list[int]) -> str:
    """Return numbers as ranges in ascending order, such as "0-3,7"."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][-1] == number - 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return ",".join("-".join(map(str, ends)) for ends in found)
