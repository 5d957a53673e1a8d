"""What the linter says, and what it is told."""

from __future__ import annotations

import msgspec

from gluonmap.model.errors import UsageError

LINT_SCHEMA = "gluonmap.lint/1"

MOST_CONFIGS = 200
"""Configurations of one tuner that pass without a word; each is compiled and timed again for every new key."""


class Rule(msgspec.Struct, frozen=True):
    """One trap."""

    code: str
    title: str
    """What is wrong, in a few words, for lists of rules."""
    asked: bool = False
    """It is looked for only where it is asked for."""


RULES: dict[str, Rule] = {
    rule.code: rule
    for rule in (
        Rule("GM001", "the file cannot be parsed"),
        Rule("GM002", "an ignore comment hides nothing"),
        Rule("GM101", "an AMD knob is a keyword of triton.Config"),
        Rule("GM102", "a launch option is in the dict of triton.Config"),
        Rule("GM103", "key= misses an argument that decides how much work there is"),
        Rule("GM104", "the grid is fixed while block sizes are tuned"),
        Rule("GM105", "the list of configurations has one entry"),
        Rule("GM106", "the list of configurations is longer than the budget"),
        Rule("GM201", "a constexpr parameter is never read"),
        Rule("GM202", "a load or store leaves the tail unmasked"),
        Rule("GM203", "some strides are assumed positive and others are not", asked=True),
        Rule("GM204", "a side of a tile is a number in the text"),
        Rule("GM301", "the device is asked for at import"),
        Rule("GM302", "a kernel for gfx942 uses what gfx942 lacks"),
    )
}
DEFAULT_CODES = frozenset(code for code, rule in RULES.items() if not rule.asked)


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One trap at one place."""

    path: str
    """As it was given, or below what was given."""
    line: int
    """From 1."""
    column: int
    """From 1."""
    code: str
    message: str
    """What is wrong, one sentence without its full stop."""
    mend: str
    """What to do, one sentence without its full stop."""
    function: str = ""
    """The kernel that it is about."""


class Settings(msgspec.Struct, frozen=True):
    """What is looked for."""

    codes: frozenset[str] = DEFAULT_CODES
    budget: int = MOST_CONFIGS
    """Most configurations of one tuner."""


class Linted(msgspec.Struct, frozen=True):
    """What a run found."""

    findings: tuple[Finding, ...]
    """By path, line and column."""
    files: int
    """Files that were looked at."""
    ignored: int
    """Findings that comments in the files hide."""
    schema: str = LINT_SCHEMA


def chosen_codes(select: str, ignore: str) -> frozenset[str]:
    """The codes that two lists of codes or beginnings of codes ("GM101,GM2") leave; an empty `select`: the usual ones.

    Raises:
        UsageError: one of them is the beginning of no code.
    """
    return (_codes(select, "--select") if select.strip() else DEFAULT_CODES) - _codes(ignore, "--ignore")


def _codes(text: str, option: str) -> frozenset[str]:
    found: set[str] = set()
    for part in (part.strip().upper() for part in text.split(",")):
        codes = {code for code in RULES if part and code.startswith(part)}
        if part and not codes:
            raise UsageError(
                f"{option} has no code {part!r} (there are {', '.join(RULES)}). docs/lint.md tells them apart."
            )
        found |= codes
    return frozenset(found)
