"""Findings of `gluonmap lint`, as text and as Markdown."""

from __future__ import annotations

from collections import Counter

from gluonmap.lint import RULES, Linted, LintFinding
from gluonmap.report.markdown import text
from gluonmap.report.plain_text import plural, visible

_MOST = 50
"""Number of findings that the page of a run lists one by one."""


def render(found: Linted) -> str:
    """Return two lines for each finding, then how many there are."""
    lines = [line for item in found.findings for line in (_first(item), f"    {visible(advice(item))}")]
    return "\n".join([*lines, _count(found)]) + "\n"


def advice(item: LintFinding) -> str:
    """Return the advice of a finding, as a sentence."""
    return f"Fix: {item.mend}."


def markdown(found: Linted) -> str:
    """Return the same for the page of a run: how many of each code, and where."""
    lines = [f"### gluonmap lint: {_count(found)}"]
    if found.findings:
        counts = Counter(item.code for item in found.findings)
        lines += ["", "| code | what | found |", "| --- | --- | --- |"]
        lines += [f"| {code} | {RULES[code].title} | {counts[code]} |" for code in sorted(counts)]
        lines += ["", "| where | code | what |", "| --- | --- | --- |"]
        lines += [
            f"| {text(f'{item.path}:{item.line}')} | {item.code} | {text(f'{item.message}. {advice(item)}')} |"
            for item in found.findings[:_MOST]
        ]
        if len(found.findings) > _MOST:
            lines += ["", f"{len(found.findings) - _MOST} more are in the log."]
    return "\n".join(lines) + "\n"


def _first(item: LintFinding) -> str:
    return visible(f"{item.path}:{item.line}:{item.column} {item.code} {item.message}.")


def _count(found: Linted) -> str:
    hidden = f", {found.ignored} hidden by comments" if found.ignored else ""
    if not found.findings:
        return f"nothing found in {plural(found.files, 'file')}{hidden}"
    where = len({item.path for item in found.findings})
    return f"{plural(len(found.findings), 'finding')} in {where} of {plural(found.files, 'file')}{hidden}"
