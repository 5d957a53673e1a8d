"""The arguments that belong in a kernel's autotune key, compared with those that it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from gluonmap.lint import host_code
from gluonmap.lint.kernel_functions import Files, Function, annotation, declared, parameters, read_kernel
from gluonmap.lint.parameter_flow import BRANCH, DERIVED, LOOP, TILE_COUNT, FlowSummaries, Use
from gluonmap.model.inspection import FunctionSource, Parameter
from gluonmap.model.race_record import Split
from gluonmap.model.targets import LAUNCH_OPTIONS
from gluonmap.source.argument_kinds import infer_argument_kinds
from gluonmap.source.code_lines import source_of
from gluonmap.source.syntax import text_of
from gluonmap.spec.probe_file import ProbeFile


class KeyArgument(msgspec.Struct, frozen=True, omit_defaults=True):
    """One argument of the kernel that is not tuned."""

    name: str
    constexpr: bool
    belongs: bool
    in_key: bool
    uses: tuple[Use, ...] = ()
    """Decisions that depend on the argument, in the order of the text; the grid and the heuristics last."""
    could: str = ""
    """Reason why the argument could be a constexpr; empty if there is none."""


class Idle(msgspec.Struct, frozen=True):
    """A name in the key that decides nothing."""

    name: str
    why: str


class Advice(msgspec.Struct, frozen=True):
    """The advice on a kernel's key."""

    kernel: str
    file: str
    line: int
    key: tuple[str, ...] | None
    """The key of the kernel's autotuner; None: the file has no autotuner."""
    key_line: int | None
    suggested: tuple[str, ...]
    missing: tuple[str, ...]
    """Suggested arguments that the existing key lacks."""
    idle: tuple[Idle, ...]
    perhaps: tuple[str, ...]
    """Constexpr parameters that only decide a branch. They belong in the key if one process passes several values."""
    tuned: tuple[str, ...]
    computed: tuple[str, ...]
    """Parameters that heuristics or host code compute from others."""
    arguments: tuple[KeyArgument, ...]
    notes: tuple[str, ...] = ()
    measured: tuple[Split, ...] = ()
    """Races at two values of one argument, all else equal: the cost of a launch with the other value's winner."""


def advise(
    path: Path, kernel: str = "", probe: ProbeFile | None = None, tuned: Iterable[str] = (), files: Files | None = None
) -> Advice:
    """Return the advice on the key of a kernel: each argument that decides how much work there is belongs in it.

    `tuned` names the parameters that configurations set. By default these are the names in the file's configurations
    and the probe file's knobs; without either, every constexpr parameter. `files` shares parsed files between calls.

    Raises:
        UsageError: the file cannot be read, or has no such kernel.
    """
    probe, files = probe or ProbeFile(), files if files is not None else Files()
    function = read_kernel(files, path, kernel or probe.kernel)
    known, decorators = parameters(function.node), host_code.read_decorators(function)
    notes = list(decorators.notes)
    turned = {*tuned} or {*decorators.tuned, *probe.knobs}
    derived = {name: host_code.inputs(text, probe) for name, text in probe.derive.items() if name in known}
    computed = {*decorators.heuristics, *(name for name in derived if known[name])} & known.keys()
    if not turned:
        turned = {name for name, constexpr in known.items() if constexpr} - computed
        if turned:
            notes.append(
                "no configurations are known here: every constexpr parameter is taken to be tuned (--tuned NAME,… says "
                "which are)"
            )
    turned |= {name for name in LAUNCH_OPTIONS if known.get(name)}
    uses: dict[str, list[Use]] = {
        name: list(found) for name, found in FlowSummaries(files, function).of(function).uses.items()
    }
    for name, use in (
        *host_code.grid_uses(function),
        *host_code.probe_file_uses(probe, frozenset(known)),
        *_behind(decorators, derived, uses, probe),
    ):
        if name in known and use not in uses.setdefault(name, []):
            uses[name].append(use)
    arguments, tensors = [], _tensors(function)
    for name, constexpr in known.items():
        if name not in turned and name not in computed:
            found = tuple(uses.get(name, ()))
            could = "" if constexpr else _could(name, found, probe)
            belongs = (
                name not in tensors and (not constexpr or any(use.kind != BRANCH for use in found)) and bool(found)
            )
            arguments.append(KeyArgument(name, constexpr, belongs, name in (decorators.key or ()), found, could))
    suggested = tuple(item.name for item in arguments if item.belongs)
    perhaps = tuple(item.name for item in arguments if item.constexpr and item.uses and not item.belongs)
    return Advice(
        kernel=function.name,
        file=str(path),
        line=function.node.lineno,
        key=decorators.key,
        key_line=decorators.line,
        suggested=suggested,
        missing=tuple(name for name in suggested if name not in decorators.key) if decorators.key is not None else (),
        idle=tuple(_idle(decorators.key or (), known, {*suggested, *perhaps, *computed}, turned, tensors)),
        perhaps=perhaps,
        tuned=tuple(name for name in known if name in turned),
        computed=tuple(name for name in known if name in computed),
        arguments=tuple(arguments),
        notes=tuple(notes),
    )


def _behind(
    decorators: host_code.KernelDecorators,
    derived: dict[str, frozenset[str]],
    uses: dict[str, list[Use]],
    probe: ProbeFile,
) -> Iterator[tuple[str, Use]]:
    """Yield the arguments that heuristics read, and those that derived parameters with a use depend on."""
    for reads, use in decorators.heuristics.values():
        yield from ((name, use) for name in sorted(reads))
    for parameter, reads in derived.items():
        if uses.get(parameter):
            use = Use(DERIVED, f"{parameter} = {probe.derive[parameter]}")
            yield from ((name, use) for name in sorted(reads))


def _idle(
    key: tuple[str, ...], known: dict[str, bool], deciding: set[str], turned: set[str], tensors: set[str]
) -> Iterator[Idle]:
    for name in key:
        if name not in known:
            yield Idle(name, "is no argument of the kernel: Triton 3.6 drops it silently, 3.9 refuses it")
        elif name in turned:
            yield Idle(name, "is tuned itself")
        elif name in tensors:
            yield Idle(name, "is a tensor: Triton puts its dtype into every key by itself")
        elif name not in deciding:
            yield Idle(name, "decides nothing here: each of its values is tuned again")


def _tensors(kernel: Function) -> set[str]:
    """Return the parameters that are pointers or descriptors, as far as the kernel's text shows."""
    source, _ = source_of(kernel.node, text_of(kernel.module.path))
    found = [Parameter(a.arg, False, annotation=annotation(a)) for a in declared(kernel.node)]
    constexprs = parameters(kernel.node)
    kinds = infer_argument_kinds(
        (FunctionSource(kernel.name, "", 1, source),), [p for p in found if not constexprs[p.name]]
    )
    return {name for name, kind in kinds.items() if kind in ("pointer", "descriptor")}


STRIDE = re.compile(r"(^|_)strides?(_|$|[a-z0-9])", re.IGNORECASE)
"""Names of parameters that are strides."""


def _could(name: str, uses: tuple[Use, ...], probe: ProbeFile) -> str:
    """Return why a run-time number could be a constexpr; "" if the text gives no reason."""
    values = host_code.few_values(name, probe) if probe.shapes else []
    distinct = sorted(set(values))
    shown = ", ".join(map(str, distinct[:4])) + (", …" if len(distinct) > 4 else "")
    over = f": {shown} over {len(values)} shapes of the probe file" if len(values) > 1 else ""
    kinds = {use.kind for use in uses}
    if LOOP in kinds and kinds <= {LOOP, TILE_COUNT} and len(distinct) <= 4:
        return f"bounds loops and nothing else; it could be a constexpr if it has few values{over}"
    if not uses and STRIDE.search(name) and len(values) > 1 and len(distinct) == 1 and distinct != [1]:
        return f"a stride with one value; it could be a constexpr{over}"
    return ""
