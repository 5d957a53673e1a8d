"""The smallest change of a failing baseline: what is asked, in which order, and what is said of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from maps import PAIR
from project import Project

from gluonmap.cli.command_group import cli
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Stage, Value
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Answer, Fault, Location, Reason, Resources, Verdict
from gluonmap.probe import repair_baseline
from gluonmap.probe.repair_baseline import BaselineRepair, RepairSpace

GFX942 = targets.find("gfx942")
PASS = Verdict(Outcome.PASS, Stage.COMPILE, 0)
DOMAINS: dict[str, tuple[Value, ...]] = {"A": (1, 2, 4, 8), "B": (1, 2, 4, 8), "C": (1, 2, 4, 8), "D": (False, True)}
BASELINE: Config = {"A": 2, "B": 2, "C": 2, "D": False}


def rejected(line: int = 1, phase: str = "front end") -> Verdict:
    return Verdict(Outcome.REJECTED, Stage.COMPILE, 10, reason=Reason("E", "no", phase, Location("f", "f.py", line)))


def over(used: int) -> Verdict:
    """So many bytes of LDS, and 65,536 there are."""
    resources = Resources(256, used)
    return Verdict(Outcome.NO_RESOURCES, Stage.COMPILE, 12, reason=Reason("budget", "", "llir"), resources=resources)


class Compiler:
    """Answers by a function of the configuration, and keeps what was asked."""

    def __init__(self, answer: Callable[[Config], Answer]) -> None:
        self.answer, self.asked = answer, list[Config]()

    def __call__(self, batch: Sequence[Config]) -> list[Answer]:
        self.asked.extend(batch)
        return [self.answer({**BASELINE, **moves}) for moves in batch]


def passes_if(rule: Callable[[Config], bool]) -> Callable[[Config], Answer]:
    return lambda config: PASS if rule(config) else rejected()


def demand(text: str, *knobs: str) -> LiteralRule:
    return LiteralRule(text, text, knobs, Location("f", "f.py", 1))


def repair_space(demands: Sequence[LiteralRule] = (), restrict: Sequence[str] = (), **derive: str) -> RepairSpace:
    from gluonmap.constraints import expressions

    def names(moves: Config) -> dict[str, Value]:
        found = {**BASELINE, **moves}
        return found | {n: expressions.evaluate(text, found) for n, text in derive.items()}  # type: ignore[dict-item]

    depends = {n: expressions.names_in(text) for n, text in derive.items()}
    return RepairSpace(GFX942, BASELINE, DOMAINS, names, depends, demands, restrict)


def searched(
    answer: Callable[[Config], Answer], where: RepairSpace | None = None, budget: int = 200
) -> tuple[BaselineRepair, Compiler]:
    ask = Compiler(answer)
    return repair_baseline.search(where or repair_space(), answer(BASELINE), ask, budget), ask


def moves_of(found: BaselineRepair) -> list[Config]:
    return [change.moves for change in found.passing]


# ---- one knob -------------------------------------------------------------------------------------------------------


def test_the_nearest_value_of_one_knob_is_found_and_others_as_small_are_named() -> None:
    found, ask = searched(passes_if(lambda c: c["A"] == 8 or c["B"] in (4, 8) or c["C"] == 1))
    assert moves_of(found) == [{"B": 4}, {"C": 1}, {"A": 8}]
    assert (found.minimal, found.smaller, found.asked) == (True, 0, len(ask.asked))
    assert all(len(moves) == 1 for moves in ask.asked)


def test_nothing_is_asked_twice_and_never_more_than_the_budget() -> None:
    for budget in (1, 5, 10, 50, 1000):
        found, ask = searched(lambda config: rejected(), budget=budget)
        assert found.passing == ()
        assert len(ask.asked) == len({repr(sorted(m.items())) for m in ask.asked}) == found.asked
        assert found.asked == min(budget, 4 * 4 * 4 * 2 - 1)
        assert found.exhausted == (budget == 1000)


def test_what_the_user_rules_out_is_never_asked() -> None:
    found, ask = searched(passes_if(lambda c: c["A"] == 4 or c["A"] == 8), repair_space(restrict=["A != 4"]))
    assert moves_of(found) == [{"A": 8}]
    assert {"A": 4} not in ask.asked


# ---- several knobs --------------------------------------------------------------------------------------------------


def test_what_the_source_demands_is_asked_first() -> None:
    rule = [demand("A == 8", "A"), demand("B * C == 16", "B", "C")]
    found, ask = searched(
        passes_if(lambda c: c["A"] == 8 and int(c["B"] or 0) * int(c["C"] or 0) == 16), repair_space(rule)
    )
    assert moves_of(found)[0] == {"A": 8, "B": 8}
    assert ask.asked[0] == {"A": 8, "B": 8}
    assert (found.minimal, found.asked) == (True, 8)
    assert {"A": 8} in ask.asked and {"B": 8} in ask.asked  # each part was compiled
    assert (found.smaller, found.smaller_tried + found.smaller_forbidden) == (10, 10)


def test_a_demand_of_a_derived_value_is_met_by_the_knobs_behind_it() -> None:
    found, ask = searched(passes_if(lambda c: c["B"] == 8), repair_space([demand("HALF == 4", "HALF")], HALF="B // 2"))
    assert (moves_of(found), ask.asked) == ([{"B": 8}], [{"B": 8}, {"B": 1}, {"B": 4}])


def test_a_demand_that_is_wrong_delays_and_forbids_nothing() -> None:
    found, ask = searched(passes_if(lambda c: c["A"] == 4), repair_space([demand("A == 8", "A")]))
    assert (moves_of(found), ask.asked[0]) == ([{"A": 4}], {"A": 8})


def test_of_what_fails_the_furthest_gets_the_next_knob() -> None:
    def answer(config: Config) -> Answer:
        if config["A"] != 8:
            return rejected(line=10)
        return PASS if config["D"] and config["C"] == 1 else rejected(line=20 + (config["C"] == 1))

    found, ask = searched(answer)
    assert moves_of(found) == [{"A": 8, "C": 1, "D": True}]
    singles = 3 + 3 + 3 + 1
    assert len(ask.asked) < singles + 20  # of 117 that turn more than one
    assert all(moves.get("A") == 8 for moves in ask.asked[singles : singles + 7])


def test_over_a_budget_less_is_nearer() -> None:
    def answer(config: Config) -> Answer:
        used = 16_384 * int(config["A"] or 0) * int(config["B"] or 0) * int(config["C"] or 0)
        return PASS if used <= 32_768 else over(used)

    found, _ = searched(answer)
    assert moves_of(found)[0] == {"A": 1, "B": 1}
    assert found.asked <= 10 + repair_baseline.BATCH + 4


def test_what_hangs_is_tried_with_nothing_else() -> None:
    hung = Verdict(Outcome.HUNG, Stage.COMPILE, -9, reason=Reason("deadline", "", "front end"))

    def answer(config: Config) -> Answer:
        if config["A"] == 8:
            return hung
        if config["B"] == 8:
            return Fault("lost")
        return rejected()

    _, ask = searched(answer)
    combined = [moves for moves in ask.asked if len(moves) > 1]
    assert combined
    assert not any(moves.get("A") == 8 or moves.get("B") == 8 for moves in combined)


def test_a_change_that_is_found_is_cut_down_and_its_values_are_brought_nearer() -> None:
    rule = [demand("A + B + C >= 20", "A", "B", "C")]
    found, _ = searched(passes_if(lambda c: int(c["A"] or 0) + int(c["B"] or 0) >= 6), repair_space(rule))
    # The demand wants three knobs; one of them is enough, and its nearest value that passes is 4.
    assert moves_of(found)[0] == {"A": 4}
    assert found.minimal


def test_a_change_that_no_budget_is_left_to_cut_down_is_not_called_minimal() -> None:
    rule = [demand("A == 8 and B == 8", "A", "B")]
    found, _ = searched(passes_if(lambda c: c["A"] == 8 and c["B"] == 8), repair_space(rule), budget=2)
    assert (moves_of(found), found.minimal, found.asked) == ([{"A": 8, "B": 8}], False, 2)
    assert (found.smaller, found.smaller_tried, found.smaller_forbidden) == (10, 1, 9)


def test_the_same_answers_bring_the_same_questions() -> None:
    first = searched(lambda config: rejected(line=len(str(config))))[1].asked
    assert first == searched(lambda config: rejected(line=len(str(config))))[1].asked


# ---- the command ----------------------------------------------------------------------------------------------------


def test_help_has_the_flags_of_probe_and_an_example() -> None:
    text = CliRunner().invoke(cli, ["find-default", "--help"]).output
    for flag in (
        "--target",
        "--set",
        "--domain",
        "--config",
        "--arg",
        "--derive",
        "--grid",
        "--probe-file",
        "--budget",
    ):
        assert flag in text
    assert "gluonmap find-default my_kernel.py" in text
    assert "--validate" not in text and "--stage" not in text


@pytest.fixture(scope="module")
def found(shared_project: Project) -> Project:
    """A project with the kernel that demands A * B <= 64; its baseline breaks that."""
    shared_project.write("kernels/pair.py", PAIR)
    return shared_project


FLAGS = ("kernels/pair.py", "-t", "gfx942", "--arg", "x=*fp16", "--domain", "C=1,2")


def test_a_failing_baseline_is_repaired_and_the_command_goes_on_from_there(found: Project) -> None:
    sets = ("--set", "A=64", "--set", "B=4", "--domain", "A=4,16,64")
    run = found.run("find-default", *FLAGS, *sets)
    assert (run.code, run.stdout.splitlines()[0]) == (0, "pair on gfx942 (cdna3): the baseline is rejected.")
    assert "Change A from 64 to 16: then it passes." in run.stdout
    assert "forbidden by  static_assert(A * B <= 64) (line 8)" in run.stdout
    command = next(line for line in run.stdout.splitlines() if line.startswith("  gluonmap probe"))
    assert command == (
        "  gluonmap probe kernels/pair.py --target gfx942 --set B=4 --domain C=1,2 --domain A=4,16,64 "
        "--arg 'x=*fp16' --set A=16"
    )
    started = found.run("find-default", *shlex.split(command)[2:], "--quiet")
    assert started.stdout == "pair on gfx942 (cdna3): the baseline passes. There is nothing to change.\n"
    again = found.run("find-default", *FLAGS, *sets, "--json", "--quiet")
    document = json.loads(again.stdout)
    assert (again.code, again.stderr, document["moves"], document["outcome"]) == (0, "", {"A": 16}, "REJECTED")
    assert [document["config"][name] for name in "ABC"] == [16, 4, 1]
    assert not (found.root / "reports").exists()


def test_what_cannot_be_repaired_ends_with_1_and_says_what_to_do(found: Project) -> None:
    sets = ("--set", "A=64", "--set", "B=64", "--domain", "A=64", "--domain", "B=64,128")
    run = found.run("find-default", *FLAGS, *sets, "--budget", "4")
    assert (run.code, run.stdout.splitlines()[-2:]) == (
        1,
        [
            "No change that passes was found: 4 configurations compiled, all fail.",
            "Continue with a larger --budget, or give the knobs other values with --domain NAME=V1,V2,….",
        ],
    )


def test_a_baseline_that_passes_has_nothing_to_change(found: Project) -> None:
    run = found.run("find-default", *FLAGS, "--set", "A=4", "--set", "B=4", "--quiet")
    assert (run.code, run.stdout, run.stderr) == (
        0,
        "pair on gfx942 (cdna3): the baseline passes. There is nothing to change.\n",
        "",
    )


def test_a_mistake_of_the_user_is_reported_before_anything_is_compiled(found: Project, tmp_path: Path) -> None:
    run = found.run("find-default", *FLAGS, "--set", "A=4", "--set", "B=4", "--restrict", "Q > 1", "--set", "A=64")
    assert (run.code, "'Q > 1' has no value" in run.stderr) == (2, True)
    assert found.run("find-default", str(tmp_path / "none.py")).code == 2
