"""One process at a time on each device: a lock file per device, held until the process is gone.

However it goes: a lock that a process holds ends with it, so a child that was killed keeps no other one waiting.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence

POLL_S = 0.005
"""Between two looks at several devices. One device alone is waited for without looking."""


def take(files: Sequence[str]) -> int:
    """Index of the device that this process now has for itself, the first that is free; one lock file for each.

    Raises:
        OSError: a file cannot be made.
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
