"""The options of commands that compile configurations of a stored map, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gluonmap.cli.option_values import bytes_of

if TYPE_CHECKING:
    from gluonmap.model.space_map import SpaceMap
    from gluonmap.probe.recompile import Recompiler

Command = TypeVar("Command", bound=Callable[..., Any])


def options(command: Command) -> Command:
    """Give a command the options that `opened` takes, and --python."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


_OPTIONS = (
    click.option("--jobs", "-j", type=click.IntRange(1, 512), help="Candidates at once; by default one per core."),
    click.option(
        "--deadline",
        type=click.FloatRange(min=0.1),
        default=120.0,
        show_default=True,
        metavar="SECONDS",
        help="After it a candidate is HUNG.",
    ),
    click.option("--memory", default="", metavar="SIZE", help="Memory of one candidate, such as 8G."),
    click.option("--python", default="", metavar="VENV", help="The environment whose Triton made the map."),
    click.option("--any-triton", is_flag=True, help="Go on although another Triton made the map."),
)


def opened(
    space: SpaceMap, *, jobs: int | None, deadline: float, memory: str, any_triton: bool
) -> AbstractContextManager[Recompiler]:
    """What compiles configurations of the map within the limits that the command line gives."""
    from gluonmap.probe.recompile import open_recompiler

    return open_recompiler(
        space, jobs or 0, deadline_s=deadline, memory_bytes=bytes_of(memory) if memory else 0, any_triton=any_triton
    )
