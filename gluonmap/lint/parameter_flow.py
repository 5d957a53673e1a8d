"""The decisions that depend on each parameter of a kernel: tile counts, masks, loop bounds, branches.

A value is followed through assignments and through the functions that the kernel calls. Loaded data and a program's
index in the grid do not count as a parameter's value, and an address is no decision.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from gluonmap.lint.kernel_functions import Files, Function, parameters
from gluonmap.lint.nodes import last_name, written
from gluonmap.source.syntax import Definition, bind, dotted

TILE_COUNT, MASK, LOOP, BRANCH = "tile count", "mask", "loop bound", "branch"
GRID, HEURISTIC, DERIVED = "grid", "heuristic", "derived parameter"


class Use(msgspec.Struct, frozen=True, omit_defaults=True):
    """One decision that depends on a value."""

    kind: str
    text: str
    """The expression, as written."""
    line: int | None = None
    """Line in `file`; None: the decision is in the probe file."""
    file: str = ""
    """Name of the file; empty: the kernel's own."""
    function: str = ""
    """Name of the helper with the decision; empty: the kernel itself."""


@dataclass
class FlowSummary:
    """The uses of a function's parameters."""

    uses: dict[str, list[Use]] = field(default_factory=dict)
    returns: set[str] = field(default_factory=set)
    """Parameters that the result depends on."""
    offsets: bool = False
    """The result depends on `arange`."""


_DATA = {
    "load",
    "dot",
    "dot_scaled",
    "zeros",
    "zeros_like",
    "full",
    "full_like",
    "arange",
    "program_id",
    "num_programs",
}
_DATA |= {"buffer_load", "load_shared", "mfma", "mfma_scaled", "wmma", "warpgroup_mma", "gather", "num_warps", "rand"}
_TYPES = {"dtype", "type", "element_ty", "shape", "layout", "block_shape"}
_BOUNDED = {"make_block_ptr": 1, "make_tensor_descriptor": 1, "advance": 99}
_MASKS = {"load": 1, "store": 2, "masked_load": 1, "masked_store": 2}


class FlowSummaries:
    """Summaries of functions, each made once."""

    def __init__(self, files: Files, kernel: Function) -> None:
        self.files, self.kernel = files, kernel
        self.known: dict[int, FlowSummary] = {}

    def of(self, function: Function) -> FlowSummary:
        """Return the uses of the function's parameters."""
        key = id(function.node)
        if key not in self.known:
            self.known[key] = FlowSummary()  # a recursive call finds this empty summary
            self.known[key] = _FlowReader(self, function).summary()
        return self.known[key]

    def helper(self, call: ast.Call, function: Function) -> tuple[Function, dict[str, ast.expr]] | None:
        """Return the project's function that a call reaches, and parameter -> its argument in the call."""
        name = dotted(call.func)
        found = self.files.called(name, function.module) if name else None
        bound = bind(call, found.node) if found else None
        return (found, bound) if found and bound is not None else None


class _FlowReader:
    """Reader of one function."""

    def __init__(self, flows: FlowSummaries, function: Function) -> None:
        self.flows, self.function = flows, function
        self.parameters = parameters(function.node)
        self.assigned: dict[str, list[ast.expr]] = {}
        self.loops: set[str] = set()
        for node in walk(function.node):
            for name, value in stores(node):
                self.assigned.setdefault(name, []).append(value)
            if isinstance(node, ast.For):
                self.loops |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        self.atoms_of: dict[str, frozenset[str]] = {}

    def summary(self) -> FlowSummary:
        found = FlowSummary()
        for node in walk(self.function.node):
            for name, use in self._uses(node):
                if use not in (uses := found.uses.setdefault(name, [])):
                    uses.append(use)
            if isinstance(node, ast.Return) and node.value is not None:
                found.returns |= self.atoms(node.value)
                found.offsets |= self.is_offset(node.value)
        return found

    # -- decisions -----------------------------------------------------------------------------------------------

    def _uses(self, node: ast.AST) -> Iterator[tuple[str, Use]]:
        match node:
            case ast.Call():
                yield from self._called(node)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                if self._is_tile(right) and not self._is_place(left):
                    yield from self._uses_of(TILE_COUNT, node, self.atoms(left) | self.atoms(right))
            case ast.BinOp(left=left, op=ast.Mod(), right=right) if self.is_offset(left):
                yield from self._uses_of(MASK, node, self.atoms(right))
            case ast.Compare():
                yield from self._uses_of(MASK, node, self._bounds(node, scalars=False))
            case ast.For(iter=ast.Call(args=args) as call):
                yield from self._uses_of(LOOP, call, self._all(args))
            case ast.For(iter=value):
                yield from self._uses_of(LOOP, value, self.atoms(value))
            case ast.While(test=test):
                yield from self._uses_of(LOOP, test, self.atoms(test))
            case ast.If(test=test) | ast.IfExp(test=test):
                yield from self._uses_of(BRANCH, test, self.atoms(test))

    def _called(self, call: ast.Call) -> Iterator[tuple[str, Use]]:
        last = dotted(call.func).rpartition(".")[2]
        helper = self.flows.helper(call, self.function)
        if helper:
            function, bound = helper
            for parameter, uses in self.flows.of(function).uses.items():
                names = self.atoms(bound[parameter]) if parameter in bound else frozenset()
                yield from ((name, use) for name in names for use in uses)
            return
        if last == "cdiv":
            yield from self._uses_of(TILE_COUNT, call, self._all(call.args))
        given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        mask = given.get("mask") or _argument(call, _MASKS.get(last, 99))
        if mask is not None:
            yield from self._uses_of(MASK, mask, self._bounds(mask, scalars=True))
        shape = (given.get("shape") or _argument(call, _BOUNDED[last])) if last in _BOUNDED else None
        if shape is not None:
            yield from self._uses_of(MASK, shape, self.atoms(shape))

    def _uses_of(self, kind: str, node: ast.AST, names: frozenset[str]) -> Iterator[tuple[str, Use]]:
        own = self.function.node is self.flows.kernel.node
        here = self.function.module.path == self.flows.kernel.module.path
        file = "" if here else str(self.function.module.path.name)
        use = Use(kind, written(node), getattr(node, "lineno", None), file, "" if own else self.function.name)
        yield from ((name, use) for name in sorted(names))

    def _bounds(self, node: ast.expr, *, scalars: bool, seen: frozenset[str] = frozenset()) -> frozenset[str]:
        """Return the parameters that offsets are compared with.

        With `scalars`, return those of a mask's comparisons without offsets instead.
        """
        match node:
            case ast.Compare(left=left, comparators=comparators):
                sides = [left, *comparators]
                plain = [side for side in sides if not self.is_offset(side)]
                if scalars and any(self._is_loaded(side) for side in sides):
                    return frozenset()  # such a comparison validates an index; it does not bound the work
                return self._all(plain) if scalars is (len(plain) == len(sides)) else frozenset()
            case ast.Name(id=name) if name not in seen:
                inner = self.assigned.get(name, [])
                return self._union(self._bounds(value, scalars=scalars, seen=seen | {name}) for value in inner)
            case ast.BinOp() | ast.BoolOp() | ast.UnaryOp() | ast.Subscript():
                inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
                return self._union(self._bounds(child, scalars=scalars, seen=seen) for child in inner)
        return frozenset()

    # -- values --------------------------------------------------------------------------------------------------

    def atoms(self, node: ast.AST) -> frozenset[str]:
        """Return the parameters that an expression depends on."""
        match node:
            case ast.Name(id=name):
                return self._of_name(name)
            case ast.Attribute(attr=attribute) if attribute in _TYPES:
                return frozenset()
            case ast.Call():
                return self._of_call(node)
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod()) if self._is_place(left):
                return frozenset()  # a part of the grid index: `pid // H` does not depend on the size of H
            case ast.Lambda():
                return frozenset()
        return self._all(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.slice))

    def _of_name(self, name: str) -> frozenset[str]:
        if name in self.loops and name not in self.parameters:
            return frozenset()
        if name not in self.atoms_of:
            own = frozenset([name] if name in self.parameters else [])
            self.atoms_of[name] = own  # a variable that depends on itself adds nothing
            self.atoms_of[name] = own | self._all(self.assigned.get(name, []))
        return self.atoms_of[name]

    def _of_call(self, call: ast.Call) -> frozenset[str]:
        last = last_name(call)
        if last in _DATA or last.startswith(("atomic_", "async_")):
            return frozenset()
        if helper := self.flows.helper(call, self.function):
            function, bound = helper
            returns = self.flows.of(function).returns
            return self._all(value for name, value in bound.items() if name in returns)
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        return self._all([*owner, *call.args, *(keyword.value for keyword in call.keywords)])

    def is_offset(self, node: ast.AST) -> bool:
        """Return whether an expression depends on `arange`: it has a value for each element of a tile."""
        return self._made(node, lambda call, last: last == "arange")

    def _is_loaded(self, node: ast.AST) -> bool:
        """Return whether an expression depends on loaded data."""
        return self._made(node, lambda call, last: last in ("load", "buffer_load"))

    def _is_place(self, node: ast.AST) -> bool:
        """Return whether an expression depends on the program's grid index, a loop's variable or `arange`."""
        return self._made(node, lambda call, last: last in ("arange", "program_id"), loops=True)

    def _made(
        self, node: ast.AST, found: Callable[[ast.Call, str], bool], *, loops: bool = False,
        seen: frozenset[str] = frozenset(),
    ) -> bool:  # fmt: skip
        match node:
            case ast.Name(id=name):
                if name in seen or (loops and name in self.loops):
                    return name not in seen
                values: list[ast.AST] = list(self.assigned.get(name, []))
                return any(self._made(value, found, loops=loops, seen=seen | {name}) for value in values)
            case ast.Call():
                last = last_name(node)
                if found(node, last):
                    return True
                if last in _DATA:
                    return False
                if helper := self.flows.helper(node, self.function):
                    return self.flows.of(helper[0]).offsets
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr | ast.keyword)]
        return any(self._made(child, found, loops=loops, seen=seen) for child in inner)

    def _is_tile(self, node: ast.expr) -> bool:
        """Return whether an expression depends on constexpr parameters alone, and on at least one."""
        names = self.atoms(node)
        return bool(names) and all(self.parameters.get(name, False) for name in names)

    def _all(self, nodes: Iterator[ast.AST] | list[ast.expr]) -> frozenset[str]:
        return self._union(self.atoms(node) for node in nodes)

    @staticmethod
    def _union(sets: Iterator[frozenset[str]]) -> frozenset[str]:
        return frozenset().union(*sets)


def walk(function: Definition) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body in the order of the text, without annotations."""
    pending: list[ast.AST] = list(reversed(function.body))
    while pending:
        node = pending.pop()
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.AnnAssign):
            children = [child for child in children if child is not node.annotation]
        pending += reversed(children)


def stores(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each variable that an assignment sets, with its value; loops and `with` are no assignments."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _paired(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case (
            ast.AugAssign(target=ast.Name(id=name), value=value) | ast.NamedExpr(target=ast.Name(id=name), value=value)
        ):
            yield name, value


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ((ast.Tuple(elts=left) | ast.List(elts=left)), (ast.Tuple(elts=right) | ast.List(elts=right))) if len(
            left
        ) == len(right):
            for one, other in zip(left, right, strict=True):
                yield from _paired(one, other)
        case ((ast.Tuple(elts=left) | ast.List(elts=left)), _):
            for one in left:
                yield from _paired(one, value)
        case ast.Name(id=name), _:
            yield name, value


def _argument(call: ast.Call, place: int) -> ast.expr | None:
    """Return a positional argument. The object of a method does not count."""
    return call.args[place] if place < len(call.args) else None
