"""Rules about the autotuner: its configurations, its key, and the grid that the winner is launched with."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from gluonmap.lint.config_count import UNKNOWN, ConfigCount, ConfigCounter
from gluonmap.lint.findings import LintFinding, LintSettings
from gluonmap.lint.flat_trees import Body, Local
from gluonmap.lint.host_code import read_decorators
from gluonmap.lint.kernel_functions import Function
from gluonmap.lint.key_advice import KeyArgument, advise
from gluonmap.lint.linted_file import KernelLaunch, LintedFile, decorator
from gluonmap.lint.nodes import argument, call_name, full_name, last_name, written
from gluonmap.lint.parameter_flow import GRID, HEURISTIC, LOOP, MASK, TILE_COUNT, Use
from gluonmap.model.errors import UsageError
from gluonmap.model.targets import LAUNCH_OPTIONS, TARGETS
from gluonmap.model.wording import listed_briefly
from gluonmap.spec import probe_file

_AMD_KNOBS = frozenset(
    option for target in TARGETS if target.vendor == "AMD" for option in target.option_domains
) - frozenset(LAUNCH_OPTIONS)
# Triton 3.6.0 and 3.9.0: Config's own values of these three win over its dict; maxnreg has no default that could.
_OVERRIDDEN = ("num_warps", "num_stages", "num_ctas")


def check(subject: LintedFile, settings: LintSettings) -> Iterator[LintFinding]:
    """Yield the findings about the file's configurations, keys and grids."""
    for call in subject.flat.calls:
        if last_name(call) == "Config":
            yield from _config(subject, call)
    for kernel in subject.kernels:
        tuner = decorator(kernel, "autotune")
        if tuner is not None:
            many = _counted(subject, tuner)
            yield from _list(subject, kernel, tuner, many, settings)
            if "GM103" in settings.codes and many.high != 1:
                yield from _key(subject, kernel, tuner)
    if "autotune" in subject.text or any(launch.kernel.module is not subject.module for launch in subject.launches):
        yield from _grids(subject)


# ---- configurations ------------------------------------------------------------------------------------------------


def _config(subject: LintedFile, call: ast.Call) -> Iterator[LintFinding]:
    if full_name(call_name(call), subject.module).split(".")[0] != "triton":
        return
    for keyword in call.keywords:
        if keyword.arg in _AMD_KNOBS:
            yield subject.finding(
                "GM101",
                keyword,
                f"triton.Config takes no keyword {keyword.arg}: it raises TypeError when the file is imported",
                f'write it into the first argument: Config({{…, "{keyword.arg}": {written(keyword.value, 20)}}}, …)',
            )
    knobs = argument(call, "kwargs", 0)
    for key, value in zip(knobs.keys, knobs.values, strict=True) if isinstance(knobs, ast.Dict) else ():
        if isinstance(key, ast.Constant) and key.value in _OVERRIDDEN:
            name = str(key.value)
            yield subject.finding(
                "GM102",
                key,
                f"{name} in the dict of triton.Config never arrives: Config's own {name}, given or not, overrides it",
                f"give it by keyword: Config({{…}}, {name}={written(value, 20)})",
            )


def _counted(subject: LintedFile, tuner: ast.Call) -> ConfigCount:
    configs = argument(tuner, "configs", 0)
    return (
        ConfigCounter(subject.trees, subject.module, subject.globals).count(configs) if configs is not None else UNKNOWN
    )


def _list(
    subject: LintedFile, kernel: Function, tuner: ast.Call, many: ConfigCount, settings: LintSettings
) -> Iterator[LintFinding]:
    configs = argument(tuner, "configs", 0) or tuner
    if many.high == 1:  # an empty list is mostly filled elsewhere, so it is no finding
        yield subject.finding(
            "GM105",
            configs,
            f"{kernel.name} is tuned over one configuration: nothing is raced, and key= has no effect",
            "add the alternatives, or drop @triton.autotune and give the values at the launch",
            kernel.name,
        )
    pruned = any(keyword.arg == "prune_configs_by" for keyword in tuner.keywords)
    if many.low > settings.budget and not pruned:
        yield subject.finding(
            "GM106",
            configs,
            f"{kernel.name} is tuned over {many.low:,} configurations, more than {settings.budget:,}: all are "
            "compiled and timed, and timed again for every new key",
            "cut the list before the race: prune_configs_by=, or the configurations of a map (gluonmap probe)",
            kernel.name,
        )


# ---- the key -------------------------------------------------------------------------------------------------------


def _key(subject: LintedFile, kernel: Function, call: ast.Call) -> Iterator[LintFinding]:
    path = subject.module.path
    try:
        advice = advise(path, kernel.name, probe_of(path, kernel.name), files=subject.trees.files)
    except UsageError:  # an inner function: `read_kernel` sees top-level functions alone
        return
    varying = _Varying(subject, kernel, advice.key or ())
    missing = [(item.name, use) for item in advice.arguments if item.name in advice.missing if (use := _deciding(item))]
    missing = [(name, use) for name, use in missing if varying(name)]
    if missing:
        names = [name for name, _ in missing]
        why = "; ".join([*(f"{name}: {_place(use)}" for name, use in missing[:3]), *(["…"] if missing[3:] else [])])
        yield subject.finding(
            "GM103",
            argument(call, "key", 1) or call,
            f"key= of {kernel.name} misses {listed_briefly(names)} ({why}): a call with another value is served "
            "the winner of the first",
            f"add {listed_briefly([repr(name) for name in names])}, or a coarser argument that separates the sizes",
            kernel.name,
        )


def probe_of(path: Path, kernel: str) -> probe_file.ProbeFile:
    """Return the probe file of a kernel; an empty one if there is none, or none that can be read."""
    probe = probe_file.find_probe(path, Path.cwd())
    try:
        return probe_file.read_probe(probe, "").for_kernel(kernel) if probe else probe_file.ProbeFile()
    except UsageError:
        return probe_file.ProbeFile()


_STRONG = (LOOP, TILE_COUNT, GRID, HEURISTIC, MASK)
"""Kinds of use, the one that a finding names first at the front."""


def _deciding(item: KeyArgument) -> Use | None:
    """Return the use of an argument that explains it best; None if it decides branches alone."""
    uses = [use for use in item.uses if use.kind in _STRONG]
    if item.constexpr:  # `HEADS // GROUPS` of two constexprs is a ratio, not a number of tiles
        uses = [use for use in uses if use.kind != TILE_COUNT or "cdiv" in use.text or "- 1" in use.text]
    return min(uses, key=lambda use: _STRONG.index(use.kind), default=None)


def _place(use: Use) -> str:
    at = f"{use.file}:{use.line}" if use.file else f"line {use.line}" if use.line is not None else "the probe file"
    return f"{use.kind} in {at}"


class _Varying:
    """Test of whether an argument can change while the key stays the same, by the launches in the file."""

    def __init__(self, subject: LintedFile, kernel: Function, key: Sequence[str]) -> None:
        self.launches = [launch for launch in subject.launches if launch.kernel.node is kernel.node]
        self.module, self.key, self.globals = subject.module, key, subject.globals

    def __call__(self, name: str) -> bool:
        known = [launch for launch in self.launches if name in launch.given]
        return not known or any(self._varies(launch, name) for launch in known)

    def _varies(self, launch: KernelLaunch, name: str) -> bool:
        keyed = [launch.given[key] for key in self.key if key in launch.given]
        fixed = {written(node) for node in keyed} | self._atoms(keyed, launch.names, frozenset())
        return bool(self._atoms([launch.given[name]], launch.names, frozenset(fixed)))

    def _atoms(self, nodes: list[ast.expr], names: Local, fixed: frozenset[str]) -> set[str]:
        """Return the parts of host values that can vary: parameters, sizes, and names without a known value."""
        atoms: set[str] = set()
        pending, seen = list(nodes), set[str]()
        while pending:
            node = pending.pop()
            if (text := written(node)) in fixed:
                continue
            match node:
                case ast.Name(id=name):
                    values = names.values.get(name, [])
                    one_for_all = not values and (name in self.globals.values or name in self.module.imports)
                    if one_for_all or (values and name not in names.opaque and all(map(_is_mode, values))):
                        continue
                    value = names.value(name)
                    if value is None or name in seen:
                        atoms.add(name)
                    else:
                        seen.add(name)
                        pending.append(value)
                case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="get_device_properties"))):
                    continue  # the same in all calls on this machine
                case ast.Attribute() | ast.Subscript(value=ast.Attribute()):
                    atoms.add(text)
                case ast.Call(func=ast.Attribute(attr="bit_length", value=value)):
                    pending.append(value)
                case ast.Call() if not self._is_function(node):
                    atoms.add(text)
                case ast.Call(args=args, keywords=keywords):
                    pending += [*args, *(keyword.value for keyword in keywords)]
                case _:
                    pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return atoms

    def _is_function(self, call: ast.Call) -> bool:
        """Return whether the result depends on the arguments alone. A method's result depends on its object too."""
        first, dot, _ = call_name(call).partition(".")
        return bool(first) and (not dot or first in self.module.imports or first in ("math", "torch", "triton"))


def _is_mode(value: ast.expr) -> bool:
    """Return whether a value is one of a few constants in the code: a mode, not a size."""
    match value:
        case ast.Constant():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return _is_mode(body) and _is_mode(orelse)
    return False


# ---- the grid ------------------------------------------------------------------------------------------------------


def _grids(subject: LintedFile) -> Iterator[LintFinding]:
    for launch in subject.launches:
        if decorator(launch.kernel, "autotune") is None or not _is_fixed(launch.grid, launch.names):
            continue
        tuned = read_decorators(launch.kernel).tuned
        steps = [name for name in _program_steps(subject.body(launch.kernel)) if name in tuned]
        if steps:
            yield subject.finding(
                "GM104",
                launch.grid,
                f"the grid of {launch.kernel.name} is a fixed tuple, while its tuner chooses {listed_briefly(steps)}: "
                f"programs times {steps[0]} is not the size of the work",
                f'make it a function of the configuration: lambda META: (triton.cdiv(…, META["{steps[0]}"]), …)',
                launch.kernel.name,
            )


def _is_fixed(grid: ast.expr, names: Local) -> bool:
    """Return whether the grid is a tuple, so that no configuration can change it."""
    if isinstance(grid, ast.Name):
        return grid.id not in names.functions and isinstance(names.value(grid.id), ast.Tuple)
    return isinstance(grid, ast.Tuple)


def _program_steps(body: Body) -> list[str]:
    """Return the constexpr parameters that multiply a program's place in the grid, in the order of the signature.

    The list is empty if programs stride by `num_programs`: any grid then covers the work.
    """
    if any(last_name(call) == "num_programs" for call in body.calls):
        return []
    steps: set[str] = set()
    for node in body.nodes:
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                for place, step in ((left, right), (right, left)):
                    if isinstance(step, ast.Name) and body.parameters.get(step.id) and _is_place(place, body.names):
                        steps.add(step.id)
    return [name for name in body.parameters if name in steps]


def _is_place(node: ast.expr, names: Local, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether an expression depends on `program_id`, and not on the variable of a loop."""
    match node:
        case ast.Name(id=name):
            if name in seen or name in names.loops:
                return False
            return any(_is_place(value, names, seen | {name}) for value in names.values.get(name, []))
        case ast.Call(args=args):
            return last_name(node) == "program_id" or any(_is_place(part, names, seen) for part in args)
        case ast.BinOp(left=left, right=right):
            return _is_place(left, names, seen) or _is_place(right, names, seen)
        case ast.Tuple(elts=elements):
            return any(_is_place(part, names, seen) for part in elements)
    return False
