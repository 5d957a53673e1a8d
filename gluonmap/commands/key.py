"""gluonmap key: which arguments belong into the key of a kernel's autotuner."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.argument("kernel_file", type=click.Path(path_type=Path))
@click.option("--kernel", default="", metavar="NAME", help="Function to look at, where the file holds several.")
@click.option("--tuned", default="", metavar="NAME,…", help="The parameters that configurations set.")
@click.option("--probe-file", type=click.Path(path_type=Path), help="By default the one that bears the kernel's name.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def key(kernel_file: Path, kernel: str, tuned: str, probe_file: Path | None, as_json: bool) -> None:
    """Say which arguments of the kernel in KERNEL_FILE belong into `key=` of its autotuner, and why.

    Read from the text alone, the probe file's too: nothing is imported, compiled or timed.

    Exit codes: 0 said, 1 something is missing from an existing key, 2 usage.

    \b
    gluonmap key kernels/cdna3/gemm_bf16.py
    """
    from gluonmap import codec, probefile
    from gluonmap.keys import advise

    path = probe_file or probefile.find_probe(kernel_file.absolute(), Path.cwd())
    probe = probefile.read_probe(path, "") if path else probefile.ProbeFile()
    probe = probefile.restricted(probe, kernel) if kernel else probe
    names = [name.strip() for name in tuned.split(",") if name.strip()]
    told = advise(kernel_file, kernel, probe, names)
    if as_json:
        click.echo(codec.dumps(told), nl=False)
    else:
        from gluonmap.report import keyed

        click.echo(keyed.render(told), nl=False)
    sys.exit(1 if told.missing else 0)
