"""Restrictions and pruning functions, judged on the space of a map."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from audits import checked, findings
from hypothesis import given, settings
from hypothesis import strategies as st
from maps import (
    BUDGET,
    DOMAINS,
    constraint,
    joint_map,
    product,
)

from gluonmap.audit import rule_check
from gluonmap.audit.request import PruningRule
from gluonmap.audit.rule_space import RuleSpace
from gluonmap.constraints.semantics import holds
from gluonmap.export import kernel_tuner
from gluonmap.model.joint_map import Inertness, Standing, ValueClasses
from gluonmap.model.relations import Bound, Op, Written
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import find
from gluonmap.query.feasibility import Judge
from gluonmap.query.reduced_space import reduced_space_of
from gluonmap.worker import choose
from gluonmap.worker.protocol import Choice

RULED = joint_map(
    (BUDGET, Bound("N", Op.AT_MOST, 64)),
    inertness=[Inertness("FLAG", "", "FLAG changed nothing", 0, 9)],
    value_classes=[ValueClasses("FLAG", ((False, True),)), ValueClasses("STAGES", ((1, 2),))],
)
TEXTS = [
    "M * N <= 4096",
    "STAGES in (1, 3)",
    "FLAG == False",
    "MODE == None or M > 16",
    "M // (STAGES - 1) >= 16",
    "M >= N",
    "N != 128",
    "STAGES != 1",
]


def by_hand(space: SpaceMap, texts: list[str]) -> tuple[int, int, int]:
    """Feasible ones dropped, infeasible ones kept, and programs lost, counted one by one."""
    assert space.joint is not None
    relations, reduced = [c.relation for c in space.joint.constraints], reduced_space_of(space)
    dropped = kept = 0
    programs: dict[str, bool] = {}
    for config in product(DOMAINS):
        passes = all(holds(relation, config) for relation in relations)
        allowed = all(holds(Written(text), config) for text in texts)
        dropped += passes and not allowed
        kept += allowed and not passes
        if passes:
            form = repr(reduced.canonical(config))
            programs[form] = programs.get(form, False) or allowed
    return dropped, kept, sum(not there for there in programs.values())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3, unique=True))
def test_restrictions_are_counted_as_if_each_configuration_were_looked_at(texts: list[str]) -> None:
    ground = RuleSpace(RULED, Judge(RULED))
    rule = PruningRule("rule", restrictions=tuple(texts))
    counted = rule_check.count_mistakes(rule, texts, ground)
    assert counted is not None
    mistakes, _ = counted
    assert (mistakes.feasible.mistaken, mistakes.infeasible.mistaken, mistakes.lost) == by_hand(RULED, texts)
    pool = ground.pool(4096)
    kept = [i for i, config in enumerate(pool.configs) if all(holds(Written(text), config) for text in texts)]
    decided = rule_check.check_selection(rule, pool, kept, ground)
    # The judge says nothing of values that no answered configuration had; these maps have answers for all.
    assert (decided.feasible, decided.infeasible, decided.lost) == (
        mistakes.feasible,
        mistakes.infeasible,
        mistakes.lost,
    )


def test_a_rule_is_judged_with_examples_of_the_fewest_moves(tmp_path: Path) -> None:
    shown = checked(tmp_path, RULED, "", "--restriction", "M <= 64", "--restriction", "STAGES != 3")
    assert shown.exit_code == 1
    lines = shown.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if "[admits-infeasible]" in line)
    assert lines[at].startswith("command line: error: ")
    assert lines[at + 1] == "    N=128 (NO_RESOURCES): N <= 64"
    at = next(i for i, line in enumerate(lines) if "[drops-feasible]" in line)
    assert "    'STAGES != 3' alone drops 54" in lines[at:]
    assert "    M=128 (PASS)" in lines[at:]


def test_a_rule_that_drops_only_what_changes_nothing_costs_nothing(tmp_path: Path) -> None:
    rule = "M * N * STAGES <= 8192 and N <= 64 and FLAG == False and (STAGES != 1 or M * N > 4096)"
    shown = checked(tmp_path, RULED, "", "--restriction", rule)
    assert (shown.exit_code, shown.stdout.splitlines()[-1]) == (0, "nothing found")


def test_what_its_author_forbids_is_no_rules_business(tmp_path: Path) -> None:
    given_ = constraint(Bound("M", Op.AT_MOST, 64), Standing.GIVEN)
    space = joint_map((), constraints=[given_])
    assert checked(tmp_path, space, "", "--restriction", "M <= 64").exit_code == 0


def test_exported_restrictions_are_found_right(tmp_path: Path) -> None:
    text = kernel_tuner.render(RULED)
    shown = checked(tmp_path, RULED, text, name="kt.py")
    assert (shown.exit_code, shown.stdout.splitlines()[-1]) == (0, "nothing found")


def test_values_of_a_rule_that_the_map_lacks_are_reported(tmp_path: Path) -> None:
    text = 'tune_params = {"M": [16, 48], "Q": [1]}\nrestrictions = ["N <= 64", "M * N * STAGES <= 8192"]\n'
    rows = findings(checked(tmp_path, RULED, text, "--json", name="kt.py"))
    assert rows == [
        ("warning", "unknown-key", "tune_params has Q, which is no knob of the map"),
        ("notice", "no-answer", "tune_params has M = 48, which the map never tried: not judged"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--restriction", "BLOCK <= 2"], "has no knob 'BLOCK'"),
        (["--restriction", "M <="], "is no expression"),
        (["--prune", "nowhere.py:f"], "there is no file nowhere.py"),
        (["--prune", "nowhere.py"], "names no function"),
        ([], "name files with --configs FILE"),
    ],
)
def test_a_rule_that_cannot_be_judged_is_a_usage_error(tmp_path: Path, arguments: list[str], message: str) -> None:
    shown = checked(tmp_path, RULED, "", *arguments)
    assert shown.exit_code == 2
    assert message in shown.stderr


def test_a_pruning_function_is_judged_by_what_it_returns_not_by_its_input() -> None:
    configs = ({"TILE": 64, "num_warps": 4}, {"TILE": 256, "num_warps": 4}, {"TILE": 512, "num_warps": 4})

    def changing(given: list[Any], named: Any, **_: Any) -> list[Any]:
        for config in given[1:]:
            config.kwargs["TILE"] = 128 if config.kwargs["TILE"] == 256 else 64
        return given

    choice = Choice(configs=configs, function="changing")
    kernel = SimpleNamespace(module=SimpleNamespace())
    assert choose._by_function(changing, choice, kernel, find("gfx942")) == ([0], 1)  # type: ignore[arg-type]


def test_a_restriction_that_is_a_function_is_refused(tmp_path: Path) -> None:
    shown = checked(tmp_path, joint_map(), None, "--restriction", "lambda M: M <= 16")
    assert shown.exit_code == 2
    assert "is a function: give what it returns" in shown.output
