"""The jobs of a child: inspect a kernel file, compile a candidate and run it, apply a user's rule, find a device."""

from __future__ import annotations

import inspect
import math
import os
import sys
import sysconfig
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import msgspec

from gluonmap.model import exitcode, targets
from gluonmap.model.candidate import Config, Stage, Value
from gluonmap.model.inspection import Inspection, Parameter, SourceFile
from gluonmap.model.verdict import Reason
from gluonmap.source import syntax
from gluonmap.worker import choose, compile, launch, load, preload, progress, reach, vendor
from gluonmap.worker.classify import classify
from gluonmap.worker.protocol import COMPILED_FILE, EVIDENCE_FILE, STDERR_FILE, STDOUT_FILE, Evidence, Job

NO_VERDICT = 98
"""Exit status of a child with an invalid job, or of one that failed by its own fault while it executed a program. The
last line of its stderr is the message."""
_PLAIN = (int, float, str, bool, type(None))

_loaded: tuple[str, str, load.Kernel] | None = None
"""(target, file, kernel) that a warm server imported before it forked this child."""


def carry_out(job: Job, slot: progress.Slot) -> Evidence:
    """Do the job in this process and return its evidence. Only SystemExit and the death of the process propagate."""
    target = targets.find(job.target)
    if job.kind == "device":
        device, name = vendor.find_device()
        return Evidence(exitcode.PASS, device=device, device_name=name)
    assert job.file is not None
    kernel: load.Kernel | None = None
    started = time.perf_counter()
    try:
        if job.kind == "inspect":
            return _inspect(job, target, slot)
        kernel = _kernel(job, target, slot)
        if job.choice is not None:
            return choose.chosen(job.choice, kernel, target)
        progress.follow_front_end(slot)
        started = time.perf_counter()
        assert job.candidate is not None
        evidence = compile.compile_candidate(kernel, job.candidate, target, slot, job.known_ir)
        if job.bench is None or evidence.status != exitcode.PASS:
            return evidence
        _write(os.environ["TMPDIR"], COMPILED_FILE, evidence)
        if job.candidate.stage is Stage.RUN:
            from gluonmap.worker.execute import Execute  # weight of numpy and of the model of the hardware

            try:
                return Execute(job, kernel, target, slot, evidence).run()
            except Exception as error:  # our own fault: the candidate compiled, and no kernel raises in the model
                traceback.print_exc()
                raise SystemExit(NO_VERDICT) from error
        return launch.Launch(job, kernel, target, slot, evidence).run()
    except load.KernelNotFound as missing:
        return Evidence(
            exitcode.REJECTED_FRONT_END, reason=Reason("KernelNotFound", "\n".join(missing.names), "import")
        )
    except compile.BadExpression as error:
        print(error, file=sys.stderr, flush=True)
        raise SystemExit(NO_VERDICT) from error
    except Exception as error:
        evidence = classify(error, slot, kernel.jit if kernel else None, job.file.path)
        seconds = time.perf_counter() - started
        traceback.print_exc()
        return msgspec.structs.replace(evidence, compile_seconds=seconds)


def write_evidence(folder: str, evidence: Evidence) -> None:
    """Write the evidence and rename it into place, so that the file is complete or absent."""
    sys.stdout.flush() if not getattr(sys.stdout, "closed", True) else None
    _write(folder, EVIDENCE_FILE, evidence)


def _write(folder: str, name: str, evidence: Evidence) -> None:
    path = Path(folder) / name
    path.with_suffix(".part").write_bytes(msgspec.json.encode(evidence))
    path.with_suffix(".part").rename(path)


def warm_up(job: Job) -> None:
    """Import the kernel, compile the job's candidate in this process and drop the result.

    The front end of the children then finds every reachable function parsed and hashed.
    """
    global _loaded
    target = targets.find(job.target)
    slot = progress.Slot()
    kernel = _kernel(job, target, slot)
    assert job.file and job.candidate
    compile.compile_candidate(kernel, job.candidate, target, slot)
    kernel.jit.device_caches.clear()
    _loaded = (job.target, job.file.path, kernel)


def _kernel(job: Job, target: targets.Target, slot: progress.Slot) -> load.Kernel:
    assert job.file is not None
    if _loaded and _loaded[:2] == (job.target, job.file.path):
        return _loaded[2]
    slot.phase("import")
    preload.pretend(target)
    module, _ = load.load_module(job.file)
    return load.find_kernel(module, job.file.kernel)


def _inspect(job: Job, target: targets.Target, slot: progress.Slot) -> Evidence:
    assert job.file is not None
    before = set(sys.modules)
    threads, folder = threading.active_count(), Path(os.environ["TMPDIR"])
    slot.phase("import")
    preload.pretend(target)
    module, notes = load.load_module(job.file)
    quiet = threading.active_count() == threads and not _children() and not _has_spoken(folder)
    slot.phase("inspect")
    kernel = load.find_kernel(module, job.file.kernel)
    functions = reach.sources(kernel.jit)
    kernels = load.kernels_in(module)
    inspection = Inspection(
        kernel=kernel.name,
        function=kernel.jit.fn.__name__,
        kernels=tuple(dict.fromkeys(k.name for k in kernels.values())),
        entries=tuple(k.name for k in load.entries(kernels)),
        gluon=bool(kernel.jit.is_gluon()),
        parameters=tuple(_parameters(kernel)),
        functions=functions,
        files=_files(before, {f.fn.__code__.co_filename for f in reach.closure(kernel.jit)}, job.file.path),
        autotune=tuple(_plain_config(c) for c in kernel.configs),
        quiet=quiet,
        notes=tuple(notes),
        options={n: v if isinstance(v, _PLAIN) else None for n, v in compile.option_names(target).items()},
    )
    return Evidence(exitcode.PASS, inspection=inspection)


def _plain_config(config: dict[str, Any]) -> Config:
    return {n: _spelled(v) for n, v in config.items()}


def _parameters(kernel: load.Kernel) -> list[Parameter]:
    heuristic = {name for values in kernel.heuristics for name in values}
    found = []
    for parameter in kernel.jit.params:
        default = kernel.jit.signature.parameters[parameter.name].default
        default = getattr(default, "value", default)  # unwrap a constexpr
        has_default = default is not inspect.Parameter.empty
        found.append(
            Parameter(
                name=parameter.name,
                constexpr=bool(parameter.is_constexpr),
                default=_spelled(default) if has_default else None,
                has_default=has_default,
                annotation=str(parameter.annotation or ""),
                heuristic=parameter.name in heuristic,
            )
        )
    return found


def _spelled(value: Any) -> Value:
    """Return a value for JSON. Other values become an expression that recreates them in the kernel's module."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{compile.PYTHON_VALUE}float({str(value)!r})"
    return value if isinstance(value, _PLAIN) else f"{compile.PYTHON_VALUE}{value!r}"


_UNREAD = ("triton", "torch", "numpy", "multiprocess", "msgspec", "elftools", "msgpack")
"""Packages whose files are not listed: Triton has a separate identity, the others do not affect a compile."""


def _files(before: set[str], reached: set[str], own: str) -> tuple[SourceFile, ...]:
    """Return every source file that the import read, except the standard library and a few large packages.

    The kernel's own file and those of the reached functions are always included.
    """
    standard = Path(sysconfig.get_path("stdlib"))
    packages = standard / "site-packages", standard / "dist-packages"
    paths = {own}
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None)
        if path and path.endswith(".py") and name.partition(".")[0] not in _UNREAD:
            file = Path(path)
            if not file.is_relative_to(standard) or any(file.is_relative_to(p) for p in packages):
                paths.add(path)
    paths |= {path for path in reached if not reach.in_triton(path)}
    return tuple(SourceFile(p, syntax.tree_hash(Path(p).read_bytes())) for p in sorted(paths) if Path(p).is_file())


def _children() -> bool:
    try:
        return bool(Path("/proc/thread-self/children").read_text().split())
    except OSError:
        return False


def _has_spoken(folder: Path) -> bool:
    """Return whether the import wrote to stdout or stderr (files of this child), or replaced them."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (AttributeError, ValueError, OSError):
        return True
    return any((folder / n).is_file() and (folder / n).stat().st_size > 0 for n in (STDOUT_FILE, STDERR_FILE))
