"""Demands that a layout written in the source makes of a configuration: extents, warps, lanes, instruction shapes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from gluonmap.model.verdict import Location
from gluonmap.source.symbolic import (
    NUM_WARPS,
    Demand,
    Opaque,
    Symbol,
    as_constant,
    as_int,
    binary_operation,
    can_fail,
    compare_to,
    fold,
    is_true,
    shorten,
)

SIGNATURES: dict[str, tuple[str, ...]] = {
    "AMDMFMALayout": ("version", "instr_shape", "transposed", "warps_per_cta"),
    "AMDWMMALayout": ("version", "transposed", "third"),
    "BlockedLayout": ("size_per_thread", "threads_per_warp", "warps_per_cta", "order"),
    "DistributedLinearLayout": ("reg_bases", "lane_bases", "warp_bases", "block_bases", "shape"),
    "NVMMADistributedLayout": ("version", "warps_per_cta", "instr_shape"),
}
"""Class of a layout -> names of its arguments in order; "third" is named by its value."""

WRAPPING_LAYOUTS = {"SliceLayout", "DotOperandLayout"}
"""Classes whose demands are those of the layout that they wrap."""

Locate = Callable[[str], Location]
"""Name of a layout's argument -> where it is written; an argument that is not written is where the call is."""


def layout_demands(
    name: str,
    known: Mapping[str, Symbol],
    written: Mapping[str, ast.expr],
    locate: Callable[[ast.expr | None], Location],
    warp_size: int,
) -> Iterator[Demand]:
    """Yield the demands of a call of the layout class `name`.

    known, written: the arguments by name, as values and as expressions. locate: where an expression is; the call for
    None. warp_size: lanes of a warp on the target.
    """
    if name == "AMDWMMALayout" and "third" in known:
        key = _third_argument(known["third"])
        known = {key if given == "third" else given: value for given, value in known.items()}
        written = {key if given == "third" else given: part for given, part in written.items()}

    def at(key: str) -> Location:
        return locate(written.get(key))

    if name == "DistributedLinearLayout":
        yield from _linear_bases(known, at, locate(None))
    yield from _warps(known, at)
    yield from _lanes(known, at, warp_size)
    if name in ("AMDMFMALayout", "AMDWMMALayout"):
        yield from _instruction_shape(known, at)


def _third_argument(value: Symbol) -> str:
    """Return the name of AMDWMMALayout's third argument: `warps_per_cta` in 3.6.0, `warp_bases` in 3.9.0.

    Bases are a list of lists.
    """
    nested = isinstance(value, tuple) and all(isinstance(item, tuple) for item in value)
    return "warp_bases" if nested else "warps_per_cta"


def _linear_bases(known: Mapping[str, Symbol], at: Locate, call: Location) -> Iterator[Demand]:
    """Yield what the bases of a linear layout demand of each extent: above the largest basis, and equal to the span."""
    shape = known.get("shape")
    groups = ("reg_bases", "lane_bases", "warp_bases", "block_bases")
    bases = {key: _integer_bases(known.get(key)) for key in groups}
    if not isinstance(shape, tuple):
        return
    for dimension, extent in enumerate(shape):
        if not isinstance(extent, ast.expr):
            continue
        written = {
            key: [basis[dimension] for basis in found if dimension < len(basis)]
            for key, found in bases.items()
            if found is not None
        }
        largest, group = max(((max(numbers, default=0), key) for key, numbers in written.items()), default=(0, ""))
        text = shorten(ast.unparse(extent))
        if largest > 0:
            yield from _unless_true(
                f"basis {largest} needs {text} > {largest}", compare_to(extent, ast.Gt(), largest), at(group)
            )
        if len(written) == len(groups):
            covered = 1 << _rank(itertools.chain(*written.values()))
            yield from _unless_true(
                f"the bases span {covered}, so {text} = {covered}", compare_to(extent, ast.Eq(), covered), call
            )


def _warps(known: Mapping[str, Symbol], at: Locate) -> Iterator[Demand]:
    """Yield the number of warps that a layout distributes over."""
    warps = ast.Name(NUM_WARPS, ast.Load())
    bases = known.get("warp_bases")
    if isinstance(bases, tuple):
        count, meant = len(bases), 1 << len(bases)
        text = f"{count} warp {'basis means' if count == 1 else 'bases mean'} num_warps = {meant}"
        yield Demand(text, compare_to(warps, ast.Eq(), meant), at("warp_bases"))
    product = _product(known.get("warps_per_cta"))
    if isinstance(product, ast.expr):
        rule = ast.Compare(warps, [ast.Eq()], [product])
        if can_fail(rule):
            shown = f"warps_per_cta {_show(known['warps_per_cta'])}"
            number = isinstance(product, ast.Constant)
            text = (
                f"{shown} means num_warps = {ast.unparse(product)}" if number else f"{shown} must give num_warps warps"
            )
            yield Demand(text, rule, at("warps_per_cta"))


def _lanes(known: Mapping[str, Symbol], at: Locate, warp_size: int) -> Iterator[Demand]:
    """Yield a demand where the layout's warps do not have the lanes of the target's warps."""
    bases = known.get("lane_bases")
    if isinstance(bases, tuple) and 1 << len(bases) != warp_size:
        text = f"{len(bases)} lane bases mean warps of {1 << len(bases)} lanes, the target has {warp_size}"
        yield Demand(text, ast.Constant(False), at("lane_bases"))
    threads = known.get("threads_per_warp")
    product = _product(threads)
    if threads is not None and isinstance(product, ast.expr):
        rule = compare_to(product, ast.Eq(), warp_size)
        if can_fail(rule):
            lanes = shorten(ast.unparse(product))
            text = f"threads_per_warp {_show(threads)} means warps of {lanes} lanes, the target has {warp_size}"
            yield Demand(text, fold(rule) or rule, at("threads_per_warp"))


def _instruction_shape(known: Mapping[str, Symbol], at: Locate) -> Iterator[Demand]:
    """Yield that `matrix_instr_nonkdim` has no effect where the instruction's shape is a literal."""
    shape = known.get("instr_shape")
    if isinstance(shape, tuple) and shape and all(as_constant(part) for part in shape):
        text = f"instr_shape {_show(shape)} is a literal: matrix_instr_nonkdim is not used"
        yield Demand(text, ast.Constant(True), at("instr_shape"), knobs=("matrix_instr_nonkdim",))


def _unless_true(text: str, rule: ast.expr, location: Location) -> Iterator[Demand]:
    folded = fold(rule) or rule
    if not is_true(folded):
        yield Demand(text, folded, location)


def _integer_bases(symbol: Symbol | None) -> list[list[int]] | None:
    """Return bases that are written as lists of whole numbers; None for all others."""
    if not isinstance(symbol, tuple):
        return None
    found = [[as_int(part) for part in basis] for basis in symbol if isinstance(basis, tuple)]
    if len(found) != len(symbol) or any(part is None for basis in found for part in basis):
        return None
    return [[part for part in basis if part is not None] for basis in found]


def _rank(numbers: Iterable[int]) -> int:
    """Return how many independent bits the numbers span under exclusive or."""
    pivots: list[int] = []
    for number in numbers:
        for pivot in pivots:
            number = min(number, number ^ pivot)
        if number:
            pivots.append(number)
    return len(pivots)


def _product(symbol: Symbol | None) -> Symbol:
    """Return the product of a list of values."""
    if not isinstance(symbol, tuple) or not symbol:
        return Opaque.UNKNOWN
    factors = [part for part in symbol if as_int(part) != 1] or [ast.Constant(1)]
    product = factors[0]
    for factor in factors[1:]:
        product = binary_operation(product, ast.Mult(), factor)
    return product


def _show(symbol: Symbol) -> str:
    if isinstance(symbol, tuple):
        return f"[{', '.join(_show(part) for part in symbol)}]"
    return shorten(ast.unparse(symbol)) if isinstance(symbol, ast.expr) else "?"
