"""`gluonmap run`: compile one configuration of a kernel and execute it on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from gluonmap.cli.json_output import print_one_or_list
from gluonmap.cli.kernel_options import flags, settings_of
from gluonmap.cli.option_values import names_of, values_by_name
from gluonmap.cli.reexec import become
from gluonmap.model.errors import UsageError
from gluonmap.model.outcomes import Outcome

_TAKEN = (
    *("target", "kernel", "sets", "config", "args", "derive", "grid", "regime", "probe_file"),
    *("stubs", "deadline", "memory", "sanitize", "thorough", "python", "quiet"),
)
"""Options that this command shares with `gluonmap probe`."""


@click.command(short_help="One configuration executed on the CPU, its numbers compared.")
@click.argument("kernel_file", type=click.Path(path_type=Path))
@flags(
    *_TAKEN,
    target="Targets to run for, one after the other: gfx942, gfx950; by default those that the kernel's API allows.",
)
@click.option("--shape", default="", metavar="M=…,N=…", help="Sizes to run at; by default small and ragged ones.")
@click.option(
    "--dump-trace",
    "trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write every executed instruction to a file, as tab-separated text (one target).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (several targets: a list).")
def run(kernel_file: Path, shape: str, trace: Path | None, as_json: bool, **options: Any) -> None:
    """Execute one configuration of KERNEL_FILE on the CPU and compare its results. No GPU is needed.

    The machine code for gfx942 or gfx950 runs on the probe file's inputs at small sizes. Its results are compared with
    the probe file's reference. The configuration is the probe file's baseline, changed by --set and --config.

    Exit codes: 0 right on these inputs under this model of the hardware; 1 wrong, unsafe, not executed or not compiled;
    2 usage; 3 fault.

    \b
    gluonmap run kernels/cdna3/gemm_bf16.py --set BLOCK_M=64 --set num_warps=2 --target gfx942
    gluonmap run kernels/rmsnorm.py --sanitize
    """
    if options["python"]:
        become(options["python"])
    from rich.console import Console

    from gluonmap.cli.progress import ProgressDisplay
    from gluonmap.probe.each_target import execute_on_targets
    from gluonmap.report import run as executed

    sizes = values_by_name(names_of(shape), "--shape")
    wanted = names_of(*options["target"])
    if trace is not None and len(wanted) != 1:
        raise UsageError("--dump-trace writes the trace of one target: name it with --target.")
    settings = settings_of(kernel_file, {**options, "stage": "run", "jobs": 1, "out": None})
    found: list[executed.Executed] = []
    progress = ProgressDisplay(quiet=options["quiet"])
    with progress as listen:
        for ran in execute_on_targets(settings, wanted, listen, sizes, trace):
            progress.rest()
            found.append(executed.of(ran))
            if not as_json:
                executed.render(found[-1], Console(), first=len(found) == 1)
    if as_json:
        print_one_or_list(found)
    sys.exit(0 if all(item.outcome == Outcome.PASS for item in found) else 1)
