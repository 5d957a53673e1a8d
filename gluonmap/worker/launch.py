"""One candidate on a device: its own context, the program that was compiled, the probe file's inputs; then its answer.

In a straight line: the probe file is imported, the ragged call compiled, a device waited for; then inputs, launch,
comparison, timing. The probe file's code runs in the candidate's process, never in the tool's.
"""

from __future__ import annotations

import importlib.util
import os
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from gluonmap.model import exitcode
from gluonmap.model.candidate import Call, Candidate, Config, Stage, Trial, Value
from gluonmap.model.dtypes import DESCRIPTOR
from gluonmap.model.targets import Target
from gluonmap.model.verdict import Reason
from gluonmap.worker import arguments, check, compile, fingerprint, timing, turns, vendor
from gluonmap.worker.classify import classify
from gluonmap.worker.load import Kernel
from gluonmap.worker.progress import Slot
from gluonmap.worker.protocol import Bench, Evidence, Job
from gluonmap.worker.tensors import Mismatch

DEFAULT, RAGGED = "default", "ragged"


class Stop(Exception):
    """The candidate's way ends here, before the stage asked for."""

    def __init__(self, status: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.status, self.kind = status, kind


class Launch:
    """Takes one compiled candidate as far as its stage says."""

    def __init__(
        self,
        job: Job,
        kernel: Kernel,
        target: Target,
        slot: Slot,
        compiled: Evidence,
        device: vendor.Vendor | None = None,
    ) -> None:
        """`device`: None takes the target's maker's."""
        assert job.candidate and job.candidate.trial and job.bench
        self.candidate: Candidate = job.candidate
        self.trial: Trial = job.candidate.trial
        self.bench: Bench = job.bench
        self.folder = job.bench.folder or os.environ["TMPDIR"]
        self.kernel, self.target, self.slot = kernel, target, slot
        self.evidence = compiled
        self.vendor = device or vendor.VENDORS[target.backend]()
        self.checker = check.Checker(self.vendor.tensors, self.trial.tolerance)
        self._phase = ""

    def run(self) -> Evidence:
        """Evidence of the stages, with the compile's own program and resources whatever comes of them."""
        try:
            self._run()
        except Stop as stop:
            self._end(stop.status, stop.kind, str(stop))
        except check.Wrong as wrong:
            self._end(wrong.status, wrong.kind, str(wrong))
        except Mismatch as mistake:
            self._end(exitcode.SKIPPED, "no reference", str(mistake))
        if self.checker.runs or self.checker.findings:
            self.evidence = msgspec.structs.replace(self.evidence, check=self.checker.found())
        return self.evidence

    def _run(self) -> None:
        stage = self.candidate.stage
        self._begin("inputs")
        probe = self._probe_file()
        calls = {DEFAULT: self.candidate}
        if stage is not Stage.LAUNCH and self.trial.ragged is not None:
            calls = {RAGGED: self._compiled(RAGGED, self.trial.ragged)[0], **calls}
        self._take_device()
        if stage is Stage.LAUNCH:
            self._call(probe, DEFAULT, self.candidate, check.SEEDS[-1]).launch({})
            return
        for label, seed in check.cases_of(calls):
            call = self._call(probe, label, calls[label], seed)
            self._begin("check")
            self.checker.run(call)
        if stage is Stage.TIME:  # with the last case, which is of the default shape
            self._time(call)

    def _begin(self, phase: str) -> None:
        self._phase = phase
        self.slot.phase(phase)

    def _end(self, status: int, kind: str, text: str) -> None:
        self.evidence = msgspec.structs.replace(self.evidence, status=status, reason=Reason(kind, text, self._phase))

    # -- before the device -------------------------------------------------------------------------------------------

    def _probe_file(self) -> ModuleType:
        path = Path(self.bench.probe_file)
        spec = importlib.util.spec_from_file_location(f"probe_file_{path.stem}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            traceback.print_exc()
            raise no_inputs(f"the probe file {path.name} cannot be imported: {said(error)}") from error
        for name in self._needed():
            if not callable(getattr(module, name, None)):
                raise no_inputs(f"the probe file {path.name} has no function {name}")
        return module

    def _needed(self) -> Sequence[str]:
        """Functions that the probe file must have."""
        return ["inputs"] if self.candidate.stage is Stage.LAUNCH else ["inputs", "reference"]

    def _candidate(self, call: Call) -> Candidate:
        return msgspec.structs.replace(self.candidate, args=call.args, config=call.config, grid=call.grid, trial=None)

    def _compiled(self, label: str, call: Call) -> tuple[Candidate, str]:
        """The call at other sizes and its program's digest, compiled here (while others have the device)."""
        candidate = self._candidate(call)
        self.slot.phase("front end")
        try:
            evidence = compile.compile_candidate(self.kernel, candidate, self.target, self.slot)
        except compile.BadExpression:
            raise
        except Exception as error:
            traceback.print_exc()
            evidence = classify(error, self.slot, self.kernel.jit)
        if evidence.status != exitcode.PASS:
            reason = evidence.reason or Reason("", "")
            raise Stop(evidence.status, reason.kind, f"at the {label} shape: {reason.text}")
        self._begin("inputs")
        return candidate, evidence.program.digest if evidence.program else ""

    def _take_device(self) -> None:
        if not self.vendor.count():
            raise Stop(exitcode.SKIPPED, "no device", f"no {self.target.vendor} device that torch can use is here")
        self.slot.wait_for_device()
        index = turns.take(self.vendor.lock_files())
        self.slot.begin_on_device()
        self._begin("inputs")
        vendor.lift_memory_limit()
        self._own_cache = os.environ["TRITON_CACHE_DIR"]
        # What Triton builds to launch anything at all is the same for all candidates: it is built once in a run.
        self._shared_cache = os.path.join(self.folder, "launchers")
        vendor.use_cache(self._shared_cache)
        os.environ.pop("TRITON_ALWAYS_COMPILE", None)  # from here on the program that was compiled is to be found
        try:
            self.vendor.open(index)
        except vendor.NoDevice as error:
            raise Stop(exitcode.SKIPPED, "no device", str(error)) from error
        if (found := self.vendor.target()) != self.target.name:
            raise Stop(exitcode.SKIPPED, "no device", f"the device here is {found}, not {self.target.name}")
        self.kernel.jit.device_caches.clear()  # of the stand-in for a device

    # -- on the device -----------------------------------------------------------------------------------------------

    def _call(self, probe: ModuleType, label: str, call: Candidate, seed: int) -> check.Case:
        """The call with inputs made for it; its program is the one that was compiled, or the candidate is SKIPPED."""
        self._begin("inputs")
        shape = self._shape(label)
        config: Config = {n: compile.value_of(n, v, self.kernel) for n, v in call.config.items()} | self.trial.host
        try:
            given = probe.inputs(dict(shape), config, self.vendor.device, seed)
            self.vendor.synchronize()
        except Exception as error:
            raise self._failed(error, "inputs()") from error
        if not isinstance(given, Mapping):
            raise no_inputs(f"inputs() must return a dict: argument → value, not {type(given).__name__}")
        missing = [n for n, v in call.args.items() if n not in given and isinstance(v, str)]
        if missing:
            raise no_inputs(f"inputs() gives no value for {', '.join(missing)}")

        def reference(inputs: Mapping[str, Any]) -> Any:
            try:
                told = probe.reference(dict(inputs), dict(shape))
                self.vendor.synchronize()
            except Exception as error:
                raise self._failed(error, "reference()") from error
            return told

        def launch(outputs: Mapping[str, Any]) -> None:
            self._launch(call, {**given, **outputs})

        if label == DEFAULT:
            self._demand_the_program(call, given)
        return check.Case(label, seed, given, reference, launch)

    def _shape(self, label: str) -> Mapping[str, Value]:
        """Sizes as the probe file's functions take them."""
        return self.trial.ragged.shape if label == RAGGED and self.trial.ragged else self.trial.shape

    def _failed(self, error: BaseException, where: str) -> Stop:
        """What an exception of the probe file's own code means: no inputs; or too little memory on the device."""
        traceback.print_exc()
        failure = self.vendor.failure(error, launched=False)
        if failure.status == exitcode.NO_RESOURCES:
            return Stop(failure.status, failure.kind, f"{where} of the probe file: {said(error)}")
        return no_inputs(f"{where} of the probe file fails: {said(error)}")

    def _bound(self, call: Candidate, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args = {n: argument(v, given[n], self.vendor, self.target) if n in given else v for n, v in call.args.items()}
        return compile.bind(self.kernel, call, self.target, args)

    def _demand_the_program(self, call: Candidate, given: Mapping[str, Any]) -> None:
        """Stop where these inputs are of another specialisation, and so of another program, than was compiled."""
        vendor.use_cache(self._own_cache)
        try:
            positional, keywords = self._bound(call, given)
            compiled = self.vendor.compiled(self.kernel.jit, positional, keywords, call.grid or (1,))
        except Exception as error:
            traceback.print_exc()
            raise Stop(exitcode.REJECTED_LAUNCH, type(error).__name__, said(error)) from error
        finally:
            vendor.use_cache(self._shared_cache)
        if compiled is None or self.evidence.program is None:
            return
        binary = compiled.asm[compile.BINARY[self.target.backend]]
        program, _ = fingerprint.fingerprint(binary, compiled.metadata, "", self.target)
        self._demand_digest(program.digest, self.evidence.program.digest, call, given)

    def _demand_digest(self, found: str, compiled: str, call: Candidate, given: Mapping[str, Any]) -> None:
        if found != compiled:
            told = "; ".join(_differences(call.args, given, self.target.backend)) or "something the tool cannot name"
            raise Stop(
                exitcode.SKIPPED,
                "specialisation",
                f"the inputs make another program than was compiled: {told}. Let ARGS, SHAPES and inputs() agree",
            )

    def _launch(self, call: Candidate, given: Mapping[str, Any]) -> None:
        """Launch once and wait for the end. Raises Stop where either fails."""
        phase = self._phase
        self._begin("launch")
        positional, keywords = self._bound(call, given)
        launched = False
        try:
            self.vendor.launch(self.kernel.jit, positional, keywords, call.grid or (1,))
            launched = True
            self.vendor.synchronize()
        except Exception as error:
            traceback.print_exc()
            failure = self.vendor.failure(error, launched=launched)
            raise Stop(failure.status, failure.kind, said(error)) from error
        self._begin(phase)

    def _time(self, call: check.Case) -> None:
        self._begin("time")
        positional, keywords = self._bound(self.candidate, call.inputs)
        jit, grid = self.kernel.jit, self.candidate.grid or (1,)

        def once() -> None:
            self.vendor.launch(jit, positional, keywords, grid)

        def times_us(count: int) -> list[float]:
            return self.vendor.times_us(once, count)

        try:
            found = timing.measure(times_us, self.vendor.clock_mhz)
        except Exception as error:
            traceback.print_exc()
            failure = self.vendor.failure(error, launched=True)
            raise Stop(failure.status, failure.kind, said(error)) from error
        self.evidence = msgspec.structs.replace(self.evidence, timing=found)


def argument(told: Value, value: Any, device: vendor.Vendor, target: Target) -> Any:
    """A value as the kernel takes it: a tensor where the candidate has a descriptor becomes one."""
    match = DESCRIPTOR.match(told) if isinstance(told, str) else None
    if match is None or not device.tensors.is_tensor(value):
        return value
    block = [int(d) for d in match["dims"].split(",")]
    return arguments.descriptor(value, list(value.shape), list(value.stride()), match["dtype"], block, target.backend)


def no_inputs(text: str) -> Stop:
    return Stop(exitcode.SKIPPED, "no inputs", text)


def said(error: BaseException) -> str:
    """Class and first line of an exception."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _differences(told: Mapping[str, Value], given: Mapping[str, Any], backend: str) -> list[str]:
    """Which arguments the compiler knows something else of: "N is i32, compiled for i32:16"."""
    found = []
    for name, value in told.items():
        if name in given and not (isinstance(value, str) and DESCRIPTOR.match(value)):
            compiled, real = (_known(v) for v in (arguments.make(value, backend), given[name]))
            if compiled != real:
                found.append(f"{name} is {real}, compiled for {compiled}")
    return found


def _known(value: Any) -> str:
    """What the compiler knows of an argument, in Triton's spelling as far as it goes."""
    if hasattr(value, "data_ptr"):
        aligned = ":16" if value.data_ptr() % 16 == 0 else ""
        return f"*{str(value.dtype).removeprefix('torch.')}{aligned}"
    if isinstance(value, bool) or not isinstance(value, int):
        return type(value).__name__
    width = "i32" if -(2**31) <= value < 2**31 else "i64"
    return f"{width}:1" if value == 1 else f"{width}:16" if value % 16 == 0 else width
