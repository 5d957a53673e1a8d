"""The answer to one candidate: its outcome, its reason, and the evidence that it rests on."""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from gluonmap.model.candidate import Proof, Stage
from gluonmap.model.outcomes import Outcome


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


def passed(answer: Answer | None) -> TypeGuard[Verdict]:
    """Return whether the answer is PASS: every stage that was asked for succeeded."""
    return isinstance(answer, Verdict) and answer.outcome is Outcome.PASS


def compiled(answer: Answer | None) -> TypeGuard[Verdict]:
    """Return whether the candidate compiled and nothing speaks against it: PASS, or NOT_EXECUTED.

    NOT_EXECUTED has a program, but the model on the CPU lacks an instruction of it: `passed` is false there.
    """
    return isinstance(answer, Verdict) and answer.outcome.compiled


def digest_of(answer: Answer | None) -> str:
    """Return the digest of the compiled program; "" for an answer without one."""
    return answer.program.digest if isinstance(answer, Verdict) and answer.program else ""
