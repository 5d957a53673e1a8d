"""The compiles of one audit, each made once, and the runs of a user's pruning function."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gluonmap.model import exitcode
from gluonmap.model.candidate import Candidate
from gluonmap.model.errors import OracleFault
from gluonmap.model.events import Event
from gluonmap.model.targets import Target
from gluonmap.model.verdict import Answer, Verdict
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.session import KernelSession
from gluonmap.probe.settings import DEADLINE_PER_BASELINE, IMPORT_DEADLINE_S, LEAST_DEADLINE_S
from gluonmap.runner import diagnostics, journal
from gluonmap.runner.determinism import DeterminismCheck
from gluonmap.worker.protocol import Choice, Job, Limits


class AuditCompiles:
    """The compiles of one kernel on one target."""

    def __init__(self, campaign: Campaign, kernel: KernelSession, target: Target, second: DeterminismCheck) -> None:
        self.campaign, self.kernel, self.target, self.second = campaign, kernel, target, second
        self.settings, self.inspection = campaign.settings, kernel.head.inspection
        self.oracle = kernel.oracle
        self.answers: dict[str, Answer] = {}
        """Key of a candidate -> its answer."""
        self.compiled = 0
        """Number of candidates compiled now, without answers of earlier runs."""

    def ask(self, candidates: Iterable[Candidate], what: str) -> list[Answer]:
        """Return the answers, in the order of the candidates."""
        wanted = [(journal.key_of(candidate), candidate) for candidate in candidates]
        new = {key: candidate for key, candidate in wanted if key not in self.answers}
        oracle, listen = self.oracle, self.campaign.listen
        if new:
            known = sum(oracle.known(candidate) is not None for candidate in new.values())
            listen(Event("plan", what, len(new), known))
            for reply in oracle.ask(new.values()):
                self.answers[journal.key_of(reply.candidate)] = reply.answer
                if reply.fresh:
                    self.compiled += 1
                    listen(Event("answer", answer=reply.answer))
        return [self.answers[key] for key, _ in wanted]

    def one(self, candidate: Candidate, what: str) -> Answer:
        """Return the answer to one candidate."""
        return self.ask([candidate], what)[0]

    def lean_on(self, candidate: Candidate, answer: Verdict) -> None:
        """Fork later compiles from a server that has compiled this candidate, and scale their deadline by its time."""
        self.oracle = self.oracle.with_baseline(candidate)
        if self.settings.deadline_s is None:
            deadline = max(LEAST_DEADLINE_S, DEADLINE_PER_BASELINE * answer.seconds)
            self.oracle = self.oracle.with_limits(Limits(deadline, self.settings.memory_bytes))

    def is_stable(self, candidate: Candidate) -> bool | None:
        """Return whether a second compile gave the same program; None if there was no second compile."""
        return self.kernel.record.stability(self.kernel.head.stamp, journal.compile_key(candidate))

    def choose(self, choice: Choice) -> tuple[tuple[int, ...], int] | str:
        """Return the positions of the configurations that a rule keeps, and the number of others that it returned.

        If the rule gave no answer, return the reason in words.

        Raises:
            OracleFault: the fork server was lost.
        """
        file = self.campaign.kernel_file(self.inspection.kernel)
        deadline_s = self.settings.deadline_s or IMPORT_DEADLINE_S
        job = Job("choose", self.target.name, file, choice=choice)
        ending = self.campaign.isolation.ask(job, Limits(deadline_s, self.settings.memory_bytes))
        evidence = ending.evidence
        if ending.lost:
            raise OracleFault("the fork server was lost while it applied a rule.")
        if ending.hung:
            return f"it did not end within {deadline_s:g} s"
        if evidence is not None and evidence.reason is not None and evidence.status == ending.status:
            at = f" at {Path(evidence.file).name}:{evidence.line}" if evidence.line else ""
            return f"{evidence.reason.kind}: {diagnostics.tidy(evidence.reason.text)}{at}"
        if evidence is None or evidence.chosen is None or ending.status != exitcode.PASS:
            return f"it ended the process ({exitcode.signal_name(ending.status) or f'exit status {ending.status}'})"
        return evidence.chosen, evidence.strange
