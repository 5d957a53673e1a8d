"""A map on the terminal, and its pages next to the file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gluonmap.model.space_map import SpaceMap


def render(space: SpaceMap) -> None:
    """Print a map. If the reader of stdout has gone (`| head`), go on with stdout sent to /dev/null."""
    from rich.console import Console

    from gluonmap.report import terminal

    class PipeConsole(Console):
        """A console that raises BrokenPipeError, where rich's own ends the process with exit code 1, a finding."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    try:
        terminal.render(space, PipeConsole(soft_wrap=False))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def render_heads(spaces: Sequence[SpaceMap]) -> None:
    """Print one sentence on each of several maps, below the maps themselves."""
    from rich.console import Console

    from gluonmap.report import terminal

    with contextlib.suppress(BrokenPipeError):
        terminal.render_heads(spaces, Console(soft_wrap=False))
        sys.stdout.flush()


def write_pages(map_file: Path, space: SpaceMap) -> None:
    """Write the map's Markdown and HTML next to it."""
    from gluonmap.model import codec
    from gluonmap.report import markdown
    from gluonmap.report.html.site import write_beside

    codec.write(map_file.with_suffix(".md"), markdown.render(space).encode())
    write_beside(map_file, space)
