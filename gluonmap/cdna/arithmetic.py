"""Arithmetic that numpy lacks. Functions take arrays and return an array; shapes broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna.errors import NotExecuted

Array = npt.NDArray[Any]
u16, u32, u64 = np.uint16, np.uint32, np.uint64
i16, i32, i64 = np.int16, np.int32, np.int64
f16, f32, f64 = np.float16, np.float32, np.float64

_TIE = u64(0x1000_0000)
_BELOW = u64(0x1FFF_FFFF)
"""The 29 bits of a float64 mantissa that float32 has no room for."""


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c in float32, rounded once. A float32 denormal may be rounded twice.

    The product is exact in float64. Rounding the float64 sum to float32 can go wrong only where the sum lies halfway
    between two float32 numbers. There the error of the sum decides.
    """
    product = np.multiply(a, b, dtype=f64)
    total = np.asarray(product + c)
    tied = (total.view(u64) & _BELOW) == _TIE
    if tied.any():
        total = _to_odd(total, product, c, tied)
    return total.astype(f32)


def _to_odd(total: Array, a: Array, b: Array, even: Array) -> Array:
    """Return `total` = a + b; where it is `even` and inexact, its neighbour in the direction of the exact sum."""
    _, error = _exact_sum(a, b)
    return np.where(even & (error != 0), np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)


def fma_f16(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of float16, rounded once. The product is exact in float64; an inexact sum is made odd."""
    product, addend = np.multiply(a, b, dtype=f64), c.astype(f64)
    total = np.asarray(product + addend)
    return _to_odd(total, product, addend, (total.view(u64) & u64(1)) == 0).astype(f16)


def bits(x: Array, dtype: Any) -> Array:
    """Return the same bytes as another type of the same size. It copies if the layout requires it."""
    return np.ascontiguousarray(x).view(dtype)


def bf16_bits(x: Array) -> Array:
    """Convert float32 to bfloat16, to nearest even, as uint32 below 2**16. A NaN stays a NaN and becomes quiet."""
    b = bits(np.asarray(x, f32), u32)
    rounded = (b + u32(0x7FFF) + ((b >> u32(16)) & u32(1))) >> u32(16)
    return np.where(np.isnan(x), (b >> u32(16)) | u32(0x40), rounded)


def f16_bits(x: Array) -> Array:
    """Convert float32 to float16, to nearest even, as uint32 below 2**16."""
    return np.asarray(x, f32).astype(f16).view(u16).astype(u32)


def f16_bits_toward_zero(x: Array) -> Array:
    """Convert float32 to float16, towards zero, as uint32 below 2**16."""
    x = np.asarray(x, f32)
    near = x.astype(f16)
    over = np.abs(near.astype(f32)) > np.abs(x)
    return np.where(over, near.view(u16) - u16(1), near.view(u16)).astype(u32)


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of float64, rounded once (Boldo and Melquiond: add the parts to odd, then to nearest)."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = _exact_product(a, b)
    upper, under = _exact_sum(c, low)
    total, rest = _exact_sum(high, upper)
    part = np.asarray(under + rest)
    part = _to_odd(part, under, rest, (part.view(u64) & u64(1)) == 0)
    result = np.where(np.isfinite(total + part), total + part, a * b + c)
    # The parts themselves may overflow or vanish; these elements are computed exactly.
    finite = np.isfinite(a) & np.isfinite(b)
    result = np.where(finite & np.isinf(c), c, result)
    wide = finite & np.isfinite(c) & (a != 0) & (b != 0)
    wide &= (np.maximum(np.abs(a), np.abs(b)) > 2.0**990) | (np.abs(high) < 2.0**-900) | (np.abs(high) > 2.0**990)
    for place in zip(*np.nonzero(wide), strict=True):
        result[place] = _exactly(float(a[place]), float(b[place]), float(c[place]))
    return result


def _exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b as a float64, and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _exactly(a: float, b: float, c: float) -> float:
    """Return a * b + c of finite numbers, rounded once. a and b are not 0."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        value = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    return value if value else math.copysign(0.0, float(exact > 0) - float(exact < 0))


def _exact_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a * b as a float64, and its rounding error (Dekker)."""
    split = f64(2**27 + 1)

    def halves(x: Array) -> tuple[Array, Array]:
        big = split * x
        upper = big - (big - x)
        return upper, x - upper

    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@dataclass(frozen=True, slots=True)
class Division:
    """v_div_scale, v_div_fmas and v_div_fixup for one type, with their constants."""

    dtype: Any
    bits: Any
    mantissa_bits: int
    apart: int
    """Difference of exponents from which a quotient may overflow."""
    scaling: int
    """Exponent of the factor."""
    small: int
    """Largest exponent of a numerator that is scaled."""
    vanishing: int
    """Difference of exponents below which a quotient is zero."""
    fma: Callable[[Array, Array, Array], Array]

    @property
    def special(self) -> int:
        """Exponent of infinities and NaN."""
        return 255 if self.dtype is f32 else 2047

    def exponent(self, x: Array) -> Any:
        """The biased exponent."""
        shifted = bits(x, self.bits) >> self.bits(self.mantissa_bits)
        return (shifted & self.bits(self.special)).astype(i32)

    def scale(self, x: Array, denominator: Array, numerator: Array) -> tuple[Array, Array]:
        """v_div_scale: return `x` (one of the other two), scaled against overflow in a division, and the lane flags."""
        x, d, n = np.broadcast_arrays(x, denominator, numerator)
        tiny = np.finfo(self.dtype).tiny
        apart = self.exponent(n) - self.exponent(d) >= self.apart
        small_d = (d != 0) & (np.abs(d) < tiny)
        reciprocal = np.abs(1 / d) < tiny
        quotient = np.abs(n / d) < tiny
        up, down = np.ldexp(x, i32(self.scaling)), np.ldexp(x, i32(-self.scaling))
        is_d, is_n = x == d, x == n
        zero = (n == 0) | (d == 0)
        choices = [zero, apart, small_d, reciprocal & quotient, reciprocal, quotient]
        choices.append(self.exponent(n) <= self.small)
        results = [
            np.full_like(x, np.nan),
            np.where(is_d, up, x),
            up,
            # The pseudo-code scales up here, which would overflow: the denominator is above 2**126.
            np.where(is_d, down, x),
            down,
            np.where(is_n, up, x),
            up,
        ]
        flag = ~zero & (apart | (~small_d & quotient))
        return np.select(choices, results, x), flag

    def fmas(self, a: Array, b: Array, c: Array, flag: Array) -> Array:
        """v_div_fmas: return a * b + c. Where the lane's flag is set, the scaling of v_div_scale is reversed."""
        result = self.fma(a, b, c)
        if not flag.any():
            return result
        # The product is computed in float64, so that a float32 denormal is rounded once.
        wide = np.multiply(a, b, dtype=f64) + c if self.dtype is f32 else result
        back = np.where(self.exponent(c) > self.special >> 1, i32(self.scaling), i32(-self.scaling))
        return np.where(flag, np.ldexp(wide, back).astype(self.dtype), result)

    def fixup(self, quotient: Array, denominator: Array, numerator: Array) -> Array:
        """v_div_fixup: return the quotient with NaN, infinities, zeros and overflow corrected, and the right sign."""
        q, d, n = np.broadcast_arrays(quotient, denominator, numerator)
        sign = np.signbit(d) ^ np.signbit(n)
        one = np.where(sign, self.dtype(-1), self.dtype(1))
        infinite, zero = one * self.dtype(np.inf), one * self.dtype(0)
        choices = [
            np.isnan(n),
            np.isnan(d),
            ((n == 0) & (d == 0)) | (np.isinf(n) & np.isinf(d)),
            (d == 0) | np.isinf(n),
            np.isinf(d) | (n == 0),
            self.exponent(n) - self.exponent(d) < self.vanishing,
            # The pseudo-code has no case for a quotient that exceeds the type even after scaling: its refinement is
            # NaN. Since a division is rounded correctly, only one result is possible.
            (self.exponent(d) == self.special) | np.isnan(q),
        ]
        results = [n, d, np.full_like(q, np.nan), infinite, zero, zero, infinite]
        return np.select(choices, results, np.copysign(np.abs(q), one))


DIVISION_F32 = Division(f32, u32, 23, 96, 64, 23, -150, fma)
DIVISION_F64 = Division(f64, u64, 52, 768, 128, 53, -1075, fma_f64)


def truncated(x: Array, dtype: Any) -> Array:
    """Convert a float to an integer, towards zero and saturating. NaN gives 0."""
    limits = np.iinfo(dtype)
    wide = np.trunc(np.asarray(x, f64))
    return np.clip(np.where(np.isnan(wide), 0.0, wide), limits.min, limits.max).astype(i64).astype(dtype)


def ldexp(x: Array, exponent: Array) -> Any:
    """Return x * 2**exponent in float32, rounded once."""
    return np.ldexp(x, np.clip(exponent, -600, 600))


def reverse_bits(x: Array) -> Any:
    x = np.asarray(x, u32)
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        x = ((x >> u32(shift)) & u32(mask)) | ((x & u32(mask)) << u32(shift))
    return x.byteswap()


_BITS = np.array([bin(byte).count("1") for byte in range(256)], u32)


def count_bits(x: Array) -> Any:
    """Return the number of bits that are 1, as uint32."""
    bytes_ = np.ascontiguousarray(x)[..., None].view(np.uint8)
    return _BITS[bytes_].sum(axis=-1, dtype=u32)


def leading_zeros(x: Array) -> Array:
    """Return the number of zeros above the highest one; 0xffffffff for 0 (v_ffbh_u32, s_flbit_i32_b32)."""
    high = np.floor(np.log2(np.maximum(x, u32(1)).astype(f64))).astype(i32)
    return np.where(x == 0, i32(-1), 31 - high).view(u32)


def leading_signs(x: Array) -> Array:
    """Return the number of leading bits equal to the highest one; 0xffffffff if all are equal (v_ffbh_i32)."""
    return leading_zeros((x ^ (x >> i32(31))).view(u32))


def leading_zeros_64(x: Array) -> Array:
    """Return `leading_zeros` of 64 bits (s_flbit_i32_b64)."""
    high, low = (x >> u64(32)).astype(u32), x.astype(u32)
    below = np.where(low == 0, u32(0xFFFFFFFF), leading_zeros(low) + u32(32))
    return np.where(high == 0, below, leading_zeros(high))


def leading_signs_64(x: Array) -> Array:
    """Return `leading_signs` of 64 bits (s_flbit_i32_i64)."""
    signed = x.view(i64)
    return leading_zeros_64((signed ^ (signed >> i64(63))).view(u64))


def trailing_zeros(x: Array) -> Array:
    """Return the number of zeros below the lowest one; 0xffffffff for 0 (v_ffbl_b32, s_ff1_i32)."""
    one = type(x.flat[0])(1)
    lowest = count_bits((x & (~x + one)) - one)
    return np.where(x == 0, u32(0xFFFFFFFF), lowest)


def permute_bytes(high: Array, low: Array, selector: Array) -> Array:
    """v_perm_b32: each byte of `selector` selects a byte of `high`:`low`, a sign, 0x00 (12) or 0xff (above 12)."""
    if selector.shape[-1] == 1:
        choices = {int(c) for c in selector.flat}
        if len(choices) == 1:
            bytes_ = choices.pop().to_bytes(4, "little")
            if max(bytes_) < 8:
                return _permute_alike(high, low, bytes_)
    source = (np.asarray(high).astype(u64) << u64(32)) | low
    result: Any = u32(0)
    for k in range(4):
        choice = (selector >> u32(8 * k)) & u32(255)
        if (choice > 7).any():
            # 8 to 11 select the sign of a 16-bit part, in byte 1, 3, 5 or 7.
            place = np.where(choice < 8, choice, np.where(choice < 12, 2 * (choice - 8) + 1, 0)).astype(u64)
            byte = (source >> (u64(8) * place)).astype(u32) & u32(255)
            signs = np.where(byte & u32(128), u32(255), u32(0))
            byte = np.select([choice < 8, choice < 12, choice == 12], [byte, signs, u32(0)], u32(255)).astype(u32)
        else:
            byte = (source >> (u64(8) * choice.astype(u64))).astype(u32) & u32(255)
        result = result | (byte << u32(8 * k))
    return np.asarray(result)


def _permute_alike(high: Array, low: Array, choices: bytes) -> Array:
    """Return `permute_bytes` for one selector. Runs of neighbouring bytes are moved together."""
    result: Any = u32(0)
    start = 0
    while start < 4:
        end = start + 1
        while end < 4 and choices[end] == choices[end - 1] + 1 and choices[end] != 4:
            end += 1
        word, place = (high, choices[start] - 4) if choices[start] > 3 else (low, choices[start])
        run = (word >> u32(8 * place)) & u32((1 << 8 * (end - start)) - 1)
        result = result | (run << u32(8 * start))
        start = end
    return np.asarray(result)


def bit_table(a: Array, b: Array, c: Array, table: int) -> Array:
    """v_bitop3_b32: for each bit, `table` holds the result for the eight cases of a, b and c."""
    result: Any = u32(0)
    for case in range(8):
        if table >> case & 1:
            result = result | ((a if case & 4 else ~a) & (b if case & 2 else ~b) & (c if case & 1 else ~c))
    return np.asarray(result)


def classify(x: Array, mask: Array) -> Array:
    """v_cmp_class_f32: return whether the class of x has its bit set in `mask`."""
    negative, nan, infinite = np.signbit(x), np.isnan(x), np.isinf(x)
    quiet = (bits(x, u32) & u32(0x400_000)) != 0
    zero = x == 0
    small = ~zero & (np.abs(x) < np.finfo(f32).tiny)
    normal = ~(nan | infinite | zero | small)
    classes = [
        nan & ~quiet,
        nan & quiet,
        infinite & negative,
        normal & negative,
        small & negative,
        zero & negative,
        zero & ~negative,
        small & ~negative,
        normal & ~negative,
        infinite & ~negative,
    ]
    result = np.zeros(np.broadcast(x, mask).shape, bool)
    for k, members in enumerate(classes):
        result |= members & ((mask >> u32(k)) & u32(1)).astype(bool)
    return result


def to_byte_float(x: Array, table: Array, saturate: Any = False) -> Array:
    """Convert float32 to the 8-bit float with the values `table`, to nearest even, as uint32 below 256.

    `saturate` (n, 1): where it is true, a value beyond the largest becomes the largest. The result of an infinity is
    not known there. It becomes NaN, which shows in every result that it reaches. It does not raise, since compilers
    also convert registers that hold nothing.

    Raises:
        NotExecuted: a value is beyond the largest where `saturate` is false.
    """
    x = np.asarray(x, f32)
    finite = np.where(np.isfinite(table), table, 0)
    codes = np.argsort(finite[:128], kind="stable").astype(u32)
    values = finite[:128][codes]
    keep = np.isfinite(table[:128])[codes]
    codes, values = codes[keep], values[keep].astype(f64)
    size = np.abs(x).astype(f64)
    lost = np.isnan(x) | (saturate & np.isinf(x))
    size = np.where(saturate & ~lost, np.minimum(size, values[-1]), size)
    if ((size > values[-1]) & ~lost).any():
        raise NotExecuted("conversion to an 8-bit float of a value beyond its range")
    above = np.clip(np.searchsorted(values, size), 1, len(values) - 1)
    low, high = values[above - 1], values[above]
    up = (size - low > high - size) | ((size - low == high - size) & (codes[above] & 1 == 0))
    code = np.where(up, codes[above], codes[above - 1])
    negative = np.signbit(x) & ((code != 0) | ~np.isnan(table[0x80]))
    nan = u32(0x80 if np.isnan(table[0x80]) else 0x7F)
    return np.where(lost, nan, code | np.where(negative, u32(0x80), u32(0))).astype(u32)
