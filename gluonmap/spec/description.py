"""The frozen description of what is to be probed, from the source, a probe file, a shipped configuration and flags.

All ways of telling end here. What could be inferred is inferred and noted; what could not is asked for by name.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from gluonmap.constraints import expressions
from gluonmap.model import dtypes
from gluonmap.model.candidate import Call, Candidate, Config, Stage, Trial, Value, Watch
from gluonmap.model.dtypes import DESCRIPTOR, describe_argument
from gluonmap.model.errors import NeedsHelp, UnknownKnob, UsageError
from gluonmap.model.inspection import Inspection, Parameter
from gluonmap.model.knobs import KnobKind
from gluonmap.model.targets import Target, option_domain, why_not_a_knob
from gluonmap.source import contiguity
from gluonmap.source.argument_kinds import infer_argument_kinds
from gluonmap.spec import small_problems
from gluonmap.spec.probe_file import RAGGED, RUN, ProbeFile

FLAG = re.compile(r"(use|has|is|enable|with|allow|do|even|apply)_", re.IGNORECASE)
"""Names of knobs that are tested for truth."""
CACHE_MODIFIERS: tuple[Value, ...] = (None, ".ca", ".cg", ".cv")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user said on the command line."""

    kernel: str = ""
    sets: Config = field(default_factory=dict)
    domains: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    derive: dict[str, str] = field(default_factory=dict)
    args: dict[str, Value] = field(default_factory=dict)
    grid: str = ""
    regime: str = ""
    config: Config = field(default_factory=dict)
    """Of a shipped configuration file."""
    config_name: str = ""


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob with its ordered domain; the baseline is one of its values."""

    name: str
    kind: KnobKind
    domain: tuple[Value, ...]
    baseline: Value


@dataclass(frozen=True, slots=True)
class Further:
    """That candidates go beyond the compile, and what they need there besides the description."""

    stage: Stage
    device: str
    """Name of the device; of a run on the CPU what executes there."""
    probe: str
    """Hash of the probe file's syntax tree."""
    tolerance: dict[str, float]
    ragged: dict[str, Value] = field(default_factory=dict)
    """Sizes that no tile divides; empty: the probe file declares none."""
    shapes: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Of a run on the CPU: the sizes that smaller ones are made of, by regime."""
    reference: bool = True
    """The probe file knows the right results; else the baseline's are to be met."""
    watch: Watch = Watch()


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that a run on one target needs to turn moves into candidates."""

    target: Target
    knobs: dict[str, Knob]
    fixed: Config
    """Constexpr parameters and options that are set and not turned."""
    args: dict[str, Value]
    derive: dict[str, str]
    shape: dict[str, Value]
    grid: str
    parameters: dict[str, Parameter]
    options: tuple[str, ...]
    """Names of the back end's options."""
    why_fixed: dict[str, str]
    not_probed: dict[str, str]
    notes: tuple[str, ...]
    further: Further | None = None

    @property
    def runs_on_cpu(self) -> bool:
        """Its candidates are executed by the model of the hardware."""
        return self.further is not None and self.further.stage is Stage.RUN

    @property
    def baseline(self) -> Config:
        """The value of every knob that all moves start from."""
        return {name: knob.baseline for name, knob in self.knobs.items()}

    def candidate(self, moves: Mapping[str, Value]) -> Candidate:
        """The candidate of the baseline with `moves` made: derived values, arguments and grid computed.

        Raises:
            UsageError: a derived value or the grid cannot be computed.
        """
        names = self.names(moves)
        compiled = {
            n: names[n]
            for n in [*self.parameters, *names]
            if n in names and (self._is_constexpr(n) or self._is_option(n))
        }
        args = {
            n: self._argument(n, names) for n, p in self.parameters.items() if not p.constexpr and n in self._given()
        }
        candidate = Candidate(self.target.name, args, compiled, self._grid(names))
        return self._taken_further(candidate, moves, names) if self.further else candidate

    def _taken_further(self, candidate: Candidate, moves: Mapping[str, Value], names: Mapping[str, Value]) -> Candidate:
        """The same, to be taken to a stage beyond the compile."""
        further = self.further
        assert further
        trial = Trial(
            shape=dict(self.shape),
            host={n: names[n] for n, knob in self.knobs.items() if knob.kind is KnobKind.HOST},
            tolerance=further.tolerance,
            probe=further.probe,
            device=further.device,
            watch=further.watch,
        )
        if further.stage is Stage.RUN:
            called, met = self._small_calls(moves)
            trial = msgspec.structs.replace(trial, small=called, baseline=met, shapes=further.shapes)
        elif further.ragged:
            trial = msgspec.structs.replace(trial, ragged=self._call(moves, further.ragged))
        return msgspec.structs.replace(candidate, stage=further.stage, trial=trial)

    def _call(self, moves: Mapping[str, Value], shape: Mapping[str, Value]) -> Call:
        """What is called at other sizes."""
        candidate = replace(self, further=None, shape={**self.shape, **shape}).candidate(moves)
        return Call(dict(shape), candidate.args, candidate.config, candidate.grid or (1,))

    def _small_calls(self, moves: Mapping[str, Value]) -> tuple[dict[str, Call], dict[str, Call]]:
        """The calls to execute on the CPU, and those of the baseline that tell what they are to compute."""
        further = self.further
        assert further
        compared = [moves] if further.reference else [moves, {}]
        calls = [functools.partial(self._call, move) for move in compared]
        groups = 3 if further.watch.thorough else 2
        shapes: dict[str, dict[str, Value]] = {}
        for name, declared in further.shapes.items():
            if name == RUN:  # its author knows better
                names = self.names(moves)
                shapes["default"] = {n: self._size(v, names) for n, v in declared.items()}
            elif name in ("default", RAGGED) or further.watch.thorough:
                shape = {**self.shape, **declared}
                how = {"affordable": 8 * small_problems.AFFORDABLE} if further.watch.thorough else {}
                shapes.setdefault(name, small_problems.small(calls, shape, groups=groups, whole=name != RAGGED, **how))
        told = [{name: call(shape) for name, shape in shapes.items()} for call in calls]
        return told[0], told[1] if len(told) > 1 else {}

    def unseen(self) -> str:
        """What a run on the CPU cannot show at the baseline's small sizes, in words; "" where nothing is known."""
        trial = self.candidate({}).trial
        if not self.runs_on_cpu or trial is None:
            return ""
        call = functools.partial(self._call, {})
        most = small_problems.capped(call, dict(self.shape), {**self.shape, **trial.small["default"].shape})
        if not most:
            return ""
        return (
            f"executed at sizes at which no work-group has a second tile (the grid has {most} at most): what is "
            f"carried from one tile to the next was not seen. --thorough runs more, SHAPES[{RUN!r}] gives sizes, "
            "and --set fewer work-groups"
        )

    def _size(self, value: Value, names: Mapping[str, Value]) -> Value:
        """A size of the probe file's own choice: a number, or an expression over the configuration."""
        found = self._computed(value, names) if isinstance(value, str) else value
        if isinstance(found, tuple):
            raise UsageError(f"SHAPES[{RUN!r}] gives {value!r}, a tuple; a number was expected.")
        return found

    def names(self, moves: Mapping[str, Value]) -> dict[str, Value]:
        """All names that an expression may read, with their values under `moves`."""
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
                names[name] = _spelled(value)
        return names

    def _computed(self, text: str, names: Mapping[str, Value]) -> expressions.Result:
        """What host code computes.

        Raises:
            UsageError: it has no value; for a name that is not known, with the flag that gives it.
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
        """What the compiler knows of each run-time argument at the baseline."""
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


def describe(inspection: Inspection, target: Target, probe: ProbeFile, wishes: Wishes) -> Description:
    """The description of one kernel on one target.

    Raises:
        UnknownKnob: a name that neither kernel, compiler nor host expressions have.
        NeedsHelp: values or types that cannot be inferred, each with the flag that gives it.
        UsageError: an empty domain, a baseline outside its domain's kind, a wrong regime.
    """
    return _Describer(inspection, target, probe, wishes).build()


def _spelled(value: Value) -> Value:
    """A value that JSON can hold: infinities and NaN as the expression that makes them."""
    return f"py:float({str(value)!r})" if isinstance(value, float) and not math.isfinite(value) else value


def _all_spelled(values: Mapping[str, Value]) -> Config:
    return {name: _spelled(value) for name, value in values.items()}


class _Describer:
    def __init__(self, inspection: Inspection, target: Target, probe: ProbeFile, wishes: Wishes) -> None:
        self.inspection, self.target = inspection, target
        self.probe = replace(
            probe,
            baseline=_all_spelled({n: v for n, v in probe.baseline.items() if n not in wishes.derive}),
            args=_all_spelled(probe.args),
            knobs={n: tuple(map(_spelled, d)) for n, d in probe.knobs.items() if n not in wishes.derive},
        )
        self.wishes = replace(
            wishes,
            sets=_all_spelled(wishes.sets),
            args=_all_spelled(wishes.args),
            domains={n: tuple(map(_spelled, domain)) for n, domain in wishes.domains.items()},
        )
        self.parameters = {p.name: p for p in inspection.parameters}
        self.options = inspection.options
        said = {*wishes.sets, *wishes.domains}  # the command line wins over the probe file
        self.derive = {**{n: e for n, e in probe.derive.items() if n not in said}, **wishes.derive}
        self.grid = wishes.grid or probe.grid
        self.shape = self._shape()
        self.notes: list[str] = list(inspection.notes)
        self.why_fixed: dict[str, str] = {}
        self.not_probed: dict[str, str] = {}

    def build(self) -> Description:
        self._check_names()
        values = self._values()
        if self.inspection.autotune:
            self.notes.append(
                f"baseline and domains are those of the kernel's own @triton.autotune list "
                f"({len(self.inspection.autotune)} configurations; the first is the baseline)"
            )
        knobs: dict[str, Knob] = {}
        fixed: Config = {}
        for name in self._turnable():
            domain, why = self._domain(name, values)
            if domain is None:
                if name in values and (name in self.parameters or name in self._set_by_user()):
                    self._fix(name, values[name], fixed)
                self._note_fixed(name, why)
                continue
            baseline = values[name] if name in values else domain[0]
            domain = _with(domain, baseline)
            if len(domain) == 1:
                self._fix(name, baseline, fixed)
                self.why_fixed[name] = f"there is one value to try ({baseline!r})"
                continue
            knobs[name] = Knob(name, self._kind(name), domain, baseline)
        self._demand_constexprs(knobs, fixed)
        args = self._arguments()
        if not self.grid:
            self.notes.append("no grid was given (--grid), so what a knob changes on the host cannot be seen")
        return Description(
            target=self.target,
            knobs=knobs,
            fixed=fixed,
            args=args,
            derive=self.derive,
            shape=self.shape,
            grid=self.grid,
            parameters=self.parameters,
            options=tuple(self.options),
            why_fixed=self.why_fixed,
            not_probed=self.not_probed,
            notes=tuple(self.notes),
        )

    def _shape(self) -> dict[str, Value]:
        shapes = self.probe.shapes
        regime = self.wishes.regime
        if regime and regime not in shapes:
            raise UsageError(f"there is no regime {regime!r} (the probe file has {', '.join(shapes) or 'none'}).")
        if (regime or next(iter(shapes), "")) == RUN:
            raise UsageError(
                f"the regime {RUN!r} holds the sizes of --stage run, and none that a program is compiled for: "
                "SHAPES needs another one before it."
            )
        return dict(shapes[regime or next(iter(shapes))]) if shapes else {}

    def _host_names(self) -> set[str]:
        """Names that only host expressions read: a knob may live there."""
        texts = [*self.derive.values(), *([self.grid] if self.grid else [])]
        told = [v for v in {**self.probe.args, **self.wishes.args}.values() if isinstance(v, str)]
        texts += [f"({match['dims']},)" for value in told if (match := DESCRIPTOR.match(value))]
        return {n for text in texts for n in expressions.names_in(text)}

    def _check_names(self) -> None:
        known = set(self.parameters) | set(self.options) | self._host_names()
        owner = f"kernel {self.inspection.kernel!r}"
        constexprs = [n for n, p in self.parameters.items() if p.constexpr and not p.heuristic]
        knobs = {*constexprs, *self.target.option_domains}
        for name in [*self.wishes.sets, *self.wishes.domains, *self.probe.knobs, *self.probe.baseline]:
            if name not in known:
                raise UnknownKnob(
                    owner, name, knobs, otherwise="What only host code reads needs a --grid or --derive that reads it."
                )
            parameter = self.parameters.get(name)
            if parameter and parameter.heuristic:
                raise UsageError(f"{name} of {owner} is computed by @triton.heuristics: it cannot be set or turned.")
            if parameter and not parameter.constexpr and name in {**self.wishes.domains, **self.probe.knobs}:
                raise UsageError(
                    f"{name} of {owner} is a run-time argument, not a knob; give its value with --arg {name}=…."
                )
        for name in self.derive:
            if name in {*self.wishes.sets, *self.wishes.domains, *self.probe.knobs, *self.probe.baseline}:
                raise UsageError(f"{name} of {owner} is derived and set or turned as well; take one of the two away.")
        for name in [*self.wishes.sets, *self.probe.baseline]:
            if name in self.parameters and not self.parameters[name].constexpr:
                raise UsageError(f"{name} of {owner} is a run-time argument; give its value with --arg {name}=…")
        for name in self.wishes.args:
            if name in self.options and name not in self.parameters:
                raise UsageError(f"{name} is an option of the compiler; set it with --set {name}=…")
        for name in [*self.wishes.args, *self.wishes.derive]:
            if name not in known | set(self.shape):
                raise UnknownKnob(owner, name, self.parameters, "--arg and --derive take the kernel's parameters.")

    def _set_by_user(self) -> set[str]:
        return {*self.probe.baseline, *self.wishes.config, *self.wishes.sets, *self.wishes.args, *self.probe.args}

    def _values(self) -> Config:
        """The baseline of everything that has one; what is said later and closer to the user wins."""
        values: Config = {n: v for n, v in self.options.items() if n in self.target.option_domains}
        values |= {n: p.default for n, p in self.parameters.items() if p.constexpr and p.has_default}
        for config in self.inspection.autotune[:1]:
            values |= {n: v for n, v in config.items() if n in self.parameters or v is not None}
        values |= self.probe.baseline
        values |= {n: v for n, v in {**self.probe.args, **self.wishes.args}.items() if self._constexpr(n)}
        for name, value in self.wishes.config.items():
            if name in self.parameters or name in self.options or name in self._host_names():
                values[name] = value
            else:
                self.notes.append(
                    f"{name} of {self.wishes.config_name} is read by no code: neither a parameter nor an option"
                )
        values |= self.wishes.sets
        return {n: v for n, v in values.items() if n not in self.derive}

    def _constexpr(self, name: str) -> bool:
        return name in self.parameters and self.parameters[name].constexpr

    def _turnable(self) -> Iterable[str]:
        """Names that could be knobs: constexpr parameters in signature order, then options, then host names."""
        constexprs = [n for n, p in self.parameters.items() if p.constexpr and not p.heuristic and n not in self.derive]
        options = [n for n in self.options if n not in self.parameters and n not in self.derive]
        given = {*self.probe.knobs, *self.wishes.domains, *self.wishes.sets}
        host = [n for n in given if n not in self.parameters and n not in self.options]
        return [*constexprs, *options, *sorted(host, key=[*self.probe.knobs, *self.wishes.domains, *given].index)]

    def _kind(self, name: str) -> KnobKind:
        if name in self.parameters:
            return KnobKind.CONSTEXPR_AND_OPTION if name in self.options else KnobKind.CONSTEXPR
        return KnobKind.OPTION if name in self.options else KnobKind.HOST

    def _domain(self, name: str, values: Config) -> tuple[tuple[Value, ...] | None, str]:
        """The domain of a knob, or None and why it is no knob."""
        given = self.wishes.domains.get(name, self.probe.knobs.get(name))
        if given is not None:
            if not given:
                raise UsageError(f"the domain of {name} is empty; give at least one value: --domain {name}=1,2.")
            return given, ""
        if self.probe.knobs:
            turnable = name not in self.options or name in self.target.option_domains
            return None, "the probe file does not turn it" if turnable else why_not_a_knob(self.target, name)
        tuned = _ordered(_distinct(c[name] for c in self.inspection.autotune if name in c))
        if len(tuned) > 1:
            return tuned, ""
        if name in self.options:
            domain = option_domain(self.target, name, values.get(name, self.options[name]))
            return domain, why_not_a_knob(self.target, name)
        if name in {**self.probe.args, **self.wishes.args}:
            return None, "its value was given with --arg"
        if name not in values:
            return None, ""
        domain = infer_domain(name, values[name])
        if domain is not None:
            self.notes.append(
                f"domain of {name} inferred around {values[name]!r}: {', '.join(map(str, domain))} (--domain {name}=…)"
            )
            return domain, ""
        return None, f"no domain can be inferred around {values[name]!r} (--domain {name}=…)"

    def _fix(self, name: str, value: Value, fixed: Config) -> None:
        """Keep a value that is not turned; what only host expressions read is no business of the compiler's."""
        (self.shape if self._kind(name) is KnobKind.HOST else fixed)[name] = value

    def _note_fixed(self, name: str, why: str) -> None:
        if name in self.parameters:
            self.why_fixed[name] = why
        elif why:
            self.not_probed[name] = why

    def _demand_constexprs(self, knobs: dict[str, Knob], fixed: Config) -> None:
        missing = [
            n
            for n, p in self.parameters.items()
            if p.constexpr and not p.heuristic and n not in knobs and n not in fixed and n not in self.derive
        ]
        if missing:
            raise NeedsHelp(
                f"no value is known for {_listed(missing)} of kernel {self.inspection.kernel!r}. Give a baseline:\n  "
                + " ".join(f"--set {n}=…" for n in missing)
                + "\n  (or --config FILE.json, --derive NAME=EXPRESSION, or a probe file)"
            )

    def _arguments(self) -> dict[str, Value]:
        """A value or type for each run-time argument; what is not given is inferred from its use and name."""
        given = {**self.probe.args, **self.shape, **self.wishes.args}
        kinds = infer_argument_kinds(self.inspection.functions, self.inspection.parameters)
        args: dict[str, Value] = {}
        inferred: list[str] = []
        missing: dict[str, str] = {}
        for name, parameter in self.parameters.items():
            if parameter.constexpr or name in self.derive:
                continue
            if name in given:
                args[name] = self._checked(name, given[name])
            elif parameter.has_default:
                args[name] = parameter.default
            elif kinds.get(name) == "integer":
                args[name] = "i32:16"
                inferred.append(name)
            else:
                missing[name] = {"pointer": "'*bf16'", "descriptor": "'tensordesc<bf16[BLOCK_M, BLOCK_K]>'"}.get(
                    kinds.get(name) or "", "VALUE"
                )
        if missing:
            raise NeedsHelp(
                f"the type of {_listed(list(missing))} of kernel {self.inspection.kernel!r} cannot be inferred. "
                "Give it:\n  "
                + " ".join(f"--arg {n}={v}" for n, v in missing.items())
                + "\n  (types as Triton spells them: *u8, *fp16, *bf16, *fp32, i32, i32:16, fp32; or a number)"
            )
        if inferred:
            self.notes.append(f"taken for 32-bit integers divisible by 16: {', '.join(inferred)} (--arg NAME=VALUE)")
            self._warn_of_strides(args, inferred)
        if self.target.backend == "hip" and any(isinstance(v, str) and v.startswith("*") for v in args.values()):
            self.notes.append("pointers are taken to span less than 2 GiB, so that buffer instructions may be used")
        return args

    def _checked(self, name: str, value: Value) -> Value:
        """A given argument, refused if its text is no type."""
        if isinstance(value, str) and (complaint := dtypes.complaint(value)):
            if value.startswith("py:"):
                complaint = "infinities and NaN are no argument values here; a compile sees only the type: fp32"
            raise UsageError(f"argument {name} of kernel {self.inspection.kernel!r}: {complaint}.")
        return value

    def _warn_of_strides(self, args: Mapping[str, Value], inferred: Sequence[str]) -> None:
        """Say it first where no stride is 1 and one could be: then much less is compiled in."""
        strides = [n for n in args if "stride" in n.lower()]
        functions = self.inspection.functions
        guessed = [n for n in contiguity.open_strides(functions, strides) if n in inferred]
        if not guessed or any(args[n] == 1 for n in strides):
            return
        likely = [n for n in contiguity.likely_units(functions, strides) if n in inferred]
        how = f": --arg {likely[0]}=1, for one" if likely else " (--arg NAME=1)"
        self.notes.insert(
            0,
            "no stride is known to be 1. If one is 1 where you launch the kernel, give it, or this is another program "
            f"than the one you launch{how}",
        )


def infer_domain(name: str, value: Value) -> tuple[Value, ...] | None:
    """Values worth trying around a baseline; None where the value does not tell."""
    if isinstance(value, bool):
        return (False, True)
    if value in (0, 1) and FLAG.match(name):
        return (0, 1)
    if isinstance(value, int) and value > 0 and value & (value - 1) == 0:
        if value >= 16:
            return (value // 4, value // 2, value, value * 2)
        return _with((1, 2, 4, 8), value)
    if (value is None or isinstance(value, str)) and "cache" in name.lower():
        return _with(CACHE_MODIFIERS, value)
    return None


def _ordered(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Numbers in ascending order; anything else as it is."""
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return tuple(sorted(values))  # type: ignore[type-var]
    return values


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    """Values without repeats, in order; True and 1 are different values."""
    return tuple({repr(v): v for v in values}.values())


def _with(domain: tuple[Value, ...], baseline: Value) -> tuple[Value, ...]:
    """The domain without repeats and with the baseline in it: in its place among numbers, else in front."""
    domain = _distinct(domain)
    if repr(baseline) in map(repr, domain):
        return domain
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (*domain, baseline))
    return _ordered((*domain, baseline)) if numeric else (baseline, *domain)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
