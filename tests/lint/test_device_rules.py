"""Rules about queries of the device at import and about APIs that the target lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes, findings

from gluonmap.lint import lint


def test_a_question_is_followed_through_functions_and_modules(tmp_path: Path) -> None:
    (tmp_path / "arch.py").write_text(
        "import triton\n"
        "try:\n    _ARCH = triton.runtime.driver.active.get_current_target().arch\n"
        "except RuntimeError:\n    _ARCH = None\n\n\n"
        "def get_arch():\n    return _ARCH\n\n\ndef name():\n    return 'triton'\n"
    )
    text = """
    import triton
    from arch import get_arch, name
    from triton._internal_testing import is_hip
    import arch as mine

    IS_NEW = get_arch() == "gfx950"
    NAME = name()
    if is_hip():
        WARP = 64
    later = lambda: get_arch()

    @triton.autotune(configs=configs(mine.get_arch()), key=[])
    def kernel(x, y=2):
        return get_arch()

    class Options:
        arch = mine.get_arch()

    if __name__ == "__main__":
        print(get_arch())
    """
    assert codes(tmp_path, text, name="module.py") == [("GM301", n) for n in (7, 9, 13, 18)]
    assert codes(tmp_path, text, name="test_module.py") == []
    assert codes(tmp_path, text, name="a-script.py") == []
    assert codes(tmp_path, text + "    import sys\n    N = int(sys.argv[1])\n", name="module.py") == []
    assert [item.line for item in lint([tmp_path / "arch.py"]).findings] == [3]


GLUON = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
{above}
@gluon.jit
def {name}(a, s, b, t, acc, ON: gl.constexpr):
    '''{words}'''
    {line}
"""
SCALED = "return gl.amd.cdna4.mfma_scaled(a, s, 'e2m1', b, t, 'e2m1', acc)"


@pytest.mark.parametrize(
    ("path", "name", "words", "above", "line", "expected"),
    [
        ("kernels/cdna3/gemm.py", "gemm", "", "", SCALED, 1),
        ("kernels/gfx942/gemm.py", "gemm", "", "", SCALED, 1),
        ("kernels/cdna4/gemm.py", "gemm", "", "", SCALED, 0),
        ("gemm.py", "gemm_gfx942", "", "", SCALED, 1),
        ("gemm.py", "gemm", "For gfx942.", "", SCALED, 1),
        ("gemm.py", "gemm", "Not for gfx942.", "", SCALED, 0),
        ("gemm.py", "gemm", "", "# target: gfx942", SCALED, 1),
        ("gemm.py", "gemm", "", "", SCALED, 0),
        ("kernels/cdna3/gemm.py", "gemm", "", "", f"if ON:\n        {SCALED}", 0),
        ("kernels/cdna3/gemm.py", "gemm", "", "", "return gl.amd.cdna4.mfma(a, b, acc)", 0),
        ("kernels/cdna3/gemm.py", "gemm", "", "", "return gl.amd.cdna3.mfma(a, b, acc)", 0),
    ],
)
def test_an_api_that_the_target_lacks_is_found_if_the_kernel_names_its_target(
    tmp_path: Path, path: str, name: str, words: str, above: str, line: str, expected: int
) -> None:
    text = GLUON.format(above=above, name=name, words=words, line=line)
    assert [item.code for item in findings(tmp_path, text, name=path)] == ["GM302"] * expected


def test_a_helper_in_another_file_counts_for_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(GLUON.format(above="", name="step", words="", line=SCALED))
    kernel = "from steps import step\n" + GLUON.format(
        above="", name="gemm_cdna3", words="", line="return step(a, s, b, t, acc, ON)"
    )
    (item,) = findings(tmp_path, kernel)
    assert (item.line, item.message) == (
        7,
        "cdna4.mfma_scaled (steps.py:8) does not exist on gfx942, which gemm_cdna3 is for by its name",
    )
