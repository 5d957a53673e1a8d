"""Messages between parent, server and candidates: JSON, never pickle, over one socket per server.

The parent sends `Request`s, the server answers with `Notice`s. A child writes everything beyond its exit status to
`EVIDENCE_FILE` in its own folder, by rename, as its last action.
"""

from __future__ import annotations

import msgspec

from gluonmap.model.candidate import Candidate, Config, Value
from gluonmap.model.inspection import Inspection
from gluonmap.model.verdict import Check, Figures, Program, Reason, Resources, Timing

EVIDENCE_FILE = "evidence.json"
LOCK_FILE = "lock"
"""Lock of a folder of temporary files, held by the run that owns it."""
COMPILED_FILE = "compiled.json"
"""Evidence of the compile, written before a candidate goes to the device, where it may be killed."""
STDOUT_FILE = "stdout"
STDERR_FILE = "stderr"


class KernelFile(msgspec.Struct, frozen=True):
    """Place of the kernel, and how its file is imported."""

    path: str
    """Absolute path of the file."""
    kernel: str
    """Name of the function; "" means the file's only kernel."""
    stubs: tuple[str, ...] = ()
    """Packages whose `__init__` cannot be imported on this machine."""


class Bench(msgspec.Struct, frozen=True):
    """Files that the candidates of one run share beyond the compile."""

    probe_file: str
    """Absolute path of the file with `inputs` and `reference`."""
    folder: str
    """Folder shared by the candidates of one run: Triton's launchers, built once, and evidence of executed programs. ""
    means the child's own folder."""
    trace: str = ""
    """Absolute path of a file for the trace of every instruction executed on the CPU."""


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A user's rule, and the configurations that it chooses from."""

    configs: tuple[Config, ...]
    texts: tuple[str, ...] = ()
    """Python expressions over a configuration; empty if a function decides."""
    file: str = ""
    """Absolute path of the function's file; "" means the `early_config_prune` of the kernel's own autotuner."""
    function: str = ""
    args: dict[str, Value] = {}
    """Run-time arguments of the launch, as in a candidate."""
    fixed: Config = {}
    """Further parameters that the launch sets."""


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """One task for one child process."""

    kind: str
    """"inspect", "compile", "choose" or "device"."""
    target: str
    file: KernelFile | None = None
    candidate: Candidate | None = None
    known_ir: str = ""
    """Folder of programs by the hash of their LLVM IR, for candidates that accept the IR as proof."""
    bench: Bench | None = None
    """Set if the candidate's stage goes beyond the compile."""
    choice: Choice | None = None
    """Set for the kind "choose"."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of one child."""

    deadline_s: float
    memory_bytes: int
    """Address space in bytes that a child may add to that of its server; 0 means no limit."""
    device_deadline_s: float = 60.0
    """Seconds from the moment that a child has a device for itself. Its wait for one does not count."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message from the parent to a server."""

    op: str
    """"spawn", "warm" (fork a server that has the kernel compiled once), "cancel" or "stop"."""
    id: str = ""
    folder: str = ""
    job: Job | None = None
    limits: Limits | None = None
    address: str = ""
    """For "warm": the socket to which the new server connects."""


class Progress(msgspec.Struct, frozen=True):
    """The last recorded activity of a child. It survives the child's death in shared memory."""

    phase: str = ""
    """"import", "front end" or a back-end stage."""
    file: str = ""
    function: str = ""
    line: int = 0
    """Line of the file that the front end visited last, from 1; 0 if none yet."""
    on_device: bool = False
    """The child had a device for itself."""


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message from a server to the parent: a child has ended, or the server is ready (`id` is empty)."""

    id: str
    status: int = 0
    hung: bool = False
    seconds: float = 0.0
    progress: Progress = Progress()


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a child that came to its end. `status` repeats its exit status."""

    status: int
    compile_seconds: float = 0.0
    reason: Reason | None = None
    file: str = ""
    line: int = 0
    """Line of the file that the exception points at; 0 if there is none."""
    function: str = ""
    program: Program | None = None
    resources: Resources | None = None
    inspection: Inspection | None = None
    device: str = ""
    """Name of the target that is this machine's GPU."""
    device_name: str = ""
    """The maker's name of this machine's GPU."""
    check: Check | None = None
    timing: Timing | None = None
    figures: Figures | None = None
    chosen: tuple[int, ...] | None = None
    """Positions of the configurations that a rule keeps."""
    strange: int = 0
    """Number of configurations that a function returned and that were not in its input."""
