"""The rule about strides: a kernel that assumes some of them positive and leaves others out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gluonmap.lint.findings import LintFinding
from gluonmap.lint.flat_trees import Body
from gluonmap.lint.kernel_functions import Function, annotation, declared, decorator_name
from gluonmap.lint.key_advice import STRIDE
from gluonmap.lint.linted_file import LintedFile
from gluonmap.lint.nodes import call_name, full_name, last_name, unwrapped, written
from gluonmap.lint.tail_rules import LOADS, accesses
from gluonmap.model.wording import listed_briefly


def check(subject: LintedFile, body: Body) -> Iterator[LintFinding]:
    """Yield strides that multiply 32-bit offsets and that no `assume` names, in a Triton kernel that assumes others."""
    kernel = body.function
    assumed: set[str] = set()
    for call in body.calls:
        if last_name(call) == "assume":
            assumed |= {node.id for part in call.args for node in ast.walk(part) if isinstance(node, ast.Name)}
    strides = [name for name, constexpr in body.parameters.items() if not constexpr and STRIDE.search(name)]
    jits = [full_name(_decorator(d), subject.module) for d in kernel.node.decorator_list if decorator_name(d) == "jit"]
    if not assumed & set(strides) or "triton.jit" not in jits:
        return
    wide = {name for name in body.parameters if "64" in _annotation(kernel, name)}
    used: set[str] = set()
    for node in body.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="to", value=value)):
                wide |= {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
            case ast.BinOp(
                left=left, op=ast.Mult(), right=right
            ):  # a stride times a scalar is part of the base address, not an offset
                for stride, other in ((left, right), (right, left)):
                    if isinstance(stride, ast.Name) and _is_offset(body, other):
                        used.add(stride.id)
    addressed: set[str] = set()
    for access in accesses(body, {}):
        if not LOADS & body.made_with(
            access.address
        ):  # a loaded index may be negative, so no promise about the stride helps
            addressed |= body.added(access.address)
    left_out = [name for name in strides if name in (used & addressed) - assumed - wide]
    if left_out:
        several = f"{len(assumed & set(strides))} of {len(strides)} strides"
        yield subject.finding(
            "GM203",
            kernel.node,
            f"{kernel.name} assumes that {several} are positive and leaves out {listed_briefly(left_out)}: where these "
            "are not 1, their tensors lose buffer loads and stores on AMD before Triton 3.6",
            "; ".join(f"tl.assume({name} > 0)" for name in left_out[:3]) + ("; …" if len(left_out) > 3 else ""),
            kernel.name,
        )


def _is_offset(body: Body, node: ast.expr) -> bool:
    """Return whether a node is a 32-bit sum with `arange`, so that the stride alone decides the sign of the product.

    A remainder has the sign of its dividend. A quotient does not.
    """
    if "to" in body.made_with(node):  # a cast may widen
        return False
    seen: set[str] = set()
    pending: list[ast.AST] = [node]
    while pending:
        match pending.pop():
            case ast.Name(id=name):
                if name not in seen:
                    seen.add(name)
                    pending += body.values.get(name, [])
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
                pending += [left, right]
            case ast.BinOp(left=left, op=ast.Mod()):
                pending.append(left)
            case ast.Call() as call if last_name(call) == "arange":
                return True
            case other:
                pending += [inner] if (inner := unwrapped(other)) is not None else []
    return False


def _annotation(kernel: Function, name: str) -> str:
    return next((annotation(parameter) for parameter in declared(kernel.node) if parameter.arg == name), "")


def _decorator(node: ast.expr) -> str:
    return call_name(node) if isinstance(node, ast.Call) else written(node)
