"""Progress messages of a campaign, for the user who waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gluonmap.model.verdict import Answer


@dataclass(frozen=True, slots=True)
class Event:
    """One message about progress."""

    kind: str
    """"plan" (`count` candidates, of which `known` have an answer already), "answer" (from a child process), "known"
    (from the journal, in a plan that could not count it beforehand), or "note"."""
    text: str = ""
    count: int = 0
    known: int = 0
    answer: Answer | None = None
    """Answer of a candidate that was compiled now, in an event of kind "answer"."""
    target: str = ""
    """Target that the event is about, if there are several."""


Listener = Callable[[Event], None]


def about(target: str, listen: Listener) -> Listener:
    """Return a listener that adds the target to each event before it passes it on."""
    return lambda event: listen(replace(event, target=target))
