"""Rules that layouts written as literals, and static assertions, impose on a configuration.

The kernel is read as text, statement by statement, in the compiler's order. Constexpr variables are followed, helpers
are entered with the arguments of the call, and a layout counts where it is used. A value that does not resolve demands
nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gluonmap.constraints import expressions
from gluonmap.model.inspection import FunctionSource, LiteralRule, Parameter
from gluonmap.model.verdict import Location
from gluonmap.source.code_lines import place
from gluonmap.source.layout_demands import SIGNATURES, WRAPPING_LAYOUTS, layout_demands
from gluonmap.source.run_time_values import RUN_TIME_CALLS
from gluonmap.source.symbolic import (
    NUM_WARPS,
    Demand,
    Layout,
    Opaque,
    Scope,
    Symbol,
    as_constant,
    binary_operation,
    boolean_operation,
    build,
    call_function,
    can_fail,
    canonical_text,
    choose,
    combine_opaque,
    compare_to,
    comparison,
    invert,
    is_language_function,
    is_true,
    join_guards,
    literal,
    merge,
    negate,
    read_constant,
    shorten,
    subscript,
)
from gluonmap.source.syntax import Definition, bind, definition, dotted, helper_of, parameter_names


def read_literal_rules(
    functions: Sequence[FunctionSource], parameters: Sequence[Parameter], warp_size: int
) -> tuple[LiteralRule, ...]:
    """Return what the kernel `functions[0]` and its helpers demand of a configuration by literals in their source.

    `num_warps` in a rule is the kernel's parameter of that name or else the launch option. A parameter that a
    heuristic computes is no part of a configuration: a rule that depends on one is left out.
    """
    node = definition(functions[0].source) if functions else None
    if node is None:
        return ()
    values: dict[str, Symbol] = {
        item.name: ast.Name(item.name, ast.Load()) if item.constexpr and not item.heuristic else Opaque.UNKNOWN
        for item in parameters
    }
    reader = _LiteralReader(functions, warp_size)
    reader.block(node.body, Scope(0, values))
    order = {item.name: position for position, item in enumerate(parameters)}
    found = sorted(
        _without_redundant(reader.demands), key=lambda item: (_file_order(functions, item.location), item.text)
    )
    return tuple(rule for demand in found for rule in _state_rules(demand, order))


def _file_order(functions: Sequence[FunctionSource], location: Location) -> tuple[int, int]:
    names = [(function.file, function.name) for function in functions]
    return names.index((location.file, location.function)), location.line


def _without_redundant(demands: Iterable[Demand]) -> Iterator[Demand]:
    """Yield each demand once, without those whose conditions contradict each other or include those of another copy."""
    found: dict[tuple[str, Location, str], dict[frozenset[str], Demand]] = {}
    for item in demands:
        guards = frozenset(canonical_text(guard) for guard in item.guards)
        if not guards.intersection(canonical_text(negate(guard)) for guard in item.guards):
            found.setdefault((item.text, item.location, canonical_text(item.rule)), {}).setdefault(guards, item)
    for variants in found.values():
        yield from (item for guards, item in variants.items() if not any(other < guards for other in variants))


def _state_rules(demand: Demand, order: Mapping[str, int]) -> Iterator[LiteralRule]:
    """Yield the rule of a demand under its conditions; nothing if it is about num_warps alone and cannot fail."""
    text, rule = demand.text, demand.rule
    if demand.guards:
        guard = demand.guards[0] if len(demand.guards) == 1 else ast.BoolOp(ast.And(), list(demand.guards))
        text = f"{text} (if {shorten(ast.unparse(guard))})"
        if not is_true(rule):
            rule = ast.BoolOp(ast.Or(), [invert(guard), rule])
    names = expressions.names_in(ast.unparse(rule))
    if names == {NUM_WARPS} and not can_fail(rule):
        return
    yield LiteralRule(
        text=text,
        expression=ast.unparse(rule),
        knobs=tuple(sorted({*names, *demand.knobs}, key=lambda name: (order.get(name, len(order)), name))),
        location=demand.location,
    )


@dataclass
class _LiteralReader:
    """Reader of the kernel and of the helpers that it calls; it collects their demands."""

    functions: Sequence[FunctionSource]
    warp_size: int
    """Lanes of a warp on the target."""
    demands: list[Demand] = field(default_factory=list)
    entered: set[str] = field(default_factory=set)
    """Helpers with the arguments and conditions that they were read with, as text: each is read once."""
    callers: list[int] = field(default_factory=list)
    """Indices of the helpers that are being read, so that a helper that calls itself is not entered again."""

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> bool:
        """Read statements in order; return whether the function surely ends in them."""
        return any(self.statement(statement, scope) for statement in statements)

    def statement(self, node: ast.stmt, scope: Scope) -> bool:
        """Read one statement; return whether the function surely ends in it."""
        match node:
            case ast.Assign(targets=targets, value=value):
                symbol = self.value(value, scope)
                for target in targets:
                    scope.assign(target, symbol)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                scope.assign(target, self.value(value, scope))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                scope.assign(node.target, self.value(ast.BinOp(ast.Name(name, ast.Load()), op, value), scope))
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
        """Read an `if`: the branch that a constant condition takes, else both branches under their conditions."""
        test = self.value(node.test, scope)
        chosen = as_constant(test)
        if chosen is not None:
            return self.block(node.body if chosen.value else node.orelse, scope)
        taken, other = scope.under(test), scope.under(negate(test))
        taken_ends, other_ends = self.block(node.body, taken), self.block(node.orelse, other)
        if taken_ends and other_ends:
            return True
        if test is Opaque.RUN_TIME or not (taken_ends or other_ends):
            scope.values = merge(test, taken.values, other.values)
        else:
            rest = other if taken_ends else taken  # the branch that reaches the next statement
            scope.values, scope.guards, scope.reached = rest.values, rest.guards, rest.reached
        return False

    def loop(self, node: ast.For | ast.While, scope: Scope) -> None:
        """Read a loop's body once, with the variables that it sets taken for opaque."""
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
        """Return the condition under which an unrolled loop has at least one turn."""
        match node:
            case ast.For(iter=ast.Call(args=[count], keywords=[])):
                return build([self.value(count, scope)], lambda parts: compare_to(parts[0], ast.Gt(), 0))
        return Opaque.UNKNOWN

    # ---- reading expressions ---------------------------------------------------------------------------------------

    def use(self, node: ast.expr, scope: Scope) -> None:
        """Read an expression whose value the compiler uses: the layouts in it count."""
        self.meet(self.value(node, scope), scope)

    def meet(self, symbol: Symbol, scope: Scope) -> None:
        """Collect the demands of the layouts in a value that is used here."""
        if isinstance(symbol, tuple):
            for item in symbol:
                self.meet(item, scope)
        if isinstance(symbol, Layout) and scope.reached:
            for demand in symbol.demands:
                self.demands.append(replace(demand, guards=join_guards(demand.guards, scope.guards)))

    def value(self, node: ast.expr, scope: Scope) -> Symbol:
        """Return the value of an expression, and collect what the calls in it demand."""
        match node:
            case ast.Constant(value=int() | float() | str() | None as constant):
                return literal(constant)
            case ast.Name(id=name) if name in scope.values:
                return scope.values[name]
            case ast.Name() | ast.Attribute() if dotted(node) in self.functions[scope.index].constants:
                return read_constant(self.functions[scope.index].constants[dotted(node)])
            case ast.Attribute(value=value, attr=attribute):
                base = self.value(value, scope)
                self.meet(base, scope)
                return base if attribute == "value" and isinstance(base, (ast.expr, tuple)) else Opaque.UNKNOWN
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return tuple(self.value(element, scope) for element in elements)
            case ast.UnaryOp(op=ast.Not() | ast.USub() as sign, operand=operand):
                return build([self.value(operand, scope)], lambda parts: ast.UnaryOp(sign, parts[0]))
            case ast.BinOp(left=left, op=op, right=right):
                return binary_operation(self.value(left, scope), op, self.value(right, scope))
            case ast.BoolOp(op=logic, values=values):
                parts = [self.value(value, scope) for value in values]
                return boolean_operation(logic, parts)
            case ast.Compare(left=left, ops=ops, comparators=rest):
                return comparison([self.value(part, scope) for part in (left, *rest)], ops)
            case ast.IfExp():
                return self.choice(node, scope)
            case ast.Subscript(value=value, slice=index):
                return subscript(self.value(value, scope), self.value(index, scope))
            case ast.Call():
                return self.call(node, scope)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.use(child, scope)
        return Opaque.UNKNOWN

    def choice(self, node: ast.IfExp, scope: Scope) -> Symbol:
        """Return the value of a conditional expression."""
        test = self.value(node.test, scope)
        chosen = as_constant(test)
        if chosen is not None:
            return self.value(node.body if chosen.value else node.orelse, scope)
        taken = self.value(node.body, scope.under(test))
        other = self.value(node.orelse, scope.under(negate(test)))
        return choose(test, taken, other)

    def call(self, node: ast.Call, scope: Scope) -> Symbol:
        """Return the value of a call: of a helper, a layout, an assertion, or a function of the language."""
        name = dotted(node.func).rpartition(".")[2]
        helper = helper_of(node, self.functions, scope.index)
        if helper is not None:
            return self.enter(node, *helper, scope)
        if name in SIGNATURES:
            return self.layout(node, name, scope)
        if name == "static_assert" and node.args:
            self.assertion(node, scope)
            return Opaque.UNKNOWN
        arguments = [self.value(argument, scope) for argument in node.args]
        if name == "constexpr" and len(arguments) == 1:
            return arguments[0]
        if name == NUM_WARPS and not arguments:
            return ast.Name(NUM_WARPS, ast.Load())
        if not node.keywords and is_language_function(node.func):
            return call_function(name, arguments)
        arguments += [self.value(keyword.value, scope) for keyword in node.keywords]
        if isinstance(node.func, ast.Attribute):
            arguments.append(self.value(node.func.value, scope))
        if name in WRAPPING_LAYOUTS:
            return Layout(tuple(item for part in arguments if isinstance(part, Layout) for item in part.demands))
        for argument in arguments:
            self.meet(argument, scope)
        return Opaque.RUN_TIME if name in RUN_TIME_CALLS else combine_opaque(arguments)

    def enter(self, node: ast.Call, index: int, callee: Definition, scope: Scope) -> Symbol:
        """Read a helper with the arguments of this call."""
        bound = bind(node, callee)
        if bound is None:
            for part in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self.use(part, scope)
            return Opaque.UNKNOWN
        given = {name: self.value(argument, scope) for name, argument in bound.items()}
        values: dict[str, Symbol] = dict.fromkeys(parameter_names(callee), Opaque.UNKNOWN)
        inside = Scope(index, values | self.defaults(index, callee) | given, scope.guards)
        key = f"{index} {canonical_text(inside.values)} {canonical_text(inside.guards)}"
        if scope.reached and index not in self.callers and key not in self.entered:
            self.entered.add(key)
            self.callers.append(index)
            self.block(callee.body, inside)
            self.callers.pop()
        return combine_opaque(list(given.values()))

    def defaults(self, index: int, callee: Definition) -> dict[str, Symbol]:
        """Return the default values of a helper's parameters."""
        scope = Scope(index, {})
        signature = callee.args
        positional = [*signature.posonlyargs, *signature.args]
        pairs = [
            *zip(reversed(positional), reversed(signature.defaults), strict=False),
            *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
        ]
        return {argument.arg: self.value(default, scope) for argument, default in pairs if default is not None}

    # ---- calls that demand -----------------------------------------------------------------------------------------

    def assertion(self, node: ast.Call, scope: Scope) -> None:
        """Collect the demand of a static assertion."""
        condition = self.value(node.args[0], scope)
        if not scope.reached or not isinstance(condition, ast.expr) or is_true(condition):
            return
        text = f"static_assert({shorten(ast.unparse(condition))})"
        message = as_constant(self.value(node.args[1], scope)) if len(node.args) > 1 else None
        if message and isinstance(message.value, str):
            text += f": {message.value}"
        location = place(self.functions[scope.index], node)
        self.demands.append(Demand(text, condition, location, scope.guards))

    def layout(self, node: ast.Call, name: str, scope: Scope) -> Layout:
        """Return the layout that a call of the class `name` makes, with its demands."""
        names = SIGNATURES[name]
        written = {key: part for key, part in zip(names, node.args, strict=False) if key}
        written |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        known = {key: self.value(part, scope) for key, part in written.items()}
        if not scope.reached:
            return Layout(())
        function = self.functions[scope.index]
        found = layout_demands(name, known, written, lambda part: place(function, part or node), self.warp_size)
        return Layout(tuple(replace(demand, guards=scope.guards) for demand in found))


def _callee(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node
