"""Ranks of lines of code, and the functions of a file."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gluonmap.model.verdict import Location
from gluonmap.source.code_lines import absolute_line, code_line, find_function, physical_line

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
