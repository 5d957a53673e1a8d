"""What the text of a kernel tells: its lines, what it reads, what its arguments are, which targets its API calls allow.

Reads text only: nothing here imports or executes a kernel.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import textwrap
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from gluonmap.model.inspection import FunctionSource, Parameter
from gluonmap.model.verdict import Location

Definition = ast.FunctionDef | ast.AsyncFunctionDef


# ---- the tree ------------------------------------------------------------------------------------------------------


def tree_hash(text: str | bytes) -> str:
    """Return 16 hex digits that change only with the code: not with comments, docstrings, blank lines or positions.

    Bytes are read as Python reads a file: by their mark or declaration of an encoding. What does not parse is hashed
    as it stands.
    """
    try:
        content = "".join(_dump(ast.parse(text))).encode("utf-8", "surrogatepass")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        content = b"text:" + (text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return hashlib.sha256(content).hexdigest()[:16]


def text_of(path: Path) -> str:
    """Return a Python file's text, decoded as Python would."""
    data = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding, errors="replace")
    except (SyntaxError, LookupError):  # an encoding that is none, or one that makes no text, such as rot13
        return data.decode("utf-8", errors="replace")


def _dump(node: object) -> Iterator[str]:
    # Not ast.dump: what it prints for empty fields differs between Python 3.12 and 3.13.
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if (value not in (None, []) and name not in ("kind", "type_comment")) or name == "value":
                yield f" {name}="
                yield from _dump(value)
        yield ")"
    elif isinstance(node, list):
        for item in node:
            if not _is_comment(item):
                yield from _dump(item)
    else:
        yield f"{type(node).__name__}:{node!r}"


def _is_comment(node: object) -> bool:
    """Whether the statement is a string that stands alone: a docstring or a comment in quotes."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@lru_cache(maxsize=512)
def definition(source: str) -> Definition | None:
    """The `def` of a function's source, or None where the text is no function. The tree is shared: do not change it."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return next((node for node in body if isinstance(node, Definition)), None)


def dotted(node: ast.AST) -> str:
    """`a.b.c` as written, or "" where the node is no such name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def bind(call: ast.Call, callee: Definition) -> dict[str, ast.expr] | None:
    """The callee's parameters -> the call's arguments; None where a `*` on either side hides which is which."""
    signature = callee.args
    names = [argument.arg for argument in (*signature.posonlyargs, *signature.args)]
    known = {*names, *(argument.arg for argument in signature.kwonlyargs)}
    if names and names[0] == "self" and isinstance(call.func, ast.Attribute):
        names = names[1:]
    if len(call.args) > len(names) or any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    if any(keyword.arg not in known for keyword in call.keywords):
        return None
    given = dict(zip(names, call.args, strict=False))
    return given | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}


def helper_of(call: ast.Call, functions: Sequence[FunctionSource], caller: int) -> tuple[int, Definition] | None:
    """The jit function that the call reaches, with its index; None where it is none that is known."""
    index = functions[caller].calls.get(dotted(call.func))
    if index is None or not 0 <= index < len(functions):
        return None
    node = definition(functions[index].source)
    return None if node is None else (index, node)


# ---- lines ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _code_lines(source: str) -> tuple[int, ...]:
    node = definition(source)
    if node is None:
        return (1,)
    lines = {node.lineno}
    pending: list[ast.AST] = [node.args, *([node.returns] if node.returns else []), *node.body]
    while pending:
        item = pending.pop()
        if not _is_comment(item):
            lines.add(getattr(item, "lineno", node.lineno))
            pending.extend(ast.iter_child_nodes(item))
    return tuple(sorted(lines))


def code_line(source: str, line: int) -> int:
    """Return the rank of a line of `source` (counted from 1) among the lines that carry code, from 0 at the `def`.

    A line without code (a comment, a closing bracket) has the rank of the code above it.
    """
    return max(bisect_right(_code_lines(source), line) - 1, 0)


def physical_line(source: str, rank: int) -> int:
    """Return the line of `source`, counted from 1, that holds the code line `rank`.

    Raises:
        IndexError: the source has fewer lines of code.
    """
    if rank < 0:
        raise IndexError(rank)
    return _code_lines(source)[rank]


@lru_cache(maxsize=256)
def find_function(file_text: str, name: str, like: str = "") -> tuple[str, int] | None:
    """Return the dedented source of a function and the line of the file that it starts on, decorators included.

    Of several with one name the one whose code is that of `like`, else the outermost, and of these the last.
    `Outer.name` is understood.
    """
    try:
        module = ast.parse(file_text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [(depth, node) for depth, path, node in _functions_below(module) if path.endswith(f".{name}")]
    if not found:
        return None
    outermost = min(depth for depth, _ in found)
    sources = [source_of(node, file_text) for _, node in found]
    alike = [source for source in sources if like and tree_hash(source[0]) == tree_hash(like)]
    return alike[0] if alike else [s for s, (depth, _) in zip(sources, found, strict=True) if depth == outermost][-1]


def source_of(node: Definition, file_text: str) -> tuple[str, int]:
    """The dedented source of a function of a file's tree, and the line that it starts on, decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = file_text.splitlines(keepends=True)[first - 1 : node.end_lineno]
    return textwrap.dedent("".join(lines)), first


def _functions_below(node: ast.AST, depth: int = 0, path: str = "") -> Iterator[tuple[int, str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition | ast.ClassDef):
            inner = f"{path}.{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield depth, inner, child
            yield from _functions_below(child, depth + 1, inner)
        elif isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from _functions_below(child, depth, path)


def absolute_line(file_text: str, location: Location, like: str = "") -> int | None:
    """Return the line of the file that `location` means today; None where the function or the line is gone.

    `like` is the function's source as it was, to tell it from others of its name.
    """
    found = find_function(file_text, location.function, like)
    if found is None:
        return None
    source, first = found
    try:
        return first + physical_line(source, location.line) - 1
    except IndexError:
        return None


def place(function: FunctionSource, node: ast.AST) -> Location:
    """Where the node of the function's tree stands."""
    return Location(function.name, function.file, code_line(function.source, getattr(node, "lineno", 1)))


def _ordered(functions: Sequence[FunctionSource], places: Iterable[Location]) -> tuple[Location, ...]:
    rank = {(function.file, function.name): index for index, function in reversed(list(enumerate(functions)))}
    return tuple(sorted(set(places), key=lambda item: (rank[item.file, item.function], item.line)))


# ---- reads ---------------------------------------------------------------------------------------------------------

_Variable = tuple[int, str]
"""A name in one of the functions."""

_Use = tuple[ast.AST, tuple[_Variable, ...]]
"""A read, and the variables that the value goes to; none: the value is used here."""


def reads(functions: Sequence[FunctionSource], parameter: str) -> tuple[Location, ...]:
    """Return where the kernel, `functions[0]`, and the helpers that it passes the value to read the parameter.

    A value that only goes to a variable or to a helper's parameter that is never read is not read. What cannot be
    followed (an unknown callee, `*args`) counts as a read.
    """
    uses: dict[_Variable, Sequence[_Use]] = {}
    pending: list[_Variable] = [(0, parameter)]
    while pending:
        variable = pending.pop()
        if variable not in uses:
            uses[variable] = _uses_of(functions, variable)
            pending.extend(target for _, targets in uses[variable] for target in targets)
    live = _live(uses)
    found: list[Location] = []
    seen: set[_Variable] = set()
    pending = [(0, parameter)]
    while pending:
        variable = pending.pop()
        if variable in seen:
            continue
        seen.add(variable)
        for node, targets in uses[variable]:
            if not targets or live.intersection(targets):
                found.append(place(functions[variable[0]], node))
                pending.extend(target for target in targets if target[0] != variable[0])
    return _ordered(functions, found)


def _live(uses: Mapping[_Variable, Sequence[_Use]]) -> set[_Variable]:
    """The variables whose value is used somewhere, directly or by way of others."""
    live: set[_Variable] = set()
    while True:
        more = {
            variable
            for variable, found in uses.items()
            if variable not in live and any(not targets or live.intersection(targets) for _, targets in found)
        }
        if not more:
            return live
        live |= more


def _uses_of(functions: Sequence[FunctionSource], variable: _Variable) -> Sequence[_Use]:
    index, name = variable
    sources = tuple(function.source for function in functions)
    return _all_uses(sources, index, tuple(functions[index].calls.items())).get(name, [])


@lru_cache(maxsize=256)
def _all_uses(sources: tuple[str, ...], index: int, calls: tuple[tuple[str, int], ...]) -> Mapping[str, list[_Use]]:
    """Every name that one of the functions reads, with its uses: one walk serves all parameters of a kernel."""
    functions = [FunctionSource("", "", 1, source, dict(calls)) for source in sources]
    node = definition(sources[index])
    found: dict[str, list[_Use]] = {}
    for statement in node.body if node else ():
        for name, targets in _uses(functions, index, statement, ()):
            found.setdefault(name.id, []).append((name, targets))
    return found


def _uses(
    functions: Sequence[FunctionSource], index: int, node: ast.AST, targets: tuple[_Variable, ...]
) -> Iterator[tuple[ast.Name, tuple[_Variable, ...]]]:
    match node:
        case ast.Name(ctx=ast.Load()):
            yield node, targets
            return
        case ast.Assign(targets=stores, value=value):
            parts = _assigned(index, stores, value)
        case ast.AnnAssign(target=store, value=ast.expr() as value, annotation=annotation):
            parts = [*_assigned(index, [store], value), (annotation, ())]
        case ast.AugAssign(target=store, value=value):
            parts = _assigned(index, [store], value)
        case ast.Call():
            parts = _passed(functions, index, node)
        case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.IfExp() | ast.Tuple() | ast.List():
            parts = [(child, targets) for child in ast.iter_child_nodes(node)]
        case ast.Attribute() | ast.Subscript() | ast.Slice():
            parts = [(child, targets) for child in ast.iter_child_nodes(node)]
        case _:
            parts = [(child, ()) for child in ast.iter_child_nodes(node)]
    for child, going_to in parts:
        yield from _uses(functions, index, child, going_to)


def _assigned(index: int, stores: list[ast.expr], value: ast.expr) -> list[tuple[ast.AST, tuple[_Variable, ...]]]:
    """The parts of an assignment that are read, with the variables each goes to."""
    pairs = _elements(stores[0], value)
    if pairs and len(stores) == 1:
        return [part for store, item in pairs for part in _assigned(index, [store], item)]
    leaves = [leaf for store in stores for leaf in _unpacked(store)]
    variables = tuple((index, leaf.id) for leaf in leaves if isinstance(leaf, ast.Name))
    if len(variables) == len(leaves):
        return [(value, variables)]
    return [(value, ()), *((store, ()) for store in stores)]


def _elements(store: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`a, b = x, y` as pairs of a target and its value; other assignments have none."""
    if isinstance(store, ast.Tuple) and isinstance(value, ast.Tuple) and len(store.elts) == len(value.elts):
        return list(zip(store.elts, value.elts, strict=True))
    return []


def _unpacked(store: ast.expr) -> Iterator[ast.expr]:
    if isinstance(store, (ast.Tuple, ast.List)):
        for item in store.elts:
            yield from _unpacked(item)
    else:
        yield store.value if isinstance(store, ast.Starred) else store


def _passed(
    functions: Sequence[FunctionSource], index: int, call: ast.Call
) -> list[tuple[ast.AST, tuple[_Variable, ...]]]:
    """The arguments of a call, each with the helper's parameter that it goes to."""
    helper = helper_of(call, functions, index)
    bound = bind(call, helper[1]) if helper else None
    if helper is None or bound is None:
        return [(child, ()) for child in ast.iter_child_nodes(call)]
    parts: list[tuple[ast.AST, tuple[_Variable, ...]]] = [(call.func, ())]
    return [*parts, *((value, ((helper[0], name),)) for name, value in bound.items())]


# ---- kinds of arguments --------------------------------------------------------------------------------------------

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


def argument_kinds(functions: Sequence[FunctionSource], parameters: Sequence[Parameter]) -> dict[str, str | None]:
    """Return "pointer", "integer" or "descriptor" for each run-time parameter of the kernel, None where none shows.

    An annotation that tells wins, then the parameter's use (in helpers too), then its name.
    """
    used = _Kinds(functions).of(0)
    return {item.name: _kind(item, used.get(item.name, set())) for item in parameters if not item.constexpr}


def _kind(parameter: Parameter, used: set[str]) -> str | None:
    for told, pattern in _ANNOTATIONS:
        if pattern.search(parameter.annotation):
            return told
    for kind in ("descriptor", "pointer", "integer"):
        if kind in used:
            return kind
    return next((kind for kind, pattern in _NAMES if pattern.search(parameter.name)), None)


class _Kinds:
    """What the uses of each function's parameters show."""

    def __init__(self, functions: Sequence[FunctionSource]) -> None:
        self.functions = functions
        self.known: dict[int, dict[str, set[str]]] = {}

    def of(self, index: int) -> dict[str, set[str]]:
        if index not in self.known:
            node = definition(self.functions[index].source)
            found: dict[str, set[str]] = {name: set() for name in (_parameter_names(node) if node else ())}
            self.known[index] = found  # a helper that calls itself learns nothing from that call
            if node:
                self._collect(index, _Flow(node), found)
        return self.known[index]

    def _collect(self, index: int, flow: _Flow, found: dict[str, set[str]]) -> None:
        for node in ast.walk(flow.node):
            for name, kind in self._evidence(index, flow, node):
                if name in found:
                    found[name].add(kind)

    def _evidence(self, index: int, flow: _Flow, node: ast.AST) -> Iterator[tuple[str, str]]:
        match node:
            case ast.Call():
                helper = helper_of(node, self.functions, index)
                bound = bind(node, helper[1]) if helper else None
                if helper and bound is not None:
                    yield from self._helped(flow, self.of(helper[0]), bound)
                elif helper is None:
                    yield from _called(flow, node)
            case ast.Attribute(attr="element_ty", value=ast.Attribute(attr="type" | "dtype", value=ast.Name(id=name))):
                yield name, "pointer"
            case ast.Attribute(attr=attribute, value=ast.Name(id=name)) if attribute in _DESCRIPTOR_ATTRIBUTES:
                yield name, "descriptor"
            case ast.BinOp(op=ast.Mod() | ast.FloorDiv()):
                yield from ((name, "integer") for name in flow.atoms(node))
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                yield from _beside_offsets(flow, left, right)
            case ast.Compare(left=left, comparators=[right]):
                yield from _beside_offsets(flow, left, right)

    @staticmethod
    def _helped(flow: _Flow, used: Mapping[str, set[str]], bound: Mapping[str, ast.expr]) -> Iterator[tuple[str, str]]:
        for parameter, value in bound.items():
            kinds = used.get(parameter, set())
            if "pointer" in kinds:
                yield from _pointed(flow, value)
            elif "descriptor" in kinds:
                yield from ((name, "descriptor") for name in flow.bases(value))
            elif "integer" in kinds:
                yield from ((name, "integer") for name in flow.atoms(value))


def _parameter_names(node: Definition) -> list[str]:
    return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def _called(flow: _Flow, call: ast.Call) -> Iterator[tuple[str, str]]:
    """What the arguments of a call of the language show."""
    name = dotted(call.func)
    root, _, last = name.rpartition(".")
    if root in flow.names:
        if last in _DESCRIPTOR_METHODS and root in flow.parameters:
            yield root, "descriptor"
        return
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    for operand in _pointer_operands(last, call, keywords):
        yield from _pointed(flow, operand)
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


def _pointed(flow: _Flow, address: ast.expr) -> Iterator[tuple[str, str]]:
    """The parameter that an address starts from is a pointer, the others in it are integers."""
    bases = flow.bases(address)
    yield from ((name, "pointer") for name in bases)
    yield from ((name, "integer") for name in flow.atoms(address) - bases)


def _beside_offsets(flow: _Flow, left: ast.expr, right: ast.expr) -> Iterator[tuple[str, str]]:
    for side, other in ((left, right), (right, left)):
        if flow.is_offset(other):
            yield from ((name, "integer") for name in flow.atoms(side))


class _Flow:
    """How values move within one function: which parameters an expression is made of."""

    def __init__(self, node: Definition) -> None:
        self.node = node
        self.parameters = frozenset(_parameter_names(node))
        self.assigned: dict[str, list[ast.expr]] = {}
        for item in ast.walk(node):
            for name, value in _stores(item):
                self.assigned.setdefault(name, []).append(value)
        self.names = self.parameters | self.assigned.keys()
        self.known_bases: dict[str, set[str]] = {}

    def bases(self, node: ast.expr) -> set[str]:
        """The parameters that an address starts from: the first operand of its sums that leads to one."""
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
            self.known_bases[name] = set()  # a variable that is made from itself adds nothing
            self.known_bases[name] = set().union(*(self.bases(value) for value in self.assigned.get(name, ())))
        return self.known_bases[name]

    def atoms(self, node: ast.expr) -> set[str]:
        """The parameters that an expression computes with; what other functions return is not followed."""
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
        """Whether an expression is made from program ids, ranges or counts of blocks."""
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
    """`x` of `x[:, None]`, `x.to(t)` and `gl.multiple_of(x, 8)`."""
    match node:
        case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(attr="to", value=value)):
            return value
        case ast.Call(func=callee, args=[first, *_]) if dotted(callee).rpartition(".")[2] in _HINTS:
            return first
    return None


_HINTS = {"multiple_of", "max_contiguous", "max_constancy", "assume"}


def _stores(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The variables that a statement sets, with the expression each is made from."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _paired(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield from _paired(target, value)
        case ast.For(target=target, iter=value):
            yield from _paired(target, value)


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    pairs = _elements(target, value)
    for left, right in pairs:
        yield from _paired(left, right)
    if not pairs:
        yield from ((leaf.id, value) for leaf in _unpacked(target) if isinstance(leaf, ast.Name))


# ---- targets -------------------------------------------------------------------------------------------------------

TARGETS = ("gfx942", "gfx950", "gfx1250", "sm_90", "sm_100")

_FAMILIES = {"cdna3", "cdna4", "cdna5", "gfx1250", "rdna3", "rdna4", "ampere", "hopper", "blackwell", "rubin"}
_LAYOUTS = {"AMDMFMALayout", "AMDWMMALayout", "NVMMADistributedLayout"}

_CDNA = "gfx942 gfx950"
_AMD = "gfx942 gfx950 gfx1250"
_NVIDIA = "sm_90 sm_100"

# The names are those of triton/experimental/gluon/language in 3.6.0 and 3.9.0; the targets are those that small kernels
# compiled for (3.9.0; operations on shared memory also 3.6.0). A family's name alone says little: buffer_load is one
# function in cdna3, cdna4 and gfx1250, and the plain async_copy functions compile everywhere. The first match counts.
_RUNS_ON: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = tuple(
    (re.compile(pattern), frozenset(targets.split()))
    for pattern, targets in (
        (r"AMDMFMALayout$", _CDNA),
        (r"AMDWMMALayout$", "gfx1250"),
        (r"NVMMADistributedLayout$", _NVIDIA),
        (r"\w+\.async_copy\.(global_load_to_shared|load_shared_relaxed|global_to_shared)$", " ".join(TARGETS)),
        (r"\w+\.async_copy\.(async_load|async_copy_global_to_shared|(commit|wait)_group)$", " ".join(TARGETS)),
        (r"(cdna\d|gfx1250)\.buffer_(load|store|atomic_\w+)$", _AMD),
        (r"cdna4\.(mfma|scaled_upcast|async_copy\.buffer_load_to_shared)$", _CDNA),
        (r"cdna3\.", _CDNA),
        (r"cdna4\.", "gfx950"),
        (r"(cdna5|gfx1250)\.", "gfx1250"),
        (r"(rdna\d|rubin)\.", ""),
        (r"amd\.", _AMD),
        (r"hopper\.warpgroup_mma", "sm_90"),
        (r"(ampere|hopper)\.", _NVIDIA),
        (r"blackwell\.tma\.async_(gather|scatter)$", "sm_100"),
        (r"blackwell\.(mbarrier|tma|cluster)\.|blackwell\.(mma_v2|fence_async_shared|async_store)$", _NVIDIA),
        (r"blackwell\.", "sm_100"),
    )
)


class ApiUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """One use of an API that belongs to some targets only."""

    api: str
    """From the family on: "cdna4.mfma_scaled", "hopper.tma.async_load", "AMDMFMALayout"."""
    location: Location
    conditional: bool = False
    """It stands under an `if` that the compiler may decide, so that no target can be excluded for it."""


def target_apis(functions: Sequence[FunctionSource], file_texts: Mapping[str, str]) -> tuple[ApiUse, ...]:
    """Return every use of a target's own Gluon API in the kernel and its helpers, in the order of the source.

    `file_texts` (file -> its text) resolves names that the files import.
    """
    always = _always_reached(functions)
    found: dict[tuple[str, Location], bool] = {}
    for index, function in enumerate(functions):
        node = definition(function.source)
        if node is None:
            continue
        imports = _imports(file_texts.get(function.file, ""))
        for item, conditional in _with_conditions(node):
            api = _api(dotted(item), imports)
            if api:
                key = (api, place(function, item))
                found[key] = found.get(key, True) and (conditional or index not in always)
    return tuple(ApiUse(api, location, conditional) for (api, location), conditional in found.items())


def allowed_targets(apis: Sequence[ApiUse]) -> dict[str, ApiUse]:
    """Return the targets that the kernel cannot be compiled for, each with the first use that excludes it."""
    excluded: dict[str, ApiUse] = {}
    for use in apis:
        runs_on = next((targets for pattern, targets in _RUNS_ON if pattern.match(use.api)), frozenset(TARGETS))
        if not use.conditional:
            for target in TARGETS:
                if target not in runs_on:
                    excluded.setdefault(target, use)
    return {target: excluded[target] for target in TARGETS if target in excluded}


def _api(name: str, imports: Mapping[str, str]) -> str:
    """The target's own API that a dotted name means, from its family on; "" for everything else."""
    root, _, rest = name.partition(".")
    parts = f"{imports.get(root, root)}.{rest}".rstrip(".").split(".")
    if parts[-1] in _LAYOUTS:
        return parts[-1]
    vendors = [position for position, part in enumerate(parts) if part in ("amd", "nvidia")]
    start = vendors[-1] + 1 if vendors else 0
    if start < len(parts) - 1 and parts[start] in _FAMILIES:
        return ".".join(parts[start:])
    is_own = vendors and parts[start - 1] == "amd" and len(parts) > start and "language" in parts
    return ".".join(parts[start - 1 :]) if is_own else ""


@lru_cache(maxsize=64)
def _imports(text: str) -> Mapping[str, str]:
    """The names that a file's imports and plain assignments of dotted names bind -> the full dotted name."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    bound: dict[str, str] = {}
    for node in ast.walk(module):
        match node:
            case ast.ImportFrom(module=str(origin), names=aliases):
                bound |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in aliases}
            case ast.Import(names=aliases):
                bound |= {alias.asname: alias.name for alias in aliases if alias.asname}
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value):
                root, _, rest = dotted(value).partition(".")
                if root in bound:
                    bound[name] = f"{bound[root]}.{rest}"
    return bound


def _always_reached(functions: Sequence[FunctionSource]) -> set[int]:
    """The functions that the kernel reaches by a way without conditions that the compiler may decide."""
    reached: set[int] = set()
    pending = [0]
    while pending:
        index = pending.pop()
        node = definition(functions[index].source) if 0 <= index < len(functions) else None
        if node is None or index in reached:
            continue
        reached.add(index)
        calls = functions[index].calls
        pending += [
            calls[dotted(item)]
            for item, conditional in _with_conditions(node)
            if not conditional and dotted(item) in calls
        ]
    return reached


def _with_conditions(node: Definition) -> Iterator[tuple[ast.expr, bool]]:
    """The longest dotted names that a function's body reads, and whether the compiler may leave each out."""
    known = _run_time_names(node)
    pending: list[tuple[ast.AST, bool]] = [(statement, False) for statement in reversed(node.body)]
    while pending:
        item, conditional = pending.pop()
        if isinstance(item, ast.expr) and dotted(item):
            yield item, conditional
            continue
        children = [(child, conditional) for child in ast.iter_child_nodes(item)]
        if isinstance(item, (ast.If, ast.IfExp)) and not _is_run_time(item.test, known):
            children = [(child, conditional or child is not item.test) for child, _ in children]
        pending.extend(reversed(children))


_RUN_TIME_CALLS = {"program_id", "num_programs", "arange", "load", "buffer_load", "zeros", "full"}


def _run_time_names(node: Definition) -> set[str]:
    """The variables that hold values of the running kernel, made from program ids and loads."""
    stores = [(name, value) for item in ast.walk(node) for name, value in _stores(item)]
    found: set[str] = set()
    while True:
        more = {name for name, value in stores if name not in found and _is_run_time(value, found)}
        if not more:
            return found
        found |= more


def _is_run_time(value: ast.expr, known: set[str]) -> bool:
    match value:
        case ast.Name(id=name):
            return name in known
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return _is_run_time(left, known) or _is_run_time(right, known)
        case ast.BoolOp(values=parts):
            return all(_is_run_time(part, known) for part in parts)
        case ast.UnaryOp(operand=operand):
            return _is_run_time(operand, known)
        case ast.Call(args=arguments):
            last = dotted(value.func).rpartition(".")[2]
            return last in _RUN_TIME_CALLS or any(_is_run_time(argument, known) for argument in arguments)
    return False
