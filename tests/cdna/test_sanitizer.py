"""Reports of the sanitizer, on a few instructions each and on compiled kernels with something removed."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assembly import text
from compiling import REPOSITORY, compiled, module
from mutants import Case, Mutant, barriers, harmless, late, needed_waits, verdicts, without, without_effect

from gluonmap import cdna
from gluonmap.cdna import Kind

POINTER = "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32_e32 v1, 2, v0\n"
WORDS = np.arange(128, dtype=np.uint32)


def findings(
    instructions: str,
    argument: Any = WORDS,
    *,
    groups: int = 1,
    target: str = "gfx942",
    threads: int = 64,
    lds_bytes: int = 1024,
    **how: Any,
) -> list[cdna.Finding]:
    argument = argument.copy() if isinstance(argument, np.ndarray) else argument
    code = text('.file 1 "/" "k.py"\n.loc 1 7 3\n' + instructions, target, threads, lds_bytes=lds_bytes)
    return list(cdna.run(code, (groups,), [argument], **{"sanitize": True, **how}).findings)


def kinds(found: list[cdna.Finding]) -> list[Kind]:
    return [f.kind for f in found]


LOAD = POINTER + "global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_mov_b32_e32 v3, v2"


def test_a_load_behind_the_end_is_named_with_lane_and_line() -> None:
    found = findings(LOAD, WORDS[:60])
    assert kinds(found) == [Kind.GLOBAL_BOUNDS]
    assert (found[0].lane, found[0].wave, str(found[0].line)) == (60, 0, "k.py:7")
    assert found[0].instruction == "global_load_dword v2, v1, s[4:5]"
    assert "right behind the 240 bytes of argument 0, 3 more lanes" in found[0].detail
    assert findings(LOAD, WORDS[:64]) == []


def test_findings_are_grouped_by_kind_and_line() -> None:
    # Two copies of one line, inlined at different places, are two lines of a user's.
    loads = (
        POINTER
        + """
        global_load_dword v2, v1, s[4:5]
        global_load_dword v3, v1, s[4:5] offset:4
        .loc 1 8 1 ; k.py:8:1 @[ k.py:20:3 ]
        global_load_dword v4, v1, s[4:5]
        .loc 1 8 1 ; k.py:8:1 @[ k.py:21:3 ]
        global_load_dword v5, v1, s[4:5]
        s_waitcnt vmcnt(1)
        v_mov_b32_e32 v6, v5
        """
    )
    code = text('.file 1 "/home/me" "k.py"\n.loc 1 7 3\n' + loads)
    result = cdna.run(code, (1,), [WORDS[:60].copy()], sanitize=True)
    assert [str(place) for place in result.by_line] == [
        "k.py:7: global access out of bounds: 2 instructions, the first global_load_dword v2, v1, s[4:5] (wave 0, "
        "lane 60) right behind the 240 bytes of argument 0, 3 more lanes",
        "k.py:8 called from k.py:20: global access out of bounds: global_load_dword v4, v1, s[4:5] (wave 0, lane 60) "
        "right behind the 240 bytes of argument 0, 3 more lanes",
        "k.py:8 called from k.py:21: global access out of bounds: global_load_dword v5, v1, s[4:5] (wave 0, lane 60) "
        "right behind the 240 bytes of argument 0, 3 more lanes",
        "k.py:8 called from k.py:21: register used before its load was waited for: v_mov_b32_e32 v6, v5 (wave 0) v5, "
        "of an outstanding global load",
    ]
    first = result.by_line[0].first
    assert (first.file, first.line and first.line.line, first.wave, first.lane) == ("/home/me/k.py", 7, 0, 60)
    assert first.instruction == "global_load_dword v2, v1, s[4:5]"


def test_findings_without_a_line_are_grouped_by_kind() -> None:
    loads = (
        POINTER + "global_load_dword v2, v1, s[4:5]\nglobal_load_dword v3, v1, s[4:5]\nds_write_b32 v1, v0 offset:900"
    )
    result = cdna.run(text(loads, lds_bytes=1024), (1,), [WORDS[:60].copy()])
    assert [(place.kind, place.count, place.line, place.first.file) for place in result.by_line] == [
        (Kind.GLOBAL_BOUNDS, 2, None, ""),
        (Kind.LDS_BOUNDS, 1, None, ""),
    ]


def test_bounds_are_checked_without_the_sanitizer_too() -> None:
    assert kinds(findings(LOAD, WORDS[:60], sanitize=False)) == [Kind.GLOBAL_BOUNDS]


def test_the_descriptor_of_2_gb_hides_nothing() -> None:
    descriptor = POINTER + "s_mov_b32 s6, 0x7ffffffe\ns_mov_b32 s7, 0x27000\n"
    load = descriptor + "buffer_load_dword v2, v1, s[4:7], 0 offen\ns_waitcnt vmcnt(0)"
    assert kinds(findings(load, WORDS[:60])) == [Kind.GLOBAL_BOUNDS]
    # Triton builds masks from accesses that the descriptor drops.
    masked = load.replace("buffer_load", "v_mov_b32_e32 v1, 0x80000000\nbuffer_load")
    assert findings(masked, WORDS[:60]) == []


def test_memory_that_nobody_wrote() -> None:
    assert kinds(findings(LOAD, cdna.Unwritten(WORDS.copy()))) == [Kind.GLOBAL_UNWRITTEN]
    written = LOAD.replace("global_load", "global_store_dword v1, v0, s[4:5]\ns_waitcnt vmcnt(0)\nglobal_load")
    assert findings(written, cdna.Unwritten(WORDS.copy())) == []


def test_a_register_that_is_used_before_its_load_is_waited_for() -> None:
    found = findings(LOAD.replace("s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(1)"))
    assert kinds(found) == [Kind.MISSING_WAIT]
    assert found[0].instruction == "v_mov_b32_e32 v3, v2"
    assert found[0].detail == "v2, of an outstanding global load"
    found = findings(LOAD.replace("s_waitcnt lgkmcnt(0)", "s_nop 0"))
    assert kinds(found)[0] == Kind.MISSING_WAIT
    assert "s4, of an outstanding scalar load" in found[0].detail


def test_a_flat_load_counts_twice() -> None:
    load = (
        POINTER + "v_mov_b32_e32 v5, s5\nv_add_u32_e32 v4, s4, v1\nflat_load_dword v2, v[4:5]\n{}\nv_mov_b32_e32 v3, v2"
    )
    assert findings(load.format("s_waitcnt vmcnt(0) lgkmcnt(0)")) == []
    assert kinds(findings(load.format("s_waitcnt lgkmcnt(0)"))) == [Kind.MISSING_WAIT]
    # Behind it, counting the loads from LDS tells nothing.
    lds = "ds_write_b32 v1, v0\nds_read_b32 v6, v1\ns_waitcnt lgkmcnt({})\nv_mov_b32_e32 v7, v6"
    assert kinds(findings(load.format(lds.format(1) + "\ns_waitcnt vmcnt(0) lgkmcnt(0)"))) == [Kind.MISSING_WAIT]
    assert findings(load.format(lds.format(0) + "\ns_waitcnt vmcnt(0)")) == []


def test_scalar_loads_return_in_any_order() -> None:
    two = (
        "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_load_dwordx2 s[6:7], s[0:1], 0x0\ns_waitcnt lgkmcnt(1)\ns_mov_b32 s8, s4"
    )
    assert kinds(findings(two)) == [Kind.MISSING_WAIT]
    assert findings(two.replace("lgkmcnt(1)", "lgkmcnt(0)")) == []


def test_vector_loads_return_in_order() -> None:
    two = POINTER + "global_load_dword v2, v1, s[4:5]\nglobal_load_dword v3, v1, s[4:5]\ns_waitcnt vmcnt(1)\n"
    assert findings(two + "v_mov_b32_e32 v4, v2") == []
    assert kinds(findings(two + "v_mov_b32_e32 v4, v3")) == [Kind.MISSING_WAIT]


def test_a_load_over_an_outstanding_load_needs_no_wait_if_both_return_in_order() -> None:
    two = POINTER + "{first}\nglobal_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov_b32_e32 v3, v2"
    assert findings(two.format(first="scratch_load_dword v2, off, off")) == []
    found = findings(two.format(first="ds_write_b32 v1, v0\nds_read_b32 v2, v1"))
    assert kinds(found) == [Kind.MISSING_WAIT]


def test_waits_are_counted_apart_where_waves_took_different_branches() -> None:
    # Wave 1 skips a load and its wait; behind the join only wave 0 could be reported, and it has waited.
    branch = POINTER + (
        "v_readfirstlane_b32 s8, v0\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 .LBB0_1\n"
        "global_load_dword v2, v1, s[4:5]\n{wait}\n.LBB0_1:\nv_mov_b32_e32 v3, v2"
    )
    assert findings(branch.format(wait="s_waitcnt vmcnt(0)"), threads=128) == []
    found = findings(branch.format(wait="s_nop 0"), threads=128)
    assert kinds(found) == [Kind.MISSING_WAIT] and found[0].wave == 0


EXCHANGE = """
    v_lshlrev_b32_e32 v1, 2, v0
    ds_write_b32 v1, v0
    s_waitcnt lgkmcnt(0)
    s_barrier
    v_xor_b32_e32 v2, 0x100, v1
    ds_read_b32 v3, v2
    s_waitcnt lgkmcnt(0)
    v_mov_b32_e32 v4, v3
"""


def test_waves_that_exchange_through_lds_need_a_barrier() -> None:
    assert findings(EXCHANGE, threads=128) == []
    found = findings(EXCHANGE.replace("s_barrier", "s_nop 0"), threads=128)
    assert kinds(found) == [Kind.LDS_RACE]
    assert found[0].instruction == "ds_read_b32 v3, v2"


def test_a_write_after_another_wave_has_read_is_a_race() -> None:
    again = EXCHANGE + "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)"
    assert kinds(findings(again, threads=128)) == [Kind.LDS_RACE]
    assert (
        findings(
            again.replace("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)", "s_barrier\nds_write_b32 v1, v0"), threads=128
        )
        == []
    )


def test_waves_that_write_one_place_race_unless_they_write_the_same() -> None:
    both = "v_and_b32_e32 v1, 63, v0\nv_lshlrev_b32_e32 v1, 2, v1\nds_write_b32 v1, {value}"
    assert kinds(findings(both.format(value="v0"), threads=128)) == [Kind.LDS_RACE]
    assert findings(both.format(value="v1"), threads=128) == []


def test_bytes_of_one_dword_are_told_apart() -> None:
    # Each lane of wave 0 writes the lower half of a dword, wave 1 the upper one, and each reads back its own.
    halves = """
        v_and_b32_e32 v1, 63, v0
        v_lshrrev_b32_e32 v2, 6, v0
        v_lshlrev_b32_e32 v2, 1, v2
        v_lshl_add_u32 v1, v1, 2, v2
        ds_write_b16 v1, v0
        s_waitcnt lgkmcnt(0)
        ds_read_u16 v3, v1
    """
    assert findings(halves, threads=128) == []
    # A whole dword holds the other wave's half too.
    whole = halves.replace("ds_read_u16 v3, v1", "v_and_b32_e32 v1, 0xfffffffc, v1\nds_read_b32 v3, v1")
    assert kinds(findings(whole, threads=128)) == [Kind.LDS_RACE]


def test_a_wave_may_read_a_dword_that_it_wrote_in_part_since_the_barrier() -> None:
    text_ = EXCHANGE.replace(
        "v_xor_b32_e32 v2, 0x100, v1\n    ds_read_b32 v3, v2", "ds_write_b16 v1, v0\n    ds_read_b32 v3, v1"
    )
    assert findings(text_, threads=128) == []


def test_lds_that_nobody_wrote_and_lds_out_of_bounds() -> None:
    assert kinds(findings("v_lshlrev_b32_e32 v1, 2, v0\nds_read_b32 v2, v1")) == [Kind.LDS_UNWRITTEN]
    found = findings("v_lshlrev_b32_e32 v1, 2, v0\nds_write_b32 v1, v0 offset:800")
    assert kinds(found) == [Kind.LDS_BOUNDS]
    assert found[0].lane == 56 and "of 1024" in found[0].detail


def test_a_barrier_with_a_write_outstanding() -> None:
    found = findings(EXCHANGE.replace("s_waitcnt lgkmcnt(0)\n    s_barrier", "s_barrier"), threads=128)
    assert kinds(found) == [Kind.BARRIER_WRITES]
    assert found[0].detail == "of ds_write_b32 v1, v0"


ASYNC = (
    POINTER
    + """
    s_mov_b32 s6, 0x7ffffffe
    s_mov_b32 s7, 0x27000
    s_mov_b32 m0, 0
    buffer_load_dword v1, s[4:7], 0 offen lds
    s_waitcnt vmcnt(0)
    ds_read_b32 v3, v1
    s_waitcnt lgkmcnt(0)
"""
)


def test_an_asynchronous_copy_is_there_once_it_was_waited_for() -> None:
    assert findings(ASYNC) == []
    found = findings(ASYNC.replace("s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(1)"))
    assert kinds(found) == [Kind.ASYNC_UNLANDED]
    assert found[0].instruction == "ds_read_b32 v3, v1"


def test_a_barrier_is_no_wait_for_an_asynchronous_copy() -> None:
    assert kinds(findings(ASYNC.replace("s_waitcnt vmcnt(0)", "s_barrier"))) == [Kind.ASYNC_UNLANDED]


def test_work_groups_that_write_the_same_bytes() -> None:
    store = POINTER + "v_add_u32_e32 v0, s2, v0\n{where}global_store_dword v1, v0, s[4:5]"
    found = findings(store.format(where=""), groups=2)
    assert kinds(found) == [Kind.GROUP_RACE]
    assert "work-groups 0 and 1" in found[0].detail or "work-groups 1 and 0" in found[0].detail
    # Two work-groups may write the same value: tiles that wrap around do that.
    assert findings(store.format(where="").replace("v0, s[4:5]", "v1, s[4:5]"), groups=2) == []
    own = "s_lshl_b32 s8, s2, 8\nv_add_u32_e32 v1, s8, v1\n"
    assert findings(store.format(where=own), groups=2) == []


@pytest.mark.parametrize(
    ("release", "kinds_"), [("global_atomic_swap v9, v10, s[4:5] offset:256", []), ("", [Kind.GROUP_RACE])]
)
def test_a_lock_orders_what_work_groups_write(release: str, kinds_: list[Kind]) -> None:
    # The lock lies behind 64 words, which each work-group writes while it has it: with its own number.
    take = "v_mov_b32_e32 v8, 0\nglobal_atomic_cmpswap v7, v8, v[4:5], s[4:5] offset:256 sc0"
    code = (
        POINTER
        + f"""
        v_mov_b32_e32 v4, 1
        v_mov_b32_e32 v5, 0
        v_mov_b32_e32 v9, 0
        v_mov_b32_e32 v10, 0
        v_mov_b32_e32 v11, s2
        s_mov_b64 s[12:13], exec
        s_mov_b64 exec, 1
        .LBB0_1:
        {take if release else "v_mov_b32_e32 v7, 0"}
        s_waitcnt vmcnt(0)
        v_readfirstlane_b32 s9, v7
        s_cmp_lg_u32 s9, 0
        s_cbranch_scc1 .LBB0_1
        s_mov_b64 exec, s[12:13]
        global_store_dword v1, v11, s[4:5]
        s_waitcnt vmcnt(0)
        s_mov_b64 exec, 1
        {release or "global_atomic_add v9, v4, s[4:5] offset:256"}
        """
    )
    words = np.zeros(128, np.uint32)
    assert kinds(findings(code, words, groups=3, order=1)) == kinds_


def test_atomics_of_several_work_groups_are_no_race() -> None:
    assert findings(POINTER + "global_atomic_add v1, v0, s[4:5]", groups=2) == []


def test_scratch_out_of_bounds() -> None:
    assert findings("scratch_store_dword off, v0, off offset:60") == []
    assert kinds(findings("scratch_store_dword off, v0, off offset:64")) == [Kind.SCRATCH_BOUNDS]


def test_an_endless_loop_ends_at_the_step_limit() -> None:
    for order in (None, 1):
        with pytest.raises(cdna.StepLimit, match="more than 1000 instructions"):
            findings("back:\ns_branch back", steps=1000, order=order)


def test_a_wave_that_waits_for_another_gets_its_turn() -> None:
    # Wave 0 spins until wave 1 has stored; it is behind in the program all the while.
    spin = (
        POINTER
        + """
        v_readfirstlane_b32 s8, v0
        v_mov_b32_e32 v4, 0
        s_cmp_lg_u32 s8, 0
        s_cbranch_scc1 .LBB0_2
        .LBB0_1:
        global_load_dword v2, v4, s[4:5]
        s_waitcnt vmcnt(0)
        v_readfirstlane_b32 s9, v2
        s_cmp_eq_u32 s9, 0
        s_cbranch_scc1 .LBB0_1
        s_endpgm
        .LBB0_2:
        v_mov_b32_e32 v3, 1
        global_store_dword v4, v3, s[4:5]
    """
    )
    for order in (None, 1, 2):
        assert findings(spin, threads=128, order=order, steps=100_000) == []


def test_the_order_of_waves_shows_a_missing_barrier_in_the_numbers() -> None:
    store = EXCHANGE + "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v4, s[4:5]"

    def result(code: str, order: int | None) -> list[int]:
        out = np.zeros(128, np.uint32)
        cdna.run(text(code, threads=128, lds_bytes=1024), (1,), [out], order=order)
        return out.tolist()

    assert result(store, None) == result(store, 1) == (np.arange(128) ^ 64).tolist()
    assert result(store.replace("s_barrier", "s_nop 0"), 1) != (np.arange(128) ^ 64).tolist()


# Compiled kernels, mutated. Each case draws the same numbers whatever ran before it.


def gemm_case(target: str) -> Case:
    import gluon_kernels

    rng = np.random.default_rng(0)
    M, N, K = 60, 56, 120
    code = compiled(
        gluon_kernels.gemm,
        target,
        {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
        | {"M": M, "N": N, "K": K, "stride_a": K, "stride_b": N, "stride_c": N},
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "VERSION": 3 if target == "gfx942" else 4, "NONKDIM": 32}
        | {"INSTR_K": 8 if target == "gfx942" else 16, "K_WIDTH": 4 if target == "gfx942" else 8}
        | {"WAVES_M": 2, "WAVES_N": 2, "TRANSPOSED": True, "num_warps": 4},
    )

    def launch(M: int, N: int, K: int) -> tuple[tuple[int, ...], list[Any]]:
        a, b = (cdna.encode(rng.integers(-4, 5, shape), "fp16") for shape in ((M, K), (K, N)))
        out = cdna.Unwritten(np.full((M, N), 99, np.float32))
        return (1, 1), [a, b, out, M, N, K, K, N, N]

    # The compiler knows no more of one than of another: multiples of 16 they are all not, or it would not matter.
    return Case(code.asm["amdgcn"], code.metadata.shared, (launch(M, N, K), launch(51, 37, 75), launch(13, 60, 0)))


def softmax_case(target: str) -> Case:
    import gluon_kernels

    code = compiled(
        gluon_kernels.softmax_rows,
        target,
        {"x_ptr": "*fp32", "y_ptr": "*fp32", "columns": 1001},
        {"BLOCK": 1024, "num_warps": 4},
    )
    rng = np.random.default_rng(0)
    # So wide that the smallest results are denormal: what scales them is needed.
    wide = rng.uniform(-100, 0, (2, 1001)).astype(np.float32)
    # Whoever loses a row's maximum overflows.
    steep = rng.uniform(-100, 0, (16, 1001)).astype(np.float32)
    steep[np.arange(16), rng.integers(0, 1001, 16)] = 200
    launches = (((len(x),), [x, cdna.Unwritten(np.zeros_like(x)), 1001]) for x in (wide, steep))
    return Case(code.asm["amdgcn"], code.metadata.shared, tuple(launches))


def copy_case(wait: int, last: int) -> Case:
    import gluon_kernels

    code = compiled(
        gluon_kernels.copy_through_lds,
        "gfx950",
        {"x_ptr": "*fp16", "y_ptr": "*fp16"},
        {"TILES": 5, "WAIT": wait, "LAST": last, "num_warps": 4},
    )
    x = np.random.default_rng(0).standard_normal((5, 64, 64)).astype(np.float16)
    launch = (1,), [x, cdna.Unwritten(np.zeros_like(x))]
    return Case(code.asm["amdgcn"], code.metadata.shared, (launch,))


CASES = {
    "gemm gfx942": lambda: gemm_case("gfx942"),
    "gemm gfx950": lambda: gemm_case("gfx950"),
    "softmax gfx942": lambda: softmax_case("gfx942"),
    "softmax gfx950": lambda: softmax_case("gfx950"),
    "copy gfx950": lambda: copy_case(1, 0),
}


def triton_version() -> tuple[int, ...]:
    import triton

    return tuple(int(part) for part in triton.__version__.split(".")[:2])


SLOW = ("gemm gfx942", "softmax gfx950")


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in CASES])
def test_every_missing_or_weaker_wait_and_every_missing_barrier_is_found(name: str) -> None:
    case = CASES[name]()
    for mutants in (needed_waits(case), barriers(case.assembly)):
        mutants = {m.place: m for m in mutants}
        told = verdicts(case, iter(mutants.values()))
        missed = [place for place, verdict in told.items() if verdict != "finding"]
        # Before 3.8 a wait counts stores as copies and covers the next copy too: that one's own wait and barrier are
        # then not needed, and the numbers are right even if everything lands as late as it may.
        assert [place for place in missed if not harmless(case, mutants[place])] == []
        assert told and (not missed or (name.startswith("copy") and triton_version() < (3, 8)))


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "copy gfx950" else pytest.mark.slow) for n in CASES])
def test_numbers_are_right_however_late_loads_land(name: str) -> None:
    case = CASES[name]()
    for launch in range(len(case.launches)):
        right = case.run(case.assembly, launch)[1]
        assert [late(case, case.assembly, launch, order) == right for order in (1, 2)] == [True, True]


def test_waits_with_nothing_to_wait_for_are_listed() -> None:
    code = text(
        "s_waitcnt vmcnt(0)\ns_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_mov_b32 s6, s4"
    )
    assert cdna.run(code, (1,), [WORDS.copy()], sanitize=True).idle_waits == ((0, "vmcnt"), (2, "vmcnt"))


def instructions(assembly: str) -> list[str]:
    """Return the program without comments, lines and numbers of labels."""
    lines = (line.partition(";")[0].strip() for line in assembly.splitlines() if line.startswith("\t"))
    return [line for line in lines if not line.startswith(".")]


@pytest.mark.parametrize(("wait", "last"), [(2, 0), (3, 0), (4, 0), (1, 1), (2, 2)])
def test_a_wait_group_that_lets_one_copy_too_many_be_outstanding_is_found(wait: int, last: int) -> None:
    right, case = copy_case(1, 0), copy_case(wait, last)
    assert instructions(case.assembly) != instructions(right.assembly)
    found, _ = case.run(case.assembly, sanitize=True)
    if (wait, last) == (1, 1) and triton_version() < (3, 8):
        # The wait before counts the stores as copies, and so has covered the last copy.
        assert found == () and harmless(case, Mutant("the last wait", case.assembly))
    else:
        assert {f.kind for f in found} == {Kind.ASYNC_UNLANDED}


def ring_case(buffers: int, more: int, folder: Path) -> Case:
    """Return the bundled GEMM on ten tiles along K, with each of its waits for so many copies more."""
    source = (REPOSITORY / "kernels/cdna4/gemm_bf16.py").read_text()
    assert [source.count(f"wait_group({n})") for n in ("0", "NUM_BUFFERS - 2")] == [1, 1]
    source = source.replace("wait_group(0)", f"wait_group({more})")
    source = source.replace("wait_group(NUM_BUFFERS - 2)", f"wait_group(NUM_BUFFERS - 2 + {more})")
    M, N, K = 60, 64, 320
    numbers = {"M": M, "N": N, "K": K, "stride_am": K, "stride_ak": 1, "stride_bn": K, "stride_bk": 1}
    numbers |= {"stride_cm": N, "stride_cn": 1}
    code = compiled(
        module(folder / f"ring_{buffers}_{more}.py", source).gemm_bf16,
        "gfx950",
        {"a_ptr": "*bf16", "b_ptr": "*bf16", "c_ptr": "*bf16", **numbers},
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 1, "NUM_BUFFERS": buffers, "NONKDIM": 16}
        | {"EVEN_K": True, "num_warps": 4},
    )
    rng = np.random.default_rng(0)
    a, b = (cdna.encode(rng.standard_normal(shape), "bf16") for shape in ((M, K), (N, K)))
    arguments = [a, b, cdna.Unwritten(np.zeros((M, N), np.uint16)), M, N, K, K, K, N]
    return Case(code.asm["amdgcn"], code.metadata.shared, (((1,), arguments),))


@pytest.mark.parametrize(
    ("buffers", "more"),
    [
        pytest.param(buffers, more, marks=() if (buffers, more) in ((2, 1), (3, 1)) else pytest.mark.slow)
        for buffers in (1, 2, 3, 4, 6)
        for more in (1, 2, 3)
    ],
)
def test_a_wait_group_too_large_in_the_bundled_ring_is_found(buffers: int, more: int, tmp_path: Path) -> None:
    right, case = (ring_case(buffers, extra, tmp_path) for extra in (0, more))
    assert right.run(right.assembly, sanitize=True)[0] == ()
    assert instructions(case.assembly) != instructions(right.assembly)
    found, _ = case.run(case.assembly, sanitize=True)
    # Before 3.8 a single buffer is filled after its reads without a barrier between: the fault is then a data race.
    race = buffers == 1 and triton_version() < (3, 8)
    assert {f.kind for f in found} == {Kind.LDS_RACE if race else Kind.ASYNC_UNLANDED}


IDLE = ("s_nop", "s_cbranch_execz", "s_setprio", "s_load", "s_branch .LBB0_0")
"""Opcodes whose deletion mostly has no effect: delays, branches around nothing, arguments that were preloaded."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_three_of_four_deleted_instructions_are_noticed(name: str) -> None:
    case = CASES[name]()
    mutants = (m for m in without(case.assembly, "") if not m.place.partition(": ")[2].startswith(IDLE))
    told = verdicts(case, itertools.islice(mutants, 0, None, 2), orders=(1,))
    missed = [place for place, verdict in told.items() if not verdict]
    assert len(missed) <= 0.25 * len(told), json.dumps(missed, indent=1)
    # A deletion that provably has no effect cannot be detected. Of the others nine of ten are detected.
    lost = without_effect(case)
    noticed = {int(place.partition(":")[0]) for place, verdict in told.items() if verdict in ("numbers", "order")}
    assert noticed.isdisjoint(lost)
    missed = [place for place in missed if int(place.partition(":")[0]) not in lost]
    assert len(missed) <= 0.1 * len(told), json.dumps(missed, indent=1)
