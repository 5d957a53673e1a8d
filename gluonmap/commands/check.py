"""gluonmap check: what a project ships, judged: lists of configurations, restrictions, pruning functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gluonmap.become import become
from gluonmap.options import bytes_of, pair, value_of

if TYPE_CHECKING:
    from gluonmap.audit.findings import Audit
    from gluonmap.audit.rules import Rule
    from gluonmap.audit.shipped import Source
    from gluonmap.auditor import Wanted
    from gluonmap.campaign import Settings

Command = TypeVar("Command", bound=Callable[..., Any])


def _kernel_options(command: Command) -> Command:
    """What tells of a kernel that cannot be seen in its file, as for probe."""
    for add in reversed(_KERNEL_OPTIONS):
        command = add(command)
    return command


_KERNEL_OPTIONS = (
    click.option("--kernel", default="", metavar="NAME", help="Function, where the file holds several."),
    click.option("--set", "sets", multiple=True, metavar="K=V", help="A value that the call gives to every entry."),
    click.option("--arg", "args", multiple=True, metavar="K=V", help="A run-time argument: a number or a type."),
    click.option("--derive", multiple=True, metavar="K=EXPR", help="A parameter that host code computes."),
    click.option("--grid", default="", metavar="EXPR", help="Launch grid."),
    click.option("--regime", default="", metavar="NAME", help="Which shape of the probe file to compile for."),
    click.option("--probe-file", type=click.Path(path_type=Path), help="By default the one that bears its name."),
    click.option("--stub", "stubs", multiple=True, metavar="PACKAGE", help="Leave out the __init__ of a package."),
    click.option("--jobs", "-j", type=click.IntRange(1, 512), help="Candidates at once; by default one per core."),
    click.option("--deadline", type=click.FloatRange(min=0.1), metavar="SECONDS", help="After it one is HUNG."),
    click.option("--memory", default="", metavar="SIZE", help="Memory of one candidate, such as 8G."),
    click.option("--python", default="", metavar="VENV", help="Compile with the Triton of another environment."),
    click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder of probes/ and reports/."),
)


@click.command()
@click.argument("kernel_file", type=click.Path(path_type=Path), metavar="KERNEL")
@click.argument("more", nargs=-1, metavar="[FILE]…")
@click.option(
    "--configs",
    "configs",
    multiple=True,
    metavar="FILE[#ENTRY]",
    help="A list to audit; without any, and without a rule, the kernel's own @triton.autotune list.",
)
@click.option("--restriction", multiple=True, metavar="EXPR", help="A Kernel Tuner restriction to judge by the map.")
@click.option("--prune", multiple=True, metavar="FILE.py:FUNCTION", help="A pruning function to judge by the map.")
@click.option("--target", "-t", multiple=True, metavar="NAME[,NAME]", help="By default those that the files name.")
@click.option("--map", "map_file", default="", metavar="FILE", help="By default the kernel's own below reports/.")
@click.option("--any-triton", is_flag=True, help="Use a map that another Triton made.")
@click.option("--no-compile", is_flag=True, help="Say only what the map knows: needs no Triton.")
@click.option(
    "--samples", type=click.IntRange(1), default=4096, show_default=True, help="What a function is asked about at most."
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    show_default=True,
    help="The least finding that makes the exit code 1.",
)
@_kernel_options
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON (several targets: a list).")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
def check(kernel_file: Path, more: Sequence[str], configs: Sequence[str], **options: Any) -> None:
    """Audit what a project ships for KERNEL: configuration files, its @triton.autotune list, restrictions, pruning.

    Every entry is compiled in a process of its own, unless a map of the kernel knows it. Read are JSON of aiter, vLLM,
    SGLang and Triton, JSON lines, and Python files with triton.Config(…) or Kernel Tuner's restrictions.

    Exit codes: 0 nothing found, 1 findings (see --fail-on), 2 usage, 3 fault, 130 interrupted.

    \b
    gluonmap check my_kernel.py
    gluonmap check kernels/cdna4/gemm_mxfp4.py --configs configs/gfx950/gluon/gemm/gemm_mxfp4/DEFAULT.json
    """
    if options["python"]:
        become(options["python"])
    from gluonmap.audit.findings import Severity
    from gluonmap.report import audited

    sources = _sources([*configs, *more], kernel_file)
    wanted = _wanted(sources, options)
    audits = list(_audits(kernel_file, wanted, options))
    if options["as_json"]:
        _print_json(audits)
    else:
        for number, audit in enumerate(audits):
            if number:
                click.echo()
            audited.render(audit)
    audited.report_to_github(audits)
    worst = {"error": Severity.ERROR, "warning": Severity.WARNING}.get(options["fail_on"])
    failing = worst is not None and any(f.severity.rank <= worst.rank for audit in audits for f in audit.findings)
    sys.exit(1 if failing else 0)


def _sources(names: Sequence[str], kernel_file: Path) -> list[Source]:
    from gluonmap.audit import shipped

    found: list[Source] = []
    for name in dict.fromkeys(names):
        path = Path(name.partition("#")[0])
        if path.is_dir():
            files = sorted(file for file in path.rglob("*.json") if file.is_file())
            if not files:
                raise click.UsageError(f"the folder {name} has no .json file.")
            found += [shipped.read(str(file)) for file in files]
        elif path.resolve() != kernel_file.resolve():
            found.append(shipped.read(name))
    return found


def _wanted(sources: Sequence[Source], options: dict[str, Any]) -> Wanted:
    from gluonmap.audit.findings import Place
    from gluonmap.audit.rules import Rule
    from gluonmap.audit.shipped import Form
    from gluonmap.auditor import Wanted

    rules: list[Rule] = []
    for source in sources:
        if source.form is Form.RULES:
            places = tuple(Place(source.file, line) for line in source.lines)
            rules.append(Rule(source.file, places, source.restrictions, domains=source.domains))
    if options["restriction"]:
        texts = tuple(options["restriction"])
        rules.append(Rule(texts[0] if len(texts) == 1 else "the restrictions", restrictions=texts))
    rules += [_function(text) for text in options["prune"]]
    lists = tuple(source for source in sources if source.form is not Form.RULES)
    return Wanted(
        sources=lists,
        own_list=not lists,
        rules=tuple(rules),
        map=options["map_file"],
        any_triton=options["any_triton"],
        samples=options["samples"],
    )


def _function(text: str) -> Rule:
    import ast

    from gluonmap import source
    from gluonmap.audit.findings import Place
    from gluonmap.audit.rules import Rule

    name, colon, function = text.rpartition(":")
    path = Path(name)
    if not colon or not function.isidentifier() or not path.is_file():
        what = f"there is no file {name}" if colon and function.isidentifier() else f"{text!r} names no function"
        raise click.UsageError(f"--prune takes FILE.py:FUNCTION: {what}.")
    try:
        body = ast.parse(source.text_of(path)).body
    except (SyntaxError, ValueError) as error:
        raise click.UsageError(f"--prune: {name} is no Python: {error}.") from error
    lines = [node.lineno for node in body if isinstance(node, ast.FunctionDef) and node.name == function]
    place = Place(name, lines[-1] if lines else None, function)
    return Rule(f"{path.name}:{function}", (place,), file=name, function=function)


def _audits(kernel_file: Path, wanted: Wanted, options: dict[str, Any]) -> Sequence[Audit]:
    from gluonmap import auditor, codec
    from gluonmap.auditor import unasked
    from gluonmap.errors import UsageError
    from gluonmap.progress import Progress

    chosen = [name for text in options["target"] for name in text.split(",") if name.strip()]
    if options["no_compile"]:
        if not wanted.map:
            raise UsageError("--no-compile needs a map: name it with --map FILE.")
        return [unasked.audit(codec.read_map(Path(wanted.map)), wanted)]
    with Progress(quiet=options["quiet"]) as listen:
        audits = list(auditor.run(_settings(kernel_file, options), wanted, chosen, listen))
    if not audits:
        raise UsageError("there is nothing to audit.")
    return audits


def _settings(kernel_file: Path, options: dict[str, Any]) -> Settings:
    from gluonmap import campaign
    from gluonmap.describe import Wishes

    jobs = options["jobs"] or campaign.default_jobs()
    wishes = Wishes(
        kernel=options["kernel"],
        sets={k: value_of(v) for k, v in (pair(t, "--set") for t in options["sets"])},
        derive=dict(pair(t, "--derive") for t in options["derive"]),
        args={k: value_of(v) for k, v in (pair(t, "--arg") for t in options["args"])},
        grid=options["grid"],
        regime=options["regime"],
    )
    return campaign.Settings(
        kernel_file=kernel_file,
        root=options["out"] or Path.cwd(),
        wishes=wishes,
        probe_file=options["probe_file"],
        stubs=tuple(options["stubs"]),
        jobs=jobs,
        deadline_s=options["deadline"],
        memory_bytes=bytes_of(options["memory"]) if options["memory"] else campaign.default_memory_bytes(jobs),
    )


def _print_json(audits: Sequence[Audit]) -> None:
    from gluonmap import codec

    click.echo(codec.dumps(audits[0] if len(audits) == 1 else list(audits)), nl=False)
