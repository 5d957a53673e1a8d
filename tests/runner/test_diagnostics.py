"""From the ending of a child to an answer: the wait status decides, text only explains."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspections import inspected

from gluonmap.model import exitcode
from gluonmap.model.candidate import Stage
from gluonmap.model.outcomes import OUTCOME_OF_STATUS, Outcome
from gluonmap.model.verdict import Answer, Fault, Location, Program, Reason, Verdict
from gluonmap.runner import diagnostics
from gluonmap.runner.processes import Ending
from gluonmap.worker.protocol import Evidence, Progress

KERNEL = inspected("""
    def add(x, TILE: constexpr):
        # a comment
        i = arange(0, TILE)

        store(x + i, 1)
""")
HERE = "/home/me/kernels/add.py"
CRASHES = sorted(-int(s) for s in exitcode.CRASH_SIGNALS)


def ended(status: int, *, evidence: Evidence | None = None, **more: Any) -> Ending:
    fields = {"hung": False, "seconds": 1.0, "progress": Progress(), "stdout": "", "stderr": ""} | more
    return Ending(status=status, evidence=evidence, **fields)


def answer(ending: Ending) -> Answer:
    return diagnostics.answer_from(ending, KERNEL.functions, 120.0)


def verdict(ending: Ending) -> Verdict:
    found = answer(ending)
    assert isinstance(found, Verdict)
    return found


# --- the status decides -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", OUTCOME_OF_STATUS)
def test_a_documented_status_with_its_evidence_is_its_outcome(status: int) -> None:
    found = verdict(ended(status, evidence=Evidence(status)))
    assert (found.outcome, found.exit_status, found.stage) == (
        OUTCOME_OF_STATUS[status],
        status,
        Stage.COMPILE,
    )


@pytest.mark.parametrize("status", OUTCOME_OF_STATUS)
def test_a_documented_status_without_evidence_is_a_fault(status: int) -> None:
    found = answer(ended(status))
    assert isinstance(found, Fault)
    assert f"exit status {status} without evidence" in found.text


@pytest.mark.parametrize("status", [s for s in OUTCOME_OF_STATUS if s != 0])
def test_evidence_of_another_status_than_the_process_left_with_is_a_fault(status: int) -> None:
    assert isinstance(answer(ended(status, evidence=Evidence(0))), Fault)
    assert isinstance(answer(ended(0, evidence=Evidence(status))), Fault)


@pytest.mark.parametrize("status", [1, 2, 3, 18, 99, 127, 255])
def test_an_undocumented_status_is_a_fault_with_evidence_too(status: int) -> None:
    assert isinstance(answer(ended(status, evidence=Evidence(status))), Fault)


@pytest.mark.parametrize("status", CRASHES)
def test_a_crash_needs_no_evidence_and_heeds_none(status: int) -> None:
    for evidence in (None, Evidence(0)):
        found = verdict(ended(status, evidence=evidence))
        assert (found.outcome, found.exit_status) == (Outcome.CRASHED, status)
        assert found.reason is not None
        assert found.reason.kind == exitcode.signal_name(status)


@pytest.mark.parametrize("status", [-9, -15, -2, -1])
def test_a_signal_from_outside_is_a_fault(status: int) -> None:
    assert isinstance(answer(ended(status)), Fault)


def test_a_child_that_was_ended_at_its_deadline_is_hung_and_the_reason_names_it() -> None:
    found = verdict(ended(-9, hung=True))
    assert (found.outcome, found.exit_status) == (Outcome.HUNG, -9)
    assert found.reason == Reason("deadline", "no end within 120 s", "")


def test_a_child_whose_server_was_lost_is_a_fault() -> None:
    found = answer(ended(255, lost=True))
    assert isinstance(found, Fault)
    assert "fork server was lost" in found.text


@given(st.integers(-64, 255), st.one_of(st.none(), st.integers(0, 255)), st.booleans(), st.text(max_size=200))
def test_pass_needs_status_0_and_evidence_of_it_regardless_of_its_output(
    status: int, said: int | None, lost: bool, text: str
) -> None:
    evidence = None if said is None else Evidence(said)
    found = answer(ended(status, evidence=evidence, lost=lost, stderr=text, stdout=text))
    passed = isinstance(found, Verdict) and found.outcome is Outcome.PASS
    assert passed == (status == 0 and said == 0 and not lost)


# --- the memory limit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
        "LLVM ERROR: out of memory\nAllocation failed",
        "ld.lld: error: Cannot allocate memory",
    ],
)
def test_an_abort_for_want_of_host_memory_is_no_crash_of_the_kernel(text: str) -> None:
    found = verdict(ended(-6, stderr=text))
    assert found.outcome is Outcome.NO_RESOURCES
    assert found.reason is not None
    assert found.reason.kind == "host memory"


def test_a_segfault_that_speaks_of_memory_is_a_crash() -> None:
    assert verdict(ended(-11, stderr="std::bad_alloc")).outcome is Outcome.CRASHED


# --- text explains ----------------------------------------------------------------------------------------------------


def test_text_that_looks_like_an_abort_is_a_warning_of_a_compile_that_passed() -> None:
    passing = Evidence(0, program=Program("d", "c"))
    found = verdict(ended(0, evidence=passing, stderr="LLVM ERROR: only text\nSegmentation fault\nerror: only text\n"))
    assert (found.outcome, found.reason) == (Outcome.PASS, None)
    assert found.warnings == ("LLVM ERROR: only text", "only text")


def test_an_abort_is_explained_by_llvms_message_and_located_by_the_last_line_of_the_front_end() -> None:
    at = Progress("front end", HERE, "add", 5)
    found = verdict(ended(-6, progress=at, stderr="noise\nLLVM ERROR: Invalid basis 128\nStack dump:\n"))
    assert found.reason == Reason(
        "SIGABRT", "LLVM ERROR: Invalid basis 128", "front end", Location("add", "kernels/add.py", 2)
    )


def test_the_last_line_of_the_front_end_is_worth_nothing_once_a_later_stage_has_begun() -> None:
    found = verdict(ended(-6, progress=Progress("llir", HERE, "add", 5), stderr="LLVM ERROR: no"))
    assert found.reason == Reason("SIGABRT", "LLVM ERROR: no", "llir")


def test_a_diagnostics_own_place_wins_over_the_last_line_of_the_front_end() -> None:
    stderr = f"{HERE}:3:8: error: 'tt.load' op is wrong\n{HERE}:5:4: error: another\n"
    vague = Evidence(11, reason=Reason("RuntimeError", "PassManager::run failed", "ttgir"))
    found = verdict(ended(11, evidence=vague, stderr=stderr, progress=Progress("ttgir", HERE, "add", 5)))
    assert found.outcome is Outcome.REJECTED
    assert found.reason == Reason(
        "RuntimeError", "'tt.load' op is wrong", "ttgir", Location("add", "kernels/add.py", 1)
    )


def test_a_telling_exception_keeps_its_own_text() -> None:
    evidence = Evidence(10, reason=Reason("ValueError", "no such layout", "front end"), file=HERE, line=3)
    found = verdict(ended(10, evidence=evidence, stderr=f"{HERE}:5:4: error: another\n"))
    assert found.reason is not None
    assert (found.reason.text, found.reason.location) == ("no such layout", Location("add", "kernels/add.py", 1))


def test_a_place_outside_of_the_kernels_functions_is_no_place() -> None:
    assert diagnostics.locate("/usr/lib/python3/triton/language.py", 3, KERNEL.functions) is None
    assert diagnostics.locate(HERE, 99, KERNEL.functions) is None
    assert diagnostics.locate("/elsewhere/add.py", 3, KERNEL.functions) is None


def test_comments_and_blank_lines_do_not_count_in_a_location() -> None:
    ranks = [diagnostics.locate(HERE, line, KERNEL.functions) for line in (1, 3, 5)]
    assert [r and r.line for r in ranks] == [0, 1, 2]


def test_a_fault_quotes_the_last_words_of_the_process() -> None:
    found = answer(ended(99, stderr="Traceback…\nKeyboardInterrupt\n\n"))
    assert isinstance(found, Fault)
    assert found.text == "exit status 99 without evidence; its last words: KeyboardInterrupt"


# --- text is made fit for every machine -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "tidy"),
    [
        ("/home/me/src/kernels/add.py:3: no", "add.py:3: no"),
        ("\x1b[31merror\x1b[0m at 0x7fff12345678", "error at 0x…"),
        ("a\tb\x00c", "a\tb c"),
        ("built-in method of object at 0xdeadbeef>", "built-in method of object at 0x…>"),
        ("offset 0x10 stays", "offset 0x10 stays"),
        ("  much room  ", "much room"),
    ],
)
def test_paths_addresses_colours_and_control_characters_are_taken_out(raw: str, tidy: str) -> None:
    assert diagnostics.tidy(raw) == tidy


@given(st.text(max_size=2000))
def test_tidied_text_is_short_and_stays_as_it_is(raw: str) -> None:
    once = diagnostics.tidy(raw)
    assert len(once) <= diagnostics.MAX_TEXT
    assert "\x1b" not in once
    assert diagnostics.tidy(once).rstrip("…") == once.rstrip("…")


@pytest.mark.parametrize("letter", ["y", "/", ":", "' ", "a: "])
def test_a_long_line_of_output_costs_no_time(letter: str) -> None:
    flood = (letter * 65_536)[:65_536] + "\n" + "LLVM ERROR: the end\n"
    started = time.perf_counter()
    found = verdict(ended(-6, stderr=flood + flood))
    assert time.perf_counter() - started < 2.0
    assert found.reason is not None
    assert found.reason.text == "LLVM ERROR: the end"
