"""Builder of a description, from the source, a probe file, a shipped configuration and the command line.

Values, domains and types that can be inferred are inferred and noted. For those that cannot, the error names the flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gluonmap.constraints import expressions
from gluonmap.model import dtypes
from gluonmap.model.candidate import Config, Value
from gluonmap.model.dtypes import DESCRIPTOR
from gluonmap.model.errors import NeedsHelp, UnknownKnob, UsageError
from gluonmap.model.inspection import Inspection
from gluonmap.model.knobs import KnobKind
from gluonmap.model.targets import Target, option_domain, why_not_a_knob
from gluonmap.source import contiguity
from gluonmap.source.argument_kinds import infer_argument_kinds
from gluonmap.spec.description import Description, Knob
from gluonmap.spec.domains import distinct, in_order, infer_domain, with_baseline
from gluonmap.spec.json_values import json_value, json_values
from gluonmap.spec.probe_file import RUN, ProbeFile


@dataclass(frozen=True, slots=True)
class Overrides:
    """Values from the command line, which win over the probe file and the inspection."""

    kernel: str = ""
    sets: Config = field(default_factory=dict)
    domains: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    derive: dict[str, str] = field(default_factory=dict)
    args: dict[str, Value] = field(default_factory=dict)
    grid: str = ""
    regime: str = ""
    config: Config = field(default_factory=dict)
    """Values of a shipped configuration file."""
    config_name: str = ""
    """Name of that file, for notes."""


def describe(inspection: Inspection, target: Target, probe: ProbeFile, overrides: Overrides) -> Description:
    """Return the description of one kernel on one target.

    Raises:
        UnknownKnob: neither the kernel nor the compiler nor a host expression has the name.
        NeedsHelp: a value or type cannot be inferred; the message shows the flag that gives it.
        UsageError: an empty domain, a baseline outside its domain's kind, a wrong regime.
    """
    return _DescriptionBuilder(inspection, target, probe, overrides).build()


class _DescriptionBuilder:
    """Builder of one description; it collects the reasons and notes while it infers values and domains."""

    def __init__(self, inspection: Inspection, target: Target, probe: ProbeFile, overrides: Overrides) -> None:
        self.inspection, self.target = inspection, target
        self.probe = replace(
            probe,
            baseline=json_values({n: v for n, v in probe.baseline.items() if n not in overrides.derive}),
            args=json_values(probe.args),
            knobs={n: tuple(map(json_value, d)) for n, d in probe.knobs.items() if n not in overrides.derive},
        )
        self.overrides = replace(
            overrides,
            sets=json_values(overrides.sets),
            args=json_values(overrides.args),
            domains={n: tuple(map(json_value, domain)) for n, domain in overrides.domains.items()},
        )
        self.parameters = {p.name: p for p in inspection.parameters}
        self.options = inspection.options
        set_or_turned = {*overrides.sets, *overrides.domains}  # the command line wins over the probe file
        self.derive = {**{n: e for n, e in probe.derive.items() if n not in set_or_turned}, **overrides.derive}
        self.grid = overrides.grid or probe.grid
        self.shape = self._shape()
        self.notes: list[str] = list(inspection.notes)
        self.why_fixed: dict[str, str] = {}
        self.not_probed: dict[str, str] = {}

    def build(self) -> Description:
        """Return the description. Call it once: it adds to the notes."""
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
            domain = with_baseline(domain, baseline)
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
        regime = self.overrides.regime
        if regime and regime not in shapes:
            raise UsageError(f"there is no regime {regime!r} (the probe file has {', '.join(shapes) or 'none'}).")
        if (regime or next(iter(shapes), "")) == RUN:
            raise UsageError(
                f"the regime {RUN!r} holds the sizes of --stage run, and none that a program is compiled for: "
                "SHAPES needs another one before it."
            )
        return dict(shapes[regime or next(iter(shapes))]) if shapes else {}

    def _host_names(self) -> set[str]:
        """Return the names that host expressions read; a knob may be among them."""
        texts = [*self.derive.values(), *([self.grid] if self.grid else [])]
        types = [v for v in {**self.probe.args, **self.overrides.args}.values() if isinstance(v, str)]
        texts += [f"({match['dims']},)" for value in types if (match := DESCRIPTOR.match(value))]
        return {n for text in texts for n in expressions.names_in(text)}

    def _check_names(self) -> None:
        known = set(self.parameters) | set(self.options) | self._host_names()
        owner = f"kernel {self.inspection.kernel!r}"
        constexprs = [n for n, p in self.parameters.items() if p.constexpr and not p.heuristic]
        knobs = {*constexprs, *self.target.option_domains}
        for name in [*self.overrides.sets, *self.overrides.domains, *self.probe.knobs, *self.probe.baseline]:
            if name not in known:
                raise UnknownKnob(
                    owner, name, knobs, otherwise="What only host code reads needs a --grid or --derive that reads it."
                )
            parameter = self.parameters.get(name)
            if parameter and parameter.heuristic:
                raise UsageError(f"{name} of {owner} is computed by @triton.heuristics: it cannot be set or turned.")
            if parameter and not parameter.constexpr and name in {**self.overrides.domains, **self.probe.knobs}:
                raise UsageError(
                    f"{name} of {owner} is a run-time argument, not a knob; give its value with --arg {name}=…."
                )
        for name in self.derive:
            if name in {*self.overrides.sets, *self.overrides.domains, *self.probe.knobs, *self.probe.baseline}:
                raise UsageError(f"{name} of {owner} is derived and set or turned as well; take one of the two away.")
        for name in [*self.overrides.sets, *self.probe.baseline]:
            if name in self.parameters and not self.parameters[name].constexpr:
                raise UsageError(f"{name} of {owner} is a run-time argument; give its value with --arg {name}=…")
        for name in self.overrides.args:
            if name in self.options and name not in self.parameters:
                raise UsageError(f"{name} is an option of the compiler; set it with --set {name}=…")
        for name in [*self.overrides.args, *self.overrides.derive]:
            if name not in known | set(self.shape):
                raise UnknownKnob(owner, name, self.parameters, "--arg and --derive take the kernel's parameters.")

    def _set_by_user(self) -> set[str]:
        return {
            *self.probe.baseline,
            *self.overrides.config,
            *self.overrides.sets,
            *self.overrides.args,
            *self.probe.args,
        }

    def _values(self) -> Config:
        """Return the baseline of everything that has one; a later source, closer to the user, wins."""
        values: Config = {n: v for n, v in self.options.items() if n in self.target.option_domains}
        values |= {n: p.default for n, p in self.parameters.items() if p.constexpr and p.has_default}
        for config in self.inspection.autotune[:1]:
            values |= {n: v for n, v in config.items() if n in self.parameters or v is not None}
        values |= self.probe.baseline
        values |= {n: v for n, v in {**self.probe.args, **self.overrides.args}.items() if self._constexpr(n)}
        for name, value in self.overrides.config.items():
            if name in self.parameters or name in self.options or name in self._host_names():
                values[name] = value
            else:
                self.notes.append(
                    f"{name} of {self.overrides.config_name} is read by no code: neither a parameter nor an option"
                )
        values |= self.overrides.sets
        return {n: v for n, v in values.items() if n not in self.derive}

    def _constexpr(self, name: str) -> bool:
        return name in self.parameters and self.parameters[name].constexpr

    def _turnable(self) -> Iterable[str]:
        """Return possible knobs: constexpr parameters in signature order, then options, then host names."""
        constexprs = [n for n, p in self.parameters.items() if p.constexpr and not p.heuristic and n not in self.derive]
        options = [n for n in self.options if n not in self.parameters and n not in self.derive]
        given = {*self.probe.knobs, *self.overrides.domains, *self.overrides.sets}
        host = [n for n in given if n not in self.parameters and n not in self.options]
        return [*constexprs, *options, *sorted(host, key=[*self.probe.knobs, *self.overrides.domains, *given].index)]

    def _kind(self, name: str) -> KnobKind:
        if name in self.parameters:
            return KnobKind.CONSTEXPR_AND_OPTION if name in self.options else KnobKind.CONSTEXPR
        return KnobKind.OPTION if name in self.options else KnobKind.HOST

    def _domain(self, name: str, values: Config) -> tuple[tuple[Value, ...] | None, str]:
        """Return the domain of a knob, or None and the reason why it is no knob."""
        given = self.overrides.domains.get(name, self.probe.knobs.get(name))
        if given is not None:
            if not given:
                raise UsageError(f"the domain of {name} is empty; give at least one value: --domain {name}=1,2.")
            return given, ""
        if self.probe.knobs:
            turnable = name not in self.options or name in self.target.option_domains
            return None, "the probe file does not turn it" if turnable else why_not_a_knob(self.target, name)
        tuned = in_order(distinct(c[name] for c in self.inspection.autotune if name in c))
        if len(tuned) > 1:
            return tuned, ""
        if name in self.options:
            domain = option_domain(self.target, name, values.get(name, self.options[name]))
            return domain, why_not_a_knob(self.target, name)
        if name in {**self.probe.args, **self.overrides.args}:
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
        """Keep a value that is not probed: in the shape if only host expressions read the name, else in `fixed`."""
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
                f"no value is known for {_enumerate(missing)} of kernel {self.inspection.kernel!r}. "
                "Give a baseline:\n  "
                + " ".join(f"--set {n}=…" for n in missing)
                + "\n  (or --config FILE.json, --derive NAME=EXPRESSION, or a probe file)"
            )

    def _arguments(self) -> dict[str, Value]:
        """Return a value or type for each run-time argument, inferred from its use and name if it is not given."""
        given = {**self.probe.args, **self.shape, **self.overrides.args}
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
                f"the type of {_enumerate(list(missing))} of kernel {self.inspection.kernel!r} cannot be inferred. "
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
        """Return a given argument.

        Raises:
            UsageError: its text is no type.
        """
        if isinstance(value, str) and (complaint := dtypes.complaint(value)):
            if value.startswith("py:"):
                complaint = "infinities and NaN are no argument values here; a compile sees only the type: fp32"
            raise UsageError(f"argument {name} of kernel {self.inspection.kernel!r}: {complaint}.")
        return value

    def _warn_of_strides(self, args: Mapping[str, Value], inferred: Sequence[str]) -> None:
        """Put a note first if no stride is 1 and one could be: a stride of 1 makes another program."""
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


def _enumerate(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
