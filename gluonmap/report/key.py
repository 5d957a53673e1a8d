"""What `gluonmap key` says, as text."""

from __future__ import annotations

from gluonmap.lint.key_advice import Advice, Argument
from gluonmap.lint.parameter_flow import Use
from gluonmap.model.noise import Standing
from gluonmap.model.race_record import Split
from gluonmap.report.plain_text import visible

_MOST = 3
"""Places that are named for one argument."""
_WIDTH = 36


def render(told: Advice) -> str:
    """Return the table of arguments, and what follows for the key."""
    from tabulate import tabulate

    lines = [f"{told.kernel} ({told.file}:{told.line})", ""]
    rows = [_row(item) for item in told.arguments if item.belongs or item.in_key or item.name in told.perhaps]
    if rows and told.key is not None:
        lines += [tabulate(rows, ["argument", "in key", "decides", "where"]), ""]
    elif rows:
        lines += [tabulate([(name, *rest) for name, _, *rest in rows], ["argument", "decides", "where"]), ""]
    lines.append(f"key={list(told.suggested)!r}")
    if told.key is not None and not told.missing:
        lines.append(f"nothing is missing from the key in line {told.key_line}")
    if told.missing:
        had = ", ".join(told.key or ()) or "nothing"
        lines.append(f"missing from the key in line {told.key_line} ({had}): {', '.join(told.missing)}")
    lines += [f"{item.name}, in the key, {item.why}" for item in told.idle]
    lines += [f"{item.name} {item.could}" for item in told.arguments if item.could]
    if left := [name for name in told.perhaps if name not in (told.key or ())]:
        lines.append(
            f"decides a branch alone, and belongs there if one process gives it several values: {', '.join(left)}"
        )
    if told.computed:
        lines.append(f"computed from others, whose values do: {', '.join(told.computed)}")
    if told.tuned:
        lines.append(f"tuned: {', '.join(told.tuned)}")
    for split in told.measured:
        lines += ["", *_measured(split)]
    return "\n".join([*lines, *(f"note: {note}" for note in told.notes)]) + "\n"


def _measured(split: Split) -> list[str]:
    """What a race at several values of one argument says of the key."""
    lines = [f"measured on {visible(split.device)}:"]
    for item in split.penalties:
        if item.served in split.shapes and item.at != item.served:
            ratio = item.comparison.ratio
            told = f"{ratio.ratio:.2f}× its own winner's time ({ratio.low:.2f}-{ratio.high:.2f})"
            costs = "no difference above the noise" if item.comparison.standing is Standing.TIE else told
            lines.append(f"  {visible(item.at)} served the winner of {visible(item.served)}: {costs}")
    name = next(iter(split.shapes)).partition("=")[0]
    belongs = "belongs into the key" if split.split else "one configuration serves these values"
    return [*lines, f"  {visible(name)}: {belongs}"]


def _row(item: Argument) -> tuple[str, str, str, str]:
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
