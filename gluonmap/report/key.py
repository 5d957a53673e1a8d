"""The answer of `gluonmap key`, as text."""

from __future__ import annotations

from gluonmap.lint.key_advice import Advice, KeyArgument
from gluonmap.lint.parameter_flow import Use
from gluonmap.model.noise import RaceStanding
from gluonmap.model.race_record import Split
from gluonmap.report.plain_text import visible

_MOST = 3
"""Number of places that are named for one argument."""
_WIDTH = 36


def render(advice: Advice) -> str:
    """Return the table of arguments, and what follows for the key."""
    from tabulate import tabulate

    lines = [f"{advice.kernel} ({advice.file}:{advice.line})", ""]
    rows = [_row(item) for item in advice.arguments if item.belongs or item.in_key or item.name in advice.perhaps]
    if rows and advice.key is not None:
        lines += [tabulate(rows, ["argument", "in key", "decides", "where"]), ""]
    elif rows:
        lines += [tabulate([(name, *rest) for name, _, *rest in rows], ["argument", "decides", "where"]), ""]
    lines.append(f"key={list(advice.suggested)!r}")
    if advice.key is not None and not advice.missing:
        lines.append(f"nothing is missing from the key in line {advice.key_line}")
    if advice.missing:
        had = ", ".join(advice.key or ()) or "nothing"
        lines.append(f"missing from the key in line {advice.key_line} ({had}): {', '.join(advice.missing)}")
    lines += [f"{item.name}, in the key, {item.why}" for item in advice.idle]
    lines += [f"{item.name} {item.could}" for item in advice.arguments if item.could]
    if left := [name for name in advice.perhaps if name not in (advice.key or ())]:
        belongs = "belongs in the key if one process gives it several values"
        lines.append(f"decides a branch and nothing else; {belongs}: {', '.join(left)}")
    if advice.computed:
        lines.append(f"computed from other arguments, which decide instead: {', '.join(advice.computed)}")
    if advice.tuned:
        lines.append(f"tuned: {', '.join(advice.tuned)}")
    for split in advice.measured:
        lines += ["", *_measured(split)]
    return "\n".join([*lines, *(f"note: {note}" for note in advice.notes)]) + "\n"


def _measured(split: Split) -> list[str]:
    """Return the lines on a race at several values of one argument: whether it belongs into the key."""
    lines = [f"measured on {visible(split.device)}:"]
    for item in split.penalties:
        if item.served in split.shapes and item.at != item.served:
            ratio = item.comparison.ratio
            slowdown = f"{ratio.ratio:.2f}× its own winner's time ({ratio.low:.2f}-{ratio.high:.2f})"
            costs = "no difference above the noise" if item.comparison.standing is RaceStanding.TIE else slowdown
            lines.append(f"  {visible(item.at)} served the winner of {visible(item.served)}: {costs}")
    name = next(iter(split.shapes)).partition("=")[0]
    belongs = "belongs into the key" if split.split else "one configuration serves these values"
    return [*lines, f"  {visible(name)}: {belongs}"]


def _row(item: KeyArgument) -> tuple[str, str, str, str]:
    kinds = list(dict.fromkeys(use.kind for use in item.uses))
    first = {kind: next(use for use in item.uses if use.kind == kind) for kind in kinds}
    shown = [first[kind] for kind in kinds][:_MOST]
    more = len(item.uses) - len(shown)
    where = "; ".join(map(_place, shown)) + (f"; {more} more" if more > 0 else "")
    return item.name, "yes" if item.in_key else "no", ", ".join(kinds) or "nothing", where


def _place(use: Use) -> str:
    if use.line is None:
        return "the probe file"
    inside = f" in {use.function}" if use.function else ""
    text = use.text if len(use.text) <= _WIDTH else f"{use.text[: _WIDTH - 1]}…"
    return f"{f'{use.file}:' if use.file else ''}{use.line}{inside}: {text}"
