"""`gluonmap report`: render stored maps again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gluonmap.cli import map_output
from gluonmap.cli.json_output import print_one_or_list
from gluonmap.model.errors import UsageError


@click.command(short_help="Render stored maps: terminal, Markdown, pages.")
@click.argument("maps", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--html", "site", type=click.Path(path_type=Path), metavar="DIR", help="Folder for one page per map, and an index."
)
@click.option("--json", "as_json", is_flag=True, help="Print the stored maps as JSON (several: a list).")
def report(maps: Sequence[Path], site: Path | None, as_json: bool) -> None:
    """Render stored MAPS again, by default all below reports/, and write their Markdown and HTML.

    \b
    gluonmap report reports/cdna4/gemm_mxfp4.gfx950.json
    gluonmap report --html site
    """
    from gluonmap.model import codec

    paths = list(maps) or sorted(p for p in Path("reports").rglob("*.json") if not p.name.endswith(".race.json"))
    if not paths:
        raise UsageError("there is no map below reports/. gluonmap probe KERNEL writes one.")
    spaces = [codec.read_map(path) for path in paths]
    if as_json:
        print_one_or_list(spaces)
    for path, space in zip(paths, spaces, strict=True):
        if not as_json:
            map_output.render(space)
        map_output.write_pages(path, space)
    if site is not None:
        from gluonmap.report.html.site import write_site

        click.echo(f"index: {write_site(site, list(zip(paths, spaces, strict=True)))}", err=True)
