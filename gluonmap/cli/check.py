"""`gluonmap check`: audit the configurations, restrictions and pruning functions that a project ships."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gluonmap.cli.json_output import print_one_or_list
from gluonmap.cli.kernel_options import flags, settings_of
from gluonmap.cli.option_values import names_of
from gluonmap.cli.reexec import become
from gluonmap.model.errors import UsageError

if TYPE_CHECKING:
    from gluonmap.audit.findings import Audit
    from gluonmap.audit.request import AuditRequest, PruningRule
    from gluonmap.audit.shipped_files import ShippedFile


@click.command(short_help="Audit the configurations a project ships.")
@click.argument("kernel_file", type=click.Path(path_type=Path), metavar="KERNEL")
@click.argument("more", nargs=-1, metavar="[FILE]…")
@click.option(
    "--configs",
    "configs",
    multiple=True,
    metavar="FILE[#ENTRY]",
    help="List to audit. Without lists and rules the kernel's own @triton.autotune list is audited.",
)
@click.option("--restriction", multiple=True, metavar="EXPR", help="Kernel Tuner restriction to compare with the map.")
@click.option("--prune", multiple=True, metavar="FILE.py:FUNCTION", help="Pruning function to compare with the map.")
@click.option(
    "--target",
    "-t",
    multiple=True,
    metavar="NAME[,NAME]",
    help="Targets to audit for. By default the targets in the files' names, else the probe file's TARGETS, else those "
    "of the kernel's maps, else all that its API allows.",
)
@click.option(
    "--map", "map_file", default="", metavar="FILE", help="Map to use; by default the kernel's own below reports/."
)
@click.option("--any-triton", is_flag=True, help="Use the map although another Triton made it.")
@click.option("--no-compile", is_flag=True, help="Use the map alone, without Triton.")
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=4096,
    show_default=True,
    help="Largest number of configurations that a function is called with.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    show_default=True,
    help="The mildest finding that makes the exit code 1.",
)
@flags(
    *("kernel", "sets", "args", "derive", "grid", "regime", "probe_file", "stubs"),
    *("jobs", "deadline", "memory", "python", "out"),
    sets="Value that the call gives to every entry.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (several targets: a list).")
@flags("quiet")
def check(kernel_file: Path, more: Sequence[str], configs: Sequence[str], prune: Sequence[str], **options: Any) -> None:
    """Audit what a project ships for KERNEL: configuration files, its @triton.autotune list, restrictions, pruning.

    Every entry is compiled in its own process, unless a map of the kernel has the answer. FILE may be JSON of aiter,
    vLLM, SGLang or Triton, JSON lines, or a Python file with triton.Config(…) or Kernel Tuner's restrictions.

    Exit codes: 0 nothing found, 1 findings (see --fail-on), 2 usage, 3 fault, 130 interrupted.

    \b
    gluonmap check my_kernel.py
    gluonmap check kernels/cdna4/gemm_mxfp4.py --configs configs/gfx950/gluon/gemm/gemm_mxfp4/DEFAULT.json
    """
    if options["python"]:
        become(options["python"])
    from gluonmap.audit.findings import Severity
    from gluonmap.report import check as audited

    sources = _sources([*configs, *more], kernel_file)
    wanted = _wanted(sources, prune, options)
    audits = list(_audits(kernel_file, wanted, options))
    if options["as_json"]:
        print_one_or_list(audits)
    else:
        for number, audit in enumerate(audits):
            if number:
                click.echo()
            audited.render(audit)
    audited.report_to_github(audits)
    worst = {"error": Severity.ERROR, "warning": Severity.WARNING}.get(options["fail_on"])
    failing = worst is not None and any(f.severity.rank <= worst.rank for audit in audits for f in audit.findings)
    sys.exit(1 if failing else 0)


def _sources(names: Sequence[str], kernel_file: Path) -> list[ShippedFile]:
    from gluonmap.audit.shipped_files import read_shipped_file

    found: list[ShippedFile] = []
    for name in dict.fromkeys(names):
        path = Path(name.partition("#")[0])
        if path.is_dir():
            files = sorted(file for file in path.rglob("*.json") if file.is_file())
            if not files:
                raise click.UsageError(f"the folder {name} has no .json file.")
            found += [read_shipped_file(str(file)) for file in files]
        elif path.resolve() != kernel_file.resolve():
            found.append(read_shipped_file(name))
    return found


def _wanted(sources: Sequence[ShippedFile], prune: Sequence[str], options: dict[str, Any]) -> AuditRequest:
    from gluonmap.audit.findings import ShippedPlace
    from gluonmap.audit.request import AuditRequest, PruningRule
    from gluonmap.audit.shipped_files import FileForm

    rules: list[PruningRule] = []
    for source in sources:
        if source.form is FileForm.RULES:
            places = tuple(ShippedPlace(source.file, line) for line in source.lines)
            rules.append(PruningRule(source.file, places, source.restrictions, domains=source.domains))
    if options["restriction"]:
        texts = tuple(options["restriction"])
        for text in texts:
            if text.strip().startswith("lambda"):
                raise click.UsageError(
                    f"--restriction takes an expression of the knobs, and {text!r} is a function: give what it "
                    "returns, or a function of a file with --prune FILE.py:FUNCTION."
                )
        rules.append(PruningRule(texts[0] if len(texts) == 1 else "the restrictions", restrictions=texts))
    rules += [_function(text) for text in prune]
    lists = tuple(source for source in sources if source.form is not FileForm.RULES)
    return AuditRequest(
        sources=lists,
        own_list=not lists,
        rules=tuple(rules),
        map=options["map_file"],
        any_triton=options["any_triton"],
        samples=options["samples"],
    )


def _function(text: str) -> PruningRule:
    import ast

    from gluonmap.audit.findings import ShippedPlace
    from gluonmap.audit.request import PruningRule
    from gluonmap.source import syntax

    name, colon, function = text.rpartition(":")
    path = Path(name)
    if not colon or not function.isidentifier() or not path.is_file():
        what = f"there is no file {name}" if colon and function.isidentifier() else f"{text!r} names no function"
        raise click.UsageError(f"--prune takes FILE.py:FUNCTION: {what}.")
    try:
        body = ast.parse(syntax.text_of(path)).body
    except (SyntaxError, ValueError) as error:
        raise click.UsageError(f"--prune: {name} is no Python: {error}.") from error
    lines = [node.lineno for node in body if isinstance(node, ast.FunctionDef) and node.name == function]
    place = ShippedPlace(name, lines[-1] if lines else None, function)
    return PruningRule(f"{path.name}:{function}", (place,), file=name, function=function)


def _audits(kernel_file: Path, wanted: AuditRequest, options: dict[str, Any]) -> Sequence[Audit]:
    from gluonmap.audit.from_map import audit_from_map
    from gluonmap.audit.run import run
    from gluonmap.cli.progress import ProgressDisplay
    from gluonmap.model import codec

    chosen = names_of(*options["target"])
    if options["no_compile"]:
        if not wanted.map:
            raise UsageError("--no-compile needs a map: name it with --map FILE.")
        return [audit_from_map(codec.read_map(Path(wanted.map)), wanted)]
    with ProgressDisplay(quiet=options["quiet"]) as listen:
        audits = list(run(settings_of(kernel_file, options), wanted, chosen, listen))
    if not audits:
        raise UsageError("there is nothing to audit.")
    return audits
