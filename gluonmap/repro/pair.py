"""The configurations of a script: the smallest failing part of a configuration, and the nearest one that passes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gluonmap.model.candidate import Config
from gluonmap.model.errors import OracleFault, UsageError
from gluonmap.model.verdict import Answer, Verdict, passed
from gluonmap.query import explain
from gluonmap.query.explain import Explanation
from gluonmap.query.feasibility import Judge, moves_of
from gluonmap.query.observations import ConfigKey, config_key

One = Callable[[Config], Answer]
"""Compiles one configuration."""
MOST_TRIED = 3
"""Most neighbours that are compiled until one passes."""


class FailingPair(msgspec.Struct, frozen=True):
    """A failing and a passing configuration, both compiled just now."""

    failing: Config
    verdict: Verdict
    passing: Config | None
    """None: no passing configuration near the failing one is known."""


def find(judged: Judge, explanation: Explanation, one: One) -> FailingPair:
    """Return the pair for a configuration that `explanation` explains as infeasible.

    Moves that the failure does not need go back to the baseline, unless the rest then fails in another way.

    Raises:
        OracleFault: the configuration, which fails by the map, does not fail today.
    """
    space = judged.space
    answers: dict[ConfigKey, Answer] = {}

    def answer(config: Config) -> Answer:
        if config_key(config) not in answers:
            answers[config_key(config)] = one(config)
        return answers[config_key(config)]

    failing = explanation.config
    if explanation.part is not None and _alike(
        answer(part := {**space.baseline, **explanation.part.moves}), answer(failing)
    ):
        failing = part
    verdict = answer(failing)
    if explanation.judgement.forbidden and passed(verdict):
        raise UsageError("no script: the map's own restrictions rule this configuration out; the compiler passes it.")
    if not isinstance(verdict, Verdict) or passed(verdict):
        said = "passes" if isinstance(verdict, Verdict) else f"has no answer ({verdict.text})"
        raise OracleFault(
            f"no script: the map holds the configuration for infeasible, and compiled now it {said}. "
            "gluonmap predict --verify says where else the map is out of date."
        )
    near = explain.nearest_feasible(
        judged,
        failing,
        most=MOST_TRIED,
        ask=lambda config: judged.judgement_of_answer(config, answer(config)),
        blamed=moves_of(space, failing),
    )
    return FailingPair(failing, verdict, next((item.config for item in near if passed(answer(item.config))), None))


def _alike(one: Answer, other: Answer) -> bool:
    """Return whether two configurations fail alike: outcome, kind of reason and place."""
    if not isinstance(one, Verdict) or not isinstance(other, Verdict) or one.outcome is not other.outcome:
        return False
    if one.reason is None or other.reason is None:
        return one.reason is other.reason
    return (one.reason.kind, one.reason.location) == (other.reason.kind, other.reason.location)
