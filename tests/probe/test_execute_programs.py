"""Which programs are executed, where a value has failed by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from maps import joint_map

from gluonmap.model.candidate import Candidate, Config, Stage
from gluonmap.model.joint_map import Joint, Verified
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Resources, Verdict
from gluonmap.probe import execute_programs
from gluonmap.runner.oracle import Reply


class Executions:
    """An oracle whose programs with HOW = bad fail, except for those in `right`."""

    def __init__(self, right: frozenset[int] = frozenset()) -> None:
        self.right = right
        self.asked: list[Config] = []

    def known(self, candidate: Candidate) -> None:
        return None

    def ask(self, candidates: Iterable[Candidate]) -> Iterator[Reply]:
        for candidate in candidates:
            config = candidate.config
            self.asked.append(config)
            passes = config["HOW"] == "good" or config["TILE"] in self.right
            outcome = Outcome.PASS if passes else Outcome.CRASHED
            yield Reply(candidate, Verdict(outcome, Stage.RUN, 0 if passes else 15), fresh=True)


def asked(stage: Stage, right: frozenset[int] = frozenset()) -> list[Config]:
    configs: list[Config] = [{"HOW": how, "TILE": 1 << n} for how in ("good", "bad") for n in range(6)]
    programs = tuple(Verified(config, str(n), Resources(64, 0)) for n, config in enumerate(configs))
    description: Any = SimpleNamespace(
        candidate=lambda config: Candidate("gfx942", {}, config),
        runs_on_cpu=stage is Stage.RUN,
        execution=SimpleNamespace(stage=stage),
    )
    oracle: Any = Executions(right)
    execute_programs.execute(joint_of(programs), oracle, description, lambda event: None, {"HOW": ["bad"]})
    return oracle.asked


def joint_of(programs: tuple[Verified, ...]) -> Joint:
    joint = joint_map().joint
    assert joint
    return msgspec.structs.replace(joint, programs=programs)


@pytest.mark.parametrize(
    ("stage", "right", "bad"),
    [
        (Stage.RUN, frozenset(), execute_programs.MOST_WITH_FAILING_VALUE),
        (Stage.RUN, frozenset({1}), 6),  # one passes: the value is not wrong everywhere
        (Stage.LAUNCH, frozenset(), 6),  # nobody else refuses them
    ],
)
def test_few_programs_with_a_value_that_failed_are_asked_unless_one_passes(
    stage: Stage, right: frozenset[int], bad: int
) -> None:
    configs = asked(stage, right)
    assert sum(config["HOW"] == "good" for config in configs) == 6
    assert sum(config["HOW"] == "bad" for config in configs) == bad
