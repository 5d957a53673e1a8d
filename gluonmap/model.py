"""The words of the project as frozen data: what is asked, what is answered, what a map holds.

Nothing here does I/O or knows Triton. Everything can be encoded to JSON by `codec`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

Value = int | float | str | bool | None
"""One value of a knob. Layouts and dtypes that are no plain value are spelled as text."""

Config = dict[str, Value]
"""One value for every knob (not `triton.Config`). Treated as immutable; keys in signature order."""


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


class Outcome(StrEnum):
    """What became of one candidate. Only ever added to."""

    PASS = "PASS"
    REJECTED = "REJECTED"
    CRASHED = "CRASHED"
    NO_RESOURCES = "NO_RESOURCES"
    HUNG = "HUNG"
    WRONG = "WRONG"
    UNSAFE = "UNSAFE"
    SKIPPED = "SKIPPED"
    NOT_EXECUTED = "NOT_EXECUTED"

    @property
    def compiled(self) -> bool:
        """Nothing speaks against the candidate: it passed, or it compiled and the model on the CPU lacks something."""
        return self in COMPILED


COMPILED = (Outcome.PASS, Outcome.NOT_EXECUTED)
"""Outcomes that say nothing against a candidate."""


class Effect(StrEnum):
    """What a value does against the baseline."""

    BASELINE = "baseline"
    INERT = "inert"
    LIVE = "live"
    LIVE_HOST = "live (host)"
    ABORTING = "aborting"
    CHANGES_RESULT = "changes the result"
    """Other numbers than the baseline's, where no reference says which are right: part of the problem."""
    UNKNOWN = "unknown"


class KnobClass(StrEnum):
    """What a knob is worth to a tuner, from its values moved one at a time."""

    PINNED = "pinned"
    BOUNDED = "bounded"
    INERT = "inert"
    LIVE = "live"
    UNKNOWN = "unknown"


class KnobKind(StrEnum):
    """Where a knob is turned: in the kernel's signature, as an option of the compiler, or in host code."""

    CONSTEXPR = "constexpr"
    OPTION = "option"
    CONSTEXPR_AND_OPTION = "constexpr and option"
    HOST = "host"


class Proof(StrEnum):
    """What equality of two programs rests on: their machine code, or the LLVM IR that it is generated from."""

    CODE = "code"
    IR = "ir"


class Location(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in a kernel's source.

    `line` counts the lines of the function that carry code, from 0 at its `def`: comments and blank lines do not
    move it, nor does the function's place in its file. `source.absolute_line` turns it into a line of the file.
    """

    function: str
    file: str
    line: int


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a candidate did not pass."""

    kind: str
    """Signal name, exception class, "budget" or "deadline"."""
    text: str
    """The message's first telling line; no paths of this machine, no addresses."""
    phase: str = ""
    """"front end", or the back end's stage (ttir, ttgir, llir, amdgcn, hsaco, ptx, cubin), or "import"."""
    location: Location | None = None


class Program(msgspec.Struct, frozen=True, omit_defaults=True):
    """Identity of the compiled code. Equal `digest`: nothing that the device executes or reserves differs."""

    digest: str
    """Hash of `code`, `descriptor`, threads, dynamic shared memory and clusters."""
    code: str
    """Hash of the instructions alone."""
    descriptor: str = ""
    """Hash of what the code object reserves: registers, private memory, mode bits, constants."""
    ir: str = ""
    """Hash of the LLVM IR and of the options that later stages read."""
    proof: Proof = Proof.CODE


class Resources(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one program takes, read from the code object. `None`: the back end does not say."""

    threads: int
    shared_bytes: int
    """LDS (AMD) or shared memory (NVIDIA) per work-group."""
    vgpr: int | None = None
    """AMD: vector registers per lane, accumulation registers included. NVIDIA: registers per thread."""
    agpr: int | None = None
    sgpr: int | None = None
    spills: int | None = None
    """Registers spilled per lane (AMD: vector ones) or bytes of local memory spilled per thread (NVIDIA)."""
    sgpr_spills: int | None = None
    scratch_bytes: int | None = None
    """Private memory per lane."""
    tensor_columns: int | None = None
    code_bytes: int | None = None
    occupancy: int | None = None
    """Waves per SIMD that fit (gfx942, gfx950)."""
    vgpr_allocated: int | None = None
    """AMD: what the kernel descriptor reserves, which decides the occupancy: `waves_per_eu` can raise it."""


class OutputError(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far one output was from its reference, at worst over all runs. Non-finite values are counted apart."""

    output: str
    relative: float
    """‖out − ref‖ / ‖ref‖ over the finite elements."""
    elementwise: float
    """Largest |out − ref| / (|ref| + root mean square of ref)."""
    tolerance: float
    """What `relative` may be."""
    bound: float
    """What `elementwise` may be."""
    dtype: str
    declared: bool = False
    """The probe file's TOLERANCE names the output; else `tolerance` is the default of its dtype."""
    misplaced: int = 0
    """Elements that are NaN or infinite on one side only."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the sanitizer of a run on the CPU reports of one line of the kernel."""

    kind: str
    instruction: str
    """The first one of the line that showed it."""
    wave: int
    lane: int = -1
    """-1: it concerns the whole wave."""
    detail: str = ""
    place: str = ""
    """File and line, with the calls that lead there; empty: not known."""
    instructions: int = 1
    """Of this line, that showed it."""
    sizes: str = ""
    """Those at which it was seen: "ragged M=65, N=65"."""


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a comparison with the reference, or with the baseline's results, found."""

    errors: tuple[OutputError, ...]
    runs: int
    """Launches that were compared."""
    shapes: tuple[str, ...] = ("default",)
    """"default", and "ragged" where the probe file declares that regime."""
    racy: bool = False
    """Two runs on the same inputs differed in some bit: a warning, since atomic additions do so too."""
    against: str = "reference"
    """"baseline" where the probe file has no reference."""
    sizes: tuple[str, ...] = ()
    """Of a run on the CPU, whose problems are small: "M=256, N=256" for each of `shapes`."""
    sanitized: bool = False
    """The sanitizer watched."""
    findings: tuple[Finding, ...] = ()


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run on the CPU counted, over all waves of one small launch. They explain a program; none is a time."""

    instructions: dict[str, int]
    """Family (mfma, vector, scalar, lds, global, …) → instructions executed."""
    work_groups: int
    waits: int = 0
    """s_waitcnt executed."""
    barriers: int = 0
    lds_passes: int = 0
    """Over the banks, that LDS accesses took."""
    lds_ideal: int = 0
    """Without any conflict."""
    global_accesses: int = 0
    """Global instructions with an active lane."""
    global_lines: int = 0
    """Lines of 64 bytes that they touched, counted anew for each instruction."""
    global_bytes: int = 0
    """That their lanes asked for, those that several lanes of an instruction asked for counted once."""
    scratch_bytes: int = 0

    @property
    def mfma_share(self) -> float:
        """Matrix instructions among all."""
        total = sum(self.instructions.values())
        return self.instructions.get("mfma", 0) / total if total else 0.0

    @property
    def lds_conflicts(self) -> float:
        """Passes over the banks against the ideal; 1: no conflict, or no access."""
        return self.lds_passes / self.lds_ideal if self.lds_ideal else 1.0

    @property
    def line_use(self) -> float:
        """Bytes asked for of those in the lines touched; 1: every byte of every line was wanted."""
        return self.global_bytes / (64 * self.global_lines) if self.global_lines else 1.0


class Timing(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long one launch takes on the device, its caches flushed before each. Microseconds."""

    median_us: float
    low_us: float
    """A fifth of the launches was faster."""
    high_us: float
    """A fifth of the launches was slower."""
    repeats: int
    clock_before_mhz: int | None = None
    """Of the compute units; None: the driver does not say."""
    clock_after_mhz: int | None = None

    @property
    def spread(self) -> float:
        """(high − low) / median."""
        return (self.high_us - self.low_us) / self.median_us if self.median_us else 0.0


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="verdict"):
    """The answer to one candidate."""

    outcome: Outcome
    stage: Stage
    exit_status: int
    """Of the candidate's process; negative: the signal that ended it."""
    seconds: float = 0.0
    """Wall time of the candidate's process."""
    compile_seconds: float = 0.0
    """Of it, spent in Triton's compile."""
    reason: Reason | None = None
    program: Program | None = None
    resources: Resources | None = None
    warnings: tuple[str, ...] = ()
    """Error diagnostics that came with a success."""
    check: Check | None = None
    timing: Timing | None = None
    figures: Figures | None = None


class Fault(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="fault"):
    """No answer: the tool failed, not the kernel. Never evidence."""

    text: str
    exit_status: int = 0


Answer = Verdict | Fault


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


class Parameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """One argument in the kernel's signature."""

    name: str
    constexpr: bool
    default: Value = None
    has_default: bool = False
    annotation: str = ""
    heuristic: bool = False
    """Its value is computed by a `@triton.heuristics` function: never a knob."""


class FunctionSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A jit function that the kernel reaches: the kernel itself comes first."""

    name: str
    file: str
    """As far as possible relative to the project; the same on every machine."""
    first_line: int
    """Line of the file that holds the first line of `source`."""
    source: str
    """From the first decorator or `def` on, dedented, as it stands in the file."""
    calls: dict[str, int] = {}
    """Dotted name as written in this source -> index of the jit function it resolves to."""
    constants: dict[str, Value] = {}
    """Dotted name as written -> value, for module constants that are plain values or lists of them (as JSON text)."""


class SourceFile(msgspec.Struct, frozen=True):
    """A file that was read when the kernel was imported."""

    path: str
    ast: str
    """Hash of its syntax tree: comments, blank lines and the file's place do not change it."""


class Inspection(msgspec.Struct, frozen=True):
    """What the isolated first import of a kernel file told."""

    kernel: str
    """The name in its module under which the kernel was found: with all its decorators."""
    function: str
    """The function's own name."""
    kernels: tuple[str, ...]
    """All jit functions defined in the file, in order."""
    entries: tuple[str, ...]
    """Those that no other jit function of the file calls."""
    gluon: bool
    parameters: tuple[Parameter, ...]
    functions: tuple[FunctionSource, ...]
    files: tuple[SourceFile, ...]
    autotune: tuple[Config, ...] = ()
    """The kernel's own `@triton.autotune` configurations, options included."""
    quiet: bool = True
    """The import ended without threads, children or output: a server may load it."""
    notes: tuple[str, ...] = ()
    options: dict[str, Value] = {}
    """The back end's options and their defaults; a default that is no plain value is None."""


class LiteralRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a layout written as a literal demands of the configuration, read from the source."""

    text: str
    """"basis 128 needs BLOCK_SIZE_N > 128"."""
    expression: str
    """True where the demand is met, in the language of `expression` over the configuration."""
    knobs: tuple[str, ...]
    location: Location
