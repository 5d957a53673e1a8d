"""gluonmap export: what a map knows, in the files of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.model.candidate import Config
    from gluonmap.model.space_map import SpaceMap

FORMATS = ("python", "triton-json", "aiter", "vllm", "kernel-tuner", "prune")
RACED = ("aiter", "vllm")
LIMITED = ("python", "triton-json", "prune")


class File(NamedTuple):
    """What is written, and what is said about it."""

    name: str
    text: str
    note: str = ""


@click.command(short_help="A map in the files of other tools.")
@click.argument("maps", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="For whom.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write, or a folder (of several maps it must be one); by default stdout.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most N configurations, spread over the space.")
@click.option("--probe-file", type=click.Path(path_type=Path), help="Probe file with EXPORT; by default the kernel's.")
@click.option(
    "--race",
    "races",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Records of races, one for each size M: their winners (aiter, vllm).",
)
def export(
    maps: Sequence[Path],
    form: str,
    out: Path | None,
    limit: int | None,
    probe_file: Path | None,
    races: Sequence[Path],
) -> None:
    """Write what MAPS know for other tools.

    \b
    gluonmap export reports/cdna4/gemm_mxfp4.gfx950.json --format python --limit 40 --out configs.py
    gluonmap export reports/cdna4/gemm_mxfp4.gfx950.json --format prune --out prune_gemm.py
    gluonmap export MAP.json --format aiter --race MAP.M16-N4096-K4096.race.json --race MAP.M4096-N4096-K4096.race.json
    """
    from gluonmap.model import codec

    if limit is not None and form not in LIMITED:
        raise click.UsageError(f"--limit goes with the formats {', '.join(LIMITED)}.")
    if races and (form not in RACED or len(maps) > 1):
        raise click.UsageError(f"--race goes with one map and the formats {', '.join(RACED)}.")
    written = []
    for path in maps:
        space = codec.read_map(path)
        written.append(_file(space, form, limit, probe_file, _winners(space, races)))
    folder = out is not None and (len(maps) > 1 or out.is_dir())
    if out is None and len(maps) > 1:
        raise UsageError(f"{len(maps)} maps are {len(maps)} files: name a folder for them with --out DIR.")
    if len({file.name for file in written}) < len(written):
        raise UsageError("two of the maps would be written to one file; export them one at a time with --out FILE.")
    for file in written:
        if out is None:
            click.echo(file.text.encode(), nl=False)
        else:
            path = out / file.name if folder else out
            codec.write(path, file.text.encode())
            click.echo(f"gluonmap: {path} written", err=True)
        if file.note:
            click.echo(f"gluonmap: {file.note}", err=True)


def _winners(space: SpaceMap, races: Sequence[Path]) -> dict[int, Config]:
    """The launch of each race's winner, by M.

    Raises:
        UsageError: a race of another kernel or target; one without M; two at one M.
    """
    from gluonmap.handoff.launches import launch_of, verified
    from gluonmap.model import codec

    found: dict[int, Config] = {}
    for path in races:
        record = codec.read_race(path)
        if (record.kernel, record.target) != (space.kernel, space.target):
            raise UsageError(
                f"{path} is a race of {record.kernel} on {record.target}, and the map is of {space.kernel} on "
                f"{space.target}."
            )
        size = record.shape.get("M")
        if not isinstance(size, int) or isinstance(size, bool) or size < 1 or size in found:
            raise UsageError(f"{path} was raced at M={size}: each race needs an M of its own, a whole number.")
        if record.winner.keys() - space.baseline.keys():
            raise UsageError(f"{path} was made with another map: its winner has knobs that this one has not.")
        config = {**space.baseline, **record.winner}
        if repr(config) not in {repr(entry.config) for entry in verified(space)}:
            raise UsageError(
                f"{path} was made with another map: its winner is none of the configurations that passed for this one. "
                f"Race this map:  gluonmap race {space.file}"
            )
        found[size] = launch_of(space, config)
    return found


def _file(space: SpaceMap, form: str, limit: int | None, probe_file: Path | None, winners: dict[int, Config]) -> File:
    stem = f"{space.kernel}.{space.target}"
    match form:
        case "python":
            from gluonmap.export import python

            return File(f"{stem}.configs.py".replace(".", "_", 2), python.render(space, limit))
        case "triton-json":
            from gluonmap.export import triton_json

            return File(f"{stem}.configs.json", triton_json.render(space, limit))
        case "kernel-tuner":
            from gluonmap.export import kernel_tuner

            return File(f"{stem}.kernel_tuner.py".replace(".", "_", 2), kernel_tuner.render(space))
        case "prune":
            from gluonmap.export import prune

            return File(f"{stem}.prune.py".replace(".", "_", 2), prune.render(space, limit))
        case "aiter":
            from gluonmap.export import aiter

            names = _names(space, "aiter", probe_file)
            if winners:
                return File(aiter.file_name(space, names), aiter.render(space, aiter.buckets(winners)))
            return File(aiter.file_name(space, names), aiter.render(space), aiter.comment(space))
    from gluonmap.export import vllm
    from gluonmap.export.aiter import comment

    names = _names(space, "vllm", probe_file)
    if winners:
        return File(vllm.file_name(space, names), vllm.render(space, names, winners))
    return File(vllm.file_name(space, names), vllm.render(space, names), comment(space))


def _names(space: SpaceMap, form: str, probe_file: Path | None) -> dict[str, Any]:
    """What the kernel's probe file says of a format's names."""
    from gluonmap.spec import probe_file as probefile

    path = probe_file or probefile.find_probe(Path(space.file).absolute(), Path.cwd())
    return probefile.read_probe(path, space.target).export.get(form, {}) if path else {}
