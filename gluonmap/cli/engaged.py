"""`gluonmap engaged`: report which kernels a program launches, and whether with configurations of their maps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click


@click.command(
    context_settings={"allow_interspersed_args": False}, short_help="Whether a program launches what was tuned."
)
@click.option("--map", "maps", multiple=True, type=click.Path(path_type=Path), help="Map of a kernel that must run.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the launches as JSON."
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def engaged(maps: Sequence[Path], json_file: Path | None, command: Sequence[str]) -> None:
    """Run COMMAND unchanged, and report on stderr which kernels it launched, how often and with which configurations.

    Exit codes: 1 if a mapped kernel ran with a configuration that is not on its map's list, or never ran; else the
    command's own (128 + N if signal N ended it); 2 usage.

    \b
    gluonmap engaged --map reports/rmsnorm.gfx942.json -- python serve.py --port 8000
    """
    from gluonmap.launches import compare, run
    from gluonmap.model import codec
    from gluonmap.report import engaged as launched

    spaces = [codec.read_map(path) for path in maps]
    ended = run(command)
    verdicts = compare(ended.recorded, spaces)
    click.echo(launched.render(ended, verdicts), err=True, nl=False)
    if json_file is not None:
        document = {
            "command": list(command),
            "exit_status": ended.status,
            "tuned": all(verdict.tuned for verdict in verdicts) if verdicts else None,
            "maps": verdicts,
            "recorded": ended.recorded,
        }
        codec.write(json_file, codec.dumps(document))
    sys.exit(1 if any(not verdict.tuned for verdict in verdicts) else ended.code)
