"""Values of knobs and arguments as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gluonmap.model.candidate import Config, Value


def json_value(value: Value) -> Value:
    """A value that JSON can hold: infinities and NaN as the expression that makes them."""
    return f"py:float({str(value)!r})" if isinstance(value, float) and not math.isfinite(value) else value


def json_values(values: Mapping[str, Value]) -> Config:
    return {name: json_value(value) for name, value in values.items()}
