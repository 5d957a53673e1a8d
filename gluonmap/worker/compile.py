"""The compile of one candidate in this process, observed stage by stage."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gluonmap.model import exitcode, targets
from gluonmap.model.candidate import Candidate, Proof
from gluonmap.model.verdict import Program, Reason, Resources
from gluonmap.worker import arguments, fingerprint
from gluonmap.worker.load import Kernel
from gluonmap.worker.progress import Slot
from gluonmap.worker.protocol import Evidence

BINARY = {"hip": "hsaco", "cuda": "cubin"}
PYTHON_VALUE = "py:"
"""Prefix of a configuration's value that is an expression over the kernel's module (a layout, a dtype)."""


class Enough(BaseException):
    """Ends Triton's compile when the evidence is complete before machine code; carries the evidence.

    A BaseException, because a front end that catches Exception must not swallow it.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence


class KnownProgram(msgspec.Struct, frozen=True):
    """The program that an LLVM IR became. It is stored by the hash of the IR."""

    program: Program
    resources: Resources


def compile_candidate(
    kernel: Kernel, candidate: Candidate, target: targets.Target, slot: Slot, known_ir: str = ""
) -> Evidence:
    """Return the evidence of a finished compile. Exceptions of the front end and the passes propagate."""
    watch = _Watch(target, candidate.proof, slot, known_ir)
    slot.phase("arguments")
    positional, keywords = bind(kernel, candidate, target)
    slot.phase("front end")
    started = time.perf_counter()
    try:
        with watch:
            compiled = kernel.jit.warmup(*positional, grid=candidate.grid or (1,), **keywords)
    except Enough as enough:
        return msgspec.structs.replace(enough.evidence, compile_seconds=time.perf_counter() - started)
    seconds = time.perf_counter() - started
    binary = compiled.asm[BINARY[target.backend]]
    program, used = fingerprint.fingerprint(binary, compiled.metadata, watch.ir, target)
    if over := targets.over_budget(target, used):
        return Evidence(exitcode.NO_RESOURCES, seconds, Reason("budget", over), resources=used)
    return Evidence(exitcode.PASS, seconds, program=program, resources=used)


def bind(
    kernel: Kernel, candidate: Candidate, target: targets.Target, args: Mapping[str, Any] | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the keyword arguments of a launch.

    A parameter with the name of a compiler option must be a keyword, since Triton reads the options from the keywords.
    So the positional arguments end before the first such parameter. `args`: the real run-time arguments instead of
    stand-ins.
    """
    stand_ins = {n: arguments.make(v, target.backend) for n, v in candidate.args.items()} if args is None else args
    given: dict[str, Any] = dict(stand_ins)
    given |= {n: value_of(n, v, kernel) for n, v in candidate.config.items()}
    for values in kernel.heuristics:
        for name, function in values.items():
            try:
                given[name] = function(dict(given))
            except Exception as error:
                raise BadExpression(
                    f"the heuristic of {name} fails on the stand-in arguments: {type(error).__name__}: {error}"
                ) from error
    options = set(option_names(target))
    names = [n for n, p in kernel.jit.signature.parameters.items() if p.kind is not p.KEYWORD_ONLY]
    first = next((i for i, n in enumerate(names) if n in options or n not in given), len(names))
    positional = [given.pop(n) for n in names[:first]]
    return positional, given


class BadExpression(Exception):
    """A `py:` value is a mistake of the probe. It is no evidence about the kernel."""


def value_of(name: str, value: Any, kernel: Kernel) -> Any:
    """Return a configuration's value as the kernel gets it.

    Raises:
        BadExpression: the text is not an expression, or names something that does not exist. An exception of a
            layout's constructor propagates: a launch with this value would fail as well.
    """
    if not isinstance(value, str) or not value.startswith(PYTHON_VALUE):
        return value
    try:
        return eval(value[len(PYTHON_VALUE) :], _names(kernel))  # text of the user's own probe, in a child process
    except (NameError, AttributeError, LookupError, SyntaxError) as error:
        raise BadExpression(f"{name}={value!r} is wrong: {type(error).__name__}: {error}") from error


def _names(kernel: Kernel) -> dict[str, Any]:
    """Return the names in a `py:` expression: Triton, Gluon's language and layouts, and the kernel's module."""
    import triton  # weight of Triton
    from triton import language as tl
    from triton.experimental.gluon import language as gl

    layouts = {n: getattr(gl, n) for n in dir(gl) if n.endswith("Layout")}
    return {"triton": triton, "tl": tl, "gl": gl, **layouts, **vars(kernel.module)}


def option_names(target: targets.Target) -> dict[str, Any]:
    """Return the back end's options with their defaults, as the installed Triton declares them."""
    if target.backend == "hip":  # the imports are here for the weight of Triton
        from triton.backends.amd.compiler import HIPOptions as Options
    else:
        from triton.backends.nvidia.compiler import CUDAOptions as Options
    return {f.name: f.default for f in dataclasses.fields(Options)}


class _Watch:
    """An observer of Triton's compile stages. It stops the compile once the answer is known."""

    def __init__(self, target: targets.Target, proof: Proof, slot: Slot, known_ir: str) -> None:
        self.target, self.proof, self.slot = target, proof, slot
        self.known_ir = Path(known_ir) if known_ir else None
        self.ir = ""

    def __enter__(self) -> _Watch:
        from triton.backends import backends  # weight of Triton

        self._backend: Any = backends["amd" if self.target.backend == "hip" else "nvidia"].compiler
        self._add_stages = self._backend.add_stages
        watch, original = self, self._add_stages

        def add_stages(backend: Any, stages: dict[str, Any], options: Any, *rest: Any) -> None:
            original(backend, stages, options, *rest)
            for name, stage in list(stages.items()):
                stages[name] = watch._noted(name, stage, options)

        self._backend.add_stages = add_stages
        return self

    def __exit__(self, *_: object) -> None:
        self._backend.add_stages = self._add_stages

    def _noted(self, name: str, stage: Any, options: Any) -> Any:
        def run(module: Any, metadata: Any) -> Any:
            self.slot.phase(name)
            result = stage(module, metadata)
            if name == "llir":
                self._look(result, metadata, options)
            return result

        return run

    def _look(self, ir: Any, metadata: Any, options: Any) -> None:
        """Raise `Enough` if the finished LLVM IR exceeds a budget, or became a known program."""
        used = fingerprint.launch_resources(metadata, self.target)
        if over := targets.over_budget(self.target, used):
            raise Enough(Evidence(exitcode.NO_RESOURCES, reason=Reason("budget", over, "llir"), resources=used))
        self.ir = fingerprint.ir_hash(str(ir), options)
        if self.proof is Proof.IR and self.known_ir:
            stored = self.known_ir / self.ir
            if stored.is_file():
                known = msgspec.json.decode(stored.read_bytes(), type=KnownProgram)
                program = msgspec.structs.replace(known.program, ir=self.ir, proof=Proof.IR)
                raise Enough(Evidence(exitcode.PASS, program=program, resources=known.resources))
