"""The hand-off as a Python module: a list of `triton.Config`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gluonmap.export.heading import UNTIMED, check_names, heading, is_spelled, launch_defaults, literal, one_line
from gluonmap.handoff.descriptors import DescriptorBlock, blocks_of
from gluonmap.handoff.launches import launches
from gluonmap.handoff.python_values import PREFIX
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import LAUNCH_OPTIONS
from gluonmap.worker.arguments import element_name

_KNOWN = ("triton", "tl", "gl", "float")
_PARTS = (ast.Name, ast.Attribute, ast.List, ast.Tuple, ast.Call, ast.Constant, ast.UnaryOp, ast.USub, ast.UAdd)


def render(space: SpaceMap, limit: int | None = None) -> str:
    """Return a module whose `CONFIGS` equals `LoadedMap.configs(limit)`.

    Raises:
        UsageError: nothing passed; Triton is not installed; a value names an object of the kernel's own module.
    """
    check_names(space)
    found, defaults = launches(space, limit), launch_defaults(space)
    comments = [*heading(space, "Configurations for", len(found)), UNTIMED]
    imports = ["import triton"]
    if any(is_spelled(value) for launch in found for value in launch.values()):
        imports += ["from triton import language as tl  # noqa: F401"]
        imports += ["from triton.experimental.gluon import language as gl  # noqa: F401"]
    blocks = [blocks_of(space, launch) for launch in found]
    setter = _setter(space, blocks[0]) if blocks[0] else []
    if setter and len(imports) == 1:
        imports += ["from triton.experimental.gluon import language as gl"]
    lines = [*(f"# {line}" for line in comments), "", *imports, *setter, "", "CONFIGS = ["]
    lines += [f"    {_config(launch, defaults, mine)}," for launch, mine in zip(found, blocks, strict=True)]
    return "\n".join([*lines, "]"]) + "\n"


def _setter(space: SpaceMap, blocks: Sequence[DescriptorBlock]) -> list[str]:
    """Return the text of a function that makes the `pre_hook` of a configuration.

    Raises:
        UsageError: the target's descriptors have layouts that an exported module cannot make.
    """
    if targets.find(space.target).backend != "cuda":
        raise UsageError(
            f"the descriptors of {space.kernel!r} need a hook that an exported module cannot make for {space.target}; "
            "gluonmap.load(MAP).configs() makes it."
        )
    types = ", ".join(f"{block.name!r}: gl.{element_name(block.dtype)}" for block in blocks)
    return [
        "",
        f"DTYPES = {{{types}}}",
        "",
        "",
        "def blocks(**shapes):",
        '    """A pre_hook: the descriptors get the blocks of the configuration."""',
        "",
        "    def hook(call):",
        "        for name, shape in shapes.items():",
        "            call[name].block_shape = list(shape)",
        "            call[name].layout = gl.NVMMASharedLayout.get_default_for(list(shape), DTYPES[name])",
        "",
        "    return hook",
        "",
    ]


def _config(launch: Config, defaults: dict[str, object], blocks: Sequence[DescriptorBlock]) -> str:
    own = ", ".join(f"{name!r}: {_value(value)}" for name, value in launch.items() if name not in LAUNCH_OPTIONS)
    options = {name: launch.get(name, defaults.get(name)) for name in LAUNCH_OPTIONS}
    given = ", ".join(f"{name}={value!r}" for name, value in options.items() if value is not None)
    if blocks:
        given += f", pre_hook=blocks({', '.join(f'{block.name}={list(block.shape)}' for block in blocks)})"
    return f"triton.Config({{{own}}}, {given})"


def _value(value: Value) -> str:
    """Return a value as Python text. A spelled value may only name parts of Triton and make layouts and floats.

    Raises:
        UsageError: the text is no Python, or names anything else; text of a map must not become arbitrary code.
    """
    if not is_spelled(value):
        return literal(value)
    text = str(value)[len(PREFIX) :].strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"the map's value {value!r} is no Python: {error}.") from error
    layouts = {name for node in ast.walk(tree) if isinstance(node, ast.Call) for name in [ast.unparse(node.func)]}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    strange = sorted(names - {*_KNOWN}) or sorted(n for n in layouts if not (n == "float" or n.endswith("Layout")))
    if strange or not all(isinstance(node, (*_PARTS, ast.expr_context, ast.keyword)) for node in ast.walk(tree)):
        raise UsageError(
            f"the map's value {one_line(text)!r} names {', '.join(strange) or 'what'} an exported module cannot name. "
            "@gluonmap.autotune makes what the kernel's own module names."
        )
    return ast.unparse(tree)
