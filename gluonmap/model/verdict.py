"""The answer to one candidate: its outcome, its reason, and its evidence."""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from gluonmap.model.candidate import Proof, Stage
from gluonmap.model.outcomes import Outcome


class Location(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in a kernel's source.

    `line` counts the lines of the function that carry code, from 0 at its `def`, so comments, blank lines and the
    function's place in its file do not change it. `source.code_lines.absolute_line` turns it into a line of the file.
    """

    function: str
    file: str
    line: int


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason why a candidate did not pass."""

    kind: str
    """Signal name, exception class, "budget" or "deadline"."""
    text: str
    """First informative line of the message, without paths of this machine and addresses."""
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
    """The resources of one program, read from the code object. `None`: the back end does not say."""

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
    """AMD: registers that the kernel descriptor reserves. They decide the occupancy; `waves_per_eu` can raise them."""


class OutputError(msgspec.Struct, frozen=True, omit_defaults=True):
    """The distance of one output from its reference, at worst over all runs. Non-finite values are counted apart."""

    output: str
    relative: float
    """‖out − ref‖ / ‖ref‖ over the finite elements."""
    elementwise: float
    """Largest |out − ref| / (|ref| + root mean square of ref)."""
    tolerance: float
    """Greatest `relative` that passes."""
    bound: float
    """Greatest `elementwise` that passes."""
    dtype: str
    declared: bool = False
    """The probe file's TOLERANCE names the output. Otherwise `tolerance` is the default of its dtype."""
    misplaced: int = 0
    """Number of elements that are NaN or infinite on one side only."""


class SanitizerFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One report of the sanitizer of a run on the CPU, about one line of the kernel."""

    kind: str
    instruction: str
    """First instruction of the line that showed it."""
    wave: int
    lane: int = -1
    """Lane of the wave; -1: the finding is about the whole wave."""
    detail: str = ""
    place: str = ""
    """File and line, with the calls that lead there; "": not known."""
    instructions: int = 1
    """Number of instructions of this line that showed it."""
    sizes: str = ""
    """Sizes of the run that showed it: "ragged M=65, N=65"."""


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """The comparison with the reference, or with the baseline's results."""

    errors: tuple[OutputError, ...]
    runs: int
    """Number of launches that were compared."""
    shapes: tuple[str, ...] = ("default",)
    """"default", and "ragged" where the probe file declares that regime."""
    racy: bool = False
    """Two runs on the same inputs differed in some bit. That is a warning only, since atomic additions do so too."""
    against: str = "reference"
    """"baseline" if the probe file has no reference."""
    sizes: tuple[str, ...] = ()
    """Sizes of a run on the CPU, whose problems are small: "M=256, N=256" for each of `shapes`."""
    sanitized: bool = False
    """The sanitizer watched the run."""
    findings: tuple[SanitizerFinding, ...] = ()


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """The counts of a run on the CPU, over all waves of one small launch. They explain a program; none is a time."""

    instructions: dict[str, int]
    """Family (mfma, vector, scalar, lds, global, …) → instructions executed."""
    work_groups: int
    waits: int = 0
    """Number of s_waitcnt executed."""
    barriers: int = 0
    lds_passes: int = 0
    """Passes over the banks that LDS accesses took."""
    lds_ideal: int = 0
    """Passes that they would take without any conflict."""
    global_accesses: int = 0
    """Number of global instructions with an active lane."""
    global_lines: int = 0
    """Lines of 64 bytes that they touched, counted for each instruction by itself."""
    global_bytes: int = 0
    """Bytes that their lanes accessed; a byte that several lanes of an instruction access counts once."""
    scratch_bytes: int = 0

    @property
    def mfma_share(self) -> float:
        """Return the share of matrix instructions."""
        total = sum(self.instructions.values())
        return self.instructions.get("mfma", 0) / total if total else 0.0

    @property
    def lds_conflicts(self) -> float:
        """Return the passes over the banks, divided by the ideal; 1: no conflict, or no access."""
        return self.lds_passes / self.lds_ideal if self.lds_ideal else 1.0

    @property
    def line_use(self) -> float:
        """Return the share of accessed bytes in the touched lines; 1: every byte of every line was accessed."""
        return self.global_bytes / (64 * self.global_lines) if self.global_lines else 1.0


class Timing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The time of one launch on the device in microseconds, with caches flushed before each launch."""

    median_us: float
    low_us: float
    """Time below which a fifth of the launches lies."""
    high_us: float
    """Time above which a fifth of the launches lies."""
    repeats: int
    clock_before_mhz: int | None = None
    """Clock of the compute units; None: the driver does not say."""
    clock_after_mhz: int | None = None

    @property
    def spread(self) -> float:
        """Return (high − low) / median."""
        return (self.high_us - self.low_us) / self.median_us if self.median_us else 0.0


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="verdict"):
    """The answer to one candidate."""

    outcome: Outcome
    stage: Stage
    exit_status: int
    """Exit status of the candidate's process; negative: the signal that ended it."""
    seconds: float = 0.0
    """Wall time of the candidate's process."""
    compile_seconds: float = 0.0
    """Part of `seconds` that Triton's compile took."""
    reason: Reason | None = None
    program: Program | None = None
    resources: Resources | None = None
    warnings: tuple[str, ...] = ()
    """Error diagnostics that came with a success."""
    check: Check | None = None
    timing: Timing | None = None
    figures: Figures | None = None


class Fault(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="fault"):
    """The lack of an answer: the tool failed, not the kernel. It is never evidence."""

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
