"""The rules of the linter, its settings and its result.

`RULES` lists every rule. A new rule needs an entry there, a `check` in one of the `*_rules` modules that `run` calls,
and a section of docs/lint.md with a bad and a good example, which tests/lint demands.
"""

from __future__ import annotations

import msgspec

from gluonmap.model.errors import UsageError

LINT_SCHEMA = "gluonmap.lint/1"

MOST_CONFIGS = 200
"""Most configurations of one tuner without a finding. Each is compiled and timed again for every new key."""


class LintRule(msgspec.Struct, frozen=True):
    """One rule, which finds one kind of trap."""

    code: str
    title: str
    """The fault in a few words, for lists of rules."""
    asked: bool = False
    """The rule is applied only if the user selects it."""


RULES: dict[str, LintRule] = {
    rule.code: rule
    for rule in (
        LintRule("GM001", "the file cannot be parsed"),
        LintRule("GM002", "an ignore comment hides nothing"),
        LintRule("GM101", "an AMD knob is a keyword of triton.Config"),
        LintRule("GM102", "a launch option is in the dict of triton.Config"),
        LintRule("GM103", "key= misses an argument that decides how much work there is"),
        LintRule("GM104", "the grid is fixed while block sizes are tuned"),
        LintRule("GM105", "the list of configurations has one entry"),
        LintRule("GM106", "the list of configurations is longer than the budget"),
        LintRule("GM201", "a constexpr parameter is never read"),
        LintRule("GM202", "a load or store leaves the tail unmasked"),
        LintRule("GM203", "some strides are assumed positive and others are not", asked=True),
        LintRule("GM204", "a side of a tile is a number in the text"),
        LintRule("GM301", "the device is asked for at import"),
        LintRule("GM302", "a kernel for gfx942 uses what gfx942 lacks"),
    )
}
DEFAULT_CODES = frozenset(code for code, rule in RULES.items() if not rule.asked)


class LintFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One trap at one place."""

    path: str
    """Path of the file: as the user gave it, or below the folder that the user gave."""
    line: int
    """From 1."""
    column: int
    """From 1."""
    code: str
    message: str
    """The fault: one sentence without its full stop."""
    mend: str
    """The fix: one sentence without its full stop."""
    function: str = ""
    """Name of the kernel; empty if the finding is about no kernel."""


class LintSettings(msgspec.Struct, frozen=True):
    """The rules to apply, and their limits."""

    codes: frozenset[str] = DEFAULT_CODES
    budget: int = MOST_CONFIGS
    """Most configurations of one tuner, see `MOST_CONFIGS`."""


class Linted(msgspec.Struct, frozen=True):
    """The result of a run."""

    findings: tuple[LintFinding, ...]
    """Findings that no comment hides, sorted by path, line and column."""
    files: int
    """Number of files that were parsed."""
    ignored: int
    """Number of findings that comments in the files hide."""
    schema: str = LINT_SCHEMA


def chosen_codes(select: str, ignore: str) -> frozenset[str]:
    """Return the selected codes without the ignored ones. Both texts list codes or their beginnings: "GM101,GM2".

    An empty `select` stands for the default codes.

    Raises:
        UsageError: no code begins with one of them.
    """
    return (_codes(select, "--select") if select.strip() else DEFAULT_CODES) - _codes(ignore, "--ignore")


def _codes(text: str, option: str) -> frozenset[str]:
    found: set[str] = set()
    for part in (part.strip().upper() for part in text.split(",")):
        codes = {code for code in RULES if part and code.startswith(part)}
        if part and not codes:
            raise UsageError(
                f"{option} has no code {part!r} (there are {', '.join(RULES)}). docs/lint.md explains them."
            )
        found |= codes
    return frozenset(found)
