"""Ctrl-C at moments that it must not tear: put off until they are over, or ignored."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Raise KeyboardInterrupt after the block, not within it: what it changes is never left half changed."""
    came: list[int] = []
    with _handled(lambda number, _: came.append(number)):
        yield
    if came:
        raise KeyboardInterrupt


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Let no Ctrl-C cut the block short: it cleans up after one."""
    with _handled(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(handler: Any) -> Iterator[None]:
    try:
        before = signal.signal(signal.SIGINT, handler)
    except ValueError:  # not the main thread: Ctrl-C does not come here
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
