"""The launch: arguments, grid, what waves find at the start, and the figures of a run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from assembly import text

from gluonmap import cdna
from gluonmap.cdna import launch

COPY = """
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_lshl_b32 s8, s2, 8
    v_lshlrev_b32_e32 v1, 2, v0
    v_add_u32_e32 v1, s8, v1
    s_waitcnt lgkmcnt(0)
    global_load_dword v2, v1, s[4:5]
    s_waitcnt vmcnt(0)
    global_store_dword v1, v2, s[6:7]
"""


def test_arrays_are_written_in_place_and_inputs_stay() -> None:
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    result = cdna.run(text(COPY, pointers=2), (2,), [x, y], sanitize=True)
    assert result.findings == ()
    np.testing.assert_array_equal(y, np.arange(128))
    np.testing.assert_array_equal(x, np.arange(128))
    assert result.executed == 9


def test_buffers_of_bytes_and_transposed_arrays_will_do() -> None:
    raw = bytearray(range(256)) * 2
    out = np.zeros((8, 16), np.uint32).T
    cdna.run(text(COPY, pointers=2), (2,), [raw, out])
    assert out.T.tobytes() == bytes(raw)


def test_one_array_given_twice_is_one_buffer() -> None:
    x = np.arange(128, dtype=np.uint32)
    code = COPY.replace(
        "global_store_dword v1, v2, s[6:7]", "v_add_u32_e32 v2, 1, v2\nglobal_store_dword v1, v2, s[6:7]"
    )
    cdna.run(text(code, pointers=2), (2,), [x, x])
    np.testing.assert_array_equal(x, np.arange(128) + 1)


def test_arguments_by_name_as_triton_returns_a_kernel() -> None:
    compiled = SimpleNamespace(
        asm={"amdgcn": text(COPY, pointers=4)},
        metadata=SimpleNamespace(shared=0),
        src=SimpleNamespace(signature={"x_ptr": "*fp32", "BLOCK": "constexpr", "y_ptr": "*fp32"}),
    )
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    cdna.run(compiled, (1,), {"x_ptr": x, "y_ptr": y, "BLOCK": 64})
    np.testing.assert_array_equal(x, y)
    with pytest.raises(cdna.BadLaunch, match="no argument y_ptr"):
        cdna.run(compiled, (1,), {"x_ptr": x})


def test_wrong_launches_say_what_is_wrong() -> None:
    x = np.zeros(64, np.float32)
    for grid, arguments, message in (
        ((0,), [x, x], "each at least 1"),
        ((1,), [x, x, x], "3 arguments: k takes 2"),
        ((1,), [x, "y"], "of type str"),
        ((1,), [x, np.zeros((8, 16))[:, ::2]], "not contiguous"),
        ((1,), [x, 1.5], "kind global_buffer"),
    ):
        with pytest.raises(cdna.BadLaunch, match=message):
            cdna.run(text(COPY, pointers=2), grid, arguments)


def test_work_groups_know_their_place_in_three_dimensions() -> None:
    code = """
        s_load_dwordx2 s[6:7], s[0:1], 0x0
        s_lshl_b32 s8, s3, 4
        s_lshl_b32 s9, s4, 8
        s_or_b32 s8, s8, s9
        s_or_b32 s8, s8, s2
        v_mov_b32_e32 v1, s8
        v_mul_u32_u24_e32 v2, 0, v0
        s_mul_i32 s9, s3, 2
        s_add_i32 s9, s9, s2
        s_mul_i32 s10, s4, 6
        s_add_i32 s9, s9, s10
        s_lshl_b32 s9, s9, 2
        v_mov_b32_e32 v2, s9
        s_waitcnt lgkmcnt(0)
        global_store_dword v2, v1, s[6:7]
    """
    out = np.zeros(24, np.uint32)
    cdna.run(text(code, directives={f"system_sgpr_workgroup_id_{axis}": 1 for axis in "xyz"}), (2, 3, 4), [out])
    assert out.tolist() == [x | y << 4 | z << 8 for z in range(4) for y in range(3) for x in range(2)]


def test_preloaded_arguments_stand_in_registers() -> None:
    code = "v_lshlrev_b32_e32 v1, 2, v0\nglobal_store_dword v1, v0, s[2:3]"
    out = np.zeros(64, np.uint32)
    directives = {"user_sgpr_count": 4, "user_sgpr_kernarg_preload_length": 2}
    cdna.run(text(code, directives=directives), (1,), [out])
    np.testing.assert_array_equal(out, np.arange(64))


def test_the_dispatch_packet_holds_sizes_in_work_items() -> None:
    code = """
        s_load_dwordx2 s[8:9], s[2:3], 0x0
        s_load_dword s10, s[0:1], 0x4
        s_load_dword s11, s[0:1], 0xc
        s_waitcnt lgkmcnt(0)
        s_and_b32 s10, s10, 0xffff
        v_mov_b32_e32 v1, 0
        v_mov_b32_e32 v2, s10
        v_mov_b32_e32 v3, s11
        global_store_dwordx2 v1, v[2:3], s[8:9]
    """
    out = np.zeros(2, np.uint32)
    cdna.run(text(code, threads=128, directives={"user_sgpr_dispatch_ptr": 1, "user_sgpr_count": 4}), (3,), [out])
    assert out.tolist() == [128, 384]


def test_what_nobody_set_depends_on_the_seed() -> None:
    code = """
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        v_lshlrev_b32_e32 v1, 2, v0
        s_waitcnt lgkmcnt(0)
        global_store_dword v1, v9, s[4:5]
    """

    def left(seed: int) -> list[int]:
        out = np.zeros(64, np.uint32)
        cdna.run(text(code), (1,), [out], seed=seed)
        return out.tolist()

    assert left(1) == left(1) != left(2)


def test_a_grid_too_large_to_run_at_once_runs_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each work-group turns 64 numbers round through its LDS.
    code = COPY.replace(
        "global_store_dword v1, v2, s[6:7]",
        """
        v_lshlrev_b32_e32 v3, 2, v0
        ds_write_b32 v3, v2
        s_waitcnt lgkmcnt(0)
        v_sub_u32_e32 v3, 0xfc, v3
        ds_read_b32 v2, v3
        s_waitcnt lgkmcnt(0)
        global_store_dword v1, v2, s[6:7]
        """,
    )
    x = np.arange(7 * 64, dtype=np.uint32)
    for bytes_ in (1 << 29, 1 << 13, 1):
        monkeypatch.setattr(launch, "_TOGETHER", bytes_)
        for order in (None, 1):
            y = np.zeros_like(x)
            result = cdna.run(text(code, pointers=2, lds_bytes=256), (7,), [x, y], sanitize=True, order=order)
            assert result.findings == ()
            np.testing.assert_array_equal(y.reshape(7, 64), x.reshape(7, 64)[:, ::-1])


def test_a_trace_is_told_of_each_block() -> None:
    seen: list[tuple[int, int, list[int]]] = []
    x = np.zeros(128, np.uint32)
    cdna.run(
        text(COPY + "s_barrier\ns_nop 0", pointers=2),
        (2,),
        [x, x],
        trace=lambda block, waves: seen.append((block.start, block.end, waves.ids.tolist())),
    )
    assert seen == [(0, 9, [0, 1]), (9, 11, [0, 1])]


def test_numbers_of_types_that_numpy_lacks() -> None:
    values = np.array([1.0, -2.5, 3.0e38, np.nan], np.float32)
    assert cdna.encode(values, "bf16").tolist() == [0x3F80, 0xC020, 0x7F62, 0x7FC0]
    np.testing.assert_array_equal(cdna.decode(cdna.encode(values[:2], "bf16"), "bf16"), values[:2])
    assert cdna.encode(np.array([1.0, 448.0]), "fp8e4nv").tolist() == [0x38, 0x7E]
    assert cdna.encode(np.array([1.0, 240.0]), "fp8e4b8").tolist() == [0x40, 0x7F]
    assert cdna.decode(np.array([0x21, 0xF7], np.uint8), "e2m1").tolist() == [0.5, 1.0, 6.0, -6.0]


def test_figures_of_a_run() -> None:
    code = (
        COPY
        + """
        v_lshlrev_b32_e32 v3, 7, v0
        v_and_b32_e32 v3, 0x3ff, v3
        ds_write_b32 v3, v0
        s_waitcnt lgkmcnt(0)
        s_barrier
        scratch_store_dword off, v0, off
    """
    )
    x, y = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    found = cdna.run(text(code, pointers=2, lds_bytes=1024), (2,), [x, y], figures=True).figures
    assert found is not None
    assert (found.global_accesses, found.global_lines, found.global_bytes) == (4, 16, 1024)
    assert found.lines_per_access == 4.0
    # Eight places 128 bytes apart are one bank of 32: each half of the wave passes eight times.
    assert (found.lds_cycles, found.lds_ideal_cycles, found.bank_conflict_factor) == (32, 4, 8.0)
    assert found.scratch_bytes == 2 * 64 * 4
    assert (found.waits, found.barriers, found.mfma_share) == (6, 2, 0.0)
    assert found.instructions == {
        "vector": 8,
        "wait": 6,
        "global": 4,
        "scalar": 2,
        "scalar memory": 2,
        "lds": 2,
        "barrier": 2,
        "scratch": 2,
        "branch": 2,
    }


@pytest.mark.parametrize(("target", "passes"), [("gfx942", 8), ("gfx950", 4)])
def test_figures_of_lanes_with_three_dwords_in_lds(target: str, passes: int) -> None:
    code = """
        v_mul_u32_u24_e32 v3, 12, v0
        ds_write_b96 v3, v[4:6]
        ds_read_b96 v[4:6], v3
    """
    found = cdna.run(text(code, target=target, lds_bytes=1024), (1,), [], figures=True).figures
    assert found is not None
    # 3 dwords a lane divide neither 32 nor 64 banks: 8 lanes a pass, or 16.
    assert (found.lds_cycles, found.lds_ideal_cycles) == (2 * passes, 2 * passes)
