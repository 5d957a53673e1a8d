"""Regressions and other configurations that changed sides, as statements: one for each reason."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from gluonmap.diff.comparison import Difference
from gluonmap.diff.flips import Flip, MapJudgement
from gluonmap.diff.regressions import Regression, RegressionKind
from gluonmap.diff.resources import Growth
from gluonmap.model.candidate import Config
from gluonmap.probe.spelling import quoted
from gluonmap.report.diff.headline import side
from gluonmap.report.plain_text import Statement, config_text, first_line, shorten, visible
from gluonmap.report.resources import resource_name

MOST = 8
"""Entries of one list; the rest is counted."""
MOST_CAUSES = 6

Item = TypeVar("Item")


def alike(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Return the items in groups of one key, by first appearance."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def more(count: int, what: str) -> Iterator[Statement]:
    """Yield "and 3 more constraints", unless there are none."""
    if count > 0:
        yield Statement(f"and {count:,} more {what}")


def moved(moves: Config) -> str:
    """Return "M=64, N=32", or "the baseline"."""
    return config_text(moves) if moves else "the baseline"


WORTH_A_FACTOR = 1.1
"""Growth below it says nothing as a factor: "61 → 62 (1.0 ×)"."""


def grew(found: Difference, growth: Growth) -> str:
    """Return "spills 42 → 376 (9.0 ×)"."""
    head, unit = resource_name(found.after.target, growth.resource)
    times = f" ({growth.after / growth.before:.1f} ×)" if 0 < growth.before * WORTH_A_FACTOR <= growth.after else ""
    return f"{head} {growth.before:,} → {growth.after:,}{unit}{times}"


# ---- regressions ----------------------------------------------------------------------------------------------------


def regressions(found: Difference) -> Iterator[Statement]:
    """Yield the regressions: what fails by its cause, what grew by how much."""
    failing = [(item, item.after) for item in found.regressions if item.after]
    causes = sorted(alike(failing, lambda pair: _cause(pair[1])), key=len, reverse=True)
    for items in causes[:MOST]:
        first, said = items[0]
        many = f"{len(items):,} configurations fail, the nearest to A's baseline {moved(first.moves)}"
        yield Statement(
            f"{many if len(items) > 1 else f'{moved(first.moves)} fails'}: {why_failing(said)}",
            tuple(_evidence([each for _, each in items], [item for item, _ in items])),
        )
    yield from more(sum(map(len, causes[MOST:])), "that fail, for other reasons")
    programs = [item for item in found.regressions if item.kind is RegressionKind.PROGRAM]
    yield from (Statement(f"{moved(i.moves)} is no longer handed over: {visible(i.why)}") for i in programs[:MOST])
    yield from more(len(programs) - MOST, "no longer handed over")
    for kind in (RegressionKind.SPILLS, RegressionKind.REGISTERS):
        grown = [item.growth for item in found.regressions if item.kind is kind and item.growth]
        yield from (Statement(f"{grew(found, growth)} at {moved(growth.moves)}") for growth in grown[:MOST])
        yield from more(len(grown) - MOST, f"in which {kind} grew")


def _evidence(said: Sequence[MapJudgement], items: Sequence[Regression]) -> Iterator[str]:
    """Yield the evidence for a group of failing configurations."""
    compiled = sum(each.compiled for each in said)
    if compiled == len(said):
        yield "compiled for B" if compiled == 1 else "each compiled for B"
    else:
        rest = "it was not compiled for B" if len(said) == 1 else f"{compiled:,} of them compiled for B"
        yield f"by B's constraints; {rest}"
    if handed := sum(item.handed_over for item in items):
        many = "each" if handed == len(items) else f"{handed:,}"
        yield "A hands it over" if len(items) == 1 else f"A hands over {many} of them"


def _cause(said: MapJudgement) -> str:
    """Return the key that configurations share if they fail for the same reason."""
    return said.broken[0] if said.broken else f"{said.outcome} {re.sub('[0-9][0-9,.]*', '#', said.reason)} {said.line}"


def why_failing(said: MapJudgement) -> str:
    """Return why a configuration fails: the compiler's outcome and message, or the constraints that forbid it."""
    place = f" ({visible(said.line)})" if said.line else ""
    if said.compiled:
        message = shorten(first_line(said.reason))
        return f"{visible(said.outcome)}{f', {message}' if message else ''}{place}"
    return f"against {visible('; '.join(said.broken[:2])) or 'a constraint'}{place}"


def next_steps(found: Difference, map_name: str) -> list[str]:
    """Return commands that look at the first regression of each kind in the second map, whose name is given."""
    firsts = {item.kind: item for item in reversed(found.regressions)}
    return list(dict.fromkeys(_look(firsts[kind], map_name) for kind in RegressionKind if kind in firsts))


def _look(item: Regression, map_name: str) -> str:
    moves = "".join(f" {quoted(name, value)}" for name, value in item.again.items())
    verb = "repeat" if item.kind is RegressionKind.BASELINE else "explain"
    return f"gluonmap {verb} {shlex.quote(map_name)}{moves}"


def at_lines(found: Difference) -> Iterator[tuple[str, int | None, str]]:
    """Yield a file, a line of it and what is to be said there, for regressions of one cause at one place."""

    def what(item: Regression) -> str:
        return str(item.kind) if item.after is None else why_failing(item.after)

    change = f"{side(found.before)} → {side(found.after)}"
    for items in alike(found.regressions, lambda item: (item.file, item.line, what(item))):
        first = items[0]
        if first.growth is not None:
            text = grew(found, first.growth)
        elif first.after is not None:
            text = f"passed, and now fails: {why_failing(first.after)}"
        else:
            text = f"is no longer handed over: {visible(first.why)}"
        others = f" (and {len(items) - 1:,} more)" if len(items) > 1 else ""
        yield first.file, first.line, f"{moved(first.moves)}: {text}{others}. {change}"


# ---- combinations that changed sides --------------------------------------------------------------------------------


def lost(found: Difference) -> list[Flip]:
    """Return those that fail in B and that no regression lists: A was never asked about them."""
    return [flip for flip in found.flips if flip.lost and not flip.before.compiled and not flip.deeper]


def gained(found: Difference) -> list[Flip]:
    """Return those of several knobs that pass in B: changes of single values are listed as such."""
    return [flip for flip in found.flips if not flip.lost and len(flip.moves) != 1 and not flip.deeper]


def flipped(flips: Sequence[Flip]) -> Iterator[Statement]:
    """Yield configurations that changed sides, by the cause of failing."""

    def failing(flip: Flip) -> MapJudgement:
        return flip.after if flip.lost else flip.before

    def proved(flip: Flip) -> bool:
        return flip.before.compiled and flip.after.compiled

    groups = sorted(alike(flips, lambda flip: _cause(failing(flip))), key=len, reverse=True)
    for items in groups[:MOST_CAUSES]:
        first = min(items, key=lambda flip: (not proved(flip), not failing(flip).compiled, len(flip.moves)))
        count = sum(map(proved, items))
        many = f"{len(items):,}, for example " if len(items) > 1 else ""
        yield Statement(
            f"{many}{moved(first.moves)}: {why_failing(failing(first))}",
            (f"{count:,} of them compiled for both" if len(items) > 1 else "compiled for both",) if count else (),
        )
    yield from more(sum(map(len, groups[MOST_CAUSES:])), "for other reasons")
