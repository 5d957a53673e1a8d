"""Sizes for a run on the CPU: as small as a kernel's loops and grid allow, in calls of the same program.

A size is halved while the compiler's view of the call stays the same (divisibility by 16, derived constexpr parameters)
and every size that the grid depends on has two work-groups. Other sizes keep a few rounds of the loop that runs over
them. Sizes that differ stay different, because an exchange of two strides would not show otherwise. Sizes that no tile
divides shrink by powers of two, so that the largest power of two that divides them stays. Where larger sizes give no
more work-groups (a persistent kernel), each work-group keeps two tiles if that is affordable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gluonmap.model.candidate import Call, Config, Value
from gluonmap.model.dtypes import describe_argument
from gluonmap.model.errors import UsageError

Shape = dict[str, Value]
CallAt = Callable[[Shape], Call]
"""Sizes -> the call. Raises UsageError if host code cannot compute it."""

ROUNDS = 4
"""Rounds that a loop over a size keeps at least."""

AFFORDABLE = 1 << 18
"""Largest product of the sizes at which each work-group of a persistent kernel keeps two tiles."""

LEAST = 256
"""Elements that a size keeps at least if no tile of it is known."""

_RINGS = ("BUFFER", "STAGE")
"""Parts of the names of knobs that set how many tiles are in flight at once."""


def shrink(
    calls: Sequence[CallAt], shape: Shape, *, groups: int = 2, whole: bool = True, affordable: int = AFFORDABLE
) -> Shape:
    """Return the smallest sizes found at which every call is still the program that it is at `shape`.

    groups: number of work-groups that remain along each size that the grid depends on. whole: halve sizes while they
    are even; else subtract powers of two and keep the largest power of two that divides a size. affordable: largest
    product of the sizes at which each work-group of a persistent kernel keeps two tiles.

    Raises:
        UsageError: a call cannot be computed at `shape` itself.
    """
    wanted = [call(shape) for call in calls]

    def fits(candidate: Shape) -> bool:
        try:
            return all(_same_program(call(candidate), known) for call, known in zip(calls, wanted, strict=True))
        except UsageError:
            return False

    found = dict(shape)
    done: list[str] = []
    for name, size in shape.items():
        if isinstance(size, bool) or not isinstance(size, int) or size <= 1:
            continue
        enough = [_enough(call, found, name, groups, affordable) for call in calls]
        unlike = [other for other in done if shape[other] != size]
        now = size
        for step in _powers(size):
            smaller = now // 2 if whole else now - step
            if smaller < 1 or (now % 2 if whole else _evenness(smaller) != _evenness(size)):
                continue
            candidate = {**found, name: smaller}
            if fits(candidate) and all(test(candidate) for test in enough):
                now = smaller
                if all(found[other] != smaller for other in unlike):
                    found = candidate
        done.append(name)
    return found


def work_group_cap(call: CallAt, shape: Shape, small: Shape) -> int:
    """Return the number of work-groups at `shape` if larger sizes give no more there, but do at `small`; else 0.

    Such a kernel is persistent: a work-group has several tiles at `shape`, and one at `small`.
    """

    def grows(at: Shape) -> bool:
        now = _work_groups(call, at) or 0
        sizes = {n: v for n, v in at.items() if isinstance(v, int) and not isinstance(v, bool)}
        return any((_work_groups(call, {**at, n: 2 * v}) or 0) > now for n, v in sizes.items())

    return 0 if grows(shape) or not grows(small) else _work_groups(call, shape) or 0


def _enough(call: CallAt, shape: Shape, name: str, groups: int, affordable: int) -> Callable[[Shape], bool]:
    """Return the test of whether the size `name` is still large enough for one call."""
    one = _work_groups(call, {**shape, name: 1})
    now = _work_groups(call, shape)
    if one and now and one < now:
        if two_tiles := _two_tiles(call, shape, name, now, affordable):
            return lambda candidate: int(candidate[name] or 0) >= two_tiles
        most = min(groups, now // one)
        return lambda candidate: (_work_groups(call, candidate) or 0) >= most * one
    config = call(shape).config
    floor = ROUNDS * _tile(config, name) or LEAST
    if floor == LEAST and now and _is_constant(call, shape, now):
        # The grid does not show what the kernel loops over: keep two rounds of the largest possible tile for all
        # work-groups together.
        rounds = 2 * now * max([1, *(v for v in config.values() if type(v) is int)])
        floor = max(floor, min(rounds, affordable))
    return lambda candidate: int(candidate[name] or 0) >= floor


def _two_tiles(call: CallAt, shape: Shape, name: str, now: int, affordable: int) -> int:
    """Return the smallest size that leaves each work-group two tiles if larger sizes give no more groups, else 0."""
    size = int(shape[name] or 0)
    if _work_groups(call, {**shape, name: size // 2}) != now:
        return 0
    while size % 2 == 0 and _work_groups(call, {**shape, name: size // 4}) == now:
        size //= 2
    others = math.prod(v for n, v in shape.items() if n != name and type(v) is int)
    return size if size * others <= affordable else 0


def _is_constant(call: CallAt, shape: Shape, now: int) -> bool:
    """Return whether the grid depends on no size."""
    return all(_work_groups(call, {**shape, n: 1}) == now for n, v in shape.items() if type(v) is int)


def _tile(config: Config, name: str) -> int:
    """Return the largest tile of a size, found by name (BLOCK_K, BLOCK_SIZE_K for K); 0: none is known.

    It is larger in proportion where more tiles are in flight at once than `ROUNDS` covers.
    """
    numbers = {n: v for n, v in config.items() if isinstance(v, int) and not isinstance(v, bool)}
    tiles = [v for n, v in numbers.items() if n.upper().endswith(f"_{name.upper()}") and v > 1]
    rings = [v for n, v in numbers.items() if any(word in n.upper() for word in _RINGS)]
    rounds = max([ROUNDS, *(ring + 2 for ring in rings)])
    return math.ceil(max(tiles) * rounds / ROUNDS) if tiles else 0


def _work_groups(call: CallAt, shape: Shape) -> int | None:
    try:
        return math.prod(call(shape).grid)
    except UsageError:
        return None


def _powers(size: int) -> list[int]:
    """Return the powers of two up to a size, the largest first."""
    return [1 << place for place in reversed(range(size.bit_length()))]


def _evenness(size: int) -> int:
    """Return the largest power of two that divides a size."""
    return size & -size


def _same_program(one: Call, other: Call) -> bool:
    """Return whether constexpr parameters and specialisations of the arguments are equal.

    Host code cannot compare more.
    """
    return repr(one.config) == repr(other.config) and _specialisation(one) == _specialisation(other)


def _specialisation(call: Call) -> dict[str, str]:
    return {name: describe_argument(value) for name, value in call.args.items()}
