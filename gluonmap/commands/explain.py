"""gluonmap explain: why a configuration fails and what to change, or what matters at it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gluonmap.become import become
from gluonmap.commands import compiling
from gluonmap.options import pair, value_of

if TYPE_CHECKING:
    from gluonmap.ask import Asking
    from gluonmap.explain import Explanation
    from gluonmap.model import Config
    from gluonmap.space import SpaceMap


@click.command()
@click.argument("map_file", type=click.Path(path_type=Path))
@click.argument("moves", nargs=-1, metavar="[KNOB=VALUE]…")
@click.option("--no-compile", is_flag=True, help="Say only what the map knows.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@compiling.options
def explain(map_file: Path, moves: Sequence[str], no_compile: bool, as_json: bool, python: str, **limits: Any) -> None:
    """Explain one configuration of MAP_FILE: the baseline with KNOB=VALUE moved.

    Infeasible: the constraints that forbid it, the smallest part of it that fails, the nearest feasible configurations.
    Feasible: how that is known, and which knobs matter there. What the map does not know is compiled.

    Exit codes: 0 feasible, 1 infeasible, 2 usage, 3 unknown, or no answer could be had.

    \b
    gluonmap explain reports/cdna4/gemm_mxfp4.gfx950.json BLOCK_SIZE_M=128 num_warps=4
    """
    if python:
        become(python)
    from gluonmap import codec
    from gluonmap import explain as explaining
    from gluonmap.judge import Feasibility, Judge, Judgement, complete

    space = codec.read_map(map_file)
    config = complete(space, _moves(moves))
    judged = Judge(space)
    with contextlib.ExitStack() as stack:
        ask = None
        if not no_compile:
            opened: list[Asking] = []

            def ask(asked: Config) -> Judgement:
                """Compile one; the processes start with the first, for a map alone often has the answer."""
                if not opened:
                    opened.append(stack.enter_context(compiling.opened(space, **limits)))
                answer = opened[0].one(asked)
                return judged.answered(asked, answer, opened[0].place(answer))

        told = explaining.explained(judged, config, ask)
    if as_json:
        click.echo(codec.dumps(_document(space, map_file, told)).decode(), nl=False)
    else:
        from rich.console import Console

        from gluonmap.report import explained

        explained.render(space, str(map_file), told, Console())
    match told.judgement.verdict:
        case Feasibility.FEASIBLE:
            sys.exit(0)
        case Feasibility.INFEASIBLE:
            sys.exit(1)
        case Feasibility.UNKNOWN:
            sys.exit(3)


def _moves(texts: Sequence[str]) -> Config:
    found: Config = {}
    for name, value in (pair(text, "KNOB=VALUE") for text in texts):
        if name in found:
            raise click.UsageError(f"{name} is given twice.")
        found[name] = value_of(value)
    return found


def _document(space: SpaceMap, map_file: Path, told: Explanation) -> dict[str, object]:
    """The explanation with the command that repeats each configuration in it."""
    import msgspec

    from gluonmap.report.explained import repeat_command

    def repeat(config: Config) -> str:
        return repeat_command(space, str(map_file), config)

    nearest = [{**msgspec.to_builtins(item), "repeat": repeat(item.config)} for item in told.nearest]
    head = {"map": str(map_file), "kernel": space.kernel, "target": space.target, "repeat": repeat(told.config)}
    return {**head, **msgspec.to_builtins(told), "nearest": nearest}
