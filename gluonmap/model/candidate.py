"""One question to the compiler: a kernel's configuration on one target, up to one stage."""

from __future__ import annotations

from enum import StrEnum

import msgspec

Value = int | float | str | bool | None
"""One value of a knob. Layouts and dtypes that are no plain value are spelled as text."""

Config = dict[str, Value]
"""One value for every knob (not `triton.Config`). Treated as immutable; keys in signature order."""


def same(one: Value, other: Value) -> bool:
    """Return whether two values are equal and of one kind: True is not 1, 1 is not 1.0, and -0.0 is not 0.0."""
    return repr(one) == repr(other)


class Stage(StrEnum):
    """The last step that a candidate is taken to. Each stage is its own level of evidence."""

    COMPILE = "COMPILE"
    RUN = "RUN"
    LAUNCH = "LAUNCH"
    CHECK = "CHECK"
    TIME = "TIME"

    @property
    def on_device(self) -> bool:
        """Return whether the stage needs a GPU."""
        return self in (Stage.LAUNCH, Stage.CHECK, Stage.TIME)

    @property
    def executes(self) -> bool:
        """Return whether the program is executed after its compile, on a GPU or by the model on the CPU."""
        return self is not Stage.COMPILE


class Proof(StrEnum):
    """The text that was equal in two equal programs: their machine code, or the LLVM IR that it is generated from."""

    CODE = "code"
    IR = "ir"


class Call(msgspec.Struct, frozen=True):
    """A configuration at other sizes than the candidate's. If no tile divides them, it is mostly another program."""

    shape: dict[str, Value]
    args: dict[str, Value]
    config: Config
    grid: tuple[int, ...]


class Watch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The checks of a run on the CPU."""

    sanitize: bool = False
    """The sanitizer reports accesses, waits and barriers that are wrong, whether or not they spoil a number."""
    thorough: bool = False
    """The run tries more sizes, seeds and orders of waves."""


class Trial(msgspec.Struct, frozen=True, omit_defaults=True):
    """The inputs of a stage beyond the compile: part of the question, not of the program."""

    shape: dict[str, Value]
    """Sizes, as the probe file's `inputs` takes them."""
    host: Config = {}
    """Knobs that only host code reads."""
    tolerance: dict[str, float] = {}
    """Output → relative error, as the probe file declares it."""
    ragged: Call | None = None
    """On a device: the call at sizes that no tile divides."""
    probe: str = ""
    """Hash of the probe file's syntax tree, because other inputs are another question. On the CPU the hash covers the
    model's text as well."""
    device: str = ""
    """Name of the device: on another device it is another question."""
    small: dict[str, Call] = {}
    """On the CPU: the calls that are executed, by the name of their sizes ("default", "ragged")."""
    baseline: dict[str, Call] = {}
    """The baseline's calls at the same sizes, if there is no reference: candidates must meet their results."""
    shapes: dict[str, dict[str, Value]] = {}
    """Declared sizes of the calls in `small`, by their names."""
    watch: Watch = Watch()


class Candidate(msgspec.Struct, frozen=True):
    """One question to the oracle: does `config` of the kernel survive on `target`, up to `stage`?"""

    target: str
    """Canonical target name (gfx942, sm_90)."""
    args: dict[str, Value]
    """Run-time arguments: a number, or a type ("*bf16", "i32:16", "tensordesc<fp16[128, 64]>")."""
    config: Config
    """Every constexpr parameter and option, derived ones included."""
    grid: tuple[int, ...] | None = None
    """The launch grid; None: not known. It is part of the question, not of the program."""
    stage: Stage = Stage.COMPILE
    proof: Proof = Proof.CODE
    trial: Trial | None = None
    """Inputs of a stage beyond the compile; None: the candidate is only compiled."""
