"""Changed constraints, with the configurations that each change frees and forbids, as statements."""

from __future__ import annotations

from collections.abc import Iterator

from gluonmap.diff.comparison import Difference
from gluonmap.diff.constraints import ConstraintChange, ConstraintTransition
from gluonmap.report.diff.regressions import MOST, more
from gluonmap.report.plain_text import Statement, first_line, plural, shorten, visible


def constraints(found: Difference) -> Iterator[Statement]:
    """Yield the constraints that moved, and what that frees and forbids."""
    if text := formula(found):
        yield Statement(f"bytes of shared memory: {text}")
    telling = [change for change in found.constraints if has_effect(change)]
    yield from (Statement(f"{how(change)}: {said(change)}", tuple(effect(change))) for change in telling[:MOST])
    yield from more(len(telling) - MOST, "changed constraints")
    idle = [change for change in found.constraints if not has_effect(change)]
    if idle:
        texts = (*(f"{change.move}: {said(change)}" for change in idle[:MOST]), *_rest(len(idle) - MOST))
        yield Statement(IDLE, texts)


IDLE = "without effect on what both maps tried: the other constraints say the same"


def _rest(count: int) -> list[str]:
    return [line.text.rstrip() for line in more(count, "")]


def has_effect(change: ConstraintChange) -> bool:
    """Return whether a change frees or forbids something, as far as that was counted."""
    return bool(change.freed or change.forbidden) or (change.freed is None and change.forbidden is None)


def formula(found: Difference) -> str:
    """Return "2 * M * N ≤ 65,536 → 163,840"; "" where the bytes of shared memory and their limit are the same."""
    formula_change = found.formula
    if formula_change is None:
        return ""
    before, limit = f"{formula_change.before} ≤ {formula_change.before_limit:,}", f"{formula_change.after_limit:,}"
    return visible(
        f"{before} → {limit if formula_change.before == formula_change.after else f'{formula_change.after} ≤ {limit}'}"
    )


def how(change: ConstraintChange) -> str:
    """Return "limit moved, looser"."""
    direction = (
        f", {change.direction}"
        if change.direction and change.move in (ConstraintTransition.LIMIT, ConstraintTransition.OTHER)
        else ""
    )
    return f"{change.move}{direction}"


def said(change: ConstraintChange) -> str:
    """Return the constraint in words; "M * N <= 64 → 128" where only the limit moved."""
    one, other = change.before, change.after
    if one is None or other is None:
        item = one or other
        return visible(item.words) if item else ""
    start, end = one.words.split(), other.words.split()
    short = start[:-1] == end[:-1] and len(start) > 1
    return visible(f"{one.words} → {end[-1] if short else other.words}")


def effect(change: ConstraintChange) -> Iterator[str]:
    """Yield what the change comes from, what it frees and forbids, and what it rests on."""
    if change.budget:
        yield f"limit of the target: {change.budget.before:,} → {change.budget.after:,} {change.budget.unit}"
    if change.freed:
        yield f"{plural(change.freed, 'configuration')} against it in A, feasible in B"
    if change.forbidden:
        yield f"{plural(change.forbidden, 'configuration')} feasible in A, against it in B"
    if change.freed is None and change.forbidden is None:
        yield "its knobs are not those of the other map: what it frees or forbids is not counted"
    item = change.after or change.before
    if item:
        letter = "B" if change.after else "A"
        place = f" at {visible(item.line)}" if item.line else ""
        seen = f", {item.failed:,} failed against it and {item.passed:,} got past it" if item.failed else ""
        why = " ".join(part for part in (item.outcome, item.stage and f"({item.stage})", item.reason) if part)
        yield f"{letter}: {item.standing}{place}{seen}" + (f": {shorten(first_line(why))}" if why else "")
