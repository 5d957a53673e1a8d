"""`gluonmap explain`: report why a configuration fails and what to change, or which knobs matter there."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gluonmap.cli import compile_options, completion
from gluonmap.cli.option_values import pair, value_of
from gluonmap.cli.reexec import become
from gluonmap.model.errors import OracleFault

if TYPE_CHECKING:
    from gluonmap.model.candidate import Config
    from gluonmap.model.space_map import SpaceMap
    from gluonmap.probe.recompile import Recompiler
    from gluonmap.query.explain import Explanation
    from gluonmap.query.feasibility import Judge


@click.command(short_help="Why a configuration fails, and what passes nearby.")
@click.argument("map_file", type=click.Path(path_type=Path))
@click.argument("moves", nargs=-1, metavar="[KNOB=VALUE]…", shell_complete=completion.moves)
@click.option("--no-compile", is_flag=True, help="Use the map alone, and compile nothing.")
@click.option(
    "--repro",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a stand-alone script that shows the failure with only Triton installed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@compile_options.options
def explain(
    map_file: Path,
    moves: Sequence[str],
    no_compile: bool,
    repro: Path | None,
    as_json: bool,
    python: str,
    **limits: Any,
) -> None:
    """Explain one configuration of MAP_FILE: the baseline with KNOB=VALUE moved.

    Of an infeasible one: the constraints that forbid it, its smallest failing part, and the nearest feasible ones.
    Of a feasible one: how that is known, and which knobs matter there. Configurations that the map does not know are
    compiled.

    Exit codes: 0 feasible, 1 infeasible, 2 usage, 3 unknown, or there was no answer.

    \b
    gluonmap explain reports/cdna4/gemm_mxfp4.gfx950.json BLOCK_SIZE_M=128 num_warps=4 GROUP_SIZE_M=4
    gluonmap explain reports/cdna4/gemm_mxfp4.gfx950.json BLOCK_SIZE_M=128 --repro abort.py
    """
    if repro and no_compile:
        raise click.UsageError("--repro compiles the failure that it writes down: leave --no-compile out.")
    if python:
        become(python)
    from gluonmap.model import codec
    from gluonmap.model.outcomes import Feasibility
    from gluonmap.query import explain as explaining
    from gluonmap.query.feasibility import Judge, Judgement, complete

    space = codec.read_map(map_file)
    config = complete(space, _moves(moves))
    judged = Judge(space)
    with contextlib.ExitStack() as stack:
        opened: list[Recompiler] = []

        def asking() -> Recompiler:
            """Return what compiles. Its processes start with the first call, because often the map has the answer."""
            if not opened:
                opened.append(stack.enter_context(compile_options.opened(space, **limits)))
            return opened[0]

        def ask(asked: Config) -> Judgement:
            answer = asking().answer(asked)
            return judged.judgement_of_answer(asked, answer, asking().source_line(answer))

        explanation = explaining.explain(judged, config, None if no_compile else ask)
        if not as_json:
            from rich.console import Console

            from gluonmap.report import explain as explained

            explained.render(space, str(map_file), explanation, Console())
        script = _script(repro, judged, explanation, asking) if repro else None
    if as_json:
        click.echo(codec.dumps(_document(space, map_file, explanation, script)), nl=False)
    match explanation.judgement.verdict:
        case Feasibility.FEASIBLE:
            sys.exit(0)
        case Feasibility.INFEASIBLE:
            sys.exit(1)
        case Feasibility.UNKNOWN:
            sys.exit(3)


def _moves(texts: Sequence[str]) -> Config:
    found: Config = {}
    for name, value in (pair(text, "KNOB=VALUE") for text in texts):
        if name in found:
            raise click.UsageError(f"{name} is given twice.")
        found[name] = value_of(value)
    return found


def _script(
    file: Path, judged: Judge, explanation: Explanation, asking: Callable[[], Recompiler]
) -> dict[str, object] | None:
    """Write the script of a failure, report it on stderr and return its description; None if nothing fails.

    Raises:
        OracleFault: the script was written, but it does not show the failure.
    """
    from gluonmap.model.outcomes import Feasibility
    from gluonmap.query.feasibility import moves_of
    from gluonmap.report.plain_text import config_text, visible
    from gluonmap.repro import reproduce

    if explanation.judgement.verdict is not Feasibility.INFEASIBLE:
        click.echo(f"gluonmap: the configuration is {explanation.judgement.verdict}: {file} is not written.", err=True)
        return None
    pair, trial = reproduce.write(file, judged, explanation, asking())
    if not trial.holds:
        raise OracleFault(
            f"{file} is written, and it does not show the failure (exit status {trial.status}):\n"
            + "\n".join(f"  {visible(line)}" for line in trial.said.splitlines())
        )
    failing = config_text(moves_of(judged.space, pair.failing)) or "the baseline"
    passing = "nothing near it is known to pass"
    if pair.passing is not None:
        passing = f"{config_text(moves_of(judged.space, pair.passing)) or 'the baseline'} passes"
    click.echo(f"gluonmap: {file} shows it with Triton alone: {failing} fails, {passing}.", err=True)
    return {"file": str(file), "failing": pair.failing, "passing": pair.passing, "said": trial.said}


def _document(
    space: SpaceMap, map_file: Path, explanation: Explanation, script: dict[str, object] | None
) -> dict[str, object]:
    """Return the explanation, with the command that repeats each of its configurations."""
    import msgspec

    from gluonmap.report.explain import repeat_command

    def repeat(config: Config) -> str:
        return repeat_command(space, str(map_file), config)

    nearest = [{**msgspec.to_builtins(item), "repeat": repeat(item.config)} for item in explanation.nearest]
    head = {"map": str(map_file), "kernel": space.kernel, "target": space.target, "repeat": repeat(explanation.config)}
    more = {"repro": script} if script else {}
    return {**head, **msgspec.to_builtins(explanation), "nearest": nearest, **more}
