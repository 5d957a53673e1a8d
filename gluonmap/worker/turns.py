"""One child at a time on each device: a lock file per device, held until the process is gone.

However it goes: a lock that a process holds ends with it, so a child that was killed keeps no other one waiting.
"""

from __future__ import annotations

import fcntl
import os
import time

POLL_S = 0.005
"""Between two looks at several devices. One device alone is waited for without looking."""


def take(folder: str, devices: int) -> int:
    """Index of the device that this process now has for itself: the first that is free.

    Raises:
        OSError: the folder is gone, or no file can be made in it.
    """
    os.makedirs(folder, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    locks = [os.open(os.path.join(folder, f"device-{index}.lock"), flags, 0o600) for index in range(devices)]
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
