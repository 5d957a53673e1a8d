"""The process that races: it has the device to itself, as far as this tool is concerned."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from gluonmap.model.errors import OracleFault
from gluonmap.race.lineup import RaceLineup
from gluonmap.worker.track import Finish


def run(lineup: RaceLineup) -> Finish:
    """Race in a process of its own, and return the times.

    Raises:
        OracleFault: the process did not finish.
    """
    with tempfile.TemporaryDirectory(prefix=f"gluonmap-{os.getpid()}-") as folder:
        track, finish = Path(folder) / "track.json", Path(folder) / "finish.json"
        track.write_bytes(msgspec.json.encode(lineup.track))
        done = subprocess.run(
            [sys.executable, "-m", "gluonmap.worker.race", str(track), str(finish)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        try:
            return msgspec.json.decode(finish.read_bytes(), type=Finish)
        except OSError:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise OracleFault(
                f"the race did not finish: {last}. A launch that faults ends it for all: gluonmap probe "
                f"{lineup.space.file} --target {lineup.space.target} --stage check launches each program apart."
            ) from None
