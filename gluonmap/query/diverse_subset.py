"""A diverse subset of many configurations: greedy value cover, then farthest-point sampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gluonmap.constraints.counting import Rows
from gluonmap.model.candidate import Value


def diverse_subset(rows: Rows, domains: Sequence[Sequence[Value]], limit: int) -> list[int]:
    """Return at most `limit` places of `rows`, in the order chosen: the first row, a greedy cover, the farthest.

    The cover takes, of the rows left, the one with most values that no chosen row has, until each value that any row
    has is there. Then comes the row whose nearest chosen row is farthest away. A tie goes to the earlier row. All
    rows are returned, in that order, where there are no more than `limit`; rows must differ from each other.
    """
    most = min(limit, len(rows))
    if most <= 0:
        return []
    live = [column for column in range(rows.shape[1]) if (rows[:, column] != rows[0, column]).any()]
    rows, axes = rows[:, live], [_axis(domains[column]) for column in live]
    chosen = _cover(rows, most)
    nearest = np.full(len(rows), np.inf)
    for place in chosen:
        nearest = np.minimum(nearest, _distances(rows, axes, place))
    while len(chosen) < most:
        nearest[chosen[-1]] = -1.0
        place = int(nearest.argmax())
        chosen.append(place)
        nearest = np.minimum(nearest, _distances(rows, axes, place))
    return chosen


def _cover(rows: Rows, most: int) -> list[int]:
    """The first row, then one after the other the row with most values not seen yet, until all are."""
    sizes = rows.max(0) + 1
    cells = rows + np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else rows.astype(int)
    unseen = np.zeros(int(sizes.sum()), bool)
    unseen[cells] = True
    chosen = [0]
    unseen[cells[0]] = False
    while len(chosen) < most and unseen.any():
        place = int(unseen[cells].sum(1).argmax())
        chosen.append(place)
        unseen[cells[place]] = False
    return chosen


def _distances(rows: Rows, axes: Sequence[npt.NDArray[np.float64]], place: int) -> npt.NDArray[np.float64]:
    """How far each row is from one: by knob 1 if the values differ, and how far apart they stand in their order."""
    found: npt.NDArray[np.float64] = (rows != rows[place]).sum(1).astype(float)
    for column, axis in enumerate(axes):
        found += np.abs(axis - axis[rows[place, column]])[rows[:, column]]
    return found


def _axis(domain: Sequence[Value]) -> npt.NDArray[np.float64]:
    """Places from 0 to 1 in the order of the numbers; values that are no numbers have no order and stand at 0."""
    numbers = [float(value) for value in domain if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) < len(domain):
        return np.zeros(len(domain))
    ranks = np.argsort(np.argsort(numbers)).astype(np.float64)
    return ranks / max(1, len(numbers) - 1)
