"""Result of learning from a table of verdicts, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from gluonmap.acquire.result import Learned
from gluonmap.model.joint_map import Certificate, Constraint
from gluonmap.probe.recorded_table import Score
from gluonmap.report.plain_text import plural, visible


def render(name: str, learned: Learned, score: Score, console: Console) -> None:
    """Print the constraints, how few questions they took, how right they are on the table, and the certificate."""
    feasible = "" if learned.feasible is None else f"; {learned.feasible:,} of {learned.size:,} are feasible"
    console.print(Text(f"{name}: {score.asked:,} of {plural(score.rows, 'row')} asked{feasible}", "bold"))
    exact = f"right on every row from question {score.exact_from} on" if score.exact_from else "not right on every row"
    console.print(f"{exact}; precision {score.precision:.4f}, recall {score.recall:.4f}", highlight=False)
    for note in learned.notes:
        _bullet(note, console)
    if learned.constraints:
        console.print("\n[bold underline]A configuration is feasible where[/]")
    for item in learned.constraints:
        _constraint(item, console)
    if learned.formula:
        _bullet(f"shared memory in bytes: {learned.formula}", console)
    if learned.inertness:
        console.print("\n[bold underline]When a knob matters[/]")
        for each in learned.inertness:
            _bullet(each.words, console)
    if learned.unstable:
        console.print("\n[bold underline]Answered in two ways, never fitted[/]")
        for torn in learned.unstable:
            _bullet(f"{torn.config}: {', '.join(torn.outcomes)}", console)
    _certificate(learned.certificate, console)
    names = {1: "values", 2: "value pairs", 3: "value triples"}
    for count in learned.coverage:
        _bullet(f"{names[count.order]} seen passing: {count.seen:,} of {count.possible:,} possible", console)


def _constraint(item: Constraint, console: Console) -> None:
    _bullet(item.words, console, "bold")
    why = " ".join(part for part in (item.outcome, item.stage and f"({item.stage})", item.reason) if part)
    evidence = f"{item.failed} failed, {item.passed} passed"
    details = [f"{item.standing}: {evidence}", why, item.line and f"line {item.line}"]
    details += [f"cannot be told apart here from: {other}" for other in item.alternatives[:3]]
    for detail in filter(None, details):
        console.print(Text(f"     {visible(detail)[:200]}", "dim"))


def _certificate(certificate: Certificate, console: Console) -> None:
    console.print(f"\n[bold underline]Certificate at {certificate.confidence:.0%} confidence[/]")
    for statement in certificate.statements:
        _bullet(statement, console)


def _bullet(text: str, console: Console, style: str = "") -> None:
    console.print(Text(f" - {visible(text)}", style))
