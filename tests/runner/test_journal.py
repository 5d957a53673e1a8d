"""The append-only record: what it knows, what it never loses, and what makes an answer void."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inspections import inspected

from gluonmap.model.candidate import Candidate, Proof, Stage, Value
from gluonmap.model.errors import StorageFault, UsageError
from gluonmap.model.inspection import SourceFile
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Answer, Fault, Reason, Verdict
from gluonmap.runner.journal import Answered, Cancelled, Head, Intent, Journal, Stability, key_of, stamp_of

STAMP = "s" * 20
PASSED = Verdict(Outcome.PASS, Stage.COMPILE, 0, seconds=0.5)
HUNG = Verdict(Outcome.HUNG, Stage.COMPILE, -9, reason=Reason("deadline", "no end within 5 s"))
HUNGRY = Verdict(Outcome.NO_RESOURCES, Stage.COMPILE, 12, reason=Reason("host memory", "too little"))


def candidate(**config: Value) -> Candidate:
    return Candidate("gfx942", {"x": "*fp32"}, config)


def answered(asked: Candidate, answer: Answer = PASSED, deadline_s: float = 120, memory_bytes: int = 0) -> Answered:
    return Answered(STAMP, key_of(asked), answer, deadline_s, memory_bytes)


class Notebook:
    """A journal in a folder of its own, written and read by way of the file each time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "probes" / "gemm" / "gfx942.jsonl"

    def write(self, *records: Any) -> None:
        with Journal(self.path) as journal:
            for record in records:
                journal.write(record)

    def answer(self, asked: Candidate, *, deadline_s: float = 120, memory_bytes: int = 0) -> Answer | None:
        with Journal(self.path) as journal:
            return journal.answer(STAMP, key_of(asked), deadline_s=deadline_s, memory_bytes=memory_bytes)

    def damaged(self) -> list[int]:
        with Journal(self.path) as journal:
            return list(journal.damaged)


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)


# --- what it knows ----------------------------------------------------------------------------------------------------


def test_an_answer_is_known_to_the_next_run(notebook: Notebook) -> None:
    notebook.write(answered(candidate(TILE=16)))
    assert notebook.answer(candidate(TILE=16)) == PASSED
    assert notebook.answer(candidate(TILE=32)) is None


def test_an_answer_under_other_circumstances_is_not_known(notebook: Notebook) -> None:
    notebook.write(answered(candidate(TILE=16)))
    with Journal(notebook.path) as journal:
        assert journal.answer("t" * 20, key_of(candidate(TILE=16)), deadline_s=120, memory_bytes=0) is None


def test_the_later_of_two_answers_counts(notebook: Notebook) -> None:
    notebook.write(answered(candidate(TILE=16), HUNG), answered(candidate(TILE=16)))
    assert notebook.answer(candidate(TILE=16)) == PASSED


def test_whether_two_compiles_agreed_is_kept_for_its_candidate_alone(notebook: Notebook) -> None:
    key = key_of(candidate(TILE=16))
    notebook.write(Stability(STAMP, key, False))
    with Journal(notebook.path) as journal:
        assert journal.stability(STAMP, key) is False
        assert journal.stability(STAMP, key_of(candidate(TILE=32))) is None


@pytest.mark.parametrize(("deadline_s", "known"), [(3, True), (5, True), (5.1, False), (120, False)])
def test_what_hung_is_asked_again_once_there_is_more_time(notebook: Notebook, deadline_s: float, known: bool) -> None:
    notebook.write(answered(candidate(TILE=16), HUNG, deadline_s=5))
    assert (notebook.answer(candidate(TILE=16), deadline_s=deadline_s) is not None) == known


@pytest.mark.parametrize(("memory_bytes", "known"), [(1 << 20, True), (1 << 30, True), (2 << 30, False), (0, False)])
def test_what_ran_out_of_memory_is_asked_again_once_there_is_more(
    notebook: Notebook, memory_bytes: int, known: bool
) -> None:
    notebook.write(answered(candidate(TILE=16), HUNGRY, memory_bytes=1 << 30))
    assert (notebook.answer(candidate(TILE=16), memory_bytes=memory_bytes) is not None) == known


def test_what_ran_out_of_memory_without_a_bound_is_known_for_good(notebook: Notebook) -> None:
    notebook.write(answered(candidate(TILE=16), HUNGRY, memory_bytes=0))
    assert notebook.answer(candidate(TILE=16), memory_bytes=1 << 40) == HUNGRY


# --- what was in flight -----------------------------------------------------------------------------------------------


def test_a_candidate_that_was_in_flight_once_is_asked_and_twice_is_a_fault(notebook: Notebook) -> None:
    asked = candidate(TILE=16)
    intent = Intent(STAMP, key_of(asked), asked)
    notebook.write(intent)
    assert notebook.answer(asked) is None
    with Journal(notebook.path) as journal:
        assert journal.was_in_flight(STAMP, key_of(asked))
    notebook.write(intent)
    found = notebook.answer(asked)
    assert isinstance(found, Fault)
    assert "died 2 times" in found.text


@pytest.mark.parametrize("end", [answered(candidate(TILE=16)), Cancelled(STAMP, key_of(candidate(TILE=16)))])
def test_what_was_answered_or_cancelled_was_not_in_flight(notebook: Notebook, end: Answered | Cancelled) -> None:
    asked = candidate(TILE=16)
    notebook.write(Intent(STAMP, key_of(asked), asked), end)
    with Journal(notebook.path) as journal:
        assert not journal.was_in_flight(STAMP, key_of(asked))
    assert not isinstance(notebook.answer(asked), Fault)


def test_a_death_still_counts_after_the_user_cancelled_the_second_try(notebook: Notebook) -> None:
    asked = candidate(TILE=16)
    intent = Intent(STAMP, key_of(asked), asked)
    notebook.write(intent, intent, Cancelled(STAMP, key_of(asked)))
    with Journal(notebook.path) as journal:
        assert journal.was_in_flight(STAMP, key_of(asked))
    notebook.write(intent)
    assert isinstance(notebook.answer(asked), Fault)


def test_a_head_of_another_schema_is_a_damaged_line(notebook: Notebook) -> None:
    notebook.path.parent.mkdir(parents=True, exist_ok=True)
    kernel = inspected("def add(x, TILE: constexpr): ...")
    head = msgspec.json.encode(Head(STAMP, "gfx942", "3.9.0", "i", {}, (), kernel))
    head = head.replace(b"gluonmap.journal/1", b"gluonmap.journal/9")
    notebook.path.write_bytes(head + b"\n")
    with Journal(notebook.path) as journal:
        assert (journal.heads, journal.damaged) == ([], [1])


# --- what it never loses ----------------------------------------------------------------------------------------------


def test_only_one_process_has_a_journal_at_a_time(notebook: Notebook) -> None:
    with (
        Journal(notebook.path),
        pytest.raises(UsageError, match=r"another gluonmap is writing .*--out"),
        Journal(notebook.path),
    ):
        pass
    assert notebook.damaged() == []


def test_a_journal_that_cannot_be_made_is_a_fault_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "probes").write_text("in the way")
    with (
        pytest.raises(StorageFault, match=r"cannot open the journal .*gfx942.jsonl.*--out"),
        Journal(tmp_path / "probes" / "gfx942.jsonl"),
    ):
        pass


def test_a_torn_last_line_loses_only_itself(notebook: Notebook) -> None:
    notebook.write(answered(candidate(TILE=16)), answered(candidate(TILE=32)))
    data = notebook.path.read_bytes()
    notebook.path.write_bytes(data[:-20])
    assert notebook.damaged() == [2]
    notebook.write(answered(candidate(TILE=64)))
    assert notebook.answer(candidate(TILE=16)) == notebook.answer(candidate(TILE=64)) == PASSED
    assert notebook.answer(candidate(TILE=32)) is None


def test_lines_of_a_later_schema_are_passed_over(notebook: Notebook) -> None:
    notebook.write(answered(candidate(TILE=16)))
    with notebook.path.open("ab") as file:
        file.write(b'{"type":"measurement","stamp":"s"}\n\n{"type":"answer"}\n[]\nnull\n')
    assert notebook.answer(candidate(TILE=16)) == PASSED
    assert notebook.damaged() == [2, 4, 5, 6]


TILES: Sequence[int] = (16, 32, 64)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(start=st.integers(0, 900), length=st.integers(0, 500), garbage=st.binary(max_size=64))
def test_damage_anywhere_loses_no_line_that_it_did_not_touch(
    notebook: Notebook, start: int, length: int, garbage: bytes
) -> None:
    notebook.path.unlink(missing_ok=True)
    notebook.write(*[answered(candidate(TILE=t)) for t in TILES])
    data = notebook.path.read_bytes()
    notebook.path.write_bytes(data[:start] + garbage + b"\n" + data[start + length :])
    known = {t for t in TILES if notebook.answer(candidate(TILE=t)) == PASSED}
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    spans = zip([0, *ends], ends, TILES, strict=False)
    assert known >= {t for begin, end, t in spans if end <= start or begin >= start + length}


def test_the_records_of_a_journal_elsewhere_can_be_adopted(notebook: Notebook, tmp_path: Path) -> None:
    other = Notebook(tmp_path / "other")
    other.write(answered(candidate(TILE=16)))
    other.path.write_bytes(other.path.read_bytes().rstrip(b"\n"))
    with Journal(notebook.path) as journal:
        journal.adopt(other.path)
        journal.write(answered(candidate(TILE=32)))
    assert notebook.answer(candidate(TILE=16)) == notebook.answer(candidate(TILE=32)) == PASSED


def test_every_line_names_its_kind_and_a_head_its_schema(notebook: Notebook) -> None:
    asked = candidate(TILE=16)
    head = Head(STAMP, "gfx942", "3.9.0", "i", {}, (), inspected("def add(x, TILE: constexpr): ..."))
    notebook.write(head, Intent(STAMP, key_of(asked), asked), answered(asked), Cancelled(STAMP, "k"))
    records = [msgspec.json.decode(line) for line in notebook.path.read_bytes().splitlines()]
    assert [line["type"] for line in records] == ["head", "intent", "answer", "cancelled"]
    assert records[0]["schema"] == "gluonmap.journal/1"
    with Journal(notebook.path) as journal:
        assert journal.heads == [head]


# --- what a candidate is known by -------------------------------------------------------------------------------------


def test_a_key_does_not_depend_on_what_does_not_reach_the_compiler() -> None:
    asked = candidate(TILE=16, num_warps=4)
    for same in (
        candidate(num_warps=4, TILE=16),
        msgspec.structs.replace(asked, grid=(4, 4)),
        msgspec.structs.replace(asked, proof=Proof.IR),
    ):
        assert key_of(same) == key_of(asked)


@pytest.mark.parametrize(
    "other",
    [
        candidate(TILE=32),
        candidate(TILE="16"),
        candidate(TILE=16.0),
        candidate(TILES=16),
        candidate(TILE=16, num_warps=4),
        candidate(),
        Candidate("gfx950", {"x": "*fp32"}, {"TILE": 16}),
        Candidate("gfx942", {"x": "*fp16"}, {"TILE": 16}),
        Candidate("gfx942", {"x": "*fp32"}, {"TILE": 16}, stage=Stage.RUN),
    ],
)
def test_a_key_depends_on_all_that_reaches_the_compiler(other: Candidate) -> None:
    assert key_of(other) != key_of(candidate(TILE=16))


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (None, "None"), (None, 0), ("1", 1), (1.0, 1)])
def test_values_of_different_kinds_have_different_keys(one: Value, other: Value) -> None:
    assert key_of(candidate(V=one)) != key_of(candidate(V=other))


CIRCUMSTANCES: dict[str, Any] = {
    "kernel": "gemm",
    "files": (SourceFile("/a/gemm.py", "1" * 20), SourceFile("/a/helper.py", "2" * 20)),
    "target": "gfx942",
    "installation": "i" * 20,
    "environment": {"TRITON_DEFAULT_FP_FUSION": "1"},
    "stubs": ("aiter",),
}


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "gemm2"},
        {"files": (SourceFile("/a/gemm.py", "1" * 20), SourceFile("/a/helper.py", "3" * 20))},
        {"files": (SourceFile("/a/gemm.py", "1" * 20),)},
        {"files": (SourceFile("/a/gemm2.py", "1" * 20), SourceFile("/a/helper.py", "2" * 20))},
        {"target": "gfx950"},
        {"installation": "j" * 20},
        {"environment": {}},
        {"environment": {"TRITON_DEFAULT_FP_FUSION": "0"}},
        {"stubs": ()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_stamp_changes_with_every_circumstance(change: dict[str, Any]) -> None:
    assert stamp_of(**CIRCUMSTANCES | change) != stamp_of(**CIRCUMSTANCES)


def test_a_stamp_does_not_change_with_the_order_of_the_files() -> None:
    reordered = tuple(reversed(CIRCUMSTANCES["files"]))
    assert stamp_of(**CIRCUMSTANCES | {"files": reordered}) == stamp_of(**CIRCUMSTANCES)


def test_two_files_that_change_places_are_another_stamp() -> None:
    one, other = CIRCUMSTANCES["files"]
    swapped = (SourceFile(one.path, other.ast), SourceFile(other.path, one.ast))
    assert stamp_of(**CIRCUMSTANCES | {"files": swapped}) != stamp_of(**CIRCUMSTANCES)
