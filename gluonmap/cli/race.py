"""`gluonmap race`: race the programs of a map on this machine's GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gluonmap.cli.json_output import print_one_or_list
from gluonmap.cli.option_values import names_of, values_by_name
from gluonmap.cli.race_inputs import inputs_of, map_to_race
from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.model.candidate import Value
    from gluonmap.model.race_record import RaceRecord, Split
    from gluonmap.model.space_map import SpaceMap
    from gluonmap.spec.probe_file import ProbeFile


@click.command(short_help="Race a map's programs on this machine's GPU.")
@click.argument("kernel_or_map", type=click.Path(path_type=Path), metavar="KERNEL|MAP")
@click.option("--shape", default="", metavar="M=…,N=…", help="Sizes; by default those of the map.")
@click.option(
    "--regimes",
    default="",
    metavar="NAME,NAME",
    help="Shapes of the probe file. Each is raced alone, to see whether one configuration serves all.",
)
@click.option("--kernel", default="", metavar="NAME", help="Kernel to race, if the file has several.")
@click.option(
    "--probe-file",
    type=click.Path(path_type=Path),
    help="Probe file with `inputs`; by default the one with the kernel's name.",
)
@click.option(
    "--rounds", type=click.IntRange(6, 1000), default=40, show_default=True, help="Interleaved rounds of the finals."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Largest number of programs in the race.")
@click.option("--plain", is_flag=True, help="Time configurations with Triton's own benchmark.")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(1, 512),
    help="Number of parallel compiles before the race; by default one per core.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON (several shapes: a list).")
@click.option("--quiet", "-q", is_flag=True, help="Print no progress on stderr.")
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

    A KERNEL is mapped first, as by `gluonmap probe`: answers in its journal are not compiled again. A MAP is raced as
    it is. A difference is a win only above the noise, which is measured on two runs of one program. The record is
    written next to the map. Exit codes: 0 raced, 2 usage, 3 fault.

    \b
    gluonmap race kernels/hopper/gemm_fp16.py --shape M=8192,N=8192,K=8192
    gluonmap race kernels/hopper/gemm_fp16.py --regimes decode,prefill
    """
    from gluonmap.probe.settings import default_jobs
    from gluonmap.race import lineup, results, run
    from gluonmap.report import race as raced

    path, space = map_to_race(kernel_or_map, kernel, probe_file, jobs, quiet=quiet)
    found, probe = inputs_of(space, probe_file)
    moves = values_by_name(names_of(shape), "--shape")
    heats = _heats(names_of(regimes), moves, probe, found)
    ready = lineup.line_up(
        space,
        found,
        heats,
        jobs=jobs or default_jobs(),
        rounds=rounds,
        plain=plain,
        limit=limit,
        tolerance=probe.tolerance,
    )
    finish = run.run(ready)
    records = results.race_records(ready, finish)
    written = [_write(path, record) for record in records]
    several = results.split(ready, finish) if len(records) > 1 else None
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


def _heats(
    names: list[str], moves: Mapping[str, Value], probe: ProbeFile, path: Path
) -> Mapping[str, Mapping[str, Value]]:
    """Return the sizes to race at, by name."""

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
