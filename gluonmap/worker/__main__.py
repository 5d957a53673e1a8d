"""Run one candidate in a fresh interpreter, by hand: `python -m gluonmap.worker JOB [FOLDER]`, the job as JSON text.

`gluonmap repeat` starts it. The compiler's output goes to the terminal. The evidence goes to stdout, and to FOLDER if
it is given. The process exits with the documented status, or dies as the candidate does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile

import msgspec

from gluonmap.worker import jobs, preload, progress
from gluonmap.worker.protocol import LOCK_FILE, Job
from gluonmap.worker.server import use_temporary


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python -m gluonmap.worker JOB [FOLDER]   (`gluonmap repeat --show MAP KNOB=VALUE` makes it)")
    job = msgspec.json.decode(sys.argv[1], type=Job)
    folder = sys.argv[2] if len(sys.argv) == 3 else tempfile.mkdtemp(prefix=f"gluonmap-{os.getpid()}-")
    # The lock is held until this process ends, however it ends. After that another run may sweep the folder.
    fcntl.flock(os.open(os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC), fcntl.LOCK_EX)
    terminal = os.dup(1)  # the code under test may close its own
    use_temporary(folder)
    os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")
    preload.preload()
    evidence = jobs.carry_out(job, progress.Slot())
    jobs.write_evidence(folder, evidence)
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os.write(terminal, msgspec.json.format(msgspec.json.encode(evidence), indent=2) + b"\n")
    if len(sys.argv) == 2:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(evidence.status)  # exit handlers of the code under test must not run


if __name__ == "__main__":
    main()
