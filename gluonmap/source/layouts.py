"""What layouts written as literals, and static assertions, demand of a configuration.

The kernel is read as text, statement by statement, as the compiler would: constexpr variables are followed, helpers are
entered with the arguments they get, and a layout counts where it is used. What does not resolve demands nothing.
"""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from gluonmap.constraints import expressions
from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import FunctionSource, LiteralRule, Parameter
from gluonmap.model.verdict import Location
from gluonmap.source.code_lines import place
from gluonmap.source.run_time_values import RUN_TIME_CALLS
from gluonmap.source.syntax import bind, definition, dotted, helper_of

NUM_WARPS = "num_warps"

_LARGEST = 200
"""Nodes of an expression above which it counts as unknown."""

_LONGEST = 80
"""Characters of an expression that a rule's text shows."""


class Opaque(Enum):
    """A value that is no expression over the configuration."""

    UNKNOWN = "the compiler may know it"
    RUN_TIME = "only the running kernel knows it"


@dataclass(frozen=True)
class Demand:
    """A rule before it is known under which conditions the compiler meets it."""

    text: str
    rule: ast.expr
    location: Location
    guards: tuple[ast.expr, ...] = ()
    knobs: tuple[str, ...] = ()
    """Knobs that the rule is about without reading them."""


@dataclass(frozen=True)
class Layout:
    """A layout value: what it demands wherever it is used."""

    demands: tuple[Demand, ...]


Symbol = ast.expr | tuple["Symbol", ...] | Layout | Opaque
"""What is known of a value: an expression over the configuration, a list of values, a layout, or nothing."""


@dataclass
class Scope:
    """What holds at one place of a function."""

    index: int
    values: dict[str, Symbol]
    guards: tuple[ast.expr, ...] = ()
    reached: bool = True
    """Whether the conditions up to here are all known, so that a rule can be stated."""

    def under(self, guard: Symbol) -> Scope:
        """The scope inside a branch that is taken where `guard` is true."""
        if guard is Opaque.RUN_TIME:
            return replace(self, values=dict(self.values))  # both branches are compiled
        if not isinstance(guard, ast.expr):
            return replace(self, values=dict(self.values), reached=False)
        return replace(self, values=dict(self.values), guards=_joined(self.guards, (guard,)))


def literal_rules(
    functions: Sequence[FunctionSource], parameters: Sequence[Parameter], warp_size: int
) -> tuple[LiteralRule, ...]:
    """Return what the kernel `functions[0]` and its helpers demand of a configuration by literals in their source.

    `num_warps` in a rule is the kernel's parameter of that name or else the launch option. Parameters that a
    heuristic computes are no part of a configuration: what depends on them is left out.
    """
    node = definition(functions[0].source) if functions else None
    if node is None:
        return ()
    values: dict[str, Symbol] = {
        item.name: ast.Name(item.name, ast.Load()) if item.constexpr and not item.heuristic else Opaque.UNKNOWN
        for item in parameters
    }
    reader = _Reader(functions, warp_size)
    reader.block(node.body, Scope(0, values))
    order = {item.name: position for position, item in enumerate(parameters)}
    found = sorted(_needed(reader.demands), key=lambda item: (_file_order(functions, item.location), item.text))
    return tuple(rule for demand in found for rule in _stated(demand, order))


def _file_order(functions: Sequence[FunctionSource], location: Location) -> tuple[int, int]:
    names = [(function.file, function.name) for function in functions]
    return names.index((location.file, location.function)), location.line


def _needed(demands: Iterable[Demand]) -> Iterator[Demand]:
    """Each demand once: without contradictory conditions, and without more conditions than it has elsewhere."""
    found: dict[tuple[str, Location, str], dict[frozenset[str], Demand]] = {}
    for item in demands:
        guards = frozenset(_key(guard) for guard in item.guards)
        if not guards.intersection(_key(_negated(guard)) for guard in item.guards):
            found.setdefault((item.text, item.location, _key(item.rule)), {}).setdefault(guards, item)
    for variants in found.values():
        yield from (item for guards, item in variants.items() if not any(other < guards for other in variants))


def _stated(demand: Demand, order: Mapping[str, int]) -> Iterator[LiteralRule]:
    text, rule = demand.text, demand.rule
    if demand.guards:
        guard = demand.guards[0] if len(demand.guards) == 1 else ast.BoolOp(ast.And(), list(demand.guards))
        text = f"{text} (if {_brief(ast.unparse(guard))})"
        if not _is_true(rule):
            rule = ast.BoolOp(ast.Or(), [_inverse(guard), rule])
    names = expressions.names_in(ast.unparse(rule))
    if names == {NUM_WARPS} and not _can_fail(rule):
        return
    yield LiteralRule(
        text=text,
        expression=ast.unparse(rule),
        knobs=tuple(sorted({*names, *demand.knobs}, key=lambda name: (order.get(name, len(order)), name))),
        location=demand.location,
    )


def _brief(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


# ---- reading statements --------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    """Walks the kernel and the helpers it calls, and collects what they demand."""

    functions: Sequence[FunctionSource]
    warp_size: int
    demands: list[Demand] = field(default_factory=list)
    entered: set[str] = field(default_factory=set)
    callers: list[int] = field(default_factory=list)

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> bool:
        """Read statements in order; whether the function surely ends in them."""
        return any(self.statement(statement, scope) for statement in statements)

    def statement(self, node: ast.stmt, scope: Scope) -> bool:
        match node:
            case ast.Assign(targets=targets, value=value):
                symbol = self.value(value, scope)
                for target in targets:
                    _store(scope, target, symbol)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                _store(scope, target, self.value(value, scope))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                _store(scope, node.target, self.value(ast.BinOp(ast.Name(name, ast.Load()), op, value), scope))
            case ast.If():
                return self.branch(node, scope)
            case ast.For() | ast.While():
                self.loop(node, scope)
            case ast.With(items=items, body=body):
                for item in items:
                    self.use(item.context_expr, scope)
                return self.block(body, scope)
            case ast.Return(value=value):
                if value is not None:
                    self.use(value, scope)
                return True
            case ast.FunctionDef() | ast.ClassDef():
                pass
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.use(child, scope)
        return False

    def branch(self, node: ast.If, scope: Scope) -> bool:
        test = self.value(node.test, scope)
        chosen = _constant(test)
        if chosen is not None:
            return self.block(node.body if chosen.value else node.orelse, scope)
        taken, other = scope.under(test), scope.under(_negated(test))
        taken_ends, other_ends = self.block(node.body, taken), self.block(node.orelse, other)
        if taken_ends and other_ends:
            return True
        if test is Opaque.RUN_TIME or not (taken_ends or other_ends):
            scope.values = _merged(test, taken.values, other.values)
        else:
            left = other if taken_ends else taken
            scope.values, scope.guards, scope.reached = left.values, left.guards, left.reached
        return False

    def loop(self, node: ast.For | ast.While, scope: Scope) -> None:
        carried = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
        unrolled = isinstance(node, ast.For) and dotted(_callee(node.iter)).rpartition(".")[2] != "range"
        changing = Opaque.UNKNOWN if unrolled else Opaque.RUN_TIME
        self.use(node.iter if isinstance(node, ast.For) else node.test, scope)
        inside = scope.under(self.turns(node, scope) if unrolled else Opaque.RUN_TIME)
        for name in carried:
            inside.values[name] = changing
        self.block([*node.body, *node.orelse], inside)
        scope.values.update(dict.fromkeys(carried, changing))

    def turns(self, node: ast.For | ast.While, scope: Scope) -> Symbol:
        """The condition under which an unrolled loop has any turn."""
        match node:
            case ast.For(iter=ast.Call(args=[count], keywords=[])):
                return _made([self.value(count, scope)], lambda parts: _compare(parts[0], ast.Gt(), 0))
        return Opaque.UNKNOWN

    # ---- reading expressions ---------------------------------------------------------------------------------------

    def use(self, node: ast.expr, scope: Scope) -> None:
        """Read an expression whose value the compiler puts to work: layouts in it count."""
        self.meet(self.value(node, scope), scope)

    def meet(self, symbol: Symbol, scope: Scope) -> None:
        if isinstance(symbol, tuple):
            for item in symbol:
                self.meet(item, scope)
        if isinstance(symbol, Layout) and scope.reached:
            for demand in symbol.demands:
                self.demands.append(replace(demand, guards=_joined(demand.guards, scope.guards)))

    def value(self, node: ast.expr, scope: Scope) -> Symbol:
        """What an expression stands for; what its calls demand is collected on the way."""
        match node:
            case ast.Constant(value=int() | float() | str() | None as constant):
                return _literal(constant)
            case ast.Name(id=name) if name in scope.values:
                return scope.values[name]
            case ast.Name() | ast.Attribute() if dotted(node) in self.functions[scope.index].constants:
                return _stored_constant(self.functions[scope.index].constants[dotted(node)])
            case ast.Attribute(value=value, attr=attribute):
                base = self.value(value, scope)
                self.meet(base, scope)
                return base if attribute == "value" and isinstance(base, (ast.expr, tuple)) else Opaque.UNKNOWN
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return tuple(self.value(element, scope) for element in elements)
            case ast.UnaryOp(op=ast.Not() | ast.USub() as op, operand=operand):
                return _made([self.value(operand, scope)], lambda parts: ast.UnaryOp(op, parts[0]))
            case ast.BinOp(left=left, op=op, right=right):
                return _binary(self.value(left, scope), op, self.value(right, scope))
            case ast.BoolOp(op=logic, values=values):
                parts = [self.value(value, scope) for value in values]
                return _logic(logic, parts)
            case ast.Compare(left=left, ops=ops, comparators=rest):
                return _comparison([self.value(part, scope) for part in (left, *rest)], ops)
            case ast.IfExp():
                return self.choice(node, scope)
            case ast.Subscript(value=value, slice=index):
                return _element(self.value(value, scope), self.value(index, scope))
            case ast.Call():
                return self.call(node, scope)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.use(child, scope)
        return Opaque.UNKNOWN

    def choice(self, node: ast.IfExp, scope: Scope) -> Symbol:
        test = self.value(node.test, scope)
        chosen = _constant(test)
        if chosen is not None:
            return self.value(node.body if chosen.value else node.orelse, scope)
        taken = self.value(node.body, scope.under(test))
        other = self.value(node.orelse, scope.under(_negated(test)))
        return _either(test, taken, other)

    def call(self, node: ast.Call, scope: Scope) -> Symbol:
        name = dotted(node.func).rpartition(".")[2]
        helper = helper_of(node, self.functions, scope.index)
        if helper is not None:
            return self.enter(node, *helper, scope)
        if name in _SIGNATURES:
            return self.layout(node, name, scope)
        if name == "static_assert" and node.args:
            self.asserted(node, scope)
            return Opaque.UNKNOWN
        arguments = [self.value(argument, scope) for argument in node.args]
        if name == "constexpr" and len(arguments) == 1:
            return arguments[0]
        if name == NUM_WARPS and not arguments:
            return ast.Name(NUM_WARPS, ast.Load())
        if not node.keywords and _is_function(node.func):
            return _function(name, arguments)
        arguments += [self.value(keyword.value, scope) for keyword in node.keywords]
        if isinstance(node.func, ast.Attribute):
            arguments.append(self.value(node.func.value, scope))
        if name in _LAYOUT_OF_LAYOUTS:
            return Layout(tuple(item for part in arguments if isinstance(part, Layout) for item in part.demands))
        for argument in arguments:
            self.meet(argument, scope)
        return Opaque.RUN_TIME if name in RUN_TIME_CALLS else _opaque(arguments)

    def enter(self, node: ast.Call, index: int, callee: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Symbol:
        """Read a helper with the arguments of this call."""
        bound = bind(node, callee)
        if bound is None:
            for part in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self.use(part, scope)
            return Opaque.UNKNOWN
        given = {name: self.value(argument, scope) for name, argument in bound.items()}
        values: dict[str, Symbol] = dict.fromkeys(_parameters(callee), Opaque.UNKNOWN)
        inside = Scope(index, values | self.defaults(index, callee) | given, scope.guards)
        key = f"{index} {_key(inside.values)} {_key(inside.guards)}"
        if scope.reached and index not in self.callers and key not in self.entered:
            self.entered.add(key)
            self.callers.append(index)
            self.block(callee.body, inside)
            self.callers.pop()
        return _opaque(list(given.values()))

    def defaults(self, index: int, callee: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Symbol]:
        scope = Scope(index, {})
        signature = callee.args
        positional = [*signature.posonlyargs, *signature.args]
        pairs = [
            *zip(reversed(positional), reversed(signature.defaults), strict=False),
            *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
        ]
        return {argument.arg: self.value(default, scope) for argument, default in pairs if default is not None}

    # ---- what calls demand -----------------------------------------------------------------------------------------

    def asserted(self, node: ast.Call, scope: Scope) -> None:
        condition = self.value(node.args[0], scope)
        if not scope.reached or not isinstance(condition, ast.expr) or _is_true(condition):
            return
        text = f"static_assert({_brief(ast.unparse(condition))})"
        message = _constant(self.value(node.args[1], scope)) if len(node.args) > 1 else None
        if message and isinstance(message.value, str):
            text += f": {message.value}"
        location = place(self.functions[scope.index], node)
        self.demands.append(Demand(text, condition, location, scope.guards))

    def layout(self, node: ast.Call, name: str, scope: Scope) -> Layout:
        names = _SIGNATURES[name]
        written = {key: part for key, part in zip(names, node.args, strict=False) if key}
        written |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        known = {key: self.value(part, scope) for key, part in written.items()}
        if not scope.reached:
            return Layout(())

        def at(key: str) -> Location:
            return place(self.functions[scope.index], written.get(key, node))

        if name == "AMDWMMALayout":
            _name_third_argument(known, written)
        found = itertools.chain(
            _linear(known, at, place(self.functions[scope.index], node)) if name == "DistributedLinearLayout" else (),
            _warps(known, at),
            _lanes(known, at, self.warp_size),
            _instruction(known, at) if name in ("AMDMFMALayout", "AMDWMMALayout") else (),
        )
        return Layout(tuple(replace(demand, guards=scope.guards) for demand in found))


# ---- demands of a layout -------------------------------------------------------------------------------------------

_SIGNATURES = {
    "AMDMFMALayout": ("version", "instr_shape", "transposed", "warps_per_cta"),
    "AMDWMMALayout": ("version", "transposed", "third"),
    "BlockedLayout": ("size_per_thread", "threads_per_warp", "warps_per_cta", "order"),
    "DistributedLinearLayout": ("reg_bases", "lane_bases", "warp_bases", "block_bases", "shape"),
    "NVMMADistributedLayout": ("version", "warps_per_cta", "instr_shape"),
}
_LAYOUT_OF_LAYOUTS = {"SliceLayout", "DotOperandLayout"}

_At = Any
"""Name of an argument -> where it is written."""


def _name_third_argument(known: dict[str, Symbol], written: dict[str, ast.expr]) -> None:
    """AMDWMMALayout takes `warps_per_cta` third in 3.6.0 and `warp_bases`, a list of lists, in 3.9.0."""
    if "third" in known:
        third = known.pop("third")
        nested = isinstance(third, tuple) and all(isinstance(item, tuple) for item in third)
        key = "warp_bases" if nested else "warps_per_cta"
        known[key], written[key] = third, written.pop("third")


def _linear(known: Mapping[str, Symbol], at: _At, call: Location) -> Iterator[Demand]:
    shape = known.get("shape")
    groups = ("reg_bases", "lane_bases", "warp_bases", "block_bases")
    bases = {key: _numbers(known.get(key)) for key in groups}
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
        text = _brief(ast.unparse(extent))
        if largest > 0:
            yield from _demand(
                f"basis {largest} needs {text} > {largest}", _compare(extent, ast.Gt(), largest), at(group)
            )
        if len(written) == len(groups):
            covered = 1 << _rank(itertools.chain(*written.values()))
            yield from _demand(
                f"the bases span {covered}, so {text} = {covered}", _compare(extent, ast.Eq(), covered), call
            )


def _warps(known: Mapping[str, Symbol], at: _At) -> Iterator[Demand]:
    warps = ast.Name(NUM_WARPS, ast.Load())
    bases = known.get("warp_bases")
    if isinstance(bases, tuple):
        count, meant = len(bases), 1 << len(bases)
        text = f"{count} warp {'basis means' if count == 1 else 'bases mean'} num_warps = {meant}"
        yield Demand(text, _compare(warps, ast.Eq(), meant), at("warp_bases"))
    product = _product(known.get("warps_per_cta"))
    if isinstance(product, ast.expr):
        rule = ast.Compare(warps, [ast.Eq()], [product])
        if _can_fail(rule):
            shown = f"warps_per_cta {_shown(known['warps_per_cta'])}"
            number = isinstance(product, ast.Constant)
            text = (
                f"{shown} means num_warps = {ast.unparse(product)}" if number else f"{shown} must give num_warps warps"
            )
            yield Demand(text, rule, at("warps_per_cta"))


def _lanes(known: Mapping[str, Symbol], at: _At, warp_size: int) -> Iterator[Demand]:
    bases = known.get("lane_bases")
    if isinstance(bases, tuple) and 1 << len(bases) != warp_size:
        text = f"{len(bases)} lane bases mean warps of {1 << len(bases)} lanes, the target has {warp_size}"
        yield Demand(text, ast.Constant(False), at("lane_bases"))
    threads = known.get("threads_per_warp")
    product = _product(threads)
    if threads is not None and isinstance(product, ast.expr):
        rule = _compare(product, ast.Eq(), warp_size)
        if _can_fail(rule):
            lanes = _brief(ast.unparse(product))
            text = f"threads_per_warp {_shown(threads)} means warps of {lanes} lanes, the target has {warp_size}"
            yield Demand(text, _folded(rule) or rule, at("threads_per_warp"))


def _instruction(known: Mapping[str, Symbol], at: _At) -> Iterator[Demand]:
    shape = known.get("instr_shape")
    if isinstance(shape, tuple) and shape and all(_constant(part) for part in shape):
        text = f"instr_shape {_shown(shape)} is a literal: matrix_instr_nonkdim is not used"
        yield Demand(text, ast.Constant(True), at("instr_shape"), knobs=("matrix_instr_nonkdim",))


def _demand(text: str, rule: ast.expr, location: Location) -> Iterator[Demand]:
    folded = _folded(rule) or rule
    if not _is_true(folded):
        yield Demand(text, folded, location)


def _numbers(symbol: Symbol | None) -> list[list[int]] | None:
    """Bases written as lists of plain whole numbers."""
    if not isinstance(symbol, tuple):
        return None
    found = [[_whole(part) for part in basis] for basis in symbol if isinstance(basis, tuple)]
    if len(found) != len(symbol) or any(part is None for basis in found for part in basis):
        return None
    return [[part for part in basis if part is not None] for basis in found]


def _rank(numbers: Iterable[int]) -> int:
    """How many independent bits the numbers span under exclusive or."""
    pivots: list[int] = []
    for number in numbers:
        for pivot in pivots:
            number = min(number, number ^ pivot)
        if number:
            pivots.append(number)
    return len(pivots)


def _product(symbol: Symbol | None) -> Symbol:
    if not isinstance(symbol, tuple) or not symbol:
        return Opaque.UNKNOWN
    factors = [part for part in symbol if _whole(part) != 1] or [ast.Constant(1)]
    product = factors[0]
    for factor in factors[1:]:
        product = _binary(product, ast.Mult(), factor)
    return product


def _shown(symbol: Symbol) -> str:
    if isinstance(symbol, tuple):
        return f"[{', '.join(_shown(part) for part in symbol)}]"
    return _brief(ast.unparse(symbol)) if isinstance(symbol, ast.expr) else "?"


def _can_fail(rule: ast.expr) -> bool:
    """Whether some usual configuration breaks the rule. Many names: yes, without trying."""
    text = ast.unparse(rule)
    names = sorted(expressions.names_in(text))
    if len(names) > 3:
        return True
    for values in itertools.product((1, 2, 4, 8, 16, 32, 64), repeat=len(names)):
        try:
            if not expressions.evaluate(text, dict(zip(names, values, strict=True))):
                return True
        except UsageError:
            continue
    return False


# ---- symbols -------------------------------------------------------------------------------------------------------


def _callee(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def _key(value: object) -> str:
    """Equal for equal symbols."""
    if isinstance(value, ast.AST):
        return ast.unparse(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_key(item)}' for name, item in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(_key(item) for item in value)})"
    if isinstance(value, Layout):
        return _key(tuple(f"{item.text} {item.location} {_key(item.guards)}" for item in value.demands))
    return repr(value)


def _joined(first: tuple[ast.expr, ...], second: tuple[ast.expr, ...]) -> tuple[ast.expr, ...]:
    return tuple({_key(guard): guard for guard in (*first, *second)}.values())


def _store(scope: Scope, target: ast.expr, symbol: Symbol) -> None:
    match target:
        case ast.Name(id=name):
            scope.values[name] = symbol
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            known = symbol if isinstance(symbol, tuple) and len(symbol) == len(elements) else None
            rest = Opaque.RUN_TIME if symbol is Opaque.RUN_TIME else Opaque.UNKNOWN
            for position, element in enumerate(elements):
                _store(scope, element, known[position] if known else rest)


def _literal(value: Value) -> ast.expr:
    if isinstance(value, (int, float)) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))  # Constant(-1) ** 2 would be printed as -1 ** 2
    return ast.Constant(value)


def _stored_constant(value: Value) -> Symbol:
    if isinstance(value, str) and value.startswith("["):
        try:
            return _listed(json.loads(value))
        except ValueError:
            pass
    return _literal(value)


def _listed(value: Any) -> Symbol:
    if isinstance(value, list):
        return tuple(_listed(item) for item in value)
    return _literal(value) if isinstance(value, (int, float, str)) or value is None else Opaque.UNKNOWN


def _constant(symbol: Symbol) -> ast.Constant | None:
    return symbol if isinstance(symbol, ast.Constant) else None


def _is_true(symbol: Symbol) -> bool:
    return isinstance(symbol, ast.Constant) and bool(symbol.value)


def _whole(symbol: Symbol) -> int | None:
    return symbol.value if isinstance(symbol, ast.Constant) and isinstance(symbol.value, int) else None


def _opaque(parts: Iterable[Symbol]) -> Opaque:
    """What is made from these parts, where it is no expression."""
    flat = [item for part in parts for item in (part if isinstance(part, tuple) else (part,))]
    return Opaque.RUN_TIME if Opaque.RUN_TIME in flat else Opaque.UNKNOWN


def _scalars(parts: Sequence[Symbol]) -> list[ast.expr] | None:
    found = [part for part in parts if isinstance(part, ast.expr)]
    return found if len(found) == len(parts) else None


def _made(parts: Sequence[Symbol], make: Any) -> Symbol:
    """The expression made of the parts, computed where they are all constants."""
    scalars = _scalars(parts)
    if scalars is None:
        return _opaque(parts)
    node: ast.expr = make(scalars)
    if sum(1 for _ in ast.walk(node)) > _LARGEST:
        return Opaque.UNKNOWN
    return _folded(node) or node


def _folded(node: ast.expr) -> ast.expr | None:
    """The constant that an expression without names is; None where it has names or no value."""
    text = ast.unparse(node)
    try:
        if expressions.names_in(text):
            return None
        value = expressions.evaluate(text, {})
    except UsageError:
        return None
    return None if isinstance(value, tuple) else _literal(value)


def _compare(left: ast.expr, op: ast.cmpop, right: int) -> ast.expr:
    return ast.Compare(left, [op], [ast.Constant(right)])


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.In: ast.NotIn,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.NotEq: ast.Eq,
    ast.NotIn: ast.In,
}


def _negated(test: Symbol) -> Symbol:
    return _inverse(test) if isinstance(test, ast.expr) else test


def _inverse(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[op], comparators=rest):
            return ast.Compare(left, [_OPPOSITE[type(op)]()], rest)
    return ast.UnaryOp(ast.Not(), test)


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)


def _binary(left: Symbol, op: ast.operator, right: Symbol) -> Symbol:
    if isinstance(op, ast.Add) and isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    count = _whole(right)
    if isinstance(op, ast.Mult) and isinstance(left, tuple) and count is not None and count <= 64:
        return left * count
    if not isinstance(op, _ARITHMETIC):
        return _opaque([left, right])
    return _made([left, right], lambda parts: ast.BinOp(parts[0], op, parts[1]))


def _logic(op: ast.boolop, parts: Sequence[Symbol]) -> Symbol:
    if any(part is not Opaque.RUN_TIME for part in parts) and Opaque.RUN_TIME in parts:
        return Opaque.UNKNOWN  # a known part may decide before the program runs
    return _made(parts, lambda made: ast.BoolOp(op, made))


def _comparison(parts: Sequence[Symbol], ops: Sequence[ast.cmpop]) -> Symbol:
    operators: list[ast.cmpop] = []
    sides: list[Symbol] = [parts[0]]
    for op, part in zip(ops, parts[1:], strict=True):
        if isinstance(op, (ast.Is, ast.IsNot)):
            op = ast.Eq() if isinstance(op, ast.Is) else ast.NotEq()
        group = _scalars(part) if isinstance(op, (ast.In, ast.NotIn)) and isinstance(part, tuple) else None
        sides.append(part if group is None else ast.Tuple(list(group), ast.Load()))
        operators.append(op)
    return _made(sides, lambda made: ast.Compare(made[0], operators, made[1:]))


def _element(group: Symbol, index: Symbol) -> Symbol:
    position = _whole(index)
    if isinstance(group, tuple) and position is not None and position < len(group):
        return group[position]
    return Opaque.RUN_TIME if group is Opaque.RUN_TIME else Opaque.UNKNOWN


def _is_function(callee: ast.expr) -> bool:
    """Whether the callee is one of the language's functions: gl.max and gl.min reduce tensors and are none."""
    name = dotted(callee)
    return name in expressions.FUNCTIONS or name.rpartition(".")[2] in ("cdiv", "next_power_of_2") or name == "len"


def _function(name: str, arguments: Sequence[Symbol]) -> Symbol:
    if name == "len":
        group = arguments[0] if len(arguments) == 1 else None
        return ast.Constant(len(group)) if isinstance(group, tuple) else Opaque.UNKNOWN
    return _made(arguments, lambda parts: ast.Call(ast.Name(name, ast.Load()), parts, []))


def _either(test: Symbol, taken: Symbol, other: Symbol) -> Symbol:
    """`taken if test else other`."""
    if _key(taken) == _key(other):
        return taken
    if isinstance(taken, Layout) or isinstance(other, Layout):
        return Layout(tuple(item for part in (taken, other) if isinstance(part, Layout) for item in part.demands))
    if test is Opaque.RUN_TIME:
        return Opaque.RUN_TIME
    if isinstance(taken, tuple) and isinstance(other, tuple) and len(taken) == len(other):
        return tuple(_either(test, *pair) for pair in zip(taken, other, strict=True))
    if isinstance(taken, tuple) or isinstance(other, tuple):
        return Opaque.UNKNOWN
    return _made([test, taken, other], lambda parts: ast.IfExp(*parts))


def _merged(test: Symbol, taken: Mapping[str, Symbol], other: Mapping[str, Symbol]) -> dict[str, Symbol]:
    names = [*taken, *(name for name in other if name not in taken)]
    return {name: _either(test, taken.get(name, Opaque.UNKNOWN), other.get(name, Opaque.UNKNOWN)) for name in names}
