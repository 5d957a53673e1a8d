"""Values of knobs and arguments as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gluonmap.model.candidate import Config, Value


def json_value(value: Value) -> Value:
    """Return a value that JSON can hold: infinities and NaN become the expression that makes them."""
    return f"py:float({str(value)!r})" if isinstance(value, float) and not math.isfinite(value) else value


def json_values(values: Mapping[str, Value]) -> Config:
    """Return the values by name, each as JSON can hold it."""
    return {name: json_value(value) for name, value in values.items()}
