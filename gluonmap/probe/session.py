"""Session: a kernel opened on one target, and the steps from its baseline to its map.

`probe_target` lists the steps. Ctrl-C ends the asking in any of them, and the map of what is known is still written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gluonmap.model.candidate import Candidate, Value
from gluonmap.model.errors import GluonmapError, OracleFault, UsageError
from gluonmap.model.events import Event
from gluonmap.model.joint_map import Joint
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import Target
from gluonmap.model.verdict import Answer, Verdict, compiled, digest_of
from gluonmap.probe import execute_programs, map_fold, map_writer, screen
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.current_lines import Lines, current_lines
from gluonmap.probe.inspection import current_paths, head_for
from gluonmap.probe.joint_search import INTERRUPTED, JointSearch
from gluonmap.probe.map_writer import StoredMap
from gluonmap.probe.restrictions import Restrictions
from gluonmap.probe.settings import Effort
from gluonmap.probe.target_choice import execution_request
from gluonmap.runner import journal
from gluonmap.runner.determinism import DeterminismCheck
from gluonmap.runner.journal import Head, Journal
from gluonmap.runner.oracle import Oracle
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import describe
from gluonmap.spec.probe_file import ProbeFile


class Interrupted(GluonmapError):
    """Ctrl-C. What is known has been kept; `stored` is its map if there is one."""

    exit_code = 130

    def __init__(self, text: str, stored: StoredMap | None = None) -> None:
        super().__init__(text)
        self.stored = stored


@dataclass(frozen=True, slots=True)
class KernelSession:
    """A kernel on one target: its journal, inspection, probe file and oracle."""

    target: Target
    record: Journal
    head: Head
    probe: ProbeFile
    oracle: Oracle
    lines: Lines


@contextlib.contextmanager
def open_session(campaign: Campaign, target: Target) -> Iterator[KernelSession]:
    """Open the kernel's journal on `target`; inspect the kernel if the journal is not up to date.

    Raises:
        UsageError: the file cannot be imported, holds no such kernel, or another process has the journal.
    """
    probe = campaign.probe_file(target.name)
    with Journal(campaign.journal_path(target)) as record:
        if record.damaged:
            lines = ", ".join(map(str, record.damaged[:5]))
            note = f"{record.path}: damaged lines {lines} are ignored; their candidates are asked again"
            campaign.listen(Event("note", note))
        head = head_for(campaign, record, target, probe)
        current = current_lines(head.inspection, current_paths(campaign, head.inspection, head.folder))
        yield KernelSession(target, record, head, probe, oracle_of(campaign, record, head, probe.path), current)


def oracle_of(campaign: Campaign, record: Journal, head: Head, probe_file: str) -> Oracle:
    """Return the oracle of a journal's kernel before anything is known about its baseline."""
    return Oracle(
        journal=record,
        isolation=campaign.isolation,
        stamp=head.stamp,
        file=campaign.kernel_file(head.inspection.kernel),
        target=head.target,
        functions=head.inspection.functions,
        limits=campaign.limits(),
        loadable=head.inspection.quiet,
        retry=campaign.settings.retry,
        afresh=campaign.settings.afresh,
        probe_file=os.path.abspath(probe_file) if probe_file else "",
    )


def probe_target(campaign: Campaign, target: Target) -> StoredMap:
    """Map the kernel on `target`, and store the map.

    Raises:
        Interrupted: Ctrl-C; the map of what is known has been stored.
    """
    with open_session(campaign, target) as session:
        steps = _Steps(campaign, session)
        answers = steps.ask()
        if steps.baseline_key not in answers:
            raise Interrupted("interrupted before the baseline had an answer; nothing is known yet.")
        space = steps.map_of(answers)
    stored = map_writer.store(campaign, space, target, session.head.inspection)
    if steps.interrupted:
        if space.unanswered:
            text = f"interrupted: {space.unanswered} candidates were not asked."
        else:
            left = "what is known of all knobs together is in the map" if steps.joint else "not all was asked"
            text = f"interrupted: {left}; the same command goes on from there."
        raise Interrupted(text, stored)
    return stored


class _Steps:
    """Baseline, single values, second compiles, joint search and execution of programs, in this order."""

    def __init__(self, campaign: Campaign, session: KernelSession) -> None:
        """Describe the candidates and check the restrictions, before anything is asked.

        Raises:
            UsageError: the description lacks something, or a restriction does not hold for the baseline.
        """
        self.campaign, self.session, self.listen = campaign, session, campaign.listen
        self.inspection = session.head.inspection
        self.compiles = describe(self.inspection, session.target, session.probe, campaign.overrides(session.probe))
        """Candidates of the stage COMPILE."""
        self.description = _with_execution(campaign, session.probe, self.compiles)
        """Candidates of the settings' stage."""
        self.baseline_key = journal.key_of(self.description.candidate({}))
        self.oracle = session.oracle
        """Oracle of the current step. The step that knows the baseline's compile time derives another one."""
        self.joint: Joint | None = None
        self.interrupted = False
        if self._searches_jointly:
            Restrictions(self.compiles, self._effort().restrict)

    def ask(self) -> dict[str, Answer]:
        """Take all steps; return the answers of the baseline and of single values by candidate key."""
        try:
            with DeterminismCheck(self.campaign.settings.jobs, self.listen) as check:
                answers = self._ask_baseline(check)
                if compiled(answers[self.baseline_key]):
                    check.confirm(self.oracle, [self.description.candidate({})])
                    answers |= self._ask_single_values()
                    check.confirm(self.oracle, _with_the_baselines_program(self.description, answers))
                    if self._searches_jointly:
                        self._search_jointly(answers)
                return answers
        except KeyboardInterrupt:
            self.interrupted = True
            # Each answer is in the journal before a step returns it, so the journal knows at least what the steps know.
            known = ((journal.key_of(c), self.oracle.known(c)) for c in _planned(self.description))
            return {key: answer for key, answer in known if answer is not None}

    def map_of(self, answers: Mapping[str, Answer]) -> SpaceMap:
        """Return the map that the answers give, with the result of the joint search."""
        session = self.session
        space = map_fold.fold(
            self.description,
            self.inspection,
            map_writer.identity_of(self.campaign, session.target, session.head, session.probe.path),
            answers,
            self._stability(),
            session.lines,
        )
        space = map_writer.with_missing_api(self.campaign, space, self.inspection, session.target)
        joint = execute_programs.without_forbidden_programs(self.joint, space) if self.joint else None
        return msgspec.structs.replace(space, joint=joint)

    def _ask_baseline(self, check: DeterminismCheck) -> dict[str, Answer]:
        """Ask the baseline; where it compiles, derive the oracle of the other steps from its compile time.

        Raises:
            OracleFault: the baseline has no answer.
        """
        candidate = self.description.candidate({})
        check.start_for(self.oracle, candidate)
        answers = self._asked("baseline", [candidate])
        answer = answers[self.baseline_key]
        if not isinstance(answer, Verdict):
            raise OracleFault(f"the baseline has no answer: {answer.text}.")
        if compiled(answer):
            self.oracle = self.campaign.after_baseline(self.oracle, candidate, answer.seconds)
        return answers

    def _ask_single_values(self) -> dict[str, Answer]:
        candidates = {journal.key_of(c): c for c in screen.singles(self.description).values()}
        return self._asked("values to compile", list(candidates.values()))

    def _asked(self, plan: str, candidates: Sequence[Candidate]) -> dict[str, Answer]:
        known = sum(self.oracle.known(candidate) is not None for candidate in candidates)
        self.listen(Event("plan", plan, len(candidates), known))
        answers: dict[str, Answer] = {}
        for reply in self.oracle.ask(candidates):
            answers[journal.key_of(reply.candidate)] = reply.answer
            if reply.fresh:
                self.listen(Event("answer", answer=reply.answer))
        return answers

    # -- all knobs together --------------------------------------------------------------------------------------

    @property
    def _searches_jointly(self) -> bool:
        return self.campaign.settings.effort.depth != "singles" and bool(self.compiles.knobs)

    def _effort(self, problem: Mapping[str, Sequence[Value]] | None = None) -> Effort:
        """Return the effort with the probe file's restrictions, and with those that leave `problem` out."""
        effort = self.campaign.settings.effort
        left_out = screen.restrictions_without(problem or {})
        return dataclasses.replace(effort, restrict=(*self.session.probe.restrict, *left_out, *effort.restrict))

    def _search_jointly(self, answers: Mapping[str, Answer]) -> None:
        """Search all knobs together, then take the programs found to the settings' stage."""
        problem = screen.result_changing_values(self.description, answers)
        search = JointSearch(
            self.oracle,
            self.compiles,
            screen.demands(self.inspection, self.compiles),
            self._effort(problem),
            self.session.lines,
            self.listen,
            screen.unread_knobs(self.inspection, self.compiles),
        )
        # One value whose code is unstable is enough: equal programs prove nothing in any configuration with it.
        stable = False not in self._stability().values()
        self.joint = search.search(_compile_answers(self.description, answers), stable=stable)
        if self.description.execution and self.joint.stopped != INTERRUPTED:
            failing = screen.values_failing_when_executed(self.description, answers)
            self.joint = execute_programs.execute(self.joint, self.oracle, self.description, self.listen, failing)
        if problem:
            self.joint = msgspec.structs.replace(self.joint, notes=(*self.joint.notes, _left_out(problem)))
        self.interrupted = self.joint.stopped == INTERRUPTED

    def _stability(self) -> dict[str, bool]:
        """Return whether a second compile gave the same program, by compile key, where there was one."""
        record, stamp = self.session.record, self.session.head.stamp
        keys = [journal.compile_key(candidate) for candidate in _planned(self.description)]
        return {key: same for key in keys if (same := record.stability(stamp, key)) is not None}


def _with_execution(campaign: Campaign, probe: ProbeFile, compiles: Description) -> Description:
    """Return the description of candidates of the settings' stage.

    Raises:
        UsageError: the stage needs a grid or a probe file, and there is none.
    """
    request = execution_request(campaign, probe)
    if request:
        require_grid(compiles)
    description = dataclasses.replace(compiles, execution=request)
    if note := description.second_tile_note():
        description = dataclasses.replace(description, notes=(*description.notes, note))
    return description


def require_grid(description: Description) -> None:
    """Check that a launch of the description has a grid.

    Raises:
        UsageError: it has none.
    """
    if not description.grid:
        raise UsageError("a launch needs its grid: give it with --grid, or as GRID in the probe file.")


def _planned(description: Description) -> list[Candidate]:
    """Return the baseline and all moves of one knob."""
    return [description.candidate({}), *screen.singles(description).values()]


def _with_the_baselines_program(description: Description, answers: Mapping[str, Answer]) -> list[Candidate]:
    """Return the passing single values whose program is the baseline's."""
    base = digest_of(answers[journal.key_of(description.candidate({}))])
    found = [(c, answers.get(journal.key_of(c))) for c in screen.singles(description).values()]
    return [c for c, answer in found if base and compiled(answer) and digest_of(answer) == base]


def _compile_answers(description: Description, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Return the answers of baseline and single values as answers to their compiles, by compile key."""
    return {
        journal.compile_key(c): execute_programs.compile_answer(answers[journal.key_of(c)])
        for c in _planned(description)
        if journal.key_of(c) in answers
    }


def _left_out(problem: Mapping[str, Sequence[Value]]) -> str:
    values = "; ".join(f"{name}: {', '.join(map(repr, chosen))}" for name, chosen in problem.items())
    return f"values that change the result are part of the problem, and were left out: {values}"
