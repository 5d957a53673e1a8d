"""Many configurations against one map: what it says, where a compile refutes it, and what is no configuration."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from maps import BASELINE, DOMAINS, PAIR, PAIR_RULE, constraint, joint_map, pair_map, single_map
from project import Project

from gluonmap.cli.command_group import cli
from gluonmap.model import codec
from gluonmap.model.candidate import Stage
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Standing
from gluonmap.model.outcomes import Outcome
from gluonmap.model.relations import Compare, KnobTerm, Number, Op, Product, Relation
from gluonmap.model.verdict import Fault, Verdict
from gluonmap.query.config_files import MOST_LINE_BYTES, read_configs
from gluonmap.query.feasibility import agrees, judgement_of
from gluonmap.runner import environment


def predicted(folder: Path, space: Any, lines: str | bytes, *arguments: str) -> Result:
    path = folder / "map.json"
    codec.write(path, codec.dumps(space))
    return CliRunner().invoke(cli, ["predict", str(path), "--configs", "-", *arguments], input=lines)


# ---- reading --------------------------------------------------------------------------------------------------------


def read(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    return list(read_configs(io.BytesIO(data), "c.jsonl"))


def test_lines_may_be_plain_or_rows_of_a_table_and_blank_ones_count() -> None:
    data = b'\xef\xbb\xbf{"M": 16}\n\n  \n{"config": {"M": 32, "MODE": null}, "outcome": "PASS"}\n{}'
    assert read(data) == [(1, {"M": 16}), (4, {"M": 32, "MODE": None}), (5, {})]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"M": 1', "Expecting ',' delimiter at character"),
        (b"[1, 2]", "it is no object"),
        (b'"M"', "it is no object"),
        (b'{"M": NaN}', "NaN is no value"),
        (b'{"M": -Infinity}', "-Infinity is no value"),
        (b'{"M": 1, "M": 1}', "'M' is there twice"),
        (b'{"config": {"M": 1, "M": 2}}', "'M' is there twice"),
        (b'{"M": [1]}', "the value of 'M' is a list"),
        (b'{"config": {"M": {}}}', "the value of 'M' is an object"),
        (b"\xff\xfe", "can't decode byte 0xff"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"M": ' + b"9" * 5000 + b"}", "limit"),
        (b'{"M": "' + b"x" * MOST_LINE_BYTES + b'"}', "it is longer than 1,048,576 bytes"),
    ],
)
def test_a_line_that_is_no_configuration_is_named(line: bytes, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(b"{}\n" + line + b"\n{}\n")
    assert str(caught.value).startswith("line 2 of c.jsonl is no configuration: ")
    assert why in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_configurations_or_one_usage_error(data: bytes) -> None:
    try:
        for _, config in read(data):
            assert all(not isinstance(value, (dict, list)) for value in config.values())
    except UsageError as error:
        assert "of c.jsonl is no configuration" in str(error)


class Endless(io.RawIOBase):
    """A stream of one line again and again."""

    def readline(self, size: int | None = -1) -> bytes:
        return b'{"M": 16}\n'


def test_a_file_is_read_line_by_line() -> None:
    lines = read_configs(Endless(), "endless")  # type: ignore[arg-type]
    assert [next(lines)[0] for _ in range(1000)][-1] == 1000


# ---- predicting -----------------------------------------------------------------------------------------------------


def test_each_line_is_judged_and_the_counts_are_summed_up(tmp_path: Path) -> None:
    lines = '{"M": 64}\n{"M": 64, "N": 64}\n\n{"config": {"M": 128, "N": 64}}\n{"M": 48}\n'
    shown = predicted(tmp_path, joint_map(), lines)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[:4] == [
        "line 1      feasible    compiled",
        "line 2      feasible    predicted",
        "line 4      infeasible  M * N * STAGES <= 8192 (learned)",
        "line 5      unknown     never tried value M=48",
    ]
    table = " ".join(shown.stdout.split())
    assert "infeasible predicted 1 unknown never tried value 1 all 4" in table
    assert "M * N * STAGES <= 8192 learned 1" in table


def test_what_a_line_leaves_out_is_said_once(tmp_path: Path) -> None:
    shown = predicted(tmp_path, joint_map(), '{"M": 64}\n{"M": 16}\n')
    note = (
        "gluonmap: knobs that a line does not name are the baseline's (line 1: N=32, STAGES=2, FLAG=False, MODE=None)"
    )
    assert shown.stderr.splitlines() == [note]
    whole = json.dumps(BASELINE)
    assert predicted(tmp_path, joint_map(), whole).stderr == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"STAGE": 1}', "line 2 of stdin: the map of 'double' has no knob 'STAGE'"),
        ('{"M": 1e999}', "line 2 of stdin: the value of M is not finite."),
        ('{"M": 9223372036854775808}', "line 2 of stdin: the value of M does not fit into 64 bits."),
        ('{"MODE": "\\ud800"}', "line 2 of stdin: the value of MODE is no Unicode text."),
        ('{"config": 1}', "has no knob 'config'"),
        ("{", "line 2 of stdin is no configuration"),
    ],
)
def test_a_broken_line_is_one_usage_error(tmp_path: Path, line: str, message: str) -> None:
    shown = predicted(tmp_path, joint_map(), f"{{}}\n{line}\n")
    assert shown.exit_code == 2
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    codec.write(tmp_path / "map.json", codec.dumps(joint_map()))
    shown = CliRunner().invoke(cli, ["predict", str(tmp_path / "map.json"), "--configs", str(tmp_path / "none")])
    assert (shown.exit_code, "No such file" in shown.stderr) == (2, True)


def test_json_is_one_document_a_line(tmp_path: Path) -> None:
    ban = constraint(Compare(KnobTerm("M"), Op.AT_MOST, Number(64)), Standing.GIVEN)
    space = joint_map(relations=(), constraints=[ban])
    shown = predicted(tmp_path, space, '{"M": 128, "N": 64}\n{"M": 16, "N": 16}\n', "--json")
    first, second, last = [json.loads(line) for line in shown.stdout.splitlines()]
    assert (first["line"], first["verdict"], first["basis"]) == (1, "infeasible", "given")
    assert first["broken"] == [{"words": "M <= 64", "standing": "given"}]
    assert second["config"] == {**BASELINE, "M": 16, "N": 16}
    assert sum(item["count"] for item in last["summary"]["verdicts"]) == 2


@settings(max_examples=30, deadline=None)
@given(st.lists(st.fixed_dictionaries({n: st.sampled_from(v) for n, v in DOMAINS.items()}), max_size=12))
def test_every_line_gets_the_verdict_of_the_judge(configs: list[dict[str, Any]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(json.dumps(config) + "\n" for config in configs)
        shown = predicted(Path(folder), joint_map(), lines, "--json")
    rows = [json.loads(line) for line in shown.stdout.splitlines()][:-1]
    assert [each["verdict"] for each in rows] == [judgement_of(joint_map(), config).verdict for config in configs]


# ---- against compiles -----------------------------------------------------------------------------------------------


def test_a_fault_and_a_ban_of_the_user_refute_nothing() -> None:
    ban = constraint(Compare(KnobTerm("M"), Op.AT_MOST, Number(64)), Standing.GIVEN)
    space = joint_map(constraints=[ban], relations=())
    from gluonmap.query.feasibility import Judge

    judged = Judge(space)
    passed, lost = Verdict(Outcome.PASS, Stage.COMPILE, 0), Fault("lost")
    banned, fine = {**BASELINE, "M": 128, "N": 64}, {**BASELINE, "M": 64, "N": 64}
    assert agrees(judged(banned), judged.judgement_of_answer(banned, passed)) is None
    assert agrees(judged(fine), judged.judgement_of_answer(fine, lost)) is None
    assert agrees(judged(fine), judged.judgement_of_answer(fine, passed)) is True
    failed = Verdict(Outcome.CRASHED, Stage.COMPILE, -6)
    assert agrees(judged(fine), judged.judgement_of_answer(fine, failed)) is False


LINES = """\
{"A": 1, "B": 64, "C": 2}
{"A": 16, "B": 16, "C": 2}
{"A": 1, "B": 4, "C": 2}
{"A": 16, "B": 64}
{"A": 1, "B": 64, "C": 2}
{"C": 8}
"""


def written(project: Project, relation: Relation, **more: Any) -> None:
    project.write("kernels/pair.py", PAIR)
    triton = environment.triton_version(environment.triton_folder())
    codec.write(project.root / "pair.json", codec.dumps(pair_map(relation, triton, **more)))
    project.write("c.jsonl", LINES)


def test_a_right_map_is_verified(project: Project) -> None:
    written(project, PAIR_RULE)
    run = project.run("predict", "pair.json", "--configs", "c.jsonl", "--verify")
    assert run.code == 0, run.stderr
    table = " ".join(run.stdout.split())
    assert "as the map says 5" in table
    assert "unknown to the map (never tried value), now feasible 1" in table


def test_each_refuted_prediction_is_listed_with_the_command_that_repeats_it(project: Project) -> None:
    written(project, Compare(Product((KnobTerm("A"), KnobTerm("B"))), Op.AT_LEAST, Number(32)))
    run = project.run("predict", "pair.json", "--configs", "c.jsonl", "--verify", "-q")
    assert run.code == 1, run.stderr
    lines = run.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("line 2: "))
    assert lines[at].startswith("line 2: feasible by the map (predicted), and now REJECTED: ")
    assert lines[at].endswith("kernels/pair.py:8")
    assert lines[at + 1] == "    gluonmap repeat pair.json A=16 C=2"
    assert "line 3: infeasible by the map (A * B >= 32 (learned)), and now PASS" in lines


def test_a_broken_line_costs_no_compile(project: Project) -> None:
    written(project, PAIR_RULE)
    project.write("c.jsonl", LINES + "{")
    run = project.run("predict", "pair.json", "--configs", "c.jsonl", "--verify")
    assert (run.code, run.stdout) == (2, "")
    assert "compiled" not in run.stderr


def test_a_configuration_that_host_code_cannot_make_is_no_answer(project: Project) -> None:
    from msgspec.structs import replace

    written(project, PAIR_RULE)
    triton = environment.triton_version(environment.triton_folder())
    space = pair_map(PAIR_RULE, triton)
    space = replace(space, recipe=replace(space.recipe, grid="64 // (C - 2)"))
    codec.write(project.root / "pair.json", codec.dumps(space))
    project.write("c.jsonl", '{"A": 1, "B": 64, "C": 2}\n{"A": 1, "B": 4}\n')
    run = project.run("predict", "pair.json", "--configs", "c.jsonl", "--verify", "-q")
    assert run.code == 0, run.stderr
    table = " ".join(run.stdout.split())
    assert "as the map says 1 no answer 1" in table


def test_a_map_of_single_moves_predicts_its_single_moves(tmp_path: Path) -> None:
    shown = predicted(tmp_path, single_map(), '{"M": 64}\n{"M": 64, "N": 64}\n')
    assert "line 2      unknown     no joint map and more than one knob moved" in shown.stdout
