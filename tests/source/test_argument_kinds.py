"""Kinds of run-time arguments, from annotations, uses and names."""

from __future__ import annotations

from kernel_sources import linked_functions

from gluonmap.model.inspection import Parameter
from gluonmap.source.argument_kinds import infer_argument_kinds


def kinds(signature: str, body: str, *helpers: str, annotations: dict[str, str] | None = None) -> dict[str, str | None]:
    names = [name.strip() for name in signature.split(",")]
    parameters = [Parameter(name, False, annotation=(annotations or {}).get(name, "")) for name in names]
    return infer_argument_kinds(linked_functions(f"def kernel({signature}):\n    {body}\n", *helpers), parameters)


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


def test_a_factor_of_loaded_values_has_no_kind() -> None:
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


def test_names_decide_where_no_use_does() -> None:
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
    source = linked_functions("def kernel(a, B):\n    gl.load(a)\n")
    assert infer_argument_kinds(source, [Parameter("a", False), Parameter("B", True)]) == {"a": "pointer"}
