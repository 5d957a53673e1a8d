"""Probe files and the kernels that they are about."""

from __future__ import annotations

import pytest

from gluonmap.spec.probe_file import ProbeFile


@pytest.mark.parametrize("named", ["", "gemm"])
def test_a_probe_file_is_for_the_kernel_that_it_names_or_for_any(named: str) -> None:
    probe = ProbeFile(path="gemm.py", kernel=named, grid="(M,)")
    assert probe.for_kernel("gemm") == probe


def test_a_probe_file_of_another_kernel_declares_nothing() -> None:
    assert ProbeFile(path="gemm.py", kernel="gemm", grid="(M,)").for_kernel("softmax") == ProbeFile()
