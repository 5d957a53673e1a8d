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
    """How far a candidate is taken. Each stage is its own level of evidence."""

    COMPILE = "COMPILE"
    RUN = "RUN"
    LAUNCH = "LAUNCH"
    CHECK = "CHECK"
    TIME = "TIME"

    @property
    def on_device(self) -> bool:
        """It takes a GPU."""
        return self in (Stage.LAUNCH, Stage.CHECK, Stage.TIME)

    @property
    def executes(self) -> bool:
        """It goes beyond the compile: the program is executed, on a GPU or by the model on the CPU."""
        return self is not Stage.COMPILE


class Proof(StrEnum):
    """What equality of two programs rests on: their machine code, or the LLVM IR that it is generated from."""

    CODE = "code"
    IR = "ir"


class Call(msgspec.Struct, frozen=True):
    """A configuration at other sizes than the candidate's own; where no tile divides them mostly another program."""

    shape: dict[str, Value]
    args: dict[str, Value]
    config: Config
    grid: tuple[int, ...]


class Watch(msgspec.Struct, frozen=True, omit_defaults=True):
    """How closely a run on the CPU is looked at."""

    sanitize: bool = False
    """Report accesses, waits and barriers that are wrong whether or not they spoil a number."""
    thorough: bool = False
    """More sizes, seeds and orders of waves."""


class Trial(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a stage beyond the compile needs: part of the question, not of the program."""

    shape: dict[str, Value]
    """Sizes, as the probe file's `inputs` takes them."""
    host: Config = {}
    """Knobs that only host code reads."""
    tolerance: dict[str, float] = {}
    """Output → relative error, as the probe file declares it."""
    ragged: Call | None = None
    """On a device: at sizes that no tile divides."""
    probe: str = ""
    """Hash of the probe file's syntax tree: other inputs are another question. On the CPU of the model's text too."""
    device: str = ""
    """Name of the device: on another one it is another question."""
    small: dict[str, Call] = {}
    """On the CPU: the calls that are executed, by the name of their sizes ("default", "ragged")."""
    baseline: dict[str, Call] = {}
    """The baseline's calls at the same sizes, where there is no reference: their results are to be met."""
    shapes: dict[str, dict[str, Value]] = {}
    """The sizes that those are made of, as declared."""
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
    """The launch grid, where it is known. Part of the question, not of the program."""
    stage: Stage = Stage.COMPILE
    proof: Proof = Proof.CODE
    trial: Trial | None = None
    """Of a stage beyond the compile."""
