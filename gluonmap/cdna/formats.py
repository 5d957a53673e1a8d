"""Tables of the small floating-point formats of the matrix instructions: code → float32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float32]


def e2m1() -> Table:
    """Return the values of the 16 codes of fp4 (OCP MX)."""
    positive = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    return np.array(positive + [-v for v in positive], np.float32)


def byte_float(exponent_bits: int, fnuz: bool) -> Table:
    """Return the values of the 256 codes of an 8-bit float.

    `exponent_bits` is 4 (e4m3, "fp8") or 5 (e5m2, "bf8"). In the fnuz formats (gfx942) the bias is one larger, and
    there are one zero, one NaN (0x80) and no infinity. In the OCP formats (gfx950) e4m3 has NaN at 0x7f and 0xff, and
    e5m2 follows IEEE.
    """
    mantissa_bits = 7 - exponent_bits
    bias = (1 << (exponent_bits - 1)) - (0 if fnuz else 1)
    codes = np.arange(256)
    sign = np.where(codes & 128, -1.0, 1.0)
    exponent = (codes & 127) >> mantissa_bits
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    values = sign * np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    if fnuz:
        values[0x80] = np.nan
    elif exponent_bits == 4:
        values[[0x7F, 0xFF]] = np.nan
    else:
        special = exponent == 31
        values[special] = np.where(mantissa[special] == 0, sign[special] * np.inf, np.nan)
    return values.astype(np.float32)


E2M1 = e2m1()
FP8 = {fnuz: byte_float(4, fnuz) for fnuz in (False, True)}
BF8 = {fnuz: byte_float(5, fnuz) for fnuz in (False, True)}
