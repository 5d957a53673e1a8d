"""The check of a launch against the probe's reference: errors, positions of NaN, guards, equal bits in two launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gluonmap.model import exitcode
from gluonmap.model.verdict import Check, OutputError, SanitizerFinding
from gluonmap.worker.tensors import Mismatch, Tensors

POISONS = {1: 0xFF, 0: 0x5A, 2: 0xC3}
"""Seed of the inputs → byte that fills the outputs before a launch. An element that the kernel leaves unwritten can be
right by chance for at most one of the bytes. Both launches of a seed get the same byte: otherwise an unwritten element
would look like a data race."""
SEEDS = (1, 0)
THOROUGH = (2, *SEEDS)
"""Seeds of a thorough check."""
LAUNCHES = 2
"""Launches of each case."""
DIFFERS = "differs from the baseline"
"""Kind of a difference if no reference decides which of the two results is right."""
DEFAULT_TOLERANCES = {
    "float64": 1e-12,
    "float32": 1e-5,
    "float16": 2e-3,
    "bfloat16": 1e-2,
    "float8_e4m3fn": 1e-1,
    "float8_e4m3fnuz": 1e-1,
    "float8_e5m2": 2e-1,
    "float8_e5m2fnuz": 2e-1,
}
"""Tolerated relative error if the probe file declares none; integers must be equal. Rounding every element costs a
quarter of it or less: 2.8e-4 in float16, 2.3e-3 in bfloat16."""
ELEMENTWISE = 10.0
"""Bound on the error of an element, in units of tolerance * (its size + the output's root mean square). Roundings stay
far below it. A bad column, which a norm over all elements hides, exceeds it."""


class Wrong(Exception):
    """The results are wrong, or a launch wrote outside of its outputs. `kind` names the error in a few words."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.status = kind, exitcode.WRONG


@dataclass(frozen=True, slots=True)
class Case:
    """One call with one set of inputs. `launch(outputs)` runs it with these tensors instead of its own outputs."""

    label: str
    """"default" or "ragged"."""
    seed: int
    inputs: Mapping[str, Any]
    """Everything that the probe file's `inputs` returned."""
    reference: Callable[[Mapping[str, Any]], Any]
    launch: Callable[[Mapping[str, Any]], None]


@dataclass
class Checker:
    """A check of several cases. It keeps the worst error of each output."""

    tensors: Tensors
    tolerance: Mapping[str, float]
    errors: dict[str, OutputError] = field(default_factory=dict)
    shapes: dict[str, None] = field(default_factory=dict)
    runs: int = 0
    racy: bool = False
    findings: tuple[SanitizerFinding, ...] = ()
    """Findings of the sanitizer, if it observes the launches."""
    writes: frozenset[str] = frozenset()
    """Outputs of the present launch with undefined content: the kernel must write before it reads."""
    kind: str = ""
    """Kind of every difference; "" means the kind of the error itself."""
    _kept: bool | None = None

    def meet_baseline(self) -> None:
        """Compare with the baseline's results from now on."""
        self.kind, self._kept = DIFFERS, True

    def found(self) -> Check:
        """Return the result so far."""
        shapes = tuple(self.shapes)
        return Check(tuple(self.errors.values()), self.runs, shapes, self.racy, findings=self.findings)

    def run(self, case: Case, launches: int = LAUNCHES) -> None:
        """Launch a case `launches` times and compare its outputs.

        Raises:
            Wrong: the first error that was found.
            Mismatch: the reference cannot be compared.
        """
        self.shapes.setdefault(case.label)
        tensors = self.tensors
        given = {n: t for n, t in case.inputs.items() if tensors.is_tensor(t)}
        before = {n: tensors.copy(t) for n, t in given.items()}
        wanted = self._reference(case, before)
        memory = self._memory(given, wanted)
        # If an output is also an input under another name, its content must be kept: it is that input's content.
        kept = self._kept or len(memory) > len(wanted)
        others = {n: (t, before[n]) for n, t in given.items() if n not in memory}
        found: list[dict[str, Any]] = []
        self.writes = frozenset() if kept else frozenset(wanted)
        for _ in range(launches):
            for tensor, copy in others.values() if found else ():
                tensors.restore(tensor, copy)  # a kernel may use an input as workspace
            guarded = {n: tensors.guarded(given[n]) for n, own in memory.items() if n == own}
            outputs = {
                n: guarded[n].tensor if n == own else guarded[own].seen_as(given[n]) for n, own in memory.items()
            }
            for name, output in outputs.items():
                if kept:
                    tensors.restore(output, before[name])
                else:
                    tensors.poison(output, POISONS[case.seed])
            case.launch(outputs)
            self.runs += 1
            found.append({n: tensors.copy(outputs[n]) for n in wanted})
            # Guards come first: a write outside of an output may also be the cause of wrong values.
            for name, buffer in guarded.items():
                if not buffer.intact():
                    text = f"{name}: something was written outside of it, within 64 KiB of its borders"
                    raise Wrong("guard bytes", f"{text} ({_at(case)})")
        self.racy |= any(not tensors.same_bits(found[0][n], found[-1][n]) for n in wanted)
        for left in found:
            self._compare(case, left, wanted)
        changed = [t for n, t in wanted.items() if not (self.kind and tensors.same_bits(t, before[n]))]
        if not any(map(tensors.has_finite, changed)):
            raise Mismatch(f"there is nothing to compare: no output has a finite number ({_at(case)})")

    def _memory(self, given: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
        """Return, for every output and every tensor with an output's memory, the name of that output.

        Raises:
            Mismatch: an output shares some, but not all, of its memory with another tensor.
        """
        found: dict[str, str] = {}
        for name in names:
            found.setdefault(name, name)
            for other, tensor in given.items():
                match self.tensors.shared(given[name], tensor) if other != name else "":
                    case "all":
                        found.setdefault(other, found[name])
                    case "part":
                        raise Mismatch(f"{name} and {other} have a part of their memory in common")
        return found

    def _reference(self, case: Case, before: Mapping[str, Any]) -> dict[str, Any]:
        with self.tensors.exactly():
            wanted = self._evaluated(case, case.inputs, before)
            if self._kept is None:
                self._kept = self._reads_outputs(case, wanted, before)
        return wanted

    def _evaluated(self, case: Case, inputs: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reference's outputs for these inputs. Inputs that it changed are restored."""
        wanted = case.reference(inputs)
        if not isinstance(wanted, Mapping) or not wanted:
            raise Mismatch("reference() must return a dict: output → tensor")
        for name, value in wanted.items():
            if not self.tensors.is_tensor(case.inputs.get(name)):
                raise Mismatch(f"reference() names {name!r}, which is no tensor of inputs()")
            if not self.tensors.is_tensor(value):
                raise Mismatch(f"the reference of {name} is no tensor but {type(value).__name__}")
        # The reference may return an input, which a launch may overwrite.
        wanted = {name: self.tensors.copy(value) for name, value in wanted.items()}
        for name, copy in before.items():
            if not self.tensors.same_bits(inputs[name], copy):
                self.tensors.restore(inputs[name], copy)
        return wanted

    def _reads_outputs(self, case: Case, wanted: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """Return whether the reference reads the outputs. Then the kernel may read them too: they are not poisoned."""
        changed = dict(case.inputs)
        for name in wanted:
            changed[name] = self.tensors.copy(case.inputs[name])
            self.tensors.poison(changed[name], POISONS[0])
        rest = {name: copy for name, copy in before.items() if name not in wanted}
        again = self._evaluated(case, changed, rest)
        return any(n not in again or not self.tensors.same_bits(wanted[n], again[n]) for n in wanted)

    def _compare(self, case: Case, outputs: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        for name, out in outputs.items():
            if self.kind and all(self.tensors.same_bits(out, other) for other in (wanted[name], case.inputs[name])):
                continue  # an input that neither of the two has changed
            try:
                distance = self.tensors.distance(out, wanted[name])
            except Mismatch as error:
                raise Mismatch(f"the reference of {name} {error}") from error
            dtype = self.tensors.dtype(out)
            tolerance = self.tolerance.get(name, self._default(case, dtype))
            found = OutputError(
                output=name,
                relative=_rounded(distance.relative),
                elementwise=_rounded(distance.elementwise),
                tolerance=tolerance,
                bound=ELEMENTWISE * tolerance,
                dtype=dtype,
                declared=name in self.tolerance,
                misplaced=distance.misplaced,
            )
            self.errors[name] = worst([*([self.errors[name]] if name in self.errors else []), found])
            if complaint := complaint_of(found):
                raise Wrong(self.kind or complaint[0], f"{complaint[1]} ({_at(case)})")

    def _default(self, case: Case, dtype: str) -> float:
        """Return the tolerance of an output for which the probe file declares none.

        Two configurations may round intermediate results to any 16-bit float type of the inputs. So a float32 output
        of bfloat16 inputs has the tolerance of bfloat16.
        """
        own = DEFAULT_TOLERANCES.get(dtype, 0.0)
        if not self.kind or not own:
            return own
        given = {self.tensors.dtype(t) for t in case.inputs.values() if self.tensors.is_tensor(t)}
        return max(own, *(DEFAULT_TOLERANCES[d] for d in given if d in ("float16", "bfloat16")), 0.0)


def complaint_of(error: OutputError) -> tuple[str, str] | None:
    """Return the kind and the description of an output's error; None if it is within its tolerance."""
    name = error.output
    if error.misplaced:
        return "non-finite values", f"{name}: {error.misplaced:,} elements are NaN or infinite where the other is not"
    if not error.relative <= error.tolerance:
        return "relative error", f"{name}: relative error {error.relative:.2g} > {error.tolerance:g}"
    if not error.elementwise <= error.bound:
        return "elementwise error", f"{name}: an element is wrong by {error.elementwise:.2g} > {error.bound:g}"
    return None


def worst(errors: Sequence[OutputError]) -> OutputError:
    """Return the largest error of each kind over several checks of one output."""
    return msgspec.structs.replace(
        errors[-1],
        relative=max(e.relative for e in errors),
        elementwise=max(e.elementwise for e in errors),
        misplaced=max(e.misplaced for e in errors),
    )


def cases_of(labels: Iterable[str]) -> list[tuple[str, int]]:
    """Return the cases of a check: every shape with every seed, in the order of the labels and of SEEDS."""
    return [(label, seed) for label in labels for seed in SEEDS]


def _at(case: Case) -> str:
    return f"{case.label} shape, seed {case.seed}"


def _rounded(number: float) -> float:
    """Return the number with three digits. Further digits have no meaning, and people read a map."""
    return float(f"{number:.3g}")
