"""Options of commands that compile configurations of a stored map."""

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
    """Add the options that `opened` takes, and --python, to a command."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


_OPTIONS = (
    click.option(
        "--jobs", "-j", type=click.IntRange(1, 512), help="Candidates that run in parallel; by default one per core."
    ),
    click.option(
        "--deadline",
        type=click.FloatRange(min=0.1),
        default=120.0,
        show_default=True,
        metavar="SECONDS",
        help="Time limit of one candidate; after it the candidate is HUNG.",
    ),
    click.option("--memory", default="", metavar="SIZE", help="Memory limit of one candidate, such as 8G."),
    click.option("--python", default="", metavar="VENV", help="Environment whose Triton made the map."),
    click.option("--any-triton", is_flag=True, help="Use the map although another Triton made it."),
)


def opened(
    space: SpaceMap, *, jobs: int | None, deadline: float, memory: str, any_triton: bool
) -> AbstractContextManager[Recompiler]:
    """Return a context manager that compiles configurations of the map within the limits of the command line."""
    from gluonmap.probe.recompile import open_recompiler

    return open_recompiler(
        space, jobs or 0, deadline_s=deadline, memory_bytes=bytes_of(memory) if memory else 0, any_triton=any_triton
    )
