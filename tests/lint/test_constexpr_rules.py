"""The rule about constexpr parameters that a kernel never reads."""

from __future__ import annotations

from pathlib import Path

from linting import HEAD, codes, findings


def test_what_the_compiler_or_the_host_reads_is_read(tmp_path: Path) -> None:
    text = HEAD + (
        "@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (1, 2)], key=['n', 'BUCKET'])\n"
        "@triton.jit\n"
        "def kernel(x_ptr, n, BUCKET: tl.constexpr, SPLIT: tl.constexpr, NAME: tl.constexpr, _OLD: tl.constexpr,\n"
        "           num_stages: tl.constexpr, waves_per_eu: tl.constexpr, LOST: tl.constexpr):\n"
        "    tl.store(x_ptr + tl.program_id(0), n)\n"
        "shown = named(kernel, name_key='NAME')\n"
        "grid = lambda META: (META['SPLIT'],)\n"
    )
    (item,) = findings(tmp_path, text)
    assert (item.code, item.line) == ("GM201", 7)
    assert item.message == "LOST of kernel is never read: each of its values compiles the same program again"


HANDED = """
from helpers import uses, ignores

@triton.jit
def again(x, A: tl.constexpr):
    return again(x, A)

@triton.jit
def kernel(x_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(x_ptr + pid, uses(pid, A) + ignores(pid, B) + unknown(pid, C) + again(pid, D))
"""


def test_what_is_handed_on_is_read_where_the_other_function_reads_it(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(
        HEAD + "@triton.jit\ndef uses(x, V: tl.constexpr):\n    return x + V\n\n\n"
        "@triton.jit\ndef ignores(x, V: tl.constexpr):\n    return x\n"
    )
    items = findings(tmp_path, HEAD + HANDED)
    assert [item.message.split(":")[0] for item in items] == [
        "B of kernel only goes to functions that never read it",
        "D of kernel only goes to functions that never read it",
    ]


def test_helpers_methods_and_other_jits_are_left_alone(tmp_path: Path) -> None:
    text = """
    import numba
    import triton
    import triton.language as tl

    @numba.jit
    def other(x, A: "constexpr"):
        return tl.program_id(0)

    class Loader:
        @triton.jit
        def load(self, A: tl.constexpr):
            return tl.program_id(0)

    @triton.jit
    def helper(x, A: tl.constexpr):
        return x + tl.program_id(0)

    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr, helper(tl.program_id(0), 1))
    """
    assert codes(tmp_path, text) == []
