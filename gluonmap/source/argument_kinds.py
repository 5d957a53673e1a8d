"""Kinds of a kernel's run-time arguments (pointer, integer, descriptor), inferred from annotations, uses and names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from gluonmap.model.inspection import FunctionSource, Parameter
from gluonmap.source.syntax import Definition, assignments, bind, definition, dotted, helper_of, parameter_names

_NAMES = (
    ("descriptor", re.compile(r"(^|_)desc(riptor)?s?$|^desc_", re.IGNORECASE)),
    ("pointer", re.compile(r"(^|_)ptrs?$|^ptr_|_ptr_|^p_|(^|_)pointers?$", re.IGNORECASE)),
    ("integer", re.compile(r"(^|_)strides?($|_|[a-z0-9])|^[MNK]$|^(n|num)_|(^|_)(len|size)$")),
)
_ANNOTATIONS = (
    ("pointer", re.compile(r"\*|pointer|ptr", re.IGNORECASE)),
    ("descriptor", re.compile(r"tensor_?desc", re.IGNORECASE)),
    ("integer", re.compile(r"\b(u?int\d*|[iu]\d+)\b")),
    (None, re.compile(r"\b(float\d*|fp\d+|bf16|f\d+|bool)\b")),
)
_POINTER_OPERAND = re.compile(
    r"^(buffer_)?(load|atomic_\w+)$|^store$|^(buffer_)?(atomic_\w+)$|^make_tensor_descriptor$"
)
_SECOND_POINTER_OPERAND = re.compile(
    r"^buffer_store$|^(global|buffer)_load_to_shared$|^global_to_shared$|^async_copy_global_to_shared$"
)
_INDEX_CALLS = {"range", "static_range", "cdiv"}
_OFFSET_CALLS = {"arange", "program_id", "num_programs", "range", "static_range", "cdiv"}
_DESCRIPTOR_ATTRIBUTES = {"block_type", "block_shape", "layout", "nbytes_per_cta"}
_DESCRIPTOR_METHODS = {"load", "store", "gather", "scatter"}


def infer_argument_kinds(functions: Sequence[FunctionSource], parameters: Sequence[Parameter]) -> dict[str, str | None]:
    """Return "pointer", "integer" or "descriptor" for each run-time parameter of the kernel, None if it is unknown.

    The annotation decides, else the parameter's uses (in helpers too), else its name.
    """
    used = _UseEvidence(functions).of(0)
    return {item.name: _kind(item, used.get(item.name, set())) for item in parameters if not item.constexpr}


def _kind(parameter: Parameter, used: set[str]) -> str | None:
    for annotated, pattern in _ANNOTATIONS:
        if pattern.search(parameter.annotation):
            return annotated
    for kind in ("descriptor", "pointer", "integer"):
        if kind in used:
            return kind
    return next((kind for kind, pattern in _NAMES if pattern.search(parameter.name)), None)


class _UseEvidence:
    """Kinds of each function's parameters, as far as their uses show them."""

    def __init__(self, functions: Sequence[FunctionSource]) -> None:
        self.functions = functions
        self.known: dict[int, dict[str, set[str]]] = {}

    def of(self, index: int) -> dict[str, set[str]]:
        """Return the kinds that the uses in one function show: parameter -> "pointer", "integer", "descriptor"."""
        if index not in self.known:
            node = definition(self.functions[index].source)
            found: dict[str, set[str]] = {name: set() for name in (parameter_names(node) if node else ())}
            self.known[index] = found  # set before the walk: a helper that calls itself learns nothing from that call
            if node:
                self._collect(index, _ValueFlow(node), found)
        return self.known[index]

    def _collect(self, index: int, flow: _ValueFlow, found: dict[str, set[str]]) -> None:
        for node in ast.walk(flow.node):
            for name, kind in self._evidence(index, flow, node):
                if name in found:
                    found[name].add(kind)

    def _evidence(self, index: int, flow: _ValueFlow, node: ast.AST) -> Iterator[tuple[str, str]]:
        match node:
            case ast.Call():
                helper = helper_of(node, self.functions, index)
                bound = bind(node, helper[1]) if helper else None
                if helper and bound is not None:
                    yield from self._kinds_of_helper(flow, self.of(helper[0]), bound)
                elif helper is None:
                    yield from _kinds_of_call(flow, node)
            case ast.Attribute(attr="element_ty", value=ast.Attribute(attr="type" | "dtype", value=ast.Name(id=name))):
                yield name, "pointer"
            case ast.Attribute(attr=attribute, value=ast.Name(id=name)) if attribute in _DESCRIPTOR_ATTRIBUTES:
                yield name, "descriptor"
            case ast.BinOp(op=ast.Mod() | ast.FloorDiv()):
                yield from ((name, "integer") for name in flow.atoms(node))
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                yield from _combined_with_offsets(flow, left, right)
            case ast.Compare(left=left, comparators=[right]):
                yield from _combined_with_offsets(flow, left, right)

    @staticmethod
    def _kinds_of_helper(
        flow: _ValueFlow, used: Mapping[str, set[str]], bound: Mapping[str, ast.expr]
    ) -> Iterator[tuple[str, str]]:
        for parameter, value in bound.items():
            kinds = used.get(parameter, set())
            if "pointer" in kinds:
                yield from _kinds_in_address(flow, value)
            elif "descriptor" in kinds:
                yield from ((name, "descriptor") for name in flow.bases(value))
            elif "integer" in kinds:
                yield from ((name, "integer") for name in flow.atoms(value))


def _kinds_of_call(flow: _ValueFlow, call: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield the kinds that a call of the language shows of its arguments."""
    name = dotted(call.func)
    root, _, last = name.rpartition(".")
    if root in flow.names:
        if last in _DESCRIPTOR_METHODS and root in flow.parameters:
            yield root, "descriptor"
        return
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    for operand in _pointer_operands(last, call, keywords):
        yield from _kinds_in_address(flow, operand)
    for operand in _index_operands(last, call, keywords):
        yield from ((found, "integer") for found in flow.atoms(operand))
    if re.search(r"(^|\.)(tma|tdm)$", root) and last != "make_tensor_descriptor":
        for operand in call.args[:1]:
            yield from ((found, "descriptor") for found in flow.bases(operand))


def _pointer_operands(last: str, call: ast.Call, keywords: Mapping[str, ast.expr]) -> Iterator[ast.expr]:
    yield from (keywords[key] for key in ("ptr", "pointer", "base") if key in keywords)
    position = 1 if _SECOND_POINTER_OPERAND.search(last) else 0 if _POINTER_OPERAND.search(last) else None
    if position is not None and len(call.args) > position:
        yield call.args[position]


def _index_operands(last: str, call: ast.Call, keywords: Mapping[str, ast.expr]) -> Iterator[ast.expr]:
    yield from (keywords[key] for key in ("offsets", "strides") if key in keywords)
    if last in _INDEX_CALLS:
        yield from call.args
    position = {"buffer_load": 1, "buffer_store": 2, "buffer_load_to_shared": 2}.get(last)
    if position is not None and len(call.args) > position:
        yield call.args[position]
    if last == "make_tensor_descriptor":
        yield from call.args[1:3]
        yield from (keywords[key] for key in ("shape",) if key in keywords)


def _kinds_in_address(flow: _ValueFlow, address: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield "pointer" for the parameter that an address starts from, and "integer" for the others in it."""
    bases = flow.bases(address)
    yield from ((name, "pointer") for name in bases)
    yield from ((name, "integer") for name in flow.atoms(address) - bases)


def _combined_with_offsets(flow: _ValueFlow, left: ast.expr, right: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield "integer" for the parameters of a side whose other side is an offset."""
    for side, other in ((left, right), (right, left)):
        if flow.is_offset(other):
            yield from ((name, "integer") for name in flow.atoms(side))


class _ValueFlow:
    """Flow of values within one function: the parameters that an expression is computed from."""

    def __init__(self, node: Definition) -> None:
        self.node = node
        self.parameters = frozenset(parameter_names(node))
        self.assigned: dict[str, list[ast.expr]] = {}
        for item in ast.walk(node):
            for name, value in assignments(item):
                self.assigned.setdefault(name, []).append(value)
        self.names = self.parameters | self.assigned.keys()
        self.known_bases: dict[str, set[str]] = {}

    def bases(self, node: ast.expr) -> set[str]:
        """Return the parameters that an address starts from: the first operand of its sums that leads to one."""
        match node:
            case ast.Name(id=name):
                return {name} if name in self.parameters else self._bases_of(name)
            case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right):
                return self.bases(left) or self.bases(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.bases(body) | self.bases(orelse)
        inner = _same_value(node)
        return self.bases(inner) if inner else set()

    def _bases_of(self, name: str) -> set[str]:
        if name not in self.known_bases:
            self.known_bases[name] = (
                set()
            )  # set before the recursion: a variable that is computed from itself adds nothing
            self.known_bases[name] = set().union(*(self.bases(value) for value in self.assigned.get(name, ())))
        return self.known_bases[name]

    def atoms(self, node: ast.expr) -> set[str]:
        """Return the parameters that an expression computes with. Results of other functions are not followed."""
        return {name for name in self._names_below(node) if name in self.parameters}

    def _names_below(self, node: ast.expr) -> set[str]:
        seen: set[str] = set()
        pending: list[ast.expr] = [node]
        while pending:
            match pending.pop():
                case ast.Name(id=name):
                    if name not in seen and name not in self.parameters:
                        pending += self.assigned.get(name, [])
                    seen.add(name)
                case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod()) as operation:
                    pending += [operation.left, operation.right]
                case ast.Tuple(elts=elements) | ast.List(elts=elements):
                    pending += elements
                case ast.IfExp(body=body, orelse=orelse):
                    pending += [body, orelse]
                case other:
                    inner = _same_value(other)
                    pending += [inner] if inner else []
        return seen

    def is_offset(self, node: ast.expr) -> bool:
        """Return whether an expression is computed from program ids, ranges or counts of blocks."""
        seen: set[str] = set()
        pending: list[ast.expr] = [node]
        while pending:
            match pending.pop():
                case ast.Name(id=name) if name not in seen:
                    seen.add(name)
                    pending += self.assigned.get(name, [])
                case ast.BinOp(left=left, right=right):
                    pending += [left, right]
                case ast.Call(func=callee) if dotted(callee).rpartition(".")[2] in _OFFSET_CALLS:
                    return True
                case other:
                    inner = _same_value(other)
                    pending += [inner] if inner else []
        return False


def _same_value(node: ast.expr) -> ast.expr | None:
    """Return `x` for `x[:, None]`, `x.to(t)` and `gl.multiple_of(x, 8)`; None for any other expression."""
    match node:
        case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(attr="to", value=value)):
            return value
        case ast.Call(func=callee, args=[first, *_]) if dotted(callee).rpartition(".")[2] in _HINTS:
            return first
    return None


_HINTS = {"multiple_of", "max_contiguous", "max_constancy", "assume"}
