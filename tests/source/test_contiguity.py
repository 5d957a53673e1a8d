"""Strides that could be 1: every index in their sums has a stride."""

from __future__ import annotations

import pytest
from inspections import inspected

from gluonmap.source import contiguity

STRIDES = ("stride_m", "stride_n")
ROWS = """
    def k(x_ptr, y_ptr, M, N, stride_m, stride_n, stride_z, BLOCK: constexpr):
        rows = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK)
        columns = gl.arange(0, BLOCK)
        both = rows[:, None] * stride_m + columns[None, :] * stride_n
        mask = (rows[:, None] < M) & (columns[None, :] + BLOCK < N)
        gl.store(y_ptr + gl.program_id(1) * stride_z, 0)
        {access}
"""


@pytest.mark.parametrize(
    ("access", "could", "likely"),
    [
        ("gl.load(x_ptr + rows[:, None] * stride_m + columns[None, :], mask=mask)", ["stride_n"], ["stride_n"]),
        ("gl.load(x_ptr + both)", ["stride_m", "stride_n"], ["stride_n"]),
        ("gl.amd.cdna3.buffer_load(x_ptr, both)", ["stride_m", "stride_n"], ["stride_n"]),
        (
            "x = x_ptr + (rows % M)[:, None] * stride_m\n        gl.load(x + columns[None, :])",
            ["stride_n"],
            ["stride_n"],
        ),
    ],
)
def test_a_stride_beside_an_index_without_one_is_the_distance_of_rows(
    access: str, could: list[str], likely: list[str]
) -> None:
    functions = inspected(ROWS.replace("{access}", access)).functions
    assert list(contiguity.open_strides(functions, [*STRIDES, "stride_z"])) == could
    assert list(contiguity.likely_units(functions, [*STRIDES, "stride_z"])) == likely


def test_strides_of_rows_alone_could_be_one_and_none_of_them_is_named() -> None:
    functions = inspected("""
    def k(x_ptr, stride_m, BLOCK: constexpr):
        rows = gl.arange(0, BLOCK)
        gl.load(x_ptr + rows[:, None] * stride_m)
    """).functions
    assert contiguity.open_strides(functions, ["stride_m"]) == ("stride_m",)
    assert contiguity.likely_units(functions, ["stride_m"]) == ()


def test_a_descriptor_whose_last_stride_is_written_as_one_leaves_none_open() -> None:
    functions = inspected("""
    def k(x_ptr, M, N, stride_m, BLOCK: constexpr):
        desc = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[stride_m, 1], block_shape=[BLOCK, BLOCK])
        desc.load([0, 0])
    """).functions
    assert contiguity.open_strides(functions, ["stride_m"]) == ()


def test_a_stride_that_goes_elsewhere_could_be_one() -> None:
    functions = inspected("""
    def k(x_ptr, stride_m, BLOCK: constexpr):
        helper(x_ptr, stride_m)
    """).functions
    assert contiguity.open_strides(functions, ["stride_m"]) == ("stride_m",)
