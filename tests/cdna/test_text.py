"""The parser of assembly text."""

from __future__ import annotations

import pytest
from assembly import text

from gluonmap import cdna
from gluonmap.cdna import operands
from gluonmap.cdna.program import build
from gluonmap.cdna.text import Line, read


def only(instruction: str):
    return read(text(instruction)).instructions[0]


def test_operands_and_modifiers_of_an_instruction() -> None:
    load = only("buffer_load_dwordx4 v[2:5], v1, s[4:7], 0 offen offset:16 sc0 nt")
    assert load.name == "buffer_load_dwordx4"
    assert [(o.kind, o.index, o.count) for o in load.operands[:3]] == [("v", 2, 4), ("v", 1, 1), ("s", 4, 4)]
    assert load.operands[3].value == 0
    assert load.modifiers == {"offen": 1, "offset": 16, "sc0": 1, "nt": 1}


def test_encoding_suffixes_go_and_others_stay() -> None:
    assert only("v_add_u32_e32 v0, v1, v2").name == "v_add_u32"
    assert only("v_add_u32_dpp v0, v1, v2 row_shr:1").name == "v_add_u32_dpp"


@pytest.mark.parametrize(
    ("word", "kind", "index", "negative", "absolute"),
    [
        ("-v3", "v", 3, True, False),
        ("|s4|", "s", 4, False, True),
        ("-|v7|", "v", 7, True, True),
        ("a2", "v", 258, False, False),
        ("vcc_hi", "s", 107, False, False),
        ("exec", "s", 126, False, False),
        ("m0", "s", 124, False, False),
        ("off", "word", 0, False, False),
    ],
)
def test_operands(word: str, kind: str, index: int, negative: bool, absolute: bool) -> None:
    operand = operands.parse(word)
    assert (operand.kind, operand.index, operand.negative, operand.absolute) == (kind, index, negative, absolute)


def test_immediates() -> None:
    assert operands.parse("-16").value == -16
    assert operands.parse("0xffff0000").value == 0xFFFF0000
    assert operands.parse("0.15915494").value == 0.15915494
    assert operands.parse("neg(0)").negative


def test_lists_and_patterns_are_modifiers() -> None:
    packed = only("v_pk_add_f16 v0, v[1:1], s[2:3] op_sel:[0,1] op_sel_hi:[1,0]")
    assert packed.modifiers == {"op_sel": (0, 1), "op_sel_hi": (1, 0)}
    assert len(packed.operands) == 3
    swizzle = only("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)")
    assert swizzle.modifiers == {"offset": "swizzle(SWAP,16)"}


def test_counters_of_a_wait() -> None:
    assert only("s_waitcnt vmcnt(3) lgkmcnt(0)").modifiers == {"vmcnt": 3, "lgkmcnt": 0}


def test_lines_of_the_source() -> None:
    code = read(
        text('.file 1 "/somewhere" "kernel.py"\n.loc 1 42 7\nv_mov_b32_e32 v0, 1\n.loc 1 0 7\nv_mov_b32_e32 v1, 1')
    )
    assert code.instructions[0].line == Line("kernel.py", 42, (), "/somewhere/kernel.py")
    assert code.instructions[1].line == Line("kernel.py", 42, (), "/somewhere/kernel.py")


def test_lines_of_inlined_functions_say_where_these_are_called() -> None:
    chain = '.file 1 "/" "k.py"\n.loc 1 78 5 ; k.py:78:5 @[ k.py:99:1 @[ main.py:134:9 ] ]\ns_nop 0'
    assert str(read(text(chain)).instructions[0].line) == "k.py:78 called from k.py:99 called from main.py:134"


def test_blocks_begin_at_targets_of_branches_and_not_at_other_labels() -> None:
    program = build(
        read(text("s_mov_b32 s4, 1\n.Ltmp0:\ns_mov_b32 s5, 1\n.LBB0_1:\ns_mov_b32 s6, 1\ns_cbranch_scc1 .LBB0_1"))
    )
    assert [(b.start, b.end) for b in program.blocks] == [(0, 2), (2, 4), (4, 5)]


def test_accumulation_registers_follow_the_vector_registers_that_are_used() -> None:
    program = build(read(text("v_accvgpr_write_b32 a3, v9")))
    assert program.registers == 14
    assert program.register_name(13) == "a3"
    assert program.register_name(9) == "v9"


def test_arguments_of_the_metadata() -> None:
    code = read(text("s_nop 0", pointers=2, threads=256))
    assert [(a.offset, a.size, a.kind) for a in code.arguments] == [(0, 8, "global_buffer"), (8, 8, "global_buffer")]
    assert code.waves == 4


def test_text_that_is_no_kernel_is_refused() -> None:
    with pytest.raises(cdna.BadProgram, match="not amdgcn assembly of one kernel"):
        read("ret;")


def test_other_targets_and_other_float_modes_are_not_executed() -> None:
    with pytest.raises(cdna.NotExecuted, match="gfx90a"):
        cdna.prepare(text("s_nop 0", target="gfx90a"))
    with pytest.raises(cdna.NotExecuted, match="float_denorm_mode_32 0"):
        cdna.prepare(text("s_nop 0", directives={"float_denorm_mode_32": 0}))
