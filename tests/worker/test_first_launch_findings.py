"""Findings of the sanitizer in the first launch, and their place in the user's files."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from gluonmap.cdna.text import Line
from gluonmap.model import exitcode
from gluonmap.model.candidate import Trial, Watch
from gluonmap.model.verdict import SanitizerFinding
from gluonmap.worker.check import Checker
from gluonmap.worker.execute import Execute, Unsafe, own_place
from gluonmap.worker.protocol import Evidence

FINDING = SanitizerFinding(
    "global access out of bounds", "global_store_dword v[0:1], v2, off", 2, 7, "4 bytes behind", "k.py:3"
)


class UnsafeAtOnce(Execute):
    """An execution whose first launch has a finding, so that no launch was compared."""

    def __init__(self) -> None:
        self.evidence = Evidence(0)
        self.trial, self.watch = Trial({}), Watch(sanitize=True)
        self.checker = Checker(SimpleNamespace(), {})  # type: ignore[arg-type]
        self.sizes = {}
        self._phase, self._store, self._trace = "run", None, None

    def _run(self) -> None:
        self.checker.findings = (FINDING,)
        raise Unsafe(self.checker.findings)


def test_findings_of_the_very_first_launch_are_kept() -> None:
    evidence = UnsafeAtOnce().run()
    assert evidence.status == exitcode.UNSAFE
    assert evidence.check is not None
    assert (evidence.check.findings, evidence.check.runs, evidence.check.sanitized) == ((FINDING,), 0, True)


def test_a_finding_stands_at_the_file_that_the_compiler_names() -> None:
    line = Line("helper.py", 19, ("scale.py:31",), "/home/me/kernels/helper.py")
    assert own_place(line, "/home/me/kernels/scale.py") == ("/home/me/kernels/helper.py", 19)


def test_a_finding_in_tritons_library_stands_where_the_kernel_calls_it() -> None:
    triton = pytest.importorskip("triton")
    path = str(Path(triton.__file__).parent / "language" / "standard.py")
    deep = Line("standard.py", 290, ("standard.py:12", "scale.py:31"), path)
    assert own_place(deep, "/kernels/scale.py") == ("/kernels/scale.py", 31)


def test_a_line_of_no_known_file_is_no_place() -> None:
    assert own_place(Line("nowhere.py", 4), "/kernels/scale.py") == ("", 0)
