"""Feasible parts of the two spaces, and the evidence for the comparison, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator

from gluonmap.diff.comparison import Difference
from gluonmap.diff.spaces import SharedSpace
from gluonmap.model.candidate import Config, same
from gluonmap.report.diff.regressions import moved
from gluonmap.report.plain_text import Statement, plural


def counts(found: Difference) -> Iterator[tuple[str, ...]]:
    """Yield rows: the counts that both maps have."""
    for count in found.counts:
        yield count.name, number(count.before, count.before_at_most), number(count.after, count.after_at_most)


def number(value: int | None, at_most: bool) -> str:
    """Return "160", "at most 160", or "-"."""
    return "-" if value is None else f"at most {value:,}" if at_most else f"{value:,}"


def sizes(found: Difference) -> Iterator[Statement]:
    """Yield the spaces compared, and how much the comparison of single configurations rests on."""
    if found.shared:
        yield Statement(_shared(found.shared), tuple(examples(found, found.shared)))
    yield from asked(found)


def asked(found: Difference) -> Iterator[Statement]:
    """Yield how many configurations the two can be compared on."""
    both = found.asked
    changed = sum(flip.before.compiled and flip.after.compiled for flip in found.flips)
    yield Statement(
        f"{plural(both.both, 'configuration')} asked for both: {both.passed_both:,} passed both; "
        f"{f'{changed:,}' if changed else 'none'} changed sides."
    )
    if both.one_program is not None:
        yield Statement(f"Of {plural(both.programs, 'program')} known in both, {both.one_program:,} are the same code.")
    for letter, other, count in (("A", "B", both.unknown_after), ("B", "A", both.unknown_before)):
        if count:
            yield Statement(f"{count:,} that passed for {letter} {'is' if count == 1 else 'are'} unknown to {other}.")


def _shared(shared: SharedSpace) -> str:
    basis = "each asked" if shared.proved else "by each map's constraints"
    tried = f"Of the {shared.signature:,} configurations of values that both tried, {basis}"
    if shared.lost == shared.gained == 0:
        return f"{tried}: the same {shared.both:,} are feasible in A and in B."
    return f"{tried}: {shared.before:,} feasible in A → {shared.after:,} in B; {shared.both:,} in both."


def examples(found: Difference, shared: SharedSpace) -> Iterator[str]:
    """Yield how many configurations were lost and gained, each with an example."""
    if shared.lost_example:
        moves = _moves(shared.lost_example, found.before.baseline)
        yield f"feasible in A, not in B: {shared.lost:,}, for example {moved(moves)}"
    if shared.gained_example:
        moves = _moves(shared.gained_example, found.after.baseline)
        home = f"{moved(moves)} (moves from B's baseline)" if moves else "B's baseline"
        yield f"feasible in B, not in A: {shared.gained:,}, for example {home}"


def _moves(config: Config, baseline: Config) -> Config:
    return {n: v for n, v in config.items() if n in baseline and not same(v, baseline[n])}
