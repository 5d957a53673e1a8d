"""A diverse subset of many configurations: greedy value cover, then farthest-point sampling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gluonmap.constraints.counting import Rows
from gluonmap.model.candidate import Value


def diverse_subset(rows: Rows, domains: Sequence[Sequence[Value]], limit: int) -> list[int]:
    """Return at most `limit` places of `rows`, in the order chosen: the first row, a greedy cover, then the farthest.

    The cover repeatedly takes the row with most values that no chosen row has, until every value of any row is
    covered. Farthest-point sampling then repeatedly takes the row whose nearest chosen row is farthest away. A tie goes
    to the earlier row. Rows must differ from each other. If there are no more than `limit`, all are returned.
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
    """Return the first row, then repeatedly the row with most unseen values, until all values are seen."""
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
    """Return each row's distance to one row: for each knob 1 if the values differ, plus their distance in order."""
    found: npt.NDArray[np.float64] = (rows != rows[place]).sum(1).astype(float)
    for column, axis in enumerate(axes):
        found += np.abs(axis - axis[rows[place, column]])[rows[:, column]]
    return found


def _axis(domain: Sequence[Value]) -> npt.NDArray[np.float64]:
    """Return the values' places in numeric order, from 0 to 1; all 0 if some value is no number."""
    numbers = [float(value) for value in domain if isinstance(value, (int, float)) and not isinstance(value, bool)]
    if len(numbers) < len(domain):
        return np.zeros(len(domain))
    ranks = np.argsort(np.argsort(numbers)).astype(np.float64)
    return ranks / max(1, len(numbers) - 1)
