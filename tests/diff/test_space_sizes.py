"""Whole spaces of two maps counted against each other."""

from __future__ import annotations

from compared_maps import budget, constraint_moves
from hypothesis import given, settings
from hypothesis import strategies as st
from maps import BASELINE, BUDGET, DOMAINS, joint_map, product
from msgspec.structs import replace

from gluonmap.constraints.semantics import holds
from gluonmap.diff.comparison import difference
from gluonmap.diff.constraints import ConstraintTransition
from gluonmap.diff.spaces import SharedSpace, SpaceCount
from gluonmap.model.candidate import Config
from gluonmap.model.joint_map import Sizes
from gluonmap.model.relations import AnyOf, Bound, Compare, KnobTerm, Member, Number, Op, Product, Relation
from gluonmap.model.space_map import SpaceMap
from gluonmap.report.diff import spaces


def test_feasible_spaces_are_counted_against_each_other_with_an_example() -> None:
    found = difference(joint_map((budget(16384),)), joint_map((budget(8192), Member("MODE", (".cg",), inside=False))))
    space = product(DOMAINS)
    before = [c for c in space if holds(budget(16384), c)]
    after = [c for c in space if holds(budget(8192), c) and c["MODE"] != ".cg"]
    assert found.shared == SharedSpace(
        signature=len(space),
        before=len(before),
        after=len(after),
        both=len(after),
        proved=False,
        lost_example={**BASELINE, "MODE": ".cg"},
        gained_example=None,
    )


RELATIONS: list[Relation] = [
    BUDGET,
    budget(4096),
    budget(16384),
    Member("MODE", (".cg",), inside=False),
    Bound("STAGES", Op.AT_MOST, 3),
    AnyOf((Member("FLAG", (False,)), Bound("M", Op.AT_LEAST, 32))),
    Compare(KnobTerm("M"), Op.AT_MOST, KnobTerm("N")),
]
some = st.lists(st.sampled_from(RELATIONS), max_size=4, unique_by=repr)


@settings(deadline=None, max_examples=60)
@given(some, some)
def test_counts_and_directions_are_those_of_the_whole_product(one: list[Relation], other: list[Relation]) -> None:
    space = product(DOMAINS)

    def allowed(relations: list[Relation], config: Config) -> bool:
        return all(holds(relation, config) for relation in relations)

    found = difference(joint_map(one), joint_map(other))
    lost = [c for c in space if allowed(one, c) and not allowed(other, c)]
    gained = [c for c in space if allowed(other, c) and not allowed(one, c)]
    assert found.shared
    assert (found.shared.lost, found.shared.gained) == (len(lost), len(gained))
    assert (found.shared.lost_example in lost) if lost else found.shared.lost_example is None
    assert (found.shared.gained_example in gained) if gained else found.shared.gained_example is None
    for change in found.constraints:
        if change.before:
            assert change.freed == sum(allowed(other, c) and not holds(change.before.relation, c) for c in space)
        if change.after:
            assert change.forbidden == sum(allowed(one, c) and not holds(change.after.relation, c) for c in space)
    back = difference(joint_map(other), joint_map(one)).shared
    assert back and (back.lost, back.gained) == (found.shared.gained, found.shared.lost)
    # Each lost configuration is forbidden by some listed constraint.
    assert not lost or any(change.forbidden for change in found.constraints)


def test_maps_that_each_asked_everything_prove_it() -> None:
    def of(relation: Relation) -> SpaceMap:
        space = joint_map((relation,))
        assert space.joint
        return replace(space, joint=replace(space.joint, enumerated=True))

    found = difference(of(budget(8192)), of(budget(16384)))
    assert found.shared and found.shared.proved


def test_too_entangled_constraints_are_compared_and_not_counted() -> None:
    domains = {f"K{i}": tuple(range(1, 12)) for i in range(8)}
    baseline = dict.fromkeys(domains, 1)
    whole = tuple(Compare(Product(tuple(map(KnobTerm, domains))), Op.AT_MOST, Number(n)) for n in (64, 128))
    one, other = (joint_map((relation,), domains=domains, baseline=baseline) for relation in whole)
    found = difference(one, other)
    assert found.shared is None
    assert constraint_moves(found) == [(ConstraintTransition.LIMIT, None, None, None)]


def test_counts_are_those_of_the_maps() -> None:
    def of(feasible: int | None) -> SpaceMap:
        space = joint_map()
        assert space.joint
        return replace(space, joint=replace(space.joint, sizes=Sizes(384, feasible, feasible)))

    found = difference(of(300), of(320))
    programs = SpaceCount("distinct programs", 300, 320, before_at_most=True, after_at_most=True)
    assert found.counts[1:3] == (SpaceCount("feasible configurations", 300, 320), programs)
    assert found.changed
    assert ("distinct programs", "at most 300", "at most 320") in list(spaces.counts(found))
