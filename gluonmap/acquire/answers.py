"""Answers of the oracle, and the reason that each failure counts for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from gluonmap.model.candidate import Config
from gluonmap.model.outcomes import Outcome


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdict on one configuration. `outcome` is None if there was no answer."""

    outcome: Outcome | None
    stage: str = ""
    """Where it ended: "front end", a stage of the back end, or "" if that is not known."""
    reason: str = ""
    line: str = ""
    digest: str = ""
    shared_bytes: int | None = None

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASS

    @property
    def known(self) -> bool:
        """Return whether the answer is evidence. A deadline or a fault is none."""
        return self.outcome in KNOWN


KNOWN = frozenset(outcome for outcome in Outcome if outcome.info.evidence and outcome.info.from_compile)
"""Outcomes that the learner takes as labels: evidence that a compile gives."""

Oracle = Callable[[Sequence[Config]], Sequence[Answer]]
"""Answers configurations, in their order."""


class ReasonKey(msgspec.Struct, frozen=True, order=True):
    """The common part of failures with one cause."""

    rank: int
    """Position of the stage in the order in which a candidate meets the stages; 0 if it is not known."""
    outcome: str
    text: str
    line: str


_STAGES: tuple[tuple[str, int], ...] = (
    ("import", 1), ("front end", 2), ("frontend", 2), ("ast", 2), ("parse", 3), ("ttir", 3), ("ttgir", 4),
    ("llir", 6), ("ptx", 8), ("amdgcn", 8), ("cubin", 9), ("hsaco", 9), ("launch", 11),
)  # fmt: skip
_TEXTS: tuple[tuple[str, int], ...] = (
    (r"CompilationError|CompileTimeAssertion|static.assert|^at \d+:\d+", 2),
    (r"encountered during parsing", 3),
    (r"PTXAS|ptxas", 9),
)

SHARED_BYTES = re.compile(r"shared.?memory|\blds\b|out of resource|shared_bytes", re.IGNORECASE)


def stage_rank(answer: Answer) -> int:
    """Return the position of a failure in the pipeline; 0 if neither its stage nor its text shows it."""
    stage = answer.stage.lower()
    for name, rank in _STAGES:
        if stage == name:
            return rank
    for pattern, rank in _TEXTS:
        if re.search(pattern, answer.reason):
            return rank
    return 7 if is_budget(answer) else 0


def is_budget(answer: Answer) -> bool:
    """Return whether the failure means that shared memory is too small."""
    return answer.outcome is Outcome.NO_RESOURCES and (
        answer.shared_bytes is not None or bool(SHARED_BYTES.search(answer.reason))
    )


def is_later(rank: int, than: int) -> bool:
    """Return whether a failure at `rank` shows that the candidate got past the stage `than`.

    The size of shared memory is known after `llir`. A tool may stop there, or only after code generation. So a failure
    for shared memory is no evidence about the later stages, and they are no evidence about it.
    """
    if rank == 0 or than == 0:
        return False
    return rank > than and not (than >= 6 and rank >= 6)


def reason_key(answer: Answer) -> ReasonKey:
    """Return the reason that a failure counts for: its stage, its message without numbers and types, and its line."""
    if is_budget(answer):
        return ReasonKey(7, str(answer.outcome), "shared memory", "")
    return ReasonKey(stage_rank(answer), str(answer.outcome), _normal(answer.reason), answer.line)


def _normal(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    # file:line:column. The line distinguishes reasons, so letters spell it: digits are removed below.
    location = re.match(r"\S+?:(\d+):\d+: ", text)
    line = f"L{_letters(location.group(1))} " if location else _source_line(first)
    first = re.sub(r"%\w+|tensor<[^>]*>?|!\w+\.\w+<[^>]*>?|0x[0-9a-f]+", "", first)
    first = re.sub(r"-?\d+(\.\d+)?", "#", first)
    return line + re.sub(r"\s+", " ", first)[:70]


def _source_line(text: str) -> str:
    found = re.search(r"\bat (\d+):\d+:", text)
    return f"L{_letters(found.group(1))} " if found else ""


def _letters(digits: str) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in digits)
