"""What a campaign tells whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gluonmap.model import Answer


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


Listener = Callable[[Event], None]
