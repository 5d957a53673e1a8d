"""`gluonmap find-default`: find the smallest change of a failing baseline that compiles."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gluonmap.cli.json_output import print_one_or_list
from gluonmap.cli.kernel_options import flags, settings_of
from gluonmap.cli.option_values import names_of, pair
from gluonmap.cli.reexec import become

if TYPE_CHECKING:
    from gluonmap.model.candidate import Config
    from gluonmap.probe.find_default import DefaultSearch

_TAKEN = (
    *("target", "kernel", "sets", "domains", "config", "args", "derive", "grid", "regime", "probe_file"),
    *("stubs", "restrict", "jobs", "memory", "resume", "retry", "python", "out", "quiet"),
)
"""Options that this command shares with `gluonmap probe`."""
_UNSAID = ("target", "jobs", "resume", "retry", "quiet")
"""Of these, the options that the printed `gluonmap probe` does not copy from this command line."""


@click.command("find-default", short_help="The smallest change of a failing baseline that compiles.")
@click.argument("kernel_file", type=click.Path(path_type=Path))
@flags(*_TAKEN)
@click.option(
    "--budget", type=click.IntRange(1), default=200, show_default=True, metavar="N", help="Largest number of compiles."
)
@click.option(
    "--deadline",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Time limit of one candidate, which is HUNG after it; by default 120 for the baseline, 30 for its changes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (several targets: a list).")
def find_default(kernel_file: Path, budget: int, as_json: bool, **options: Any) -> None:
    """Find the smallest change of the baseline of KERNEL_FILE that compiles, where the baseline fails.

    Takes the options of `gluonmap probe`. Tries the demands of the source first, then every knob alone, then several
    knobs together. Changes no file: it prints the `gluonmap probe` that starts from the found baseline, and lines for
    a probe file.

    Exit codes: 0 found, or the baseline passes; 1 not found; 2 usage; 3 fault.

    \b
    gluonmap find-default my_kernel.py -t cdna4 --arg a_ptr='*bf16' --set BLOCK_M=512
    """
    if options["python"]:
        become(options["python"])
    from gluonmap.cli.progress import ProgressDisplay
    from gluonmap.probe.each_target import find_defaults
    from gluonmap.report import find_default as defaulted

    settings = settings_of(kernel_file, options)
    wanted = names_of(*options["target"])
    given = list(_given(click.get_current_context()))
    found: list[dict[str, object]] = []
    progress = ProgressDisplay(quiet=options["quiet"])
    with progress as listen:
        for default in find_defaults(settings, wanted, listen, budget):
            progress.rest()
            command = _command(kernel_file, default, given)
            found.append(defaulted.document(default, command))
            if not as_json:
                click.echo(("\n" if len(found) > 1 else "") + defaulted.render(default, command), nl=False)
    if as_json:
        print_one_or_list(found)
    sys.exit(1 if any(item["moves"] is None for item in found) else 0)


def _given(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the options given on the command line or in the environment, as arguments of `gluonmap probe`."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        is_given = ctx.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
        if not is_given or name not in _TAKEN or name in _UNSAID:
            continue
        value = ctx.params[name]
        for text in value if isinstance(value, tuple) else (value,):
            yield parameter.opts[0], str(text)


def _command(kernel_file: Path, default: DefaultSearch, given: list[tuple[str, str]]) -> str:
    """Return the `gluonmap probe` that starts from the found baseline."""
    from gluonmap.probe.spelling import quoted

    repair = default.repair
    moves: Config = repair.passing[0].moves if repair and repair.passing else {}
    kept = [
        word for flag, text in given if not (flag == "--set" and pair(text, flag)[0] in moves) for word in (flag, text)
    ]
    words = ["gluonmap", "probe", str(kernel_file), "--target", default.space.target, *kept]
    return " ".join([*map(shlex.quote, words), *(f"--set {quoted(name, value)}" for name, value in moves.items())])
