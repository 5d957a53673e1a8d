"""Comments that hide findings: `# gluonmap: ignore[GM101]`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gluonmap.lint.findings import DEFAULT_CODES, RULES, LintFinding, LintSettings

_COMMENT = re.compile(r"#\s*gluonmap:\s*ignore(?:\s*\[([^\]]*)\])?")


@dataclass(frozen=True)
class Ignore:
    """One comment that hides findings."""

    line: int
    column: int
    codes: frozenset[str]
    """Codes that the comment hides; empty: all codes."""
    alone: bool
    """The comment is alone on its line, and so hides findings of the next line too."""

    def hides(self, finding: LintFinding) -> bool:
        here = finding.line in ((self.line, self.line + 1) if self.alone else (self.line,))
        return here and (not self.codes or finding.code in self.codes)


def read_ignores(text: str) -> list[Ignore]:
    """Return the comments of a file that hide findings."""
    return list(_read(text)) if "gluonmap:" in text else []


def _read(text: str) -> Iterator[Ignore]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            if match:
                codes = frozenset(code.strip() for code in (match[1] or "").split(",") if code.strip())
                alone = not token.line[: token.start[1]].strip()
                yield Ignore(token.start[0], token.start[1] + 1, codes, alone)
    except (tokenize.TokenError, SyntaxError):
        return


def without_ignored(
    findings: Sequence[LintFinding], comments: Sequence[Ignore], path: str, settings: LintSettings
) -> list[LintFinding]:
    """Return the findings that no comment hides, and those about comments that hide nothing."""
    left = [finding for finding in findings if not any(comment.hides(finding) for comment in comments)]
    for comment in comments:
        codes = comment.codes or DEFAULT_CODES
        unknown = sorted(codes - RULES.keys())
        idle = not any(comment.hides(finding) for finding in findings) and codes <= settings.codes
        if (unknown or idle) and "GM002" in settings.codes:
            fault = f"names {', '.join(unknown)}, which is no code" if unknown else "hides nothing"
            left.append(
                LintFinding(
                    path, comment.line, comment.column, "GM002", f"this ignore comment {fault}", "remove or correct it"
                )
            )
    return left
