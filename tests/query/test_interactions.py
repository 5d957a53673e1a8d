"""Interacting knobs: shares equal brute force, and programs are distinguished."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps import BUDGET, DOMAINS, joint_map, product, single_map, tried
from msgspec.structs import replace
from spaces import spaces

from gluonmap.constraints import counting
from gluonmap.constraints.semantics import holds, scope_of
from gluonmap.model.joint_map import Inertness, ValueClasses
from gluonmap.model.relations import Compare, KnobTerm, Member, Number, Op, Product
from gluonmap.query import interactions
from gluonmap.query.interactions import PairCell, ProgramCell, feasible_pairs, program_pairs


@settings(max_examples=40, deadline=None)
@given(spaces())
def test_shares_are_those_of_a_walk_over_the_product(case) -> None:
    domains, relations = case
    baseline = {name: values[0] for name, values in domains.items()}
    space = joint_map(relations, domains=domains, baseline=baseline)
    walked = [config for config in product(domains) if all(holds(r, config) for r in relations)]
    for table in feasible_pairs(space):
        others = len(product(domains)) / len(domains[table.down]) / len(domains[table.across])
        for row, down in zip(table.cells, domains[table.down], strict=True):
            for cell, across in zip(row, domains[table.across], strict=True):
                found = sum(c[table.down] == down and c[table.across] == across for c in walked)
                assert cell.share == pytest.approx(found / others)


@settings(max_examples=40, deadline=None)
@given(spaces())
def test_a_pair_has_a_table_exactly_if_its_knobs_are_dependent(case) -> None:
    domains, relations = case
    baseline = {name: values[0] for name, values in domains.items()}
    tabled = {(t.down, t.across) for t in feasible_pairs(joint_map(relations, domains=domains, baseline=baseline))}
    walked = [config for config in product(domains) if all(holds(r, config) for r in relations)]

    def count(**wanted: int) -> int:
        return sum(all(c[n] == v for n, v in wanted.items()) for c in walked)

    for one, other in itertools.combinations(domains, 2):
        apart = all(
            count(**{one: v, other: w}) * len(walked) == count(**{one: v}) * count(**{other: w})
            for v in domains[one]
            for w in domains[other]
        )
        tied = any({one, other} <= scope_of(relation) for relation in relations)
        assert ((one, other) in tabled) is (tied and not apart)


def test_cells_count_asked_configurations_by_their_end() -> None:
    asked = [tried({}), tried({"M": 64}), tried({"M": 64, "FLAG": True}, "NO_RESOURCES"), tried({"M": 64}, "unknown")]
    space = joint_map([BUDGET], tried=asked)
    table = next(t for t in feasible_pairs(space) if (t.down, t.across) == ("M", "STAGES"))
    # M = 64 leaves N * STAGES <= 128: with two stages N is 16, 32 or 64 of four.
    assert table.cells[2][1] == PairCell(0.75, 1, 1)
    assert table.cells[1][1] == PairCell(1.0, 1, 0)
    assert table.cells[3][3] == PairCell(0.25, 0, 0)


def test_knobs_that_no_constraint_ties_make_no_pair() -> None:
    assert feasible_pairs(single_map()) == ()
    assert feasible_pairs(joint_map([Member("M", (16, 32)), Member("N", (16,))])) == ()
    assert {frozenset((t.down, t.across)) for t in feasible_pairs(joint_map([BUDGET]))} == {
        frozenset(pair) for pair in itertools.combinations(("M", "N", "STAGES"), 2)
    }


def test_the_closest_tied_pair_comes_first() -> None:
    loose = Compare(Product((KnobTerm("M"), KnobTerm("N"))), Op.AT_MOST, Number(8192))
    close = Compare(Product((KnobTerm("M"), KnobTerm("STAGES"))), Op.AT_MOST, Number(128))
    first, second = feasible_pairs(joint_map([loose, close]))[:2]
    assert ((first.down, first.across), (second.down, second.across)) == (("M", "STAGES"), ("M", "N"))
    assert first.strength > second.strength


def test_without_counts_a_table_has_only_the_asked_ones(monkeypatch) -> None:
    monkeypatch.setattr(counting, "MOST_CELLS", 10)
    table = feasible_pairs(joint_map([BUDGET], tried=[tried({})]))[0]
    assert (table.down, table.across) == ("M", "N")
    assert table.cells[1][1] == PairCell(None, 1, 0)


def test_conditional_knobs_have_a_table_of_programs() -> None:
    only = Inertness("STAGES", "FLAG = True", "STAGES matters only if FLAG = True", 2, 2, Member("FLAG", (True,)))
    asked = [
        tried({}, digest="a"),
        tried({"STAGES": 1}, digest="a"),
        tried({"FLAG": True}, digest="b"),
        tried({"FLAG": True, "STAGES": 1}, digest="c"),
        tried({"FLAG": True, "STAGES": 4}, "CRASHED"),
    ]
    space = replace(joint_map([], tried=asked, inertness=[only]), stable=True)
    (table,) = program_pairs(space)
    assert (table.down, table.across, table.reason) == ("STAGES", "FLAG", "STAGES matters only if FLAG = True")
    asked_a, ruled_a = ProgramCell(0, True), ProgramCell(0, False)
    assert table.cells == (
        (asked_a, ProgramCell(1, True)),
        (asked_a, ProgramCell(2, True)),
        (ruled_a, ProgramCell(-1, False)),
        (ruled_a, ProgramCell(-1, True, fails=True)),
    )


def test_values_that_are_one_program_only_somewhere_are_a_pair_too() -> None:
    classes = ValueClasses("STAGES", ((1, 2), (3, 4)), "FLAG = True", Member("FLAG", (True,)))
    everywhere = ValueClasses("M", ((16, 32), (64, 128)))
    space = joint_map([], value_classes=[classes, everywhere])
    assert [(t.down, t.across) for t in program_pairs(space)] == [("STAGES", "FLAG")]
    assert program_pairs(single_map()) == ()


def test_every_table_has_a_cell_for_each_pair_of_values() -> None:
    for table in feasible_pairs(joint_map([BUDGET])):
        assert [len(row) for row in table.cells] == [len(DOMAINS[table.across])] * len(DOMAINS[table.down])


@given(st.floats(0, 1), st.floats(0, 1))
def test_strength_of_independent_knobs_is_nothing_but_rounding(one: float, other: float) -> None:
    import numpy as np

    table = np.outer([one, 1 - one], [other, 1 - other])
    assert interactions._strength(table) < interactions.LEAST_STRENGTH
