"""`gluonmap export`: write maps in the formats of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gluonmap.export.registry import EXPORTERS, Exporter, ExportRequest
from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.model.space_map import SpaceMap


def _takers(exporters: Mapping[str, Exporter], option: str) -> str:
    """Return the names of the formats that take an option."""
    return ", ".join(exporter.name for exporter in exporters.values() if option in exporter.options)


def export_command(exporters: Mapping[str, Exporter]) -> click.Command:
    """Return the command that offers these exporters."""
    described = "; ".join(f"{exporter.name}: {exporter.description}" for exporter in exporters.values())

    @click.command("export", short_help="A map in the files of other tools.")
    @click.argument("maps", nargs=-1, required=True, type=click.Path(path_type=Path))
    @click.option("--format", "form", type=click.Choice(list(exporters)), required=True, help=f"{described}.")
    @click.option(
        "--out",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="File or folder to write to; several maps need a folder. Without it the file goes to stdout.",
    )
    @click.option(
        "--limit",
        type=click.IntRange(1),
        metavar="N",
        help=f"At most N configurations, spread over the space ({_takers(exporters, '--limit')}).",
    )
    @click.option(
        "--probe-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Probe file with EXPORT; by default the kernel's ({_takers(exporters, '--probe-file')}).",
    )
    @click.option(
        "--race",
        "races",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Record of a race at one size M, whose winner is written ({_takers(exporters, '--race')}).",
    )
    def export(
        maps: Sequence[Path],
        form: str,
        out: Path | None,
        limit: int | None,
        probe_file: Path | None,
        races: Sequence[Path],
    ) -> None:
        """Write MAPS in the format of another tool.

        \b
        gluonmap export reports/cdna4/gemm_mxfp4.gfx950.json --format python --limit 40 --out configs.py
        gluonmap export reports/cdna4/gemm_mxfp4.gfx950.json --format prune --out prune_gemm.py
        gluonmap export MAP.json --format aiter --race MAP.M16-N4096.race.json --race MAP.M4096-N4096.race.json
        """
        exporter = exporters[form]
        if limit is not None and not exporter.takes_limit:
            raise click.UsageError(f"--limit goes with the formats {_takers(exporters, '--limit')}.")
        if races and (not exporter.takes_races or len(maps) > 1):
            raise click.UsageError(f"--race goes with one map and the formats {_takers(exporters, '--race')}.")
        _export(exporter, maps, out, limit, probe_file, races)

    return export


export = export_command(EXPORTERS)


def _export(
    exporter: Exporter,
    maps: Sequence[Path],
    out: Path | None,
    limit: int | None,
    probe_file: Path | None,
    races: Sequence[Path],
) -> None:
    """Render every map, and write the files only when all maps could be rendered."""
    from gluonmap.export.race_winners import read_winners
    from gluonmap.model import codec

    written = []
    for path in maps:
        space = codec.read_map(path)
        winners = read_winners(space, races)
        names = _names(space, exporter.name, probe_file) if exporter.named_by_probe_file else {}
        written.append(exporter.write(ExportRequest(space, limit, names, winners)))
    if out is None and len(maps) > 1:
        raise UsageError(f"{len(maps)} maps are {len(maps)} files: name a folder for them with --out DIR.")
    if len({file.name for file in written}) < len(written):
        raise UsageError("two of the maps would be written to one file; export them one at a time with --out FILE.")
    in_folder = out is not None and (len(maps) > 1 or out.is_dir())
    for file in written:
        if out is None:
            click.echo(file.text.encode(), nl=False)
        else:
            path = out / file.name if in_folder else out
            codec.write(path, file.text.encode())
            click.echo(f"gluonmap: {path} written", err=True)
        if file.note:
            click.echo(f"gluonmap: {file.note}", err=True)


def _names(space: SpaceMap, form: str, probe_file: Path | None) -> Mapping[str, Any]:
    """Return the format's entry in EXPORT of the kernel's probe file."""
    from gluonmap.spec import probe_file as probefile

    path = probe_file or probefile.find_probe(Path(space.file).absolute(), Path.cwd())
    return probefile.read_probe(path, space.target).export.get(form, {}) if path else {}
