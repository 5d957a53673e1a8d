"""One candidate executed on the CPU: its machine code, on small problems, and the evidence.

The steps are those of a launch on a device, with `gluonmap.cdna` in place of the device: import the probe file, make
inputs, run the calls, compare. If the probe file has no reference, the baseline's results are the reference.
"""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import itertools
import os
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gluonmap import cdna
from gluonmap.cdna.launch import STEPS
from gluonmap.cdna.text import Line
from gluonmap.model import exitcode
from gluonmap.model.candidate import Candidate, Value
from gluonmap.model.targets import Target
from gluonmap.model.verdict import Figures, SanitizerFinding
from gluonmap.worker import check, compile, fingerprint, vendor
from gluonmap.worker.launch import DEFAULT, Launch, Stop, no_inputs, said
from gluonmap.worker.load import Kernel
from gluonmap.worker.progress import Slot
from gluonmap.worker.protocol import Evidence, Job
from gluonmap.worker.reach import in_triton
from gluonmap.worker.tensors import Guarded, span
from gluonmap.worker.trace import Trace

OTHER_PROGRAM = " (another program than at the launch's own sizes)"
"""Suffix of the user's sizes if the compiler specialises differently for them."""
THOROUGH_STEPS = 10 * STEPS
"""Instructions that a launch of a thorough run may execute."""
_ATOMIC = re.compile(r"^\s*\w+_atomic_", re.MULTILINE)
"""An atomic instruction in assembly text. Names and paths in the text do not match."""


class Processor(vendor.Vendor):
    """The CPU in place of a device: tensors are in its memory, and nothing is asynchronous."""

    device = "cpu"

    def synchronize(self) -> None:
        return None

    def failure(self, error: BaseException, *, launched: bool) -> vendor.Failure:
        if isinstance(error, MemoryError):
            return vendor.Failure(exitcode.NO_RESOURCES, "host memory")
        return super().failure(error, launched=False)


class Execute(Launch):
    """An execution of one compiled candidate: its calls, with several seeds and orders of waves."""

    def __init__(self, job: Job, kernel: Kernel, target: Target, slot: Slot, compiled: Evidence) -> None:
        super().__init__(job, kernel, target, slot, compiled, Processor())
        self.watch = self.trial.watch
        self.sizes: dict[str, str] = {}
        self._programs: dict[str, str] = {DEFAULT: compiled.program.digest if compiled.program else ""}
        """Name of the sizes → digest of the compiled program."""
        self._prepared: dict[int, tuple[Any, cdna.PreparedKernel]] = {}
        """id of a compiled kernel → the kernel and its prepared form. Keeping the kernel keeps its id unique."""
        self._launches = 0
        """Launches of the present case."""
        self._case = 0
        """Number of the present case. Each case has its own order of waves."""
        self._label = DEFAULT
        """Name of the present sizes."""
        self._has_atomics = False
        """Some program has atomics. Their order is not defined, so neither are the last bits of their sums."""
        self._store: Path | None = None
        """File for the evidence of this program on these inputs."""
        self._trace = Trace(self.bench.trace) if self.bench.trace else None
        if self.trial.baseline:
            self.checker.meet_baseline()

    def _run(self) -> None:
        try:
            self._run_cases()
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
                raise _no_memory() from error
            raise

    def _run_cases(self) -> None:
        self._begin("inputs")
        try:
            import torch  # weight; it may also be missing

            torch.set_num_threads(1)  # several candidates run at the same time
        except (ImportError, AttributeError) as missing:
            raise Stop(exitcode.SKIPPED, "no torch", "inputs() needs torch; one made for CPUs will do") from missing
        probe = self._probe_file()
        calls = {label: self._ready(label) for label in self.trial.small}
        self._begin("inputs")
        cases = [self._call(probe, label, calls[label], seed) for label, seed in self._seeds(calls)]
        stored = self._stored(cases)
        if stored and stored.is_file() and not self._trace:
            self._adopt(msgspec.json.decode(stored.read_bytes(), type=Evidence))
            return
        try:
            for number, case in enumerate(cases):
                self._begin("run")
                last = number == len(cases) - 1
                self._launches, self._case, self._label = 0, number, case.label
                self.checker.run(case, 2 if self.watch.thorough or (self.watch.sanitize and last) else 1)
                if self.watch.sanitize and self.checker.racy and not self._has_atomics:
                    raise Disordered
        finally:
            if stored:
                self._store = stored

    def run(self) -> Evidence:
        """Return the evidence of the run. It is stored for other candidates with the same program and inputs."""
        evidence = super().run()
        if evidence.check is not None:
            found = msgspec.structs.replace(
                evidence.check,
                sizes=tuple(self.sizes[label] for label in evidence.check.shapes),
                sanitized=self.watch.sanitize,
                against="baseline" if self.trial.baseline else "reference",
            )
            self.evidence = evidence = msgspec.structs.replace(evidence, check=found)
        if self._store is not None:
            self._store.parent.mkdir(parents=True, exist_ok=True)
            part = self._store.with_suffix(f".{os.getpid()}")
            part.write_bytes(msgspec.json.encode(evidence))
            part.rename(self._store)
        if self._trace:
            self._trace.close()
        return evidence

    # -- calls -------------------------------------------------------------------------------------------------------

    def _needed(self) -> Sequence[str]:
        return ["inputs"] if self.trial.baseline else ["inputs", "reference"]

    def _ready(self, label: str) -> Candidate:
        """Return a call. It is compiled if it is not the candidate's own program."""
        call = self.trial.small[label]
        self.sizes[label] = ", ".join(f"{name}={value}" for name, value in call.shape.items())
        if call.args == self.candidate.args and call.config == self.candidate.config:
            return self._candidate(call)
        candidate, self._programs[label] = self._compiled(label, call)
        if label == DEFAULT and self.evidence.program and self._programs[label] != self.evidence.program.digest:
            self.sizes[label] += OTHER_PROGRAM
        return candidate

    def _seeds(self, labels: Mapping[str, Candidate]) -> Iterator[tuple[str, int]]:
        for label in labels:
            seeds = check.SEEDS if label == DEFAULT else check.SEEDS[-1:]
            for seed in check.THOROUGH if self.watch.thorough else seeds:
                yield label, seed

    def _shape(self, label: str) -> Mapping[str, Value]:
        return self.trial.small[label].shape

    def _call(self, probe: Any, label: str, call: Candidate, seed: int) -> check.Case:
        case = super()._call(probe, label, call, seed)
        self._demand_memory(call, case.inputs)
        self._demand(label, call, case.inputs)
        if not self.trial.baseline:
            return case
        met = self._candidate(self.trial.baseline[label])
        return dataclasses.replace(case, reference=lambda inputs: self._baseline(met, inputs))

    def _demand_memory(self, call: Candidate, given: Mapping[str, Any]) -> None:
        """Raise Stop if a pointer gets no tensor, or a tensor is not in memory of this machine."""
        tensors = self.vendor.tensors
        for name, declared in call.args.items():
            if isinstance(declared, str) and declared.startswith("*") and not tensors.is_tensor(given[name]):
                raise no_inputs(f"inputs() gives a {type(given[name]).__name__} for {name}, where a tensor is needed")
        for name, value in given.items():
            if tensors.is_tensor(value) and (value.device.type != self.vendor.device or value.is_sparse):
                raise no_inputs(f"inputs() gives for {name} no tensor of the device {self.vendor.device!r}")

    def _demand_the_program(self, call: Candidate, given: Mapping[str, Any]) -> None:
        return None  # `_demand` checks the program of every call

    def _demand(self, label: str, call: Candidate, given: Mapping[str, Any]) -> None:
        """Raise Stop if these inputs have another specialisation than the program that was compiled for them."""
        compiled = self._compile(call, given)
        binary = compiled.asm[compile.BINARY[self.target.backend]]
        program, _ = fingerprint.fingerprint(binary, compiled.metadata, "", self.target)
        self._demand_digest(program.digest, self._programs.get(label, self._programs[DEFAULT]), call, given)

    def _compile(self, call: Candidate, given: Mapping[str, Any]) -> Any:
        """Return Triton's compiled kernel for the exact arguments. Triton caches it across contents of tensors."""
        positional, keywords = self._bound(call, given)
        try:
            compiled = self.vendor.compiled(self.kernel.jit, positional, keywords, call.grid or (1,))
            self._has_atomics |= _ATOMIC.search(compiled.asm["amdgcn"]) is not None
            return compiled
        except Exception as error:
            traceback.print_exc()
            raise Stop(exitcode.REJECTED_LAUNCH, type(error).__name__, said(error)) from error

    # -- running -----------------------------------------------------------------------------------------------------

    def _launch(self, call: Candidate, given: Mapping[str, Any]) -> None:
        number, self._launches = self._launches, self._launches + 1
        outputs = self.checker.writes
        how: dict[str, Any] = {"seed": number, "order": number + self._case if number else None, "trace": self._trace}
        if number == 0:
            how |= {"sanitize": self.watch.sanitize, "figures": self.evidence.figures is None}
        result = self._execute(self._compile(call, given), call, given, outputs, how)
        if result.figures is not None:
            self.evidence = msgspec.structs.replace(self.evidence, figures=figures_of(result.figures, call))
        if result.findings:
            found = findings_of(result.by_line, f"{self._label} {self.sizes[self._label]}")
            self.checker.findings = found
            first = result.findings[0]
            if first.line is not None:
                file, line = own_place(first.line, str(getattr(self.kernel.module, "__file__", "")))
                self.evidence = msgspec.structs.replace(self.evidence, file=file, line=line)
            raise Unsafe(found)

    def _execute(
        self, compiled: Any, call: Candidate, given: Mapping[str, Any], outputs: frozenset[str], how: dict[str, Any]
    ) -> cdna.Result:
        """Execute one launch.

        Raises:
            Stop: the model does not support the program, or the program exceeds the limit of steps or of memory.
        """
        key = id(compiled)
        try:
            if key not in self._prepared:
                self._prepared[key] = compiled, cdna.prepare(compiled)
            arguments = {n: memory_of(v, unwritten=n in outputs) for n, v in {**call.args, **given}.items()}
            if clash := overlapping(given):
                raise cdna.NotExecuted(f"arguments that share memory in part: {clash[0]} and {clash[1]}")
            steps = THOROUGH_STEPS if self.watch.thorough else STEPS
            return cdna.run(self._prepared[key][1], call.grid or (1,), arguments, steps=steps, **how)
        except cdna.NotExecuted as unknown:
            raise Stop(exitcode.NOT_EXECUTED, "NotExecuted", str(unknown)) from unknown
        except cdna.StepLimit as endless:
            raise Stop(exitcode.ENDLESS, "steps", str(endless)) from endless
        except (cdna.BadLaunch, cdna.BadProgram) as error:
            raise Stop(exitcode.NOT_EXECUTED, type(error).__name__, str(error)) from error
        except MemoryError as error:
            raise _no_memory() from error

    def _baseline(self, call: Candidate, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return all tensors after a launch of the baseline."""
        tensors = self.vendor.tensors
        copies = dict(inputs)
        places: dict[tuple[int, int], Guarded] = {}
        for name, value in inputs.items():
            if tensors.is_tensor(value):  # copies keep strides, and names that share memory go on sharing it
                place = places.setdefault(span(value), tensors.guarded(value))
                copies[name] = place.seen_as(value)
                tensors.restore(copies[name], value)
        result = self._execute(self._compile(call, copies), call, copies, frozenset(), {"seed": 1})
        if result.findings and self.trial.baseline != self.trial.small:
            text = f"the baseline itself fails at these sizes, on these inputs: {result.by_line[0]}"
            raise Stop(exitcode.SKIPPED, "no reference", text)
        left = {n: v for n, v in copies.items() if tensors.is_tensor(v)}
        if all(tensors.same_bits(tensor, inputs[name]) for name, tensor in left.items()):
            raise Stop(exitcode.SKIPPED, "no reference", "the baseline changes no tensor, so there is nothing to meet")
        return left

    # -- once for each program ---------------------------------------------------------------------------------------

    def _stored(self, cases: Sequence[check.Case]) -> Path | None:
        """Return the file for the evidence of this program on these inputs; None if it cannot be shared."""
        if not self.bench.folder or not all(_is_complete(v) for case in cases for v in case.inputs.values()):
            return None
        digest = hashlib.sha256(repr((sorted(self._programs.items()), self.watch, self.trial.tolerance)).encode())
        for case in cases:
            places: dict[tuple[int, int], str] = {}
            """Memory → its first name."""
            call = self.trial.small[case.label]
            met = self.trial.baseline.get(case.label)
            digest.update(repr((case.label, case.seed, call.grid, call.args, call.shape, met)).encode())
            for name, value in case.inputs.items():
                bytes_ = b""
                if self.vendor.tensors.is_tensor(value):
                    bytes_ = memory_of(value)
                    value = value.dtype, value.shape, value.stride(), places.setdefault(span(value), name)
                digest.update(repr((name, value, len(bytes_))).encode())
                digest.update(bytes_)
        return Path(self.bench.folder, "ran", digest.hexdigest()[:32] + ".json")

    def _adopt(self, known: Evidence) -> None:
        """Take the evidence of another candidate with this program and these inputs."""
        self.evidence = msgspec.structs.replace(
            self.evidence,
            status=known.status,
            reason=known.reason,
            check=known.check,
            figures=known.figures,
            file=known.file,
            line=known.line,
        )


def _no_memory() -> Stop:
    return Stop(exitcode.NO_RESOURCES, "host memory", "the run needs more memory than it may have")


class Disordered(check.Wrong):
    """The result depends on the order of the waves."""

    def __init__(self) -> None:
        super().__init__("order of waves", "another order of the waves between barriers gives other bits")
        self.status = exitcode.UNSAFE


class Unsafe(check.Wrong):
    """The sanitizer has findings."""

    def __init__(self, findings: Sequence[SanitizerFinding]) -> None:
        first = findings[0]
        more = sum(f.instructions for f in findings if f.kind == first.kind) - 1
        others = len({f.kind for f in findings}) - 1
        lane = f", lane {first.lane}" if first.lane >= 0 else ""
        text = f"{first.instruction} (wave {first.wave}{lane}) {first.detail}".strip()
        if "_atomic_" in first.instruction and first.kind == cdna.Kind.GLOBAL_UNWRITTEN.value:
            text += "; a kernel that adds to its output finds there what inputs() gave only if reference() reads it too"
        text += f"; {more} more instruction{'s' if more > 1 else ''}" if more else ""
        text += f"; {others} other kind{'s' if others > 1 else ''} of findings" if others else ""
        super().__init__(first.kind, text + (f" (at {first.sizes})" if first.sizes else ""))
        self.status = exitcode.UNSAFE


def own_place(line: Line, kernel_file: str) -> tuple[str, int]:
    """Return path and line of the innermost place in the user's code. In Triton's own library it is the caller's.

    Callers are named without their folders. Return "" and 0 if no caller is in the kernel's file.
    """
    if line.path and not in_triton(line.path):
        return line.path, line.line
    for file, _, number in (place.rpartition(":") for place in line.called_from):
        if os.path.basename(file) == os.path.basename(kernel_file):
            return kernel_file, int(number)
    return "", 0


def findings_of(places: Sequence[cdna.Place], sizes: str) -> tuple[SanitizerFinding, ...]:
    """Return the findings of a run at these sizes as a map holds them, one for each kind and line of the kernel."""
    return tuple(
        SanitizerFinding(
            place.kind.value,
            place.first.instruction,
            place.first.wave,
            place.first.lane,
            place.first.detail,
            str(place.line or ""),
            place.count,
            sizes,
        )
        for place in places
    )


def figures_of(summary: cdna.CounterSummary, call: Candidate) -> Figures:
    """Return the counters of a run as a map holds them."""
    groups = 1
    for number in call.grid or (1,):
        groups *= number
    return Figures(
        instructions=summary.instructions,
        work_groups=groups,
        waits=summary.waits,
        barriers=summary.barriers,
        lds_passes=summary.lds_cycles,
        lds_ideal=summary.lds_ideal_cycles,
        global_accesses=summary.global_accesses,
        global_lines=summary.global_lines,
        global_bytes=summary.global_bytes,
        scratch_bytes=summary.scratch_bytes,
    )


def memory_of(value: Any, *, unwritten: bool = False) -> Any:
    """Return a tensor's memory, from its first element to the end of its last; any other value as it is."""
    if not hasattr(value, "data_ptr"):
        return value
    start, end = span(value)
    place = (ctypes.c_uint8 * (end - start)).from_address(start) if end > start else bytearray()
    array = np.frombuffer(memoryview(place).cast("B"), np.uint8)
    return cdna.Unwritten(array) if unwritten else array


def _is_complete(value: Any) -> bool:
    """Return whether a value's repr, or a tensor's memory, has all of its content."""
    if isinstance(value, tuple | list):
        return all(not hasattr(each, "data_ptr") and _is_complete(each) for each in value)
    return hasattr(value, "data_ptr") or value is None or type(value) in (bool, int, float, str)


def overlapping(given: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the names of two tensors that share some, but not all, of their bytes; None if there are none."""
    spans = sorted((*span(v), n) for n, v in given.items() if hasattr(v, "data_ptr"))
    for (a, b, one), (c, d, other) in itertools.pairwise(spans):
        if c < b and (a, b) != (c, d):
            return one, other
    return None
