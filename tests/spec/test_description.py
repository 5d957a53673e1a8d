"""Descriptions built from the source, a probe file, a configuration and flags: knobs, domains, baseline, candidates."""

from __future__ import annotations

from typing import Any

import pytest
from inspections import inspected

from gluonmap.model import targets
from gluonmap.model.candidate import Value
from gluonmap.model.dtypes import describe_argument
from gluonmap.model.errors import NeedsHelp, UnknownKnob, UsageError
from gluonmap.model.inspection import Inspection
from gluonmap.model.knobs import KnobKind
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import Overrides, describe
from gluonmap.spec.probe_file import ProbeFile

GFX942 = targets.find("gfx942")
GEMM = inspected("""
    def gemm(a_ptr, M, BLOCK_M: constexpr, BLOCK_N: constexpr = 64, SPLIT: constexpr = 3, num_stages: constexpr = 2):
        store(a_ptr + arange(0, BLOCK_M), M % BLOCK_N)
""")


def described(inspection: Inspection = GEMM, probe: ProbeFile | None = None, **overrides: Any) -> Description:
    return describe(inspection, GFX942, probe or ProbeFile(), Overrides(**overrides))


def refusal(inspection: Inspection = GEMM, probe: ProbeFile | None = None, **overrides: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        described(inspection, probe, **overrides).candidate({})
    return caught.value


# --- domains ----------------------------------------------------------------------------------------------------------


def test_a_baseline_joins_a_given_domain_in_order_or_in_front_of_texts() -> None:
    numbers = described(sets={"BLOCK_M": 96}, domains={"BLOCK_M": (128, 64, 128)}, args={"a_ptr": "*fp16", "M": 64})
    assert numbers.knobs["BLOCK_M"].domain == (64, 96, 128)
    texts = described(
        sets={"BLOCK_M": 64, "SPLIT": "x"}, domains={"SPLIT": ("y", "z")}, args={"a_ptr": "*fp16", "M": 64}
    )
    assert texts.knobs["SPLIT"].domain == ("x", "y", "z")


def test_true_and_1_are_different_values() -> None:
    space = described(sets={"BLOCK_M": 64, "SPLIT": 1}, domains={"SPLIT": (True, 1)}, args={"a_ptr": "*fp16", "M": 64})
    assert [(type(v), v) for v in space.knobs["SPLIT"].domain] == [(bool, True), (int, 1)]


def test_a_knob_with_one_value_is_fixed_and_says_so() -> None:
    space = described(sets={"BLOCK_M": 64}, domains={"BLOCK_M": (64,)}, args={"a_ptr": "*fp16", "M": 64})
    assert "BLOCK_M" not in space.knobs
    assert space.fixed["BLOCK_M"] == 64
    assert "one value" in space.why_fixed["BLOCK_M"]


# --- who wins ---------------------------------------------------------------------------------------------------------

AUTOTUNED = inspected(
    "def f(x, A: constexpr = 1, B: constexpr = 1, C: constexpr = 1, D: constexpr = 1, E: constexpr = 1): x + 1",
    autotune=({"B": 2, "C": 2, "D": 2, "E": 2, "num_warps": 8}, {"B": 4, "C": 4, "num_warps": 8}),
)


def test_what_is_said_later_and_closer_to_the_user_wins() -> None:
    probe = ProbeFile(baseline={"C": 8, "D": 8, "E": 8})
    space = described(AUTOTUNED, probe, config={"D": 16, "E": 16}, sets={"E": 32}, args={"x": "*fp16"})
    assert {n: space.baseline[n] for n in ("A", "B", "C", "D", "E", "num_warps", "waves_per_eu")} == {
        "A": 1,  # the default in the signature
        "B": 2,  # the kernel's own first configuration
        "C": 8,  # the probe file
        "D": 16,  # a shipped configuration
        "E": 32,  # the command line
        "num_warps": 8,
        "waves_per_eu": 0,  # the back end's default
    }


def test_the_kernels_own_configurations_are_its_domain_where_they_differ() -> None:
    space = described(AUTOTUNED, args={"x": "*fp16"})
    assert space.knobs["B"].domain == (2, 4)
    assert space.knobs["num_warps"].domain == (1, 2, 4, 8, 16)


def test_a_probe_file_with_knobs_turns_these_and_no_others() -> None:
    probe = ProbeFile(knobs={"B": (1, 2)})
    space = described(AUTOTUNED, probe, args={"x": "*fp16"})
    assert set(space.knobs) == {"B"}
    assert space.fixed["C"] == 2
    assert space.not_probed["num_warps"] == "the probe file does not turn it"
    turned = described(AUTOTUNED, probe, args={"x": "*fp16"}, domains={"num_warps": (4, 8)})
    assert set(turned.knobs) == {"B", "num_warps"}


def test_the_kind_of_a_knob_says_where_it_is_turned() -> None:
    space = described(
        sets={"BLOCK_M": 64},
        domains={"PROGRAMS": (64, 128)},
        grid="(PROGRAMS,)",
        args={"a_ptr": "*fp16", "M": 64},
    )
    assert {n: space.knobs[n].kind for n in ("BLOCK_M", "num_stages", "num_warps", "PROGRAMS")} == {
        "BLOCK_M": KnobKind.CONSTEXPR,
        "num_stages": KnobKind.CONSTEXPR_AND_OPTION,
        "num_warps": KnobKind.OPTION,
        "PROGRAMS": KnobKind.HOST,
    }


def test_knobs_stand_in_signature_order_options_after_them() -> None:
    space = described(sets={"BLOCK_M": 64}, args={"a_ptr": "*fp16", "M": 64})
    assert list(space.knobs)[:4] == ["BLOCK_M", "BLOCK_N", "num_stages", "num_warps"]


def test_a_value_of_a_shipped_configuration_that_no_code_reads_is_noted() -> None:
    space = described(
        config={"BLOCK_M": 64, "NUM_KSPLIT": 4},
        config_name="gemm.json#any",
        args={"a_ptr": "*fp16", "M": 64},
    )
    assert "NUM_KSPLIT of gemm.json#any is read by no code: neither a parameter nor an option" in space.notes
    assert "NUM_KSPLIT" not in space.candidate({}).config


def test_options_that_are_no_knobs_are_reported_with_the_reason() -> None:
    space = described(sets={"BLOCK_M": 64}, args={"a_ptr": "*fp16", "M": 64})
    assert space.not_probed["debug"] == "changes what is checked"
    assert space.why_fixed["SPLIT"].startswith("no domain can be inferred around 3 (--domain SPLIT=")


# --- candidates -------------------------------------------------------------------------------------------------------


def test_a_candidate_holds_every_constexpr_and_turned_option_and_no_host_name() -> None:
    space = described(
        sets={"BLOCK_M": 64},
        domains={"PROGRAMS": (64, 128), "num_warps": (4, 8)},
        grid="(PROGRAMS, cdiv(M, BLOCK_M))",
        args={"a_ptr": "*fp16", "M": 4096},
    )
    asked = space.candidate({"PROGRAMS": 128, "BLOCK_M": 32})
    assert asked.args == {"a_ptr": "*fp16", "M": 4096}
    assert {n: asked.config[n] for n in ("BLOCK_M", "BLOCK_N", "SPLIT", "num_warps")} == {
        "BLOCK_M": 32,
        "BLOCK_N": 64,
        "SPLIT": 3,
        "num_warps": 4,
    }
    assert "PROGRAMS" not in asked.config
    assert asked.grid == (128, 128)


def test_a_fixed_host_name_belongs_to_the_shape_and_not_to_a_candidate() -> None:
    space = described(sets={"BLOCK_M": 64, "PROGRAMS": 300}, grid="(PROGRAMS,)", args={"a_ptr": "*fp16", "M": 4096})
    assert space.shape == {"PROGRAMS": 300}
    assert "PROGRAMS" not in space.candidate({}).config
    assert space.candidate({}).grid == (300,)


def test_a_derived_parameter_follows_the_knob_that_it_is_computed_from() -> None:
    space = described(sets={"BLOCK_M": 64}, derive={"SPLIT": "cdiv(M, BLOCK_M)"}, args={"a_ptr": "*fp16", "M": 4096})
    assert "SPLIT" not in space.knobs
    assert space.candidate({}).config["SPLIT"] == 64
    assert space.candidate({"BLOCK_M": 128}).config["SPLIT"] == 32


def test_a_descriptors_block_is_computed_from_the_configuration() -> None:
    kernel = inspected("def f(d, BLOCK_M: constexpr, BLOCK_K: constexpr): d.load([0, 0])")
    space = described(kernel, sets={"BLOCK_M": 64, "BLOCK_K": 32}, args={"d": "tensordesc<bf16[BLOCK_M, 2 * BLOCK_K]>"})
    assert space.candidate({}).args == {"d": "tensordesc<bf16[64, 64]>"}
    assert space.candidate({"BLOCK_M": 16}).args == {"d": "tensordesc<bf16[16, 64]>"}


def test_a_knob_that_only_a_descriptor_reads_is_a_host_knob() -> None:
    kernel = inspected("def f(d, BLOCK_M: constexpr): d.load([0, 0])")
    overrides = {"sets": {"BLOCK_M": 64, "DEPTH": 32}, "domains": {"DEPTH": (32, 64)}}
    space = described(kernel, args={"d": "tensordesc<bf16[BLOCK_M, DEPTH]>"}, **overrides)
    assert space.knobs["DEPTH"].kind is KnobKind.HOST
    assert space.candidate({"DEPTH": 64}).args == {"d": "tensordesc<bf16[64, 64]>"}


def test_a_knob_with_the_name_of_a_flag_is_tried_on_and_off() -> None:
    kernel = inspected("def f(x, USE_LDS: constexpr, STAGES: constexpr): store(x)")
    space = described(kernel, sets={"USE_LDS": 1, "STAGES": 1}, args={"x": "*fp16"})
    assert (space.knobs["USE_LDS"].domain, space.knobs["STAGES"].domain) == ((0, 1), (1, 2, 4, 8))


def test_a_regime_names_the_shape_to_compile_for_and_the_first_is_the_default() -> None:
    probe = ProbeFile(shapes={"small": {"M": 16}, "large": {"M": 8191}}, args={"a_ptr": "*fp16"})
    assert described(GEMM, probe, sets={"BLOCK_M": 64}).specialisation() == {"a_ptr": "*fp16:16", "M": "i32:16"}
    large = described(GEMM, probe, sets={"BLOCK_M": 64}, regime="large")
    assert large.specialisation() == {"a_ptr": "*fp16:16", "M": "i32"}


def test_integers_that_nobody_gave_are_taken_for_divisible_by_16_and_noted() -> None:
    space = described(sets={"BLOCK_M": 64}, args={"a_ptr": "*fp16"})
    assert space.specialisation()["M"] == "i32:16"
    assert any("divisible by 16: M (--arg" in note for note in space.notes)


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (4096, "i32:16"), (4097, "i32"), (1, "i32:1"), (0, "i32:16"), (1 << 40, "i64:16"), (2**31, "i64:16"),
        (2**31 - 1, "i32"), (-(2**31), "i32:16"), (True, "i1"), (1.5, "fp32"), (None, "None"), ("*bf16", "*bf16:16"),
        ("*bf16:1", "*bf16:1"), ("i32", "i32"), ("tensordesc<fp16[1, 2]>", "tensordesc<fp16[1, 2]>"),
    ],
)  # fmt: skip
def test_what_the_compiler_knows_of_an_argument_is_spelled_as_triton_does(value: Value, spelled: str) -> None:
    assert describe_argument(value) == spelled


# --- what is asked for by its flag ------------------------------------------------------------------------------------


def test_constexprs_without_a_value_are_asked_for_with_set_each() -> None:
    kernel = inspected("def f(x, BLOCK_M: constexpr, BLOCK_N: constexpr): x + 1")
    error = refusal(kernel)
    assert isinstance(error, NeedsHelp)
    assert "BLOCK_M and BLOCK_N of kernel 'f'" in str(error)
    for flag in ("--set BLOCK_M=… --set BLOCK_N=…", "--config FILE.json", "--derive NAME=EXPRESSION", "probe file"):
        assert flag in str(error)


def test_arguments_whose_type_does_not_show_are_asked_for_with_arg_each() -> None:
    kernel = inspected("def f(first, second): g(first, second)")
    error = refusal(kernel)
    assert isinstance(error, NeedsHelp)
    assert "first and second of kernel 'f'" in str(error)
    assert "--arg first=VALUE --arg second=VALUE" in str(error)
    assert "*bf16" in str(error)
    assert "i32:16" in str(error)


def test_pointers_are_asked_for_with_a_pointers_type() -> None:
    assert "--arg a_ptr='*bf16'" in str(refusal(sets={"BLOCK_M": 64}))


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overrides", [{"sets": {"BLOK_M": 1}}, {"domains": {"BLOK_M": (1, 2)}}])
def test_an_unknown_knob_is_refused_with_the_known_ones_and_the_nearest(overrides: dict[str, Any]) -> None:
    error = refusal(**overrides)
    assert isinstance(error, UnknownKnob)
    assert "has no knob 'BLOK_M' (it has BLOCK_M, BLOCK_N, SPLIT, " in str(error)
    assert str(error).endswith("Did you mean BLOCK_M?")


@pytest.mark.parametrize(
    ("overrides", "telling"),
    [
        ({"domains": {"M": (1, 2)}}, "M of kernel 'gemm' is a run-time argument, not a knob; give its value with --"),
        ({"domains": {"BLOCK_M": ()}}, "the domain of BLOCK_M is empty; give at least one value: --domain BLOCK_M="),
        ({"args": {"K": 1}}, "'K'"),
        ({"derive": {"K": "1"}}, "'K'"),
        ({"regime": "large"}, "there is no regime 'large' (the probe file has none)"),
        ({"grid": "('wide',)"}, "whole numbers were expected"),
        ({"grid": "(N,)"}, "N"),
        ({"derive": {"SPLIT": "BLOCK_N + 1", "BLOCK_N": "SPLIT"}}, "BLOCK_N, SPLIT depend on each other"),
        ({"derive": {"SPLIT": "(1, 2)"}}, "the derived value SPLIT is a tuple"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_as_asked_is_refused_with_the_word_that_broke_it(
    overrides: dict[str, Any], telling: str
) -> None:
    given = {"sets": {"BLOCK_M": 64}, "args": {"a_ptr": "*fp16", "M": 64}}
    assert telling in str(refusal(**given | overrides))


def test_what_a_heuristic_computes_can_be_neither_set_nor_turned() -> None:
    kernel = inspected("def f(x, EVEN: constexpr): x + 1", heuristic=("EVEN",))
    assert "EVEN" not in described(kernel, args={"x": "*fp16"}).knobs
    for overrides in ({"sets": {"EVEN": True}}, {"domains": {"EVEN": (True, False)}}):
        assert "computed by @triton.heuristics" in str(refusal(kernel, **overrides))


# --- strides ---------------------------------------------------------------------------------------------------------


def strided(columns: str, args: dict[str, Value] | None = None) -> list[str]:
    """Notes on strides of a kernel whose columns are written so."""
    inspection = inspected(f"""
    def k(x_ptr, stride_m, stride_n, BLOCK: constexpr = 64):
        rows = gl.arange(0, BLOCK)
        gl.load(x_ptr + rows[:, None] * stride_m + {columns})
    """)
    given: dict[str, Value] = {"x_ptr": "*bf16", **(args or {})}
    return [note for note in described(inspection, args=given).notes if "stride is" in note]


def test_a_stride_that_could_be_one_is_asked_about_and_the_rows_is_not_named() -> None:
    assert strided("rows[None, :] * stride_n") == [
        "no stride is known to be 1. If one is 1 where you launch the kernel, give it, or this is another program "
        "than the one you launch: --arg stride_n=1, for one"
    ]
    assert strided("rows[None, :] * stride_n", args={"stride_m": 1}) == []


def test_nothing_is_said_of_strides_where_the_columns_have_none() -> None:
    assert strided("rows[None, :]", args={"stride_n": 7}) == []
    assert strided("rows[None, :] + stride_n", args={"stride_n": 7}) == []


# --- what host code computes -----------------------------------------------------------------------------------------


def test_a_number_that_host_code_needs_is_asked_for_by_its_flag() -> None:
    given = {"args": {"a_ptr": "*fp16"}, "sets": {"BLOCK_M": 64}}
    wrong = refusal(**given, grid="cdiv(M, BLOCK_M)")
    assert str(wrong).splitlines()[0].startswith("'cdiv(M, BLOCK_M)' has no value: unknown name 'M' ")
    assert str(wrong).splitlines()[1:] == ["  Give it: --arg M=…"]
    wrong = refusal(**given, grid="cdiv(M, BLOCK_M) * GROUPS")
    assert str(wrong).splitlines()[1:] == ["  Give them: --set GROUPS=… --arg M=…"]
    assert "--" not in str(refusal(**given, grid="cdiv(BLOCK_M, 0)"))
