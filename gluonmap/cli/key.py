"""gluonmap key: which arguments belong into the key of a kernel's autotuner."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gluonmap.cli.option_values import names_of, pair, values_of
from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.lint.key_advice import Advice
    from gluonmap.model.candidate import Value
    from gluonmap.model.race_record import Split


@click.command(short_help="Which arguments belong into the autotuner's key.")
@click.argument("kernel_file", type=click.Path(path_type=Path))
@click.option("--kernel", default="", metavar="NAME", help="Function to look at, where the file holds several.")
@click.option("--tuned", default="", metavar="NAME,…", help="The parameters that configurations set.")
@click.option("--probe-file", type=click.Path(path_type=Path), help="By default the one that bears the kernel's name.")
@click.option(
    "--measure",
    multiple=True,
    metavar="NAME=V1,V2",
    help="On this machine's GPU: race at these values of an argument, and serve each the others' winner.",
)
@click.option("--map", "map_file", type=click.Path(path_type=Path), help="What is raced; by default KERNEL is mapped.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def key(
    kernel_file: Path,
    kernel: str,
    tuned: str,
    probe_file: Path | None,
    measure: Sequence[str],
    map_file: Path | None,
    as_json: bool,
) -> None:
    """Say which arguments of the kernel in KERNEL_FILE belong into `key=` of its autotuner, and why.

    Read from the text alone, the probe file's too: nothing is imported, compiled or timed, but what --measure names.

    Exit codes: 0 said, 1 something is missing from an existing key, 2 usage.

    \b
    gluonmap key kernels/cdna3/gemm_bf16.py
    gluonmap key kernels/hopper/gemm_fp16.py --measure M=16,4096
    """
    import msgspec

    from gluonmap.lint.key_advice import advise
    from gluonmap.model import codec
    from gluonmap.spec import probe_file as probefile

    path = probe_file or probefile.find_probe(kernel_file.absolute(), Path.cwd())
    probe = probefile.read_probe(path, "") if path else probefile.ProbeFile()
    probe = probe.for_kernel(kernel) if kernel else probe
    names = names_of(tuned)
    told = advise(kernel_file, kernel, probe, names)
    if wanted := [(name, values_of(values)) for name, values in (pair(text, "--measure") for text in measure)]:
        told = msgspec.structs.replace(told, measured=_measured(told, map_file or kernel_file, probe_file, wanted))
    if as_json:
        click.echo(codec.dumps(told), nl=False)
    else:
        from gluonmap.report import key as keyed

        click.echo(keyed.render(told), nl=False)
    sys.exit(1 if told.missing else 0)


def _measured(
    told: Advice, kernel_or_map: Path, probe_file: Path | None, wanted: Sequence[tuple[str, Sequence[Value]]]
) -> tuple[Split, ...]:
    """One race for each argument, at its values, all else equal.

    Raises:
        UsageError: no argument of this name; fewer than two values; no device.
    """
    from gluonmap.cli.race import inputs_of, mapped
    from gluonmap.probe import campaign
    from gluonmap.race import run as races

    known = [item.name for item in told.arguments]
    for name, values in wanted:
        if name not in known:
            raise UsageError(
                f"{told.kernel} has no argument {name!r} that could be in a key (it has {', '.join(known)})."
            )
        if len({repr(value) for value in values}) < 2:
            raise UsageError(f"--measure {name} compares two values or more: --measure {name}=16,4096.")
    _, space = mapped(kernel_or_map, told.kernel, probe_file, None, quiet=False)
    found, probe = inputs_of(space, probe_file)
    splits = []
    for name, values in wanted:
        heats = {f"{name}={value}": {name: value} for value in values}
        line = races.line_up(space, found, heats, jobs=campaign.default_jobs(), tolerance=probe.tolerance)
        finish = races.run(line)
        races.judged(line, finish)  # stops where the baseline is wrong
        splits.append(races.split(line, finish))
    return tuple(splits)
