"""The map of one kernel on one target, as frozen data: each knob's values, and all knobs together."""

from __future__ import annotations

import msgspec

from gluonmap.model.candidate import Config, Stage, Trial, Value
from gluonmap.model.joint_map import Joint
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Check, Figures, Resources, Timing

MAP_SCHEMA = "gluonmap.map/1"


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of executing one candidate, on a device or by the model on the CPU."""

    reached: Stage
    """Stage of the outcome: the one asked for, or the one where the candidate ended."""
    check: Check | None = None
    timing: Timing | None = None
    figures: Figures | None = None


class ExecutedStage(msgspec.Struct, frozen=True):
    """The execution of the baseline and the single values: on a device, or (stage RUN) by the model on the CPU."""

    stage: Stage
    """Last stage that was asked for."""
    device: str
    """Name of the device; for RUN that of the model."""


class ValueMap(msgspec.Struct, frozen=True):
    """One value of one knob, all other knobs at the baseline."""

    value: Value
    outcome: str
    """Name of an `Outcome`, or "unknown" if there was no answer."""
    effect: Effect
    reason: str = ""
    line: int | None = None
    """Line of the file at the time of the probe."""
    file: str = ""
    stage: str = ""
    """Place where it ended: "front end" or a back-end stage."""
    kind: str = ""
    """Signal, exception class, "budget" or "deadline"."""
    exit_status: int | None = None
    digest: str = ""
    code: str = ""
    detail: str = ""
    """Difference that a live value makes: "instructions", "descriptor only", "launch only", "grid", "arguments"."""
    because: tuple[str, ...] = ()
    """Literals of the source that forbid the value, in words."""
    resources: Resources | None = None
    warnings: tuple[str, ...] = ()
    repeat: str = ""
    """Command that repeats this one candidate by hand."""
    measured: Measured | msgspec.UnsetType = msgspec.UNSET
    """Result of its execution; absent if it was only compiled."""


class KnobMap(msgspec.Struct, frozen=True):
    """One knob: its class and its values."""

    knob_class: KnobClass = msgspec.field(name="class")
    kind: KnobKind
    baseline: Value
    why: str
    values: tuple[ValueMap, ...]
    equivalent: tuple[tuple[Value, ...], ...] = ()
    """Values (two or more) whose programs are identical, grid and arguments too."""
    line: int | None = None
    """Line of the parameter's declaration."""


class Recipe(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a candidate other than the baseline and the moved knobs."""

    args: dict[str, Value] = {}
    """Run-time arguments as given or inferred."""
    fixed: Config = {}
    """Constexpr parameters and options that are set, and are no knobs of the map."""
    derive: dict[str, str] = {}
    grid: str = ""
    stubs: tuple[str, ...] = ()
    trial: Trial | None = None
    """Trial of the baseline, if a stage beyond the compile was asked for."""
    probe_file: str = ""
    """Probe file that a candidate needs."""


class SpaceMap(msgspec.Struct, frozen=True, kw_only=True):
    """The map of one kernel on one target: effects, reasons and resources."""

    kernel: str
    """Name of the function."""
    file: str
    target: str
    triton: str
    specialisation: dict[str, str]
    """Run-time argument -> the compiler's knowledge of it, as Triton spells it."""
    baseline: Config
    knobs: dict[str, KnobMap]
    source: dict[str, str] = {}
    """File that the kernel's import read, relative to the kernel's folder -> hash of its syntax tree. Empty: not
    recorded."""
    recipe: Recipe = Recipe()
    """Instructions to make any candidate of this map again."""
    schema: str = MAP_SCHEMA
    shape: dict[str, Value] = {}
    grid: tuple[int, ...] | None = None
    outcome: str = Outcome.PASS.value
    """Name of the baseline's `Outcome`, or "unknown" if there was no answer."""
    stable: bool | None = None
    """Two compiles of the baseline, with different hash seeds, gave one program. None: not asked."""
    resources: Resources | None = None
    digest: str = ""
    stage: str = ""
    """Place where a failing baseline ended: "front end" or a back-end stage."""
    kind: str = ""
    """Signal, exception class, "budget" or "deadline" of a failing baseline."""
    exit_status: int | None = None
    reason: str = ""
    line: int | None = None
    because: tuple[str, ...] = ()
    """Literals of the source that forbid the baseline, in words."""
    next_step: str = ""
    """Advice for a failing baseline."""
    warnings: tuple[str, ...] = ()
    """Error diagnostics that came with a passing baseline."""
    fixed: dict[str, str] = {}
    """Constexpr parameter that is no knob -> the reason."""
    not_probed: dict[str, str] = {}
    """Option that is no knob -> the reason."""
    literals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Inferences, and all that a reader must know to trust this map."""
    unanswered: int = 0
    """Number of candidates that were planned and not asked (interrupted, out of time)."""
    repeat: str = ""
    execution: ExecutedStage | msgspec.UnsetType = msgspec.UNSET
    """Execution of the baseline and the single values; absent if they were only compiled."""
    measured: Measured | msgspec.UnsetType = msgspec.UNSET
    """Result of the baseline's execution; absent if it was only compiled."""
    joint: Joint | None = None
    """All knobs together; None: only one at a time was asked for, or the baseline fails."""
