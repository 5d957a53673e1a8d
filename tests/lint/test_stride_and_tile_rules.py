"""Rules about strides without a promise and about literal sides of tiles."""

from __future__ import annotations

from pathlib import Path

from linting import HEAD, codes, findings

from gluonmap.lint import LintSettings


def test_strides_are_looked_at_where_some_are_assumed_and_only_if_asked(tmp_path: Path) -> None:
    text = HEAD + (
        "@triton.jit\n"
        "def kernel(x_ptr, y_ptr, n, stride_x, stride_y, stride_b, stride_w: tl.int64, B: tl.constexpr):\n"
        "    tl.assume(stride_x > 0)\n"
        "    pid = tl.program_id(0)\n"
        "    offs = tl.arange(0, B)\n"
        "    x = tl.load(x_ptr + offs * stride_x + pid * stride_b + offs * stride_w, mask=offs < n)\n"
        "    tl.store(y_ptr + stride_y * offs, x, mask=offs < n)\n"
    )
    (item,) = findings(tmp_path, text)
    assert (item.code, item.mend) == ("GM203", "tl.assume(stride_y > 0)")
    assert "assumes that 1 of 4 strides are positive and leaves out stride_y:" in item.message
    assert findings(tmp_path, text, LintSettings()) == ()
    assert codes(tmp_path, text.replace("    tl.assume(stride_x > 0)\n", "")) == []


def test_numbers_in_tiles_are_found_from_64_on_next_to_parameters(tmp_path: Path) -> None:
    text = HEAD + (
        "@triton.jit\n"
        "def kernel(x_ptr, BLOCK_M: tl.constexpr):\n"
        "    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)\n"
        "    bits = tl.zeros((BLOCK_M, 32), tl.int32) + tl.arange(0, 256)\n"
        "    cols = tl.program_id(1) * 128 + tl.arange(0, 128)\n"
        "    tl.store(x_ptr + rows[:, None] + cols[None, :], tl.sum(bits))\n"
    )
    (item,) = findings(tmp_path, text)
    assert (item.code, item.line, item.column) == ("GM204", 8, 50)
    assert "has a literal side of 128 next to BLOCK_M:" in item.message
