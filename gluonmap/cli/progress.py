"""Progress on stderr: a bar with rate and time left on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from gluonmap.model.events import Event
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Verdict

if TYPE_CHECKING:
    from rich.progress import TaskID

PLAIN_EVERY = 10
"""Number of answers per line where stderr is not a terminal."""


def _is_dumb() -> bool:
    """Return whether the terminal cannot erase a line, so that rich would not show a bar."""
    from rich.console import Console

    return Console(stderr=True).is_dumb_terminal


class ProgressDisplay:
    """A listener that shows the events of a run. Use it as a context manager; its value is the listener."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self._terminal = sys.stderr.isatty() and not quiet and not _is_dumb()
        self._task: TaskID | None = None
        self._name = self._target = ""
        self._total = self._done = self._failing = 0
        self._began = time.monotonic()

    def __enter__(self) -> ProgressDisplay:
        if self._terminal:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._rich = Bar(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[last]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._rich.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal:
            self._rich.stop()

    def __call__(self, event: Event) -> None:
        self._target = f"{event.target}: " if event.target else ""
        if event.kind == "note":
            self._say(event.text)
        elif event.kind == "plan":
            self._plan(event)
        elif event.kind == "known":
            self._done += 1
            if self._terminal and self._task is not None:
                self._rich.update(self._task, advance=1)
        elif event.answer is not None:
            self._answer(event)

    def rest(self) -> None:
        """Remove the bar before something else is printed."""
        if self._terminal and self._task is not None:
            self._rich.remove_task(self._task)
            self._task = None
            self._rich.refresh()

    def _say(self, text: str) -> None:
        if self.quiet:
            return
        text = self._target + text
        if self._terminal:
            self._rich.console.print(f"gluonmap: {text}", markup=False, highlight=False)
        else:
            print(f"gluonmap: {text}", file=sys.stderr, flush=True)

    def _plan(self, event: Event) -> None:
        self._total, self._done, self._failing = event.count - event.known, 0, 0
        self._began = time.monotonic()
        self._name = event.text
        if self._terminal:
            if self._task is not None:
                self._rich.remove_task(self._task)
                self._task = None
            if self._total:
                self._task = self._rich.add_task(self._target + event.text, total=self._total, rate="", last="")
        elif self._total > 1:
            known = f", {event.known} known already" if event.known else ""
            self._say(f"{self._total} {event.text}{known}")

    def _answer(self, event: Event) -> None:
        answer = event.answer
        self._done += 1
        word = answer.outcome.value if isinstance(answer, Verdict) else "unknown"
        self._failing += word != Outcome.PASS
        if self._terminal and self._task is not None:
            task = self._rich.tasks[self._rich.task_ids.index(self._task)]
            rate = f"{task.finished_speed or task.speed or 0:.1f}/s" if self._done > 1 else ""
            self._rich.update(self._task, advance=1, rate=rate, last=f"last: {word}")
        elif self._total == 1:
            self._say(f"{self._name} {word} in {getattr(answer, 'seconds', 0.0):.1f} s")
        elif self._done % PLAIN_EVERY == 0 or self._done == self._total:
            each = (time.monotonic() - self._began) / self._done
            left = f", {each:.1f} s each" if self._done < self._total else ""
            self._say(f"{self._done} of {self._total} compiled, {self._failing} do not pass{left}")
