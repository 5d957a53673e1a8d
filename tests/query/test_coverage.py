"""What was really tried: tuples on both sides of a constraint, combinations of values."""

from __future__ import annotations

from maps import BUDGET, constraint, joint_map, tried

from gluonmap.model.relations import Member, Written
from gluonmap.query import coverage
from gluonmap.query.coverage import Combinations, TupleCount, combinations, constraint_coverage
from gluonmap.query.observations import Observations, observations

MODE = Member("MODE", (None, ".cg"))


def asked_map(*asked) -> Observations:
    return observations(joint_map([BUDGET], tried=asked))


def test_tuples_of_a_constraint_are_counted_on_both_sides() -> None:
    asked = [tried({}), tried({"M": 64}), tried({"MODE": ".ca"}, "CRASHED"), tried({"MODE": ".cg"}, "REJECTED")]
    found = constraint_coverage(asked_map(*asked), constraint(MODE))
    assert found is not None
    # None was seen passing; .cg meets the constraint and failed for another reason; .ca breaks it.
    assert (found.meet, found.broken) == (TupleCount(2, 2, 1), TupleCount(1, 1, 0))
    assert not found.exhaustive


def test_coverage_is_exhaustive_once_every_tuple_was_tried() -> None:
    asked = [tried({}), tried({"MODE": ".ca"}, "CRASHED"), tried({"MODE": ".cg"})]
    found = constraint_coverage(asked_map(*asked), constraint(MODE))
    assert found is not None
    assert found.exhaustive


def test_an_answer_that_is_no_evidence_is_no_try() -> None:
    found = constraint_coverage(
        asked_map(tried({"MODE": ".ca"}, "unknown"), tried({"MODE": ".ca"}, "HUNG")), constraint(MODE)
    )
    assert found is not None
    assert found.broken == TupleCount(1, 0, 0)


def test_tuples_of_values_of_other_types_differ() -> None:
    found = constraint_coverage(asked_map(tried({"FLAG": False})), constraint(Member("FLAG", (0,))))
    assert found is not None
    assert (found.meet.possible, found.broken) == (0, TupleCount(2, 1, 1))


def test_unknown_knobs_and_too_many_values_are_not_counted(monkeypatch) -> None:
    assert constraint_coverage(asked_map(), constraint(Written("EXTRA > 1"))) is None
    monkeypatch.setattr(coverage, "MOST_TUPLES", 10)
    assert constraint_coverage(asked_map(), constraint(BUDGET)) is None


def test_combinations_are_counted_in_the_signature_and_as_tried() -> None:
    # 4 + 4 + 4 + 2 + 3 values; the baseline has one of each knob, and each move adds one value and four pairs.
    asked = [tried({}), tried({"M": 64}, "CRASHED"), tried({"N": 64}, "unknown")]
    one, two, three = combinations(asked_map(*asked))
    assert one == Combinations(1, 17, 6)
    assert two == Combinations(2, 4 * 4 * 3 + 3 * 4 * 2 + 3 * 4 * 3 + 2 * 3, 14)
    assert three == Combinations(3, 64 + 3 * 16 * 2 + 3 * 16 * 3 + 3 * 4 * 2 * 3, 16)
