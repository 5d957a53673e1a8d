"""`gluonmap race`: the map's programs on this machine's GPU, with the standard autotuner, and what won."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from gluonmap.options import pair, value_of


@click.command()
@click.argument("map_file", type=click.Path(path_type=Path), metavar="MAP")
@click.option("--shape", default="", metavar="M=…,N=…", help="Sizes; by default those that the map was made with.")
@click.option("--probe-file", type=click.Path(path_type=Path), help="Where `inputs` is; by default as for probe.")
@click.option(
    "--rounds", type=click.IntRange(6, 1000), default=15, show_default=True, help="Of the finals, interleaved."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Race no more than so many programs.")
@click.option("--plain", is_flag=True, help="Let Triton time each configuration in its own way.")
@click.option("--jobs", "-j", type=click.IntRange(1, 512), help="Compiles at once, before the race; one per core.")
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
def race(
    map_file: Path,
    shape: str,
    probe_file: Path | None,
    rounds: int,
    limit: int | None,
    plain: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Race the programs of MAP on this machine's GPU with the standard triton.autotune, then the fastest in rounds.

    A difference counts as a win only above the noise, which is measured on two runs of one program. The record is
    written beside the map. Exit codes: 0 raced, 2 usage, 3 fault.

    \b
    gluonmap race reports/hopper/gemm_fp16.sm_90.json --shape M=8192,N=8192,K=8192
    """
    from gluonmap import campaign, codec, probefile
    from gluonmap import race as races
    from gluonmap.errors import UsageError
    from gluonmap.report import raced

    space = codec.read_map(map_file)
    found = probe_file or probefile.find_probe(Path(space.file), Path.cwd())
    if found is None:
        raise UsageError(f"no probe file of {space.file} is here: its inputs() makes the tensors of a race.")
    moves = {k: value_of(v) for k, v in (pair(t, "--shape") for t in shape.split(",") if t.strip())}
    line = races.line_up(
        space, found, moves, jobs=jobs or campaign.default_jobs(), rounds=rounds, plain=plain, limit=limit
    )
    record = races.judged(line, races.run(line))
    path = map_file.with_suffix(f".{_named(record.shape)}.race.json")
    codec.write(path, codec.dumps(record))
    if as_json:
        click.echo(codec.dumps(record), nl=False)
    else:
        raced.render(record)
        click.echo(f"record: {path}")


def _named(shape: Mapping[str, object]) -> str:
    parts: Sequence[str] = [f"{name}{value}" for name, value in shape.items() if isinstance(value, int)]
    return "-".join(parts) or "default"
