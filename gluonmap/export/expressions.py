"""Relations as Python expressions that are equal to the relation on every value of the domains.

An expression uses nothing but Python's built-in functions. Where none can be made, because an expression of the user's
has no value for some configurations, the configurations that meet the relation are listed instead.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from gluonmap.constraints.semantics import holds, scope_of, view_of
from gluonmap.export.heading import literal
from gluonmap.model.candidate import Value, same
from gluonmap.model.relations import (
    AllOf,
    AnyOf,
    Bound,
    Compare,
    KnobTerm,
    Max,
    Member,
    Min,
    Nogood,
    Number,
    Op,
    Product,
    Quotient,
    Relation,
    Remainder,
    RoundUp,
    Sum,
    Term,
    View,
    Written,
)

Domains = Mapping[str, Sequence[Value]]
Named = Callable[[str], str]
"""Knob -> the text that reads its value: `BLOCK_M`, or `c["BLOCK_M"]`."""

MOST_CHECKED = 20_000
"""Largest number of value combinations on which an expression is checked."""

_OPS = {Op.AT_MOST: "<=", Op.AT_LEAST: ">=", Op.EQUAL: "==", Op.UNEQUAL: "!="}


def expression_of(relation: Relation, domains: Domains, named: Named = lambda name: name) -> str:
    """Return the relation as a Python expression over its knobs, each of which has one of the values of its domain."""
    scope = [name for name in domains if name in scope_of(relation)]
    try:
        text = _relation(relation, domains, named)
    except ValueError:
        return _listed(relation, domains, named, scope)
    if math.prod(len(domains[name]) for name in scope) > MOST_CHECKED:
        return text
    return text if _is_right(relation, domains, scope) else _listed(relation, domains, named, scope)


def _is_right(relation: Relation, domains: Domains, scope: Sequence[str]) -> bool:
    code = compile(_relation(relation, domains, lambda name: name), "<relation>", "eval")
    allowed = {"__builtins__": {"max": max, "min": min, "abs": abs, "int": int, "repr": repr}}
    try:
        return all(bool(eval(code, allowed, dict(config))) == met for config, met in _met(relation, domains, scope))
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return False


def _met(relation: Relation, domains: Domains, scope: Sequence[str]) -> Iterator[tuple[dict[str, Value], bool]]:
    for values in itertools.product(*(domains[name] for name in scope)):
        config = dict(zip(scope, values, strict=True))
        yield config, holds(relation, config)


def _listed(relation: Relation, domains: Domains, named: Named, scope: Sequence[str]) -> str:
    """Return a test for membership in the list of configurations that meet the relation.

    Values are compared as text, because 1 == True.
    """
    rows = sorted(tuple(map(repr, config.values())) for config, met in _met(relation, domains, scope) if met)
    keys = ", ".join(f"repr({named(name)})" for name in scope)
    return f"({keys},) in {rows!r}" if rows else "False"


def _relation(relation: Relation, domains: Domains, named: Named) -> str:
    match relation:
        case Compare(left, op, right):
            return f"{_term(left, domains, named)} {_OPS[op]} {_term(right, domains, named)}"
        case Member(knob, values, inside):
            return _member(knob, values, inside, domains, named)
        case Bound(knob, op, value):
            return f"{named(knob)} {_OPS[op]} {literal(value)}"
        case AnyOf(parts):
            return " or ".join(_part(part, domains, named) for part in parts)
        case AllOf(parts):
            return " and ".join(_part(part, domains, named) for part in parts)
        case Nogood(cells):
            return f"not ({' and '.join(_member(k, (v,), True, domains, named) for k, v in cells)})"
        case Written(text):
            return _written(text, named)


def _part(relation: Relation, domains: Domains, named: Named) -> str:
    text = _relation(relation, domains, named)
    return text if isinstance(relation, Member | Bound) else f"({text})"


def _member(knob: str, values: Sequence[Value], inside: bool, domains: Domains, named: Named) -> str:
    """Return a test whether a knob's value is one of `values`; True is not 1."""
    known = [v for v in domains[knob] if any(v == m and isinstance(v, bool) == isinstance(m, bool) for m in values)]
    others = [v for v in domains[knob] if not any(same(v, k) for k in known)]
    if not known or not others:
        return str(bool(known) == inside)
    if any(value == other for value in known for other in others):
        texts = sorted(repr(value) for value in known)
        return f"repr({named(knob)}) {'in' if inside else 'not in'} {texts!r}"
    if len(known) == 1 and known[0] is None:
        return f"{named(knob)} {'is' if inside else 'is not'} None"
    if len(known) == 1:
        return f"{named(knob)} {'==' if inside else '!='} {literal(known[0])}"
    return f"{named(knob)} {'in' if inside else 'not in'} ({', '.join(map(literal, known))})"


# ---- terms ---------------------------------------------------------------------------------------------------------


def _term(term: Term, domains: Domains, named: Named) -> str:
    match term:
        case KnobTerm(name, view):
            return _viewed(name, view, domains, named)
        case Number(value):
            return literal(value)
        case Product(parts):
            return " * ".join(_factor(part, domains, named) for part in parts) or "1"
        case Sum(parts):
            return " + ".join(_term(part, domains, named) for part in parts) or "0"
        case Quotient(part, divisor):
            return f"{_factor(part, domains, named)} / {_factor(divisor, domains, named)}"
        case Remainder(part, divisor):
            return f"{_factor(part, domains, named)} % {_factor(divisor, domains, named)}"
        case Max((part,)) | Min((part,)):
            return _term(part, domains, named)
        case Max(parts):
            return f"max({', '.join(_term(part, domains, named) for part in parts)})"
        case Min(parts):
            return f"min({', '.join(_term(part, domains, named) for part in parts)})"
        case RoundUp(part, multiple):
            return f"-(-{_factor(part, domains, named)} // {multiple}) * {multiple}"


def _factor(term: Term, domains: Domains, named: Named) -> str:
    text = _term(term, domains, named)
    whole = isinstance(term, Max | Min) or (isinstance(term, KnobTerm) and term.view is View.PLAIN)
    return text if whole or (isinstance(term, Number) and term.value >= 0) else f"({text})"


def _viewed(knob: str, view: View, domains: Domains, named: Named) -> str:
    name = named(knob)
    if view is View.PLAIN:
        return name
    numbers = all(isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in domains[knob])
    if numbers and view is View.POWER:
        return f"(1 << ({name} - 1).bit_length())"
    if numbers and view is View.EVEN_PART:
        return f"({name} & -{name})"
    seen = {repr(value): view_of(value, view) for value in domains[knob]}
    table = ", ".join(f"{text!r}: {literal(number)}" for text, number in seen.items() if number is not None)
    return f"{{{table}}}[repr({name})]"


# ---- expressions of the user ---------------------------------------------------------------------------------------


def _written(text: str, named: Named) -> str:
    """Return a user's expression with the functions `cdiv` and `next_power_of_2` written out.

    Raises:
        ValueError: the text is outside the language of constraints, or a power might become too large.
    """
    body = ast.parse(text.strip(), mode="eval").body
    for node in ast.walk(body):
        small = isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value in range(9)
        if not isinstance(node, _LANGUAGE) or (isinstance(getattr(node, "op", None), ast.Pow) and not small):
            raise ValueError(ast.unparse(node))
    return ast.unparse(_PlainPython(named).visit(body))


_LANGUAGE = (
    *(ast.Constant, ast.Name, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


class _PlainPython(ast.NodeTransformer):
    """Renames knobs and writes out functions that Python lacks."""

    def __init__(self, named: Named) -> None:
        self.named = named

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _parsed(self.named(node.id))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arguments = [self.visit(argument) for argument in node.args]
        match node.func:
            case ast.Name(id="cdiv") if len(arguments) == 2:
                negative = ast.UnaryOp(ast.USub(), arguments[0])
                return ast.UnaryOp(ast.USub(), ast.BinOp(negative, ast.FloorDiv(), arguments[1]))
            case ast.Name(id="next_power_of_2") if len(arguments) == 1:
                number = ast.unparse(arguments[0])
                return _parsed(f"(1 << (({number}) - 1).bit_length() if ({number}) > 0 else 0)")
            case ast.Name(id="abs" | "int" | "max" | "min") as function:
                return ast.Call(function, arguments, [])
        raise ValueError(ast.unparse(node))


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
