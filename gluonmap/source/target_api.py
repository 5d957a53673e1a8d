"""Uses of the Gluon API of single targets in a kernel, and the targets that they exclude."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from gluonmap.model import targets
from gluonmap.model.inspection import FunctionSource
from gluonmap.model.verdict import Location
from gluonmap.source.code_lines import place
from gluonmap.source.run_time_values import is_run_time, run_time_names
from gluonmap.source.syntax import Definition, definition, dotted

_PATHS = (
    *("amd.cdna3", "amd.cdna4", "amd.cdna5", "amd.gfx1250", "amd.rdna3", "amd.rdna4"),
    *("nvidia.ampere", "nvidia.hopper", "nvidia.blackwell", "nvidia.rubin"),
)
"""Modules of gluon.language. Some have the name of a target, but most of their functions compile for others too."""
_MODULES = {path.partition(".")[2] for path in _PATHS}
"""The names with which a use's name begins."""
_LAYOUTS = {"AMDMFMALayout", "AMDWMMALayout", "NVMMADistributedLayout"}

_ANY = ""
"""Group of the functions that compile for every target."""

# The names are those of triton/experimental/gluon/language in 3.6.0 and 3.9.0. A group holds the functions that small
# kernels compiled with for the same targets (3.9.0; operations on shared memory also 3.6.0). It has the path of the
# module that most of them are in; a target names its groups (`Target.gluon_api`). A module's name alone says little:
# buffer_load is one function in cdna3, cdna4 and gfx1250, and the plain async_copy functions compile everywhere. The
# first match counts.
_GROUPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), group)
    for pattern, group in (
        (r"AMDMFMALayout$", "amd.cdna3"),
        (r"AMDWMMALayout$", "amd.cdna5"),
        (r"NVMMADistributedLayout$", "nvidia"),
        (r"\w+\.async_copy\.(global_load_to_shared|load_shared_relaxed|global_to_shared)$", _ANY),
        (r"\w+\.async_copy\.(async_load|async_copy_global_to_shared|(commit|wait)_group)$", _ANY),
        (r"(cdna\d|gfx1250)\.buffer_(load|store|atomic_\w+)$", "amd"),
        (r"cdna4\.(mfma|scaled_upcast|async_copy\.buffer_load_to_shared)$", "amd.cdna3"),
        (r"cdna3\.", "amd.cdna3"),
        (r"cdna4\.", "amd.cdna4"),
        (r"(cdna5|gfx1250)\.", "amd.cdna5"),
        (r"rdna3\.", "amd.rdna3"),
        (r"rdna4\.", "amd.rdna4"),
        (r"rubin\.", "nvidia.rubin"),
        (r"amd\.", "amd"),
        (r"hopper\.warpgroup_mma", "nvidia.hopper"),
        (r"(ampere|hopper)\.", "nvidia"),
        (r"blackwell\.tma\.async_(gather|scatter)$", "nvidia.blackwell"),
        (r"blackwell\.(mbarrier|tma|cluster)\.|blackwell\.(mma_v2|fence_async_shared|async_store)$", "nvidia"),
        (r"blackwell\.", "nvidia.blackwell"),
    )
)

API_GROUPS = frozenset(group for _, group in _GROUPS) - {_ANY}
"""The groups that a target can name."""


def check_api_groups() -> None:
    """Raise ValueError if a target names no group of Gluon's API, or one that no rule knows."""
    for target in targets.TARGETS:
        if not target.gluon_api or not target.gluon_api <= API_GROUPS:
            given, known = ", ".join(sorted(target.gluon_api)) or "none", ", ".join(sorted(API_GROUPS))
            raise ValueError(f"target {target.name} names groups of Gluon's API ({given}) that are not among {known}")


check_api_groups()


class ApiUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """One use of an API that belongs to some targets only."""

    api: str
    """Name from its module on: "cdna4.mfma_scaled", "hopper.tma.async_load", "AMDMFMALayout"."""
    location: Location
    conditional: bool = False
    """The use is under an `if` that the compiler may decide, so it excludes no target."""


def find_api_uses(functions: Sequence[FunctionSource], file_texts: Mapping[str, str]) -> tuple[ApiUse, ...]:
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


def excluded_targets(apis: Sequence[ApiUse]) -> dict[str, ApiUse]:
    """Return the targets that the kernel cannot be compiled for, each with the first use that excludes it."""
    excluded: dict[str, ApiUse] = {}
    for use in apis:
        group = next((group for pattern, group in _GROUPS if pattern.match(use.api)), _ANY)
        if group != _ANY and not use.conditional:
            for target in targets.TARGETS:
                if group not in target.gluon_api:
                    excluded.setdefault(target.name, use)
    return {target.name: excluded[target.name] for target in targets.TARGETS if target.name in excluded}


def _api(name: str, imports: Mapping[str, str]) -> str:
    """Return the target's own API that a dotted name means, from its module on; "" for any other name."""
    root, _, rest = name.partition(".")
    parts = f"{imports.get(root, root)}.{rest}".rstrip(".").split(".")
    if parts[-1] in _LAYOUTS:
        return parts[-1]
    vendors = [position for position, part in enumerate(parts) if part in ("amd", "nvidia")]
    start = vendors[-1] + 1 if vendors else 0
    if start < len(parts) - 1 and parts[start] in _MODULES:
        return ".".join(parts[start:])
    is_own = vendors and parts[start - 1] == "amd" and len(parts) > start and "language" in parts
    return ".".join(parts[start - 1 :]) if is_own else ""


@lru_cache(maxsize=64)
def _imports(text: str) -> Mapping[str, str]:
    """Return the names that a file binds by imports and plain assignments -> the full dotted name."""
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
    """Return the functions that the kernel reaches without a condition that the compiler may decide."""
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
    """Yield the longest dotted names that a function's body reads, and whether the compiler may leave each out."""
    known = run_time_names(node)
    pending: list[tuple[ast.AST, bool]] = [(statement, False) for statement in reversed(node.body)]
    while pending:
        item, conditional = pending.pop()
        if isinstance(item, ast.expr) and dotted(item):
            yield item, conditional
            continue
        children = [(child, conditional) for child in ast.iter_child_nodes(item)]
        if isinstance(item, (ast.If, ast.IfExp)) and not is_run_time(item.test, known):
            children = [(child, conditional or child is not item.test) for child, _ in children]
        pending.extend(reversed(children))
