"""Values that only the running kernel knows: program ids, loads, and what is computed from them."""

from __future__ import annotations

import ast

from gluonmap.source.syntax import Definition, assignments, dotted

RUN_TIME_CALLS = {"program_id", "num_programs", "arange", "load", "buffer_load", "zeros", "full"}
"""Functions of the language whose result only the running kernel knows."""


def run_time_names(node: Definition) -> set[str]:
    """Return the variables that only the running kernel knows: they are computed from program ids and loads."""
    stores = [(name, value) for item in ast.walk(node) for name, value in assignments(item)]
    found: set[str] = set()
    while True:
        more = {name for name, value in stores if name not in found and is_run_time(value, found)}
        if not more:
            return found
        found |= more


def is_run_time(value: ast.expr, known: set[str]) -> bool:
    """Return whether only the running kernel knows a value; `known` are the variables of which this is so."""
    match value:
        case ast.Name(id=name):
            return name in known
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return is_run_time(left, known) or is_run_time(right, known)
        case ast.BoolOp(values=parts):
            return all(is_run_time(part, known) for part in parts)
        case ast.UnaryOp(operand=operand):
            return is_run_time(operand, known)
        case ast.Call(args=arguments):
            last = dotted(value.func).rpartition(".")[2]
            return last in RUN_TIME_CALLS or any(is_run_time(argument, known) for argument in arguments)
    return False
