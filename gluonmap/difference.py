"""What differs between two maps, as frozen data. "Before" is the first map, "after" the second: A → B."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gluonmap.joint import Constraint
from gluonmap.judge import Feasibility
from gluonmap.model import Config, KnobClass, KnobKind, Resources, Value
from gluonmap.space import ValueMap

DIFF_SCHEMA = "gluonmap.diff/1"


class Side(msgspec.Struct, frozen=True):
    """One of the two maps."""

    kernel: str
    file: str
    target: str
    triton: str
    baseline: Config
    outcome: str
    """Of the baseline."""
    stable: bool | None
    depth: str
    """"singles", "joint" or "deep"."""
    stage: str
    """The last stage that was asked for."""


class Circumstance(msgspec.Struct, frozen=True):
    """Something that is no finding and may be the cause of one."""

    name: str
    """kernel, file, target, Triton, source, arguments, sizes, grid, fixed, derived, restrictions, baseline, depth,
    stage, device."""
    before: str
    after: str


class Turn(StrEnum):
    """What became of a value."""

    ABORTING = "newly aborting"
    """A signal now ends the compiler, and with it whatever tunes."""
    FAILING = "newly failing"
    PASSING = "newly passing"
    OTHERWISE = "fails otherwise"
    INERT = "newly inert"
    LIVE = "newly live"
    ELSEWHERE = "live elsewhere"
    """In the program, and no longer in the launch alone; or the other way round."""
    UNKNOWN = "answered in one only"


class ValueChange(msgspec.Struct, frozen=True):
    """A value of a knob that both maps tried, all other knobs at the baseline."""

    knob: str
    value: Value
    turn: Turn
    one_configuration: bool
    """Both maps mean the same configuration; false: the baselines differ in another knob."""
    before: ValueMap
    after: ValueMap


class KnobState(msgspec.Struct, frozen=True):
    """What one map says of a knob."""

    knob_class: KnobClass = msgspec.field(name="class")
    kind: KnobKind
    why: str
    one_program: tuple[tuple[Value, ...], ...]
    """Groups of values that are one program everywhere, of those that both maps tried."""
    condition: str | None
    """Beside other values it matters: "" never, "always", "sometimes", or only where this holds. None: not asked."""


class KnobChange(msgspec.Struct, frozen=True):
    """A knob of which the maps say different things."""

    knob: str
    before: KnobState | None
    """None: that map does not turn it."""
    after: KnobState | None
    held: Value = None
    """Where one map does not turn it: the value at which the two are compared."""
    only_before: tuple[Value, ...] = ()
    """Values that the other map did not try."""
    only_after: tuple[Value, ...] = ()


class Move(StrEnum):
    """What became of a constraint."""

    GONE = "gone"
    NEW = "new"
    LIMIT = "limit moved"
    """The same terms, other numbers."""
    OTHER = "changed"
    """Another relation for the same reason, or over the same single knob."""


class Direction(StrEnum):
    """What a changed constraint allows, of what both maps tried."""

    LOOSER = "looser"
    TIGHTER = "tighter"
    SHIFTED = "shifted"
    """It allows some more and some less."""


class Budget(msgspec.Struct, frozen=True):
    """A limit of the hardware that a constraint stands for."""

    unit: str
    before: int
    after: int


class ConstraintChange(msgspec.Struct, frozen=True):
    """A constraint, read or learned, that one map has and the other has not."""

    move: Move
    before: Constraint | None
    after: Constraint | None
    direction: Direction | None = None
    """None: its knobs or their values are not the other map's."""
    budget: Budget | None = None
    """Where the limit of the hardware that it stands for has moved too."""
    freed: int | None = None
    """Configurations that `before` forbids and the second map allows. None: not counted."""
    forbidden: int | None = None
    """Configurations that the first map allows and `after` forbids. None: not counted."""


class Formula(msgspec.Struct, frozen=True):
    """The bytes of shared memory of a configuration, and the target's limit."""

    before: str
    before_limit: int
    after: str
    after_limit: int


class Count(msgspec.Struct, frozen=True):
    """A number that both maps tell. None: it is not known."""

    name: str
    before: int | None
    after: int | None
    effort: bool = False
    """It depends on how much was asked, too: no change of the kernel by itself."""


class Shared(msgspec.Struct, frozen=True):
    """The configurations of the values that both maps tried together, by the constraints of each."""

    signature: int
    """Those that no user of either map ruled out."""
    before: int
    """Feasible by the first map."""
    after: int
    both: int
    proved: bool
    """Each map asked every configuration: these are facts, not predictions."""
    lost_example: Config | None = None
    """Feasible by the first map and not by the second; as near to the first baseline as any."""
    gained_example: Config | None = None

    @property
    def lost(self) -> int:
        """Feasible by the first map, and not by the second."""
        return self.before - self.both

    @property
    def gained(self) -> int:
        """Feasible by the second map, and not by the first."""
        return self.after - self.both


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one map says of one configuration."""

    verdict: Feasibility
    compiled: bool
    """This very configuration was asked; false: its constraints tell."""
    outcome: str = ""
    reason: str = ""
    line: str = ""
    """Where in the kernel's source it ended, or what it breaks stands: "kernels/gemm.py:112"."""
    stage: str = ""
    broken: tuple[str, ...] = ()
    """The constraints that forbid it, in words."""


class Flip(msgspec.Struct, frozen=True):
    """A configuration that passes by one map and fails by the other; at least one of them asked it."""

    config: Config
    """As the first map spells it."""
    moves: Config
    """Against the first map's baseline."""
    before: Said
    after: Said
    deeper: bool = False
    """It fails on a device, where the other map was not taken: the compiles do not differ."""

    @property
    def lost(self) -> bool:
        """It passes by the first map."""
        return self.before.verdict is Feasibility.FEASIBLE


class Pair(msgspec.Struct, frozen=True):
    """A configuration that passed in both maps, and what its programs take."""

    config: Config
    moves: Config
    before_digest: str
    after_digest: str
    before: Resources
    after: Resources

    @property
    def one_program(self) -> bool:
        """Nothing that the device executes or reserves differs."""
        return self.before_digest == self.after_digest


class Growth(msgspec.Struct, frozen=True):
    """One resource of one configuration."""

    moves: Config
    resource: str
    """A field of `Resources`."""
    before: int
    after: int


class ResourceChange(msgspec.Struct, frozen=True):
    """One resource over all pairs of programs, equal pairs counted once."""

    resource: str
    compared: int
    grew: int
    shrank: int
    most: Growth | None
    """The largest growth."""
    least: Growth | None
    """The largest fall."""


class Asked(msgspec.Struct, frozen=True):
    """How many configurations the two maps can be compared on."""

    both: int
    """Asked for both."""
    passed_both: int
    one_program: int | None
    """Of those that passed in both and whose programs are known: how many are one program. None: none is known."""
    programs: int
    """How many those are."""
    unknown_after: int
    """Passed for the first map; the second neither asked nor predicts them."""
    unknown_before: int


class RegressionKind(StrEnum):
    """What has become worse."""

    BASELINE = "baseline"
    """It fails."""
    VALUE = "value"
    """One knob moved from the baseline fails."""
    COMBINATION = "combination"
    """Several knobs moved together fail."""
    PROGRAM = "program"
    """It passes, and is no longer handed over: its resources condemn it."""
    SPILLS = "spills"
    REGISTERS = "registers"


class Regression(msgspec.Struct, frozen=True, omit_defaults=True):
    """One configuration that was compiled and passed for the first map, and is worse off in the second."""

    kind: RegressionKind
    config: Config
    moves: Config
    again: Config
    """Moves from the second map's baseline that lead there."""
    handed_over: bool
    """It was one of the first map's hand-over."""
    after: Said | None = None
    """Why it fails."""
    growth: Growth | None = None
    """What it takes more of."""
    why: str = ""
    """Why it is no longer handed over."""
    file: str = ""
    line: int | None = None
    """Where in the kernel's source, today; the knob's declaration where no message tells."""


class Tolerance(msgspec.Struct, frozen=True):
    """Growth that is no regression yet."""

    percent: float = 10.0
    registers: int = 8
    """What a device hands out at once; registers and spills may grow by as much whatever the percentage."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """All that differs between two maps. Empty parts differ in nothing."""

    schema: str = DIFF_SCHEMA
    before: Side
    after: Side
    circumstances: tuple[Circumstance, ...]
    notes: tuple[str, ...]
    """What a reader must know to trust the comparison."""
    regressions: tuple[Regression, ...]
    values: tuple[ValueChange, ...]
    knobs: tuple[KnobChange, ...]
    constraints: tuple[ConstraintChange, ...]
    formula: Formula | None
    """None: the bytes and their limit are the same, or one map has no formula."""
    counts: tuple[Count, ...]
    """All of them, the equal ones too."""
    shared: Shared | None
    """None: one of the maps knows single values only, or its constraints are too entangled to count."""
    asked: Asked
    flips: tuple[Flip, ...]
    pairs: tuple[Pair, ...]
    resources: tuple[ResourceChange, ...]
    tolerance: Tolerance

    @property
    def changed(self) -> bool:
        """Whether the maps say anything different of the kernel. Circumstances alone are no change."""
        facts = (self.values, self.knobs, self.constraints, self.flips, self.regressions)
        return (
            any(facts)
            or self.formula is not None
            or any(count.before != count.after for count in self.counts if not count.effort)
            or any(change.grew or change.shrank for change in self.resources)
            or any(not pair.one_program for pair in self.pairs)
            or (self.before.outcome, self.before.stable) != (self.after.outcome, self.after.stable)
        )
