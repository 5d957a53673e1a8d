"""Vector arithmetic, comparisons, conversions, and their DPP and SDWA forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gluonmap.cdna.arithmetic import DIVISION_F32, DIVISION_F64, bit_table, fma, to_byte_float
from gluonmap.cdna.errors import NotExecuted
from gluonmap.cdna.formats import BF8, E2M1, FP8
from gluonmap.cdna.opcodes.vector import ACCUMULATE, COMPARE, COMPARED_KINDS, CONSTANT, PACKED, SATURATE, TABLE, Lanes
from gluonmap.cdna.operands import OVERFLOW, VCC, Operand
from gluonmap.cdna.runtime import shuffle
from gluonmap.cdna.text import Instruction
from gluonmap.cdna.writer import LISTS, Writer, list_modifier

_COMPARISON = re.compile(r"v_cmp(x?)_(\w+)_([fiu](?:16|32|64))$")
_CARRY = re.compile(r"v_(add|addc|sub|subb|subrev|subbrev)_co_u32$")
_KNOWN = frozenset(("clamp", "mul:2", "mul:4", "div:2", "mul", "div", "op_sel"))
_F16_PAIRS = ("v_cvt_pk_f16_f32", "v_cvt_pkrtz_f16_f32")
_VCC = Operand("vcc", "s", VCC, 2)
_KIND_DTYPES: dict[str, Any] = {
    "u": np.uint32,
    "i": np.int32,
    "f": np.float32,
    "w": np.uint16,
    "s": np.int16,
    "h": np.float16,
}


def emit(out: Writer, i: Instruction) -> bool:
    name = i.name
    if name.endswith("_dpp"):
        return _dpp(out, i, name[:-4])
    if name.endswith("_sdwa"):
        return _sdwa(out, i, name[:-5])
    if name in PACKED:
        return _packed(out, i, PACKED[name])
    if name in ACCUMULATE:
        _check(i, frozenset())
        lanes = TABLE[ACCUMULATE[name]]
        operands = (*i.operands[1:], i.operands[0])
        sources = [out.source(o, kind) for o, kind in zip(operands, lanes.sources, strict=True)]
        # The two-operand form zeroes the other half, like most opcodes of gfx9.
        out.put(i.operands[0], lanes.result, f"{out.constant(lanes.compute)}({', '.join(sources)})")
        return True
    if name in TABLE:
        _check(i, _KNOWN)
        lanes = TABLE[name]
        if out.modal and name in _F16_PAIRS:
            raise NotExecuted(f"{i.text}: in a program that sets the overflow mode")
        select = list_modifier(i, "op_sel", len(lanes.sources) + 1, 0)
        if any(select) and not all(k in "wsh" for k in lanes.sources + lanes.result):
            raise NotExecuted(i.text)
        sources = [
            out.source(o, kind, half) for o, kind, half in zip(i.operands[1:], lanes.sources, select, strict=False)
        ]
        if len(sources) != len(lanes.sources):
            raise NotExecuted(i.text)
        _result(out, i, lanes, sources, "W", select[-1])
        return True
    if name in CONSTANT:
        _check(i, frozenset())
        lanes = TABLE[CONSTANT[name]]
        sources = [out.source(o, kind) for o, kind in zip(i.operands[1:], lanes.sources, strict=True)]
        _result(out, i, lanes, sources, "W")
        return True
    if match := _COMPARISON.match(name):
        return _compare(out, i, match)
    if match := _CARRY.match(name):
        return _carry(out, i, match[1])
    if match := _SCALED.match(name):
        _pack_scaled(out, i, match)
        return True
    if match := _UNSCALED.match(name):
        _unpack_scaled(out, i, match)
        return True
    special = _SPECIAL.get(name)
    if special is None:
        return False
    special(out, i)
    return True


def _check(i: Instruction, known: frozenset[str]) -> None:
    if unknown := i.modifiers.keys() - known:
        raise NotExecuted(f"{i.text}: {', '.join(sorted(unknown))}")


def _result(out: Writer, i: Instruction, lanes: Lanes, sources: list[str], where: str, upper: int = 0) -> None:
    """Write the computation and its result, with clamp and the output scaling of floats."""
    destination = i.operands[0]
    scale = _output_scale(i)
    clamp = "clamp" in i.modifiers
    if clamp and i.name in SATURATE:
        out.put(destination, lanes.result, f"{out.constant(SATURATE[i.name])}({', '.join(sources)})", where)
        return
    arguments = ", ".join(sources)
    function = out.constant(lanes.compute)
    if isinstance(lanes.compute, np.ufunc) and lanes.result in "uif" and not clamp and scale is None:
        if destination.kind != "v":
            raise NotExecuted(i.text)
        register = f"{LISTS[lanes.result]}[{destination.index}]"
        out.line(f"{function}({arguments}, out={register}, where={where})")
        return
    value = f"{function}({arguments})"
    if scale is not None or clamp:
        if lanes.result not in "fh":
            raise NotExecuted(f"{i.text}: clamp or output scaling of an integer")
        if scale is not None:
            value = f"{value} * {out.constant(_KIND_DTYPES[lanes.result](scale))}"
        value = f"clamped({value})" if clamp else value
    out.put(destination, lanes.result, value, where, upper, lanes.keeps_high or bool(upper))


def _output_scale(i: Instruction) -> float | None:
    if "mul:2" in i.modifiers or i.modifiers.get("mul") == 2:
        return 2.0
    if "mul:4" in i.modifiers or i.modifiers.get("mul") == 4:
        return 4.0
    return 0.5 if "div:2" in i.modifiers or i.modifiers.get("div") == 2 else None


def _compare(out: Writer, i: Instruction, match: re.Match[str]) -> bool:
    writes_exec, how, type_ = match.groups()
    if how not in COMPARE or writes_exec:
        return False
    _check(i, frozenset())
    kind = COMPARED_KINDS[type_]
    second = "u" if how == "class" else kind
    if how == "class" and kind != "f":
        return False
    a, b = out.source(i.operands[1], kind), out.source(i.operands[2], second)
    out.put_mask(i.operands[0], f"{out.constant(COMPARE[how])}({a}, {b})")
    return True


def _carry(out: Writer, i: Instruction, how: str) -> bool:
    _check(i, frozenset())
    destination, flag, first, second = i.operands[:4]
    if how.endswith("rev"):
        first, second = second, first
    carry_in = f".__add__({out.mask(i.operands[4])})" if how == "addc" else ""
    wide = out.constant(np.int64)
    a, b = f"{out.source(first, 'u')}.astype({wide})", f"{out.source(second, 'u')}.astype({wide})"
    if how.startswith("add"):
        out.line(f"total = ({a} + {b}){carry_in}; carry = total > 0xFFFFFFFF")
    else:
        borrow_in = f" - {out.mask(i.operands[4])}" if how.startswith("subb") else ""
        out.line(f"total = {a} - {b}{borrow_in}; carry = total < 0")
    out.put(destination, "u", "total")
    out.put_mask(flag, "carry")
    return True


def _dpp(out: Writer, i: Instruction, name: str) -> bool:
    lanes = TABLE.get(ACCUMULATE.get(name, name))
    if lanes is None or any(k in "qld" for k in lanes.sources + lanes.result):
        return False
    pattern = out.constant(shuffle(i))
    _check(i, frozenset(i.modifiers))
    first = i.operands[1]
    if first.kind != "v":
        raise NotExecuted(i.text)
    out.line(f"moved, written = shuffled(w, U[{first.index}], {pattern})")
    kind = lanes.sources[0]
    dtype = out.constant(_KIND_DTYPES[kind])
    value = "moved" if kind == "u" else f"moved.view({dtype})" if kind in "if" else f"half(moved, 0, {dtype})"
    if first.absolute:
        value = f"np.abs({value})"
    if first.negative:
        value = f"(-{value})"
    if (first.absolute or first.negative) and kind not in "fh":
        raise NotExecuted(i.text)
    others = i.operands[2:] + ((i.operands[0],) if name in ACCUMULATE else ())
    sources = [value, *(out.source(o, k) for o, k in zip(others, lanes.sources[1:], strict=True))]
    _result(out, i, lanes, sources, "written")
    return True


_SDWA = frozenset(["dst_sel", "dst_unused", "src0_sel", "src1_sel"])


def _sdwa(out: Writer, i: Instruction, name: str) -> bool:
    _check(i, _SDWA)

    def source(operand: Operand, number: int, kind: str) -> str:
        which = str(i.modifiers.get(f"src{number}_sel", "DWORD"))
        if operand.immediate or operand.kind not in "vs":
            raise NotExecuted(i.text)
        text = f"selected({out.source(operand, 'u', modifiers=False)}, {which!r}, {operand.extended})"
        if kind in "wsh":
            text = f"{text}.astype({out.constant(np.uint16)})"
        if kind not in "uw":
            text = f"{text}.view({out.constant(_KIND_DTYPES[kind])})"
        if operand.absolute or operand.negative:
            if kind not in "fh":
                raise NotExecuted(i.text)
            text = f"np.abs({text})" if operand.absolute else text
            text = f"(-{text})" if operand.negative else text
        return text

    operands = i.operands
    if match := _COMPARISON.match(name):
        kind = COMPARED_KINDS[match[3]]
        if match[1] or match[2] not in COMPARE or match[2] == "class" or kind in "dlq":
            return False
        a, b = source(operands[1], 0, kind), source(operands[2], 1, kind)
        out.put_mask(operands[0], f"{out.constant(COMPARE[match[2]])}({a}, {b})")
        return True
    if name == "v_cndmask_b32":
        a, b = source(operands[1], 0, "u"), source(operands[2], 1, "u")
        value, kind = f"np.where({out.mask(operands[3])}, {b}, {a})", "u"
    elif name in ("v_cvt_f32_fp8", "v_cvt_f32_bf8"):
        value, kind = f"{_byte_table(out, name)}[{source(operands[1], 0, 'u')} & 255]", "f"
    elif name in ("v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"):
        out.line(f"codes = {source(operands[1], 0, 'u')}")
        _put_byte_pair(out, operands[0], _byte_table(out, name))
        return True
    else:
        lanes = TABLE.get(name)
        if lanes is None or any(k in "qld" for k in lanes.sources + lanes.result):
            return False
        sources = [source(o, n, k) for n, (o, k) in enumerate(zip(operands[1:], lanes.sources, strict=True))]
        value, kind = f"{out.constant(lanes.compute)}({', '.join(sources)})", lanes.result
    if kind in "wsh":
        value = f"as_bits16({value}).astype({out.constant(np.uint32)})"
    elif kind != "u":
        value = f"np.asarray({value}).view({out.constant(np.uint32)})"
    where, unused = str(i.modifiers.get("dst_sel", "DWORD")), str(i.modifiers.get("dst_unused", "UNUSED_PAD"))
    out.put(operands[0], "u", f"placed(U[{operands[0].index}], {value}, {where!r}, {unused!r})")
    return True


def _packed(out: Writer, i: Instruction, lanes: Lanes) -> bool:
    _check(i, frozenset(("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp")))
    destination, *sources = i.operands
    # v_pk_mov_b32 takes its first result from the first source and its second result from the second source.
    move = i.name == "v_pk_mov_b32"
    count = len(sources)
    if not move and count != len(lanes.sources):
        raise NotExecuted(i.text)
    select = list_modifier(i, "op_sel", count, 0), list_modifier(i, "op_sel_hi", count, 1)
    negate = list_modifier(i, "neg_lo", count, 0), list_modifier(i, "neg_hi", count, 0)
    if "clamp" in i.modifiers and lanes.result not in "fh":
        raise NotExecuted(i.text)
    wide = lanes.result in "uif"
    names = []
    for part in range(2):
        values = []
        chosen = [(n, o, select[part][n]) for n, o in enumerate(sources)]
        if move:
            chosen = [(part, sources[part], select[0][part])]
        for n, operand, half in chosen:
            kind = lanes.sources[0 if move else n]
            if operand.immediate and half and (wide or operand.kind == "float"):
                # The upper half of a constant differs between generations.
                raise NotExecuted(f"{i.text}: the upper half of a constant")
            text = out.source(operand, kind, 0 if operand.immediate else half)
            if operand.immediate and half:
                text = out.constant(np.array([(int(operand.value) >> 16) & 0xFFFF], np.uint16).view(_KIND_DTYPES[kind]))
            if negate[part][n]:
                if kind not in "fh":
                    raise NotExecuted(i.text)
                text = f"(-{text})"
            values.append(text)
        name = f"part{part}"
        value = f"{out.constant(lanes.compute)}({', '.join(values)})"
        out.line(f"{name} = {f'clamped({value})' if 'clamp' in i.modifiers else value}")
        names.append(name)
    for part, name in enumerate(names):
        out.put(destination, lanes.result, name, upper=part, keep=True)
    return True


def _select(out: Writer, i: Instruction) -> None:
    _check(i, frozenset())
    destination, a, b = i.operands[:3]
    lanes = out.mask(i.operands[3] if len(i.operands) > 3 else _VCC)
    signs = any(o.negative or o.absolute for o in (a, b))
    kind = "f" if signs else "u"
    out.put(destination, kind, f"np.where({lanes}, {out.source(b, kind)}, {out.source(a, kind)})")


def _divide_scale(out: Writer, i: Instruction) -> None:
    _check(i, frozenset())
    destination, flag, *sources = i.operands
    kind, division = ("f", DIVISION_F32) if i.name.endswith("f32") else ("d", DIVISION_F64)
    values = ", ".join(out.source(o, kind) for o in sources)
    out.line(f"scaled, flag = {out.constant(division.scale)}({values})")
    out.put(destination, kind, "scaled")
    out.put_mask(flag, "flag")


def _divide_fmas(out: Writer, i: Instruction) -> None:
    _check(i, frozenset())
    kind, division = ("f", DIVISION_F32) if i.name.endswith("f32") else ("d", DIVISION_F64)
    values = ", ".join(out.source(o, kind) for o in i.operands[1:])
    out.put(i.operands[0], kind, f"{out.constant(division.fmas)}({values}, {out.mask(_VCC)})")


def _multiply_add_wide(out: Writer, i: Instruction) -> None:
    """v_mad_u64_u32, v_mad_i64_i32. The carry is that of the sum."""
    _check(i, frozenset())
    destination, flag, a, b, c = i.operands
    signed = i.name == "v_mad_i64_i32"
    kind, wide = ("i", np.int64) if signed else ("u", np.uint64)
    product = f"np.multiply({out.source(a, kind)}, {out.source(b, kind)}, dtype={out.constant(wide)})"
    addend = out.source(c, "l" if signed else "q")
    out.line(f"product = {product}; total = product + {addend}")
    overflow = f"((product ^ total) & ({addend} ^ total)) < 0" if signed else "total < product"
    out.line(f"carry = {overflow}")
    out.put(destination, "l" if signed else "q", "total")
    out.put_mask(flag, "carry")


def _mix(out: Writer, i: Instruction) -> None:
    """v_fma_mix_f32, v_fma_mixlo_f16, v_fma_mixhi_f16. A source is float16 if op_sel_hi has its bit, else float32."""
    _check(i, frozenset(("op_sel", "op_sel_hi", "clamp")))
    upper, is_half = list_modifier(i, "op_sel", 3, 0), list_modifier(i, "op_sel_hi", 3, 0)
    values = []
    for operand, half, is_f16 in zip(i.operands[1:], upper, is_half, strict=True):
        if operand.immediate:
            if is_f16 and half:
                raise NotExecuted(i.text)
            text = out.source(operand, "h" if is_f16 else "f")
            text = f"{text}.astype({out.constant(np.float32)})"
        else:
            text = f"mixed({out.source(operand, 'u', modifiers=False)}, {is_f16}, {half})"
            text = f"np.abs({text})" if operand.absolute else text
            text = f"(-{text})" if operand.negative else text
        values.append(text)
    value = f"{out.constant(fma)}({', '.join(values)})"
    value = f"clamped({value})" if "clamp" in i.modifiers else value
    if i.name == "v_fma_mix_f32":
        out.put(i.operands[0], "f", value)
    else:
        value = f"{value}.astype({out.constant(np.float16)})"
        out.put(i.operands[0], "h", value, upper=int(i.name == "v_fma_mixhi_f16"), keep=True)


def _bit_operation(out: Writer, i: Instruction) -> None:
    short = i.name.endswith("b16")
    _check(i, frozenset(("bitop3",)))
    kind = "w" if short else "u"
    values = ", ".join(out.source(o, kind) for o in i.operands[1:])
    value = f"{out.constant(bit_table)}({values}, {i.number('bitop3')})"
    if short:
        # Whether the other half is zeroed or kept is not known, and LLVM relies on neither. It gets this mark, which
        # shows in a result that reads it.
        value = f"{value}.astype({out.constant(np.uint32)}) | {out.constant(np.uint32(0xBAD00000))}"
    out.put(i.operands[0], "u", value)


def _pack_f16(out: Writer, i: Instruction) -> None:
    _check(i, frozenset(("op_sel",)))
    select = list_modifier(i, "op_sel", 3, 0)
    low, high = (out.source(o, "h", s) for o, s in zip(i.operands[1:], select, strict=False))
    bits = out.constant(np.uint32)
    out.line(f"low, high = as_bits16({low}).astype({bits}), as_bits16({high}).astype({bits})")
    out.put(i.operands[0], "u", f"low | (high << {out.constant(np.uint32(16))})")


def _pack_byte_floats(out: Writer, i: Instruction) -> None:
    """v_cvt_pk_fp8_f32, v_cvt_pk_bf8_f32: write two values to one half of the destination."""
    _check(i, frozenset(("op_sel",)))
    upper = list_modifier(i, "op_sel", 3, 0)[2]
    low, high = (out.source(o, "f") for o in i.operands[1:])
    out.put(i.operands[0], "w", _byte_pair(out, _byte_table(out, i.name), low, high), upper=upper, keep=True)


_SCALED = re.compile(r"v_cvt_scalef32_pk_(fp8|bf8)_(f32|f16|bf16)$")


def _pack_scaled(out: Writer, i: Instruction, match: re.Match[str]) -> None:
    """v_cvt_scalef32_pk_fp8_f32 and similar: divide values by 2 to the scale's exponent."""
    _check(i, frozenset(("op_sel",)))
    form, source = match.groups()
    upper = list_modifier(i, "op_sel", len(i.operands), 0)[len(i.operands) - 1]
    destination, *sources, scale = i.operands
    wide = out.constant(np.float32)
    if source == "f32":
        low, high = (out.source(o, "f") for o in sources)
    elif source == "f16":
        low, high = (f"{out.source(sources[0], 'h', k)}.astype({wide})" for k in range(2))
    else:
        word = out.source(sources[0], "u")
        shift, mask = out.constant(np.uint32(16)), out.constant(np.uint32(0xFFFF0000))
        low, high = f"({word} << {shift}).view({wide})", f"({word} & {mask}).view({wide})"
    out.line(f"power = power_of(w, {out.source(scale, 'u')}, {i.text!r})")
    low, high = (f"({value} / power).astype({wide})" for value in (low, high))
    out.put(destination, "w", _byte_pair(out, _byte_table(out, form), low, high), upper=upper, keep=True)


_UNSCALED = re.compile(r"v_cvt_scalef32_pk_(f32|f16|bf16)_(fp8|bf8|fp4)$")


def _unpack_scaled(out: Writer, i: Instruction, match: re.Match[str]) -> None:
    """v_cvt_scalef32_pk_f32_fp8 and similar: multiply values by 2 to the scale's exponent, if no result is rounded."""
    _check(i, frozenset(("op_sel",)))
    result, form = match.groups()
    destination, source, scale = i.operands
    select = list_modifier(i, "op_sel", 3, 0)
    if form == "fp4":
        shift, bits, table = 8 * (select[0] + 2 * select[1]), 4, out.constant(E2M1)
    else:
        shift, bits, table = 16 * select[0], 8, _byte_table(out, form)
    mask = (1 << bits) - 1
    out.line(f"codes = {out.source(source, 'u')} >> {out.constant(np.uint32(shift))}")
    out.line(f"power = power_of(w, {out.source(scale, 'u')}, {i.text!r})")
    for name, value in (("low", f"codes & {mask}"), ("high", f"(codes >> {bits}) & {mask}")):
        out.line(f"{name} = exactly(w, {table}[{value}] * power, {result!r}, {i.text!r})")
    if result == "f32":
        out.put(destination, "f", "low")
        out.put(destination, "f", "high", upper=1)
    else:
        pack = out.constant(TABLE["v_cvt_pk_f16_f32" if result == "f16" else "v_cvt_pk_bf16_f32"].compute)
        out.put(destination, "u", f"{pack}(low, high)")


def _byte_pair(out: Writer, table: str, low: str, high: str) -> str:
    """Return an expression for two float32 as 16 bits. The mode FP16_OVFL decides whether they saturate."""
    function = out.constant(to_byte_float)
    low, high = (f"{function}({value}, {table}, SU[{OVERFLOW}] != 0)" for value in (low, high))
    return f"({low} | ({high} << {out.constant(np.uint32(8))})).astype({out.constant(np.uint16)})"


def _byte_table(out: Writer, name: str) -> str:
    return out.constant((FP8 if "fp8" in name else BF8)[out.target == "gfx942"])


def _put_byte_pair(out: Writer, destination: Operand, table: str) -> None:
    """Write two values from the lower 16 bits of `codes`."""
    out.line(f"low, high = {table}[codes & 255], {table}[(codes >> 8) & 255]")
    out.put(destination, "f", "low")
    out.put(destination, "f", "high", upper=1)


def _unpack_byte_float(out: Writer, i: Instruction) -> None:
    _check(i, frozenset())
    out.put(i.operands[0], "f", f"{_byte_table(out, i.name)}[{out.source(i.operands[1], 'u')} & 255]")


def _unpack_byte_floats(out: Writer, i: Instruction) -> None:
    _check(i, frozenset())
    out.line(f"codes = {out.source(i.operands[1], 'u')}")
    _put_byte_pair(out, i.operands[0], _byte_table(out, i.name))


_SPECIAL: dict[str, Callable[[Writer, Instruction], None]] = {
    "v_cndmask_b32": _select,
    "v_div_scale_f32": _divide_scale,
    "v_div_scale_f64": _divide_scale,
    "v_div_fmas_f32": _divide_fmas,
    "v_div_fmas_f64": _divide_fmas,
    "v_mad_u64_u32": _multiply_add_wide,
    "v_mad_i64_i32": _multiply_add_wide,
    "v_fma_mix_f32": _mix,
    "v_fma_mixlo_f16": _mix,
    "v_fma_mixhi_f16": _mix,
    "v_bitop3_b32": _bit_operation,
    "v_bitop3_b16": _bit_operation,
    "v_pack_b32_f16": _pack_f16,
    "v_cvt_pk_fp8_f32": _pack_byte_floats,
    "v_cvt_pk_bf8_f32": _pack_byte_floats,
    "v_cvt_f32_fp8": _unpack_byte_float,
    "v_cvt_f32_bf8": _unpack_byte_float,
    "v_cvt_pk_f32_fp8": _unpack_byte_floats,
    "v_cvt_pk_f32_bf8": _unpack_byte_floats,
}
