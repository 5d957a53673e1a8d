"""What a project ships, judged: files as they are read, entries and rules by small maps, and by real compiles."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from inspections import inspected
from maps import (
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
from project import REPOSITORY, Finished, Project

from gluonmap.audit import bound_entries, rule_check, shipped_files, target_audit
from gluonmap.audit import run as auditor
from gluonmap.audit.bound_entries import BoundEntry, KernelNames
from gluonmap.audit.findings import FindingKind
from gluonmap.audit.key_mentions import find_mentions
from gluonmap.audit.request import AuditRequest, PruningRule
from gluonmap.audit.rule_space import RuleSpace
from gluonmap.audit.shipped_files import FileForm, ShippedEntry, ShippedFile, target_of
from gluonmap.cli.main import cli
from gluonmap.constraints.semantics import holds
from gluonmap.export import kernel_tuner
from gluonmap.model import codec
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Inertness, Standing, ValueClasses
from gluonmap.model.knobs import KnobClass
from gluonmap.model.relations import Bound, Member, Op, Written
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import TARGETS, Target, find
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.settings import Settings
from gluonmap.probe.target_choice import TargetChoice
from gluonmap.query.feasibility import Judge
from gluonmap.query.reduced_space import reduced_space_of
from gluonmap.runner import environment
from gluonmap.runner.processes import Isolation
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import Overrides, describe
from gluonmap.spec.probe_file import ProbeFile
from gluonmap.worker import choose
from gluonmap.worker.protocol import Choice

# ---- reading --------------------------------------------------------------------------------------------------------


def source(folder: Path, text: str | bytes, name: str = "shipped.json") -> ShippedFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return shipped_files.read_shipped_file(str(path))


AITER = """{
  "_comment": "hand made",
  "M_LEQ_16": {
    "BLOCK_M": 16,
    "cache": null},
  "M_LEQ_48": {"BLOCK_M": 32},
  "any": {"BLOCK_M": 64, "flag": true}, "small": {"BLOCK_M": 8}
}"""


def test_buckets_of_aiter_have_lines_and_sizes(tmp_path: Path) -> None:
    told = source(tmp_path, AITER, "configs/gfx950/gluon/gemm/x/GEMM-N=7168-K=2048.json")
    assert (told.form, told.target, told.elsewhere) == (FileForm.AITER, "gfx950", "")
    assert [(e.name, e.line, e.config, e.sizes) for e in told.entries] == [
        ("M_LEQ_16", 3, {"BLOCK_M": 16, "cache": None}, {"M": 16, "N": 7168, "K": 2048}),
        ("M_LEQ_48", 6, {"BLOCK_M": 32}, {"M": 48, "N": 7168, "K": 2048}),
        ("any", 7, {"BLOCK_M": 64, "flag": True}, {"N": 7168, "K": 2048}),
        ("small", 7, {"BLOCK_M": 8}, {"N": 7168, "K": 2048}),
    ]
    assert told.entries[0].lines == {"BLOCK_M": 4, "cache": 5}
    assert [(odd.name, odd.line, odd.certain) for odd in told.oddities] == [
        ("M_LEQ_48", 6, False),
        ("small", 7, False),
    ]


def test_batch_sizes_of_vllm_are_entries_and_other_keys_are_read_by_nobody(tmp_path: Path) -> None:
    text = '{"triton_version": "3.4.0", "1": {"BLOCK_M": 16},\n "64": {"BLOCK_M": 64},\n "default": {"BLOCK_M": 1}}'
    told = source(tmp_path, text, "E=8,N=4096,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8.json")
    assert (told.form, told.target, told.triton) == (FileForm.VLLM, "gfx942", "3.4.0")
    assert [(e.name, e.line, e.sizes) for e in told.entries] == [("1", 1, {"M": 1}), ("64", 2, {"M": 64})]
    assert [(odd.name, odd.line, odd.certain) for odd in told.oddities] == [("default", 3, True)]
    name = "triton_3_4_0/E=8,N=4096,device_name=NVIDIA_H100_80GB_HBM3.json"
    again = source(tmp_path, '{"1": {"BLOCK_M": 16}}', name)
    assert (again.target, again.triton) == ("sm_90", "3.4.0")


def test_entries_within_entries_are_named_by_their_path_and_a_flat_file_is_one(tmp_path: Path) -> None:
    nested = source(tmp_path, '{"fwd": {"default": {"A": 1},\n "large": {"A": 2}}}')
    assert [(e.name, e.line, e.config) for e in nested.entries] == [
        ("fwd/default", 1, {"A": 1}),
        ("fwd/large", 2, {"A": 2}),
    ]
    flat = source(tmp_path, b'{"A": 1,\r\n "B": ".cg"}')
    assert [(e.name, e.config, e.lines) for e in flat.entries] == [("", {"A": 1, "B": ".cg"}, {"A": 1, "B": 2})]


def test_a_bucket_that_stands_there_twice_is_told(tmp_path: Path) -> None:
    told = source(tmp_path, '{"M_LEQ_16": {"A": 1},\n"M_LEQ_16": {"A": 2}}')
    assert [e.config for e in told.entries] == [{"A": 2}]
    assert [(odd.name, odd.line) for odd in told.oddities] == [("M_LEQ_16", 1)]


def test_one_entry_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(AITER)
    assert [e.name for e in shipped_files.read_shipped_file(f"{tmp_path}/x.json#any").entries] == ["any"]
    with pytest.raises(UsageError, match=r"has no entry 'M_LEQ_8' \(it has M_LEQ_16, M_LEQ_48, any, small\)"):
        shipped_files.read_shipped_file(f"{tmp_path}/x.json#M_LEQ_8")


@pytest.mark.parametrize("key", ["configs_timings", "configs"])
def test_tritons_own_results_are_a_list(tmp_path: Path, key: str) -> None:
    entry = {"kwargs": {"TILE": 64}, "num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None, "pre_hook": None}
    told = source(tmp_path, json.dumps({"key": [1], key: [[entry, [0.1]] if "timings" in key else entry]}))
    assert told.form is FileForm.TRITON
    assert [(e.name, e.line, e.config) for e in told.entries] == [
        ("[0]", 1, {"TILE": 64, "num_warps": 4, "num_stages": 3, "num_ctas": 1})
    ]


CONFIGS = """
import triton
from triton import Config

COMPUTED = [triton.Config({"TILE": tile}) for tile in (1, 2)]
CONFIGS = [
    triton.Config({"TILE": 64}, num_warps=8),
    Config(
        {"TILE": 128, "HINT": ".cg"},
        num_stages=2,
    ),
]
"""


def test_configs_that_are_written_out_are_read_from_the_text_alone(tmp_path: Path) -> None:
    told = source(tmp_path, CONFIGS + "raise SystemExit\n", "configs.py")
    assert told.form is FileForm.CONFIGS
    assert [(e.name, e.line, e.config) for e in told.entries] == [
        ("[0]", 7, {"TILE": 64, "num_warps": 8, "num_stages": 3, "num_ctas": 1}),
        ("[1]", 8, {"TILE": 128, "HINT": ".cg", "num_warps": 4, "num_stages": 2, "num_ctas": 1}),
    ]
    assert told.entries[1].written == {"TILE": 128, "HINT": ".cg", "num_stages": 2}
    assert told.entries[1].lines == {"TILE": 9, "HINT": 9, "num_stages": 10}
    assert told.notes == (f"{tmp_path}/configs.py: 1 triton.Config(…) are computed, not written out: not read",)


def test_restrictions_of_kernel_tuner_have_lines_and_values(tmp_path: Path) -> None:
    text = 'tune_params = {"M": [16, 32]}\nrestrictions = [\n    "M <= 32",\n    # why\n    "N % M == 0",\n]\n'
    told = source(tmp_path, text, "kt.py")
    assert (told.form, told.restrictions, told.lines) == (FileForm.RULES, ("M <= 32", "N % M == 0"), (3, 5))
    assert told.domains == {"M": (16, 32)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.json", "{", "is no JSON"),
        ("x.json", "[]", "holds no configuration"),
        ("x.json", '{"any": {"A": [1]}}', "gives A a value that is no number or text"),
        ("x.json", '{"any": {"A": 18446744073709551616}}', "the value of A does not fit into 64 bits"),
        ("x.jsonl", "\n", "holds no configuration"),
        ("x.py", "x = 1", "holds no triton.Config"),
        ("x.py", "restrictions = [lambda c: True]", "must be a list of texts, written out"),
        ("x.py", "def", "is no Python"),
    ],
)
def test_what_is_no_list_is_one_usage_error(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        source(tmp_path, text, name)
    assert message in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["x.json", "x.jsonl", "x.py"]))
def test_any_bytes_are_entries_or_one_usage_error(data: bytes, name: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        try:
            told = source(Path(folder), data, name)
        except UsageError:
            return
    assert told.entries or told.restrictions or told.form is FileForm.VLLM


@pytest.mark.parametrize(
    ("path", "target", "elsewhere"),
    [
        ("configs/gfx942/triton/gemm/x/DEFAULT.json", "gfx942", ""),
        ("configs/gemm/gluon/gfx950-GEMM-A8W8-N=512-K=7168.json", "gfx950", ""),
        ("gfx942/gfx950-GEMM.json", "gfx950", ""),
        ("configs/gemm/gfx1201-GEMM-A8W8.json", "", "gfx1201"),
        ("E=8,N=14336,device_name=AMD_Instinct_MI325X.json", "gfx942", ""),
        ("E=8,N=14336,device_name=NVIDIA_H200.json", "sm_90", ""),
        ("E=8,N=14336,device_name=NVIDIA_L40S.json", "", "NVIDIA_L40S"),
        ("configs/plain.json", "", ""),
    ],
)
def test_the_target_is_read_from_names(path: str, target: str, elsewhere: str) -> None:
    assert target_of(path) == (target, elsewhere)


# ---- binding --------------------------------------------------------------------------------------------------------

KERNEL = """
@gluon.jit
def k(
    x, n, TILE: gl.constexpr, EVEN: gl.constexpr, SPLIT: gl.constexpr, num_stages: gl.constexpr, SPARE: gl.constexpr = 1
):
    gl.store(x + n, TILE + EVEN + SPLIT)
"""


def bound_to(config: Config, **given: Value) -> tuple[BoundEntry, Description, KernelNames]:
    """A configuration bound to the kernel above, whose host code derives SPLIT and turns GROUP and waves_per_eu."""
    inspection = inspected(KERNEL, heuristic=("EVEN",))
    derive = {"SPLIT": "n // GROUP"}
    names = bound_entries.names_of(inspection, derive, ["(n // TILE,)"])
    overrides = Overrides(
        config={"TILE": 64, "num_stages": 2},
        domains={"TILE": (64, 128), "waves_per_eu": (0, 2), "GROUP": (1, 2)},
        sets={"GROUP": 1, "waves_per_eu": 2},
        args={"x": "*fp16", "n": 64},
        derive=derive,
        grid="(n // TILE,)",
    )
    description = describe(inspection, find("gfx950"), ProbeFile(knobs={"num_stages": (2, 3)}), overrides)
    bound = bound_entries.bind_entry(ShippedEntry("c.json", "any", config, sizes={"n": 32, "m": 5}), names, given)
    return bound_entries.with_defaults(bound, description, names), description, names


def test_keys_are_sorted_by_who_reads_them() -> None:
    config: Config = {"TILE": 128, "EVEN": 1, "SPLIT": 2, "GROUP": 2, "num_warps": 8, "TILES": 1}
    bound, _, names = bound_to(config)
    assert bound.unknown == ("TILES",)
    assert bound.overridden == {"EVEN": "@triton.heuristics computes it", "SPLIT": "the host computes it: n // GROUP"}
    assert bound.moves == {"TILE": 128, "GROUP": 2, "num_warps": 8, "n": 32, "waves_per_eu": 0}
    assert bound.sizes == {"n": 32}
    assert [str(names.kind(n)) for n in ("TILE", "num_stages", "kpack", "GROUP", "n", "EVEN")] == [
        "constexpr", "constexpr and option", "option", "host", "None", "None",
    ]  # fmt: skip
    assert names.unread == {"num_stages", "SPARE"}


def test_an_unset_option_has_the_compilers_default_not_the_baselines_value() -> None:
    bound, description, _ = bound_to({"TILE": 64})
    assert description.baseline["waves_per_eu"] == 2
    assert bound.defaults == {"waves_per_eu": 0}
    assert bound_to({"TILE": 64}, waves_per_eu=2)[0].moves["waves_per_eu"] == 2


def test_an_option_at_its_default_that_nothing_turns_is_as_good_as_left_out() -> None:
    bound, description, names = bound_to({"TILE": 64, "kpack": 1})
    assert "kpack" not in bound.moves
    bound, description, names = bound_to({"TILE": 64, "kpack": 2})
    candidate = bound_entries.extended(description, bound.moves, names).candidate(bound.moves)
    assert (candidate.config["kpack"], candidate.args["n"], candidate.config["SPLIT"]) == (2, 32, 32)


def test_sizes_that_names_tell_are_noted_where_they_make_another_program() -> None:
    bound, description, names = bound_to({"TILE": 64})  # for n = 32; the map's n is 64, and SPLIT is made of it
    told = list(target_audit._default_notes([bound], description, names))
    assert told[0] == "compiled for the sizes in the names of file and entry: n=32 (any)"
    same = replace(bound, moves={**bound.moves, "n": 64}, sizes={"n": 64})
    assert not any("sizes" in note for note in target_audit._default_notes([same], description, names))


def test_options_that_somebody_wrote_are_tried_at_all_their_values() -> None:
    bounds = [bound_to({"TILE": tile, "num_warps": 8, "num_stages": 3})[0] for tile in (128, 64)]
    found = bound_entries.domains_of(bounds, bound_to({})[2], find("gfx950"))
    assert found == {"TILE": (64, 128), "num_warps": (8,), "num_stages": (1, 2, 3, 4), "waves_per_eu": (0,)}


# ---- judging by a map -----------------------------------------------------------------------------------------------


def checked(folder: Path, space: SpaceMap, config: Any, *arguments: str, name: str = "shipped.json") -> Result:
    """`gluonmap check --no-compile` of one file by one map."""
    codec.write(folder / "map.json", codec.dumps(space))
    (folder / name).write_text(config if isinstance(config, str) else json.dumps(config))
    files = ["--configs", str(folder / name)] if config else []
    return CliRunner().invoke(
        cli, ["check", "double.py", "--map", str(folder / "map.json"), "--no-compile", *files, *arguments]
    )


def findings(shown: Result | Finished) -> list[tuple[str, str, str]]:
    """Severity, kind and text of each, as --json tells them."""
    return [(f["severity"], f["kind"], f["text"]) for f in json.loads(shown.stdout)["findings"]]


def test_what_triton_config_says_by_itself_is_nothing_that_a_map_must_turn(tmp_path: Path) -> None:
    tiles = ", ".join(f"triton.Config({{'BLOCK_SIZE_M': {m}}}, num_warps=8, num_stages=2)" for m in (128, 256))
    (tmp_path / "shipped.py").write_text(f"import triton\nCONFIGS = [{tiles}]\n")
    place = REPOSITORY / "reports/cdna4/gemm_mxfp4.gfx950.json"
    command = ["check", "gemm_mxfp4.py", "--map", str(place), "--no-compile", "--json", str(tmp_path / "shipped.py")]
    told = json.loads(CliRunner().invoke(cli, command).stdout)
    assert [entry["outcome"] for entry in told["entries"]] == ["CRASHED", "PASS"]


def test_an_entry_that_the_map_forbids_is_an_error_with_its_line_and_the_constraint(tmp_path: Path) -> None:
    text = '{\n"M_LEQ_16": {"M": 16},\n"any": {"M": 128, "N": 128}\n}'
    shown = checked(tmp_path, joint_map(), text)
    assert shown.exit_code == 1
    assert (
        f'{tmp_path}/shipped.json:3: error: entry "any" fails by the map\'s constraints, uncompiled [rejected]'
        in shown.stdout
    )
    assert "    forbidden by M * N * STAGES <= 8192 (learned)" in shown.stdout
    assert shown.stdout.splitlines()[-1] == "1 error"
    assert checked(tmp_path, joint_map(), {"any": {"M": 16}}).exit_code == 0


def test_what_was_compiled_for_the_map_is_told_with_its_outcome_and_place(tmp_path: Path) -> None:
    moves = {"M": 128, "FLAG": True}
    space = joint_map((), tried=[tried(moves, "CRASHED", reason="LLVM ERROR: no", line="double.py:12")])
    told = findings(checked(tmp_path, space, {"M_LEQ_16": moves, "any": moves}, "--json"))
    assert told[0] == (
        "error",
        "aborts",
        'entries "M_LEQ_16" and "any" crash the compiler at double.py:12: LLVM ERROR: no',
    )


@pytest.mark.parametrize(("choice", "code"), [("error", 0), ("warning", 1), ("never", 0)])
def test_fail_on_says_which_findings_fail(tmp_path: Path, choice: str, code: int) -> None:
    shown = checked(tmp_path, joint_map(), {"any": {"M": 32, "NN": 1}}, "--fail-on", choice)
    assert "warning: NN is no parameter of the kernel and no option of gfx950's compiler" in shown.stdout
    assert shown.exit_code == code
    assert checked(tmp_path, joint_map(), {"any": {"M": 128, "N": 128}}, "--fail-on", "never").exit_code == 0


INERT = joint_map(
    (),
    inertness=[
        Inertness("FLAG", "", "FLAG changed nothing in 9 comparisons", 0, 9),
        Inertness("MODE", "STAGES = 1", "MODE matters only if STAGES = 1", 4, 4, Member("STAGES", (1,))),
    ],
    value_classes=[ValueClasses("FLAG", ((False, True),)), ValueClasses("N", ((16, 32), (64,)))],
)
INERT = replace(INERT, knobs={**INERT.knobs, "FLAG": replace(INERT.knobs["FLAG"], knob_class=KnobClass.INERT)})


def test_knobs_that_change_nothing_are_told_by_how_far_that_holds(tmp_path: Path) -> None:
    config = {
        "M_LEQ_16": {"N": 32, "FLAG": True, "MODE": ".cg", "STAGES": 2},
        "any": {"M": 16, "MODE": ".ca", "STAGES": 1},
    }
    told = findings(checked(tmp_path, INERT, config, "--json"))
    assert told == [
        ("warning", "inert-knob", "FLAG = True changes nothing: by hand"),
        ("notice", "equal-value", "N=32 is the program of N=16"),
        ("notice", "inert-here", "MODE changes nothing in M_LEQ_16: it matters only if STAGES = 1"),
    ]


def test_entries_of_one_program_are_duplicates_and_equal_buckets_a_notice(tmp_path: Path) -> None:
    one, other = {"N": 16, "FLAG": True, "STAGES": 1}, {"N": 32, "FLAG": False, "STAGES": 1}
    told = findings(checked(tmp_path, INERT, {"M_LEQ_16": one, "M_LEQ_32": other, "any": one}, "--json"))
    text = 'entries "M_LEQ_16" and "M_LEQ_32" are one program: they differ in FLAG (False, True) and N (16, 32), which'
    assert ("warning", "duplicate", f"{text} changes nothing between them") in told
    assert ("notice", "repeated", "entries with the same configuration: M_LEQ_16 and any") in told
    lines = "".join(json.dumps(each) + "\n" for each in (one, one))
    raced = findings(checked(tmp_path, INERT, lines, "--json", name="c.jsonl"))
    assert ("warning", "duplicate", "the same configuration occurs more than once: line 1 and line 2") in raced


def test_a_key_that_the_signature_lost_is_told_with_the_nearest_that_there_is(tmp_path: Path) -> None:
    told = findings(checked(tmp_path, joint_map(), {"any": {"M": 16, "STAGE": 1}}, "--json"))
    text = (
        "STAGE is no parameter of the kernel and no option of gfx950's compiler: no code reads it; did you mean STAGES?"
    )
    assert told == [("warning", "unknown-key", text)]


def test_host_code_that_names_a_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "a.py").write_text("# SPLITS\n\nsplits = config['SPLIT']\n")
    found = find_mentions({"SPLIT", "SPLITS"}, tmp_path / "kernels" / "k.py")
    assert found == {"SPLIT": "host/a.py:3"}


def test_a_value_that_the_map_never_tried_has_no_answer(tmp_path: Path) -> None:
    told = findings(checked(tmp_path, joint_map(), {"any": {"M": 48}}, "--json"))
    assert told == [("warning", "no-answer", 'entry "any" has no answer: never tried value M=48')]


def test_a_file_of_another_target_is_told(tmp_path: Path) -> None:
    told = findings(checked(tmp_path, joint_map(), {"any": {"M": 16}}, "--json", name="gfx942-GEMM.json"))
    assert told == [("warning", "other-target", "the file is named for gfx942 and audited on gfx950")]


def test_text_of_files_reaches_neither_terminal_nor_page_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    name = "\x1b[31m<b>|`\n::error::x"
    shown = checked(tmp_path, joint_map(), {"any": {"M": 16, name: 1}})
    assert "\x1b" not in shown.stdout
    page = (tmp_path / "page.md").read_text()
    assert "<b>" not in page and "\x1b" not in page
    assert "1 warning." in page
    warning = [line for line in shown.stderr.splitlines() if line.startswith("::")]
    assert len(warning) == 1
    assert warning[0].startswith("::warning file=shipped.json,line=1,title=gluonmap check (gfx950)%3A unknown-key::")


# ---- rules ----------------------------------------------------------------------------------------------------------

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
    told, _ = counted
    assert (told.feasible.mistaken, told.infeasible.mistaken, told.lost) == by_hand(RULED, texts)
    pool = ground.pool(4096)
    kept = [i for i, config in enumerate(pool.configs) if all(holds(Written(text), config) for text in texts)]
    decided = rule_check.check_selection(rule, pool, kept, ground)
    # The judge says nothing of values that no answered configuration had; these maps have answers for all.
    assert (decided.feasible, decided.infeasible, decided.lost) == (told.feasible, told.infeasible, told.lost)


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


def test_values_of_a_rule_that_the_map_lacks_are_told(tmp_path: Path) -> None:
    text = 'tune_params = {"M": [16, 48], "Q": [1]}\nrestrictions = ["N <= 64", "M * N * STAGES <= 8192"]\n'
    told = findings(checked(tmp_path, RULED, text, "--json", name="kt.py"))
    assert told == [
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


def test_a_map_of_single_values_judges_its_single_values(tmp_path: Path) -> None:
    shown = checked(tmp_path, single_map(), {"M_LEQ_16": {"M": 64}, "any": {"M": 64, "N": 64}}, "--json")
    outcomes = [(e["entry"], e["outcome"]) for e in json.loads(shown.stdout)["entries"]]
    assert outcomes == [("M_LEQ_16", "PASS"), ("any", "unknown")]


# ---- with compiles --------------------------------------------------------------------------------------------------

SHIPPED = """{
  "M_LEQ_16": {"A": 4, "B": 16, "C": 1},
  "M_LEQ_32": {"A": 4, "B": 16, "C": 2},
  "M_LEQ_64": {"A": 16, "B": 64, "C": 1},
  "any": {"A": 1, "B": 16, "C": 1, "D": 1}
}"""


def test_without_a_map_every_entry_is_compiled_once_and_for_all(project: Project) -> None:
    project.write("kernels/pair.py", PAIR)
    project.write("gfx950-pair.json", SHIPPED)
    command = ("check", "kernels/pair.py", "--configs", "gfx950-pair.json", "--arg", "x=*fp16", "--json")
    first = project.run(*command)
    assert first.code == 1, first.stderr
    document = json.loads(first.stdout)
    assert (document["target"], document["map"]) == ("gfx950", "")
    assert [(e["entry"], e["line"], e["outcome"]) for e in document["entries"]] == [
        ("M_LEQ_16", 2, "PASS"),
        ("M_LEQ_32", 3, "PASS"),
        ("M_LEQ_64", 4, "REJECTED"),
        ("any", 5, "PASS"),
    ]
    told = findings(first)
    assert [(severity, kind) for severity, kind, _ in told] == [
        ("error", "rejected"),
        ("warning", "duplicate"),
        ("warning", "inert-knob"),
        ("warning", "unknown-key"),
    ]
    assert told[0][2].startswith('entry "M_LEQ_64" is rejected (CompileTimeAssertionFailure) at kernels/pair.py:8')
    assert told[1][2].startswith('entries "M_LEQ_16" and "M_LEQ_32" are one program ')
    assert told[2][2] == "C = 1 or 2 changes nothing: declared, never read (line 7)"
    assert document["findings"][0]["details"] == [
        'A=16 alone is enough: entry "M_LEQ_16" passes, and with that it fails in the same way',
        "forbidden by static_assert(A * B <= 64) (line 8)",
    ]
    again = project.run(*command)
    assert json.loads(again.stdout)["compiled"] == 0
    assert findings(again) == told


def test_the_value_to_blame_is_named_at_its_own_line(project: Project) -> None:
    project.write("kernels/pair.py", PAIR)
    shipped = {"small": {"A": 4, "B": 4, "C": 1}, "any": {"A": 16, "C": 2, "B": 16}, "wide": {"B": 64, "C": 2, "A": 4}}
    project.write("c.json", json.dumps(shipped, indent=1))
    run = project.run("check", "kernels/pair.py", "c.json", "-t", "gfx950", "--arg", "x=*fp16", "--json")
    (told,) = [f for f in json.loads(run.stdout)["findings"] if f["severity"] == "error"]
    assert [place["line"] for place in told["places"]] == [8, 13]
    passes = 'entry "small" passes, and with that it fails in the same way'
    assert told["details"][:2] == [
        f'entry "any": A=16 and B=16 together are enough: {passes}',
        f'entry "wide": B=64 alone is enough: {passes}',
    ]


def written(project: Project, **changes: Any) -> None:
    """The kernel of `mapped.PAIR` and its map, where check finds it."""
    project.write("kernels/pair.py", PAIR)
    triton = environment.triton_version(environment.triton_folder())
    space = replace(pair_map(PAIR_RULE, triton), **changes)
    codec.write(project.root / "reports" / "pair.gfx950.json", codec.dumps(space))


PRUNE = """
def halves(configs, named_args, **kwargs):
    assert named_args["x"].dtype.itemsize == 2
    return [c for c in configs if c.kwargs["A"] * c.kwargs["B"] in (16, 256)]


def test(config):
    return config.kwargs["A"] * config.kwargs["B"] <= 64


def broken(configs, named_args, **kwargs):
    return configs[0].kwargs["BLOCK"]


def endless(configs, named_args, **kwargs):
    while True:
        pass


def leaving(configs, named_args, **kwargs):
    import os

    os._exit(0)
"""


@pytest.mark.long
def test_pruning_functions_run_apart_and_are_judged_by_the_map_and_compiles(project: Project) -> None:
    written(project)
    project.write("prune.py", PRUNE)
    names = ("halves", "test", "broken", "endless", "leaving")
    run = project.run(
        "check", "kernels/pair.py", "--json", "--deadline", "4", *(f"--prune=prune.py:{name}" for name in names)
    )
    assert run.code == 1, run.stderr
    document = json.loads(run.stdout)
    assert document["map"] == "reports/pair.gfx950.json"
    told = {(f["places"][0]["entry"], f["kind"]): f for f in document["findings"]}
    # A in 1, 4, 16 and B in 4, 16, 64: A * B is 4, 16, 16, 64, 64, 64, 256, 256, 1024, each with C = 1 and C = 2.
    admits = told["halves", "admits-infeasible"]
    assert admits["text"] == "4 of 6 infeasible configurations are kept by prune.py:halves"
    assert admits["details"][0] == "A=16 (NO_RESOURCES): A * B <= 64"
    assert admits["places"][0] == {"file": "prune.py", "line": 2, "entry": "halves"}
    drops = told["halves", "drops-feasible"]
    assert drops["text"].startswith("8 of 12 feasible configurations are dropped by prune.py:halves")
    assert drops["details"][0] == "the baseline (PASS)"
    assert told["broken", "rule-fails"]["text"] == "prune.py:broken fails: KeyError: 'BLOCK' at prune.py:12"
    assert told["endless", "rule-fails"]["text"] == "prune.py:endless fails: it did not end within 4 s"
    assert told["leaving", "rule-fails"]["text"] == "prune.py:leaving fails: it ended the process (exit status 0)"
    assert not [key for key in told if key[0] == "test"]


@pytest.mark.long
def test_what_a_map_knows_is_not_compiled_and_a_map_of_another_kernel_is_not_used(project: Project) -> None:
    written(project)
    project.write("c.json", '{"M_LEQ_16": {"A": 16}, "any": {"A": 4, "B": 16, "C": 2}}')
    run = project.run("check", "kernels/pair.py", "c.json", "--json")
    document = json.loads(run.stdout)
    assert [(e["entry"], e["outcome"], e["basis"]) for e in document["entries"]] == [
        ("M_LEQ_16", "NO_RESOURCES", "map"),
        ("any", "PASS", "compiled"),  # the map lacks its registers
    ]
    assert document["findings"][0]["repeat"] == "gluonmap repeat reports/pair.gfx950.json A=16"
    written(project, digest="0" * 16)
    run = project.run("check", "kernels/pair.py", "c.json", "--json", "--arg", "x=*fp16")
    assert "gluonmap: the map reports/pair.gfx950.json is not used: its baseline is another program now" in run.stderr
    stale = json.loads(run.stdout)
    assert stale["map"] == ""
    assert "its baseline is another program now, so the kernel has changed since" in stale["notes"][0]
    assert [(e["entry"], e["outcome"]) for e in stale["entries"]] == [("M_LEQ_16", "REJECTED"), ("any", "PASS")]
    named = project.run("check", "kernels/pair.py", "c.json", "--map", "reports/pair.gfx950.json")
    assert (named.code, "cannot be used: its baseline is another program now" in named.stderr) == (2, True)
    other = project.run("check", "kernels/pair.py", "c.json", "--map", "reports/pair.gfx950.json", "--arg", "x=*fp32")
    assert (other.code, "it has x = '*fp16' and not '*fp32'" in other.stderr) == (2, True)


OWN = """
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


def prune(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["TILE"] < 4096]


@triton.autotune(
    configs=[
        triton.Config({"TILE": 256, "UNUSED": 1}, num_warps=4),
        triton.Config({"TILE": 96, "UNUSED": 1}, num_warps=4),
        triton.Config({"TILE": 4096, "UNUSED": 1}, num_warps=4),
        triton.Config({"TILE": 512, "UNUSED": 1, "TILES": 2}, num_warps=4),
    ],
    key=["n"],
    prune_configs_by={"early_config_prune": prune},
)
@gluon.jit
def copy(x, y, n, TILE: gl.constexpr, UNUSED: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(y + i, gl.load(x + i, mask=i < n), mask=i < n)
"""


def test_a_kernels_own_list_is_audited_as_triton_would_see_it(project: Project) -> None:
    project.write("kernels/own.py", OWN)
    command = ("check", "kernels/own.py", "-t", "gfx950", "--arg", "x=*fp16", "--arg", "y=*fp16", "--json")
    run = project.run(*command)
    assert run.code == 1, run.stderr
    project.write("kernels/own.py", "# moved\n" + OWN)
    moved = json.loads(project.run(*command).stdout)
    assert (moved["compiled"], moved["entries"][1]["line"]) == (0, 15)
    document = json.loads(run.stdout)
    assert [(e["entry"], e["line"], e["outcome"], e["basis"]) for e in document["entries"]] == [
        ("[0]", 13, "PASS", "compiled"),
        ("[1]", 14, "REJECTED", "compiled"),
        ("[2]", 15, "unknown", "pruned"),
        ("[3]", 16, "REJECTED", "compiled"),
    ]
    assert "Keyword argument TILES was specified but unrecognised" in document["entries"][3]["reason"]
    assert document["notes"][0] == "the list's own early_config_prune drops [2] for these arguments: not compiled"
    told = findings(run)
    assert [(severity, kind) for severity, kind, _ in told] == [
        ("error", "rejected"),
        ("error", "unknown-key"),
        ("warning", "inert-knob"),
    ]
    assert told[1][2] == (
        "TILES is no parameter of the kernel and no option of gfx950's compiler: Triton refuses the launch"
    )


def test_unstable_code_is_called_neither_equal_nor_inert(project: Project) -> None:
    project.kernel("unstable")
    project.write("c.jsonl", '{"UNREAD": 1, "TILE": 256}\n{"UNREAD": 2, "TILE": 256}\n')
    run = project.run("check", "kernels/unstable.py", "c.jsonl", "-t", "gfx950", "--arg", "x=*fp16", "--json")
    assert run.code == 0, run.stderr
    kinds = {FindingKind(kind) for _, kind, _ in findings(run)}
    assert FindingKind.DUPLICATE not in kinds
    assert "unstable" in " ".join(json.loads(run.stdout)["notes"])


def test_nothing_to_audit_is_a_usage_error(project: Project) -> None:
    project.write("kernels/pair.py", PAIR)
    run = project.run("check", "kernels/pair.py", "-t", "gfx950")
    assert (run.code, "has no @triton.autotune list" in run.stderr) == (2, True)


# ---- on which targets -----------------------------------------------------------------------------------------------


class AnyTarget(TargetChoice):
    """The choice for a kernel that all targets can compile, on a machine without a GPU."""

    def default_targets(self) -> list[Target]:
        return list(TARGETS)


def audited_on(folder: Path, notes: list[str]) -> list[str]:
    """The targets of an audit of a file that names none, and what is said about them."""
    chosen = Settings(folder / "kernels" / "pair.py", folder)
    campaign = Campaign(chosen, Isolation(jobs=1), lambda event: notes.append(event.text))
    return auditor._targets(AnyTarget(campaign), AuditRequest(sources=(ShippedFile("c.json", FileForm.JSON),)))


def test_a_file_that_names_no_target_is_audited_where_the_project_ships(tmp_path: Path) -> None:
    notes: list[str] = []
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "pair.py").write_text(PAIR)
    every = ["gfx942", "gfx950", "gfx1250", "sm_90", "sm_100"]
    assert audited_on(tmp_path, notes) == every
    assert notes == [f"no target named: auditing all 5 targets, {', '.join(every)} (--target)"]
    space = pair_map(PAIR_RULE, "3.9.0")
    for name in ("gfx950", "gfx942"):
        codec.write(tmp_path / f"reports/pair.{name}.json", codec.dumps(replace(space, target=name)))
    codec.write(tmp_path / "reports/other.sm_90.json", codec.dumps(replace(space, target="sm_90")))
    assert audited_on(tmp_path, notes) == ["gfx942", "gfx950"]
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes" / "pair.py").write_text("TARGETS = {'gfx950': {}}\n")
    assert audited_on(tmp_path, notes) == ["gfx950"]
    assert len(notes) == 1


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


def test_a_name_that_breaks_the_line_does_not_end_the_sentence(tmp_path: Path) -> None:
    shown = checked(tmp_path, joint_map(), {"x\ny": {"M": 128, "N": 128}})
    (line,) = [line for line in shown.stdout.splitlines() if "error" in line and "x y" in line]
    assert line.endswith("]")
