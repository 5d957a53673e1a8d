"""The rule about accesses without a mask for the last tile."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import TAIL, codes

CALL = "def call(x, y, M):\n    kernel[(triton.cdiv(M, 128),)](x, y, M, 4, True, BM=BM)"


@pytest.mark.parametrize(
    ("line", "mask", "host", "expected"),
    [
        ("x = tl.load(x_ptr + rows * K)", "rows < M", "", [("GM202", 10)]),
        ("x = tl.load(x_ptr + rows * K, mask=rows < M)", "None", "", [("GM202", 11)]),
        ("x = tl.load(x_ptr + rows * K, mask=K < 4)", "rows < M", "", [("GM202", 10)]),
        ("x = tl.load(x_ptr + (rows % M) * K)", "rows < M", "", []),
        ("x = tl.load(x_ptr + tl.minimum(rows, M - 1) * K)", "rows < M", "", []),
        ("x = tl.load(x_ptr + rows // 2)", "rows < M", "", []),
        ("x = tl.load(x_ptr + rows * K, mask=K < tl.load(x_ptr))", "rows < tl.load(x_ptr)", "", []),
        ("x = tl.load(x_ptr + rows) if EVEN else tl.load(x_ptr + rows, mask=rows < M)", "rows < M", "", []),
        ("x = K", "None", "", []),
        ("x = tl.cdiv(M, BM)", "None", "", [("GM202", 11)]),
        ("x = tl.cdiv(M, BM)\n    tl.static_assert(BM == 128)", "None", "", []),
        ("x = K", "None", CALL.replace("128", "BM"), [("GM202", 11)]),
        ("x = K", "None", CALL, []),
        ("x = K", "None", CALL.replace("128", "BM").replace("\n", "\n    assert M % BM == 0\n"), []),
        ("x = tl.cdiv(M, BM)", "None", CALL.replace("\n", "\n    y = y[: triton.cdiv(M, 128) * 128]\n"), []),
    ],
)
def test_an_access_needs_the_mask_that_its_tile_has_elsewhere(
    tmp_path: Path, line: str, mask: str, host: str, expected: list[tuple[str, int]]
) -> None:
    text = TAIL.format(line=line, mask=mask, host=host)
    assert [(code, line) for code, line in codes(tmp_path, text) if code == "GM202"] == expected


def test_buffer_operations_have_their_offsets_and_masks_elsewhere(tmp_path: Path) -> None:
    text = """
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl

    @gluon.jit
    def kernel(x_ptr, y_ptr, M, BM: gl.constexpr, L: gl.constexpr):
        rows = gl.program_id(0) * BM + gl.arange(0, BM, layout=L)
        x = gl.amd.cdna3.buffer_load(x_ptr, rows, mask=rows < M)
        gl.amd.cdna3.buffer_store(x, y_ptr, rows)
        gl.amd.cdna3.buffer_store(x, ptr=y_ptr, offsets=rows, mask=rows < M)
    """
    assert codes(tmp_path, text) == [("GM202", 9)]


def test_block_pointers_and_descriptors_have_bounds_of_their_own(tmp_path: Path) -> None:
    text = TAIL.format(
        line="block = tl.make_block_ptr(x_ptr, (M,), (1,), (row,), (BM,), (0,))\n"
        "    x = tl.load(block + rows * 0) + desc.load([row])",
        mask="rows < M",
        host="",
    )
    assert codes(tmp_path, text.replace("M, K", "M, desc, K")) == [("GM201", 6)]
