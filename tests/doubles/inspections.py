"""Small inspections as a child would send them, without Triton."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

from gluonmap.model.candidate import Config, Value
from gluonmap.model.inspection import FunctionSource, Inspection, Parameter, SourceFile

AMD_OPTIONS: dict[str, Value] = {
    "num_warps": 4,
    "num_stages": 2,
    "num_ctas": 1,
    "waves_per_eu": 0,
    "kpack": 1,
    "matrix_instr_nonkdim": 0,
    "debug": False,
}


def inspected(
    text: str,
    *,
    autotune: tuple[Config, ...] = (),
    heuristic: tuple[str, ...] = (),
    options: dict[str, Value] | None = None,
) -> Inspection:
    """The inspection of a file that holds one kernel; its parameters are read from the text."""
    text = textwrap.dedent(text).strip("\n") + "\n"
    definition = next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    arguments = definition.args.args
    defaults: list[Any] = [None] * (len(arguments) - len(definition.args.defaults)) + list(definition.args.defaults)
    parameters = tuple(
        Parameter(
            name=argument.arg,
            constexpr="constexpr" in (ast.unparse(argument.annotation) if argument.annotation else ""),
            default=ast.literal_eval(default) if default else None,
            has_default=default is not None,
            heuristic=argument.arg in heuristic,
        )
        for argument, default in zip(arguments, defaults, strict=True)
    )
    name = definition.name
    return Inspection(
        kernel=name,
        function=name,
        kernels=(name,),
        entries=(name,),
        gluon=True,
        parameters=parameters,
        functions=(FunctionSource(name, f"kernels/{name}.py", 1, text),),
        files=(SourceFile(f"/home/me/kernels/{name}.py", "0" * 20),),
        autotune=autotune,
        options=AMD_OPTIONS if options is None else options,
    )
