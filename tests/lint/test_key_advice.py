"""What belongs into a kernel's key, by the text of its file and its probe file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gluonmap.lint.key_advice import Advice, advise
from gluonmap.model.errors import UnknownKernel, UsageError
from gluonmap.report import key
from gluonmap.spec import probe_file

REPOSITORY = Path(__file__).resolve().parents[2]
HEAD = "import triton\nimport triton.language as tl\n\n"

GEMM = HEAD + '''
@triton.jit
def count(size, BLOCK):
    return tl.cdiv(size, BLOCK)


@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BK"] == 0, "BIAS": lambda args: args["bias"] is not None})
@triton.autotune(
    configs=[triton.Config({"BM": bm, "BN": 64, "BK": 32}, num_warps=4) for bm in (64, 128)],
    key=["N", "stride_am", "a_ptr", "BM"],
)
@triton.jit
def gemm(a_ptr, bias, M, N, K, stride_am, eps, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
         EVEN_K: tl.constexpr, BIAS: tl.constexpr, SMS: tl.constexpr, ACT: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = count(N, BN)
    rows = pid // tiles_n * BM + tl.arange(0, BM)
    inside = rows[:, None] < M
    acc = tl.load(a_ptr + rows * stride_am, mask=inside)
    for k in range(0, tl.cdiv(K, BK)):
        acc += eps
    for tile in range(pid, tiles_n, SMS):
        acc += tile
    if ACT:
        acc = acc * 2
    tl.store(a_ptr + rows * stride_am, acc, mask=inside)


def call(a, b):
    rows, depth = a.shape
    grid = lambda META: (triton.cdiv(rows, META["BM"]) * triton.cdiv(b.shape[1], META["BN"]),)
    gemm[grid](a, None, rows, b.shape[1], depth, a.stride(0), 1e-6, SMS=8, ACT=True)
'''  # fmt: skip


def advised(tmp_path: Path, text: str, kernel: str = "", probe: str = "", **more: Any) -> Advice:
    path = tmp_path / "kernel.py"
    path.write_text(text)
    declared = None
    if probe:
        (tmp_path / "probe.py").write_text(probe)
        declared = probe_file.read_probe(tmp_path / "probe.py", "")
    return advise(path, kernel, declared, **more)


def kinds(advice: Advice) -> dict[str, set[str]]:
    return {item.name: {use.kind for use in item.uses} for item in advice.arguments if item.uses}


def test_a_grid_index_and_the_range_of_a_loaded_index_do_not_depend_on_sizes(tmp_path: Path) -> None:
    text = HEAD + (
        "@triton.jit\n"
        "def kernel(x_ptr, i_ptr, T, H, rows, BT: tl.constexpr):\n"
        "    pid = tl.program_id(0)\n"
        "    batch = pid // H\n"
        "    begin = batch * T\n"
        "    T = begin + T - begin\n"
        "    offs = tl.arange(0, BT)\n"
        "    index = tl.load(i_ptr + offs, mask=offs < T)\n"
        "    valid = index < rows\n"
        "    tl.store(x_ptr + index, 0.0, mask=valid & (offs < T))\n"
    )
    assert kinds(advised(tmp_path, text)) == {"T": {"mask"}}


def test_what_decides_how_much_work_there_is_belongs_into_a_key(tmp_path: Path) -> None:
    advice = advised(tmp_path, GEMM)
    assert (advice.kernel, advice.suggested) == ("gemm", ("M", "N", "K", "SMS"))
    assert kinds(advice) == {
        "M": {"mask", "grid"},
        "N": {"tile count", "loop bound", "grid"},
        "K": {"tile count", "loop bound", "heuristic"},
        "SMS": {"loop bound"},
        "ACT": {"branch"},
    }
    assert advice.tuned == ("BM", "BN", "BK")
    assert advice.computed == ("EVEN_K", "BIAS")


def test_a_key_is_compared_with_it(tmp_path: Path) -> None:
    advice = advised(tmp_path, GEMM)
    assert advice.key == ("N", "stride_am", "a_ptr", "BM")
    assert advice.missing == ("M", "K", "SMS")
    assert {item.name: item.why for item in advice.idle} == {
        "stride_am": "decides nothing here: each of its values is tuned again",
        "a_ptr": "is a tensor: Triton puts its dtype into every key by itself",
        "BM": "is tuned itself",
    }
    assert advice.perhaps == ("ACT",)


def test_lines_are_the_files_and_name_the_helper_that_a_value_goes_to(tmp_path: Path) -> None:
    uses = {item.name: item.uses for item in advised(tmp_path, GEMM).arguments}
    lines = GEMM.splitlines()
    (first, *_) = uses["N"]
    assert (first.function, first.text, lines[first.line - 1].strip()) == (
        "count",
        "tl.cdiv(size, BLOCK)",
        "return tl.cdiv(size, BLOCK)",
    )
    (mask,) = (use for use in uses["M"] if use.kind == "mask")
    assert lines[mask.line - 1].strip() == "inside = rows[:, None] < M"
    (grid,) = (use for use in uses["M"] if use.kind == "grid")
    assert "lambda META" in grid.text


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("n = N // 2\n    for i in range(n):\n        pass", {"N": {"loop bound"}}),
        ("while N > 0:\n        N -= B", {"N": {"loop bound"}}),
        ("i = tl.program_id(0) * B + tl.arange(0, B)\n    j = i % N", {"N": {"mask"}}),
        ("i = tl.arange(0, B)\n    m = (i >= 0) & (i < N - 3)\n    tl.store(x + i, 0, m)", {"N": {"mask"}}),
        ("k = tl.program_id(0)\n    m = k < N\n    tl.load(x + k, mask=m)", {"N": {"mask"}}),
        ("t = (N + B - 1) // B", {"N": {"tile count"}}),
        ("t = tl.program_id(0) // B", {}),
        ("if N > 16:\n        tl.store(x, 1)", {"N": {"branch"}}),
        ("p = tl.make_block_ptr(x, shape=(N,), strides=(S,), offsets=(0,), block_shape=(B,), order=(0,))",
         {"N": {"mask"}}),
        ("v = tl.load(x + N * S)\n    for i in range(v):\n        pass", {}),
        ("i = tl.arange(0, B)\n    tl.store(x + i * S, tl.load(x + i) * N)", {}),
        ("a, b = N, S\n    for i in range(b):\n        pass", {"S": {"loop bound"}}),
        ("for i in range(N):\n        if i > 3:\n            pass", {"N": {"loop bound"}}),
        ("m = tl.max(N, S)\n    for i in range(m):\n        pass", {"N": {"loop bound"}, "S": {"loop bound"}}),
    ],
)  # fmt: skip
def test_a_value_is_followed_to_what_it_decides(tmp_path: Path, body: str, found: dict[str, set[str]]) -> None:
    text = f"{HEAD}@triton.jit\ndef kernel(x, N, S, B: tl.constexpr):\n    {body}\n"
    assert kinds(advised(tmp_path, text)) == found


def test_helpers_of_other_files_are_followed_and_what_is_not_there_is_not(tmp_path: Path) -> None:
    package = tmp_path / "ops" / "tools"
    package.mkdir(parents=True)
    (tmp_path / "ops" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from .grid import tiles as rows_of\n")
    (package / "grid.py").write_text("import triton.language as tl\ndef tiles(n, B):\n    return tl.cdiv(n, B)\n")
    imports = "from ops.tools import rows_of\nfrom .tools import grid\nfrom nowhere import gone\n"
    body = "    a = rows_of(M, B)\n    b = grid.tiles(N, B)\n    c = gone(K)\n"
    path = tmp_path / "ops" / "kernel.py"
    path.write_text(f"{HEAD}{imports}@triton.jit\ndef kernel(x, M, N, K, B: tl.constexpr):\n{body}")
    advice = advise(path)
    assert kinds(advice) == {"M": {"tile count"}, "N": {"tile count"}}
    assert {use.file for item in advice.arguments for use in item.uses} == {"grid.py"}


def test_functions_that_call_each_other_end(tmp_path: Path) -> None:
    text = HEAD + (
        "@triton.jit\ndef one(n, B):\n    return two(n, B)\n\n\n@triton.jit\ndef two(n, B):\n    return one(n, B)\n\n\n"
        "@triton.jit\ndef kernel(x, N, B: tl.constexpr):\n    n = one(N, B)\n    n = n + 1\n    for i in range(n):\n"
        "        pass\n"
    )
    assert advised(tmp_path, text, "kernel").kernel == "kernel"


PROBE = """
KNOBS = {"BN": [64, 128], "SPLIT": [1, 2]}
SHAPES = {"a": {"N": 4096, "K": 512}, "b": {"N": 16, "K": 512}}
DERIVE = {"stride": "K", "STEP": "cdiv(K, SPLIT)"}
GRID = "(cdiv(N, BN) * SPLIT,)"
"""
SPLIT = f"""{HEAD}@triton.jit
def kernel(x, N, K, stride, BN: tl.constexpr, SPLIT: tl.constexpr, STEP: tl.constexpr, WIDTH: tl.constexpr):
    for k in range(0, STEP, BN):
        tl.store(x + k * stride, k)
    for k in range(K):
        pass
"""


def test_a_probe_file_gives_the_grid_the_derived_and_the_tuned_parameters(tmp_path: Path) -> None:
    advice = advised(tmp_path, SPLIT, probe=PROBE)
    assert kinds(advice) == {"N": {"grid"}, "K": {"loop bound", "derived parameter"}}
    assert (advice.tuned, advice.computed) == (("BN", "SPLIT"), ("STEP",))
    assert advice.key is None and advice.missing == () and advice.suggested == ("N", "K")


def test_what_could_be_a_constexpr_is_said_with_its_values(tmp_path: Path) -> None:
    probe = PROBE.replace(', "STEP": "cdiv(K, SPLIT)"', "")
    could = {item.name: item.could for item in advised(tmp_path, SPLIT, probe=probe).arguments if item.could}
    assert could == {
        "K": "bounds loops and nothing else; it could be a constexpr if it has few values: 512 over 2 shapes of the "
        "probe file",
        "stride": "a stride with one value; it could be a constexpr: 512 over 2 shapes of the probe file",
    }


def test_without_configurations_constexprs_count_as_tuned_unless_some_are_named(tmp_path: Path) -> None:
    head = f"{HEAD}@triton.jit\ndef kernel(x, N: tl.constexpr, B: tl.constexpr):\n"
    text = head + "    for i in range(0, N, B):\n        pass\n"
    advice = advised(tmp_path, text)
    assert advice.suggested == () and "every constexpr parameter" in advice.notes[0]
    assert advised(tmp_path, text, tuned=["B"]).suggested == ("N",)


def test_keys_and_configurations_are_found_behind_names(tmp_path: Path) -> None:
    text = HEAD + (
        "KEYS = ['N', 'gone']\n\n\ndef configs():\n    return [triton.Config({'B': b}) for b in (1, 2)]\n\n\n"
        "@gluonmap.autotune('map.json', key=KEYS)\n@triton.jit\ndef one(x, N, B: tl.constexpr):\n"
        "    n = tl.cdiv(N, B)\n\n\n"
        "@libtuner(configs=configs(), key=unknown())\n@triton.jit\ndef two(x, N, B: tl.constexpr):\n"
        "    n = tl.cdiv(N, B)\n"
    )
    first, second = advised(tmp_path, text, "one"), advised(tmp_path, text, "two")
    assert (first.key, first.missing) == (("N", "gone"), ())
    assert [item.name for item in first.idle] == ["gone"]
    assert (second.key, second.tuned) == (None, ("B",)) and "cannot be read" in second.notes[0]


def test_files_that_do_not_serve_are_refused(tmp_path: Path) -> None:
    two = HEAD + "@triton.jit\ndef a(x):\n    pass\n\n\n@triton.jit\ndef b(x):\n    pass\n"
    for text, complaint in ((two, "--kernel a"), ("def (", "no Python"), ("x = 1", "holds no @gluon.jit")):
        with pytest.raises(UsageError, match=complaint):
            advised(tmp_path, text)
    with pytest.raises(UnknownKernel, match="'c'"):
        advised(tmp_path, two, "c")
    with pytest.raises(UsageError, match="cannot read"):
        advise(tmp_path / "nowhere.py")


@pytest.mark.parametrize("name", ["hopper/gemm_fp16", "cdna3/gemm_bf16", "cdna4/gemm_mxfp4", "cdna4/gemm_bf16"])
def test_a_bundled_gemm_is_tuned_by_its_three_sizes(name: str) -> None:
    path = REPOSITORY / "kernels" / f"{name}.py"
    probe = probe_file.find_probe(path, REPOSITORY)
    assert probe is not None
    assert advise(path, probe=probe_file.read_probe(probe, "")).suggested == ("M", "N", "K")


def run(*arguments: object) -> Any:
    from gluonmap.cli.command_group import cli

    return CliRunner().invoke(cli, ["key", *map(str, arguments)])


def test_the_command_ends_with_1_where_a_key_lacks_something(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(GEMM)
    done = run(path)
    assert done.exit_code == 1
    assert "missing from the key in line 11 (N, stride_am, a_ptr, BM): M, K, SMS" in done.stdout
    document = json.loads(run(path, "--json").stdout)
    assert document["missing"] == ["M", "K", "SMS"]
    path.write_text(GEMM.replace('key=["N", "stride_am", "a_ptr", "BM"]', 'key=["M", "N", "K", "SMS"]'))
    assert run(path).exit_code == 0
    assert run(tmp_path / "no.py").exit_code == 2


def test_nothing_is_imported(tmp_path: Path) -> None:
    before = set(sys.modules)
    advice = advised(tmp_path, "raise SystemExit(3)\n" + GEMM)
    assert "key=['M', 'N', 'K', 'SMS']" in key.render(advice)
    assert not {name for name in set(sys.modules) - before if name.startswith("triton")}
