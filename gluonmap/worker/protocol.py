"""What parent, server and candidates say to each other: JSON, never pickle, over one socket per server.

The parent sends `Request`s, the server answers with `Notice`s. What a child has to say beyond its exit status it
writes to `EVIDENCE_FILE` in its own folder, by rename, as its very last deed.
"""

from __future__ import annotations

import msgspec

from gluonmap.model.candidate import Candidate, Config, Value
from gluonmap.model.inspection import Inspection
from gluonmap.model.verdict import Check, Figures, Program, Reason, Resources, Timing

EVIDENCE_FILE = "evidence.json"
LOCK_FILE = "lock"
"""Held by the run that a folder of temporary files belongs to."""
COMPILED_FILE = "compiled.json"
"""What the compile gave, written before a candidate goes to the device: it may not come back from there."""
STDOUT_FILE = "stdout"
STDERR_FILE = "stderr"


class KernelFile(msgspec.Struct, frozen=True):
    """Where the kernel is and how its file is to be imported."""

    path: str
    """Absolute path of the file."""
    kernel: str
    """Name of the function; "" lets the file decide, if it holds only one kernel."""
    stubs: tuple[str, ...] = ()
    """Packages whose `__init__` cannot be imported here."""


class Bench(msgspec.Struct, frozen=True):
    """Where candidates of one run find what they share beyond the compile."""

    probe_file: str
    """Absolute path of the file with `inputs` and `reference`."""
    folder: str
    """Holds what candidates of one run share: what is built once to launch anything at all, and the answers of programs
    that were executed; "": the child's own will do."""
    trace: str = ""
    """Absolute path of a file that is to tell every instruction executed on the CPU."""


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A user's rule and the configurations that it is to choose from."""

    configs: tuple[Config, ...]
    texts: tuple[str, ...] = ()
    """Python expressions over a configuration; empty: a function decides."""
    file: str = ""
    """Absolute path of the function's file; empty: the `early_config_prune` of the kernel's own autotuner."""
    function: str = ""
    args: dict[str, Value] = {}
    """Run-time arguments of the launch, as in a candidate."""
    fixed: Config = {}
    """What the launch sets besides."""


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to be done in a child of its own."""

    kind: str
    """"inspect", "compile", "choose" or "device"."""
    target: str
    file: KernelFile | None = None
    candidate: Candidate | None = None
    known_ir: str = ""
    """Folder of programs by hash of their LLVM IR, for candidates that do not insist on code."""
    bench: Bench | None = None
    """For candidates whose stage goes beyond the compile."""
    choice: Choice | None = None
    """Of "choose"."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds of one child."""

    deadline_s: float
    memory_bytes: int
    """Address space that a child may add to what its server has mapped; 0: no bound."""
    device_deadline_s: float = 60.0
    """From the moment that a child has a device for itself; its wait for one is not counted at all."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parent to server."""

    op: str
    """"spawn", "warm" (fork a server that has the kernel compiled once), "cancel" or "stop"."""
    id: str = ""
    folder: str = ""
    job: Job | None = None
    limits: Limits | None = None
    address: str = ""
    """"warm": where the new server is to report."""


class Progress(msgspec.Struct, frozen=True):
    """The last thing that a child was seen doing; survives its death in shared memory."""

    phase: str = ""
    """"import", "front end" or a back-end stage."""
    file: str = ""
    function: str = ""
    line: int = 0
    """Line of the file that the front end visited last, from 1; 0: none yet."""
    on_device: bool = False
    """It had a device for itself."""


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Server to parent: a child has ended, or the server is ready (`id` empty)."""

    id: str
    status: int = 0
    hung: bool = False
    seconds: float = 0.0
    progress: Progress = Progress()


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a child that lived to tell it has found. `status` repeats the exit status it will leave with."""

    status: int
    compile_seconds: float = 0.0
    reason: Reason | None = None
    file: str = ""
    line: int = 0
    """Line of the file that the exception points at; 0: it points nowhere."""
    function: str = ""
    program: Program | None = None
    resources: Resources | None = None
    inspection: Inspection | None = None
    device: str = ""
    """Target of this machine's GPU."""
    device_name: str = ""
    """Its maker's name for it."""
    check: Check | None = None
    timing: Timing | None = None
    figures: Figures | None = None
    chosen: tuple[int, ...] | None = None
    """Places of the configurations that a rule keeps."""
    strange: int = 0
    """Configurations that a function returned and that it was not given."""
