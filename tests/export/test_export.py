"""Exported files: what is in them, that they say what the map says, and that they need nothing of this tool."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from maps import joint_map, product, single_map
from msgspec.structs import replace
from tuned_maps import BASELINE as TUNED
from tuned_maps import DOMAINS as TUNED_DOMAINS
from tuned_maps import PROGRAMS, StubDriver, listed
from tuned_maps import joint_map as tuned_map
from tuned_maps import single_map as tuned_singles

from gluonmap import handoff
from gluonmap.constraints.semantics import holds
from gluonmap.export import aiter, heading, kernel_tuner, prune, python, triton_json, vllm
from gluonmap.export.expressions import expression_of
from gluonmap.handoff import early_config_prune
from gluonmap.model import codec
from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Constraint, Inertness, Sizes, Standing, Tried, Unstable, ValueClasses
from gluonmap.model.relations import (
    AllOf,
    AnyOf,
    Bound,
    Compare,
    KnobTerm,
    Max,
    Member,
    Min,
    Nogood,
    Number,
    Op,
    Product,
    Quotient,
    Relation,
    Remainder,
    RoundUp,
    Sum,
    View,
    Written,
)
from gluonmap.model.space_map import Recipe, SpaceMap
from gluonmap.spec import probe_file

triton = pytest.importorskip("triton")


def module(text: str) -> dict[str, Any]:
    """Return the names that a file defines."""
    found: dict[str, Any] = {}
    exec(compile(text, "exported", "exec"), found)
    return found


@pytest.fixture
def gfx950() -> Iterator[None]:
    from triton.runtime import driver

    before = driver._active
    driver.set_active(StubDriver("hip", "gfx950", 64))
    yield
    driver._active = before


# ---- relations as Python -------------------------------------------------------------------------------------------

TYPED: dict[str, tuple[Value, ...]] = {
    "M": (16, 24, 48, 64),
    "N": (1, 3, 12, 128),
    "S": (1, 2, 3),
    "T": ("fp16", "fp32", "py:gl.float8e4nv"),
    "F": (False, True, 0, 1, 2),
    "C": (None, ".ca", ".cg"),
}

RELATIONS: tuple[Relation, ...] = (
    Compare(Product((KnobTerm("M"), KnobTerm("N"), KnobTerm("T", View.BYTES))), Op.AT_MOST, Number(2048)),
    Compare(KnobTerm("M", View.POWER), Op.AT_LEAST, Sum((KnobTerm("N"), Number(4)))),
    Compare(KnobTerm("M", View.EVEN_PART), Op.EQUAL, Number(16)),
    Compare(
        Max((KnobTerm("M"), KnobTerm("N"))), Op.UNEQUAL, Min((Number(64), Product((KnobTerm("S"), KnobTerm("M")))))
    ),
    Compare(RoundUp(Sum((KnobTerm("N"), KnobTerm("S"))), 16), Op.AT_MOST, KnobTerm("M")),
    Compare(Remainder(Product((KnobTerm("N"), KnobTerm("S"))), Number(4)), Op.EQUAL, Number(0)),
    Compare(Quotient(KnobTerm("M"), Sum((KnobTerm("S"), Number(1)))), Op.AT_LEAST, Number(16.5)),
    Compare(Remainder(Sum((KnobTerm("M"), KnobTerm("N"))), Sum((KnobTerm("S"), Number(1)))), Op.EQUAL, Number(0)),
    Compare(Product(()), Op.AT_MOST, KnobTerm("S")),
    Member("F", (1, 2)),
    Member("F", (False,)),
    Member("F", (True, 0), inside=False),
    Member("C", (None,)),
    Member("C", (None, ".cg"), inside=False),
    Member("M", (16, 999)),
    Member("M", (7,)),
    Member("M", (16, 24, 48, 64)),
    Bound("N", Op.AT_MOST, 12),
    AnyOf((Member("C", (".ca",)), AllOf((Bound("M", Op.AT_LEAST, 48), Member("S", (1, 3)))))),
    AllOf((AnyOf((Bound("M", Op.AT_MOST, 24), Bound("N", Op.AT_LEAST, 12))), Nogood((("S", 3), ("C", None))))),
    Nogood((("F", True), ("M", 16))),
    Written("M * N <= 512 or S == 1"),
    Written("cdiv(M, N) >= 2 and next_power_of_2(N + S) != 4"),
    Written("M // (S - 1) >= 20"),  # without a value where S = 1: not met
    Written("S in (1, 3) if M > 16 else max(N, S) % 2 == 0"),
    Written("C * 2 == N"),
    Written("2 ** S <= M ** 2"),
    Written("M.bit_length() == 5"),
)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_an_expression_is_the_relation_on_every_configuration(relation: Relation) -> None:
    text = expression_of(relation, TYPED)
    allowed = {"__builtins__": {"max": max, "min": min, "abs": abs, "int": int, "repr": repr}}
    for config in product(TYPED):
        assert bool(eval(text, allowed, dict(config))) is holds(relation, config), (text, config)


def test_expressions_are_as_a_person_would_write_them() -> None:
    assert [expression_of(relation, TYPED) for relation in (RELATIONS[1], RELATIONS[4], RELATIONS[13])] == [
        "(1 << (M - 1).bit_length()) >= N + 4",
        "-(-(N + S) // 16) * 16 <= M",
        "C not in (None, '.cg')",
    ]


def test_kernel_tuner_gets_the_map_s_space_and_no_other() -> None:
    relations = (RELATIONS[0], RELATIONS[4], RELATIONS[18], RELATIONS[20])
    base = {name: values[0] for name, values in TYPED.items()}
    space = joint_map(relations, domains=TYPED, baseline=base)
    found = module(kernel_tuner.render(space))
    assert found["tune_params"] == {name: list(values) for name, values in TYPED.items()}
    kept = [c for c in product(TYPED) if all(eval(text, {}, dict(c)) for text in found["restrictions"])]
    assert kept == [c for c in product(TYPED) if all(holds(relation, c) for relation in relations)]


def test_kernel_tuner_gets_what_passed_alone_where_nothing_more_is_known() -> None:
    space = single_map(relations=(Bound("M", Op.AT_MOST, 64),))
    found = module(kernel_tuner.render(space))
    assert found["tune_params"]["M"] == [16, 32, 64]
    assert found["restrictions"] == []


# ---- the hand-off --------------------------------------------------------------------------------------------------


def test_a_python_module_has_the_configs_of_the_map() -> None:
    space = tuned_map(*PROGRAMS, recipe=Recipe(fixed={"kpack": 2}))
    text = python.render(space)
    assert module(text)["CONFIGS"] == handoff.configs(space)
    assert module(python.render(space, 2))["CONFIGS"] == handoff.configs(space, 2)
    assert text == python.render(codec.msgspec.json.decode(codec.dumps(space), type=SpaceMap))
    assert "gfx950" in text.splitlines()[0] and triton.__version__ in text.splitlines()[1]
    assert "never" not in text and "None was timed" in text


def test_a_python_module_makes_what_a_map_can_only_spell() -> None:
    from triton.experimental.gluon import language as gl

    space = tuned_map(PROGRAMS[0], recipe=Recipe(fixed={"num_ctas": 1}))
    program = replace(PROGRAMS[0], config={**TUNED, "GROUP": "py:gl.float16"})
    assert space.joint is not None
    spelled = replace(space, joint=replace(space.joint, programs=(program,)))
    assert module(python.render(spelled))["CONFIGS"][0].kwargs["GROUP"] is gl.float16
    for text in ("py:__import__('os')", "py:gl.os.system('id')", "py:WIDE", "py:(lambda: 1)()"):
        bad = replace(space, joint=replace(space.joint, programs=(replace(program, config={**TUNED, "GROUP": text}),)))
        with pytest.raises(UsageError, match=r"gluonmap\.autotune"):
            python.render(bad)


def test_text_of_a_map_stays_in_its_comment() -> None:
    learned = Constraint(Bound("BLOCK", Op.AT_MOST, 256), "a\nimport os\r\u2028x", ("BLOCK",), Standing.LEARNED, "b\nc")
    space = tuned_map(*PROGRAMS, file="x.py\nraise SystemExit", kernel="scale")
    assert space.joint is not None
    space = replace(space, joint=replace(space.joint, constraints=(learned,)))
    for text in (python.render(space), kernel_tuner.render(space), prune.render(space)):
        names = {type(node).__name__ for node in ast.parse(text).body}
        assert names <= {"Import", "ImportFrom", "Assign", "AnnAssign", "FunctionDef"}
        assert "raise SystemExit" not in text.replace("# ", "\n# ").splitlines()
    with pytest.raises(UsageError, match="no Python name"):
        python.render(replace(space, baseline={"x=1\nimport os": 1}))


def test_triton_json_makes_the_same_configs() -> None:
    space = tuned_map(*PROGRAMS)
    document = json.loads(triton_json.render(space))
    assert [triton.Config(**entry) for entry in document["configs"]] == handoff.configs(space)
    assert set(document["configs"][0]) == set(vars(handoff.configs(space)[0]))


# ---- configuration files -------------------------------------------------------------------------------------------


def test_an_aiter_file_is_the_baseline_and_says_that_nobody_tuned_it(tmp_path: Path) -> None:
    space = tuned_map(*PROGRAMS, recipe=Recipe(fixed={"kpack": 2, "EVEN": True}), file="ops/gemm_a16w16.py")
    path = tmp_path / "DEFAULT.json"
    path.write_text(aiter.render(space))
    assert probe_file.read_config(str(path), {}) == (TUNED, "any")
    assert json.loads(path.read_text())["_comment"].startswith("Not tuned: the baseline of scale on gfx950")
    assert aiter.file_name(space, {}) == "configs/gfx950/gluon/gemm/gemm_a16w16/DEFAULT.json"
    assert json.loads(aiter.render(replace(space, target="gfx942")))["any"] == {**TUNED, "kpack": 2}


def test_an_aiter_file_of_raced_buckets_is_in_the_order_of_aiters_search(tmp_path: Path) -> None:
    space = tuned_map(*PROGRAMS)
    raced = dict.fromkeys(("any", "M_LEQ_128", "M_GEQ_1024", "M_LEQ_16", "M_GEQ_4096"), TUNED)
    text = aiter.render(space, raced)
    assert list(json.loads(text)) == ["M_LEQ_16", "M_LEQ_128", "M_GEQ_4096", "M_GEQ_1024", "any"]
    with pytest.raises(UsageError, match="no bucket 'large'"):
        aiter.render(space, {"large": TUNED})
    with pytest.raises(UsageError, match="AMD's targets"):
        aiter.render(replace(space, target="sm_90"))
    with pytest.raises(UsageError, match=r"CRASHED.*--set NAME=VALUE"):
        aiter.render(replace(space, outcome="CRASHED"))


NAMES = {"E": 8, "N": 4096, "device_name": "AMD Instinct MI300X", "dtype": "fp8_w8a8", "block_shape": [128, 128]}


def test_a_vllm_file_bears_the_names_of_the_probe_file(tmp_path: Path) -> None:
    space = tuned_map(*PROGRAMS, shape={"M": 64})
    name = vllm.file_name(space, NAMES)
    assert name == "E=8,N=4096,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json"
    path = tmp_path / name
    path.write_text(vllm.render(space, NAMES))
    assert probe_file.read_config(str(path), {"M": 70}) == (TUNED, "64")
    assert list(json.loads(vllm.render(space, {**NAMES, "M": 16}))) == ["16"]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ({}, "needs E: .*\n  EXPORT = "),
        ({"E": 8, "device_name": "x"}, "needs N"),
        ({**NAMES, "n": 1}, "gives n; it knows"),
        ({**NAMES, "dtype": "../x"}, "which is none"),
        (NAMES, "needs M"),
    ],
)
def test_a_vllm_file_that_cannot_be_named_is_refused_with_what_to_add(names: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        vllm.render(tuned_map(*PROGRAMS), names)


# ---- pruning without this tool -------------------------------------------------------------------------------------

SPACES = {
    "rules": tuned_map(*PROGRAMS),
    "answers": tuned_map(
        *PROGRAMS,
        tried=(
            Tried((64, 1, 4, 4, 2, 0, 1), "CRASHED", "doubt", reason="Invalid basis", line="scale.py:7"),
            Tried((256, 2, 1, 4, 2, 0, 1), "PASS", "doubt"),
            Tried((256, 1, 4, 8, 2, 0, 1), "unknown", "doubt"),
            Tried((128, 1, 1, 4, 2, 2, 1), "HUNG", "doubt"),
        ),
    ),
    "merged": tuned_map(
        *PROGRAMS,
        inertness=(
            Inertness("GROUP", "SPLIT = 1", "GROUP matters only if SPLIT = 1", 2, 2, Member("SPLIT", (1,))),
            Inertness("num_stages", "", "num_stages never matters", 0, 9),
        ),
        classes=(ValueClasses("waves_per_eu", ((0, 2),), "BLOCK >= 128", Bound("BLOCK", Op.AT_LEAST, 128)),),
    ),
    "singles": tuned_singles(),
    "given": tuned_map(*PROGRAMS, relations=(Member("SPLIT", (1, 2)), Written("BLOCK * num_warps <= 1024"))),
}


def test_an_upper_bound_on_the_programs_is_called_at_most() -> None:
    space = tuned_map(*PROGRAMS)
    assert space.joint is not None
    for programs, complete, said in ((99, False, "at most 99 distinct"), (99, True, ", 99 distinct")):
        sizes = Sizes(1000, 100, programs, complete)
        assert said in heading.sizes(replace(space, joint=replace(space.joint, sizes=sizes)))


def _given_standing(space: SpaceMap) -> SpaceMap:
    assert space.joint is not None
    constraints = tuple(replace(c, standing=Standing.GIVEN) for c in space.joint.constraints[1:])
    return replace(space, joint=replace(space.joint, constraints=(space.joint.constraints[0], *constraints)))


SPACES["given"] = _given_standing(SPACES["given"])
_joint = SPACES["answers"].joint
assert _joint is not None
_twice = Unstable({**TUNED, "GROUP": 4}, ("PASS", "CRASHED"))
SPACES["answers"] = replace(SPACES["answers"], joint=replace(_joint, unstable=(_twice,)))


@pytest.mark.usefixtures("gfx950")
@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("unknown", ["drop", "keep"])
def test_an_exported_function_decides_as_the_map_does(name: str, unknown: Any) -> None:
    space = SPACES[name]
    exported = module(prune.render(space))
    exported["KEEP_UNKNOWN"] = unknown == "keep"
    ours, rng = early_config_prune(space, unknown=unknown), random.Random(0)
    beyond: dict[str, tuple[Value, ...]] = {**TUNED_DOMAINS, "BLOCK": (64, 128, 256, 512)}
    half = SimpleNamespace(dtype="torch.float16", data_ptr=lambda: 0)
    for number in range(300):
        few = number % 3 == 0  # near the baseline more is known
        moves = [
            {n: rng.choice(v) for n, v in beyond.items() if not few or rng.random() < 0.2}
            for _ in range(rng.choice((1, 3, 12)))
        ]
        given = [listed(**config) for config in moves]
        for config in given:
            if rng.random() < 0.1:
                del config.kwargs[rng.choice(("waves_per_eu", "GROUP"))]
            if rng.random() < 0.05:
                config.kwargs["kpack"] = rng.choice((1, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert exported["early_config_prune"](given, {"x": half}) == ours(given, {"x": half})


def test_an_exported_function_needs_neither_this_tool_nor_triton(tmp_path: Path) -> None:
    path = tmp_path / "prune_scale.py"
    path.write_text(prune.render(SPACES["rules"]))
    script = (
        "import sys; from types import SimpleNamespace as C; import prune_scale\n"
        "make = lambda b, s: C(kwargs={'BLOCK': b, 'SPLIT': s}, num_warps=4, num_stages=2, pre_hook=None)\n"
        "print([c.kwargs for c in prune_scale.early_config_prune([make(256, 4), make(256, 1)], {})])\n"
        "assert not {'triton', 'gluonmap', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[{'BLOCK': 256, 'SPLIT': 1}]", "")


@pytest.mark.usefixtures("gfx950")
def test_an_exported_function_leaves_launches_of_others_alone() -> None:
    from triton.runtime import driver

    space = replace(SPACES["rules"], recipe=Recipe(fixed={"EVEN": True}))
    exported, given = module(prune.render(space))["early_config_prune"], [listed(BLOCK=256, SPLIT=4)]
    double = SimpleNamespace(dtype="torch.float64", data_ptr=lambda: 0)
    for arguments, why in (
        ({"x": double}, "x is float64"),
        ({"n": 1.5}, "n is float"),
        ({"x": None}, "None"),
        ({"EVEN": False}, "EVEN is False"),
    ):
        with pytest.warns(UserWarning, match=why):
            assert exported(given, arguments) == given
    driver.set_active(StubDriver("hip", "gfx942", 64))
    with pytest.warns(UserWarning, match="the device is gfx942"):
        assert exported(given, {}) == given


def test_each_rule_names_its_evidence() -> None:
    space = SPACES["rules"]
    assert space.joint is not None
    rule = replace(space.joint.constraints[0], failed=14, passed=120, line="scale.py:84", reason="over budget")
    text = prune.render(replace(space, joint=replace(space.joint, constraints=(rule,))))
    lines = text.splitlines()
    place = lines.index("    # learned: BLOCK * SPLIT <= 256 (14 failed; 120 passed; scale.py:84; over budget)")
    assert lines[place + 1] == "    lambda c: c['BLOCK'] * c['SPLIT'] <= 256,"


def test_values_that_only_text_spells_are_refused_where_no_code_can_make_them() -> None:
    space = tuned_singles()
    knob = space.knobs["GROUP"]
    spelled = replace(knob, values=(replace(knob.values[0], value="py:gl.float16"), *knob.values[1:]))
    with pytest.raises(UsageError, match=r"py:gl\.float16.*gluonmap\.early_config_prune"):
        prune.render(replace(space, knobs={**space.knobs, "GROUP": spelled}))


# ---- the command ---------------------------------------------------------------------------------------------------


def run(*arguments: object) -> Any:
    from gluonmap.cli.command_group import cli

    return CliRunner().invoke(cli, ["export", *map(str, arguments)])


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "reports" / "scale.gfx950.json"
    codec.write(path, codec.dumps(tuned_map(*PROGRAMS, shape={"M": 64})))
    return path


@pytest.mark.parametrize("form", ["python", "triton-json", "aiter", "kernel-tuner", "prune"])
def test_every_format_writes_the_same_bytes_twice(stored: Path, tmp_path: Path, form: str) -> None:
    first, second = run(stored, "--format", form), run(stored, "--format", form, "--out", tmp_path / "new" / "file")
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert first.stdout == (tmp_path / "new" / "file").read_text()
    assert second.stdout == ""


def test_several_maps_go_into_a_folder(stored: Path, tmp_path: Path) -> None:
    other = stored.with_name("scale.gfx942.json")
    codec.write(other, codec.dumps(tuned_map(*PROGRAMS, target="gfx942")))
    refused = run(stored, other, "--format", "python")
    assert refused.exit_code == 2 and "--out DIR" in refused.output
    assert run(stored, other, "--format", "aiter", "--out", tmp_path / "here").exit_code == 0
    found = sorted(str(p.relative_to(tmp_path / "here")) for p in (tmp_path / "here").rglob("*.json"))
    assert found == [f"configs/{t}/gluon/gemm/scale/DEFAULT.json" for t in ("gfx942", "gfx950")]
    assert run(stored, stored, "--format", "python", "--out", tmp_path / "here").exit_code == 2


def test_vllm_names_come_from_the_probe_file(stored: Path, tmp_path: Path) -> None:
    bare = run(stored, "--format", "vllm")
    assert bare.exit_code == 2 and 'EXPORT = {"vllm"' in bare.output
    probe = tmp_path / "p.py"
    probe.write_text(f"KNOBS = {{}}\nEXPORT = {{'vllm': {NAMES!r}}}\n")
    assert run(stored, "--format", "vllm", "--probe-file", probe, "--out", tmp_path).exit_code == 0
    assert json.loads((tmp_path / vllm.file_name(tuned_singles(), NAMES)).read_text()) == {"64": TUNED}
    probe.write_text("EXPORT = {'vllm': 8}\n")
    assert "must be a dict" in run(stored, "--format", "vllm", "--probe-file", probe).output


def test_a_limit_is_for_lists(stored: Path) -> None:
    assert run(stored, "--format", "aiter", "--limit", 3).exit_code == 2
    text = run(stored, "--format", "python", "--limit", 1).stdout
    assert len(module(text)["CONFIGS"]) == 1
