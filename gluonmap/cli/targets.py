"""`gluonmap targets`: list the targets and their limits."""

from __future__ import annotations

import click


@click.command(short_help="The targets and their limits.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def targets(as_json: bool) -> None:
    """List the targets and their limits.

    \b
    gluonmap targets
    """
    from gluonmap.model import codec
    from gluonmap.model import targets as known

    heads = ("target", "alias", "vendor", "lanes per warp", "shared bytes", "threads", "options that are knobs")
    rows = [
        (t.name, t.alias, t.vendor, t.warp_size, t.shared_bytes, t.threads, list(t.option_domains))
        for t in known.TARGETS
    ]
    if as_json:
        names = [h.replace(" ", "_") for h in heads]
        click.echo(codec.dumps([dict(zip(names, row, strict=True)) for row in rows]), nl=False)
        return
    from tabulate import tabulate

    click.echo(tabulate([(*row[:4], f"{row[4]:,}", row[5], ", ".join(row[6])) for row in rows], heads))
