from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gluonmap.model.inspection import FunctionSource, Parameter
from gluonmap.model.verdict import Location
from gluonmap.source.argument_kinds import infer_argument_kinds
from gluonmap.source.code_lines import absolute_line, code_line, find_function, physical_line
from gluonmap.source.reads import find_reads
from gluonmap.source.syntax import tree_hash
from gluonmap.source.target_api import ApiUse, excluded_targets, find_api_uses

KERNEL = '''\
@gluon.jit
def scale(
    src,
    dst,
    FACTOR: gl.constexpr,
):
    """Multiply."""
    # the whole row at once
    offsets = gl.arange(0, 64)

    value = gl.load(src + offsets)
    gl.store(dst + offsets, value * FACTOR)
'''


def functions(*sources: str) -> list[FunctionSource]:
    """The sources as functions of one file, each of which can call all the others by name."""
    names = [source.split("def ", 1)[1].split("(", 1)[0] for source in sources]
    calls = {name: index for index, name in enumerate(names)}
    return [FunctionSource(name, "kernel.py", 1, source, calls) for name, source in zip(names, sources, strict=True)]


def lines_read(parameter: str, *sources: str) -> list[tuple[str, int]]:
    return [(item.function, item.line) for item in find_reads(functions(*sources), parameter)]


def kinds(signature: str, body: str, *helpers: str, annotations: dict[str, str] | None = None) -> dict[str, str | None]:
    names = [name.strip() for name in signature.split(",")]
    parameters = [Parameter(name, False, annotation=(annotations or {}).get(name, "")) for name in names]
    return infer_argument_kinds(functions(f"def kernel({signature}):\n    {body}\n", *helpers), parameters)


# ---- hashes


def test_comments_docstrings_and_blank_lines_do_not_change_the_hash() -> None:
    bare = "def f(a):\n    return a + 1\n"
    dressed = '"""Module."""\n\n\n# why\ndef f(a):\n    """Doc."""\n\n    return (a + 1)  # one more\n'
    assert tree_hash(bare) == tree_hash(dressed)


def test_another_constant_changes_the_hash() -> None:
    assert tree_hash("x = 1") != tree_hash("x = 2")
    assert tree_hash("x = 1") != tree_hash("x = True")
    assert tree_hash("x = 1") != tree_hash("x = 1.0")
    assert tree_hash("x = None") != tree_hash("x = ...")


def test_another_name_changes_the_hash() -> None:
    assert tree_hash("def f(): pass") != tree_hash("def g(): pass")


def test_text_that_does_not_parse_is_hashed_as_it_stands() -> None:
    assert tree_hash("def (") == tree_hash("def (")
    assert tree_hash("def (") != tree_hash("def ( ")
    assert len(tree_hash("def (")) == 16


# ---- lines


def test_code_lines_are_counted_from_the_def() -> None:
    assert [code_line(KERNEL, line) for line in (2, 3, 4, 5, 9, 11, 12)] == [0, 1, 2, 3, 4, 5, 6]


def test_a_line_without_code_has_the_rank_of_the_code_above_it() -> None:
    assert code_line(KERNEL, 1) == 0
    assert code_line(KERNEL, 6) == 3
    assert code_line(KERNEL, 7) == 3
    assert code_line(KERNEL, 10) == 4


def test_physical_line_is_the_inverse_of_code_line() -> None:
    assert [physical_line(KERNEL, rank) for rank in range(7)] == [2, 3, 4, 5, 9, 11, 12]


COMMENTS = st.sampled_from(["", "    # a comment", "        # deeper"])


@given(st.lists(st.tuples(st.integers(1, 11), COMMENTS), max_size=6))
def test_inserted_comments_do_not_move_a_code_line(insertions: list[tuple[int, str]]) -> None:
    lines = list(enumerate(KERNEL.splitlines(), 1))
    for position, text in insertions:
        lines.insert(position, (0, text))
    moved = "\n".join(text for _, text in lines)
    for new, (old, _) in enumerate(lines, 1):
        if old in (2, 3, 4, 5, 9, 11, 12):
            assert code_line(moved, new) == code_line(KERNEL, old)


FILE = """\
import triton


def helper(x):
    return x


class Loader:
    @gluon.jit
    def fetch(self):
        return 1


def build():
    @gluon.jit
    def inner(a):
        # here
        return a
    return inner


@triton.autotune(configs=[], key=[])
@gluon.jit
def kernel(a):

    gl.store(a, 1)
"""


def test_find_function_starts_at_the_first_decorator() -> None:
    assert find_function(FILE, "kernel") == (
        "@triton.autotune(configs=[], key=[])\n@gluon.jit\ndef kernel(a):\n\n    gl.store(a, 1)\n",
        22,
    )


def test_find_function_dedents_a_nested_function() -> None:
    assert find_function(FILE, "inner") == ("@gluon.jit\ndef inner(a):\n    # here\n    return a\n", 15)


def test_find_function_understands_a_method() -> None:
    assert find_function(FILE, "Loader.fetch") == ("@gluon.jit\ndef fetch(self):\n    return 1\n", 9)


def test_find_function_prefers_the_outermost_then_the_last() -> None:
    text = "def f():\n    return 1\ndef f():\n    return 2\ndef g():\n    def f():\n        return 3\n"
    assert find_function(text, "f") == ("def f():\n    return 2\n", 3)


def test_find_function_finds_nothing_in_text_that_does_not_parse() -> None:
    assert find_function("def kernel(", "kernel") is None


def test_absolute_line_follows_the_function_through_its_file() -> None:
    assert absolute_line(FILE, Location("kernel", "kernel.py", 1)) == 26
    assert absolute_line("\n\n" + FILE, Location("kernel", "kernel.py", 1)) == 28


def test_absolute_line_of_a_line_that_is_gone_is_none() -> None:
    assert absolute_line(FILE, Location("kernel", "kernel.py", 9)) is None
    assert absolute_line(FILE, Location("missing", "kernel.py", 0)) is None


# ---- reads


def test_a_parameter_that_the_body_never_names_is_not_read() -> None:
    assert lines_read("GROUP", "def kernel(a, GROUP):\n    gl.store(a, 1)\n") == []


def test_a_parameter_is_read_where_the_body_uses_it() -> None:
    assert lines_read("N", "def kernel(a, N):\n    x = gl.arange(0, N)\n    if N > 1:\n        gl.store(a, x)\n") == [
        ("kernel", 1),
        ("kernel", 2),
    ]


def test_a_store_is_no_read() -> None:
    assert lines_read("N", "def kernel(a, N):\n    N = 1\n    gl.store(a, 1)\n") == []


def test_an_alias_that_is_never_read_is_no_read() -> None:
    assert lines_read("N", "def kernel(a, N):\n    half = N // 2\n    gl.store(a, 1)\n") == []


def test_an_alias_that_is_read_is_a_read_where_it_is_made() -> None:
    assert lines_read("N", "def kernel(a, N):\n    half: gl.constexpr = N\n    gl.store(a, half)\n") == [("kernel", 1)]


def test_a_chain_of_aliases_that_ends_in_nothing_is_no_read() -> None:
    assert lines_read("N", "def kernel(a, N):\n    x = N\n    y = x\n    x = y + 1\n    gl.store(a, 1)\n") == []


def test_an_alias_of_one_part_of_a_tuple_is_followed_alone() -> None:
    source = "def kernel(a, N, M):\n    x, y = N, M\n    gl.store(a, y)\n"
    assert lines_read("N", source) == []
    assert lines_read("M", source) == [("kernel", 1)]


def test_passing_to_a_helper_that_does_not_read_it_is_no_read() -> None:
    kernel = "def kernel(a, GROUP):\n    gl.store(a, helper(1, X=GROUP))\n"
    assert lines_read("GROUP", kernel, "def helper(n, X):\n    return n\n") == []


def test_passing_to_a_helper_that_reads_it_is_a_read_in_both() -> None:
    kernel = "def kernel(a, GROUP):\n    gl.store(a, helper(1, GROUP))\n"
    assert lines_read("GROUP", kernel, "def helper(n, X):\n    return n * X\n") == [("kernel", 1), ("helper", 1)]


def test_a_value_is_followed_through_two_helpers() -> None:
    kernel = "def kernel(a, G):\n    outer(a, G)\n"
    outer = "def outer(a, X):\n    inner(a, X * 2)\n"
    assert lines_read("G", kernel, outer, "def inner(a, Y):\n    gl.store(a, 1)\n") == []
    assert lines_read("G", kernel, outer, "def inner(a, Y):\n    gl.store(a, Y)\n") == [
        ("kernel", 1),
        ("outer", 1),
        ("inner", 1),
    ]


def test_a_helper_that_only_hands_a_value_to_itself_does_not_read_it() -> None:
    kernel = "def kernel(a, G):\n    helper(a, G)\n"
    assert lines_read("G", kernel, "def helper(a, X):\n    helper(a, X)\n") == []


def test_what_an_unknown_function_gets_is_read() -> None:
    assert lines_read("G", "def kernel(a, G):\n    unknown(G)\n") == [("kernel", 1)]


def test_arguments_behind_a_star_are_read() -> None:
    kernel = "def kernel(a, G):\n    helper(*(a, G))\n"
    assert lines_read("G", kernel, "def helper(a, X):\n    gl.store(a, 1)\n") == [("kernel", 1)]
    kernel = "def kernel(a, G):\n    helper(a, G)\n"
    assert lines_read("G", kernel, "def helper(a, *rest):\n    gl.store(a, 1)\n") == [("kernel", 1)]


def test_an_annotation_that_names_a_parameter_reads_it() -> None:
    assert lines_read("T", "def kernel(a, T):\n    x: T = 1\n    gl.store(a, x)\n") == [("kernel", 1)]


def test_a_nested_call_reads_although_the_helper_ignores_the_result() -> None:
    kernel = "def kernel(a, G):\n    helper(gl.load(a + G))\n"
    assert lines_read("G", kernel, "def helper(x):\n    return 1\n") == [("kernel", 1)]


# ---- kinds


def test_what_is_loaded_from_and_stored_to_is_a_pointer() -> None:
    found = kinds("src, dst, idx", "gl.store(dst + gl.arange(0, 4), gl.load(src + idx))")
    assert found == {"src": "pointer", "dst": "pointer", "idx": "integer"}


def test_buffer_operations_take_a_pointer_and_integer_offsets() -> None:
    body = "x = gl.amd.cdna3.buffer_load(ptr=a, offsets=o * s)\n    gl.amd.cdna3.buffer_store(x, b, t + o)"
    assert kinds("a, b, o, s, t", body) == {
        "a": "pointer",
        "b": "pointer",
        "o": "integer",
        "s": "integer",
        "t": "integer",
    }


def test_an_element_type_shows_a_pointer() -> None:
    assert kinds("out", "y = x.to(out.type.element_ty)") == {"out": "pointer"}


def test_an_address_in_a_variable_is_followed_to_its_pointer() -> None:
    body = "p = x + gl.program_id(0) * pitch\n    p += 4\n    y = gl.load(p)"
    assert kinds("x, pitch", body) == {"x": "pointer", "pitch": "integer"}


def test_bounds_counts_and_divisors_are_integers() -> None:
    body = "i = gl.program_id(0) * 4 + gl.arange(0, 4)\n    m = i < rows\n    n = gl.cdiv(cols, 4)\n    k = i % heads"
    assert kinds("rows, cols, heads", body) == {"rows": "integer", "cols": "integer", "heads": "integer"}


def test_a_factor_of_loaded_values_is_not_told() -> None:
    assert kinds("x, alpha", "y = gl.load(x) * alpha") == {"x": "pointer", "alpha": None}


def test_blocks_and_coordinates_show_a_descriptor() -> None:
    assert kinds("a, b, c", "x = a.block_type\n    y = b.load([0, 0])\n    tma.async_load(c, [0, 0], bar, buf)") == {
        "a": "descriptor",
        "b": "descriptor",
        "c": "descriptor",
    }


def test_the_use_in_a_helper_counts() -> None:
    found = kinds("x, n", "fetch(x + n)", "def fetch(where):\n    return gl.load(where)\n")
    assert found == {"x": "pointer", "n": "integer"}


def test_names_tell_where_no_use_does() -> None:
    assert kinds("a_ptr, ptr_b, p_c, stride_x, M, n_rows, num_heads, seq_len, batch_size, a_desc, other", "pass") == {
        "a_ptr": "pointer",
        "ptr_b": "pointer",
        "p_c": "pointer",
        "stride_x": "integer",
        "M": "integer",
        "n_rows": "integer",
        "num_heads": "integer",
        "seq_len": "integer",
        "batch_size": "integer",
        "a_desc": "descriptor",
        "other": None,
    }


def test_use_beats_the_name_and_an_annotation_beats_both() -> None:
    assert kinds("stride", "gl.load(stride)") == {"stride": "pointer"}
    assert kinds("stride", "gl.load(stride)", annotations={"stride": "tl.int64"}) == {"stride": "integer"}
    assert kinds("x_ptr", "pass", annotations={"x_ptr": "float"}) == {"x_ptr": None}


def test_constexpr_parameters_have_no_kind() -> None:
    source = functions("def kernel(a, B):\n    gl.load(a)\n")
    assert infer_argument_kinds(source, [Parameter("a", False), Parameter("B", True)]) == {"a": "pointer"}


# ---- targets

GLUON = "from triton.experimental.gluon import language as gl\n"


def apis(body: str, *helpers: str, imports: str = GLUON) -> tuple[ApiUse, ...]:
    return find_api_uses(functions(f"def kernel(a, X):\n    {body}\n", *helpers), {"kernel.py": imports})


def excluded(body: str, *helpers: str, imports: str = GLUON) -> dict[str, str]:
    return {target: use.api for target, use in excluded_targets(apis(body, *helpers, imports=imports)).items()}


def test_a_use_names_its_family_and_its_line() -> None:
    assert apis("x = 1\n    gl.amd.cdna4.mfma_scaled(x)") == (
        ApiUse("cdna4.mfma_scaled", Location("kernel", "kernel.py", 2)),
    )


def test_imports_of_the_file_are_followed() -> None:
    imports = "from triton.experimental.gluon.language.amd import cdna4 as c4\n"
    imports += "from triton.experimental.gluon.language.nvidia.hopper import tma, warpgroup_mma\n"
    imports += "import triton.experimental.gluon.language as ttgl\ncdna = ttgl.amd.cdna3\n"
    body = "c4.mfma(a)\n    tma.async_load(a)\n    warpgroup_mma(a)\n    cdna.buffer_load(a)"
    assert [use.api for use in apis(body, imports=imports)] == [
        "cdna4.mfma",
        "hopper.tma.async_load",
        "hopper.warpgroup_mma",
        "cdna3.buffer_load",
    ]


def test_portable_names_are_no_target_apis() -> None:
    assert apis("gl.store(a, gl.load(a))") == ()


def test_matrix_instructions_of_cdna3_run_on_both_cdna_targets() -> None:
    assert excluded("gl.amd.cdna3.mfma(a)") == {
        "gfx1250": "cdna3.mfma",
        "sm_90": "cdna3.mfma",
        "sm_100": "cdna3.mfma",
    }


def test_scaled_matrix_instructions_need_gfx950() -> None:
    assert set(excluded("gl.amd.cdna4.mfma_scaled(a)")) == {"gfx942", "gfx1250", "sm_90", "sm_100"}


def test_buffer_loads_exclude_only_nvidia_whatever_their_family() -> None:
    for family in ("cdna3", "cdna4", "cdna5", "gfx1250"):
        assert set(excluded(f"gl.amd.{family}.buffer_load(a)")) == {"sm_90", "sm_100"}


def test_buffer_loads_to_shared_memory_run_on_both_cdna_targets() -> None:
    assert set(excluded("gl.amd.cdna4.async_copy.buffer_load_to_shared(a)")) == {"gfx1250", "sm_90", "sm_100"}


def test_tensor_data_movers_need_gfx1250() -> None:
    assert set(excluded("gl.amd.gfx1250.tdm.async_load(a)")) == {"gfx942", "gfx950", "sm_90", "sm_100"}


def test_warp_group_instructions_need_sm_90() -> None:
    assert set(excluded("gl.nvidia.hopper.warpgroup_mma(a)")) == {"gfx942", "gfx950", "gfx1250", "sm_100"}


def test_barriers_run_on_both_nvidia_targets() -> None:
    assert set(excluded("gl.nvidia.blackwell.mbarrier.init(a)")) == {"gfx942", "gfx950", "gfx1250"}


def test_tensor_memory_needs_sm_100() -> None:
    assert set(excluded("gl.nvidia.blackwell.allocate_tensor_memory(a)")) == {"gfx942", "gfx950", "gfx1250", "sm_90"}


def test_a_layout_of_matrix_instructions_excludes_the_other_vendors() -> None:
    assert set(excluded("x = gl.amd.AMDMFMALayout(3)")) == {"gfx1250", "sm_90", "sm_100"}
    assert set(excluded("x = gl.amd.AMDWMMALayout(3)")) == {"gfx942", "gfx950", "sm_90", "sm_100"}
    assert set(excluded("x = gl.NVMMADistributedLayout(3)")) == {"gfx942", "gfx950", "gfx1250"}


def test_a_use_under_a_condition_of_the_compiler_excludes_nothing() -> None:
    body = "if X:\n        gl.amd.cdna4.mfma_scaled(a)\n    else:\n        gl.amd.cdna3.mfma(a)"
    assert [use.conditional for use in apis(body)] == [True, True]
    assert excluded(body) == {}


def test_a_use_under_a_condition_of_the_running_kernel_is_compiled() -> None:
    body = "i = gl.program_id(0) * 2\n    if i < X:\n        gl.amd.cdna4.mfma_scaled(a)"
    assert "gfx942" in excluded(body)


def test_a_helper_that_is_only_called_under_a_condition_excludes_nothing() -> None:
    helper = "def helper(a):\n    gl.amd.cdna4.mfma_scaled(a)\n"
    assert excluded("if X:\n        helper(a)", helper) == {}
    assert "gfx942" in excluded("helper(a)", helper)
