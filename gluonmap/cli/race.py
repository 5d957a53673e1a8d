"""`gluonmap race`: the map's programs on this machine's GPU, with the standard autotuner, and what won."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gluonmap.cli.json_output import print_one_or_list
from gluonmap.cli.option_values import names_of, values_by_name
from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.model.candidate import Value
    from gluonmap.model.race_record import RaceRecord, Split
    from gluonmap.model.space_map import SpaceMap
    from gluonmap.spec.probe_file import ProbeFile


@click.command(short_help="Race a map's programs on this machine's GPU.")
@click.argument("kernel_or_map", type=click.Path(path_type=Path), metavar="KERNEL|MAP")
@click.option("--shape", default="", metavar="M=…,N=…", help="Sizes; by default those that the map was made with.")
@click.option(
    "--regimes",
    default="",
    metavar="NAME,NAME",
    help="Shapes of the probe file, each raced alone: does one list serve?",
)
@click.option("--kernel", default="", metavar="NAME", help="Function to race, where the file holds several.")
@click.option("--probe-file", type=click.Path(path_type=Path), help="Where `inputs` is; by default as for probe.")
@click.option(
    "--rounds", type=click.IntRange(6, 1000), default=40, show_default=True, help="Of the finals, interleaved."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Race no more than so many programs.")
@click.option("--plain", is_flag=True, help="Let Triton time each configuration in its own way.")
@click.option("--jobs", "-j", type=click.IntRange(1, 512), help="Compiles at once, before the race; one per core.")
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON (several shapes: a list).")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
def race(
    kernel_or_map: Path,
    shape: str,
    regimes: str,
    kernel: str,
    probe_file: Path | None,
    rounds: int,
    limit: int | None,
    plain: bool,
    jobs: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Race the programs of a map on this machine's GPU with the standard triton.autotune, then the fastest in rounds.

    A KERNEL is mapped first, as `gluonmap probe` does: what its journal knows is not compiled again. A MAP is raced as
    it is. A difference counts as a win only above the noise, which is measured on two runs of one program. The record
    is written beside the map. Exit codes: 0 raced, 2 usage, 3 fault.

    \b
    gluonmap race kernels/hopper/gemm_fp16.py --shape M=8192,N=8192,K=8192
    gluonmap race kernels/hopper/gemm_fp16.py --regimes decode,prefill
    """
    from gluonmap.probe import campaign
    from gluonmap.race import run as races
    from gluonmap.report import race as raced

    path, space = mapped(kernel_or_map, kernel, probe_file, jobs, quiet=quiet)
    found, probe = inputs_of(space, probe_file)
    moves = values_by_name(names_of(shape), "--shape")
    heats = _heats(names_of(regimes), moves, probe, found)
    line = races.line_up(
        space,
        found,
        heats,
        jobs=jobs or campaign.default_jobs(),
        rounds=rounds,
        plain=plain,
        limit=limit,
        tolerance=probe.tolerance,
    )
    finish = races.run(line)
    records = races.judged(line, finish)
    written = [_write(path, record) for record in records]
    several = races.split(line, finish) if len(records) > 1 else None
    if several:
        written += _write_split(path, space, several)
    if as_json:
        print_one_or_list([*records, several] if several else records)
        return
    for record in records:
        raced.render(record)
        click.echo()
    if several:
        raced.render_split(several)
    for file in written:
        click.echo(f"written: {file}")


def mapped(
    kernel_or_map: Path, kernel: str, probe_file: Path | None, jobs: int | None, *, quiet: bool
) -> tuple[Path, SpaceMap]:
    """The map to race, and its file: the one that is named; or the kernel's for this machine's device, made anew.

    Raises:
        UsageError: no device, or a map of another Triton than this one.
    """
    from gluonmap.cli.progress import Progress
    from gluonmap.model import codec
    from gluonmap.model.verdict import COMPILED
    from gluonmap.probe import campaign
    from gluonmap.runner import environment
    from gluonmap.spec.description_builder import Overrides

    if kernel_or_map.suffix == ".json":
        space = codec.read_map(kernel_or_map)
        here = environment.triton_version(environment.triton_folder())
        if here != space.triton:
            raise UsageError(
                f"the map was made with Triton {space.triton}, and this is {here}: what passed there may abort here. "
                f"gluonmap race {space.file} maps it here first."
            )
        return kernel_or_map, space
    most = jobs or campaign.default_jobs()
    settings = campaign.Settings(
        kernel_file=kernel_or_map,
        root=Path.cwd(),
        overrides=Overrides(kernel=kernel),
        probe_file=probe_file,
        jobs=most,
        memory_bytes=campaign.default_memory_bytes(most),
    )
    with Progress(quiet=quiet) as listen:
        stored = campaign.of_this_device(settings, listen)
    if stored.space.outcome not in COMPILED:
        raise UsageError(
            f"the baseline of {stored.space.kernel!r} is {stored.space.outcome} on {stored.space.target}: there is "
            f"nothing to race. gluonmap probe {kernel_or_map} says why."
        )
    return stored.path, stored.space


def inputs_of(space: SpaceMap, given: Path | None) -> tuple[Path, ProbeFile]:
    """The probe file that makes the tensors of a race.

    Raises:
        UsageError: there is none, or it has no `inputs`.
    """
    from gluonmap.spec import probe_file as probefile

    found = given or probefile.find_probe(Path(space.file).absolute(), Path.cwd())
    if found is None:
        raise UsageError(f"no probe file of {space.file} is here: its inputs() makes the tensors of a race.")
    probe = probefile.read_probe(found, space.target)
    if "inputs" not in probe.functions:
        raise UsageError(f"a race needs inputs(shape, config, device, seed) in {found} (docs/probe-files.md).")
    return found, probe


def _heats(
    names: list[str], moves: Mapping[str, Value], probe: ProbeFile, path: Path
) -> Mapping[str, Mapping[str, Value]]:
    """The sizes to race at, by name."""

    for name in names:
        if name not in probe.shapes:
            known = ", ".join(probe.shapes) or "none"
            raise UsageError(f"{path} has no regime {name!r} in SHAPES (it has {known}).")
    return {name: {**probe.shapes[name], **moves} for name in names} or {"": moves}


def _write(map_file: Path, record: RaceRecord) -> Path:
    from gluonmap.model import codec

    path = map_file.with_suffix(f".{_named(record.shape)}.race.json")
    codec.write(path, codec.dumps(record))
    return path


def _write_split(map_file: Path, space: SpaceMap, split: Split) -> list[Path]:
    from gluonmap.export import dispatch
    from gluonmap.model import codec

    record = map_file.with_suffix(f".{'-'.join(split.shapes)}.split.json")
    codec.write(record, codec.dumps(split))
    if not split.split:
        return [record]
    module = map_file.with_name(f"{map_file.stem.replace('.', '_')}_dispatch.py")
    codec.write(module, dispatch.render(space, split).encode())
    return [record, module]


def _named(shape: Mapping[str, object]) -> str:
    parts = [f"{name}{value}" for name, value in shape.items() if isinstance(value, int)]
    return "-".join(parts) or "default"
