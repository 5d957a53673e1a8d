"""Combinations of values that occurred together: singles, pairs and triples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from gluonmap.acquire.space import Mask, Rows, Space
from gluonmap.model.joint_map import CoverageCount

MOST_CELLS = 30_000_000

Codes = npt.NDArray[np.int64]


class Cells:
    """A numbering of all combinations of `order` values of different knobs."""

    def __init__(self, space: Space, order: int, always: int | None = None, among: Sequence[int] | None = None) -> None:
        """With `always`, every combination contains the value of that knob and `order` others (of `among`)."""
        self._offsets = space.offsets()
        self._total = int(self._offsets[-1])
        columns = [c for c in range(len(space.names)) if c != always] if among is None else list(among)
        chosen = itertools.combinations(columns, order)
        self._combinations = np.array(
            [combo if always is None else (always, *combo) for combo in chosen], np.int64
        ).reshape(math.comb(len(columns), order), order + (always is not None))
        self.size = self._total ** self._combinations.shape[1]

    @property
    def usable(self) -> bool:
        return len(self._combinations) > 0 and self.size <= MOST_CELLS

    def codes(self, rows: Rows) -> Codes:
        """Return the numbers of the combinations: configurations by rows, combinations by columns."""
        places = rows.astype(np.int64) + self._offsets[:-1]
        found = np.zeros((len(rows), len(self._combinations)), np.int64)
        for column in self._combinations.T:
            found = found * self._total + places[:, column]
        return found

    def seen(self, rows: Rows) -> Mask:
        """Return a mask of the combinations that occur in some row."""
        mask = np.zeros(self.size, bool)
        if len(rows):
            mask[self.codes(rows)] = True
        return mask


class SeenCombinations:
    """The combinations that occurred so far. The set grows with the rows."""

    def __init__(self, space: Space, order: int) -> None:
        self.cells = Cells(space, order)
        self.usable = self.cells.usable
        self._mask = np.zeros(self.cells.size if self.usable else 0, bool)
        self._taken = 0

    def update(self, rows: Rows) -> None:
        """Add the rows that follow those of the last call."""
        if self.usable and len(rows) > self._taken:
            self._mask[self.cells.codes(rows[self._taken :])] = True
            self._taken = len(rows)

    def gain(self, codes: Codes, expected: Rows) -> npt.NDArray[np.int64]:
        """Return, for each row of `codes`, the number of combinations that are new even after the rows `expected`."""
        coming = self.cells.codes(expected)
        before = self._mask[coming]
        self._mask[coming] = True
        found: npt.NDArray[np.int64] = (~self._mask[codes]).sum(1)
        self._mask[coming] = before
        return found


def count_coverage(
    space: Space, passing: Rows, feasible: Rows, orders: Iterable[int] = (1, 2, 3)
) -> list[CoverageCount]:
    """Return the coverage of singles, pairs and triples. Orders too small or too large for the space are left out."""
    found = []
    for order in orders:
        cells = Cells(space, order)
        if order <= len(space.names) and cells.usable:
            seen, possible = cells.seen(passing), cells.seen(feasible)
            found.append(CoverageCount(order, int(seen.sum()), int((seen | possible).sum())))
    return found
