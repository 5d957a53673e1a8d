"""One candidate on a device: its own context, the compiled program, the probe file's inputs, and the evidence.

The steps: import the probe file, compile the ragged call, wait for a device, make inputs, launch, compare, time. The
probe file's code runs in the candidate's process, never in the tool's.
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
    """The candidate ends here, before the requested stage."""

    def __init__(self, status: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.status, self.kind = status, kind


class Launch:
    """A run of one compiled candidate up to its stage."""

    def __init__(
        self,
        job: Job,
        kernel: Kernel,
        target: Target,
        slot: Slot,
        compiled: Evidence,
        device: vendor.Vendor | None = None,
    ) -> None:
        """`device`: None means the devices of the target's maker."""
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
        """Return the evidence of the stages. It always has the program and the resources of the compile."""
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
        if stage is Stage.TIME:  # the last case has the default shape
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
        """Return the names of the functions that the probe file must have."""
        return ["inputs"] if self.candidate.stage is Stage.LAUNCH else ["inputs", "reference"]

    def _candidate(self, call: Call) -> Candidate:
        return msgspec.structs.replace(self.candidate, args=call.args, config=call.config, grid=call.grid, trial=None)

    def _compiled(self, label: str, call: Call) -> tuple[Candidate, str]:
        """Compile the call at other sizes; return it with its program's digest. Others may use the device meanwhile."""
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
        # Triton's launchers are the same for all candidates, so a run builds them once.
        self._shared_cache = os.path.join(self.folder, "launchers")
        vendor.use_cache(self._shared_cache)
        os.environ.pop("TRITON_ALWAYS_COMPILE", None)  # from here on Triton must find the compiled program in its cache
        try:
            self.vendor.open(index)
        except vendor.NoDevice as error:
            raise Stop(exitcode.SKIPPED, "no device", str(error)) from error
        if (found := self.vendor.target()) != self.target.name:
            raise Stop(exitcode.SKIPPED, "no device", f"the device here is {found}, not {self.target.name}")
        self.kernel.jit.device_caches.clear()  # they belong to the stub driver of the compile

    # -- on the device -----------------------------------------------------------------------------------------------

    def _call(self, probe: ModuleType, label: str, call: Candidate, seed: int) -> check.Case:
        """Return the call with inputs. Raise Stop (SKIPPED) if the inputs specialise to another program."""
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
                wanted = probe.reference(dict(inputs), dict(shape))
                self.vendor.synchronize()
            except Exception as error:
                raise self._failed(error, "reference()") from error
            return wanted

        def launch(outputs: Mapping[str, Any]) -> None:
            self._launch(call, {**given, **outputs})

        if label == DEFAULT:
            self._demand_the_program(call, given)
        return check.Case(label, seed, given, reference, launch)

    def _shape(self, label: str) -> Mapping[str, Value]:
        """Return the sizes for the probe file's functions."""
        return self.trial.ragged.shape if label == RAGGED and self.trial.ragged else self.trial.shape

    def _failed(self, error: BaseException, where: str) -> Stop:
        """Return what an exception of the probe file's code means: no inputs, or too little memory on the device."""
        traceback.print_exc()
        failure = self.vendor.failure(error, launched=False)
        if failure.status == exitcode.NO_RESOURCES:
            return Stop(failure.status, failure.kind, f"{where} of the probe file: {said(error)}")
        return no_inputs(f"{where} of the probe file fails: {said(error)}")

    def _bound(self, call: Candidate, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args = {n: argument(v, given[n], self.vendor, self.target) if n in given else v for n, v in call.args.items()}
        return compile.bind(self.kernel, call, self.target, args)

    def _demand_the_program(self, call: Candidate, given: Mapping[str, Any]) -> None:
        """Raise Stop if these inputs have another specialisation, and so another program, than the compiled one."""
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
            differences = _differences(call.args, given, self.target.backend)
            reason = "; ".join(differences) or "something the tool cannot name"
            raise Stop(
                exitcode.SKIPPED,
                "specialisation",
                f"the inputs make another program than was compiled: {reason}. Let ARGS, SHAPES and inputs() agree",
            )

    def _launch(self, call: Candidate, given: Mapping[str, Any]) -> None:
        """Launch once and wait for the end. Raise Stop if either fails."""
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


def argument(declared: Value, value: Any, device: vendor.Vendor, target: Target) -> Any:
    """Return a run-time argument for the kernel. A tensor becomes a descriptor if the candidate declares one."""
    match = DESCRIPTOR.match(declared) if isinstance(declared, str) else None
    if match is None or not device.tensors.is_tensor(value):
        return value
    block = [int(d) for d in match["dims"].split(",")]
    return arguments.descriptor(value, list(value.shape), list(value.stride()), match["dtype"], block, target.backend)


def no_inputs(text: str) -> Stop:
    return Stop(exitcode.SKIPPED, "no inputs", text)


def said(error: BaseException) -> str:
    """Return class and first line of an exception."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _differences(declared: Mapping[str, Value], given: Mapping[str, Any], backend: str) -> list[str]:
    """Return the arguments with another specialisation than compiled, such as "N is i32, compiled for i32:16"."""
    found = []
    for name, value in declared.items():
        if name in given and not (isinstance(value, str) and DESCRIPTOR.match(value)):
            compiled, real = (_known(v) for v in (arguments.make(value, backend), given[name]))
            if compiled != real:
                found.append(f"{name} is {real}, compiled for {compiled}")
    return found


def _known(value: Any) -> str:
    """Return what the compiler knows of an argument, spelled as in Triton where Triton has a spelling."""
    if hasattr(value, "data_ptr"):
        aligned = ":16" if value.data_ptr() % 16 == 0 else ""
        return f"*{str(value.dtype).removeprefix('torch.')}{aligned}"
    if isinstance(value, bool) or not isinstance(value, int):
        return type(value).__name__
    width = "i32" if -(2**31) <= value < 2**31 else "i64"
    return f"{width}:1" if value == 1 else f"{width}:16" if value % 16 == 0 else width
