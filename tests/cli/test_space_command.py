"""`gluonmap space`: counts, lists, the graph and the hand-off of a stored map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from maps import BASELINE, BUDGET, constraint, joint_map, product, single_map
from msgspec.structs import replace

from gluonmap.cli.command_group import cli
from gluonmap.constraints.semantics import holds
from gluonmap.model import codec
from gluonmap.model.joint_map import Inertness, Sizes, Verified
from gluonmap.model.relations import Member
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Resources

SOUND, SPILLING, TOO_BIG = (Resources(256, 1024, spills=s, occupancy=o) for s, o in ((0, 2), (7, 2), (0, 0)))
FEASIBLE = [c for c in product(joint_map().joint.domains) if holds(BUDGET, c)]  # type: ignore[union-attr]


def stored(folder: Path, space: SpaceMap) -> str:
    codec.write(folder / "double.gfx950.json", codec.dumps(space))
    return str(folder / "double.gfx950.json")


def mapped(**sizes: Any) -> SpaceMap:
    space = joint_map(
        constraints=[constraint(BUDGET), constraint(Member("MODE", (None, ".ca", ".cg")))],
        inertness=[Inertness("FLAG", "", "FLAG changed nothing", 0, 3)],
    )
    assert space.joint
    programs = (
        Verified(BASELINE, "a", SOUND, (4,)),
        Verified({**BASELINE, "M": 64, "MODE": ".cg"}, "b", SOUND, (2,)),
        Verified({**BASELINE, "M": 128}, "c", TOO_BIG, (1,)),
    )
    counted = Sizes(384, **({"feasible": len(FEASIBLE), "programs": len(FEASIBLE) // 2} | sizes))
    return replace(space, joint=replace(space.joint, programs=programs, sizes=counted))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["space", *arguments])


def test_counts_are_the_default_and_say_what_they_rest_on(tmp_path: Path) -> None:
    assert len(FEASIBLE) == 288
    assert run(stored(tmp_path, mapped())).output == (
        "double on gfx950\n"
        "signature            384  configurations\n"
        "feasible             288  meet 2 constraints, 75 %\n"
        "programs             144  at most, by the rules that say which values are equal\n"
        "compiled               3  distinct programs that passed; "
        "the other 141 were not compiled, or are the same code as one of these\n"
        "hand-off               2  configurations; 1 dropped\n"
        '  dropped {"M":128}: not one work-group fits: too many registers or too much shared memory\n'
    )
    assert "all compiled and passed" in run(stored(tmp_path, mapped(complete=True)), "--count").output


def test_a_count_by_rules_of_which_each_was_compiled_is_no_bound(tmp_path: Path) -> None:
    output = run(stored(tmp_path, mapped(programs=3))).output
    assert "programs               3  distinct, by the rules that say which values are equal\n" in output
    assert "compiled               3  distinct programs that passed\n" in output


def test_what_was_not_counted_is_not_a_number(tmp_path: Path) -> None:
    output = run(stored(tmp_path, mapped(feasible=None, programs=None))).output
    assert "feasible     not counted  the constraints are too entangled\n" in output
    assert "programs     not counted  no rule can tell them apart\n" in output


def test_counts_as_json(tmp_path: Path) -> None:
    found = json.loads(run(stored(tmp_path, mapped()), "--json").output)
    assert found["dropped"] == [{"config": {**BASELINE, "M": 128}, "reason": found["dropped"][0]["reason"]}]
    del found["dropped"]
    assert found == {
        "kernel": "double", "target": "gfx950", "signature": 384, "feasible": 288, "programs": 144, "at_most": True,
        "complete": False, "compiled": 3, "refused": 0, "handed": 2,
    }  # fmt: skip


def test_feasible_configurations_are_listed_as_json_lines(tmp_path: Path) -> None:
    path = stored(tmp_path, mapped())
    listed = run(path, "--enumerate").output.splitlines()
    assert [json.loads(line) for line in listed] == FEASIBLE
    assert run(path, "--enumerate", "--limit", "3").output.splitlines() == listed[:3]
    assert json.loads(run(path, "--enumerate", "--json").output) == FEASIBLE


def test_a_sample_is_feasible_and_repeats_with_its_seed(tmp_path: Path) -> None:
    path = stored(tmp_path, mapped())
    first = run(path, "--sample", "20", "--seed", "3").output
    assert all(json.loads(line) in FEASIBLE for line in first.splitlines())
    assert len(first.splitlines()) == 20
    assert first == run(path, "--sample", "20", "--seed", "3").output
    assert first != run(path, "--sample", "20", "--seed", "4").output


def test_the_hand_off_is_the_keywords_of_each_launch(tmp_path: Path) -> None:
    path = stored(tmp_path, mapped())
    lines = [json.loads(line) for line in run(path, "--configs").output.splitlines()]
    assert lines == [BASELINE, {**BASELINE, "M": 64, "MODE": ".cg"}]
    assert json.loads(run(path, "--configs", "--limit", "1", "--json").output) == [BASELINE]


def test_a_map_of_single_moves_has_a_hand_off_too(tmp_path: Path) -> None:
    lines = run(stored(tmp_path, single_map()), "--configs").output.splitlines()
    assert json.loads(lines[0]) == BASELINE
    assert len(lines) == 1 + 3 + 3 + 3 + 1 + 2


def test_the_graph_goes_to_a_file(tmp_path: Path) -> None:
    path = stored(tmp_path, mapped())
    result = run(path, "--graph", str(tmp_path / "graph.dot"))
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "graph.dot").read_text().startswith('graph "double on gfx950" {')


@pytest.mark.parametrize("question", [[], ["--sample", "1"], ["--enumerate"], ["--graph", "graph.dot"]])
def test_a_map_of_single_moves_is_told_how_to_become_a_joint_one(tmp_path: Path, question: list[str]) -> None:
    result = run(stored(tmp_path, single_map()), *question)
    assert result.exit_code == 2
    assert "gluonmap probe kernels/double.py --kernel double --target gfx950 --depth joint" in result.output


def test_two_questions_at_once_and_a_limit_without_a_list_are_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, mapped())
    assert "give one" in run(path, "--count", "--enumerate").output
    assert "--limit goes with" in run(path, "--limit", "3").output
    assert run(path, "--limit", "3").exit_code == 2
