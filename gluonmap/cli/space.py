"""`gluonmap space`: count, list and draw the feasible space of a map, and list the hand-off."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.model.candidate import Config
    from gluonmap.model.joint_map import Joint
    from gluonmap.model.space_map import SpaceMap


@click.command(short_help="Count, list and sample what is feasible.")
@click.argument("map_file", type=click.Path(path_type=Path))
@click.option(
    "--count",
    is_flag=True,
    help="Count the signature, feasible configurations, distinct programs and dropped ones. The default.",
)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Draw N feasible configurations uniformly.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw.")
@click.option("--enumerate", "listing", is_flag=True, help="List the feasible configurations.")
@click.option(
    "--graph", type=click.Path(path_type=Path), metavar="FILE", help="Write the constraint graph: .graphml, …"
)
@click.option("--configs", "handoff", is_flag=True, help="List the launch arguments of each verified configuration.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="With --enumerate the first N, with --configs a selection of N.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, lists included; without it lists are JSON lines."
)
def space(
    map_file: Path,
    count: bool,
    sample: int | None,
    seed: int,
    listing: bool,
    graph: Path | None,
    handoff: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show the reduced space of MAP_FILE.

    \b
    gluonmap space reports/cdna4/gemm_mxfp4.gfx950.json
    gluonmap space reports/cdna4/gemm_mxfp4.gfx950.json --configs --limit 40
    gluonmap space reports/cdna4/gemm_mxfp4.gfx950.json --graph gemm.graphml
    """
    wanted = [count, sample is not None, listing, graph is not None, handoff]
    if sum(wanted) > 1:
        raise click.UsageError("--count, --sample, --enumerate, --graph and --configs exclude each other: give one.")
    if limit is not None and not (listing or handoff):
        raise click.UsageError("--limit goes with --enumerate or --configs.")
    from gluonmap.model import codec

    read = codec.read_map(map_file)
    if handoff:
        from gluonmap.handoff.launches import launches

        _print(launches(read, limit), as_json)
        return
    joint = _joint(read)
    if graph is not None:
        from gluonmap.query.constraint_graph import write_graph

        write_graph(read, graph)
    elif sample is not None or listing:
        from gluonmap.query.reduced_space import reduced_space_of

        reduced = reduced_space_of(read)
        _print(reduced.sample(sample, seed=seed) if sample else itertools.islice(reduced.listed(), limit), as_json)
    else:
        counted = _counted(read, joint)
        click.echo(codec.dumps(counted) if as_json else _count_table(read, joint, counted), nl=False)


def _joint(read: SpaceMap) -> Joint:
    from gluonmap.handoff.launches import probe_command

    if read.joint is None:
        raise UsageError(
            f"the map of {read.kernel!r} on {read.target} knows one knob at a time only. Map all knobs together:  "
            f"{probe_command(read, '--depth joint')}"
        )
    return read.joint


def _print(configs: Iterable[Config], as_json: bool) -> None:
    import msgspec

    from gluonmap.model import codec

    if as_json:
        click.echo(codec.dumps(list(configs)), nl=False)
        return
    for config in configs:
        sys.stdout.buffer.write(msgspec.json.encode(config) + b"\n")


def _counted(read: SpaceMap, joint: Joint) -> dict[str, Any]:
    from gluonmap.handoff.launches import dropped, launches, verified

    try:
        handed = len(launches(read))
    except UsageError:  # nothing passed
        handed = 0
    sizes = joint.sizes
    return {
        "kernel": read.kernel,
        "target": read.target,
        "signature": sizes.signature,
        "feasible": sizes.feasible,
        "programs": sizes.programs,
        "at_most": joint.at_most,
        "complete": sizes.complete,
        "compiled": len(verified(read)),
        "refused": len(joint.refused),
        "handed": handed,
        "dropped": [{"config": config, "reason": reason} for config, reason in dropped(read)],
    }


def _count_table(read: SpaceMap, joint: Joint, counted: dict[str, Any]) -> str:
    import msgspec

    from gluonmap.query.feasibility import moves_of

    signature, feasible, programs = counted["signature"], counted["feasible"], counted["programs"]
    met = f"meet {len(joint.constraints)} constraint{'' if len(joint.constraints) == 1 else 's'}"
    share = "" if feasible is None or not signature else f", {100 * feasible / signature:.3g} %"
    rows = [("signature", f"{signature:,}", "configurations")]
    rows.append(
        ("feasible", _number(feasible), "the constraints are too entangled" if feasible is None else met + share)
    )
    basis = "distinct, by the rules that say which values are equal"
    if counted["complete"]:
        basis = "distinct, all compiled" if joint.refused else "distinct, all compiled and passed"
    basis = "at most, by the rules that say which values are equal" if joint.at_most else basis
    rows.append(("programs", _number(programs), "no rule can tell them apart" if programs is None else basis))
    compiled = "distinct programs that passed" + (f"; {_rest(joint)}" if joint.at_most else "")
    rows.append(("compiled", f"{counted['compiled']:,}", compiled))
    if joint.refused:
        rows.append(("refused", f"{len(joint.refused):,}", "compiled and did not pass when executed"))
    left = len(counted["dropped"])
    rows.append(("hand-off", f"{counted['handed']:,}", f"configurations; {left} dropped" if left else "configurations"))
    lines = [f"{read.kernel} on {read.target}", *(f"{name:<10}{number:>14}  {text}" for name, number, text in rows)]
    for item in counted["dropped"]:
        moves = msgspec.json.encode(moves_of(read, item["config"])).decode()
        lines.append(f"  dropped {moves}: {item['reason']}")
    return "\n".join(lines) + "\n"


def _rest(joint: Joint) -> str:
    """Return a sentence on the programs that are distinct by the rules and that were not compiled."""
    rest = (joint.sizes.programs or 0) - len(joint.programs)
    return f"the other {rest:,} were not compiled, or are the same code as one of these"


def _number(count: int | None) -> str:
    return "not counted" if count is None else f"{count:,}"
