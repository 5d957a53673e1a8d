"""Ctrl-C around critical sections: deferred until the section ends, or ignored."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Raise KeyboardInterrupt after the block, not within it, so that the block never stops half-way."""
    signals: list[int] = []
    with _handled(lambda number, _: signals.append(number)):
        yield
    if signals:
        raise KeyboardInterrupt


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignore Ctrl-C within the block, which cleans up after an earlier one."""
    with _handled(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handled(handler: Any) -> Iterator[None]:
    try:
        before = signal.signal(signal.SIGINT, handler)
    except ValueError:  # not the main thread: Python delivers SIGINT to the main thread only
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
