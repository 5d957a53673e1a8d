"""`gluonmap predict`: judge many configurations by a map, and compare the judgements with compiles."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from gluonmap.cli import compile_options
from gluonmap.cli.reexec import become
from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.model.candidate import Config
    from gluonmap.query.feasibility import Judge, Judgement
    from gluonmap.report.predict import Summary


@click.command(short_help="What a map says of many configurations.")
@click.argument("map_file", type=click.Path(path_type=Path))
@click.option("--configs", "configs", required=True, metavar="FILE", help="Configurations, as JSON lines; - is stdin.")
@click.option("--verify", is_flag=True, help="Compile the configurations too, and list the wrong predictions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: one for each configuration, then the summary.")
@click.option("--quiet", "-q", is_flag=True, help="Print no progress on stderr.")
@compile_options.options
def predict(map_file: Path, configs: str, verify: bool, as_json: bool, quiet: bool, python: str, **limits: Any) -> None:
    """Report for each configuration in a file whether it is feasible by MAP_FILE, and why.

    A line is {"BLOCK_M": 64} or {"config": {"BLOCK_M": 64}}. Knobs that it does not name have the baseline's value.

    Exit codes: 0 reported, 1 with --verify a compile refutes the map, 2 usage, 3 there was no answer.

    \b
    gluonmap predict reports/cdna4/gemm_mxfp4.gfx950.json --configs shipped.jsonl --verify
    """
    if python:
        become(python)
    from gluonmap.model import codec
    from gluonmap.query.feasibility import Judge
    from gluonmap.report.predict import Summary

    space = codec.read_map(map_file)
    judged, summary = Judge(space), Summary()
    with _opened(configs) as stream:
        rows = _judged(judged, stream, configs)
        if not verify:
            for number, config, judgement in rows:
                summary.add(judgement)
                _print_row(number, config, judgement, as_json)
            _print_summary(summary, as_json)
            return
        found = list(rows)  # read all lines before the first compile, so that a broken line costs none
    for number, config, judgement in found:
        summary.add(judgement)
        if not as_json:
            _print_row(number, config, judgement, as_json)
    refuted = _verify(judged, map_file, found, limits, quiet=quiet, as_json=as_json)
    _print_summary(summary, as_json)
    sys.exit(1 if refuted else 0)


Row = tuple[int, "Config", "Judgement"]


def _judged(judged: Judge, stream: IO[bytes], name: str) -> Iterator[Row]:
    from gluonmap.query.config_files import read_configs
    from gluonmap.query.feasibility import complete

    space, is_announced = judged.space, False
    shown = "stdin" if name == "-" else name
    for number, moves in read_configs(stream, shown):
        config = complete(space, moves, f"line {number} of {shown}: ")
        missing = [knob for knob in space.baseline if knob not in moves]
        if missing and not is_announced:
            is_announced = True
            values = ", ".join(f"{knob}={space.baseline[knob]}" for knob in missing)
            click.echo(
                f"gluonmap: knobs that a line does not name are the baseline's (line {number}: {values})", err=True
            )
        yield number, config, judged(config)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:

    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(name, "rb")  # noqa: SIM115  closed below; only errors of opening are caught here
    except OSError as error:
        raise UsageError(f"cannot read the configurations {name}: {error.strerror}.") from error
    with stream:
        yield stream


def _verify(
    judged: Judge, map_file: Path, rows: list[Row], limits: dict[str, Any], *, quiet: bool, as_json: bool
) -> bool:
    """Compile every distinct configuration that the user has not forbidden; return whether one refutes the map."""
    from gluonmap.cli.progress import ProgressDisplay
    from gluonmap.model.events import Event
    from gluonmap.query.feasibility import agrees
    from gluonmap.query.observations import config_key
    from gluonmap.report import predict as predicted
    from gluonmap.report.explain import repeat_command

    wanted = {config_key(config): config for _, config, judgement in rows if not judgement.forbidden}
    compiled: dict[tuple[str, ...], Judgement] = {}
    if wanted:
        with (
            ProgressDisplay(quiet=quiet) as listen,
            compile_options.opened(judged.space, **limits) as ask,
        ):
            listen(Event("plan", "configurations to compile", len(wanted)))
            for config, answer in ask(wanted.values()):
                compiled[config_key(config)] = judged.judgement_of_answer(config, answer, ask.source_line(answer))
                listen(Event("answer", answer=answer))
    results = [
        (judgement, fresh := compiled.get(config_key(c)), agrees(judgement, fresh) if fresh else None)
        for _, c, judgement in rows
    ]
    if as_json:
        for (number, config, judgement), (_, fresh, agreed) in zip(rows, results, strict=True):
            _print_row(number, config, judgement, as_json, _compile_document(fresh, agreed))
    else:
        for (number, config, judgement), (_, fresh, agreed) in zip(rows, results, strict=True):
            if fresh is not None and agreed is False:
                repeat = repeat_command(judged.space, str(map_file), config)
                click.echo(predicted.disagreement(number, judgement, fresh, repeat))
        click.echo(f"\n{predicted.verified(results)}")
    return any(agreed is False for _, _, agreed in results)


def _compile_document(fresh: Judgement | None, agreed: bool | None) -> dict[str, object]:
    if fresh is None:
        return {"compiled": None, "agrees": None}
    names = ("verdict", "outcome", "reason", "line", "digest")
    return {"compiled": {name: getattr(fresh, name) for name in names}, "agrees": agreed}


def _print_row(
    number: int, config: Config, judgement: Judgement, as_json: bool, more: dict[str, object] | None = None
) -> None:
    import msgspec

    from gluonmap.report import predict as predicted

    if not as_json:
        click.echo(predicted.row(number, judgement))
        return
    document = {
        "line": number,
        "config": config,
        "verdict": judgement.verdict,
        "basis": predicted.basis(judgement),
        "why": predicted.why(judgement),
        "broken": [{"words": item.words, "standing": item.standing} for item in judgement.broken],
        "contradicts": judgement.contradicts,
    }
    click.echo(msgspec.json.encode({**document, **(more or {})}))


def _print_summary(summary: Summary, as_json: bool) -> None:
    import msgspec

    if as_json:
        click.echo(msgspec.json.encode({"summary": summary.document()}))
    else:
        click.echo(f"\n{summary.render()}")
