"""Files that projects ship, as an audit reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gluonmap.audit import shipped_files
from gluonmap.audit.shipped_files import FileForm, ShippedFile, target_of
from gluonmap.model.errors import UsageError


def source(folder: Path, text: str | bytes, name: str = "shipped.json") -> ShippedFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return shipped_files.read_shipped_file(str(path))


AITER = """{
  "_comment": "hand made",
  "M_LEQ_16": {
    "BLOCK_M": 16,
    "cache": null},
  "M_LEQ_48": {"BLOCK_M": 32},
  "any": {"BLOCK_M": 64, "flag": true}, "small": {"BLOCK_M": 8}
}"""


def test_buckets_of_aiter_have_lines_and_sizes(tmp_path: Path) -> None:
    file = source(tmp_path, AITER, "configs/gfx950/gluon/gemm/x/GEMM-N=7168-K=2048.json")
    assert (file.form, file.target, file.elsewhere) == (FileForm.AITER, "gfx950", "")
    assert [(e.name, e.line, e.config, e.sizes) for e in file.entries] == [
        ("M_LEQ_16", 3, {"BLOCK_M": 16, "cache": None}, {"M": 16, "N": 7168, "K": 2048}),
        ("M_LEQ_48", 6, {"BLOCK_M": 32}, {"M": 48, "N": 7168, "K": 2048}),
        ("any", 7, {"BLOCK_M": 64, "flag": True}, {"N": 7168, "K": 2048}),
        ("small", 7, {"BLOCK_M": 8}, {"N": 7168, "K": 2048}),
    ]
    assert file.entries[0].lines == {"BLOCK_M": 4, "cache": 5}
    assert [(odd.name, odd.line, odd.certain) for odd in file.oddities] == [
        ("M_LEQ_48", 6, False),
        ("small", 7, False),
    ]


def test_batch_sizes_of_vllm_are_entries_and_other_keys_are_read_by_nobody(tmp_path: Path) -> None:
    text = '{"triton_version": "3.4.0", "1": {"BLOCK_M": 16},\n "64": {"BLOCK_M": 64},\n "default": {"BLOCK_M": 1}}'
    file = source(tmp_path, text, "E=8,N=4096,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8.json")
    assert (file.form, file.target, file.triton) == (FileForm.VLLM, "gfx942", "3.4.0")
    assert [(e.name, e.line, e.sizes) for e in file.entries] == [("1", 1, {"M": 1}), ("64", 2, {"M": 64})]
    assert [(odd.name, odd.line, odd.certain) for odd in file.oddities] == [("default", 3, True)]
    name = "triton_3_4_0/E=8,N=4096,device_name=NVIDIA_H100_80GB_HBM3.json"
    again = source(tmp_path, '{"1": {"BLOCK_M": 16}}', name)
    assert (again.target, again.triton) == ("sm_90", "3.4.0")


def test_nested_entries_are_named_by_their_path_and_a_flat_file_is_one(tmp_path: Path) -> None:
    nested = source(tmp_path, '{"fwd": {"default": {"A": 1},\n "large": {"A": 2}}}')
    assert [(e.name, e.line, e.config) for e in nested.entries] == [
        ("fwd/default", 1, {"A": 1}),
        ("fwd/large", 2, {"A": 2}),
    ]
    flat = source(tmp_path, b'{"A": 1,\r\n "B": ".cg"}')
    assert [(e.name, e.config, e.lines) for e in flat.entries] == [("", {"A": 1, "B": ".cg"}, {"A": 1, "B": 2})]


def test_a_bucket_that_occurs_twice_is_reported(tmp_path: Path) -> None:
    file = source(tmp_path, '{"M_LEQ_16": {"A": 1},\n"M_LEQ_16": {"A": 2}}')
    assert [e.config for e in file.entries] == [{"A": 2}]
    assert [(odd.name, odd.line) for odd in file.oddities] == [("M_LEQ_16", 1)]


def test_one_entry_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(AITER)
    assert [e.name for e in shipped_files.read_shipped_file(f"{tmp_path}/x.json#any").entries] == ["any"]
    with pytest.raises(UsageError, match=r"has no entry 'M_LEQ_8' \(it has M_LEQ_16, M_LEQ_48, any, small\)"):
        shipped_files.read_shipped_file(f"{tmp_path}/x.json#M_LEQ_8")


@pytest.mark.parametrize("key", ["configs_timings", "configs"])
def test_tritons_own_results_are_a_list(tmp_path: Path, key: str) -> None:
    entry = {"kwargs": {"TILE": 64}, "num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None, "pre_hook": None}
    file = source(tmp_path, json.dumps({"key": [1], key: [[entry, [0.1]] if "timings" in key else entry]}))
    assert file.form is FileForm.TRITON
    assert [(e.name, e.line, e.config) for e in file.entries] == [
        ("[0]", 1, {"TILE": 64, "num_warps": 4, "num_stages": 3, "num_ctas": 1})
    ]


CONFIGS = """
import triton
from triton import Config

COMPUTED = [triton.Config({"TILE": tile}) for tile in (1, 2)]
CONFIGS = [
    triton.Config({"TILE": 64}, num_warps=8),
    Config(
        {"TILE": 128, "HINT": ".cg"},
        num_stages=2,
    ),
]
"""


def test_configs_that_are_written_out_are_read_from_the_text_alone(tmp_path: Path) -> None:
    file = source(tmp_path, CONFIGS + "raise SystemExit\n", "configs.py")
    assert file.form is FileForm.CONFIGS
    assert [(e.name, e.line, e.config) for e in file.entries] == [
        ("[0]", 7, {"TILE": 64, "num_warps": 8, "num_stages": 3, "num_ctas": 1}),
        ("[1]", 8, {"TILE": 128, "HINT": ".cg", "num_warps": 4, "num_stages": 2, "num_ctas": 1}),
    ]
    assert file.entries[1].written == {"TILE": 128, "HINT": ".cg", "num_stages": 2}
    assert file.entries[1].lines == {"TILE": 9, "HINT": 9, "num_stages": 10}
    assert file.notes == (f"{tmp_path}/configs.py: 1 triton.Config(…) are computed, not written out: not read",)


def test_restrictions_of_kernel_tuner_have_lines_and_values(tmp_path: Path) -> None:
    text = 'tune_params = {"M": [16, 32]}\nrestrictions = [\n    "M <= 32",\n    # why\n    "N % M == 0",\n]\n'
    file = source(tmp_path, text, "kt.py")
    assert (file.form, file.restrictions, file.lines) == (FileForm.RULES, ("M <= 32", "N % M == 0"), (3, 5))
    assert file.domains == {"M": (16, 32)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.json", "{", "is no JSON"),
        ("x.json", "[]", "holds no configuration"),
        ("x.json", '{"any": {"A": [1]}}', "gives A a value that is no number or text"),
        ("x.json", '{"any": {"A": 18446744073709551616}}', "the value of A does not fit into 64 bits"),
        ("x.jsonl", "\n", "holds no configuration"),
        ("x.py", "x = 1", "holds no triton.Config"),
        ("x.py", "restrictions = [lambda c: True]", "must be a list of texts, written out"),
        ("x.py", "def", "is no Python"),
    ],
)
def test_what_is_no_list_is_one_usage_error(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        source(tmp_path, text, name)
    assert message in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["x.json", "x.jsonl", "x.py"]))
def test_any_bytes_are_entries_or_one_usage_error(data: bytes, name: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        try:
            file = source(Path(folder), data, name)
        except UsageError:
            return
    assert file.entries or file.restrictions or file.form is FileForm.VLLM


@pytest.mark.parametrize(
    ("path", "target", "elsewhere"),
    [
        ("configs/gfx942/triton/gemm/x/DEFAULT.json", "gfx942", ""),
        ("configs/gemm/gluon/gfx950-GEMM-A8W8-N=512-K=7168.json", "gfx950", ""),
        ("gfx942/gfx950-GEMM.json", "gfx950", ""),
        ("configs/gemm/gfx9999-GEMM-A8W8.json", "", "gfx9999"),
        ("E=8,N=14336,device_name=AMD_Instinct_MI325X.json", "gfx942", ""),
        ("E=8,N=14336,device_name=NVIDIA_H200.json", "sm_90", ""),
        ("E=8,N=14336,device_name=NVIDIA_L40S.json", "", "NVIDIA_L40S"),
        ("configs/plain.json", "", ""),
    ],
)
def test_the_target_is_read_from_names(path: str, target: str, elsewhere: str) -> None:
    assert target_of(path) == (target, elsewhere)
