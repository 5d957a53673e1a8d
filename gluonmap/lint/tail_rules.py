"""The rule about tails: loads and stores without a mask, in which the last tile reaches past the tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gluonmap.lint.findings import LintFinding
from gluonmap.lint.flat_trees import Body
from gluonmap.lint.linted_file import KernelLaunch, LintedFile
from gluonmap.lint.nodes import argument, call_name, last_name, written

_ACCESSES = {"load": (0, 1), "store": (0, 2), "buffer_load": (1, 2), "buffer_store": (2, 3)}
"""Access function -> positions of two arguments: the address or the offsets, and the mask."""

LOADS = frozenset(("load", "buffer_load"))
"""Functions whose result is the data of a tensor."""

Tile = tuple[str, str]
"""A program's index in the grid, and the block that it is multiplied by, as written."""


@dataclass(frozen=True)
class TileAccess:
    """One load or store at an address."""

    call: ast.Call
    address: ast.expr
    mask: ast.expr | None
    conditional: bool
    bounds: dict[Tile, ast.Compare]
    """Tile → the comparison of the mask that keeps it below a run-time size."""
    covered: frozenset[Tile]
    """Tiles that occur in the mask."""

    @property
    def function(self) -> str:
        """Name of the access function: "load", "buffer_store"."""
        return last_name(self.call)


def check(subject: LintedFile, body: Body) -> Iterator[LintFinding]:
    """Yield the accesses of a kernel whose last tile reaches past the tensor."""
    if not any(last_name(call) == "program_id" for call in body.calls):
        return
    tiles = {name: tile for name in body.values if (tile := _tile_of(body, name))}
    every = list(accesses(body, tiles)) if tiles else []
    masked: dict[Tile, tuple[int, ast.Compare]] = {}
    for access in every:
        for tile, compare in access.bounds.items():
            masked.setdefault(tile, (access.call.lineno, compare))
    for access in every:
        # An access under a condition may be the branch for whole tiles. A mask without a comparison is made elsewhere,
        # so its bounds are unknown.
        if access.conditional or (access.mask is not None and not _compares(body, access.mask)):
            continue
        used = {tiles[name]: name for name in sorted(body.added(access.address)) if name in tiles}
        for tile in sorted(used.keys() - access.covered):
            finding = _finding(subject, body, access, tile, used[tile], masked)
            if finding is not None:
                yield finding
                break


def _finding(
    subject: LintedFile,
    body: Body,
    access: TileAccess,
    tile: Tile,
    name: str,
    masked: dict[Tile, tuple[int, ast.Compare]],
) -> LintFinding | None:
    """Return the finding about an access without a mask for a tile; None if the tile may always be whole."""
    launches = [launch for launch in subject.launches if launch.kernel.node is body.function.node]
    if any(_padded(body, access.address, launch) for launch in launches):
        return None
    if tile in masked:
        line, compare = masked[tile]
        detail, fix = f"which line {line} masks with {written(compare, 40)}", f"mask it too: {written(compare, 40)}"
    elif access.mask is None and not _bounded_elsewhere(body, name) and (size := _cdiv(body, tile, launches)):
        detail, fix = (
            f"while {size} sets the number of programs or tiles",
            f"mask={name} < …, the size that {size} divides",
        )
    else:
        return None
    return subject.finding(
        "GM202",
        access.call,
        f"this {access.function} has no mask for {name}, {detail}: the last tile reaches past the tensor",
        fix,
        body.function.name,
    )


def accesses(body: Body, tiles: Mapping[str, Tile]) -> Iterator[TileAccess]:
    """Yield loads and stores at addresses. Descriptors, block pointers and shared memory have their own bounds."""
    conditional = {id(inner) for node in body.nodes if isinstance(node, ast.If | ast.IfExp) for inner in ast.walk(node)}
    for call in body.calls:
        root, _, last = call_name(call).rpartition(".")
        if last not in _ACCESSES or not root or root in body.parameters or root in body.values:
            continue
        place, mask_place = _ACCESSES[last]
        address = argument(call, "offsets" if last.startswith("buffer") else "pointer", place)
        if address is None or any(keyword.arg == "boundary_check" for keyword in call.keywords):
            continue
        if {"make_block_ptr", "make_tensor_descriptor"} & body.made_with(address):
            continue
        mask = argument(call, "mask", mask_place)
        mask = None if isinstance(mask, ast.Constant) and mask.value is None else mask
        bounds = _bounds(body, tiles, mask) if mask is not None else {}
        named = body.behind(mask) if mask is not None else set()
        covered = frozenset({*bounds, *(tiles[name] for name in named if name in tiles)})
        yield TileAccess(call, address, mask, id(call) in conditional, bounds, covered)


def _tile_of(body: Body, name: str) -> Tile | None:
    """Return the tile of a variable that holds index * BLOCK + arange(0, BLOCK), also inside hints and casts."""
    value = body.names.value(name)
    if value is None or name in body.parameters:
        return None
    terms = list(body.terms(value))
    sizes = [argument(term, "end", 1) for term in terms if isinstance(term, ast.Call)]
    places = [term for term in terms if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Mult)]
    if len(terms) != 2 or len(sizes) != 1 or len(places) != 1 or sizes[0] is None:
        return None
    for place, block in ((places[0].left, places[0].right), (places[0].right, places[0].left)):
        plain = isinstance(block, ast.Name | ast.Constant) and written(block) == written(sizes[0])
        if plain and "program_id" in body.made_with(place):
            return written(place), written(block)
    return None


def _bounds(body: Body, tiles: Mapping[str, Tile], mask: ast.expr) -> dict[Tile, ast.Compare]:
    bounds: dict[Tile, ast.Compare] = {}
    for node in _behind(body, mask):
        match node:
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]):
                sizes = body.behind(right)
                of_the_run = any(not body.parameters.get(name, True) for name in sizes)
                # A loaded length may be that of another tensor.
                if of_the_run and not sizes & tiles.keys() and not LOADS & body.made_with(right):
                    for name in body.added(left) & tiles.keys():
                        bounds.setdefault(tiles[name], node)
    return bounds


def _behind(body: Body, node: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes of an expression and of the values of its variables."""
    for part in (node, *(value for name in body.behind(node) for value in body.values.get(name, []))):
        yield from ast.walk(part)


def _compares(body: Body, mask: ast.expr) -> bool:
    return any(isinstance(node, ast.Compare) for node in _behind(body, mask))


def _bounded_elsewhere(body: Body, name: str) -> bool:
    """Return whether the kernel compares, wraps or clamps the offsets, or makes a promise about sizes."""
    for node in body.nodes:
        match node:
            case ast.Compare() | ast.BinOp(op=ast.Mod()):
                if name in body.behind(node):
                    return True
            case ast.Call() if last_name(node) in ("minimum", "min", "where"):
                if name in body.behind(node):
                    return True
            case ast.Call() if last_name(node) in ("static_assert", "device_assert", "assume"):
                return True
    return False


def _cdiv(body: Body, tile: Tile, launches: list[KernelLaunch]) -> str:
    """Return the `cdiv(size, BLOCK)` that counts the tiles, in the kernel or in the grids of its launches."""
    block = tile[1]
    for call in body.calls:
        if _is_cdiv(call, [block]) and any(not body.parameters.get(name, True) for name in body.behind(call.args[0])):
            return written(call)
    for launch in launches:
        grid: ast.AST | None = launch.grid
        if isinstance(launch.grid, ast.Name):
            grid = launch.names.functions.get(launch.grid.id) or launch.names.value(launch.grid.id)
        if grid is None or _promises(launch):
            continue
        given = launch.given.get(block)
        blocks = [block, written(given)] if isinstance(given, ast.Name) else [block]
        for node in ast.walk(grid):
            if isinstance(node, ast.Call) and _is_cdiv(node, blocks) and not isinstance(node.args[0], ast.Constant):
                return written(node)
    return ""


def _is_cdiv(call: ast.Call, blocks: list[str]) -> bool:
    """Return whether a call is `cdiv(…, BLOCK)` or `cdiv(…, META["BLOCK"])` for one of the names."""
    if last_name(call) != "cdiv" or len(call.args) != 2:
        return False
    match call.args[1]:
        case ast.Name(id=name) | ast.Subscript(slice=ast.Constant(value=name)):
            return name in blocks
    return False


def _promises(launch: KernelLaunch) -> bool:
    """Return whether the launching code computes remainders. It may then ensure that there is no tail."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in ast.walk(launch.scope))


def _padded(body: Body, address: ast.expr, launch: KernelLaunch) -> bool:
    """Return whether a launch passes a tensor whose size was rounded up."""
    pending = [launch.given[name] for name in body.added(address) if name in launch.given and name in body.parameters]
    seen: set[str] = set()
    while pending:
        for node in ast.walk(pending.pop()):
            match node:
                case ast.BinOp(op=ast.FloorDiv()):
                    return True
                case ast.Call() if last_name(node) in ("cdiv", "next_power_of_2", "pad"):
                    return True
                case ast.Name(id=name) if name not in seen:
                    seen.add(name)
                    pending += launch.names.values.get(name, [])
    return False
