"""Instructions that move values between lanes, and between lanes and scalar registers."""

from __future__ import annotations

from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.runtime import swizzle
from gluonmap.cdna.text import Instruction
from gluonmap.cdna.writer import Writer


def emit(out: Writer, i: Instruction) -> bool:
    operands = i.operands
    match i.name:
        case "v_readlane_b32":
            out.put_scalar(operands[0], "u", f"read_lane(w, {_vector(out, i, 1)}, {out.source(operands[2], 'u')})")
        case "v_readfirstlane_b32":
            out.put_scalar(operands[0], "u", f"first_lane(w, {_vector(out, i, 1)})")
        case "v_writelane_b32":
            value, lane = out.source(operands[1], "u"), out.source(operands[2], "u")
            out.line(f"write_lane(w, {_vector(out, i, 0)}, {value}, {lane})")
        case "v_mbcnt_lo_u32_b32" | "v_mbcnt_hi_u32_b32":
            mask, more = out.source(operands[1], "u"), out.source(operands[2], "u")
            out.put(operands[0], "u", f"count_below(w, {mask}, {'hi' in i.name}) + {more}")
        case "v_permlane16_swap_b32" | "v_permlane32_swap_b32":
            if i.modifiers:
                raise NotExecuted(i.text)
            rows = 32 if "32_swap" in i.name else 16
            out.line(f"swap_rows(w, {operands[0].index}, {operands[1].index}, {rows}, {i.text!r})")
        case "v_swap_b32":
            a, b = _vector(out, i, 0), _vector(out, i, 1)
            out.line(f"kept = {a}.copy(); put({a}, {b}, W); put({b}, kept, W)")
        case "ds_bpermute_b32" | "ds_permute_b32":
            function = "pull" if i.name == "ds_bpermute_b32" else "push"
            value = f"{function}(w, {_vector(out, i, 1)}, {_vector(out, i, 2)}, {i.number('offset')})"
            out.put(operands[0], "u", value)
        case "ds_swizzle_b32":
            out.put(operands[0], "u", f"swizzled(w, {_vector(out, i, 1)}, {out.constant(swizzle(i))})")
        case _:
            return False
    return True


def _vector(out: Writer, i: Instruction, number: int) -> str:
    operand = i.operands[number]
    if operand.kind != "v":
        raise NotExecuted(i.text)
    return out.source(operand, "u")
