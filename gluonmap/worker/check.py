"""What a launch computed, against the probe's reference: errors, places of NaN, guards, the same bits twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gluonmap.model import exitcode
from gluonmap.model.verdict import Check, Finding, OutputError
from gluonmap.worker.tensors import Mismatch, Tensors

POISONS = {1: 0xFF, 0: 0x5A, 2: 0xC3}
"""Seed of the inputs → what fills the outputs before a launch. What is left unwritten can be right by chance for one of
the two at most. The two launches of one seed find the same, or what is unwritten would pass for a race."""
SEEDS = (1, 0)
THOROUGH = (2, *SEEDS)
"""Of a check that is to look closer."""
LAUNCHES = 2
"""Of each case."""
DIFFERS = "differs from the baseline"
"""The kind of what is wrong where no reference says which of the two is right."""
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
"""Relative error where the probe file declares none; whole numbers must be equal. A rounding of every element costs a
quarter of it or less: 2.8e-4 in float16, 2.3e-3 in bfloat16."""
ELEMENTWISE = 10.0
"""An element may be wrong by so many times the tolerance, of its own size and the output's root mean square together:
roundings stay far below, and a bad column, which a norm over all hides, does not."""


class Wrong(Exception):
    """The numbers are wrong, or something was written where nothing may be; `kind` says in a word which."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.status = kind, exitcode.WRONG


@dataclass(frozen=True, slots=True)
class Case:
    """One call with one set of inputs; `launch(outputs)` runs it with these tensors in the place of its own outputs."""

    label: str
    """"default" or "ragged"."""
    seed: int
    inputs: Mapping[str, Any]
    """All that the probe file's `inputs` returned."""
    reference: Callable[[Mapping[str, Any]], Any]
    launch: Callable[[Mapping[str, Any]], None]


@dataclass
class Checker:
    """Runs cases and keeps what was found, the worst of each output."""

    tensors: Tensors
    tolerance: Mapping[str, float]
    errors: dict[str, OutputError] = field(default_factory=dict)
    shapes: dict[str, None] = field(default_factory=dict)
    runs: int = 0
    racy: bool = False
    findings: tuple[Finding, ...] = ()
    """Of a sanitizer, where one watches the launches."""
    writes: frozenset[str] = frozenset()
    """Outputs of the launch under way that hold nothing the kernel may read."""
    kind: str = ""
    """What to call any difference; empty: by its own kind."""
    _kept: bool | None = None

    def meet_baseline(self) -> None:
        """From here on the reference is what the baseline leaves of the same tensors."""
        self.kind, self._kept = DIFFERS, True

    def found(self) -> Check:
        """What is known so far."""
        shapes = tuple(self.shapes)
        return Check(tuple(self.errors.values()), self.runs, shapes, self.racy, findings=self.findings)

    def run(self, case: Case, launches: int = LAUNCHES) -> None:
        """Launch a case so many times, and compare.

        Raises:
            Wrong: the first thing that is wrong with it.
            Mismatch: the reference cannot be compared.
        """
        self.shapes.setdefault(case.label)
        tensors = self.tensors
        given = {n: t for n, t in case.inputs.items() if tensors.is_tensor(t)}
        before = {n: tensors.copy(t) for n, t in given.items()}
        wanted = self._reference(case, before)
        memory = self._memory(given, wanted)
        # A tensor that is an input by another name holds what that one is to hold.
        kept = self._kept or len(memory) > len(wanted)
        others = {n: (t, before[n]) for n, t in given.items() if n not in memory}
        found: list[dict[str, Any]] = []
        self.writes = frozenset() if kept else frozenset(wanted)
        for _ in range(launches):
            for tensor, copy in others.values() if found else ():
                tensors.restore(tensor, copy)  # a kernel may use some as room to work in
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
            # Guards first: a launch that writes elsewhere may have spoilt what the values say.
            for name, buffer in guarded.items():
                if not buffer.intact():
                    text = f"{name}: something was written outside of it, within 64 KiB of its borders"
                    raise Wrong("guard bytes", f"{text} ({_at(case)})")
        self.racy |= any(not tensors.same_bits(found[0][n], found[-1][n]) for n in wanted)
        for left in found:
            self._compare(case, left, wanted)
        changed = [t for n, t in wanted.items() if not (self.kind and tensors.same_bits(t, before[n]))]
        if not any(map(tensors.tells, changed)):
            raise Mismatch(f"there is nothing to compare: no output has a finite number ({_at(case)})")

    def _memory(self, given: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
        """Every output, and every tensor that is one by another name → the output whose memory it has.

        Raises:
            Mismatch: an output has some of its elements in common with another tensor.
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
            told = self._told(case, case.inputs, before)
            if self._kept is None:
                self._kept = self._reads_outputs(case, told, before)
        return told

    def _told(self, case: Case, inputs: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
        """What the reference says of these inputs. Whatever it changes of them is put back."""
        told = case.reference(inputs)
        if not isinstance(told, Mapping) or not told:
            raise Mismatch("reference() must return a dict: output → tensor")
        for name, value in told.items():
            if not self.tensors.is_tensor(case.inputs.get(name)):
                raise Mismatch(f"reference() names {name!r}, which is no tensor of inputs()")
            if not self.tensors.is_tensor(value):
                raise Mismatch(f"the reference of {name} is no tensor but {type(value).__name__}")
        # It may hand back an input, which a launch may write.
        told = {name: self.tensors.copy(value) for name, value in told.items()}
        for name, copy in before.items():
            if not self.tensors.same_bits(inputs[name], copy):
                self.tensors.restore(inputs[name], copy)
        return told

    def _reads_outputs(self, case: Case, told: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """Whether the reference depends on what is in the outputs before: then so may the kernel, and it is kept."""
        changed = dict(case.inputs)
        for name in told:
            changed[name] = self.tensors.copy(case.inputs[name])
            self.tensors.poison(changed[name], POISONS[0])
        rest = {name: copy for name, copy in before.items() if name not in told}
        again = self._told(case, changed, rest)
        return any(n not in again or not self.tensors.same_bits(told[n], again[n]) for n in told)

    def _compare(self, case: Case, outputs: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        for name, out in outputs.items():
            if self.kind and all(self.tensors.same_bits(out, other) for other in (wanted[name], case.inputs[name])):
                continue  # an input, which neither has changed
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
        """Tolerance of an output of which the probe file says nothing.

        Two configurations may round in between to any type that the kernel is given, up to 16 bits: an output in
        float32 of factors in bfloat16 is as good as these.
        """
        own = DEFAULT_TOLERANCES.get(dtype, 0.0)
        if not self.kind or not own:
            return own
        given = {self.tensors.dtype(t) for t in case.inputs.values() if self.tensors.is_tensor(t)}
        return max(own, *(DEFAULT_TOLERANCES[d] for d in given if d in ("float16", "bfloat16")), 0.0)


def complaint_of(error: OutputError) -> tuple[str, str] | None:
    """What is wrong with an output, in a word and in a sentence; None where nothing is."""
    name = error.output
    if error.misplaced:
        return "non-finite values", f"{name}: {error.misplaced:,} elements are NaN or infinite where the other is not"
    if not error.relative <= error.tolerance:
        return "relative error", f"{name}: relative error {error.relative:.2g} > {error.tolerance:g}"
    if not error.elementwise <= error.bound:
        return "elementwise error", f"{name}: an element is wrong by {error.elementwise:.2g} > {error.bound:g}"
    return None


def worst(errors: Sequence[OutputError]) -> OutputError:
    """The errors of one output, the largest of each kind."""
    import msgspec

    return msgspec.structs.replace(
        errors[-1],
        relative=max(e.relative for e in errors),
        elementwise=max(e.elementwise for e in errors),
        misplaced=max(e.misplaced for e in errors),
    )


def cases_of(labels: Iterable[str]) -> list[tuple[str, int]]:
    """The cases of a check: every shape with every seed, the default shape's first seed last."""
    return [(label, seed) for label in labels for seed in SEEDS]


def _at(case: Case) -> str:
    return f"{case.label} shape, seed {case.seed}"


def _rounded(number: float) -> float:
    """Three digits: what follows them says nothing, and a map is read by people."""
    return float(f"{number:.3g}")
