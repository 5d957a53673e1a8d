"""Why a configuration fails, what is near it that does not, and what matters there."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from maps import (
    BASELINE,
    BUDGET,
    DOMAINS,
    PAIR,
    PAIR_RULE,
    constraint,
    joint_map,
    pair_map,
    product,
    single_map,
    tried,
)
from msgspec.structs import replace
from project import Project

from gluonmap.cli.command_group import cli
from gluonmap.constraints.semantics import holds
from gluonmap.model import codec
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Certificate, Inertness, Standing, StratumCertificate, ValueClasses
from gluonmap.model.knobs import KnobClass
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.relations import Compare, KnobTerm, Member, Nogood, Number, Op, Product, Relation, Written
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.explain import FailingPart, knob_relevance, minimal, nearest_feasible, smallest_failing
from gluonmap.query.feasibility import Basis, Judge, Judgement, complete
from gluonmap.runner import environment


class Compiler:
    """Compiles by a hidden rule, and counts."""

    def __init__(self, *relations: Relation) -> None:
        self.relations, self.asked = relations, list[Config]()

    def __call__(self, config: Config) -> Judgement:
        self.asked.append(config)
        if all(holds(r, config) for r in self.relations):
            return Judgement(Feasibility.FEASIBLE, Basis.COMPILED, "PASS")
        return Judgement(Feasibility.INFEASIBLE, Basis.COMPILED, "CRASHED", "LLVM ERROR: hidden rule")


def failing(space: Any, ask: Any, **moves: Any) -> FailingPart:
    found = smallest_failing(Judge(space), complete(space, moves), ask)
    assert found is not None
    return found


# ---- the smallest failing part --------------------------------------------------------------------------------------

ITEMS = "abcdefgh"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.frozensets(st.sampled_from(ITEMS), min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_minimal_part_of_a_monotone_failure_is_one_of_its_causes(causes: list[frozenset[str]]) -> None:
    def fails(part: Sequence[str]) -> bool:
        return any(cause <= set(part) for cause in causes)

    found = minimal(ITEMS, fails)
    assert fails(found)
    assert not any(fails([x for x in found if x != left_out]) for left_out in found)


@settings(max_examples=300, deadline=None)
@given(st.sets(st.frozensets(st.sampled_from(ITEMS[:5]))))
def test_a_minimal_part_of_any_failure_is_minimal_by_one(failures: set[frozenset[str]]) -> None:
    every = frozenset(ITEMS[:5])

    def fails(part: Sequence[str]) -> bool:
        return frozenset(part) == every or (frozenset(part) in failures and len(part) > 0)

    found = minimal(ITEMS[:5], fails)
    assert fails(found)
    assert not any(fails([x for x in found if x != left_out]) for left_out in found)
    assert [x for x in ITEMS if x in found] == found


def test_a_broken_constraint_names_the_knobs_to_compile() -> None:
    ask = Compiler(BUDGET)
    found = failing(joint_map(), ask, M=128, N=128, FLAG=True, MODE=".cg", STAGES=1)
    assert (found.moves, found.judgement.outcome) == ({"M": 128, "N": 128}, "CRASHED")
    assert len(ask.asked) == 5  # the whole, the knobs of the constraint, and its parts that were not moved alone


def test_single_moves_that_the_map_has_are_not_compiled() -> None:
    space = single_map(relations=[Compare(KnobTerm("M"), Op.AT_MOST, Number(64))])
    ask = Compiler(Compare(KnobTerm("M"), Op.AT_MOST, Number(64)))
    found = failing(space, ask, M=128, N=64, FLAG=True)
    assert (found.moves, found.proved) == ({"M": 128}, True)
    assert ask.asked == [{**BASELINE, "M": 128, "N": 64, "FLAG": True}]


def test_a_part_that_only_constraints_forbid_is_not_called_proved() -> None:
    found = failing(joint_map(), None, M=128, N=128, FLAG=True)
    assert (found.moves, found.judgement.basis, found.proved) == ({"M": 128, "N": 128}, "predicted", False)


def test_compiled_parts_are_proved_minimal() -> None:
    rule = Nogood((("M", 64), ("FLAG", True)))
    found = failing(single_map(relations=()), Compiler(rule), M=64, N=64, FLAG=True, MODE=".cg")
    assert (found.moves, found.proved) == ({"M": 64, "FLAG": True}, True)


def test_a_failing_baseline_is_the_smallest_part_of_everything() -> None:
    space = replace(single_map(), outcome="CRASHED", knobs={})
    assert failing(space, Compiler(Member("M", ())), M=64).moves == {}


def test_a_passing_configuration_has_no_failing_part() -> None:
    space = joint_map()
    assert smallest_failing(Judge(space), complete(space, {"M": 64})) is None


def test_a_part_that_the_user_forbids_is_not_compiled() -> None:
    ban = constraint(Compare(Product((KnobTerm("M"), KnobTerm("N"))), Op.AT_MOST, Number(4096)), Standing.GIVEN)
    ask = Compiler()
    found = failing(joint_map(constraints=[ban], relations=()), ask, M=128, N=64, FLAG=True)
    assert found.moves == {"M": 128, "N": 64}
    assert all(set(c) and c["M"] * c["N"] <= 4096 for c in ask.asked)  # type: ignore[operator]


# ---- the nearest feasible configurations ----------------------------------------------------------------------------


def near(space: Any, moves: Config, **more: Any) -> list[tuple[Config, str]]:
    found = nearest_feasible(Judge(space), complete(space, moves), **more)
    return [(item.moves, item.judgement.basis.value) for item in found]


def test_the_nearest_change_the_fewest_knobs_by_the_smallest_steps() -> None:
    changed = near(joint_map(), {"M": 128, "N": 64})
    assert {next(iter(moves)) for moves, _ in changed} == {"M", "N", "STAGES"}
    assert all(len(moves) == 1 for moves, _ in changed)
    assert changed[0] == ({"N": 32}, "compiled")  # M=128 alone was compiled: among equals it comes first


def test_two_constraints_without_a_common_knob_need_two_changes() -> None:
    rules: list[Relation] = [BUDGET, Nogood((("FLAG", True), ("MODE", ".cg")))]
    found = near(joint_map(rules), {"M": 128, "N": 64, "FLAG": True, "MODE": ".cg"})
    assert [len(moves) for moves, _ in found] == [2, 2, 2]
    assert all({"FLAG", "MODE"} & moves.keys() and {"M", "N", "STAGES"} & moves.keys() for moves, _ in found)


def test_a_value_never_tried_is_changed_to_the_nearest_one() -> None:
    assert near(joint_map(), {"M": 48}, most=2) == [({"M": 32}, "compiled"), ({"M": 64}, "compiled")]


def test_predicted_neighbours_that_do_not_compile_are_left_out() -> None:
    hidden = Compiler(Compare(KnobTerm("STAGES"), Op.AT_LEAST, Number(2)), BUDGET)
    found = near(joint_map(), {"M": 128, "N": 64}, ask=hidden)
    assert {"STAGES": 1} not in [moves for moves, _ in found]
    assert {basis for _, basis in found} == {"compiled"}


def test_compiled_neighbours_are_found_at_any_distance() -> None:
    space = joint_map(relations=(), constraints=[constraint(Member(n, (v,))) for n, v in BASELINE.items()])
    found = near(space, {"M": 64, "N": 64, "STAGES": 1, "FLAG": True, "MODE": ".cg"})
    assert found[0] == ({"M": 32, "N": 32, "STAGES": 2, "FLAG": False}, "compiled")


def test_a_map_of_single_moves_offers_what_it_has() -> None:
    space = single_map(relations=[Compare(KnobTerm("M"), Op.AT_MOST, Number(64))])
    assert near(space, {"M": 128}) == [({"M": 64}, "compiled"), ({"M": 32}, "compiled"), ({"M": 16}, "compiled")]


def test_where_no_constraint_says_why_a_blamed_knob_is_changed() -> None:
    space = joint_map(relations=(), tried=[tried({"M": 64, "N": 64, "FLAG": True}, "CRASHED")])
    found = near(space, {"M": 64, "N": 64, "FLAG": True}, blamed=("N", "FLAG"))
    assert {name for moves, _ in found for name in moves} <= {"N", "FLAG"}


def test_neighbours_that_the_user_forbids_are_not_offered() -> None:
    ban = constraint(Compare(KnobTerm("M"), Op.AT_MOST, Number(32)), Standing.GIVEN)
    space = joint_map(constraints=[ban, constraint(BUDGET)])
    assert all(moves.get("M", 128) <= 32 for moves, _ in near(space, {"M": 128, "N": 16}))  # type: ignore[operator]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(product(DOMAINS)), st.sets(st.integers(0, 3)))
def test_the_nearest_are_as_near_as_any_of_the_product(start: Config, chosen: set[int]) -> None:
    rules: list[Relation] = [
        BUDGET,
        Nogood((("FLAG", False), ("MODE", ".cg"))),
        Compare(Product((KnobTerm("M"), KnobTerm("STAGES"))), Op.AT_LEAST, Number(64)),
        Nogood((("STAGES", 1), ("FLAG", True))),
    ]
    judged = Judge(joint_map([rules[i] for i in sorted(chosen)]))
    if judged(start).verdict is Feasibility.FEASIBLE:
        return
    distances = sorted(
        sum(repr(config[n]) != repr(start[n]) for n in config)
        for config in product(DOMAINS)
        if judged(config).verdict is Feasibility.FEASIBLE
    )
    found = nearest_feasible(judged, start)
    assert len(found[0].moves) == distances[0]
    assert all(judged(item.config).verdict is Feasibility.FEASIBLE for item in found)
    assert all({**start, **item.moves} == item.config for item in found)


def test_a_product_of_millions_is_not_walked() -> None:
    domains: dict[str, tuple[Value, ...]] = {f"K{i}": (1, 2, 4, 8, 16, 32) for i in range(12)}
    base: Config = dict.fromkeys(domains, 1)
    rules = [
        Compare(Product((KnobTerm(f"K{i}"), KnobTerm(f"K{i + 1}"))), Op.AT_MOST, Number(32)) for i in range(0, 12, 2)
    ]
    space = joint_map(rules, domains=domains, baseline=base)
    started = time.monotonic()
    found = near(space, {"K0": 32, "K1": 32, "K2": 32, "K3": 32, "K4": 32, "K5": 32})
    assert [len(moves) for moves, _ in found] == [3, 3, 3]
    assert time.monotonic() - started < 10


# ---- what matters ---------------------------------------------------------------------------------------------------


def matters(space: Any, **moves: Any) -> dict[str, tuple[bool | None, str]]:
    found = knob_relevance(Judge(space), complete(space, moves))
    assert [item.knob for item in found] == list(space.baseline)
    return {item.knob: (item.matters, item.why) for item in found}


def test_a_condition_decides_whether_a_knob_matters_here() -> None:
    condition = Compare(KnobTerm("M"), Op.AT_LEAST, Number(64))
    space = joint_map(inertness=[Inertness("FLAG", "M >= 64", "FLAG matters only if M >= 64", 3, 4, condition)])
    assert matters(space, M=64, N=16)["FLAG"] == (True, "FLAG matters only if M >= 64, which holds here")
    assert matters(space, M=16, N=16)["FLAG"] == (False, "FLAG matters only if M >= 64, which does not hold here")


@pytest.mark.parametrize(("condition", "expected"), [("", False), ("always", True), ("sometimes", None)])
def test_an_unconditional_rule_is_applied_here(condition: str, expected: bool | None) -> None:
    space = joint_map(inertness=[Inertness("FLAG", condition, "words", 1, 2)])
    assert matters(space, M=64, N=16)["FLAG"][0] is expected


def test_values_of_one_class_are_one_program_where_its_condition_holds() -> None:
    where = Member("FLAG", (True,))
    space = joint_map(
        relations=(),
        value_classes=[ValueClasses("MODE", ((None, ".ca", ".cg"),), "FLAG = True", where)],
        inertness=[Inertness("MODE", "sometimes", "MODE matters in 1 of 2 comparisons; nothing tells when", 1, 1)],
    )
    assert matters(space, M=64, FLAG=True)["MODE"] == (
        False,
        "MODE = None, .ca, .cg are one program where FLAG = True",
    )
    assert matters(space, M=64, N=64)["MODE"][0] is None


def test_programs_that_were_compiled_here_decide_before_any_rule() -> None:
    space = joint_map(
        tried=[
            tried({"M": 64, "N": 64}, digest="one"),
            tried({"M": 64, "N": 64, "FLAG": True}, digest="two"),
            tried({"M": 64, "N": 64, "MODE": ".ca"}, digest="one"),
            tried({"M": 64, "N": 64, "MODE": ".cg"}, digest="one"),
        ],
        inertness=[Inertness("FLAG", "", "words", 0, 5), Inertness("MODE", "always", "words", 5, 0)],
    )
    found = matters(space, M=64, N=64)
    assert found["FLAG"] == (True, "FLAG=True was compiled here and is another program")
    assert found["MODE"] == (False, "every other value that passes was compiled here: one program")
    assert (
        matters(replace(space, stable=False), M=64, N=64)["MODE"][0] is True
    )  # digests of unstable code prove nothing


def test_a_knob_whose_other_values_all_fail_here_is_pinned() -> None:
    rules: list[Relation] = [Nogood((("FLAG", True), ("M", 64)))]
    assert matters(joint_map(rules), M=64)["FLAG"] == (
        False,
        "pinned here: every other value fails: not (FLAG = True and M = 64)",
    )


def test_a_map_of_single_moves_speaks_of_its_baseline_only() -> None:
    space = single_map(relations=(), classes={"FLAG": KnobClass.INERT})
    assert matters(space)["FLAG"] == (False, "by hand")
    assert matters(space)["M"] == (True, "by hand")
    assert matters(space, FLAG=True)["FLAG"] == (False, "by hand")
    assert matters(space, M=64)["FLAG"] == (None, "inert at the baseline; it was not turned here")


def test_relevance_is_unknown_with_an_untried_value() -> None:
    assert matters(joint_map(), M=4096)["FLAG"] == (None, "nothing was tried with M=4096")


# ---- the command ----------------------------------------------------------------------------------------------------


def said(folder: Path, space: Any, *arguments: str) -> tuple[int, str]:
    """Exit code and text of `gluonmap explain … --no-compile`."""
    path = folder / "map.json"
    codec.write(path, codec.dumps(space))
    shown = CliRunner().invoke(cli, ["explain", str(path), *arguments, "--no-compile"])
    return shown.exit_code, shown.output.replace(str(path), "MAP")


def test_an_infeasible_configuration_has_constraint_and_commands(tmp_path: Path) -> None:
    code, text = said(tmp_path, joint_map(), "M=128", "N=64")
    assert code == 1
    assert text.startswith("INFEASIBLE: double on gfx950 (cdna4) with M=128, N=64\nPredicted by the constraints")
    assert " - M * N * STAGES <= 8192\n     learned\n     over budget\n" in text
    assert "Smallest part that fails by itself\n   M=128, N=64\n" in text
    assert " - N=32   (compiled: passes)\n     gluonmap repeat MAP M=128\n" in text
    # A map holds all that its kernel is compiled with; a probe command would need what the user typed for the map.
    commands = [line.strip() for line in text.splitlines() if line.strip().startswith("gluonmap ")]
    assert commands and all(command.startswith("gluonmap repeat MAP") for command in commands)


def test_a_prediction_has_an_error_bound_only_if_it_is_informative(tmp_path: Path) -> None:
    for error, words in ((0.308, " at most 30.8% are mistaken"), (0.95, "")):
        space = joint_map()
        assert space.joint
        strata = (StratumCertificate("predicted to pass", 10, 10, 300, False, error),)
        proved = replace(space.joint, certificate=Certificate(0.95, 1, strata, ()))
        _, text = said(tmp_path, replace(space, joint=proved), "M=64", "N=64")
        assert ("are mistaken" in text) == bool(words)
        assert words in " ".join(text.split())


AT_64 = constraint(Written("M == 32"), Standing.READ, reason="Invalid basis 64")
BY_LITERAL = replace(
    AT_64,
    words="M = 32",
    outcome="CRASHED",
    line="k.py:9",
    failed=2,
    passed=5,
    failing_example={**BASELINE, "M": 128},
    passing_example=BASELINE,
)
ASKED = [
    tried({}, digest="a"),
    tried({"M": 64}, "CRASHED", reason="Invalid basis 64", line="k.py:9"),
    tried({"M": 128}, "CRASHED", reason="not surjective", line="k.py:11"),
    tried({"M": 16, "N": 128}, "CRASHED", reason="of the other one", line="k.py:9"),
    tried({"M": 16}, "CRASHED", reason="Invalid basis 16", line="k.py:9"),
]


def by_literal() -> SpaceMap:
    other = constraint(Compare(KnobTerm("N"), Op.AT_MOST, Number(64)))
    space = joint_map(relations=(), constraints=[BY_LITERAL, other], tried=ASKED)
    return replace(space, literals=("basis 16 needs M > 16 (line 4)", "the bases span 32, so M = 32 (lines 2, 5)"))


@pytest.mark.parametrize(("value", "said_at"), [(64, "Invalid basis 64 at k.py:9"), (128, "not surjective at k.py:11")])
def test_message_and_example_of_a_constraint_are_of_the_asked_value(tmp_path: Path, value: int, said_at: str) -> None:
    _, text = said(tmp_path, by_literal(), f"M={value}", "FLAG=true")
    assert (
        " - M = 32\n     read from the source: the bases span 32, so M = 32 (lines 2, 5)\n     2 failed, 5 passed\n"
        f"     CRASHED {said_at}\n     seen: M={value} failed, and passed with M=32\n"
    ) in text


def test_an_example_breaks_no_other_constraint_if_possible(tmp_path: Path) -> None:
    _, text = said(tmp_path, by_literal(), "M=16", "N=128", "FLAG=true")
    assert "     CRASHED Invalid basis 16 at k.py:9\n     seen: M=16 failed, and passed with M=32\n" in text


def test_a_feasible_configuration_is_shown_with_its_relevant_knobs(tmp_path: Path) -> None:
    code, text = said(tmp_path, joint_map(inertness=[Inertness("FLAG", "", "words", 0, 5)]), "M=64", "N=64")
    assert code == 0
    assert "Predicted: it meets the constraint; it was not compiled itself." in text
    assert " FLAG=False  does not   it changed nothing in 5 comparisons\n" in text


def test_an_unknown_configuration_has_its_own_exit_code(tmp_path: Path) -> None:
    assert said(tmp_path, joint_map(), "M=48")[0] == 3
    code, text = said(tmp_path, single_map(relations=[Compare(KnobTerm("M"), Op.AT_MOST, Number(64))]), "M=128", "N=64")
    assert code == 3
    assert "The map knows one knob at a time only" in text
    assert "Smallest part that fails by itself\n   M=128\n" in text


def test_text_of_a_kernel_acts_on_no_terminal(tmp_path: Path) -> None:
    evil = constraint(Compare(KnobTerm("M"), Op.AT_MOST, Number(64)), reason="\x1b[2Jgone\u202e [bold]x[/bold]")
    code, text = said(tmp_path, joint_map(constraints=[evil], relations=()), "M=128", "N=64")
    assert code == 1
    assert "\\x1b[2Jgone\\u202e [bold]x[/bold]" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["STAGE=2"], "Did you mean STAGES?"),
        (["M=16", "M=32"], "M is given twice"),
        (["M=1e999"], "the value of M is not finite"),
        (["M=99999999999999999999"], "does not fit into 64 bits"),
        (["M"], "takes NAME=VALUE"),
    ],
)
def test_an_impossible_question_is_refused_in_words(tmp_path: Path, arguments: list[str], message: str) -> None:
    code, text = said(tmp_path, joint_map(), *arguments)
    assert (code, message in text) == (2, True)


def test_json_holds_the_commands(tmp_path: Path) -> None:
    code, text = said(tmp_path, joint_map(), "M=128", "N=64", "--json")
    document = json.loads(text)
    assert (code, document["judgement"]["verdict"], document["part"]["moves"]) == (1, "infeasible", {"M": 128, "N": 64})
    assert document["nearest"][0]["repeat"] == "gluonmap repeat MAP M=128"


def written(project: Project, relation: Relation, **more: Any) -> str:
    """A map of the pair kernel, claiming the relation, beside the kernel."""
    project.write("kernels/pair.py", PAIR)
    triton = environment.triton_version(environment.triton_folder())
    codec.write(project.root / "pair.json", codec.dumps(pair_map(relation, triton, **more)))
    return "pair.json"


def test_an_unknown_configuration_is_compiled_down_to_its_failing_part(project: Project) -> None:
    name = written(project, Compare(KnobTerm("A"), Op.AT_MOST, Number(4)), joint=False)
    run = project.run("explain", name, "A=1", "B=64", "C=2")
    assert (run.code, "FEASIBLE: pair" in run.stdout, "Compiled now: passes." in run.stdout) == (0, True, True)
    run = project.run("explain", name, "A=16", "B=64", "C=2", "--json")
    document = json.loads(run.stdout)
    assert (run.code, document["fresh"], document["judgement"]["outcome"]) == (1, True, "REJECTED")
    assert document["judgement"]["line"].endswith("kernels/pair.py:8")
    assert document["part"]["moves"] == {"A": 16}


def test_predicted_neighbours_are_compiled_before_they_are_offered(project: Project) -> None:
    name = written(project, Compare(Product((KnobTerm("A"), KnobTerm("B"))), Op.AT_MOST, Number(256)))
    document = json.loads(project.run("explain", name, "A=16", "B=64", "C=2", "--json").stdout)
    assert document["judgement"]["outcome"] == "REJECTED"
    assert all(near["config"]["A"] * near["config"]["B"] <= 64 for near in document["nearest"])
    assert {near["judgement"]["basis"] for near in document["nearest"]} == {"compiled"}


def test_a_constraint_that_a_compile_refutes_is_said_to_be_wrong(project: Project) -> None:
    name = written(project, Compare(Product((KnobTerm("A"), KnobTerm("B"))), Op.UNEQUAL, Number(16)))
    run = project.run("explain", name, "A=1", "B=16", "C=2")
    assert run.code == 0
    assert "This contradicts the map's constraints" in run.stdout


def test_another_triton_is_refused_as_repeat_refuses_it(project: Project) -> None:
    project.write("kernels/pair.py", PAIR)
    codec.write(project.root / "pair.json", codec.dumps(pair_map(PAIR_RULE, "3.1.0")))
    run = project.run("explain", "pair.json", "A=1", "B=64", "C=8")
    assert run.code == 2
    assert "the map was made with Triton 3.1.0, and this is" in run.stderr
    assert project.run("explain", "pair.json", "A=1", "B=64", "C=8", "--any-triton").code == 0


def test_a_kernel_file_that_is_gone_or_broken_is_named(project: Project) -> None:
    name = written(project, PAIR_RULE)
    project.write("kernels/pair.py", "import nothing_of_that_name\n")
    run = project.run("explain", name, "C=8")
    assert (run.code, "kernels/pair.py cannot be imported any more: ModuleNotFoundError" in run.stderr) == (2, True)
    (project.root / "kernels/pair.py").unlink()
    run = project.run("explain", name, "C=8")
    assert (run.code, "kernel file kernels/pair.py is not here" in run.stderr) == (2, True)
    assert project.run("explain", name, "A=1", "B=4").code == 0  # the map alone has the answer


ENDLESS = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.runtime.jit import constexpr_function


@constexpr_function
def wait(seconds):
    import time

    time.sleep(seconds)
    return 1


@gluon.jit
def pair(x, A: gl.constexpr, B: gl.constexpr, C: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    i = gl.arange(0, 256, layout=layout)
    gl.store(x + i, gl.load(x + i) + wait(1000 * (C - 1)))
"""


@pytest.mark.long
def test_a_configuration_that_hangs_is_infeasible_after_the_deadline(project: Project) -> None:
    name = written(project, PAIR_RULE)
    project.write("kernels/pair.py", ENDLESS)
    run = project.run("explain", name, "A=1", "B=64", "C=8", "--deadline", "3")
    assert run.code == 1
    assert "Compiled now: HUNG." in run.stdout
    assert "no end within 3 s" in run.stdout


@pytest.mark.long
def test_ctrl_c_ends_the_children_too(project: Project) -> None:
    name = written(project, PAIR_RULE)
    project.write("kernels/pair.py", ENDLESS)
    process = project.start("explain", name, "A=1", "B=64", "C=8")
    time.sleep(5)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=30)
    assert (process.returncode, text) == (130, "gluonmap: interrupted\n")
