"""Exclusive use of devices: a lock file per device, held until the process is gone.

The lock ends with the process, however it ends, so a killed child does not block others.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence

POLL_S = 0.005
"""Seconds between two looks at several devices. For a single device, the process waits in `flock` instead."""


def take(files: Sequence[str]) -> int:
    """Wait for a free device and lock it for this process; return its index. `files` holds one lock file per device.

    Raises:
        OSError: a lock file cannot be created.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    for file in files:
        os.makedirs(os.path.dirname(file), exist_ok=True)
    locks = [os.open(file, flags, 0o600) for file in files]
    if len(locks) == 1:
        fcntl.flock(locks[0], fcntl.LOCK_EX)
        return 0
    while True:
        for index, lock in enumerate(locks):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return index
        time.sleep(POLL_S)
