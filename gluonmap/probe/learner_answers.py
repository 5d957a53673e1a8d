"""Answers of the compiler as the learner takes them: outcome, place in the source, digest of program and launch."""

from __future__ import annotations

from gluonmap import acquire
from gluonmap.model import codec
from gluonmap.model.candidate import Candidate, Config
from gluonmap.model.errors import UsageError
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Answer, Fault, Location, Verdict, digest_of
from gluonmap.spec.description import Description

SEPARATOR = "::"
"""Separates file and function in a place."""


def candidate_or_reason(description: Description, config: Config) -> Candidate | str:
    """Return the candidate of a configuration; or why host code has none for it."""
    try:
        return description.candidate(config)
    except UsageError as error:
        return str(error)


def rejected_by_host_code(reason: str) -> acquire.Answer:
    return acquire.Answer(Outcome.REJECTED, stage="host", reason=reason)


def learner_answer(candidate: Candidate, answer: Answer, *, stable: bool) -> acquire.Answer:
    """Return a compiler's answer as the learner's. `stable`: equal digests mean equal programs."""
    if isinstance(answer, Fault):
        return acquire.Answer(None, reason=answer.text)
    reason = answer.reason
    return acquire.Answer(
        answer.outcome,
        stage=reason.phase if reason else "",
        reason=f"{reason.kind}: {reason.text}" if reason else "",
        line=place_of(reason.location) if reason else "",
        digest=_launch_digest(candidate, answer) if stable else "",
        shared_bytes=answer.resources.shared_bytes if answer.resources else None,
    )


def place_of(location: Location | None) -> str:
    """Return a place that neither comments nor the function's position in its file change."""
    return f"{location.file}{SEPARATOR}{location.function}+{location.line}" if location else ""


def location_of(place: str) -> Location | None:
    """Return the location that `place_of` made a place of; None: the place is of no file."""
    file, _, rest = place.rpartition(SEPARATOR)
    function, _, line = rest.rpartition("+")
    return Location(function, file, int(line)) if file and line.isdigit() else None


def has_hung(answer: Answer | None) -> bool:
    return isinstance(answer, Verdict) and answer.outcome is Outcome.HUNG


def _launch_digest(candidate: Candidate, verdict: Verdict) -> str:
    """Return a digest that differs for different programs and for different launches of one program."""
    digest = digest_of(verdict)
    return codec.digest([digest, candidate.grid, candidate.args])[:12] if digest else ""
