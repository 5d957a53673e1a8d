"""What a campaign tells whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gluonmap.model.verdict import Answer


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a waiting user wants to know."""

    kind: str
    """"plan" (`count` candidates to ask, `known` of them already), "answer" (of a child), "known" (the same from the
    journal, of a plan that could not tell beforehand), or "note"."""
    text: str = ""
    count: int = 0
    known: int = 0
    answer: Answer | None = None
    """Of a candidate that was compiled now, not known before."""
    target: str = ""
    """Which target it is about, where there are several."""


Listener = Callable[[Event], None]


def about(target: str, listen: Listener) -> Listener:
    """A listener that says of which target it is told."""
    return lambda event: listen(replace(event, target=target))
