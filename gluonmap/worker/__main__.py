"""One candidate in a fresh interpreter, by hand: `python -m gluonmap.worker JOB` with the job as JSON text.

`gluonmap repeat` starts it. Everything that the compiler prints goes to the terminal; the process leaves with the
documented exit status, or dies as the candidate does.
"""

from __future__ import annotations

import os
import sys
import tempfile

import msgspec


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gluonmap.worker JOB   (JSON; `gluonmap repeat MAP KNOB=VALUE` makes it)")
    from gluonmap.worker import jobs, preload, progress
    from gluonmap.worker.protocol import Job

    job = msgspec.json.decode(sys.argv[1], type=Job)
    with tempfile.TemporaryDirectory(prefix="gluonmap-repeat-") as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        preload.preload()
        evidence = jobs.carry_out(job, progress.Slot())
    print(msgspec.json.format(msgspec.json.encode(evidence), indent=2).decode())
    sys.exit(evidence.status)


if __name__ == "__main__":
    main()
