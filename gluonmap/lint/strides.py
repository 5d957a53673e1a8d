"""Strides that are assumed positive beside some that are not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gluonmap.keys.text import Function, decorator_name
from gluonmap.lint.finding import Finding
from gluonmap.lint.subject import Subject
from gluonmap.lint.tails import LOADS
from gluonmap.lint.trees import Body, call_name, full_name, last_name, listed, written

_STRIDE = re.compile(r"(^|_)strides?(_|$|[a-z0-9])", re.IGNORECASE)


def check(subject: Subject, body: Body) -> Iterator[Finding]:
    """Yield strides of 32 bits times offsets that no `assume` names, in a Triton kernel that assumes others."""
    kernel = body.function
    assumed: set[str] = set()
    for call in body.calls:
        if last_name(call) == "assume":
            assumed |= {node.id for part in call.args for node in ast.walk(part) if isinstance(node, ast.Name)}
    strides = [name for name, constexpr in body.parameters.items() if not constexpr and _STRIDE.search(name)]
    jits = [full_name(_decorator(d), subject.module) for d in kernel.node.decorator_list if decorator_name(d) == "jit"]
    if not assumed & set(strides) or "triton.jit" not in jits:
        return
    wide = {name for name in body.parameters if "64" in _annotation(kernel, name)}
    used: set[str] = set()
    for node in body.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="to", value=value)):
                wide |= {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
            case ast.BinOp(left=left, op=ast.Mult(), right=right):  # times a scalar it joins the base, and is no offset
                for stride, other in ((left, right), (right, left)):
                    made = body.made_with(other) if isinstance(stride, ast.Name) else set()
                    # Wide or loaded offsets are none that the compiler could prove small and positive anyway.
                    if isinstance(stride, ast.Name) and "arange" in made and not made & {"to", *LOADS}:
                        used.add(stride.id)
    left_out = [name for name in strides if name in used - assumed - wide]
    if left_out:
        several = f"{len(assumed & set(strides))} of {len(strides)} strides"
        yield subject.finding(
            "GM203",
            kernel.node,
            f"{kernel.name} assumes that {several} are positive and leaves out {listed(left_out)}: where these are not "
            "1, their tensors lose buffer loads and stores on AMD before Triton 3.6",
            "; ".join(f"tl.assume({name} > 0)" for name in left_out[:3]) + ("; …" if len(left_out) > 3 else ""),
            kernel.name,
        )


def _annotation(kernel: Function, name: str) -> str:
    arguments = (*kernel.node.args.posonlyargs, *kernel.node.args.args, *kernel.node.args.kwonlyargs)
    return next((written(a.annotation) for a in arguments if a.arg == name and a.annotation), "")


def _decorator(node: ast.expr) -> str:
    return call_name(node) if isinstance(node, ast.Call) else written(node)
