"""Probe files and shipped configuration files, which users write for a kernel. Nothing in them is executed.

A probe file is a Python module whose declarations (`KNOBS`, `BASELINE`, …) are literals; its functions (`inputs`,
`reference`) are for the later stages. `docs/probe-files.md` lists the names.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError

RAGGED = "ragged"
"""The regime whose sizes no tile divides; every check runs it too."""

RUN = "run"
"""The regime of a run on the CPU; its sizes may be expressions over the configuration."""


@dataclass(frozen=True, slots=True)
class ProbeFile:
    """Declarations of a probe file, merged for one target."""

    path: str = ""
    kernel: str = ""
    knobs: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    baseline: Config = field(default_factory=dict)
    args: dict[str, Value] = field(default_factory=dict)
    shapes: dict[str, dict[str, Value]] = field(default_factory=dict)
    derive: dict[str, str] = field(default_factory=dict)
    grid: str = ""
    restrict: tuple[str, ...] = ()
    """Conditions on a configuration, as expressions."""
    targets: tuple[str, ...] = ()
    """Targets that the file is for; empty: any."""
    tolerance: dict[str, float] = field(default_factory=dict)
    """Output → relative error that a check accepts."""
    functions: tuple[str, ...] = ()
    """Functions that the file defines: `inputs` and `reference` are for the stages beyond the compile."""
    tree: str = ""
    """Hash of the file's syntax tree without the declarations that become part of every question."""
    export: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Format of `gluonmap export` -> the values that name its files."""

    def for_kernel(self, kernel: str) -> ProbeFile:
        """Return this probe file if it is about `kernel` or names no kernel, else an empty one."""
        return self if not self.kernel or self.kernel == kernel else ProbeFile()


_DECLARATIONS = (
    *("KERNEL", "KNOBS", "BASELINE", "ARGS", "SHAPES", "DERIVE", "GRID", "RESTRICT", "TARGETS", "TOLERANCE"),
    "EXPORT",
)


def read_probe(path: Path, target: str) -> ProbeFile:
    """Return the declarations of a probe file for `target`, with the entry of `TARGETS` merged in.

    Raises:
        UsageError: the file cannot be read or parsed, or a declaration is no literal or of the wrong kind.
    """
    tree = _tree(path)
    declared = _literals(path, tree)
    by_target = _mapping(path, declared.get("TARGETS", {}), "TARGETS")
    special = _mapping(path, by_target.get(target, {}), f"TARGETS[{target!r}]")
    if unknown := set(special) - set(_DECLARATIONS):
        raise UsageError(
            f"{path}: TARGETS[{target!r}] declares {', '.join(sorted(unknown))}; it knows {', '.join(_DECLARATIONS)}."
        )

    def merged(name: str) -> dict[str, Any]:
        return _mapping(path, declared.get(name, {}), name) | _mapping(path, special.get(name, {}), name)

    knobs = {k: _domain(path, k, v) for k, v in merged("KNOBS").items()}
    return ProbeFile(
        path=str(path),
        kernel=str(special.get("KERNEL", declared.get("KERNEL", ""))),
        knobs=knobs,
        baseline=_plain_values(path, "BASELINE", merged("BASELINE")),
        args=_plain_values(path, "ARGS", merged("ARGS")),
        shapes={
            k: _plain_values(path, f"SHAPES[{k!r}]", _mapping(path, v, f"SHAPES[{k!r}]"))
            for k, v in merged("SHAPES").items()
        },
        derive={k: str(v) for k, v in merged("DERIVE").items()},
        grid=str(special.get("GRID", declared.get("GRID", ""))),
        restrict=_texts(path, "RESTRICT", special.get("RESTRICT", declared.get("RESTRICT", []))),
        targets=tuple(by_target),
        tolerance=_tolerances(path, merged("TOLERANCE")),
        functions=tuple(node.name for node in tree.body if isinstance(node, ast.FunctionDef)),
        tree=_code_hash(tree),
        export={k: _mapping(path, v, f"EXPORT[{k!r}]") for k, v in merged("EXPORT").items()},
    )


def _code_hash(tree: ast.Module) -> str:
    hidden = {*_DECLARATIONS} - {"ARGS"}  # the file's functions read ARGS, so it stays in the hash
    code = [
        ast.dump(node)
        for node in tree.body
        if not (isinstance(node, ast.Assign) and {t.id for t in node.targets if isinstance(t, ast.Name)} & hidden)
    ]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()[:16]


def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the probe file {path}: {error.strerror}.") from error
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"the probe file {path} is no Python: {error}.") from error


def _literals(path: Path, tree: ast.Module) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for name in (t.id for t in targets if isinstance(t, ast.Name) and t.id in _DECLARATIONS):
            try:
                found[name] = ast.literal_eval(node.value)
            except ValueError as error:
                raise UsageError(
                    f"{path}:{node.lineno}: {name} must be written as a literal (numbers, texts, lists, dicts): "
                    "a probe file is read, never run."
                ) from error
    return found


def _mapping(path: Path, value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {name} must be a dict, not {value!r}.")
    return {str(k): v for k, v in value.items()}


def _texts(path: Path, name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise UsageError(f"{path}: {name} must be a list of expressions, not {value!r}.")
    return tuple(value)


def _tolerances(path: Path, declared: dict[str, Any]) -> dict[str, float]:
    for name, value in declared.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
            raise UsageError(f"{path}: TOLERANCE of {name} must be a relative error such as 1e-3, not {value!r}.")
    return {name: float(value) for name, value in declared.items()}


def _domain(path: Path, knob: str, values: Any) -> tuple[Value, ...]:
    if not isinstance(values, list | tuple):
        raise UsageError(f"{path}: the domain of {knob} must be a list, not {values!r}.")
    for value in values:
        _plain_values(path, "KNOBS", {knob: value})
    return tuple(values)


def _plain_values(path: Path, name: str, mapping: dict[str, Any]) -> dict[str, Value]:
    for key, value in mapping.items():
        if not isinstance(value, int | float | str | bool | None):
            raise UsageError(
                f"{path}: {name} gives {key} the value {value!r}; numbers, texts, True, False and None can be."
            )
    return mapping


def find_probe(kernel_file: Path, root: Path) -> Path | None:
    """Return the probe file of the kernel's name: below probes/ as below kernels/, in probes/, or next to it."""
    below = below_kernels(kernel_file)
    places = [root / "probes" / below, root / "probes" / below.name]
    anchor = _kernels_folder(kernel_file)
    if anchor:
        places += [anchor.parent / "probes" / below, anchor.parent / "probes" / below.name]
    places.append(kernel_file.with_name(f"{kernel_file.stem}_probe.py"))
    places.append(kernel_file.with_name(f"probe_{kernel_file.name}"))
    return next((p for p in places if p.is_file() and p.resolve() != kernel_file.resolve()), None)


def below_kernels(kernel_file: Path) -> Path:
    """Return the kernel file's path below its `kernels/` folder; its bare name if there is no such folder."""
    anchor = _kernels_folder(kernel_file)
    return kernel_file.relative_to(anchor) if anchor else Path(kernel_file.name)


def _kernels_folder(kernel_file: Path) -> Path | None:
    return next((p for p in kernel_file.parents if p.name == "kernels"), None)


def read_config(text: str, shape: dict[str, Value]) -> tuple[Config, str]:
    """Return one configuration of an aiter or vLLM style JSON file ("FILE" or "FILE#ENTRY"), and its entry.

    A flat file is one configuration. Of several entries: the named one, else "any", else the one for the shape's M
    (vLLM: the nearest number; aiter: the smallest M_LEQ_x that holds it), else the first.

    Raises:
        UsageError: no such file, no JSON, no such entry.
    """
    name, _, wanted = text.partition("#")
    entries = read_entries(name)
    if list(entries) == [""]:
        return _plain(name, entries[""]), ""
    if wanted and wanted not in entries:
        raise UsageError(f"the configuration file {name} has no entry {wanted!r} (it has {', '.join(entries)}).")
    chosen = wanted or _entry_for(entries, shape)
    return _plain(name, entries[chosen]), chosen


def read_entries(name: str) -> dict[str, dict[str, Any]]:
    """Return every entry of an aiter or vLLM style JSON file as written; a flat file is one entry, named "".

    Entries within entries are named with slashes: "gmm/default". Texts next to entries are comments.

    Raises:
        UsageError: no such file, no JSON, nothing in it.
    """
    try:
        content = msgspec.json.decode(Path(name).read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the configuration file {name}: {error.strerror}.") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"the configuration file {name} is no JSON: {error}.") from error
    if not isinstance(content, dict) or not content:
        raise UsageError(f"the configuration file {name} holds no configuration (a JSON object was expected).")
    return dict(_entries(content, ""))


def _entries(content: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    inner = {key: value for key, value in content.items() if isinstance(value, dict)}
    if not inner or not all(isinstance(value, dict | str) for value in content.values()):
        yield path, content
        return
    for key, value in inner.items():
        yield from _entries(value, f"{path}/{key}" if path else key)


def _entry_for(entries: dict[str, Any], shape: dict[str, Value]) -> str:
    if "any" in entries:
        return "any"
    m = shape.get("M")
    numbers = [k for k in entries if k.isdigit()]
    if numbers and isinstance(m, int):
        return min(numbers, key=lambda k: abs(int(k) - m))
    bounds = [k for k in entries if k.startswith("M_LEQ_") and k[6:].isdigit()]
    if bounds and isinstance(m, int):
        holding = [k for k in bounds if int(k[6:]) >= m]
        if holding:
            return min(holding, key=lambda k: int(k[6:]))
    return next(iter(entries))


def _plain(name: str, config: dict[str, Any]) -> Config:
    bad = {k: v for k, v in config.items() if isinstance(v, dict | list)}
    if bad:
        raise UsageError(f"the configuration file {name} gives {next(iter(bad))} a value that is no number or text.")
    return dict(config)
