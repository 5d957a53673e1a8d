"""Description of a kernel on one target (knobs, fixed values, arguments, grid), and the candidates that it makes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec

from gluonmap.constraints import expressions
from gluonmap.model.candidate import Call, Candidate, Config, Stage, Trial, Value, Watch
from gluonmap.model.dtypes import DESCRIPTOR, describe_argument
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import Parameter
from gluonmap.model.knobs import KnobKind
from gluonmap.model.targets import Target
from gluonmap.spec import small_problems
from gluonmap.spec.json_values import json_value
from gluonmap.spec.probe_file import RAGGED, RUN


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob with its ordered domain; the baseline is one of its values."""

    name: str
    kind: KnobKind
    domain: tuple[Value, ...]
    baseline: Value


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """Request to take candidates to a stage beyond the compile, with what that stage needs besides the description."""

    stage: Stage
    device: str
    """Name of the device; for a run on the CPU, the name of the executor."""
    probe: str
    """Hash of the probe file's syntax tree."""
    tolerance: dict[str, float]
    """Output -> relative error that a check accepts."""
    ragged: dict[str, Value] = field(default_factory=dict)
    """Sizes that no tile divides; empty: the probe file declares none."""
    shapes: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Sizes by regime that a run on the CPU makes smaller ones from."""
    reference: bool = True
    """The probe file computes the expected results; else those of the baseline are expected."""
    watch: Watch = Watch()


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that turns moves from the baseline into candidates on one target."""

    target: Target
    knobs: dict[str, Knob]
    fixed: Config
    """Constexpr parameters and options that are set and not probed."""
    args: dict[str, Value]
    """Run-time parameter -> its value, or its type in Triton's spelling."""
    derive: dict[str, str]
    """Parameter -> the host expression that computes it."""
    shape: dict[str, Value]
    """Sizes and other names that only host expressions read."""
    grid: str
    """Host expression of the grid; "": unknown."""
    parameters: dict[str, Parameter]
    options: tuple[str, ...]
    """Names of the back end's options."""
    why_fixed: dict[str, str]
    """Constexpr parameter that is no knob -> the reason."""
    not_probed: dict[str, str]
    """Compiler option that is no knob -> the reason."""
    notes: tuple[str, ...]
    execution: ExecutionRequest | None = None
    """None: candidates stop at the compile."""

    @property
    def runs_on_cpu(self) -> bool:
        """Return whether the model of the hardware executes the candidates."""
        return self.execution is not None and self.execution.stage is Stage.RUN

    @property
    def baseline(self) -> Config:
        """Return the value of every knob that all moves start from."""
        return {name: knob.baseline for name, knob in self.knobs.items()}

    def candidate(self, moves: Mapping[str, Value]) -> Candidate:
        """Return the candidate of the baseline with `moves` made; derived values, arguments and grid are computed.

        Raises:
            UsageError: a derived value or the grid cannot be computed.
        """
        names = self.namespace(moves)
        compiled = {
            n: names[n]
            for n in [*self.parameters, *names]
            if n in names and (self._is_constexpr(n) or self._is_option(n))
        }
        args = {
            n: self._argument(n, names) for n, p in self.parameters.items() if not p.constexpr and n in self._given()
        }
        candidate = Candidate(self.target.name, args, compiled, self._grid(names))
        return self._with_execution(self.execution, candidate, moves, names) if self.execution else candidate

    def _with_execution(
        self, request: ExecutionRequest, candidate: Candidate, moves: Mapping[str, Value], names: Mapping[str, Value]
    ) -> Candidate:
        """Return the candidate, to be taken to a stage beyond the compile."""
        trial = Trial(
            shape=dict(self.shape),
            host={n: names[n] for n, knob in self.knobs.items() if knob.kind is KnobKind.HOST},
            tolerance=request.tolerance,
            probe=request.probe,
            device=request.device,
            watch=request.watch,
        )
        if request.stage is Stage.RUN:
            called, expected = self._small_calls(request, moves)
            trial = msgspec.structs.replace(trial, small=called, baseline=expected, shapes=request.shapes)
        elif request.ragged:
            trial = msgspec.structs.replace(trial, ragged=self._call(moves, request.ragged))
        return msgspec.structs.replace(candidate, stage=request.stage, trial=trial)

    def _call(self, moves: Mapping[str, Value], shape: Mapping[str, Value]) -> Call:
        """Return the call after `moves` at other sizes."""
        candidate = replace(self, execution=None, shape={**self.shape, **shape}).candidate(moves)
        return Call(dict(shape), candidate.args, candidate.config, candidate.grid or (1,))

    def _small_calls(
        self, request: ExecutionRequest, moves: Mapping[str, Value]
    ) -> tuple[dict[str, Call], dict[str, Call]]:
        """Return the calls to execute on the CPU, and those of the baseline that compute the expected results.

        The second is empty where the probe file has a reference.
        """
        compared = [moves] if request.reference else [moves, {}]
        calls = [functools.partial(self._call, move) for move in compared]
        groups = 3 if request.watch.thorough else 2
        shapes: dict[str, dict[str, Value]] = {}
        for name, declared in request.shapes.items():
            if name == RUN:  # sizes that the probe file chose: they are not made smaller
                names = self.namespace(moves)
                shapes["default"] = {n: self._size(v, names) for n, v in declared.items()}
            elif name in ("default", RAGGED) or request.watch.thorough:
                shape = {**self.shape, **declared}
                how = {"affordable": 8 * small_problems.AFFORDABLE} if request.watch.thorough else {}
                shapes.setdefault(name, small_problems.shrink(calls, shape, groups=groups, whole=name != RAGGED, **how))
        called = [{name: call(shape) for name, shape in shapes.items()} for call in calls]
        return called[0], called[1] if len(called) > 1 else {}

    def second_tile_note(self) -> str:
        """Return a note if no work-group has a second tile in the baseline's run on the CPU, else ""."""
        trial = self.candidate({}).trial
        if not self.runs_on_cpu or trial is None:
            return ""
        call = functools.partial(self._call, {})
        most = small_problems.work_group_cap(call, dict(self.shape), {**self.shape, **trial.small["default"].shape})
        if not most:
            return ""
        return (
            f"executed at sizes at which no work-group has a second tile (the grid has {most} at most): what is "
            f"carried from one tile to the next was not seen. --thorough runs more, SHAPES[{RUN!r}] gives sizes, "
            "and --set fewer work-groups"
        )

    def _size(self, value: Value, names: Mapping[str, Value]) -> Value:
        """Return a size that the probe file chose: a number, or an expression over the configuration."""
        found = self._computed(value, names) if isinstance(value, str) else value
        if isinstance(found, tuple):
            raise UsageError(f"SHAPES[{RUN!r}] gives {value!r}, a tuple; a number was expected.")
        return found

    def namespace(self, moves: Mapping[str, Value]) -> dict[str, Value]:
        """Return all names that an expression may read, with their values after `moves`.

        Raises:
            UsageError: a derived value cannot be computed.
        """
        numbers = {n: v for n, v in self.args.items() if not isinstance(v, str)}
        names: dict[str, Value] = {**numbers, **self.shape, **self.fixed, **self.baseline, **moves}
        waiting = dict(self.derive)
        while waiting:
            ready = [n for n, text in waiting.items() if not (expressions.names_in(text) & set(waiting))]
            if not ready:
                raise UsageError(
                    f"the derived values {', '.join(sorted(waiting))} depend on each other; break the circle."
                )
            for name in ready:
                value = self._computed(waiting.pop(name), names)
                if isinstance(value, tuple):
                    raise UsageError(f"the derived value {name} is a tuple {value!r}; a number or text was expected.")
                names[name] = json_value(value)
        return names

    def _computed(self, text: str, names: Mapping[str, Value]) -> expressions.Result:
        """Return the value of a host expression.

        Raises:
            UsageError: it has no value. For an unknown name the message shows the flag that gives it.
        """
        try:
            return expressions.evaluate(text, names)
        except UsageError as error:
            lacking = sorted(expressions.names_in(text) - names.keys())
            if not lacking:
                raise
            at_run_time = {n for n, parameter in self.parameters.items() if not parameter.constexpr}
            flags = [f"{'--arg' if name in at_run_time else '--set'} {name}=…" for name in lacking]
            raise UsageError(f"{error}\n  Give {'it' if len(flags) == 1 else 'them'}: {' '.join(flags)}") from None

    def specialisation(self) -> dict[str, str]:
        """Return the compiler's specialisation of each run-time argument at the baseline."""
        return {n: describe_argument(v) for n, v in self.candidate({}).args.items()}

    def _given(self) -> set[str]:
        return set(self.args) | set(self.derive) | set(self.shape)

    def _is_constexpr(self, name: str) -> bool:
        return name in self.parameters and self.parameters[name].constexpr

    def _is_option(self, name: str) -> bool:
        knob = self.knobs.get(name)
        if name in self.parameters:
            return False
        if knob is not None:
            return knob.kind is not KnobKind.HOST
        return name in self.fixed or (name in self.derive and name in self.options)

    def _argument(self, name: str, names: Mapping[str, Value]) -> Value:
        value = names[name] if name in names else self.args[name]
        if isinstance(value, str) and (match := DESCRIPTOR.match(value)):
            dims = self._computed(f"({match['dims']},)", names)
            shown = ", ".join(map(str, dims)) if isinstance(dims, tuple) else str(dims)
            return f"{match['head']}[{shown}]{match['tail']}"
        return value

    def _grid(self, names: Mapping[str, Value]) -> tuple[int, ...] | None:
        if not self.grid:
            return None
        value = self._computed(self.grid, names)
        grid = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(g, int) for g in grid):
            raise UsageError(f"the grid {self.grid!r} is {grid!r}; whole numbers were expected.")
        return tuple(int(g) for g in grid if isinstance(g, int))
