"""`gluonmap probe`: map a kernel for each target."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gluonmap.cli import map_output
from gluonmap.cli.json_output import print_one_or_list
from gluonmap.cli.kernel_options import flags, settings_of
from gluonmap.cli.option_values import names_of
from gluonmap.cli.reexec import become
from gluonmap.model.errors import UsageError
from gluonmap.model.outcomes import COMPILED

if TYPE_CHECKING:
    from gluonmap.model.space_map import SpaceMap


@click.command(short_help="Map a kernel: what fails, what is inert, what matters.")
@click.argument("kernel_file", type=click.Path(path_type=Path))
@flags(
    "target",
    "kernel",
    "sets",
    "domains",
    "config",
    "args",
    "derive",
    "grid",
    "regime",
    "probe_file",
    "stubs",
    "jobs",
    "deadline",
    "memory",
)
@click.option(
    "--depth",
    type=click.Choice(["singles", "joint", "deep"]),
    default="joint",
    show_default=True,
    help="singles: one knob at a time. joint: also all knobs together. deep: joint with five times the questions, for "
    "rare combinations.",
)
@click.option(
    "--budget",
    type=click.IntRange(0),
    metavar="N",
    help="Largest number of questions to learn from: by default 300, or 1500 if deep. Spaces of up to 150 "
    "configurations are asked whole.",
)
@click.option(
    "--validate",
    type=click.IntRange(0),
    metavar="N",
    help="Number of questions for the certificate: by default 200, or 600 if deep.",
)
@click.option(
    "--budget-seconds", "seconds", type=click.FloatRange(min=0), metavar="S", help="Time limit of the learning."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Confidence of the certificate.",
)
@flags("restrict")
@click.option(
    "--stage",
    type=click.Choice(["compile", "run", "launch", "check", "time"]),
    default="compile",
    show_default=True,
    help="How far single values and programs are taken. run: executed on the CPU (gfx942, gfx950), and compared with "
    "the probe file's reference or the baseline. launch, check, time: on this machine's GPU. All but compile need "
    "torch.",
)
@flags("sanitize", "thorough")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random draws.")
@flags("resume", "retry", "python", "out")
@click.option("--json", "as_json", is_flag=True, help="Print the map as JSON (several targets: a list).")
@flags("quiet")
def probe(kernel_file: Path, **options: Any) -> None:
    """Map KERNEL_FILE, one knob at a time and then all together.

    Exit codes: 0 map written, 1 the baseline fails, 2 usage, 3 fault, 130 interrupted (answers are kept).

    \b
    gluonmap probe kernels/cdna4/gemm_mxfp4.py --target gfx950
    gluonmap probe my_kernel.py -t cdna3 --arg a_ptr='*bf16' --set BLOCK_M=128
    """
    if options["python"]:
        become(options["python"])
    from gluonmap.cli.progress import ProgressDisplay
    from gluonmap.probe.each_target import probe_targets
    from gluonmap.probe.map_writer import StoredMap
    from gluonmap.probe.session import Interrupted

    settings = settings_of(kernel_file, options)
    wanted = names_of(*options["target"])
    if options["target"] and not wanted:
        raise UsageError("--target names no target; gluonmap targets lists them.")
    maps: list[SpaceMap] = []

    def deliver(stored: StoredMap) -> None:
        progress.rest()
        maps.append(stored.space)
        map_output.write_pages(stored.path, stored.space)
        if not options["as_json"]:
            map_output.render(stored.space)

    progress = ProgressDisplay(quiet=options["quiet"])
    try:
        with progress as listen:
            for stored in probe_targets(settings, wanted, listen):
                deliver(stored)
    except Interrupted as stop:
        if stop.stored is not None:
            deliver(stop.stored)
        raise
    finally:
        if options["as_json"] and maps:
            print_one_or_list(maps)
        elif len(maps) > 1:
            map_output.render_heads(maps)
    sys.exit(1 if any(space.outcome not in COMPILED for space in maps) else 0)
