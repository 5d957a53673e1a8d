"""Oracles with hidden constraints: verdicts of an imagined compiler, known in full, so that a learner can be scored.

`LARGE`: spaces of 10^4 to 5·10^10 configurations. `ISLANDS`, `NOGOODS`, `OUTSIDE`: pins, rare nogoods, no structure.
`DESIGN`: tables in the manner of real kernels that the learner was written with. `HELD_OUT`: such tables that were
written before it ran and scored on; two of them (sliced_store, literal_bases) were looked at after their first score.
`FRESH`: written after the learner was finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.acquire.answers import Answer, ReasonKey, reason_key
from gluonmap.acquire.space import Rows, Space, space_of
from gluonmap.model.candidate import Config, Value
from gluonmap.model.outcomes import Outcome

Columns = Mapping[str, Any]
Rule = Callable[[Columns], Any]
MOST_LISTED = 2_000_000
SAMPLED = 200_000


class Reading(dict[str, Any]):
    """Columns that record which of them were read."""

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.read: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        self.read |= {name}
        return super().__getitem__(name)


@dataclass(frozen=True)
class Hidden:
    """A space with rules (reason, condition), checked in order, and a budget of shared bytes, checked last."""

    name: str
    domains: dict[str, Sequence[Value]]
    rules: tuple[tuple[str, Rule], ...]
    baseline: Config
    shared: Rule | None = None
    limit: int = 0

    @property
    def space(self) -> Space:
        return space_of(self.domains)

    def scopes(self) -> dict[ReasonKey, frozenset[str]]:
        """Return the knobs that the rules of each reason read, for reasons that make some configuration fail.

        Reasons that differ only in numbers are one reason.
        """
        rows = self.judged()
        columns, occurring = self.space.columns(rows[:1]), set(np.unique(self.labels(rows)).tolist())
        reasons = list(dict.fromkeys(reason for reason, _ in self.rules))
        rules = [(reasons.index(reason) + 1, rule) for reason, rule in self.rules]
        rules += [(len(reasons) + 1, self.shared)] if self.shared else []
        found: dict[ReasonKey, frozenset[str]] = {}
        for label, rule in rules:
            if label in occurring:
                reading = Reading(columns)
                rule(reading)
                key = reason_key(self._answer(label, reasons, 0))
                found[key] = found.get(key, frozenset()) | reading.read
        return found

    def labels(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Return for each row 0 if all rules hold, else the number of the first violated reason, by first mention."""
        columns = self.space.columns(rows)
        numbers = {reason: n for n, reason in enumerate(dict.fromkeys(reason for reason, _ in self.rules), 1)}
        found = np.zeros(len(rows), np.int64)
        for reason, rule in self.rules:
            holds = np.broadcast_to(np.asarray(rule(columns), bool), found.shape)
            found[~holds & (found == 0)] = numbers[reason]
        if self.shared is not None:
            found[(self.shared(columns) > self.limit) & (found == 0)] = len(numbers) + 1
        return found

    def __call__(self, configs: Sequence[Config]) -> list[Answer]:
        rows = np.array([self.space.encode(config) for config in configs], np.int16)
        reasons = list(dict.fromkeys(reason for reason, _ in self.rules))
        columns = self.space.columns(rows)
        needed = None if self.shared is None else np.broadcast_to(self.shared(columns), (len(rows),))
        return [
            self._answer(int(label), reasons, None if needed is None else int(needed[i]))
            for i, label in enumerate(self.labels(rows))
        ]

    @staticmethod
    def _answer(label: int, reasons: Sequence[str], needed: int | None) -> Answer:
        if label == 0:
            return Answer(Outcome.PASS, shared_bytes=needed)
        if label > len(reasons):
            return Answer(Outcome.NO_RESOURCES, reason="shared memory over budget", shared_bytes=needed)
        return Answer(Outcome.REJECTED, reason=reasons[label - 1])

    def judged(self) -> Rows:
        """Return all rows, or a sample if they are too many: half uniform, half near the baseline."""
        space = self.space
        if space.size <= MOST_LISTED:
            return space.all_rows()
        random = np.random.default_rng(1)
        uniform = space.random_rows(SAMPLED, random)
        near = np.tile(np.array(space.encode(self.baseline), np.int16), (SAMPLED, 1))
        for _ in space.names:
            columns = random.integers(0, len(space.names), SAMPLED)
            near[np.arange(SAMPLED), columns] = (random.random(SAMPLED) * np.array(space.sizes)[columns]).astype(
                np.int16
            )
        return np.concatenate([uniform, near])


def powers(first: int, last: int) -> list[int]:
    return [2**i for i in range(first, last + 1)]


def _is(column: Any, value: Value) -> Any:
    return np.array([item == value for item in column.tolist()])


def _size(column: Any, sizes: Mapping[str, float]) -> Any:
    return np.array([sizes[item] for item in column.tolist()])


BYTES = {"fp8": 1, "e4m3": 1, "i8": 1, "bf16": 2, "fp16": 2, "fp32": 4}


# ---- in the manner of the prototype's oracles ----------------------------------------------------------------------


def mfma_gemm(*, same: bool = False, extra: int = 0, steps: int = 0) -> Hidden:
    domains: dict[str, Sequence[Value]] = {
        "BM": powers(4, 8),
        "BN": powers(4, 8),
        "BK": powers(4, 7),
        "WM": powers(0, 3),
        "WN": powers(0, 3),
        "NW": powers(0, 3),
        "ST": [1, 2, 3, 4],
        "IM": [16, 32],
        "wpe": [0, 1, 2, 3],
    }
    if steps:
        warps = powers(0, min(steps, 6) - 1)
        tiles = powers(4, 3 + steps)
        domains |= {
            "BM": tiles,
            "BN": tiles,
            "BK": tiles,
            "WM": warps,
            "WN": warps,
            "NW": warps,
            "ST": list(range(1, steps + 1)),
        }
    domains |= {f"x{i}": [0, 1, 2, 3] for i in range(extra)}
    names = ("fail",) * 4 if same else ("warps", "rows", "columns", "lds")
    rules = (
        (names[0], lambda c: c["WM"] * c["WN"] == c["NW"]),
        (names[1], lambda c: c["BM"] >= c["IM"] * c["WM"]),
        (names[2], lambda c: c["BN"] >= c["IM"] * c["WN"]),
        (names[3], lambda c: c["ST"] * (c["BM"] * c["BK"] + c["BK"] * c["BN"]) * 2 <= 65536),
    )
    base: Config = {"BM": 64, "BN": 64, "BK": 32, "WM": 2, "WN": 2, "NW": 4, "ST": 2, "IM": 16, "wpe": 0}
    base |= {f"x{i}": 0 for i in range(extra)}
    kind = "_one_message" if same else f"_{extra}_more" if extra else f"_{steps}_steps" if steps else ""
    name = f"mfma_gemm{kind}"
    return Hidden(name, domains, rules, base)


def pairs_table() -> Hidden:
    return Hidden(
        "pairs_table",
        {
            "BM": powers(5, 8),
            "BN": powers(5, 8),
            "BK": powers(4, 7),
            "NW": powers(1, 4),
            "ST": [1, 2, 3, 4],
            "dt": ["bf16", "fp16", "fp8"],
            "GM": [1, 4, 8],
        },
        (
            (
                "tiles",
                lambda c: (
                    ((c["BM"] == 64) & (c["BN"] == 128))
                    | ((c["BM"] == 128) & (c["BN"] == 128))
                    | ((c["BM"] == 128) & (c["BN"] == 256))
                ),
            ),
            ("width", lambda c: ~_is(c["dt"], "fp8") | (c["BK"] >= 32)),
            ("registers", lambda c: c["BM"] * c["BN"] <= c["NW"] * 8192),
        ),
        {"BM": 128, "BN": 128, "BK": 32, "NW": 4, "ST": 2, "dt": "bf16", "GM": 4},
    )


def disjunctions() -> Hidden:
    return Hidden(
        "disjunctions",
        {
            "Q": powers(4, 7),
            "K": powers(5, 9),
            "H": powers(5, 8),
            "CD": [2, 3, 4],
            "NW": powers(0, 3),
            "wpe": [0, 1, 2, 4],
            "ks": [1, 2, 3],
            "blk": [1, 16, 64],
        },
        (
            ("version", lambda c: c["CD"] >= 3),
            ("elements", lambda c: c["Q"] * c["K"] >= c["NW"] * 1024),
            ("pages", lambda c: (c["blk"] == 1) | (c["K"] >= 128)),
            ("head", lambda c: (c["H"] <= 128) | (c["NW"] >= 4) | (c["Q"] <= 32)),
            ("old", lambda c: (c["CD"] == 3) | (c["H"] >= 64)),
        ),
        {"Q": 64, "K": 256, "H": 128, "CD": 3, "NW": 4, "wpe": 2, "ks": 2, "blk": 1},
    )


def pins() -> Hidden:
    return Hidden(
        "pins",
        {
            "REG": ["a", "b", "c"],
            "BH": powers(3, 7),
            "BN": powers(5, 8),
            "kv": ["bf16", "fp8", "fp16"],
            "NH": powers(2, 7),
            "NW": powers(0, 3),
            "PG": [1, 16],
            "SP": [1, 2, 64, 256],
            "x8": [1, 4, 8],
        },
        (
            (
                "regime",
                lambda c: np.where(
                    _is(c["REG"], "a"),
                    (c["BH"] == 64) & (c["BN"] == 64),
                    np.where(_is(c["REG"], "b"), (c["BH"] == 16) & (c["BN"] == 64), (c["BH"] == 16) & (c["BN"] == 128)),
                ),
            ),
            ("cache type", lambda c: ~_is(c["kv"], "fp8") | _is(c["REG"], "c")),
            ("warps", lambda c: c["NW"] == 4),
            ("page", lambda c: c["PG"] == 1),
            ("split", lambda c: (c["SP"] != 1) | (c["NH"] >= 16)),
        ),
        {"REG": "b", "BH": 16, "BN": 64, "kv": "bf16", "NH": 16, "NW": 4, "PG": 1, "SP": 64, "x8": 1},
    )


def island() -> Hidden:
    return Hidden(
        "island",
        {
            "A": powers(4, 8),
            "B": powers(4, 8),
            "C": powers(4, 8),
            "D": powers(0, 4),
            "E": [1, 2, 3, 4],
            "F": ["x", "y", "z"],
        },
        (
            (
                "tiles",
                lambda c: ((c["A"] <= 64) & (c["B"] <= 64)) | ((c["A"] == 256) & (c["B"] == 256) & _is(c["F"], "z")),
            ),
            ("depth", lambda c: c["C"] * c["D"] <= 1024),
        ),
        {"A": 64, "B": 64, "C": 64, "D": 4, "E": 2, "F": "x"},
    )


def divisors() -> Hidden:
    return Hidden(
        "divisors",
        {
            "N": [96, 128, 192, 256, 320, 384],
            "BN": powers(4, 8),
            "K": [64, 128, 192, 200, 256, 512],
            "BK": powers(4, 8),
            "NW": powers(0, 3),
            "ST": [1, 2, 3],
            "mask": [0, 1],
        },
        (
            ("columns", lambda c: c["N"] % c["BN"] == 0),
            ("depth", lambda c: (c["K"] % c["BK"] == 0) | (c["mask"] == 1)),
            ("pipeline", lambda c: c["BK"] * c["ST"] <= 512),
        ),
        {"N": 256, "BN": 64, "K": 256, "BK": 64, "NW": 4, "ST": 2, "mask": 0},
    )


def twelve_knobs() -> Hidden:
    return Hidden(
        "twelve_knobs",
        {
            "BM": powers(4, 8),
            "BN": powers(4, 8),
            "BK": powers(4, 7),
            "WM": powers(0, 2),
            "WN": powers(0, 2),
            "NW": powers(0, 3),
            "ST": [1, 2, 3],
            "i1": [0, 1],
            "i2": [0, 1, 2],
            "i3": ["a", "b"],
            "kp": [1, 2],
            "c": [0, 1],
        },
        (
            ("warps", lambda c: c["WM"] * c["WN"] == c["NW"]),
            ("rows", lambda c: c["BM"] >= 16 * c["WM"]),
            ("pack", lambda c: (c["kp"] == 1) | (c["BK"] >= 32)),
            ("cache", lambda c: (c["c"] == 0) | _is(c["i3"], "a")),
            ("lds", lambda c: c["ST"] * (c["BM"] + c["BN"]) * c["BK"] * 2 <= 65536),
        ),
        {
            "BM": 64,
            "BN": 64,
            "BK": 32,
            "WM": 2,
            "WN": 2,
            "NW": 4,
            "ST": 2,
            "i1": 0,
            "i2": 0,
            "i3": "a",
            "kp": 1,
            "c": 0,
        },
    )


def epilogue_budget() -> Hidden:
    return Hidden(
        "epilogue_budget",
        {
            "BM": powers(4, 8),
            "BN": powers(4, 8),
            "BK": powers(4, 8),
            "ST": [1, 2, 3, 4, 5, 6, 8],
            "by": [1, 2, 4],
            "ob": [2, 4],
            "pad": [8, 16, 32],
            "NW": powers(0, 3),
        },
        (("elements", lambda c: c["BM"] * c["BN"] >= c["NW"] * 512),),
        {"BM": 64, "BN": 64, "BK": 32, "ST": 2, "by": 2, "ob": 2, "pad": 8, "NW": 4},
        lambda c: np.maximum(
            c["ST"] * (c["BM"] + c["BN"]) * c["BK"] * c["by"] + 8 * c["ST"],
            c["BM"] * c["BN"] * c["ob"] + c["BM"] * c["pad"],
        ),
        65536,
    )


def random_tables(*, same: bool = False) -> Hidden:
    random = np.random.RandomState(5)
    domains: dict[str, Sequence[Value]] = {
        "A": powers(1, 5),
        "B": powers(1, 6),
        "C": ["p", "q", "r", "s"],
        "D": [1, 2, 3, 4],
        "E": powers(0, 4),
        "F": ["u", "v"],
        "G": powers(2, 5),
    }
    first, second, third = random.rand(5, 6) > 0.3, random.rand(4, 4) > 0.3, random.rand(5, 2, 4) > 0.1
    first[0, 0] = second[0, 0] = third[0, 0, 0] = True

    def place(name: str, columns: Columns) -> Any:
        order = {value: i for i, value in enumerate(domains[name])}
        return np.array([order[item] for item in columns[name].tolist()])

    names = ("r", "r", "r") if same else ("r one", "r two", "r three")
    rules = (
        (names[0], lambda c: first[place("A", c), place("B", c)]),
        (names[1], lambda c: second[place("C", c), place("D", c)]),
        (names[2], lambda c: third[place("E", c), place("F", c), place("G", c)]),
    )
    base: Config = {"A": 2, "B": 2, "C": "p", "D": 1, "E": 1, "F": "u", "G": 4}
    return Hidden(f"random_tables{'_one_message' if same else ''}", domains, rules, base)


def deep_pin() -> Hidden:
    return Hidden(
        "deep_pin",
        {
            "A": powers(5, 9),
            "B": powers(4, 8),
            "C": powers(0, 4),
            "D": powers(0, 4),
            "F": ["x", "y", "z"],
            "G": [1, 2, 3],
            "H": [0, 1],
        },
        (
            ("large", lambda c: (c["A"] < 512) | ((c["B"] == 32) & (c["C"] == 8) & _is(c["F"], "z"))),
            ("split", lambda c: c["B"] >= c["D"]),
        ),
        {"A": 64, "B": 64, "C": 2, "D": 2, "F": "x", "G": 1, "H": 0},
    )


def two_partner_pin() -> Hidden:
    return Hidden(
        "two_partner_pin",
        {
            "A": powers(5, 9),
            "B": powers(4, 8),
            "C": powers(0, 4),
            "D": powers(0, 4),
            "F": ["x", "y", "z"],
            "G": [1, 2, 3],
            "H": [0, 1],
        },
        (
            ("large", lambda c: (c["A"] < 512) | ((c["B"] == 32) & _is(c["F"], "z"))),
            ("split", lambda c: c["B"] >= c["D"]),
        ),
        {"A": 64, "B": 64, "C": 2, "D": 2, "F": "x", "G": 1, "H": 0},
    )


def rare_nogoods() -> Hidden:
    return Hidden(
        "rare_nogoods",
        {
            "A": powers(0, 4),
            "B": powers(0, 4),
            "C": powers(0, 4),
            "D": powers(0, 3),
            "E": ["a", "b", "c", "d"],
            "F": [1, 2, 3, 4, 5],
            "G": ["k", "l", "m"],
        },
        (
            ("one", lambda c: ~((c["A"] == 4) & _is(c["E"], "c") & (c["F"] == 3))),
            ("two", lambda c: ~((c["B"] == 8) & (c["C"] == 2) & _is(c["G"], "l"))),
            ("three", lambda c: ~((c["D"] == 2) & _is(c["E"], "b"))),
        ),
        {"A": 1, "B": 1, "C": 1, "D": 1, "E": "a", "F": 1, "G": "k"},
    )


def plain_sum() -> Hidden:
    return Hidden(
        "plain_sum",
        {
            "BM": powers(4, 9),
            "BN": powers(4, 9),
            "BK": powers(4, 8),
            "ST": [1, 2, 3, 4, 5, 6],
            "NW": powers(0, 4),
            "z": [0, 1, 2],
        },
        (
            ("sum", lambda c: c["BM"] + c["BN"] + c["BK"] * c["ST"] <= 800),
            ("rows", lambda c: (c["BM"] // 16) % np.maximum(c["NW"], 1) == 0),
            (
                "elements",
                lambda c: (c["BM"] * c["BN"] // (c["NW"] * 64) >= 8) & (c["BM"] * c["BN"] // (c["NW"] * 64) <= 256),
            ),
        ),
        {"BM": 64, "BN": 64, "BK": 32, "ST": 2, "NW": 4, "z": 0},
    )


# ---- in the manner of real kernels: designed with ------------------------------------------------------------------


def wgmma_swizzle() -> Hidden:
    """A row of the shared tile must hold a whole swizzle; the instruction needs a warp group for 64 rows."""
    return Hidden(
        "wgmma_swizzle",
        {
            "BLOCK_M": [64, 128, 256],
            "BLOCK_N": [32, 64, 128, 256],
            "BLOCK_K": [16, 32, 64, 128],
            "dtype": ["fp8", "bf16", "fp32"],
            "SWIZZLE": [32, 64, 128],
            "num_warps": [4, 8],
            "STAGES": [2, 4],
        },
        (
            ("swizzle wider than the row", lambda c: c["BLOCK_K"] * _size(c["dtype"], BYTES) >= c["SWIZZLE"]),
            ("warps over rows", lambda c: c["BLOCK_M"] >= 16 * c["num_warps"]),
        ),
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "dtype": "bf16", "SWIZZLE": 64, "num_warps": 4, "STAGES": 2},
        lambda c: (
            c["STAGES"] * (c["BLOCK_M"] + c["BLOCK_N"]) * c["BLOCK_K"] * _size(c["dtype"], BYTES) + 16 * c["STAGES"]
        ),
        232448,
    )


def padded_lds() -> Hidden:
    """Padded tiles in LDS, the output staged through the same memory, rounded up to 128."""
    return Hidden(
        "padded_lds",
        {
            "BM": powers(5, 8),
            "BN": powers(5, 8),
            "BK": [32, 64, 128],
            "PAD": [0, 8, 16],
            "ST": [1, 2, 3],
            "NW": [2, 4, 8],
            "out": ["bf16", "fp32"],
        },
        (
            ("sizePerThread must be a power of two", lambda c: c["BM"] * c["BK"] >= c["NW"] * 512),
            ("warps over columns", lambda c: c["BN"] >= 16 * c["NW"]),
        ),
        {"BM": 64, "BN": 64, "BK": 64, "PAD": 8, "ST": 2, "NW": 4, "out": "bf16"},
        lambda c: (
            -(
                -np.maximum(
                    c["ST"] * (c["BM"] + c["BN"]) * (c["BK"] + c["PAD"]) * 2, c["BM"] * c["BN"] * _size(c["out"], BYTES)
                )
                // 128
            )
            * 128
        ),
        65536,
    )


def warp_grid() -> Hidden:
    """Warps must tile the block evenly, and with transposed operands the warp tile must be square."""
    return Hidden(
        "warp_grid",
        {
            "BLOCK_M": powers(5, 8),
            "BLOCK_N": powers(5, 8),
            "WARPS_M": [1, 2, 4],
            "WARPS_N": [1, 2, 4],
            "num_warps": [2, 4, 8],
            "TRANS": [False, True],
            "kpack": [1, 2],
        },
        (
            ("warps per cta", lambda c: c["WARPS_M"] * c["WARPS_N"] == c["num_warps"]),
            (
                "verifier: shapes differ",
                lambda c: ~_is(c["TRANS"], True) | (c["BLOCK_M"] * c["WARPS_N"] == c["BLOCK_N"] * c["WARPS_M"]),
            ),
            ("no intrinsic", lambda c: c["BLOCK_M"] >= 32 * c["WARPS_M"]),
        ),
        {"BLOCK_M": 64, "BLOCK_N": 64, "WARPS_M": 2, "WARPS_N": 2, "num_warps": 4, "TRANS": False, "kpack": 1},
    )


def attention_islands() -> Hidden:
    """Two shapes are written out by hand; a third exists for one head size on eight warps."""
    return Hidden(
        "attention_islands",
        {
            "BLOCK_M": [32, 64, 128, 256],
            "BLOCK_N": [32, 64, 128],
            "HEAD_DIM": [64, 128, 256],
            "num_warps": [4, 8],
            "num_stages": [1, 2, 3],
            "CAUSAL": [False, True],
            "waves_per_eu": [0, 1, 2],
        },
        (
            (
                "layout does not cover",
                lambda c: (
                    ((c["BLOCK_M"] <= 128) & (c["BLOCK_N"] <= 64) & (c["num_warps"] == 4))
                    | ((c["BLOCK_M"] == 256) & (c["BLOCK_N"] == 128) & (c["HEAD_DIM"] == 128) & (c["num_warps"] == 8))
                ),
            ),
            ("causal", lambda c: ~_is(c["CAUSAL"], True) | (c["BLOCK_M"] >= c["BLOCK_N"])),
        ),
        {
            "BLOCK_M": 64,
            "BLOCK_N": 32,
            "HEAD_DIM": 64,
            "num_warps": 4,
            "num_stages": 1,
            "CAUSAL": False,
            "waves_per_eu": 0,
        },
    )


def tensor_memory() -> Hidden:
    """Accumulators and scales share 512 columns; the epilogue stores slices that must hold the swizzle."""
    return Hidden(
        "tensor_memory",
        {
            "BLOCK_M": [64, 128],
            "BLOCK_N": [32, 64, 128, 256],
            "BLOCK_K": [64, 128, 256],
            "ACC": [1, 2, 3],
            "SLICES": [1, 2, 4, 8],
            "out": ["bf16", "fp32"],
            "SWIZZLE": [32, 64, 128],
        },
        (
            (
                "slice narrower than its swizzle",
                lambda c: c["BLOCK_N"] * _size(c["out"], BYTES) >= c["SLICES"] * c["SWIZZLE"],
            ),
            ("tensor memory", lambda c: c["BLOCK_N"] * c["ACC"] + c["BLOCK_K"] // 2 <= 512),
            ("registers", lambda c: (c["SLICES"] > 1) | (c["BLOCK_N"] * c["BLOCK_M"] <= 16384)),
        ),
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "ACC": 1, "SLICES": 2, "out": "bf16", "SWIZZLE": 64},
    )


def split_k() -> Hidden:
    """Depth must divide by the split, unless masked; grouping and splitting exclude each other."""
    return Hidden(
        "split_k",
        {
            "K": [512, 768, 1024, 1536],
            "BLOCK_K": [32, 64, 128, 256],
            "NUM_KSPLIT": [1, 2, 4, 8],
            "GROUP_SIZE_M": [1, 4, 8],
            "EVEN_K": [False, True],
            "nonkdim": [0, 16, 32],
            "num_warps": [4, 8],
        },
        (
            (
                "static assertion failed at 14",
                lambda c: ~_is(c["EVEN_K"], True) | (c["K"] % (c["BLOCK_K"] * c["NUM_KSPLIT"]) == 0),
            ),
            ("static assertion failed in group", lambda c: (c["NUM_KSPLIT"] == 1) | (c["GROUP_SIZE_M"] == 1)),
            ("no matching matrix core", lambda c: (c["nonkdim"] != 32) | (c["BLOCK_K"] >= 64)),
        ),
        {"K": 1024, "BLOCK_K": 64, "NUM_KSPLIT": 1, "GROUP_SIZE_M": 4, "EVEN_K": True, "nonkdim": 16, "num_warps": 4},
    )


def vector_width() -> Hidden:
    """Each thread must get a whole vector of 16 bytes of both operands; scales come one per 32 elements."""
    return Hidden(
        "vector_width",
        {
            "BM": powers(4, 8),
            "BN": powers(4, 8),
            "BK": [64, 128, 256],
            "a": ["fp4", "fp8", "bf16"],
            "num_warps": [2, 4, 8],
            "PRESHUFFLE": [0, 1],
        },
        (
            (
                "at 30: sizePerThread",
                lambda c: (
                    c["BM"] * c["BK"] * _size(c["a"], {"fp4": 0.5, "fp8": 1, "bf16": 2}) >= c["num_warps"] * 64 * 16
                ),
            ),
            (
                "at 45: scales",
                lambda c: (c["PRESHUFFLE"] == 0) | ((c["BM"] >= 32) & (c["BN"] >= 32) & (c["BK"] >= 128)),
            ),
            ("register file", lambda c: c["BM"] * c["BN"] <= c["num_warps"] * 8192),
        ),
        {"BM": 64, "BN": 64, "BK": 128, "a": "fp8", "num_warps": 4, "PRESHUFFLE": 0},
        lambda c: np.maximum(
            2 * (c["BM"] + c["BN"]) * c["BK"] * _size(c["a"], {"fp4": 0.5, "fp8": 1, "bf16": 2}), c["BM"] * c["BN"] * 2
        ),
        65536,
    )


# ---- in the manner of real kernels: only scored on -----------------------------------------------------------------


def cta_pair() -> Hidden:
    return Hidden(
        "cta_pair",
        {
            "BLOCK_M": [64, 128, 256],
            "BLOCK_N": [32, 64, 128, 256],
            "BLOCK_K": [32, 64, 128],
            "CTAS": [1, 2],
            "STAGES": [2, 3, 4, 6],
            "dtype": ["fp8", "fp16"],
            "EPILOGUE_N": [32, 64, 128],
        },
        (
            ("instruction shape", lambda c: c["BLOCK_M"] // c["CTAS"] >= 64),
            ("subtile", lambda c: c["EPILOGUE_N"] <= c["BLOCK_N"]),
            ("pair", lambda c: (c["CTAS"] == 1) | (c["BLOCK_N"] >= 64)),
        ),
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "CTAS": 1, "STAGES": 3, "dtype": "fp16", "EPILOGUE_N": 64},
        lambda c: (
            c["STAGES"] * (c["BLOCK_M"] + c["BLOCK_N"]) * c["BLOCK_K"] * _size(c["dtype"], BYTES)
            + c["BLOCK_M"] * c["EPILOGUE_N"] * 2
            + 16 * c["STAGES"]
        ),
        232448,
    )


def moe_scaled() -> Hidden:
    return Hidden(
        "moe_scaled",
        {
            "BLOCK_M": [16, 32, 64, 128],
            "BLOCK_N": [32, 64, 128, 256],
            "BLOCK_K": [128, 256, 512],
            "nonkdim": [16, 32],
            "num_warps": [2, 4, 8],
            "SWIZZLE_SCALES": [False, True],
            "num_stages": [1, 2],
        },
        (
            (
                "error: scale layout",
                lambda c: ~_is(c["SWIZZLE_SCALES"], True) | ((c["BLOCK_N"] >= 64) & (c["BLOCK_K"] >= 256)),
            ),
            ("error: mfma shape", lambda c: c["BLOCK_M"] >= c["nonkdim"]),
            (
                "error: warps cover",
                lambda c: c["BLOCK_M"] * c["BLOCK_N"] >= c["nonkdim"] * c["nonkdim"] * c["num_warps"],
            ),
        ),
        {
            "BLOCK_M": 64,
            "BLOCK_N": 128,
            "BLOCK_K": 256,
            "nonkdim": 16,
            "num_warps": 4,
            "SWIZZLE_SCALES": False,
            "num_stages": 1,
        },
        lambda c: np.maximum(
            c["num_stages"] * (c["BLOCK_M"] + c["BLOCK_N"]) * c["BLOCK_K"] // 2
            + c["num_stages"] * c["BLOCK_N"] * c["BLOCK_K"] // 32,
            c["BLOCK_M"] * c["BLOCK_N"] * 2,
        ),
        65536,
    )


def flash_decode() -> Hidden:
    return Hidden(
        "flash_decode",
        {
            "BLOCK_M": [16, 32, 64, 128],
            "BLOCK_N": [16, 32, 64, 128],
            "HEAD": [64, 96, 128],
            "num_warps": [1, 2, 4, 8],
            "PRELOAD_V": [False, True],
            "num_stages": [1, 2],
        },
        (
            ("rows per warp", lambda c: c["BLOCK_M"] >= 16 * np.minimum(c["num_warps"], 4)),
            ("head not a power of two", lambda c: (c["HEAD"] != 96) | _is(c["PRELOAD_V"], False)),
            ("preload needs square", lambda c: _is(c["PRELOAD_V"], False) | (c["BLOCK_N"] == c["HEAD"])),
        ),
        {"BLOCK_M": 64, "BLOCK_N": 64, "HEAD": 64, "num_warps": 4, "PRELOAD_V": False, "num_stages": 1},
        lambda c: c["num_stages"] * c["BLOCK_N"] * c["HEAD"] * 4 + c["BLOCK_M"] * c["HEAD"] * 2,
        65536,
    )


def literal_bases() -> Hidden:
    return Hidden(
        "literal_bases",
        {
            "BLOCK_M": [64, 128, 256],
            "BLOCK_N": [64, 128, 256],
            "BLOCK_K": [64, 128, 256],
            "num_warps": [4, 8, 16],
            "SCALE_VARIANT": [0, 1, 2],
            "GROUP": [1, 4],
            "NUM_KSPLIT": [1, 4],
        },
        (
            (
                "invalid basis",
                lambda c: np.where(
                    c["SCALE_VARIANT"] == 0,
                    (c["BLOCK_M"] == 256) & (c["BLOCK_N"] == 256),
                    np.where(
                        c["SCALE_VARIANT"] == 1,
                        (c["BLOCK_M"] == 128) & (c["BLOCK_N"] >= 128),
                        c["BLOCK_M"] == c["BLOCK_N"],
                    ),
                ),
            ),
            (
                "result has an invalid layout",
                lambda c: np.where(c["SCALE_VARIANT"] == 1, c["num_warps"] == 4, c["num_warps"] == 8),
            ),
            ("surjective", lambda c: (c["BLOCK_K"] >= 128) | (c["SCALE_VARIANT"] == 2)),
        ),
        {
            "BLOCK_M": 256,
            "BLOCK_N": 256,
            "BLOCK_K": 256,
            "num_warps": 8,
            "SCALE_VARIANT": 0,
            "GROUP": 1,
            "NUM_KSPLIT": 1,
        },
    )


def sliced_store() -> Hidden:
    return Hidden(
        "sliced_store",
        {
            "BM": [64, 128, 256],
            "BN": [64, 128, 192, 256],
            "SUB": [1, 2, 4],
            "out": ["fp8", "bf16", "fp32"],
            "SWZ": [0, 32, 64, 128],
            "num_warps": [4, 8],
        },
        (
            ("not a power of two", lambda c: (c["BN"] != 192) | (c["SUB"] == 4)),
            ("swizzle", lambda c: c["BN"] // c["SUB"] * _size(c["out"], BYTES) >= c["SWZ"]),
            ("registers", lambda c: c["BM"] * c["BN"] // c["SUB"] <= 4096 * c["num_warps"]),
        ),
        {"BM": 64, "BN": 128, "SUB": 1, "out": "bf16", "SWZ": 64, "num_warps": 4},
        lambda c: c["BM"] * (c["BN"] // c["SUB"]) * _size(c["out"], BYTES) * 2 + c["BM"] * 64 * 2 * 3,
        166912,
    )


def row_reduction() -> Hidden:
    return Hidden(
        "row_reduction",
        {
            "BLOCK": powers(7, 13),
            "ROWS": [1, 2, 4, 6, 8],
            "num_warps": powers(0, 4),
            "VEC": [1, 2, 4, 8],
            "two_pass": [False, True],
        },
        (
            ("layout larger than tensor", lambda c: c["BLOCK"] >= 32 * c["num_warps"] * c["VEC"]),
            ("not a power of two", lambda c: c["ROWS"] != 6),
            ("registers", lambda c: (c["ROWS"] * c["BLOCK"] <= 2048 * c["num_warps"]) | _is(c["two_pass"], True)),
        ),
        {"BLOCK": 1024, "ROWS": 1, "num_warps": 4, "VEC": 4, "two_pass": False},
    )


def clusters() -> Hidden:
    return Hidden(
        "clusters",
        {
            "BLOCK_M": [64, 128, 256],
            "BLOCK_N": [64, 128, 256],
            "CGA_M": [1, 2, 4],
            "CGA_N": [1, 2, 4],
            "MULTICAST": [False, True],
            "CONSUMERS": [1, 2],
            "num_warps": [4, 8],
        },
        (
            ("cluster size", lambda c: c["CGA_M"] * c["CGA_N"] <= 8),
            ("multicast", lambda c: _is(c["MULTICAST"], False) | (c["CGA_M"] * c["CGA_N"] > 1)),
            ("split of the tile", lambda c: (c["BLOCK_M"] // c["CGA_M"] >= 32 * c["CONSUMERS"]) | (c["CGA_M"] == 1)),
            ("consumer warps", lambda c: (c["CONSUMERS"] == 1) | ((c["num_warps"] == 4) & (c["BLOCK_M"] >= 128))),
        ),
        {"BLOCK_M": 128, "BLOCK_N": 128, "CGA_M": 1, "CGA_N": 1, "MULTICAST": False, "CONSUMERS": 1, "num_warps": 4},
    )


def paged_attention() -> Hidden:
    return Hidden(
        "paged_attention",
        {
            "PARTITION": [128, 256, 512],
            "PAGE": [1, 16, 64, 128],
            "KV_BLOCK": [32, 64, 128],
            "HEADS": [4, 8, 16, 32],
            "kv": ["bf16", "fp8"],
            "num_warps": [2, 4],
            "HEAD_DIM": [64, 128],
        },
        (
            ("at 12: partition", lambda c: c["PARTITION"] >= c["KV_BLOCK"] * c["num_warps"]),
            ("at 20: page", lambda c: (c["PAGE"] == 1) | (c["KV_BLOCK"] % c["PAGE"] == 0)),
            ("at 33: heads", lambda c: (c["HEADS"] >= 16) | _is(c["kv"], "bf16") | (c["HEAD_DIM"] == 128)),
        ),
        {"PARTITION": 256, "PAGE": 16, "KV_BLOCK": 64, "HEADS": 16, "kv": "bf16", "num_warps": 4, "HEAD_DIM": 128},
        lambda c: c["KV_BLOCK"] * c["HEAD_DIM"] * _size(c["kv"], BYTES) * 2 + c["HEADS"] * c["PARTITION"] * 4,
        65536,
    )


def far_island() -> Hidden:
    return Hidden(
        "far_island",
        {
            "BM": [32, 64, 128],
            "BN": [32, 64, 128],
            "BK": [32, 64, 128],
            "NW": [2, 4, 8],
            "KIND": ["plain", "scaled", "sparse"],
            "ST": [1, 2, 3],
        },
        (
            (
                "operand layout",
                lambda c: np.where(
                    _is(c["KIND"], "sparse"),
                    (c["BM"] == 128) & (c["BK"] == 128) & (c["NW"] == 8),
                    np.where(
                        _is(c["KIND"], "scaled"),
                        (c["BK"] >= 64) & (c["BM"] <= c["BN"]),
                        c["BM"] * c["BN"] >= 512 * c["NW"],
                    ),
                ),
            ),
        ),
        {"BM": 64, "BN": 64, "BK": 64, "NW": 4, "KIND": "plain", "ST": 1},
        lambda c: c["ST"] * (c["BM"] + c["BN"]) * c["BK"] * 2,
        65536,
    )


# ---- in the manner of real kernels: written after the learner was finished, scored once ------------------------------


def transposed_store() -> Hidden:
    """Operand shapes must agree across two knobs each; one large tile is over a small budget."""
    return Hidden(
        "transposed_store",
        {
            "BLOCK_M": [32, 64, 128, 256],
            "BLOCK_N": [32, 64, 128, 256],
            "SPLIT_M": [1, 2, 4],
            "SPLIT_N": [1, 2, 4],
            "num_warps": [4, 8],
            "LAYOUT": ["row", "col", "tiled"],
        },
        (
            ("tile per split", lambda c: (c["BLOCK_M"] >= 16 * c["SPLIT_M"]) & (c["BLOCK_N"] >= 16 * c["SPLIT_N"])),
            (
                "'tt.trans' op shapes differ",
                lambda c: ~_is(c["LAYOUT"], "tiled") | (c["BLOCK_M"] * c["SPLIT_N"] == c["BLOCK_N"] * c["SPLIT_M"]),
            ),
            ("warps", lambda c: ~_is(c["LAYOUT"], "col") | (c["BLOCK_M"] >= 8 * c["num_warps"])),
        ),
        {"BLOCK_M": 64, "BLOCK_N": 64, "SPLIT_M": 1, "SPLIT_N": 1, "num_warps": 4, "LAYOUT": "row"},
        lambda c: c["BLOCK_M"] * c["BLOCK_N"] * 4 // c["SPLIT_N"] + c["BLOCK_M"] * c["SPLIT_M"] * 16,
        163840,
    )


def grouped_scales() -> Hidden:
    """Scales are shared by groups along K; a group may not cross a tile, and its loads must fill a swizzle."""
    return Hidden(
        "grouped_scales",
        {
            "BM": [16, 32, 64, 128],
            "BK": [64, 128, 256],
            "GROUP_K": [32, 64, 128],
            "w": ["int4", "fp8", "bf16"],
            "SWIZZLE": [0, 32, 64, 128],
            "num_warps": [1, 2, 4],
        },
        (
            ("at 20: group", lambda c: c["BK"] % c["GROUP_K"] == 0),
            ("at 31: swizzle", lambda c: c["BK"] * _size(c["w"], BYTES | {"int4": 0.5}) >= c["SWIZZLE"]),
            ("at 44: unpack", lambda c: ~_is(c["w"], "int4") | ((c["BM"] >= 32) & (c["GROUP_K"] != 32))),
            ("registers", lambda c: c["BM"] * c["BK"] <= 8192 * c["num_warps"]),
        ),
        {"BM": 32, "BK": 128, "GROUP_K": 64, "w": "fp8", "SWIZZLE": 64, "num_warps": 4},
    )


def written_shapes() -> Hidden:
    """Three shapes by hand, each with its own warps and depth."""
    return Hidden(
        "written_shapes",
        {
            "BM": [64, 128, 256],
            "BN": [64, 128, 256],
            "BK": [32, 64, 128],
            "num_warps": [4, 8],
            "PIPE": [1, 2, 3],
            "OUT": ["bf16", "fp32"],
            "hint": [0, 1, 2],
        },
        (
            (
                "layout",
                lambda c: (
                    ((c["BM"] == 256) & (c["BN"] == 256) & (c["num_warps"] == 8) & (c["BK"] == 64))
                    | ((c["BM"] == 128) & (c["BN"] == 128) & (c["num_warps"] == 4))
                    | ((c["BM"] == 64) & (c["num_warps"] == 4) & (c["BK"] >= 64))
                ),
            ),
            ("pipe", lambda c: (c["PIPE"] < 3) | (c["BK"] <= 64)),
        ),
        {"BM": 128, "BN": 128, "BK": 64, "num_warps": 4, "PIPE": 2, "OUT": "bf16", "hint": 0},
    )


def convolution() -> Hidden:
    return Hidden(
        "convolution",
        {
            "BLOCK_P": [16, 32, 64, 128],
            "BLOCK_C": [16, 32, 64],
            "BLOCK_Q": [32, 64, 128, 256],
            "R": [1, 3, 5],
            "num_stages": [1, 2, 3, 4],
            "num_warps": [2, 4, 8],
        },
        (
            ("rows", lambda c: c["BLOCK_P"] * c["BLOCK_Q"] >= 256 * c["num_warps"]),
            ("filter", lambda c: (c["R"] == 1) | (c["BLOCK_C"] * c["R"] <= 160)),
            ("halo", lambda c: c["BLOCK_P"] + c["R"] * c["BLOCK_C"] <= 288),
        ),
        {"BLOCK_P": 64, "BLOCK_C": 32, "BLOCK_Q": 64, "R": 3, "num_stages": 2, "num_warps": 4},
        lambda c: c["num_stages"] * (c["BLOCK_P"] * c["BLOCK_C"] * c["R"] + c["BLOCK_C"] * c["BLOCK_Q"]) * 2,
        65536,
    )


def persistent_attention() -> Hidden:
    return Hidden(
        "persistent_attention",
        {
            "BLOCK_M": [64, 128, 256],
            "BLOCK_N": [32, 64, 128],
            "HEAD_DIM": [64, 128, 256],
            "GROUPS": [1, 2, 3],
            "num_warps": [4, 8],
            "KV_STAGES": [2, 3, 4],
            "dtype": ["fp8", "bf16"],
        },
        (
            ("at 8: static_assert", lambda c: c["BLOCK_M"] >= 64 * np.minimum(c["GROUPS"], 2)),
            ("at 9: static_assert", lambda c: (c["GROUPS"] == 1) | (c["num_warps"] == 4)),
            ("ttgir: tensor memory", lambda c: c["GROUPS"] * (c["BLOCK_N"] + c["HEAD_DIM"]) <= 512),
            ("fp8 needs", lambda c: ~_is(c["dtype"], "fp8") | (c["BLOCK_N"] >= 64)),
        ),
        {"BLOCK_M": 128, "BLOCK_N": 64, "HEAD_DIM": 64, "GROUPS": 1, "num_warps": 4, "KV_STAGES": 2, "dtype": "bf16"},
        lambda c: (
            (c["BLOCK_M"] + 2 * c["KV_STAGES"] * c["BLOCK_N"]) * c["HEAD_DIM"] * _size(c["dtype"], BYTES)
            + 16 * c["KV_STAGES"]
        ),
        232448,
    )


def routed_rows() -> Hidden:
    return Hidden(
        "routed_rows",
        {
            "BLOCK_M": [16, 32, 64, 128],
            "BLOCK_N": [64, 128, 256],
            "BLOCK_K": [32, 64, 128],
            "GATHER": [False, True],
            "ROUTE_TILE": [4, 8, 16, 32],
            "num_warps": [4, 8],
            "MODE": ["dense", "sorted", "padded"],
        },
        (
            ("route", lambda c: _is(c["GATHER"], False) | (c["BLOCK_M"] >= c["ROUTE_TILE"])),
            ("sorted", lambda c: ~_is(c["MODE"], "sorted") | _is(c["GATHER"], True)),
            (
                "padded",
                lambda c: (
                    ~_is(c["MODE"], "padded")
                    | ((c["BLOCK_M"] == 128) & (c["ROUTE_TILE"] == 32) & (c["num_warps"] == 8))
                ),
            ),
            ("mfma", lambda c: c["BLOCK_M"] * c["BLOCK_N"] >= 512 * c["num_warps"]),
        ),
        {
            "BLOCK_M": 64,
            "BLOCK_N": 128,
            "BLOCK_K": 64,
            "GATHER": False,
            "ROUTE_TILE": 8,
            "num_warps": 4,
            "MODE": "dense",
        },
    )


LARGE = (
    mfma_gemm(),
    pairs_table(),
    disjunctions(),
    pins(),
    divisors(),
    twelve_knobs(),
    mfma_gemm(extra=3),
    mfma_gemm(extra=6),
    mfma_gemm(extra=9),
    mfma_gemm(steps=5),
    mfma_gemm(steps=7),
    mfma_gemm(steps=9),
    epilogue_budget(),
    mfma_gemm(same=True),
)
ISLANDS = (island(), two_partner_pin(), deep_pin())
NOGOODS = (rare_nogoods(),)
OUTSIDE = (plain_sum(), random_tables(), random_tables(same=True))
DESIGN = (wgmma_swizzle(), padded_lds(), warp_grid(), attention_islands(), tensor_memory(), split_k(), vector_width())
HELD_OUT = (
    cta_pair(),
    moe_scaled(),
    flash_decode(),
    literal_bases(),
    sliced_store(),
    row_reduction(),
    clusters(),
    paged_attention(),
    far_island(),
)
FRESH = (
    transposed_store(),
    grouped_scales(),
    written_shapes(),
    convolution(),
    persistent_attention(),
    routed_rows(),
)
