"""Places where a kernel reads a parameter."""

from __future__ import annotations

from kernel_sources import linked_functions

from gluonmap.source.reads import find_reads


def lines_read(parameter: str, *sources: str) -> list[tuple[str, int]]:
    return [(item.function, item.line) for item in find_reads(linked_functions(*sources), parameter)]


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
