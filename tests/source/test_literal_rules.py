from __future__ import annotations

from gluonmap.constraints.expressions import evaluate
from gluonmap.model.candidate import Value
from gluonmap.model.inspection import FunctionSource, LiteralRule, Parameter
from gluonmap.model.verdict import Location
from gluonmap.source.literal_rules import read_literal_rules


def rules(
    signature: str,
    body: str,
    *helpers: str,
    warp_size: int = 64,
    constants: dict[str, Value] | None = None,
    heuristics: str = "",
) -> tuple[LiteralRule, ...]:
    """The rules of a kernel whose upper-case parameters and `num_warps` are constexpr."""
    sources = [f"def kernel({signature}):\n    {body}\n", *helpers]
    names = [source.split("def ", 1)[1].split("(", 1)[0] for source in sources]
    calls = {name: index for index, name in enumerate(names)}
    parameters = [
        Parameter(name, name.isupper() or name == "num_warps", heuristic=name in heuristics.split())
        for name in (part.strip() for part in signature.split(","))
    ]
    functions = [
        FunctionSource(name, "kernel.py", 1, source, calls, constants or {})
        for name, source in zip(names, sources, strict=True)
    ]
    return read_literal_rules(functions, parameters, warp_size)


def texts(*arguments: str, **options: object) -> list[str]:
    return [rule.text for rule in rules(*arguments, **options)]  # type: ignore[arg-type]


def expressions(*arguments: str, **options: object) -> list[str]:
    return [rule.expression for rule in rules(*arguments, **options)]  # type: ignore[arg-type]


LINEAR = """\
layout: gl.constexpr = gl.DistributedLinearLayout(
        reg_bases=[[0, 1], [0, 2], [0, 4], [0, 16], [0, 128], [64, 0], [128, 0]],
        lane_bases=[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 8]],
        warp_bases=[[0, 32], [0, 64], [32, 0]],
        block_bases=[],
        shape=[BLOCK_M, BLOCK_N],
    )
    x = gl.convert_layout(a, layout)"""

USE = "\n    x = gl.arange(0, 64, layout=layout)"


def blocked(warps: str, threads: str = "[8, 8]") -> str:
    return f"layout: gl.constexpr = gl.BlockedLayout([1, 1], {threads}, {warps}, [1, 0]){USE}"


# ---- linear layouts


def test_a_linear_layout_demands_extents_and_warps() -> None:
    found = rules("a, BLOCK_M, BLOCK_N", LINEAR)
    assert [(rule.text, rule.expression, rule.knobs, rule.location.line) for rule in found] == [
        ("the bases span 256, so BLOCK_M = 256", "BLOCK_M == 256", ("BLOCK_M",), 1),
        ("the bases span 256, so BLOCK_N = 256", "BLOCK_N == 256", ("BLOCK_N",), 1),
        ("basis 128 needs BLOCK_M > 128", "BLOCK_M > 128", ("BLOCK_M",), 2),
        ("basis 128 needs BLOCK_N > 128", "BLOCK_N > 128", ("BLOCK_N",), 2),
        ("3 warp bases mean num_warps = 8", "num_warps == 8", ("num_warps",), 4),
    ]
    assert found[0].location == Location("kernel", "kernel.py", 1)


def test_the_arguments_may_be_positional_and_come_by_other_names() -> None:
    body = "bases: gl.constexpr = [[1], [2]]\n    lanes: gl.constexpr = bases\n    SCALE: gl.constexpr = 32\n    "
    body += "layout: gl.constexpr = gl.DistributedLinearLayout([], lanes, [], [], [BLOCK // SCALE])" + USE
    assert expressions("a, BLOCK", body, warp_size=4) == ["num_warps == 1", "BLOCK // 32 > 2", "BLOCK // 32 == 4"]


def test_bases_that_repeat_cover_no_more() -> None:
    body = "layout: gl.constexpr = gl.DistributedLinearLayout([[1], [2], [3]], [[2], [0]], [[0]], [], [BLOCK])" + USE
    assert "the bases span 4, so BLOCK = 4" in texts("a, BLOCK", body, warp_size=4)


def test_a_constant_extent_that_fits_demands_nothing() -> None:
    body = "layout: gl.constexpr = gl.DistributedLinearLayout([[1], [2]], [], [[4]], [], [8])" + USE
    assert texts("a", body, warp_size=1) == ["1 warp basis means num_warps = 2"]


def test_lane_bases_for_another_warp_size_can_never_be_met() -> None:
    body = "layout: gl.constexpr = gl.DistributedLinearLayout([], [[1], [2]], [], [], [4])" + USE
    found = rules("a", body, warp_size=64)
    assert ("2 lane bases mean warps of 4 lanes, the target has 64", "False") in [
        (rule.text, rule.expression) for rule in found
    ]


def test_bases_that_do_not_resolve_demand_nothing() -> None:
    body = "layout: gl.constexpr = gl.DistributedLinearLayout(make(), [], make(), [], [BLOCK])" + USE
    assert rules("a, BLOCK", body, warp_size=1) == ()


# ---- warps and lanes


def test_literal_warps_mean_one_number_of_warps() -> None:
    assert texts("a", blocked("[4, 1]")) == ["warps_per_cta [4, 1] means num_warps = 4"]
    assert expressions("a", blocked("[4, 2]")) == ["num_warps == 8"]


def test_warps_made_of_num_warps_demand_what_can_fail() -> None:
    assert expressions("a, num_warps", blocked("[2, num_warps // 2]")) == ["num_warps == 2 * (num_warps // 2)"]


def test_warps_that_always_fit_demand_nothing() -> None:
    assert rules("a, num_warps", blocked("[num_warps, 1]")) == ()
    assert rules("a", blocked("[gl.num_warps(), 1]")) == ()


def test_warps_from_another_knob_tie_it_to_num_warps() -> None:
    found = rules("a, WARPS", blocked("[WARPS, 1]"))
    assert [(rule.expression, rule.knobs) for rule in found] == [("num_warps == WARPS", ("WARPS", "num_warps"))]


def test_threads_per_warp_for_another_warp_size_can_never_be_met() -> None:
    assert expressions("a", blocked("[gl.num_warps(), 1]", "[4, 8]"), warp_size=32) == []
    found = rules("a", blocked("[gl.num_warps(), 1]", "[8, 8]"), warp_size=32)
    assert [(rule.text, rule.expression) for rule in found] == [
        ("threads_per_warp [8, 8] means warps of 64 lanes, the target has 32", "False")
    ]


def test_a_matrix_layout_demands_its_warps_and_ignores_the_option() -> None:
    body = "SHAPE: gl.constexpr = [32, 32, 64]\n    layout: gl.constexpr = gl.amd.AMDMFMALayout(\n"
    body += "        version=4, instr_shape=SHAPE, transposed=True,\n        warps_per_cta=[2, 2])" + USE
    found = rules("a", body)
    assert [(rule.text, rule.expression, rule.knobs, rule.location.line) for rule in found] == [
        (
            "instr_shape [32, 32, 64] is a literal: matrix_instr_nonkdim is not used",
            "True",
            ("matrix_instr_nonkdim",),
            3,
        ),
        ("warps_per_cta [2, 2] means num_warps = 4", "num_warps == 4", ("num_warps",), 4),
    ]


def test_an_instruction_shape_from_a_knob_is_no_literal() -> None:
    body = "layout: gl.constexpr = gl.amd.AMDMFMALayout(4, [DIM, DIM, 64], True, [2, 2])" + USE
    assert expressions("a, DIM", body) == ["num_warps == 4"]


def test_both_spellings_of_a_wmma_layout_are_read() -> None:
    old = "layout: gl.constexpr = gl.amd.AMDWMMALayout(3, True, [2, 2])" + USE
    new = "layout: gl.constexpr = gl.amd.AMDWMMALayout(3, True, [[0, 1], [1, 0]])" + USE
    assert expressions("a", old) == ["num_warps == 4"]
    assert expressions("a", new) == ["num_warps == 4"]


def test_an_nvidia_matrix_layout_demands_its_warps() -> None:
    body = "layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])" + USE
    assert texts("a", body, warp_size=32) == ["warps_per_cta [4, 1] means num_warps = 4"]


# ---- where a layout counts


def test_a_layout_that_nothing_uses_demands_nothing() -> None:
    assert rules("a", "layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])") == ()


def test_a_layout_inside_another_counts_where_that_is_used() -> None:
    body = "mma: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])\n"
    body += "    layout: gl.constexpr = gl.SliceLayout(0, mma)"
    assert rules("a", body) == ()
    assert expressions("a", body + USE) == ["num_warps == 4"]


def test_a_condition_on_knobs_becomes_part_of_the_rule() -> None:
    body = "if WIDE:\n        x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [8], [0]))\n"
    body += "    elif TILE > 4:\n        x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [4], [0]))"
    found = rules("a, WIDE, TILE", body)
    assert [(rule.text, rule.expression, rule.knobs) for rule in found] == [
        (
            "warps_per_cta [8] means num_warps = 8 (if WIDE)",
            "not WIDE or num_warps == 8",
            ("WIDE", "num_warps"),
        ),
        (
            "warps_per_cta [4] means num_warps = 4 (if not WIDE and TILE > 4)",
            "not (not WIDE and TILE > 4) or num_warps == 4",
            ("WIDE", "TILE", "num_warps"),
        ),
    ]


def test_a_rule_under_a_condition_holds_where_the_condition_does_not() -> None:
    body = "if TILE == 64:\n        x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [8], [0]))"
    (rule,) = rules("a, TILE", body)
    assert evaluate(rule.expression, {"TILE": 64, "num_warps": 8}) is True
    assert evaluate(rule.expression, {"TILE": 64, "num_warps": 4}) is False
    assert evaluate(rule.expression, {"TILE": 32, "num_warps": 4}) is True


def test_both_branches_of_a_condition_of_the_running_kernel_are_compiled() -> None:
    body = "i = gl.program_id(0)\n    if i * TILE < n:\n"
    body += "        x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [8], [0]))"
    assert expressions("a, n, TILE", body) == ["num_warps == 8"]


def test_code_under_an_unknown_condition_demands_nothing() -> None:
    body = "if n > 4:\n        x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [8], [0]))"
    assert rules("a, n", body) == ()


def test_code_behind_a_return_holds_only_where_the_return_is_not_taken() -> None:
    body = "if EMPTY:\n        return\n    x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [8], [0]))"
    assert expressions("a, EMPTY", body) == ["EMPTY or num_warps == 8"]


def test_a_variable_that_two_branches_set_is_chosen_by_the_condition() -> None:
    body = "if TALL:\n        W: gl.constexpr = [4, 1]\n    else:\n        W: gl.constexpr = [1, 8]\n    "
    body += blocked("W")
    (rule,) = rules("a, TALL", body)
    assert evaluate(rule.expression, {"TALL": True, "num_warps": 4}) is True
    assert evaluate(rule.expression, {"TALL": False, "num_warps": 4}) is False
    assert evaluate(rule.expression, {"TALL": False, "num_warps": 8}) is True


def test_a_layout_that_two_branches_set_demands_what_its_branch_does() -> None:
    body = "if TALL:\n        layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])\n"
    body += "    else:\n        layout: gl.constexpr = gl.BlockedLayout([1], [64], [8], [0])" + USE
    assert expressions("a, TALL", body) == ["not TALL or num_warps == 4", "TALL or num_warps == 8"]


def test_what_a_loop_changes_is_not_guessed() -> None:
    body = "w = 1\n    for i in range(0, n):\n        w = w * 2\n    " + blocked("[w, 1]")
    assert rules("a, n", body) == ()


def test_a_loop_is_compiled_once_whatever_its_count() -> None:
    body = "for i in range(0, n):\n        x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [4], [0]))"
    assert expressions("a, n", body) == ["num_warps == 4"]


def test_an_unrolled_loop_without_turns_demands_nothing() -> None:
    body = "for i in gl.static_range(TURNS):\n        x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [4], [0]))"
    assert expressions("a, TURNS", body) == ["TURNS <= 0 or num_warps == 4"]


def test_what_a_heuristic_computes_is_no_part_of_a_rule() -> None:
    body = "if EVEN:\n        x = gl.arange(0, 64, gl.BlockedLayout([1], [64], [8], [0]))"
    assert rules("a, EVEN", body, heuristics="EVEN") == ()


# ---- assertions, constants, helpers


def test_an_assertion_on_knobs_is_a_rule() -> None:
    body = 'lanes: gl.constexpr = 64 * gl.num_warps()\n    gl.static_assert(TILE >= PER * lanes, "TILE too small")'
    found = rules("a, TILE, PER", body)
    assert [(rule.text, rule.expression, rule.knobs) for rule in found] == [
        (
            "static_assert(TILE >= PER * (64 * num_warps)): TILE too small",
            "TILE >= PER * (64 * num_warps)",
            ("TILE", "PER", "num_warps"),
        )
    ]


def test_an_assertion_outside_the_language_is_left_out() -> None:
    assert rules("a, T", "gl.static_assert(a.dtype == gl.float32)\n    gl.static_assert(T & 1 == 0)") == ()


def test_an_assertion_against_none_is_understood() -> None:
    assert expressions("a, MODE", "tl.static_assert(MODE is not None)") == ["MODE != None"]


def test_functions_of_the_language_keep_their_meaning() -> None:
    body = "gl.static_assert(gl.cdiv(N, 4) == triton.next_power_of_2(min(N, 8)))"
    assert expressions("a, N", body) == ["cdiv(N, 4) == next_power_of_2(min(N, 8))"]


def test_constants_of_the_module_are_used() -> None:
    constants: dict[str, Value] = {"WARPS": "[4, 2]", "cfg.LIMIT": 128}
    body = "gl.static_assert(TILE <= cfg.LIMIT)\n    " + blocked("WARPS")
    assert expressions("a, TILE", body, constants=constants) == ["TILE <= 128", "num_warps == 8"]


def test_a_negative_constant_keeps_its_sign_in_a_power() -> None:
    (rule,) = rules("a, N", "B: gl.constexpr = -2\n    gl.static_assert(B ** 2 == N)")
    assert evaluate(rule.expression, {"N": 4}) is True


def test_a_helper_demands_in_terms_of_the_kernels_knobs() -> None:
    helper = "def helper(x, SIZE, WARPS=4):\n    gl.static_assert(SIZE % 16 == 0)\n    "
    helper += "y = gl.arange(0, 64, layout=gl.BlockedLayout([1], [64], [WARPS], [0]))\n"
    found = rules("a, TILE", "helper(a, SIZE=TILE // 2)", helper)
    assert [(rule.expression, rule.knobs, rule.location) for rule in found] == [
        ("TILE // 2 % 16 == 0", ("TILE",), Location("helper", "kernel.py", 1)),
        ("num_warps == 4", ("num_warps",), Location("helper", "kernel.py", 2)),
    ]


def test_a_helper_that_gets_what_is_unknown_demands_nothing_of_it() -> None:
    helper = "def helper(SIZE):\n    gl.static_assert(SIZE % 16 == 0)\n"
    assert rules("a, n", "helper(n)", helper) == ()


def test_a_layout_given_to_a_helper_counts_where_the_helper_uses_it() -> None:
    body = "layout: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])\n    helper(layout)"
    assert rules("a", body, "def helper(L):\n    pass\n") == ()
    assert expressions("a", body, "def helper(L):\n    x = gl.arange(0, 64, layout=L)\n") == ["num_warps == 4"]


def test_a_helper_that_calls_itself_is_read_once() -> None:
    helper = "def helper(SIZE):\n    gl.static_assert(SIZE > 1)\n    helper(SIZE // 2)\n"
    assert expressions("a, TILE", "helper(TILE)", helper) == ["TILE > 1"]


def test_a_helper_that_nothing_calls_demands_nothing() -> None:
    assert rules("a, TILE", "pass", "def helper(SIZE):\n    gl.static_assert(1 > 2)\n") == ()


def test_text_that_is_no_function_has_no_rules() -> None:
    assert read_literal_rules([FunctionSource("kernel", "kernel.py", 1, "def kernel(")], [], 64) == ()
    assert read_literal_rules([], [], 64) == ()
