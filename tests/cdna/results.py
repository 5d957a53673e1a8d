"""Outputs of executed kernels, and their distance from a reference."""

from __future__ import annotations

from typing import Any

import numpy as np

from gluonmap import cdna


def outputs(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> dict[str, np.ndarray]:
    """Arrays by name after a clean run; outputs come in as `cdna.Unwritten`."""
    results = []
    prepared = cdna.prepare(kernel)
    for how in ({"sanitize": True}, {"seed": 1}, {"seed": 2, "order": 3}):
        copies = {
            name: cdna.Unwritten(value.array.copy())
            if isinstance(value, cdna.Unwritten)
            else value.copy()
            if isinstance(value, np.ndarray)
            else value
            for name, value in arguments.items()
        }
        result = cdna.run(prepared, grid, copies, **how)
        assert [str(f) for f in result.findings] == []
        results.append({n: v.array for n, v in copies.items() if isinstance(v, cdna.Unwritten)})
    for other in results[1:]:
        for name, array in results[0].items():
            assert array.tobytes() == other[name].tobytes(), f"{name} depends on the order or on what was there before"
    return results[0]


def unwritten(shape: tuple[int, ...], dtype: str) -> cdna.Unwritten:
    return cdna.Unwritten(cdna.encode(np.full(shape, 99.0), dtype))


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))
