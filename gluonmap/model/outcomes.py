"""The one table of outcomes: how a candidate can end, and what the rest of the package makes of it.

Every other fact about an outcome is derived from its row of `OUTCOMES`: a new outcome is one more member of `Outcome`
and one more row. Without the row, this module cannot be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gluonmap.model import exitcode


class Feasibility(StrEnum):
    """The knowledge about a configuration: it can be compiled and launched, it cannot, or nobody knows."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OutcomeInfo:
    """The facts about one outcome."""

    feasibility: Feasibility
    evidence: bool
    """Constraints may be checked against it. A hang is no evidence: the machine may have been busy."""
    from_compile: bool
    """A compile alone can end with it; the others need an execution."""
    from_running_code: bool
    """An execution ends with it because of what the kernel's code did; the launch itself was accepted."""
    glyph: str
    """One character, unique among outcomes, so that reports can be read without colour."""
    ascii_glyph: str
    """The glyph's stand-in for a terminal that shows nothing but ASCII."""
    colour: str
    """Colour of the glyph in a terminal, as rich names it."""
    tone: str
    """Class of the glyph in HTML: `t-<tone>` of page.css."""
    word: str
    """Meaning of the glyph in a legend."""
    phrase: str
    """Verb phrase for one configuration: "gemm is rejected"."""
    plural: str
    """The same for several."""
    finding: str
    """Kind of the finding of `gluonmap check` on an entry that ends so, as `audit.findings.FindingKind` spells it.
    "": such an entry is no finding."""
    compile_ends: str
    """End of the sentence "Compiling gemm for gfx950 …" in a stand-alone script, where `{kind}` and `{seconds}` (the
    deadline) are filled in."""
    executed: str
    """Sentence of `gluonmap run` on an execution on the CPU that ended so, without the final stop."""
    statuses: Mapping[int, str]
    """Exit status of a candidate's process -> its meaning."""


class Outcome(StrEnum):
    """The end of one candidate. Members are only ever added, each with a row of `OUTCOMES`."""

    PASS = "PASS"
    REJECTED = "REJECTED"
    CRASHED = "CRASHED"
    NO_RESOURCES = "NO_RESOURCES"
    HUNG = "HUNG"
    WRONG = "WRONG"
    UNSAFE = "UNSAFE"
    SKIPPED = "SKIPPED"
    NOT_EXECUTED = "NOT_EXECUTED"

    @property
    def info(self) -> OutcomeInfo:
        """Return the outcome's row."""
        return OUTCOMES[self]

    @property
    def compiled(self) -> bool:
        """Return whether it compiled and nothing speaks against the candidate."""
        return self.info.feasibility is Feasibility.FEASIBLE

    @property
    def failed(self) -> bool:
        """Return whether it speaks against the candidate."""
        return self.info.feasibility is Feasibility.INFEASIBLE

    @property
    def undecided(self) -> bool:
        """Return whether it says neither that the numbers are right nor that the candidate fails."""
        return self is not Outcome.PASS and not self.failed


_NEVER_RAN = "it did not get as far as being executed"

OUTCOMES: dict[Outcome, OutcomeInfo] = {
    Outcome.PASS: OutcomeInfo(
        feasibility=Feasibility.FEASIBLE,
        evidence=True,
        from_compile=True,
        from_running_code=False,
        glyph="✓",
        ascii_glyph="+",
        colour="green",
        tone="live",
        word="passes",
        phrase="passes",
        plural="pass",
        finding="",
        compile_ends="passes",
        executed="right on these inputs under this model of the hardware",
        statuses={exitcode.PASS: "It passed up to the stage that was asked for."},
    ),
    Outcome.REJECTED: OutcomeInfo(
        feasibility=Feasibility.INFEASIBLE,
        evidence=True,
        from_compile=True,
        from_running_code=False,
        glyph="⊘",
        ascii_glyph="x",
        colour="red",
        tone="rejected",
        word="rejected",
        phrase="is rejected",
        plural="are rejected",
        finding="rejected",
        compile_ends="ends with {kind}",
        executed=_NEVER_RAN,
        statuses={
            exitcode.REJECTED_FRONT_END: "An exception of Triton's front end.",
            exitcode.REJECTED_BACK_END: "An exception of a compiler pass.",
            exitcode.REJECTED_LAUNCH: "Triton or the driver refused the launch.",
        },
    ),
    Outcome.CRASHED: OutcomeInfo(
        feasibility=Feasibility.INFEASIBLE,
        evidence=True,
        from_compile=True,
        from_running_code=True,
        glyph="✗",
        ascii_glyph="X",
        colour="red",
        tone="crashed",
        word="crashed",
        phrase="crashes the compiler",
        plural="crash the compiler",
        finding="aborts",
        compile_ends="dies of {kind}",
        executed=_NEVER_RAN,
        statuses={
            exitcode.CRASHED_DEVICE: (
                "An error on the device: illegal address, misaligned address, illegal instruction."
            )
        },
    ),
    Outcome.NO_RESOURCES: OutcomeInfo(
        feasibility=Feasibility.INFEASIBLE,
        evidence=True,
        from_compile=True,
        from_running_code=False,
        glyph="↑",
        ascii_glyph="^",
        colour="yellow",
        tone="over",
        word="over a resource limit",
        phrase="is over a resource limit",
        plural="are over a resource limit",
        finding="over-budget",
        compile_ends="makes a program that exceeds a limit of the GPU",
        executed=_NEVER_RAN,
        statuses={exitcode.NO_RESOURCES: "Over a limit of the hardware, or the compiler over its limit of memory."},
    ),
    Outcome.HUNG: OutcomeInfo(
        feasibility=Feasibility.INFEASIBLE,  # nobody can tune with it
        evidence=False,
        from_compile=True,
        from_running_code=True,
        glyph="∞",
        ascii_glyph="~",
        colour="yellow",
        tone="hung",
        word="hung",
        phrase="does not end before the deadline",
        plural="do not end before the deadline",
        finding="hung",
        compile_ends="does not end within {seconds} s",
        executed="it did not end before its limit",
        statuses={exitcode.ENDLESS: "Executed on the CPU: it went past the limit of instructions."},
    ),
    Outcome.WRONG: OutcomeInfo(
        feasibility=Feasibility.INFEASIBLE,
        evidence=True,
        from_compile=False,
        from_running_code=True,
        glyph="≠",
        ascii_glyph="#",
        colour="red",
        tone="wrong",
        word="wrong numbers",
        phrase="computes wrong numbers",
        plural="compute wrong numbers",
        finding="rejected",
        compile_ends="computes wrong numbers",
        executed="other numbers than the reference's",
        statuses={exitcode.WRONG: "It ran, and its numbers are not the reference's."},
    ),
    Outcome.UNSAFE: OutcomeInfo(
        feasibility=Feasibility.INFEASIBLE,
        evidence=True,
        from_compile=False,
        from_running_code=True,
        glyph="!",
        ascii_glyph="!",
        colour="red",
        tone="unsafe",
        word="unsafe",
        phrase="is unsafe",
        plural="are unsafe",
        finding="rejected",
        compile_ends="is unsafe",
        executed="an access, a wait or a barrier is wrong",
        statuses={exitcode.UNSAFE: "Executed on the CPU: it reads or writes what it must not, or before it may."},
    ),
    Outcome.SKIPPED: OutcomeInfo(
        feasibility=Feasibility.UNKNOWN,
        evidence=False,
        from_compile=False,
        from_running_code=False,
        glyph="–",
        ascii_glyph="-",
        colour="cyan",
        tone="unknown",
        word="skipped",
        phrase="was skipped",
        plural="were skipped",
        finding="",
        compile_ends="was skipped",
        executed="it compiled; there was nothing to execute",
        statuses={exitcode.SKIPPED: "No evidence: no such device, no inputs, or inputs of another specialisation."},
    ),
    Outcome.NOT_EXECUTED: OutcomeInfo(
        feasibility=Feasibility.FEASIBLE,  # it compiled
        evidence=True,
        from_compile=False,
        from_running_code=False,
        glyph="·",
        ascii_glyph=".",
        colour="cyan",
        tone="unknown",
        word="not executed",
        phrase="was not executed",
        plural="were not executed",
        finding="",
        compile_ends="was not executed",
        executed="it compiled; the model does not know something that it does, so its numbers are unknown",
        statuses={
            exitcode.NOT_EXECUTED: (
                "It compiled, and a run on the CPU came to what its model does not know: no evidence of its numbers."
            )
        },
    ),
}
"""The facts about each outcome, in the order of the reports."""

if list(OUTCOMES) != list(Outcome):
    raise ValueError(f"the rows of OUTCOMES are not the members of Outcome: {', '.join(OUTCOMES)}")

COMPILED = tuple(outcome for outcome in Outcome if outcome.compiled)
"""Outcomes of candidates that compiled, with nothing against them."""

OUTCOME_OF_STATUS: dict[int, Outcome] = {}
"""Exit status of a candidate's process -> its outcome."""
for _outcome in Outcome:
    for _status in _outcome.info.statuses:
        if _status in OUTCOME_OF_STATUS:
            raise ValueError(f"exit status {_status} belongs to {OUTCOME_OF_STATUS[_status]} and to {_outcome}")
        OUTCOME_OF_STATUS[_status] = _outcome


def named(text: str) -> Outcome | None:
    """Return the outcome with that name; None for "unknown" (no answer), and for names of a newer gluonmap."""
    return Outcome.__members__.get(text)


def feasibility(text: str) -> Feasibility:
    """Return what the outcome with that name says about its configuration."""
    outcome = named(text)
    return outcome.info.feasibility if outcome else Feasibility.UNKNOWN


def is_evidence(text: str) -> bool:
    """Return whether constraints may be checked against the outcome with that name."""
    outcome = named(text)
    return outcome is not None and outcome.info.evidence
