"""The traps of tuning, found in the text of files; none of the files is imported."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from gluonmap.cli.main import cli
from gluonmap.lint import RULES, LintFinding, LintSettings, chosen_codes, lint
from gluonmap.model.errors import UsageError

REPOSITORY = Path(__file__).resolve().parents[2]
HEAD = "import triton\nimport triton.language as tl\n\n"
EVERY = LintSettings(frozenset(RULES))


def found(folder: Path, text: str, settings: LintSettings = EVERY, name: str = "kernel.py") -> tuple[LintFinding, ...]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return lint([path], settings).findings


def codes(folder: Path, text: str, name: str = "kernel.py") -> list[tuple[str, int]]:
    return [(item.code, item.line) for item in found(folder, text, name=name)]


# ---- docs ------------------------------------------------------------------------------------------------------------


def examples() -> dict[str, list[str]]:
    """Code -> the Python examples in its section of the docs."""
    text = (REPOSITORY / "docs" / "lint.md").read_text()
    sections = re.findall(r"^### (GM\d{3}): ([^\n]+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert {code: title for code, title, _ in sections} == {rule.code: rule.title for rule in RULES.values()}
    return {code: re.findall(r"^```python\n(.*?)^```", body, re.MULTILINE | re.DOTALL) for code, _, body in sections}


@pytest.mark.parametrize("code", RULES)
def test_the_docs_have_a_bad_and_a_good_example_of_each_code(tmp_path: Path, code: str) -> None:
    kinds = [(example.split("\n")[0], {item.code for item in found(tmp_path, example)}) for example in examples()[code]]
    good = [] if code == "GM001" else [("# good", set[str]())]
    assert kinds == [("# bad", {code}), *good]


def test_the_output_in_the_docs_is_what_is_printed() -> None:
    shown = (REPOSITORY / "docs" / "lint.md").read_text()
    assert RULES["GM202"].title in shown
    assert re.search(
        r"^\S+\.py:\d+:\d+ GM202 this store has no mask for offs_m, .*\.\n    Fix: .*\.$", shown, re.MULTILINE
    )


def test_the_projects_own_kernels_probes_and_benchmarks_are_clean() -> None:
    result = lint([REPOSITORY / name for name in ("kernels", "probes", "benchmarks", "gluonmap")], EVERY)
    assert [(item.path, item.line, item.code) for item in result.findings] == []
    assert (result.files, result.ignored) == (result.files, 0)


# ---- configurations --------------------------------------------------------------------------------------------------


def test_knobs_of_amd_as_keywords_are_found_under_any_name_of_triton_alone(tmp_path: Path) -> None:
    text = """
    import triton as t
    from triton import Config
    from mine import Config as Mine
    a = Config({}, num_warps=4, kpack=2)
    b = t.Config({}, matrix_instr_nonkdim=16, waves_per_eu=2)
    c = Mine({}, waves_per_eu=2)
    """
    assert codes(tmp_path, text) == [("GM101", 5), ("GM101", 6), ("GM101", 6)]


def test_maxnreg_in_the_dict_arrives_and_is_no_trap(tmp_path: Path) -> None:
    text = "import triton\na = [triton.Config({'num_stages': 1, 'maxnreg': 64, 'num_ctas': 2}, num_stages=2)]\n"
    assert [item.message.split()[0] for item in found(tmp_path, text)] == ["num_stages", "num_ctas"]


TUNED = (
    HEAD
    + """
{before}
@triton.autotune(configs={configs}, key=["n"]{more})
@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 2, mask=offs < n)
"""
)


@pytest.mark.parametrize(
    ("before", "configs", "more", "expected"),
    [
        ("", "[triton.Config({'BLOCK': 64})]", "", ["GM105"]),
        ("", "[triton.Config({'BLOCK': b}) for b in [64] for w in (4,)]", "", ["GM105"]),
        ("SIZES = [64]", "[triton.Config({'BLOCK': b}) for b in SIZES]", "", ["GM105"]),
        ("SIZES = [64]\nSIZES.append(128)", "[triton.Config({'BLOCK': b}) for b in SIZES]", "", []),
        ("SIZES = [64]\nif HOPPER:\n    SIZES = [64, 128]", "[triton.Config({'BLOCK': b}) for b in SIZES]", "", []),
        ("", "[triton.Config({'BLOCK': b}) for b in (64, 128) if fits(b)]", "", []),
        ("def configs():\n    return [triton.Config({'BLOCK': 64})]", "configs()", "", ["GM105"]),
        ("def configs():\n    if NEW:\n        return []\n    return [triton.Config({})]", "configs()", "", ["GM105"]),
        ("def configs():\n    if NEW:\n        return BOTH\n    return [triton.Config({})]", "configs()", "", []),
        ("", "some_list()", "", []),
        ("", "[]", ", generate_configs='double'", []),
        ("from lists import one", "one([triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 128})])", "", ["GM105"]),
        ("from lists import some", "some([triton.Config({'BLOCK': 64})])", "", ["GM105"]),
        ("from lists import some", "some([triton.Config({'BLOCK': b}) for b in (64, 128)])", "", []),
        ("from lists import cached", "cached()", "", []),
        ("", "[triton.Config({'BLOCK': b}) for b in range(64, 12928, 64)]", "", ["GM106"]),
        ("", "[triton.Config({'BLOCK': b}) for b in range(64, 12864, 64)]", "", []),
        ("", "[triton.Config({'BLOCK': b}) for b in range(64, 12928, 64)]", ", prune_configs_by={}", []),
    ],
)
def test_configurations_are_counted_where_the_text_tells(
    tmp_path: Path, before: str, configs: str, more: str, expected: list[str]
) -> None:
    (tmp_path / "lists.py").write_text(
        "def one(configs):\n    if FAST:\n        return [configs[0]]\n    return [configs[-1]]\n\n\n"
        "def some(configs, first=None):\n    return configs if TUNE else [first or configs[0]]\n\n\n"
        "@remembered\ndef cached():\n    return [1]\n"
    )
    text = TUNED.format(before=before, configs=configs, more=more)
    assert [item.code for item in found(tmp_path, text)] == expected


def test_a_key_that_no_race_reads_is_not_spoken_of(tmp_path: Path) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': 64})]", more="").replace('key=["n"]', "key=[]")
    assert [item.code for item in found(tmp_path, text)] == ["GM105"]


def test_the_budget_is_the_users(tmp_path: Path) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128, 256)]", more="")
    assert [item.code for item in found(tmp_path, text, LintSettings(budget=2))] == ["GM106"]


# ---- the key ---------------------------------------------------------------------------------------------------------

KEYED = (
    HEAD
    + """
SMS = 304


@triton.autotune(configs=[triton.Config({"BM": b}) for b in (64, 128)], key=["C"])
@triton.jit
def kernel(x_ptr, T, C: tl.constexpr, STEPS: tl.constexpr, H: tl.constexpr, HG: tl.constexpr, NUM: tl.constexpr,
           BM: tl.constexpr):
    pid = tl.program_id(0)
    head = pid % H // (H // HG)
    for tile in range(pid, tl.cdiv(T, BM), NUM):
        for step in tl.static_range(STEPS):
            rows = tile * BM + tl.arange(0, BM)
            tl.store(x_ptr + head * C + rows + step, 0.0, mask=rows < T)


def call(x, chunk):
    T, steps = x.shape[0], chunk.bit_length() - 1
    kernel[lambda META: (SMS,)](x, T, C=chunk, STEPS=steps, H=x.shape[1], HG=4, NUM=SMS)
"""
)


def test_a_key_misses_the_size_and_not_what_follows_from_it_or_never_changes(tmp_path: Path) -> None:
    (item,) = found(tmp_path, KEYED)
    assert (item.code, item.line, item.function) == ("GM103", 8, "kernel")
    assert item.message.startswith("key= of kernel misses T (T: loop bound in line 14): ")
    assert item.mend == "add 'T', or a coarser argument that separates the sizes"


def test_a_bound_of_loaded_indices_is_no_size(tmp_path: Path) -> None:
    text = KEYED.replace("0.0, mask=rows < T)", "tl.load(x_ptr, mask=(tl.load(x_ptr) < HG)), mask=rows < T)")
    assert "misses T (" in found(tmp_path, text)[0].message


def test_a_key_that_holds_all_of_it_is_fine(tmp_path: Path) -> None:
    assert codes(tmp_path, KEYED.replace('key=["C"]', 'key=["C", "T"]')) == []


def test_the_grid_of_the_probe_file_counts(tmp_path: Path) -> None:
    (tmp_path / "kernel_probe.py").write_text('GRID = "(cdiv(n, BLOCK) * batch,)"\n')
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128)]", more="")
    (item,) = found(tmp_path, text.replace("n, BLOCK: tl", "n, batch, BLOCK: tl"))
    assert item.message.startswith("key= of double misses batch (batch: grid in the probe file): ")


# ---- the grid --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ("(triton.cdiv(n, 128),)", ["GM104"]),
        ("grid", ["GM104"]),
        ("lambda META: (triton.cdiv(n, META['BLOCK']),)", []),
        ("made", []),
        ("some.grid(n)", []),
    ],
)
def test_a_fixed_grid_is_found_where_the_block_is_tuned(tmp_path: Path, grid: str, expected: list[str]) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128)]", more="")
    made = "    def made(META):\n        return (1,)\n"
    host = f"\n\ndef call(x, n):\n    grid = (n // 128, 1)\n{made}    double[{grid}](x, n)\n"
    assert [item.code for item in found(tmp_path, text + host)] == expected


def test_a_fixed_grid_is_right_where_programs_walk_on_or_the_step_is_not_tuned(tmp_path: Path) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128)]", more="")
    host = "\n\ndef call(x, n):\n    double[(304,)](x, n)\n"
    walking = text.replace("    offs =", "    many = tl.num_programs(0)\n    offs =")
    assert codes(tmp_path, walking + host) == []
    assert codes(tmp_path, text.replace("{'BLOCK': b}", "{}, num_warps=b") + host) == []


def test_the_kernel_may_stand_in_another_file_of_the_project(tmp_path: Path) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128)]", more="")
    (tmp_path / "kernels.py").write_text(text)
    host = "from kernels import double\n\n\ndef call(x, n):\n    double[(n // 128,)](x, n)\n"
    assert codes(tmp_path, host, name="host.py") == [("GM104", 5)]


# ---- constexprs ------------------------------------------------------------------------------------------------------


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
    (item,) = found(tmp_path, text)
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
    items = found(tmp_path, HEAD + HANDED)
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


# ---- tails -----------------------------------------------------------------------------------------------------------

TAIL = (
    HEAD
    + """
@triton.jit
def kernel(x_ptr, y_ptr, M, K, EVEN: tl.constexpr, BM: tl.constexpr):
    pid = tl.program_id(0)
    row = pid * BM
    rows = row + tl.arange(0, BM)
    {line}
    tl.store(y_ptr + rows, x, mask={mask})
{host}
"""
)
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


# ---- strides and literals --------------------------------------------------------------------------------------------


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
    (item,) = found(tmp_path, text)
    assert (item.code, item.mend) == ("GM203", "tl.assume(stride_y > 0)")
    assert "assumes that 1 of 4 strides are positive and leaves out stride_y:" in item.message
    assert found(tmp_path, text, LintSettings()) == ()
    assert codes(tmp_path, text.replace("    tl.assume(stride_x > 0)\n", "")) == []


def test_numbers_in_tiles_are_found_from_64_on_beside_parameters(tmp_path: Path) -> None:
    text = HEAD + (
        "@triton.jit\n"
        "def kernel(x_ptr, BLOCK_M: tl.constexpr):\n"
        "    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)\n"
        "    bits = tl.zeros((BLOCK_M, 32), tl.int32) + tl.arange(0, 256)\n"
        "    cols = tl.program_id(1) * 128 + tl.arange(0, 128)\n"
        "    tl.store(x_ptr + rows[:, None] + cols[None, :], tl.sum(bits))\n"
    )
    (item,) = found(tmp_path, text)
    assert (item.code, item.line, item.column) == ("GM204", 8, 50)
    assert "has a literal side of 128 next to BLOCK_M:" in item.message


# ---- the machine -----------------------------------------------------------------------------------------------------


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
def test_an_api_that_the_target_lacks_is_found_where_the_kernel_says_what_it_is_for(
    tmp_path: Path, path: str, name: str, words: str, above: str, line: str, expected: int
) -> None:
    text = GLUON.format(above=above, name=name, words=words, line=line)
    assert [item.code for item in found(tmp_path, text, name=path)] == ["GM302"] * expected


def test_a_helper_in_another_file_counts_for_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(GLUON.format(above="", name="step", words="", line=SCALED))
    kernel = "from steps import step\n" + GLUON.format(
        above="", name="gemm_cdna3", words="", line="return step(a, s, b, t, acc, ON)"
    )
    (item,) = found(tmp_path, kernel)
    assert (item.line, item.message) == (
        7,
        "cdna4.mfma_scaled (steps.py:8) does not exist on gfx942, which gemm_cdna3 is for by its name",
    )


# ---- files, comments, the command ------------------------------------------------------------------------------------

BAD = "import triton\na = triton.Config({}, kpack=2)"


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("  # gluonmap: ignore[GM101]", []),
        ("  # why not  # gluonmap: ignore", []),
        ("  # gluonmap: ignore[GM102, GM101]", []),
        ("  # gluonmap: ignore[GM102]", ["GM101", "GM002"]),
        ("  # gluonmap: ignore[GM101, GM999]", ["GM002"]),
        ("\nb = '# gluonmap: ignore[GM101]'", ["GM101"]),
    ],
)
def test_a_comment_hides_what_it_names_at_its_line(tmp_path: Path, comment: str, expected: list[str]) -> None:
    assert [item.code for item in found(tmp_path, f"{BAD}{comment}\n")] == expected


def test_a_comment_alone_speaks_of_the_next_line_and_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(BAD.replace("\n", "\n# gluonmap: ignore[GM101]: an example\n"))
    result = lint([path])
    assert (result.findings, result.ignored) == ((), 1)


def test_a_comment_for_a_code_that_is_not_looked_for_is_no_finding(tmp_path: Path) -> None:
    text = "import triton\na = 1  # gluonmap: ignore[GM203]\n"
    assert found(tmp_path, text, LintSettings()) == ()
    assert [item.code for item in found(tmp_path, text)] == ["GM002"]


@pytest.mark.parametrize("text", ["def f(:\n", "x = '\0'\n", "(" * 5000 + ")" * 5000, "match x:\n  case\n"])
def test_what_cannot_be_parsed_is_one_finding(tmp_path: Path, text: str) -> None:
    (item,) = found(tmp_path, text)
    assert (item.code, item.line >= 1, item.column >= 1) == ("GM001", True, True)


def test_an_expression_of_thousands_of_terms_is_one_finding_too(tmp_path: Path) -> None:
    text = TAIL.format(line="x = " + " + ".join(["K"] * 3000), mask="rows < M", host="").replace(
        "row = pid", "row = x + pid"
    )
    (item,) = found(tmp_path, text)
    assert (item.code, "recursion" in item.message) == ("GM001", True)


def test_folders_are_searched_for_files_that_speak_of_triton(tmp_path: Path) -> None:
    for name in ("a.py", "sub/b.py", ".venv/c.py", "sub/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(BAD)
    (tmp_path / "plain.py").write_text("def f(:\n")
    result = lint([tmp_path, tmp_path / "a.py"])
    assert [Path(item.path).name for item in result.findings] == ["a.py", "b.py"]
    assert result.files == 2


def test_a_file_that_speaks_of_no_triton_is_only_parsed_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "other.py").write_text("import torch\nNAME = torch.cuda.get_device_name(0)\n")
    assert lint([tmp_path]).files == 0
    named = lint([tmp_path / "broken.py", tmp_path / "other.py"])
    assert ([item.code for item in named.findings], named.files) == (["GM001"], 2)


def test_paths_that_are_none_are_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"cannot read .*none\.py: No such file or directory\."):
        lint([tmp_path / "none.py"])
    with pytest.raises(UsageError, match=r"there is no Python file below .*empty\."):
        lint([tmp_path / "empty"])


def test_codes_are_chosen_by_their_beginnings() -> None:
    assert chosen_codes("GM10", "gm101,GM106") == {"GM102", "GM103", "GM104", "GM105"}
    assert chosen_codes("GM", "") == RULES.keys()
    assert chosen_codes("", "GM2") == RULES.keys() - {"GM201", "GM202", "GM203", "GM204"}
    with pytest.raises(UsageError, match=r"--ignore has no code 'GM9' \(there are GM001, "):
        chosen_codes("", "GM9")


def test_the_command_prints_a_line_and_its_mend_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(BAD)
    result = CliRunner().invoke(cli, ["lint", str(tmp_path / "k.py")])
    assert (result.exit_code, result.stdout.splitlines()) == (
        1,
        [
            f"{tmp_path.as_posix()}/k.py:2:23 GM101 triton.Config takes no keyword kpack: it raises TypeError when the "
            "file is imported.",
            '    Fix: write it into the first argument: Config({…, "kpack": 2}, …).',
            "1 finding in 1 of 1 file",
        ],
    )
    clean = CliRunner().invoke(cli, ["lint", str(tmp_path / "k.py"), "--ignore", "GM1"])
    assert (clean.exit_code, clean.stdout) == (0, "nothing found in 1 file\n")


def test_the_command_prints_json(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(BAD)
    result = CliRunner().invoke(cli, ["lint", str(tmp_path), "--json"])
    told = json.loads(result.stdout)
    assert (result.exit_code, told["schema"], told["files"], told["ignored"]) == (1, "gluonmap.lint/1", 1, 0)
    assert told["findings"] == [
        {
            "path": f"{tmp_path.as_posix()}/k.py",
            "line": 2,
            "column": 23,
            "code": "GM101",
            "message": "triton.Config takes no keyword kpack: it raises TypeError when the file is imported",
            "mend": 'write it into the first argument: Config({…, "kpack": 2}, …)',
        }
    ]


def test_usage_ends_with_2_and_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["lint", str(tmp_path / "none.py")])
    assert (result.exit_code, result.stderr) == (
        2,
        f"gluonmap: cannot read {tmp_path / 'none.py'}: No such file or directory.\n",
    )


def test_in_github_actions_findings_are_annotations_and_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    (tmp_path / "k.py").write_text(BAD)
    result = CliRunner().invoke(cli, ["lint", str(tmp_path / "k.py"), "--json"])
    assert json.loads(result.stdout)["files"] == 1
    assert result.stderr.startswith("::warning file=k.py,line=2,title=GM101::triton.Config takes no keyword kpack: ")
    assert "%0AFix: write it into the first argument" in result.stderr
    text = page.read_text()
    assert text.startswith("### gluonmap lint: 1 finding in 1 of 1 file\n")
    assert "| GM101 | an AMD knob is a keyword of triton.Config | 1 |" in text


def test_text_of_files_acts_on_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "k\x1b[31m.py"
    path.write_text("import triton\na = triton.Config({}, kpack='\x1b[2J')\n")
    result = CliRunner().invoke(cli, ["lint", str(path)])
    assert (result.exit_code, "\x1b" in result.stdout) == (1, False)


def test_the_hook_for_pre_commit_runs_the_command_that_exists() -> None:
    hook = (REPOSITORY / ".pre-commit-hooks.yaml").read_text()
    scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
    assert re.findall(r"^(?:- |  )(id|entry|language): (.+)$", hook, re.MULTILINE) == [
        ("id", "gluonmap-lint"),
        ("entry", "gluonmap lint"),
        ("language", "python"),
    ]
    assert "gluonmap" in scripts
    assert "lint" in cli.commands


@pytest.mark.parametrize(
    "data", [b"# coding: rot13\nimport triton\n", b"# coding: nosuch\nimport triton\n", b"import triton  # \xe9\xff\n"]
)
def test_what_python_cannot_read_is_told_and_other_files_are_looked_at(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "broken.py").write_bytes(data)
    (tmp_path / "other.py").write_text("import triton\nDEVICE = triton.runtime.driver.active.get_current_target()\n")
    done = CliRunner().invoke(cli, ["lint", str(tmp_path), "--json"])
    assert done.exit_code == 1, done.output
    found = json.loads(done.stdout)
    assert {(Path(f["path"]).name, f["code"]) for f in found["findings"]} == {
        ("broken.py", "GM001"),
        ("other.py", "GM301"),
    }
