"""Rules about configurations, keys and grids of an autotuner."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import HEAD, codes, findings

from gluonmap.lint import LintSettings


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
    assert [item.message.split()[0] for item in findings(tmp_path, text)] == ["num_stages", "num_ctas"]


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
def test_configurations_are_counted_where_the_text_shows_them(
    tmp_path: Path, before: str, configs: str, more: str, expected: list[str]
) -> None:
    (tmp_path / "lists.py").write_text(
        "def one(configs):\n    if FAST:\n        return [configs[0]]\n    return [configs[-1]]\n\n\n"
        "def some(configs, first=None):\n    return configs if TUNE else [first or configs[0]]\n\n\n"
        "@remembered\ndef cached():\n    return [1]\n"
    )
    text = TUNED.format(before=before, configs=configs, more=more)
    assert [item.code for item in findings(tmp_path, text)] == expected


def test_a_key_that_no_race_reads_is_no_finding(tmp_path: Path) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': 64})]", more="").replace('key=["n"]', "key=[]")
    assert [item.code for item in findings(tmp_path, text)] == ["GM105"]


def test_the_budget_is_the_users(tmp_path: Path) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128, 256)]", more="")
    assert [item.code for item in findings(tmp_path, text, LintSettings(budget=2))] == ["GM106"]


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
    (item,) = findings(tmp_path, KEYED)
    assert (item.code, item.line, item.function) == ("GM103", 8, "kernel")
    assert item.message.startswith("key= of kernel misses T (T: loop bound in line 14): ")
    assert item.mend == "add 'T', or a coarser argument that separates the sizes"


def test_a_bound_of_loaded_indices_is_no_size(tmp_path: Path) -> None:
    text = KEYED.replace("0.0, mask=rows < T)", "tl.load(x_ptr, mask=(tl.load(x_ptr) < HG)), mask=rows < T)")
    assert "misses T (" in findings(tmp_path, text)[0].message


def test_a_key_that_holds_all_of_it_is_fine(tmp_path: Path) -> None:
    assert codes(tmp_path, KEYED.replace('key=["C"]', 'key=["C", "T"]')) == []


def test_the_grid_of_the_probe_file_counts(tmp_path: Path) -> None:
    (tmp_path / "kernel_probe.py").write_text('GRID = "(cdiv(n, BLOCK) * batch,)"\n')
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128)]", more="")
    (item,) = findings(tmp_path, text.replace("n, BLOCK: tl", "n, batch, BLOCK: tl"))
    assert item.message.startswith("key= of double misses batch (batch: grid in the probe file): ")


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
    assert [item.code for item in findings(tmp_path, text + host)] == expected


def test_a_fixed_grid_is_right_if_programs_stride_or_the_step_is_not_tuned(tmp_path: Path) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128)]", more="")
    host = "\n\ndef call(x, n):\n    double[(304,)](x, n)\n"
    walking = text.replace("    offs =", "    many = tl.num_programs(0)\n    offs =")
    assert codes(tmp_path, walking + host) == []
    assert codes(tmp_path, text.replace("{'BLOCK': b}", "{}, num_warps=b") + host) == []


def test_the_kernel_may_be_in_another_file_of_the_project(tmp_path: Path) -> None:
    text = TUNED.format(before="", configs="[triton.Config({'BLOCK': b}) for b in (64, 128)]", more="")
    (tmp_path / "kernels.py").write_text(text)
    host = "from kernels import double\n\n\ndef call(x, n):\n    double[(n // 128,)](x, n)\n"
    assert codes(tmp_path, host, name="host.py") == [("GM104", 5)]
