"""Loads, stores and atomics, in the forms that kernels use."""

from __future__ import annotations

import numpy as np
import pytest
from assembly import text

from gluonmap import cdna

POINTER = "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32_e32 v1, 2, v0\n"
BUFFER = POINTER + "s_mov_b32 s6, 0x7ffffffe\ns_mov_b32 s7, 0x27000\n"
LANE = np.arange(64, dtype=np.uint32)


def memory(
    instructions: str, content: np.ndarray | None = None, target: str = "gfx942", grid: tuple[int, ...] = (1,)
) -> np.ndarray:
    """Return 1 KiB of global memory after a kernel of one wave, which finds its address in s[4:5]."""
    array = np.zeros(256, np.uint32) if content is None else content.copy()
    result = cdna.run(text(instructions, target, lds_bytes=1024), grid, [array], sanitize=True)
    assert [str(f) for f in result.findings] == []
    return array


def test_a_store_writes_the_active_lanes() -> None:
    got = memory(POINTER + "s_mov_b64 exec, 5\nglobal_store_dword v1, v0, s[4:5] offset:16")
    assert got[:8].tolist() == [0, 0, 0, 0, 0, 0, 2, 0]


def test_bytes_and_halves_and_the_upper_half() -> None:
    store = POINTER + "v_mov_b32_e32 v2, 0x11228384\n"
    assert memory(store + "global_store_byte v1, v2, s[4:5]")[0] == 0x84
    assert memory(store + "global_store_short v1, v2, s[4:5]")[0] == 0x8384
    assert memory(store + "global_store_short_d16_hi v1, v2, s[4:5]")[0] == 0x1122
    load = POINTER + "global_load_{} v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v2, s[4:5] offset:512"
    content = np.full(256, 0x11228384, np.uint32)
    for width, expected in (("ubyte", 0x84), ("sbyte", 0xFFFFFF84), ("ushort", 0x8384), ("sshort", 0xFFFF8384)):
        assert memory(load.format(width), content)[128] == expected


def test_vectors_of_dwords_aligned_or_not() -> None:
    for shift in (0, 1):
        code = (
            POINTER
            + f"""
            v_lshlrev_b32_e32 v1, 2, v1
            v_and_b32_e32 v1, 0x7f, v1
            v_add_u32_e32 v1, {shift}, v1
            global_load_dwordx4 v[4:7], v1, s[4:5]
            s_waitcnt vmcnt(0)
            global_store_dwordx4 v1, v[4:7], s[4:5] offset:512
        """
        )
        content = np.arange(256, dtype=np.uint32) * 0x01030507
        got = memory(code, content)
        expected = content.view(np.uint8)[shift : shift + 128].tolist()
        assert got.view(np.uint8)[512 + shift : 512 + shift + 128].tolist() == expected


def test_addresses_of_64_bits_in_registers() -> None:
    code = (
        POINTER
        + "v_mov_b32_e32 v2, s4\nv_mov_b32_e32 v3, s5\nv_mov_b32_e32 v4, 7\nglobal_store_dword v[2:3], v4, off offset:8"
    )
    assert memory(code)[:4].tolist() == [0, 0, 7, 0]


def test_a_buffer_drops_what_lies_behind_its_range() -> None:
    code = BUFFER + "s_movk_i32 s6, 0x80\nbuffer_store_dword v0, v1, s[4:7], 0 offen"
    assert memory(code)[30:34].tolist() == [30, 31, 0, 0]
    code = BUFFER + "s_movk_i32 s6, 0x80\nbuffer_load_dword v2, v1, s[4:7], 0 offen\ns_waitcnt vmcnt(0)\n"
    got = memory(code + "global_store_dword v1, v2, s[4:5] offset:512", np.full(256, 9, np.uint32))
    assert got[128 + 30 : 128 + 34].tolist() == [9, 9, 0, 0]


def test_half_an_access_at_the_end_of_a_buffer_is_not_executed() -> None:
    code = BUFFER + "s_movk_i32 s6, 0x82\nbuffer_store_dword v0, v1, s[4:7], 0 offen"
    with pytest.raises(cdna.NotExecuted, match="at the very end of a buffer's range"):
        memory(code)


@pytest.mark.parametrize("word", ["0x40027000", "0x827000"])
def test_a_descriptor_of_anything_but_a_plain_buffer_is_not_executed(word: str) -> None:
    code = BUFFER + f"s_mov_b32 s7, {word}\nbuffer_store_dword v0, v1, s[4:7], 0 offen"
    with pytest.raises(cdna.NotExecuted, match="no descriptor of a plain buffer"):
        memory(code)


def test_a_scalar_offset_moves_a_buffer_access() -> None:
    code = BUFFER + "s_mov_b32 s8, 16\nbuffer_store_dword v0, v1, s[4:7], s8 offen offset:4"
    assert memory(code)[4:8].tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("operation", "before", "value", "after"),
    [
        ("add", 5, 7, 12),
        ("sub", 5, 7, 0xFFFFFFFE),
        ("smax", 0xFFFFFFFF, 3, 3),
        ("smin", 0xFFFFFFFF, 3, 0xFFFFFFFF),
        ("umax", 0xFFFFFFFF, 3, 0xFFFFFFFF),
        ("umin", 0xFFFFFFFF, 3, 3),
        ("and", 12, 10, 8),
        ("or", 12, 10, 14),
        ("xor", 12, 10, 6),
        ("swap", 12, 10, 10),
        ("add_f32", 0x3F800000, 0x40000000, 0x40400000),
        ("pk_add_f16", 0x3C004000, 0x3C003C00, 0x40004200),
        ("pk_add_bf16", 0x3F804000, 0x3F803F80, 0x40004040),
    ],
)
def test_atomics(operation: str, before: int, value: int, after: int) -> None:
    code = POINTER + f"v_mov_b32_e32 v2, {value:#x}\nv_mov_b32_e32 v1, 0\ns_mov_b64 exec, 1\nglobal_atomic_{operation} "
    content = np.full(256, before, np.uint32)
    assert memory(code + "v1, v2, s[4:5]", content)[0] == after
    returned = code + "v3, v1, v2, s[4:5] sc0\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[4:5] offset:4"
    assert memory(returned, content)[:2].tolist() == [after, before]


@pytest.mark.parametrize(
    ("operation", "before", "value", "after"),
    [
        ("add_x2", 0xFFFFFFFF, 1, 1 << 32),
        ("add_f64", 0x3FF0000000000000, 0x4000000000000000, 0x4008000000000000),
    ],
)
def test_atomics_of_64_bits(operation: str, before: int, value: int, after: int) -> None:
    code = POINTER + f"v_mov_b32_e32 v2, {value & 0xFFFFFFFF:#x}\nv_mov_b32_e32 v3, {value >> 32:#x}\n"
    code += f"v_mov_b32_e32 v1, 0\ns_mov_b64 exec, 1\nglobal_atomic_{operation} v1, v[2:3], s[4:5]"
    content = np.full(128, before, np.uint64).view(np.uint32)
    assert int(memory(code, content)[:2].copy().view(np.uint64)[0]) == after


def test_compare_and_swap() -> None:
    code = POINTER + "v_mov_b32_e32 v2, 9\nv_mov_b32_e32 v3, 5\nv_mov_b32_e32 v1, 0\ns_mov_b64 exec, 1\n"
    code += "global_atomic_cmpswap v1, v[2:3], s[4:5]"
    assert memory(code, np.full(256, 5, np.uint32))[0] == 9
    assert memory(code, np.full(256, 6, np.uint32))[0] == 6


def test_all_lanes_and_work_groups_count_in_an_atomic() -> None:
    code = POINTER + "v_mov_b32_e32 v1, 0\nv_mov_b32_e32 v2, 1\nglobal_atomic_add v1, v2, s[4:5]"
    assert memory(code, grid=(3,))[0] == 3 * 64


STORE = "\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, {}, s[4:5]"


def test_lds_pairs_with_their_strides() -> None:
    code = POINTER + "v_add_u32_e32 v2, 0x64, v0\nds_write2st64_b32 v1, v0, v2 offset0:1 offset1:2\n"
    code += "s_waitcnt lgkmcnt(0)\nds_read2_b32 v[4:5], v1 offset0:64 offset1:128"
    np.testing.assert_array_equal(memory(code + STORE.format("v4"))[:64], LANE)
    np.testing.assert_array_equal(memory(code + STORE.format("v5"))[:64], LANE + 100)


def test_an_lds_address_wraps_at_32_bits() -> None:
    code = POINTER + "v_add_u32_e32 v2, 0xffffff00, v1\nds_write_b32 v2, v0 offset:512\ns_waitcnt lgkmcnt(0)\n"
    code += "ds_read_b32 v3, v1 offset:256\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v3, s[4:5]"
    assert memory(code)[:64].tolist() == list(range(64))


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("{}_short_d16", 0xBEEF8384),
        ("{}_short_d16_hi", 0x8384BEEF),
        ("{}_ubyte_d16", 0xBEEF0084),
        ("{}_ubyte_d16_hi", 0x0084BEEF),
        ("{}_sbyte_d16", 0xBEEFFF84),
        ("{}_sbyte_d16_hi", 0xFF84BEEF),
    ],
)
def test_loads_to_half_a_register_leave_the_other(opcode: str, expected: int) -> None:
    content = np.full(256, 0x11228384, np.uint32)
    lds = opcode.replace("short", "u16").replace("ubyte", "u8").replace("sbyte", "i8")
    loads = [
        opcode.format("global_load") + " v3, v1, s[4:5]",
        opcode.format("flat_load") + " v3, v[4:5]",
        opcode.format("buffer_load") + " v3, v1, s[4:7], 0 offen",
        "global_load_dword v6, v1, s[4:5]\ns_waitcnt vmcnt(0)\nds_write_b32 v1, v6\ns_waitcnt lgkmcnt(0)\n"
        + lds.format("ds_read")
        + " v3, v1",
    ]
    for load in loads:
        code = BUFFER + "v_mov_b32_e32 v3, 0xbeefbeef\nv_mov_b32_e32 v5, s5\nv_add_u32_e32 v4, s4, v1\n" + load
        got = memory(code + "\ns_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dword v1, v3, s[4:5]", content)
        assert hex(int(got[5])) == hex(expected), load


def test_flat_accesses_reach_global_memory() -> None:
    code = POINTER + "v_mov_b32_e32 v5, s5\nv_add_u32_e32 v4, s4, v1\nflat_store_dword v[4:5], v0 offset:8"
    assert memory(code)[:5].tolist() == [0, 0, 0, 1, 2]
    code = POINTER + "v_mov_b32_e32 v5, s5\nv_mov_b32_e32 v4, s4\nv_mov_b32_e32 v2, 1\nflat_atomic_add v[4:5], v2"
    assert memory(code)[0] == 64


def test_lds_halves_and_signs() -> None:
    code = (
        POINTER + "v_mov_b32_e32 v2, 0x11228384\nds_write_{write} v1, v2\ns_waitcnt lgkmcnt(0)\nds_read_{read} v3, v1"
    )
    for write, read, expected in (
        ("b8", "i8", 0xFFFFFF84),
        ("b16", "u16", 0x8384),
        ("b16", "i16", 0xFFFF8384),
        ("b16_d16_hi", "u16", 0x1122),
        ("b8_d16_hi", "u8", 0x22),
    ):
        assert memory(code.format(write=write, read=read) + STORE.format("v3"))[0] == expected


@pytest.mark.parametrize(
    ("operation", "before", "value", "after"),
    [
        ("add_u32", 5, 0xFFFFFFFE, 3),
        ("sub_u32", 5, 7, 0xFFFFFFFE),
        ("min_u32", 5, 0xFFFFFFFE, 5),
        ("max_u32", 5, 0xFFFFFFFE, 0xFFFFFFFE),
        ("min_i32", 5, 0xFFFFFFFE, 0xFFFFFFFE),
        ("max_i32", 5, 0xFFFFFFFE, 5),
        ("and_b32", 12, 10, 8),
        ("or_b32", 12, 10, 14),
        ("xor_b32", 12, 10, 6),
        ("add_f32", 0x3F800000, 0x40000000, 0x40400000),
    ],
)
def test_lds_atomics(operation: str, before: int, value: int, after: int) -> None:
    code = (
        POINTER
        + f"v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v5, {before:#x}\nds_write_b32 v2, v5\nv_mov_b32_e32 v3, {value:#x}\n"
    )
    code += "s_mov_b64 exec, 1\nds_{} v2, v3\nds_read_b32 v4, v2"
    assert memory(code.format(operation) + STORE.format("v4"))[0] == after
    returned = code.replace("ds_{} v2", "ds_{} v4, v2").replace("\nds_read_b32 v4, v2", "")
    name, kind = operation.rsplit("_", 1)
    assert memory(returned.format(f"{name}_rtn_{kind}") + STORE.format("v4"))[0] == before


def test_all_lanes_count_in_an_lds_atomic() -> None:
    code = (
        POINTER + "v_mov_b32_e32 v2, 0\nds_write_b32 v2, v2\nv_mov_b32_e32 v3, 2\nds_add_u32 v2, v3\nds_read_b32 v4, v2"
    )
    assert memory(code + STORE.format("v4"))[0] == 128


@pytest.mark.parametrize(("bits", "rows"), [(16, 4), (8, 8)])
def test_transposed_reads_give_sixteen_lanes_a_column_each(bits: int, rows: int) -> None:
    # Lanes of a group of 16 read 8 bytes each: `rows` rows of 16 elements. Lane i then holds column i.
    code = POINTER + "v_lshlrev_b32_e32 v2, 3, v0\nds_write_b64 v2, v[4:5]\ns_waitcnt lgkmcnt(0)\n"
    code = code.replace("ds_write", "global_load_dwordx2 v[4:5], v2, s[4:5]\ns_waitcnt vmcnt(0)\nds_write")
    code += f"ds_read_b64_tr_b{bits} v[6:7], v2\ns_waitcnt lgkmcnt(0)\nglobal_store_dwordx2 v2, v[6:7], s[4:5]"
    dtype = {16: np.uint16, 8: np.uint8}[bits]
    content = np.arange(1024 // (bits // 8)).astype(dtype).view(np.uint32)
    got = memory(code, content, "gfx950").view(dtype)[: 512 // (bits // 8)].reshape(4, 16, rows)
    tiles = content.view(dtype)[: 512 // (bits // 8)].reshape(4, rows, 16)
    np.testing.assert_array_equal(got, tiles.transpose(0, 2, 1))


def test_a_copy_to_lds_goes_to_m0_lane_by_lane() -> None:
    code = (
        BUFFER
        + """
        s_movk_i32 m0, 0x100
        buffer_load_dword v1, s[4:7], 0 offen offset:16 lds
        s_waitcnt vmcnt(0)
        ds_read_b32 v3, v1 offset:272
    """
    )
    got = memory(code + STORE.format("v3"), np.arange(256, dtype=np.uint32))
    np.testing.assert_array_equal(got[:64], LANE + 4)


def test_scratch_is_each_lane_s_own() -> None:
    code = (
        POINTER
        + """
        scratch_store_dword off, v0, off offset:8
        s_waitcnt vmcnt(0)
        scratch_load_dword v2, off, off offset:8
        s_waitcnt vmcnt(0)
    """
    )
    np.testing.assert_array_equal(memory(code + STORE.format("v2"))[:64], LANE)
