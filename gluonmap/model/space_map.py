"""The map of one kernel on one target, as frozen data: each knob's values, and all knobs together."""

from __future__ import annotations

import msgspec

from gluonmap.model.candidate import Config, Stage, Trial, Value
from gluonmap.model.joint_map import Joint
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.verdict import Check, Figures, Resources, Timing

MAP_SCHEMA = "gluonmap.map/1"


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the execution of one candidate told, on a device or by the model on the CPU."""

    reached: Stage
    """The stage that the outcome is of: the one asked for, or where it ended."""
    check: Check | None = None
    timing: Timing | None = None
    figures: Figures | None = None


class OnDevice(msgspec.Struct, frozen=True):
    """That baseline and single values were executed: on a device, or (stage RUN) by the model on the CPU."""

    stage: Stage
    """The last stage asked for."""
    device: str
    """Its name; of RUN the model's."""


class ValueMap(msgspec.Struct, frozen=True):
    """One value of one knob, all other knobs at the baseline."""

    value: Value
    outcome: str
    """An `Outcome`, or "unknown" where no answer could be had."""
    effect: Effect
    reason: str = ""
    line: int | None = None
    """Line of the file, today."""
    file: str = ""
    stage: str = ""
    """Where it ended: "front end" or a back-end stage."""
    kind: str = ""
    """Signal, exception class, "budget" or "deadline"."""
    exit_status: int | None = None
    digest: str = ""
    code: str = ""
    detail: str = ""
    """What a live value changes: "instructions", "descriptor only", "launch only", "grid", "arguments"."""
    because: tuple[str, ...] = ()
    """Literals of the source that forbid the value, in words."""
    resources: Resources | None = None
    warnings: tuple[str, ...] = ()
    repeat: str = ""
    """Command that repeats this one candidate by hand."""
    measured: Measured | msgspec.UnsetType = msgspec.UNSET
    """What its execution told; absent where it was only compiled."""


class KnobMap(msgspec.Struct, frozen=True):
    """What is known of one knob."""

    knob_class: KnobClass = msgspec.field(name="class")
    kind: KnobKind
    baseline: Value
    why: str
    values: tuple[ValueMap, ...]
    equivalent: tuple[tuple[Value, ...], ...] = ()
    """Values (two or more) whose programs are identical, grid and arguments too."""
    line: int | None = None
    """Where the parameter is declared."""


class Recipe(msgspec.Struct, frozen=True, omit_defaults=True):
    """What, besides the baseline and a move, goes into a candidate."""

    args: dict[str, Value] = {}
    """Run-time arguments as given or inferred."""
    fixed: Config = {}
    """Constexpr parameters and options that are set and not turned."""
    derive: dict[str, str] = {}
    grid: str = ""
    stubs: tuple[str, ...] = ()
    trial: Trial | None = None
    """Of the baseline, where a stage on a device was asked for."""
    probe_file: str = ""
    """That it needs."""


class SpaceMap(msgspec.Struct, frozen=True, kw_only=True):
    """Effects, reasons and resources of one kernel on one target."""

    kernel: str
    """The function."""
    file: str
    target: str
    triton: str
    specialisation: dict[str, str]
    """What the compiler knows of each run-time argument."""
    baseline: Config
    knobs: dict[str, KnobMap]
    source: dict[str, str] = {}
    """Files that the kernel's import read, by name beside it -> hash of the syntax tree. Empty: not recorded."""
    recipe: Recipe = Recipe()
    """How to make any candidate of this map again."""
    schema: str = MAP_SCHEMA
    shape: dict[str, Value] = {}
    grid: tuple[int, ...] | None = None
    outcome: str = "PASS"
    """Of the baseline."""
    stable: bool | None = None
    """Two compiles of the baseline with different hash seeds gave one program. None: not asked."""
    resources: Resources | None = None
    digest: str = ""
    stage: str = ""
    """Where a failing baseline ended: "front end" or a back-end stage."""
    kind: str = ""
    """Of a failing baseline: signal, exception class, "budget" or "deadline"."""
    exit_status: int | None = None
    reason: str = ""
    line: int | None = None
    because: tuple[str, ...] = ()
    """Literals of the source that forbid the baseline, in words."""
    next_step: str = ""
    """What to do about a failing baseline."""
    warnings: tuple[str, ...] = ()
    """Error diagnostics that came with a passing baseline."""
    fixed: dict[str, str] = {}
    """Constexpr parameters that are no knobs -> why."""
    not_probed: dict[str, str] = {}
    """Options that are no knobs -> why."""
    literals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was inferred, and what a reader must know to trust this map."""
    unanswered: int = 0
    """Candidates that were planned and not asked (interrupted, out of time)."""
    repeat: str = ""
    on_device: OnDevice | msgspec.UnsetType = msgspec.UNSET
    """Absent where baseline and single values were only compiled."""
    measured: Measured | msgspec.UnsetType = msgspec.UNSET
    """Of the baseline."""
    joint: Joint | None = None
    """All knobs together; None: only one at a time was asked for, or the baseline fails."""
