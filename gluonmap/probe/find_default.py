"""Search for a default: the smallest change of a failing baseline that passes on one target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gluonmap.constraints import expressions
from gluonmap.model.candidate import Candidate, Config, Value
from gluonmap.model.errors import OracleFault, UsageError
from gluonmap.model.events import Event, Listener
from gluonmap.model.inspection import Inspection
from gluonmap.model.knobs import KnobKind
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import Target
from gluonmap.model.verdict import Answer, Fault, Verdict
from gluonmap.probe import map_fold, map_writer, repair_baseline, screen
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.repair_baseline import BaselineRepair, RepairSpace
from gluonmap.probe.session import KernelSession, open_session, oracle_of
from gluonmap.probe.settings import REPAIR_DEADLINE_S
from gluonmap.probe.target_choice import api_uses
from gluonmap.runner import journal
from gluonmap.runner.oracle import Oracle
from gluonmap.source import target_api
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import describe


@dataclass(frozen=True, slots=True)
class DefaultSearch:
    """Result of the search for a baseline that passes."""

    space: SpaceMap
    """Map of the unchanged baseline alone; not stored."""
    repair: BaselineRepair | None
    """None: the baseline passes."""


def find_default(campaign: Campaign, target: Target, budget: int) -> DefaultSearch:
    """Search the smallest change of a failing baseline that passes on `target`, with `budget` compiles at most.

    Raises:
        OracleFault: the baseline has no answer.
        UsageError: a restriction that has no value.
    """
    with open_session(campaign, target) as session:
        inspection, probe = session.head.inspection, session.probe
        description = describe(inspection, target, probe, campaign.overrides(probe))
        oracle = oracle_of(campaign, session.record, session.head, "")
        candidate = description.candidate({})
        known = int(oracle.known(candidate) is not None)
        campaign.listen(Event("plan", "baseline", 1, known))
        answers = _asked(oracle, [candidate], campaign.listen, tell_known=False)
        base = answers[journal.key_of(candidate)]
        if not isinstance(base, Verdict):
            raise OracleFault(f"the baseline has no answer: {base.text}.")
        repair = None
        if base.outcome is not Outcome.PASS:
            # A warm server would have to compile the baseline, which fails.
            oracle = oracle.with_baseline(candidate, warm=False).with_limits(campaign.limits(REPAIR_DEADLINE_S))
            repair = _repair(campaign, session, description, oracle, base, budget)
        identity = map_writer.identity_of(campaign, target, session.head, probe.path)
        space = map_fold.fold(description, inspection, identity, answers, {}, session.lines)
    return DefaultSearch(map_writer.with_missing_api(campaign, space, inspection, target), repair)


def _repair(
    campaign: Campaign, session: KernelSession, description: Description, oracle: Oracle, base: Verdict, budget: int
) -> BaselineRepair:
    inspection = session.head.inspection
    restrict = (*session.probe.restrict, *campaign.settings.effort.restrict)
    if session.target.name in target_api.excluded_targets(api_uses(campaign, inspection)):
        budget = 0  # no value of a knob brings an API that the target lacks
    space = _repair_space(inspection, description, restrict)
    campaign.listen(Event("plan", "changes at most to compile", budget))

    def ask(batch: Sequence[Config]) -> list[Answer]:
        candidates = [_candidate_or_fault(description, moves) for moves in batch]
        answers = _asked(oracle, [c for c in candidates if isinstance(c, Candidate)], campaign.listen)
        return [c if isinstance(c, Fault) else answers[journal.key_of(c)] for c in candidates]

    return repair_baseline.search(space, base, ask, budget)


def _candidate_or_fault(description: Description, moves: Config) -> Candidate | Fault:
    try:
        return description.candidate(moves)
    except UsageError as error:  # host code cannot compute its arguments, so there is no candidate to ask
        return Fault(str(error))


def _asked(
    oracle: Oracle, candidates: Sequence[Candidate], listen: Listener, *, tell_known: bool = True
) -> dict[str, Answer]:
    """Return answers by candidate key, and report each when it arrives; without `tell_known`, fresh ones only."""
    answers: dict[str, Answer] = {}
    for reply in oracle.ask(candidates):
        answers[journal.key_of(reply.candidate)] = reply.answer
        if reply.fresh or tell_known:
            listen(Event("answer" if reply.fresh else "known", answer=reply.answer))
    return answers


def _repair_space(inspection: Inspection, description: Description, restrict: Sequence[str]) -> RepairSpace:
    """Return where a change of the baseline is searched.

    Raises:
        UsageError: a restriction that has no value.
    """
    for text in restrict:
        expressions.evaluate(text, description.namespace({}))
    knobs = {n: k for n, k in description.knobs.items() if k.kind is not KnobKind.HOST}

    def names(moves: Config) -> dict[str, Value]:
        try:
            found = description.namespace(moves)
        except UsageError:  # host code cannot compute a value, so no expression has a value either
            return {}
        found.setdefault("num_warps", inspection.options.get("num_warps", 4))
        return found

    return RepairSpace(
        target=description.target,
        baseline={n: k.baseline for n, k in knobs.items()},
        domains={n: k.domain for n, k in knobs.items()},
        names=names,
        depends={n: _names_behind(n, description.derive) for n in description.derive},
        demands=screen.demands(inspection, description),
        restrict=restrict,
    )


def _names_behind(name: str, derive: Mapping[str, str]) -> frozenset[str]:
    """Return the names that a derived value is computed from, directly or through other derived values."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for other in expressions.names_in(derive.get(waiting.pop(), "0")) - found:
            found.add(other)
            waiting.append(other)
    return frozenset(found)
