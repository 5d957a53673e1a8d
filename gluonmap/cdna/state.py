"""Registers of waves that are at the same place of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.operands import EXEC
from gluonmap.cdna.waits import OperationTrack, joined

Array = npt.NDArray[Any]
LANES = 64
SCALARS = 128
_ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class Waves:
    """A group of n waves that run in step.

    vector: (registers, n, 64) uint32, v0 … and then a0 …
    scalar: (n, 128) uint32, indexed by the ISA's encoding.
    scc: (n, 1). ids: (n,), numbers of the waves in the launch.
    U, F, I: the vector registers as uint32, float32 and int32, lists of (n, 64) arrays.
    SU, SF, SI: the scalar registers likewise, (n, 1) each. SQ: pairs of them as uint64; None where the first is odd.
    """

    __slots__ = (
        "F",
        "I",
        "SF",
        "SI",
        "SQ",
        "SU",
        "U",
        "active",
        "count",
        "ids",
        "mask",
        "scalar",
        "scc",
        "tracks",
        "vector",
    )

    def __init__(
        self, vector: Array, scalar: Array, scc: Array, ids: Array, tracks: Sequence[OperationTrack] = ()
    ) -> None:
        self.vector, self.scalar, self.scc, self.ids = vector, scalar, scc, ids
        self.count = len(ids)
        self.tracks = list(tracks)
        self.U: list[Array] = list(vector)
        self.F: list[Array] = list(vector.view(np.float32))
        self.I: list[Array] = list(vector.view(np.int32))
        floats, integers, pairs = scalar.view(np.float32), scalar.view(np.int32), scalar.view(np.uint64)
        self.SU: list[Array] = [scalar[:, i : i + 1] for i in range(SCALARS)]
        self.SF: list[Array] = [floats[:, i : i + 1] for i in range(SCALARS)]
        self.SI: list[Array] = [integers[:, i : i + 1] for i in range(SCALARS)]
        self.SQ: list[Any] = [pairs[:, i // 2 : i // 2 + 1] if i % 2 == 0 else None for i in range(SCALARS)]
        self.mask: Any = True
        """Argument for `where=`: True while every lane is active, else `active`."""
        self.active: Array
        """(n, 64) bool: the lanes whose bit in exec is set."""
        self.refresh()

    def refresh(self) -> None:
        """Update `active` and `mask` after a write to exec."""
        if (self.SQ[EXEC] == _ALL).all():
            self.mask = True
            self.active = np.ones((self.count, LANES), bool)
        else:
            self.active = self.mask = self.lanes(EXEC)

    def lanes(self, index: int) -> Array:
        """Return the 64 bits of a scalar pair as (n, 64) bool."""
        pair = np.ascontiguousarray(self.scalar[:, index : index + 2])
        return np.unpackbits(pair.view(np.uint8), axis=1, bitorder="little").view(bool)

    def set_lanes(self, index: int, lanes: Array) -> None:
        """Write (n, 64) bool to a scalar pair. Inactive lanes write 0."""
        bits = np.packbits(np.broadcast_to(lanes, (self.count, LANES)) & self.active, axis=1, bitorder="little")
        self.scalar[:, index : index + 2] = bits.view(np.uint32)
        if index == EXEC:
            self.refresh()

    def select(self, chosen: Array) -> Waves:
        """Return a copy of some of the waves."""
        ids = self.ids[chosen]
        return Waves(
            np.ascontiguousarray(self.vector[:, chosen]),
            np.ascontiguousarray(self.scalar[chosen]),
            self.scc[chosen].copy(),
            ids,
            [part for track in self.tracks if (part := track.of(ids)) is not None],
        )

    def merge(self, other: Waves) -> Waves:
        """Return both groups as one."""
        return Waves(
            np.concatenate([self.vector, other.vector], axis=1),
            np.concatenate([self.scalar, other.scalar]),
            np.concatenate([self.scc, other.scc]),
            np.concatenate([self.ids, other.ids]),
            joined(self.tracks, other.tracks),
        )
