"""Draw docs/images/map.svg: a terminal with the shortened output of `gluonmap report` for a bundled map.

python docs/picture.py
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

from gluonmap.model import codec
from gluonmap.report import terminal

ROOT = Path(__file__).resolve().parent.parent
MAP = "reports/cdna4/gemm_mxfp4.gfx950.json"
PICTURE = ROOT / "docs/images/map.svg"
COMMAND = "gluonmap probe kernels/cdna4/gemm_mxfp4.py --target gfx950"
COLUMNS = 116
PARTS = (("4 of 11 knobs matter", "● baseline"), ("When a knob matters", " - waves_per_eu"))
"""Beginnings of the first and last line of each part that the picture shows."""


def report() -> list[str]:
    """Return the lines of the report, with ANSI codes for their colours."""
    printed = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=COLUMNS, record=True)
    terminal.render(codec.read_map(ROOT / MAP), printed)
    return printed.export_text(styles=True).splitlines()


def shortened(lines: list[str]) -> list[str]:
    """Return the parts that the picture shows, with a line "…" for each gap."""
    plain = [Text.from_ansi(line).plain for line in lines]
    shown = ["…"]
    for first, last in PARTS:
        start = next(n for n, line in enumerate(plain) if line.startswith(first))
        end = next(n for n, line in enumerate(plain) if n >= start and line.startswith(last))
        shown += [*lines[start : end + 1], "…"]
    return shown


def draw() -> str:
    """Return the picture as SVG. It fetches no font: the viewer uses its own fixed-width font."""
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=COLUMNS, record=True)
    console.print(Text.assemble(("$ ", "bold green"), COMMAND))
    for line in shortened(report()):
        console.print(Text.from_ansi(line), no_wrap=True)
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="gluonmap", code_format=form, unique_id="map")


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(), encoding="utf-8")
    print(PICTURE)
