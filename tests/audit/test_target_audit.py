"""Audits with real compiles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from audits import findings
from maps import (
    PAIR,
    PAIR_RULE,
    pair_map,
)
from msgspec.structs import replace
from project import Project

from gluonmap.audit.findings import FindingKind
from gluonmap.model import codec
from gluonmap.runner import environment

SHIPPED = """{
  "M_LEQ_16": {"A": 4, "B": 16, "C": 1},
  "M_LEQ_32": {"A": 4, "B": 16, "C": 2},
  "M_LEQ_64": {"A": 16, "B": 64, "C": 1},
  "any": {"A": 1, "B": 16, "C": 1, "D": 1}
}"""


@pytest.mark.long
def test_without_a_map_every_entry_is_compiled_once_and_for_all(project: Project) -> None:
    project.write("kernels/pair.py", PAIR)
    project.write("gfx950-pair.json", SHIPPED)
    command = ("check", "kernels/pair.py", "--configs", "gfx950-pair.json", "--arg", "x=*fp16", "--json")
    first = project.run(*command)
    assert first.code == 1, first.stderr
    document = json.loads(first.stdout)
    assert (document["target"], document["map"]) == ("gfx950", "")
    assert [(e["entry"], e["line"], e["outcome"]) for e in document["entries"]] == [
        ("M_LEQ_16", 2, "PASS"),
        ("M_LEQ_32", 3, "PASS"),
        ("M_LEQ_64", 4, "REJECTED"),
        ("any", 5, "PASS"),
    ]
    rows = findings(first)
    assert [(severity, kind) for severity, kind, _ in rows] == [
        ("error", "rejected"),
        ("warning", "duplicate"),
        ("warning", "inert-knob"),
        ("warning", "unknown-key"),
    ]
    assert rows[0][2].startswith('entry "M_LEQ_64" is rejected (CompileTimeAssertionFailure) at kernels/pair.py:8')
    assert rows[1][2].startswith('entries "M_LEQ_16" and "M_LEQ_32" are one program ')
    assert rows[2][2] == "C = 1 or 2 changes nothing: declared, never read (line 7)"
    assert document["findings"][0]["details"] == [
        'A=16 alone is enough: entry "M_LEQ_16" passes, and with that it fails in the same way',
        "forbidden by static_assert(A * B <= 64) (line 8)",
    ]
    again = project.run(*command)
    assert json.loads(again.stdout)["compiled"] == 0
    assert findings(again) == rows


def test_the_value_to_blame_is_named_at_its_own_line(project: Project) -> None:
    project.write("kernels/pair.py", PAIR)
    shipped = {"small": {"A": 4, "B": 4, "C": 1}, "any": {"A": 16, "C": 2, "B": 16}, "wide": {"B": 64, "C": 2, "A": 4}}
    project.write("c.json", json.dumps(shipped, indent=1))
    run = project.run("check", "kernels/pair.py", "c.json", "-t", "gfx950", "--arg", "x=*fp16", "--json")
    (document,) = [f for f in json.loads(run.stdout)["findings"] if f["severity"] == "error"]
    assert [place["line"] for place in document["places"]] == [8, 13]
    passes = 'entry "small" passes, and with that it fails in the same way'
    assert document["details"][:2] == [
        f'entry "any": A=16 and B=16 together are enough: {passes}',
        f'entry "wide": B=64 alone is enough: {passes}',
    ]


def written(project: Project, **changes: Any) -> None:
    """The kernel of `mapped.PAIR` and its map, where check finds it."""
    project.write("kernels/pair.py", PAIR)
    triton = environment.triton_version(environment.triton_folder())
    space = replace(pair_map(PAIR_RULE, triton), **changes)
    codec.write(project.root / "reports" / "pair.gfx950.json", codec.dumps(space))


PRUNE = """
def halves(configs, named_args, **kwargs):
    assert named_args["x"].dtype.itemsize == 2
    return [c for c in configs if c.kwargs["A"] * c.kwargs["B"] in (16, 256)]


def test(config):
    return config.kwargs["A"] * config.kwargs["B"] <= 64


def broken(configs, named_args, **kwargs):
    return configs[0].kwargs["BLOCK"]


def endless(configs, named_args, **kwargs):
    while True:
        pass


def leaving(configs, named_args, **kwargs):
    import os

    os._exit(0)
"""


@pytest.mark.long
def test_pruning_functions_run_apart_and_are_judged_by_the_map_and_compiles(project: Project) -> None:
    written(project)
    project.write("prune.py", PRUNE)
    names = ("halves", "test", "broken", "endless", "leaving")
    run = project.run(
        "check", "kernels/pair.py", "--json", "--deadline", "4", *(f"--prune=prune.py:{name}" for name in names)
    )
    assert run.code == 1, run.stderr
    document = json.loads(run.stdout)
    assert document["map"] == "reports/pair.gfx950.json"
    by_entry = {(f["places"][0]["entry"], f["kind"]): f for f in document["findings"]}
    # A in 1, 4, 16 and B in 4, 16, 64: A * B is 4, 16, 16, 64, 64, 64, 256, 256, 1024, each with C = 1 and C = 2.
    admits = by_entry["halves", "admits-infeasible"]
    assert admits["text"] == "4 of 6 infeasible configurations are kept by prune.py:halves"
    assert admits["details"][0] == "A=16 (NO_RESOURCES): A * B <= 64"
    assert admits["places"][0] == {"file": "prune.py", "line": 2, "entry": "halves"}
    drops = by_entry["halves", "drops-feasible"]
    assert drops["text"].startswith("8 of 12 feasible configurations are dropped by prune.py:halves")
    assert drops["details"][0] == "the baseline (PASS)"
    assert by_entry["broken", "rule-fails"]["text"] == "prune.py:broken fails: KeyError: 'BLOCK' at prune.py:12"
    assert by_entry["endless", "rule-fails"]["text"] == "prune.py:endless fails: it did not end within 4 s"
    assert by_entry["leaving", "rule-fails"]["text"] == "prune.py:leaving fails: it ended the process (exit status 0)"
    assert not [key for key in by_entry if key[0] == "test"]


@pytest.mark.long
def test_known_entries_are_not_compiled_and_a_map_of_another_kernel_is_not_used(project: Project) -> None:
    written(project)
    project.write("c.json", '{"M_LEQ_16": {"A": 16}, "any": {"A": 4, "B": 16, "C": 2}}')
    run = project.run("check", "kernels/pair.py", "c.json", "--json")
    document = json.loads(run.stdout)
    assert [(e["entry"], e["outcome"], e["basis"]) for e in document["entries"]] == [
        ("M_LEQ_16", "NO_RESOURCES", "map"),
        ("any", "PASS", "compiled"),  # the map lacks its registers
    ]
    assert document["findings"][0]["repeat"] == "gluonmap repeat reports/pair.gfx950.json A=16"
    written(project, digest="0" * 16)
    run = project.run("check", "kernels/pair.py", "c.json", "--json", "--arg", "x=*fp16")
    assert "gluonmap: the map reports/pair.gfx950.json is not used: its baseline is another program now" in run.stderr
    stale = json.loads(run.stdout)
    assert stale["map"] == ""
    assert "its baseline is another program now, so the kernel has changed since" in stale["notes"][0]
    assert [(e["entry"], e["outcome"]) for e in stale["entries"]] == [("M_LEQ_16", "REJECTED"), ("any", "PASS")]
    named = project.run("check", "kernels/pair.py", "c.json", "--map", "reports/pair.gfx950.json")
    assert (named.code, "cannot be used: its baseline is another program now" in named.stderr) == (2, True)
    other = project.run("check", "kernels/pair.py", "c.json", "--map", "reports/pair.gfx950.json", "--arg", "x=*fp32")
    assert (other.code, "it has x = '*fp16' and not '*fp32'" in other.stderr) == (2, True)


OWN = """
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


def prune(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["TILE"] < 4096]


@triton.autotune(
    configs=[
        triton.Config({"TILE": 256, "UNUSED": 1}, num_warps=4),
        triton.Config({"TILE": 96, "UNUSED": 1}, num_warps=4),
        triton.Config({"TILE": 4096, "UNUSED": 1}, num_warps=4),
        triton.Config({"TILE": 512, "UNUSED": 1, "TILES": 2}, num_warps=4),
    ],
    key=["n"],
    prune_configs_by={"early_config_prune": prune},
)
@gluon.jit
def copy(x, y, n, TILE: gl.constexpr, UNUSED: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    i = gl.arange(0, TILE, layout=layout)
    gl.store(y + i, gl.load(x + i, mask=i < n), mask=i < n)
"""


@pytest.mark.long
def test_a_kernels_own_list_is_audited_as_triton_would_see_it(project: Project) -> None:
    project.write("kernels/own.py", OWN)
    command = ("check", "kernels/own.py", "-t", "gfx950", "--arg", "x=*fp16", "--arg", "y=*fp16", "--json")
    run = project.run(*command)
    assert run.code == 1, run.stderr
    project.write("kernels/own.py", "# moved\n" + OWN)
    moved = json.loads(project.run(*command).stdout)
    assert (moved["compiled"], moved["entries"][1]["line"]) == (0, 15)
    document = json.loads(run.stdout)
    assert [(e["entry"], e["line"], e["outcome"], e["basis"]) for e in document["entries"]] == [
        ("[0]", 13, "PASS", "compiled"),
        ("[1]", 14, "REJECTED", "compiled"),
        ("[2]", 15, "unknown", "pruned"),
        ("[3]", 16, "REJECTED", "compiled"),
    ]
    assert "Keyword argument TILES was specified but unrecognised" in document["entries"][3]["reason"]
    assert document["notes"][0] == "the list's own early_config_prune drops [2] for these arguments: not compiled"
    rows = findings(run)
    assert [(severity, kind) for severity, kind, _ in rows] == [
        ("error", "rejected"),
        ("error", "unknown-key"),
        ("warning", "inert-knob"),
    ]
    assert rows[1][2] == (
        "TILES is no parameter of the kernel and no option of gfx950's compiler: Triton refuses the launch"
    )


def test_unstable_code_is_called_neither_equal_nor_inert(project: Project) -> None:
    project.kernel("unstable")
    project.write("c.jsonl", '{"UNREAD": 1, "TILE": 256}\n{"UNREAD": 2, "TILE": 256}\n')
    run = project.run("check", "kernels/unstable.py", "c.jsonl", "-t", "gfx950", "--arg", "x=*fp16", "--json")
    assert run.code == 0, run.stderr
    kinds = {FindingKind(kind) for _, kind, _ in findings(run)}
    assert FindingKind.DUPLICATE not in kinds
    assert "unstable" in " ".join(json.loads(run.stdout)["notes"])


def test_nothing_to_audit_is_a_usage_error(project: Project) -> None:
    project.write("kernels/pair.py", PAIR)
    run = project.run("check", "kernels/pair.py", "-t", "gfx950")
    assert (run.code, "has no @triton.autotune list" in run.stderr) == (2, True)
