"""`gluonmap repeat`: compile one candidate of a map again, in a fresh interpreter on this terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gluonmap.cli import completion
from gluonmap.cli.option_values import values_by_name
from gluonmap.cli.reexec import become


@click.command(short_help="One candidate by hand, with all the compiler prints.")
@click.argument("map_file", type=click.Path(path_type=Path))
@click.argument("moves", nargs=-1, metavar="[KNOB=VALUE]…", shell_complete=completion.moves)
@click.option("--python", "python", default="", metavar="VENV", help="Environment whose Triton made the map.")
@click.option("--any-triton", is_flag=True, help="Use the map although another Triton made it.")
@click.option("--show", is_flag=True, help="Print the command of the fresh interpreter instead of running it.")
def repeat(map_file: Path, moves: Sequence[str], python: str, any_triton: bool, show: bool) -> None:
    """Repeat one candidate of MAP_FILE by hand: the baseline with KNOB=VALUE moved.

    The candidate runs in a fresh interpreter on this terminal, which shows all that the compiler prints. The exit
    status is the candidate's own: 0 pass, 10 rejected by the front end, 11 by a pass, 12 no resources, or its signal; 3
    no verdict. The candidate is taken to the same stage as in the map: 13 rejected at launch, 14 wrong, 15 crashed on
    the device, 16 unsafe, 17 no end, 20 skipped, 21 not executed.

    \b
    gluonmap repeat reports/cdna4/gemm_mxfp4.gfx950.json BLOCK_SIZE_M=128
    """
    if python:
        become(python)
    from gluonmap.model import codec
    from gluonmap.probe import rebuild
    from gluonmap.probe.recompile import check_triton

    wanted = values_by_name(moves, "KNOB=VALUE")
    space = codec.read_map(map_file)
    job = rebuild.job_of(space, wanted, execute=True)
    check_triton(space, any_triton=any_triton)
    if show:
        click.echo(rebuild.command_line(job))
    else:
        sys.exit(rebuild.run_in_fresh_interpreter(job, space, wanted))
