"""Findings of an audit: for the terminal, for the page of a GitHub run, and as annotations."""

from __future__ import annotations

from collections.abc import Sequence

import click
from tabulate import tabulate

from gluonmap.audit.findings import Audit, AuditFinding, CheckedRule, Severity, ShippedPlace, Tally
from gluonmap.model.wording import listed
from gluonmap.report import github
from gluonmap.report.map_header import target_name
from gluonmap.report.markdown import code, text
from gluonmap.report.plain_text import plural, shorten, visible

MOST_PLACES = 4
"""Number of places that one finding names."""
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTICE: "cyan"}
_LEVELS = {
    Severity.ERROR: github.Level.ERROR,
    Severity.WARNING: github.Level.WARNING,
    Severity.NOTICE: github.Level.NOTICE,
}


def render(audit: Audit) -> None:
    """Print an audit: its findings, the worst first, then the files in numbers and the sum."""
    kernel = f"{visible(audit.kernel)} ({visible(audit.file)})"
    click.echo(f"{kernel} on {target_name(audit.target)}, {_basis(audit)}")
    for note in audit.notes:
        click.echo(f"note: {visible(note)}")
    if audit.findings:
        click.echo()
    repeated: set[tuple[str, str]] = set()
    for item in audit.findings:
        label = click.style(str(item.severity), fg=_COLOURS[item.severity], bold=item.severity is Severity.ERROR)
        click.echo(f"{_where(item)}: {label}: {_short(item.text)} [{item.kind}]")
        for detail in _details(item):
            click.echo(f"    {detail}")
        if item.repeat and item.severity is Severity.ERROR and (item.reason, item.at) not in repeated:
            repeated.add((item.reason, item.at))  # one of a kind is enough: --json has the others
            click.echo(f"    {visible(item.repeat)}")
    tables = [_files(audit), _rules(audit)]
    for table in filter(None, tables):
        click.echo(f"\n{table}")
    click.echo(f"\n{summary(audit)}")


def summary(audit: Audit) -> str:
    """Return "2 errors, 1 warning and 3 notices", or that nothing was found."""
    counts = [(audit.count(severity), str(severity)) for severity in Severity]
    return listed(plural(count, name) for count, name in counts if count) or "nothing found"


def _basis(audit: Audit) -> str:
    compiled = f"{plural(audit.compiled, 'candidate')} compiled now"
    known = f"from the map {visible(audit.map)}" if audit.map else "without a map"
    return f"Triton {visible(audit.triton)}: {known}, {compiled}"


def _where(item: AuditFinding) -> str:
    return _place(item.places[0]) if item.places else "command line"


def _place(place: ShippedPlace) -> str:
    line = f":{place.line}" if place.line else ""
    return f"{visible(place.file)}{line}"


def _short(raw: str) -> str:
    # In one line, whatever an entry's name holds: a sentence must not end where a name breaks.
    return shorten(visible(" ".join(raw.split())), 400)


def _details(item: AuditFinding) -> list[str]:
    found = [_short(detail) for detail in item.details]
    if len(item.places) > 1:
        found.append(f"in {_entries(item)}")
    return found


def _entries(item: AuditFinding) -> str:
    """Return the entries of a finding, with their lines."""
    shown = [_entry(place) for place in item.places[:MOST_PLACES]]
    rest = len(item.places) - len(shown)
    return listed([*filter(None, shown), *([f"{rest} more"] if rest else [])])


def _entry(place: ShippedPlace) -> str:
    name = visible(place.entry)
    return f"{name} (line {place.line})" if place.line and name else name


def _files(audit: Audit) -> str:
    if not audit.files:
        return ""
    rows = [(visible(f.file), f.form, f.entries, f.passed, f.failed, f.programs or "") for f in audit.files]
    heads = ("file", "form", "entries", "pass", "fail", "programs")
    return tabulate(rows, heads, disable_numparse=[0, 1])


def _rules(audit: Audit) -> str:
    if not audit.rules:
        return ""
    rows = [(visible(rule.name), *_cells(rule)) for rule in audit.rules]
    return tabulate(rows, ("rule", "drops feasible", "programs lost", "keeps infeasible"), disable_numparse=True)


def _cells(rule: CheckedRule) -> tuple[str, str, str]:
    lost = "" if rule.lost is None or rule.programs is None else f"{rule.lost:,} of {rule.programs:,}"
    return _tally(rule.feasible), lost, _tally(rule.infeasible)


def _tally(tally: Tally) -> str:
    many = f"{tally.mistaken:,} of {tally.looked_at:,}"
    if tally.size == tally.looked_at:
        return many
    return f"{many} drawn from {tally.size:,}" if tally.size else f"{many} compiled"


# ---- GitHub --------------------------------------------------------------------------------------------------------


def report_to_github(audits: Sequence[Audit]) -> None:
    """Annotate each finding and write the page of the run; nothing outside of GitHub Actions."""
    if not github.active():
        return
    for audit in audits:
        for item in audit.findings:
            message = "\n".join([item.text, *_details(item)])
            title = f"gluonmap check ({audit.target}): {item.kind}"
            at_each = item.places if item.severity is Severity.ERROR else item.places[:1]
            for place in at_each or (ShippedPlace(audit.file),):
                github.annotate(_LEVELS[item.severity], message, file=place.file, line=place.line, title=title)
    github.summarise("\n\n".join(markdown(audit) for audit in audits))


def markdown(audit: Audit) -> str:
    """Return the audit as Markdown. No text of it can end a table cell, open a tag or run as Markdown."""
    blocks = [
        f"## gluonmap check: {code(audit.kernel)} on {text(target_name(audit.target))}",
        text(f"{summary(audit)}."),
    ]
    blocks.append(text(f"{audit.file}, {_basis(audit)}."))
    if audit.findings:
        heads = ("severity", "where", "what")
        rows = [(str(f.severity), code(_where(f)), _cell(f)) for f in audit.findings]
        blocks.append(tabulate(rows, heads, tablefmt="github", disable_numparse=True))
    if audit.files:
        files = [
            (code(f.file), f.form, str(f.entries), str(f.passed), str(f.failed), str(f.programs)) for f in audit.files
        ]
        heads_of_files = ("file", "form", "entries", "pass", "fail", "programs")
        blocks.append(tabulate(files, heads_of_files, tablefmt="github", disable_numparse=True))
    if audit.rules:
        rules = [(code(rule.name), *_cells(rule)) for rule in audit.rules]
        heads_of_rules = ("rule", "drops feasible", "programs lost", "keeps infeasible")
        blocks.append(tabulate(rules, heads_of_rules, tablefmt="github", disable_numparse=True))
    if audit.notes:
        blocks.append("\n".join(f"- {text(note)}" for note in audit.notes))
    return "\n\n".join(blocks)


def _cell(item: AuditFinding) -> str:
    lines = [f"**{item.kind}**: {text(_short(item.text))}", *map(text, _details(item))]
    return "<br>".join(lines)
