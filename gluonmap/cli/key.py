"""`gluonmap key`: report which arguments belong into the key of a kernel's autotuner."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gluonmap.cli.option_values import names_of, pair, values_of
from gluonmap.cli.race_inputs import inputs_of, map_to_race
from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.lint.key_advice import Advice
    from gluonmap.model.candidate import Value
    from gluonmap.model.race_record import Split


@click.command(short_help="Which arguments belong into the autotuner's key.")
@click.argument("kernel_file", type=click.Path(path_type=Path))
@click.option("--kernel", default="", metavar="NAME", help="Kernel to read, if the file has several.")
@click.option("--tuned", default="", metavar="NAME,…", help="Parameters that configurations set.")
@click.option(
    "--probe-file", type=click.Path(path_type=Path), help="Probe file; by default the one with the kernel's name."
)
@click.option(
    "--measure",
    multiple=True,
    metavar="NAME=V1,V2",
    help="On this machine's GPU: race at these values of an argument, and time each winner at the other values.",
)
@click.option(
    "--map", "map_file", type=click.Path(path_type=Path), help="Map to race; by default the kernel is mapped first."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def key(
    kernel_file: Path,
    kernel: str,
    tuned: str,
    probe_file: Path | None,
    measure: Sequence[str],
    map_file: Path | None,
    as_json: bool,
) -> None:
    """Report which arguments of the kernel in KERNEL_FILE belong into `key=` of its autotuner, and why.

    The command reads the text of the kernel and of its probe file. It imports, compiles and times nothing, except with
    --measure.

    Exit codes: 0 reported, 1 an existing key lacks an argument, 2 usage.

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
    advice = advise(kernel_file, kernel, probe, names)
    if wanted := [(name, values_of(values)) for name, values in (pair(text, "--measure") for text in measure)]:
        advice = msgspec.structs.replace(
            advice, measured=_measured(advice, map_file or kernel_file, probe_file, wanted)
        )
    if as_json:
        click.echo(codec.dumps(advice), nl=False)
    else:
        from gluonmap.report import key as keyed

        click.echo(keyed.render(advice), nl=False)
    sys.exit(1 if advice.missing else 0)


def _measured(
    advice: Advice, kernel_or_map: Path, probe_file: Path | None, wanted: Sequence[tuple[str, Sequence[Value]]]
) -> tuple[Split, ...]:
    """Race once for each argument, at its values and otherwise equal sizes.

    Raises:
        UsageError: the kernel has no such argument; there are fewer than two values; there is no device.
    """
    from gluonmap.probe.settings import default_jobs
    from gluonmap.race import lineup, results, run

    known = [item.name for item in advice.arguments]
    for name, values in wanted:
        if name not in known:
            raise UsageError(
                f"{advice.kernel} has no argument {name!r} that could be in a key (it has {', '.join(known)})."
            )
        if len({repr(value) for value in values}) < 2:
            raise UsageError(f"--measure {name} compares two values or more: --measure {name}=16,4096.")
    _, space = map_to_race(kernel_or_map, advice.kernel, probe_file, None, quiet=False)
    found, probe = inputs_of(space, probe_file)
    splits = []
    for name, values in wanted:
        heats = {f"{name}={value}": {name: value} for value in values}
        ready = lineup.line_up(space, found, heats, jobs=default_jobs(), tolerance=probe.tolerance)
        finish = run.run(ready)
        results.race_records(ready, finish)  # raises where the baseline's results are wrong
        splits.append(results.split(ready, finish))
    return tuple(splits)
