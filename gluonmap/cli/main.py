"""Commands, options and exit codes of the tool. Whatever is heavy is imported by the command that needs it.

Exit codes: 0 map written, 1 findings (the baseline fails), 2 usage, 3 fault, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gluonmap import __version__
from gluonmap.cli import completion
from gluonmap.cli.check import check
from gluonmap.cli.diff import diff
from gluonmap.cli.engaged import engaged
from gluonmap.cli.explain import explain
from gluonmap.cli.export import export
from gluonmap.cli.find_default import find_default
from gluonmap.cli.kernel_options import flags, settings_of
from gluonmap.cli.key import key
from gluonmap.cli.lint import lint
from gluonmap.cli.option_values import pair, value_of
from gluonmap.cli.predict import predict
from gluonmap.cli.race import race
from gluonmap.cli.reexec import become
from gluonmap.cli.run import run
from gluonmap.cli.space import space as space_command

if TYPE_CHECKING:
    from gluonmap.model.space_map import SpaceMap

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "auto_envvar_prefix": "GLUONMAP"}


SUMMARIES = {
    "probe": "Map a kernel: what fails, what is inert, what matters.",
    "find-default": "The smallest change of a failing baseline that compiles.",
    "run": "One configuration executed on the CPU, its numbers compared.",
    "report": "Render stored maps: terminal, Markdown, pages.",
    "explain": "Why a configuration fails, and what passes nearby.",
    "space": "Count, list and sample what is feasible.",
    "predict": "What a map says of many configurations.",
    "repeat": "One candidate by hand, with all the compiler prints.",
    "diff": "What differs between two maps.",
    "check": "Audit the configurations a project ships.",
    "lint": "The traps of tuning in a kernel's text.",
    "key": "Which arguments belong into the autotuner's key.",
    "export": "A map in the files of other tools.",
    "race": "Race a map's programs on this machine's GPU.",
    "engaged": "Whether a program launches what was tuned.",
    "learn": "The constraints of a recorded table of verdicts.",
    "targets": "The targets and their limits.",
}
"""The commands in the order in which one meets them, each in half a line."""


class Tool(click.Group):
    """Errors of ours are one message and an exit code, never a traceback.

    Caught here, before click's own handlers: those end Ctrl-C and a closed pipe with exit code 1, which is a finding.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*SUMMARIES, *(name for name in super().list_commands(ctx) if name not in SUMMARIES)]

    def invoke(self, ctx: click.Context) -> Any:
        from gluonmap.model.errors import GluonmapError

        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # or a full disk is told by the interpreter when all is over
        except (click.ClickException, click.exceptions.Exit):
            raise
        except GluonmapError as error:
            click.echo(f"gluonmap: {error}", err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("gluonmap: interrupted", err=True)
            sys.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(3)
        except OSError as error:  # a path of the user's that no file can have; a full disk
            click.echo(f"gluonmap: {error.strerror or error}: {error.filename or 'standard output'}", err=True)
            if error.filename is None:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(2 if error.errno == errno.ENAMETOOLONG else 3)
        except Exception:  # a bug of ours; Python's own exit code 1 would be a finding too
            import traceback

            traceback.print_exc()
            sys.exit(3)


@click.group(cls=Tool, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="gluonmap")
def cli() -> None:
    """Map the real tunable space of a Gluon or Triton kernel, without a GPU.

    Exit codes of all commands: 0 done, 1 findings (what that is, the command's help says), 2 usage, 3 fault, 130
    interrupted.

    Three commands to start with: map a kernel, ask why a configuration fails, audit what is shipped.

    \b
    gluonmap probe my_kernel.py --target gfx950
    gluonmap explain reports/my_kernel.gfx950.json BLOCK_M=512
    gluonmap check my_kernel.py --configs configs/ --target gfx950
    """


@cli.command()
@click.argument("kernel_file", type=click.Path(path_type=Path))
@flags(
    "target",
    "kernel",
    "sets",
    "domains",
    "config",
    "args",
    "derive",
    "grid",
    "regime",
    "probe_file",
    "stubs",
    "jobs",
    "deadline",
    "memory",
)
@click.option(
    "--depth",
    type=click.Choice(["singles", "joint", "deep"]),
    default="joint",
    show_default=True,
    help="One knob at a time only; all knobs together; or that with five times the questions, for rare combinations.",
)
@click.option(
    "--budget",
    type=click.IntRange(0),
    metavar="N",
    help="Questions at most to learn: 300, 1500 if deep. Up to 150 configurations are all asked.",
)
@click.option(
    "--validate", type=click.IntRange(0), metavar="N", help="Questions for the certificate: 200, or 600 if deep."
)
@click.option(
    "--budget-seconds", "seconds", type=click.FloatRange(min=0), metavar="S", help="Learn no longer than this."
)
@click.option(
    "--confidence", type=click.FloatRange(0.5, 0.999), default=0.95, show_default=True, help="Of the certificate."
)
@flags("restrict")
@click.option(
    "--stage",
    type=click.Choice(["compile", "run", "launch", "check", "time"]),
    default="compile",
    show_default=True,
    help="Take single values and programs further. run: executed on the CPU (gfx942, gfx950), compared with the probe "
    "file's reference or the baseline. launch, check, time: on this machine's GPU. All but compile need torch.",
)
@flags("sanitize", "thorough")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn by chance.")
@flags("resume", "retry", "python", "out")
@click.option("--json", "as_json", is_flag=True, help="Print the map as JSON (several targets: a list).")
@flags("quiet")
def probe(kernel_file: Path, **options: Any) -> None:
    """Probe KERNEL_FILE, one knob at a time and then all together, and write its map.

    Exit codes: 0 map written, 1 the baseline fails, 2 usage, 3 fault, 130 interrupted (what is known is kept).

    \b
    gluonmap probe kernels/cdna4/gemm_mxfp4.py --target gfx950
    gluonmap probe my_kernel.py -t cdna3 --arg a_ptr='*bf16' --set BLOCK_M=128
    """
    if options["python"]:
        become(options["python"])
    from gluonmap.cli.progress import Progress
    from gluonmap.model.errors import UsageError
    from gluonmap.probe import campaign

    settings = settings_of(kernel_file, options)
    wanted = [name for text in options["target"] for name in text.split(",") if name.strip()]
    if options["target"] and not wanted:
        raise UsageError("--target names no target; gluonmap targets lists them.")
    maps: list[SpaceMap] = []

    def deliver(stored: campaign.Stored) -> None:
        progress.rest()
        maps.append(stored.space)
        _pages(stored.path, stored.space)
        if not options["as_json"]:
            _render(stored.space)

    progress = Progress(quiet=options["quiet"])
    try:
        with progress as listen:
            for stored in campaign.run(settings, wanted, listen):
                deliver(stored)
    except campaign.Interrupted as stop:
        if stop.stored is not None:
            deliver(stop.stored)
        raise
    finally:
        if options["as_json"] and maps:
            _print_json(maps)
        elif len(maps) > 1:
            _render_heads(maps)
    sys.exit(1 if any(space.outcome not in ("PASS", "NOT_EXECUTED") for space in maps) else 0)


@cli.command()
@click.argument("maps", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--html", "site", type=click.Path(path_type=Path), metavar="DIR", help="A page for each map there, and an index."
)
@click.option("--json", "as_json", is_flag=True, help="Print the stored maps as JSON (several: a list).")
def report(maps: Sequence[Path], site: Path | None, as_json: bool) -> None:
    """Render stored MAPS again (none named: all below reports/), and write their Markdown and HTML anew.

    \b
    gluonmap report reports/cdna4/gemm_mxfp4.gfx950.json
    gluonmap report --html site
    """
    from gluonmap.model import codec
    from gluonmap.model.errors import UsageError

    paths = list(maps) or sorted(p for p in Path("reports").rglob("*.json") if not p.name.endswith(".race.json"))
    if not paths:
        raise UsageError("there is no map below reports/. gluonmap probe KERNEL writes one.")
    spaces = [codec.read_map(path) for path in paths]
    if as_json:
        _print_json(spaces)
    for path, space in zip(paths, spaces, strict=True):
        if not as_json:
            _render(space)
        _pages(path, space)
    if site is not None:
        from gluonmap.report.html.site import write_site

        click.echo(f"index: {write_site(site, list(zip(paths, spaces, strict=True)))}", err=True)


@cli.command()
@click.argument("map_file", type=click.Path(path_type=Path))
@click.argument("moves", nargs=-1, metavar="[KNOB=VALUE]…", shell_complete=completion.moves)
@click.option("--python", "python", default="", metavar="VENV", help="The environment whose Triton made the map.")
@click.option("--any-triton", is_flag=True, help="Go on although another Triton made the map.")
@click.option("--show", is_flag=True, help="Print the command of the fresh interpreter, and do not run it.")
def repeat(map_file: Path, moves: Sequence[str], python: str, any_triton: bool, show: bool) -> None:
    """Repeat one candidate of MAP_FILE by hand: the baseline with KNOB=VALUE moved.

    Runs in a fresh interpreter on this terminal, so that all the compiler prints is seen. The exit status is the
    candidate's own: 0 pass, 10 rejected by the front end, 11 by a pass, 12 no resources, or its signal; 3 no verdict.
    A candidate of a map with a stage beyond the compile is taken as far again: 13 rejected at launch, 14 wrong, 15
    crashed on the device, 16 unsafe, 17 no end, 20 skipped, 21 not executed.

    \b
    gluonmap repeat reports/cdna4/gemm_mxfp4.gfx950.json BLOCK_SIZE_M=128
    """
    if python:
        become(python)
    from gluonmap.model import codec
    from gluonmap.probe import rebuild
    from gluonmap.probe.recompile import check_triton

    wanted = {k: value_of(v) for k, v in (pair(t, "KNOB=VALUE") for t in moves)}
    space = codec.read_map(map_file)
    job = rebuild.job_of(space, wanted, on_device=True)
    check_triton(space, any_triton=any_triton)
    if show:
        click.echo(rebuild.command_line(job))
    else:
        sys.exit(rebuild.run(job, space, wanted))


@cli.command()
@click.option("--from", "table", required=True, type=click.Path(path_type=Path), help="Recorded verdicts, JSON lines.")
@click.option(
    "--baseline", default="", metavar="K=V,…", help="The configuration to start from; by default a passing one."
)
@click.option("--budget", type=click.IntRange(1), default=300, show_default=True, help="Rows to ask for learning.")
@click.option(
    "--validate", type=click.IntRange(0), default=200, show_default=True, help="Rows to ask for the certificate."
)
@click.option(
    "--confidence", type=click.FloatRange(0.5, 0.999), default=0.95, show_default=True, help="Of the certificate."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn by chance.")
@click.option(
    "--deep/--no-deep",
    default=True,
    show_default=True,
    help="Whether to ask on, up to the budget, for rare combinations of three values.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was learned as JSON.")
def learn(table: Path, baseline: str, as_json: bool, **settings: Any) -> None:
    """Learn the joint constraints of a recorded table of verdicts, asking it row by row as if it were the compiler.

    A row: {"config": {…}, "outcome": "PASS|REJECTED|CRASHED|NO_RESOURCES|HUNG", "stage": …, "reason": …, "line": …,
    "digest": …, "shared_bytes": …}, all but the first two optional.

    \b
    gluonmap learn --from verdicts.jsonl --baseline BLOCK_M=128,num_warps=4
    """
    from gluonmap.model import codec
    from gluonmap.model.errors import UnknownKnob, UsageError
    from gluonmap.probe import recorded_table as tables

    read = tables.read_table(table)
    moves = {k: value_of(v) for k, v in (pair(t, "--baseline") for t in baseline.split(",") if t.strip())}
    for name in moves:
        if name not in read.domains:
            raise UnknownKnob(f"the table {read.name!r}", name, read.domains)
    start = {**read.likely_baseline(), **moves}
    if start not in read.configs:
        raise UsageError(f"the table {read.name!r} has no row for the baseline {start}.")
    learned, score = tables.learn_table(read, baseline=start, **settings)
    if as_json:
        click.echo(codec.dumps({"table": read.name, "score": score, "learned": learned}), nl=False)
        return
    from rich.console import Console

    from gluonmap.report import learn as report

    report.render(read.name, learned, score, Console())


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def targets(as_json: bool) -> None:
    """List the targets and their limits.

    \b
    gluonmap targets
    """
    from gluonmap.model import codec
    from gluonmap.model import targets as known

    heads = ("target", "alias", "vendor", "lanes per warp", "shared bytes", "threads", "options that are knobs")
    rows = [
        (t.name, t.alias, t.vendor, t.warp_size, t.shared_bytes, t.threads, list(t.option_domains))
        for t in known.TARGETS
    ]
    if as_json:
        names = [h.replace(" ", "_") for h in heads]
        click.echo(codec.dumps([dict(zip(names, row, strict=True)) for row in rows]), nl=False)
        return
    from tabulate import tabulate

    click.echo(tabulate([(*row[:4], f"{row[4]:,}", row[5], ", ".join(row[6])) for row in rows], heads))


cli.add_command(check)
cli.add_command(diff)
cli.add_command(engaged)
cli.add_command(explain)
cli.add_command(export)
cli.add_command(find_default)
cli.add_command(key)
cli.add_command(lint)
cli.add_command(predict)
cli.add_command(race)
cli.add_command(run)
cli.add_command(space_command)
for _name, _summary in SUMMARIES.items():
    cli.commands[_name].short_help = _summary


def _print_json(maps: list[SpaceMap]) -> None:
    from gluonmap.model import codec

    click.echo(codec.dumps(maps[0] if len(maps) == 1 else maps), nl=False)


def _render(space: SpaceMap) -> None:
    """Print a map; if nobody reads stdout any more (`| head`), go on without it."""
    from rich.console import Console

    from gluonmap.report import terminal

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    try:
        terminal.render(space, Plain(soft_wrap=False))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _render_heads(spaces: Sequence[SpaceMap]) -> None:
    """Print once more, below several maps, what each of them comes to."""
    from rich.console import Console

    from gluonmap.report import terminal

    with contextlib.suppress(BrokenPipeError):
        terminal.render_heads(spaces, Console(soft_wrap=False))
        sys.stdout.flush()


def _pages(map_file: Path, space: SpaceMap) -> None:
    """Write the map's Markdown and HTML beside it."""
    from gluonmap.model import codec
    from gluonmap.report import markdown
    from gluonmap.report.html.site import write_beside

    codec.write(map_file.with_suffix(".md"), markdown.render(space).encode())
    write_beside(map_file, space)


def main() -> None:
    """Entry point."""
    if sys.stdout is None:  # closed by whoever started this: nobody wants to read it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    # What a terminal or a file of another encoding cannot hold is escaped; JSON goes out as bytes of UTF-8 anyway.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    cli()


if __name__ == "__main__":
    main()
