"""Measure the counting of a space and the choice from it, as ratios to a numpy mask over the product in the same run.

    python benchmarks/spaces.py [--repeats 5] [--out benchmarks/spaces.md]

The mask is the minimum for any method that walks the product: each rule is written for numpy and evaluated once over
broadcast axes, and nothing is listed. gluonmap starts from the rules as text, and counts programs too.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parent.parent))

from gluonmap.constraints.semantics import words
from gluonmap.model.joint_map import Inertness, ValueClasses
from gluonmap.model.relations import Bound, Member, Op, Relation, Written
from gluonmap.query.reduced_space import ReducedSpace, reduced_space

TILE = (16, 32, 64, 128, 256)
COMMON = {
    "BM": TILE, "BN": TILE, "BK": TILE, "warps": (1, 2, 4, 8), "stages": (1, 2, 3, 4), "waves_per_eu": (0, 1, 2, 4),
    "nonkdim": (0, 16, 32), "kpack": (1, 2), "cache": (0, 1),
}  # fmt: skip
LIMIT = 300
"""Number of configurations to choose."""
LARGEST_MASK = 200_000_000
"""Most cells of a mask: a larger one does not fit this kind of machine."""


@dataclass(frozen=True)
class Space:
    """A space of the benchmark: its rules, and the rules of which configurations are one program."""

    name: str
    domains: dict[str, tuple[int, ...]]
    rules: tuple[str, ...]
    inertness: tuple[Inertness, ...]
    classes: tuple[ValueClasses, ...]

    @property
    def size(self) -> int:
        return math.prod(map(len, self.domains.values()))

    def build(self) -> ReducedSpace:
        baseline = {name: values[0] for name, values in self.domains.items()}
        relations = [Written(rule) for rule in self.rules]
        return reduced_space(self.domains, baseline, relations, self.inertness, self.classes)

    def mask(self) -> int:
        """Return the number of feasible configurations, counted over the whole product."""
        axes = np.meshgrid(*(np.array(v) for v in self.domains.values()), indexing="ij", sparse=True)
        names = dict(zip(self.domains, axes, strict=True))
        met = np.ones([len(v) for v in self.domains.values()], bool)
        for rule in self.rules:
            met &= eval("(" + rule.replace(" or ", ") | (") + ")", {}, names)  # our own rules, above
        return int(met.sum())


def only_if(knob: str, relation: Relation) -> Inertness:
    return Inertness(knob, words(relation), "", 1, 1, relation)


def space_of(name: str, more: dict[str, tuple[int, ...]], rules: tuple[str, ...], group: str, split: str) -> Space:
    """Return a space where kpack never matters, two knobs matter sometimes, and two values are one with many warps."""
    many = Bound("warps", Op.AT_LEAST, 4)
    inertness = (
        Inertness("kpack", "", "", 0, 1), only_if("stages", Bound("BK", Op.AT_LEAST, 32)),
        only_if(group, Member(split, (1,))),
    )  # fmt: skip
    return Space(name, COMMON | more, rules, inertness, (ValueClasses("waves_per_eu", ((0, 1),), words(many), many),))


RULES_A = (
    "(BM*BK + BK*BN)*2*stages <= 65536", "warps*64 <= BM*BN", "BM*BN <= warps*8192", "nonkdim <= BM", "nonkdim <= BN",
    "SPLIT_K*BK <= 4096", "SPLIT_K == 1 or GROUP_M == 1", "kpack == 1 or BK >= 32",
)  # fmt: skip
RULES_B = (
    "(BM*BK + BK*BN)*2*stages <= 32768", "BM*BN == warps*4096", "nonkdim <= BM", "nonkdim <= BN", "SK*BK <= 1024",
    "SK == 1 or GM == 1", "kpack == 1 or BK >= 64", "xcd <= GM", "chain == 0 or hint == 0", "hint == 0 or stages == 2",
)  # fmt: skip
MORE_A = {"GROUP_M": (1, 4, 8, 16), "SPLIT_K": (1, 2, 4, 8)}
MORE_B = {"GM": (1, 2, 4, 8, 16, 32), "SK": (1, 2, 4, 8, 16), "hint": (0, 1, 2), "chain": (0, 1), "xcd": (1, 2, 4, 8)}
SPACES = (
    space_of("A", MORE_A, RULES_A, "GROUP_M", "SPLIT_K"),
    space_of("B", MORE_B, RULES_B, "GM", "SK"),
    space_of("A, five knobs more", MORE_A | {f"x{i}": (0, 1, 2, 3) for i in range(5)}, RULES_A, "GROUP_M", "SPLIT_K"),
    space_of("B, four knobs more", MORE_B | {f"x{i}": (0, 1, 2, 3) for i in range(4)}, RULES_B, "GM", "SK"),
)
WAYS: dict[str, Callable[[Space], object]] = {
    "mask": Space.mask,
    "feasible": lambda space: space.build().feasible_count,
    "programs": lambda space: space.build().program_count,
    "chosen": lambda space: space.build().representatives(LIMIT),
}


def seconds(way: Callable[[Space], object], space: Space) -> float:
    started = time.process_time()
    way(space)
    return time.process_time() - started


def peak_megabytes(way: Callable[[Space], object], space: Space) -> float:
    tracemalloc.start()
    way(space)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def row(space: Space, repeats: int) -> list[str]:
    """Return one line of the table: processor seconds, medians of interleaved runs."""
    ways = {name: way for name, way in WAYS.items() if name != "mask" or space.size <= LARGEST_MASK}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            times[name].append(seconds(way, space))
    median = {name: statistics.median(values) for name, values in times.items()}
    reduced = space.build()
    if "mask" in ways:
        assert space.mask() == reduced.feasible_count

    def shown(name: str) -> str:
        ratio = f" ({median[name] / median['mask']:.2f} of the mask)" if "mask" in median else ""
        return f"{1000 * median[name]:.0f} ms{ratio}"

    return [
        space.name,
        f"{space.size:,}",
        f"{reduced.feasible_count:,}",
        f"{reduced.program_count:,}",
        f"{1000 * median['mask']:.0f} ms" if "mask" in median else "does not fit",
        *(shown(name) for name in ("feasible", "programs", "chosen")),
        f"{peak_megabytes(WAYS['programs'], space):.1f} MB",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    heads = (
        "space", "signature", "feasible", "programs", "numpy mask", "build and count feasible",
        "build and count programs", f"build and choose {LIMIT} programs", "memory, programs",
    )  # fmt: skip
    table = tabulate([row(space, options.repeats) for space in SPACES], heads, tablefmt="pipe", disable_numparse=True)
    text = (
        "# Spaces without walking the product\n\n"
        f"`python benchmarks/spaces.py --repeats {options.repeats}`: Python {platform.python_version()}, numpy "
        f"{np.__version__}, {len(os.sched_getaffinity(0))} cores. Processor time, medians; other work ran on the "
        f"machine, so read the ratios.\n\n{table}\n"
    )
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
