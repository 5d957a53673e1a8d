"""Result of executing one configuration on the CPU, for terminal and JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gluonmap.model.candidate import Config, Value
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Check, Figures, Resources, Verdict
from gluonmap.probe.execute_one import ExecutedConfiguration
from gluonmap.report import execution, terminal_pieces
from gluonmap.report.map_header import target_name
from gluonmap.report.plain_text import config_text, visible


class Executed(msgspec.Struct, frozen=True, omit_defaults=True):
    """One configuration on one target, and the result of its execution."""

    kernel: str
    target: str
    triton: str
    config: Config
    outcome: str
    stage: str
    """The stage at which it ended: COMPILE or RUN."""
    exit_status: int
    kind: str = ""
    reason: str = ""
    place: str = ""
    """For example "gemm.py:78"; empty: not known."""
    digest: str = ""
    check: Check | None = None
    figures: Figures | None = None
    resources: Resources | None = None
    shape: dict[str, Value] = {}
    """Sizes that the program was compiled for."""


def of(ran: ExecutedConfiguration) -> Executed:
    """Return the result of a run as data that can be printed."""
    verdict: Verdict = ran.verdict
    reason = verdict.reason
    return Executed(
        kernel=ran.kernel,
        target=ran.target,
        triton=ran.triton,
        config=ran.config,
        outcome=verdict.outcome.value,
        stage=verdict.stage.value,
        exit_status=verdict.exit_status,
        kind=reason.kind if reason else "",
        reason=reason.text if reason else "",
        place=ran.place,
        digest=verdict.program.digest if verdict.program else "",
        check=verdict.check,
        figures=verdict.figures,
        resources=verdict.resources,
        shape=ran.shape,
    )


def render(result: Executed, console: Console, *, first: bool = True) -> None:
    """Print the result; `first`: no blank line before it."""
    terminal_pieces.show(console, lambda: _print(result, console, first))


def _print(result: Executed, console: Console, first: bool) -> None:
    if not first:
        console.print()
    outcome = Outcome(result.outcome)
    head = Text(f"{result.outcome} ", _colour(outcome))
    head.append(visible(f"{result.kernel} on {target_name(result.target)}"), "bold")
    console.print(head)
    _say(f"{_said(result, outcome)}.", console)
    if result.reason:
        at = f" ({visible(result.place)})" if result.place else ""
        _say(f"{visible(result.kind)}: {visible(result.reason)}{at}", console)
    console.print()
    console.print(Padding(_facts(result), (0, 0, 0, 1)))
    if result.check and result.check.findings:
        console.print(Text("\nFindings", "bold"))
        for item in execution.findings_of("", result.check):
            _say(f"- {execution.finding_text(item)}", console)


def _said(result: Executed, outcome: Outcome) -> str:
    """Return the meaning of the outcome for this configuration."""
    alone = result.check is not None and result.check.against == "baseline"  # which is this very configuration
    if alone and outcome is Outcome.PASS:
        return "it ran twice and left the same; the probe file has no reference, so nothing says whether that is right"
    if alone and outcome is Outcome.WRONG:
        return "it ran twice and left two results"
    return outcome.info.executed


def _colour(outcome: Outcome) -> str:
    if outcome.undecided:
        return "bold magenta"
    return "bold red" if outcome.failed else "bold green"


def _facts(result: Executed) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("configuration", visible(config_text(result.config)))
    for name, text in (*_checked(result.check), *_counted(result.figures)):
        table.add_row(name, visible(text))
    if result.digest:
        table.add_row("program", result.digest[:8])
    table.add_row("Triton", result.triton)
    return table


def _checked(check: Check | None) -> Iterator[tuple[str, str]]:
    if check is None:
        return
    for error in check.errors:
        bad = f", {error.misplaced:,} elements NaN or infinite on one side only" if error.misplaced else ""
        yield (
            f"{error.output} against {'itself' if check.against == 'baseline' else 'the reference'}",
            f"{'as far as it came: ' if check.findings else ''}relative error {error.relative:.2g} "
            f"(may be {error.tolerance:g}), "
            f"largest of an element {error.elementwise:.2g} (may be {error.bound:g}){bad}",
        )
    sizes = [f"{name}: {size or 'no sizes'}" for name, size in zip(check.shapes, check.sizes, strict=False)]
    none = "" if "ragged" in check.shapes else "; no ragged sizes were executed"
    yield "sizes", "; ".join(sizes) + none
    watched = "accesses, waits and barriers watched" if check.sanitized else "accesses out of bounds watched"
    yield "launches", f"{check.runs} compared; {watched}{'; two differed in some bit' if check.racy else ''}"


def _counted(figures: Figures | None) -> Iterator[tuple[str, str]]:
    if figures is None:
        return
    total = sum(figures.instructions.values())
    mix = ", ".join(
        f"{name} {count / total:.0%}" for name, count in figures.instructions.items() if count * 200 >= total
    )
    yield "instructions", f"{total:,} by the waves of {figures.work_groups:,} work-groups: {mix}"
    if figures.lds_ideal:
        yield "LDS", f"{figures.lds_passes:,} passes over the banks, {figures.lds_conflicts:.2f} times the ideal"
    if figures.global_accesses:
        yield (
            "global memory",
            f"{figures.global_lines / figures.global_accesses:.1f} lines of 64 bytes an access, "
            f"{figures.line_use:.0%} of their bytes wanted",
        )
    yield "waits, barriers", f"{figures.waits:,}, {figures.barriers:,}"
    if figures.scratch_bytes:
        yield "scratch", f"{figures.scratch_bytes:,} bytes spilled and filled"


def _say(text: str, console: Console) -> None:
    console.print(Padding(Text(text), (0, 0, 0, 1)))
