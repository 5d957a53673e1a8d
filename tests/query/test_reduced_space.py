"""The reduced space: programs counted without listing them, the same as a walk; and what to compile of them."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spaces import RULES_A, RULES_B, SPACE_A, SPACE_B

from gluonmap.constraints.counting import TooEntangled
from gluonmap.constraints.semantics import holds, words
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import Inertness, ValueClasses, Verified
from gluonmap.model.relations import Bound, Compare, KnobTerm, Member, Number, Op, Product, Relation, Written
from gluonmap.model.verdict import Resources
from gluonmap.query import reduced_space as programs
from gluonmap.query.reduced_space import ReducedSpace, one_per_launch, reduced_space

NAMES = ("A", "B", "C", "D")
SPLIT_IS_1 = Member("SPLIT", (1,))


def never(knob: str) -> Inertness:
    return Inertness(knob, "", f"{knob} changed nothing", 0, 3)


def only_if(knob: str, relation: Relation) -> Inertness:
    return Inertness(knob, words(relation), f"{knob} matters only if {words(relation)}", 3, 3, relation)


def equal(knob: str, *values: Value, where: Relation | None = None) -> ValueClasses:
    return ValueClasses(knob, (values,), words(where) if where else "", where)


# ---- the rules -----------------------------------------------------------------------------------------------------


def test_an_inert_knob_has_the_baselines_value() -> None:
    space = reduced_space({"A": (1, 2), "kpack": (1, 2)}, {"A": 1, "kpack": 2}, inertness=[never("kpack")])
    assert space.canonical({"A": 2, "kpack": 1}) == {"A": 2, "kpack": 2}
    assert (space.feasible_count, space.program_count) == (4, 2)


def test_a_conditional_knob_has_the_baselines_value_where_it_is_inert() -> None:
    domains = {"GROUP": (1, 4), "SPLIT": (1, 2)}
    space = reduced_space(domains, {"GROUP": 1, "SPLIT": 1}, inertness=[only_if("GROUP", SPLIT_IS_1)])
    assert space.canonical({"GROUP": 4, "SPLIT": 1}) == {"GROUP": 4, "SPLIT": 1}
    assert space.canonical({"GROUP": 4, "SPLIT": 2}) == {"GROUP": 1, "SPLIT": 2}
    assert space.program_count == 3


def test_equal_values_become_the_baseline_or_else_the_first_of_them() -> None:
    domains = {"waves": (0, 1, 2, 4)}
    assert reduced_space(domains, {"waves": 1}, value_classes=[equal("waves", 0, 1)]).canonical({"waves": 0}) == {
        "waves": 1
    }
    assert reduced_space(domains, {"waves": 4}, value_classes=[equal("waves", 0, 1)]).canonical({"waves": 1}) == {
        "waves": 0
    }


def test_classes_that_share_a_value_are_one_where_both_hold() -> None:
    many_warps = Bound("warps", Op.AT_LEAST, 8)
    classes = [equal("waves", 1, 2, where=many_warps), equal("waves", 0, 2)]
    space = reduced_space({"warps": (4, 8), "waves": (0, 1, 2)}, {"warps": 4, "waves": 0}, value_classes=classes)
    assert space.canonical({"warps": 8, "waves": 1}) == {"warps": 8, "waves": 0}
    assert space.canonical({"warps": 4, "waves": 1}) == {"warps": 4, "waves": 1}
    assert space.program_count == 3


def test_a_condition_may_read_the_knob_itself() -> None:
    below = Compare(Product((KnobTerm("waves"), Number(4))), Op.AT_MOST, KnobTerm("warps"))
    space = reduced_space(
        {"warps": (4, 8), "waves": (0, 1, 2, 4)},
        {"warps": 4, "waves": 0},
        value_classes=[equal("waves", 0, 1, 2, 4, where=below)],
    )
    assert [space.canonical({"warps": 8, "waves": w})["waves"] for w in (0, 1, 2, 4)] == [0, 0, 0, 4]
    assert [space.canonical({"warps": 4, "waves": w})["waves"] for w in (0, 1, 2, 4)] == [0, 0, 2, 4]


def test_a_condition_reads_replaced_values() -> None:
    rules = [only_if("XCD", Bound("GROUP", Op.AT_LEAST, 2)), only_if("GROUP", SPLIT_IS_1)]
    domains = {"XCD": (1, 8), "GROUP": (1, 4), "SPLIT": (1, 2)}
    space = reduced_space(domains, {"XCD": 1, "GROUP": 1, "SPLIT": 1}, inertness=rules)
    assert space.canonical({"XCD": 8, "GROUP": 4, "SPLIT": 2}) == {"XCD": 1, "GROUP": 1, "SPLIT": 2}


def test_cyclic_conditions_never_merge_unrelated_values() -> None:
    rules = [only_if("A", Member("B", (1,))), only_if("B", Member("A", (1,)))]
    space = reduced_space({"A": (1, 2), "B": (1, 2)}, {"A": 1, "B": 1}, inertness=rules)
    assert space.canonical({"A": 2, "B": 2}) != space.canonical({"A": 1, "B": 1})


def test_a_knob_that_sometimes_matters_is_kept() -> None:
    sometimes = Inertness("A", "sometimes", "nothing tells when", 2, 2)
    assert reduced_space({"A": (1, 2)}, {"A": 1}, inertness=[sometimes]).program_count == 2


def test_a_class_counts_once_if_its_canonical_value_is_forbidden() -> None:
    space = reduced_space(
        {"A": (1, 2, 4), "B": (1, 2)},
        {"A": 1, "B": 1},
        [Written("A > B or B == 1")],
        value_classes=[equal("A", 1, 2, 4)],
    )
    assert space.canonical({"A": 4, "B": 2}) == {"A": 1, "B": 2}
    assert space.program_count == 2
    assert space.representatives(10) == [{"A": 1, "B": 1}, {"A": 4, "B": 2}]


def test_relations_and_conditions_over_other_names_are_left_out() -> None:
    rules = [only_if("A", Member("elsewhere", (1,)))]
    space = reduced_space({"A": (1, 2)}, {"A": 1}, [Bound("elsewhere", Op.AT_MOST, 1)], rules)
    assert (space.feasible_count, space.program_count) == (2, 2)


def test_a_value_outside_its_domain_is_its_own_canonical_form() -> None:
    space = reduced_space({"GROUP": (1, 4), "SPLIT": (1, 2)}, {"GROUP": 1, "SPLIT": 1}, inertness=[never("GROUP")])
    assert space.canonical({"GROUP": 16, "SPLIT": True}) == {"GROUP": 16, "SPLIT": True}


# ---- against a walk ------------------------------------------------------------------------------------------------

Case = tuple[ReducedSpace, list[Inertness], list[ValueClasses]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    domains = {name: tuple(2**i for i in range(draw(st.integers(1, 4)))) for name in NAMES}
    knobs = st.sampled_from(NAMES)

    def relation() -> Relation:
        if draw(st.booleans()):
            return Member(draw(knobs), (draw(st.sampled_from((1, 2, 4))),), inside=draw(st.booleans()))
        factors = tuple(KnobTerm(name) for name in draw(st.lists(knobs, min_size=1, max_size=2, unique=True)))
        return Compare(Product(factors), draw(st.sampled_from(list(Op))), Number(2 ** draw(st.integers(0, 4))))

    def inert() -> Inertness:
        knob = draw(knobs)
        return draw(st.sampled_from((never(knob), only_if(knob, relation()))))

    def classes() -> ValueClasses:
        values = draw(st.lists(st.sampled_from((1, 2, 4, 8)), min_size=2, max_size=3, unique=True))
        return equal(draw(knobs), *values, where=relation() if draw(st.booleans()) else None)

    relations = [relation() for _ in range(draw(st.integers(0, 3)))]
    inertness = [inert() for _ in range(draw(st.integers(0, 3)))]
    value_classes = [classes() for _ in range(draw(st.integers(0, 3)))]
    baseline: Config = {name: draw(st.sampled_from(domains[name])) for name in NAMES}
    return reduced_space(domains, baseline, relations, inertness, value_classes), inertness, value_classes


def feasible(space: ReducedSpace) -> list[dict[str, Any]]:
    configs = [dict(zip(space.names, values, strict=True)) for values in itertools.product(*space.domains)]
    return [config for config in configs if all(holds(relation, config) for relation in space.relations)]


def forms(space: ReducedSpace, configs: Sequence[Config]) -> set[tuple[Value, ...]]:
    return {tuple(space.canonical(config).values()) for config in configs}


@settings(max_examples=150, deadline=None)
@given(cases())
def test_programs_are_counted_as_a_walk_counts_them(case: Case) -> None:
    space, _, _ = case
    allowed = feasible(space)
    assert space.feasible_count == len(allowed)
    assert space.program_count == len(forms(space, allowed))


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(0, 3))
def test_representatives_are_one_feasible_configuration_of_each_program(case: Case, known: int) -> None:
    space, _, _ = case
    allowed = feasible(space)
    compiled = allowed[-known:] if known else []
    chosen = space.representatives(1000, known=compiled)
    assert all(config in allowed for config in chosen)
    assert len(chosen) == len(forms(space, chosen)) == len(forms(space, allowed))
    assert len([config for config in chosen if config in compiled]) >= len(forms(space, compiled)) - 1
    baseline = dict(zip(space.names, (d[i] for d, i in zip(space.domains, space.start, strict=True)), strict=True))
    if baseline in allowed:
        assert chosen[0] == baseline


@settings(max_examples=100, deadline=None)
@given(cases())
def test_nothing_is_merged_that_no_chain_of_rules_joins(case: Case) -> None:
    space, inertness, value_classes = case
    configs = [dict(zip(space.names, values, strict=True)) for values in itertools.product(*space.domains)]
    group = {tuple(config.values()): place for place, config in enumerate(configs)}

    def find(key: Any) -> int:
        while group[key] != group[tuple(configs[group[key]].values())]:
            group[key] = group[tuple(configs[group[key]].values())]
        return group[key]

    for one in configs:
        for knob, domain in zip(space.names, space.domains, strict=True):
            for value in domain:
                other = {**one, knob: value}
                if _one_rule_joins(one, other, knob, inertness, value_classes):
                    group[tuple(configs[find(tuple(one.values()))].values())] = find(tuple(other.values()))
    for config in configs:
        assert find(tuple(config.values())) == find(tuple(space.canonical(config).values()))


def _one_rule_joins(
    one: Config, other: Config, knob: str, inertness: list[Inertness], value_classes: list[ValueClasses]
) -> bool:
    for item in inertness:
        if item.knob == knob and (
            item.relation is None or not (holds(item.relation, one) or holds(item.relation, other))
        ):
            return True
    return any(
        item.knob == knob
        and {one[knob], other[knob]} <= set(item.classes[0])
        and (item.relation is None or (holds(item.relation, one) and holds(item.relation, other)))
        for item in value_classes
    )


@settings(max_examples=60, deadline=None)
@given(cases())
def test_where_tables_would_grow_too_large_the_feasible_set_is_walked(case: Case) -> None:
    space, _, _ = case
    allowed = feasible(space)
    vars(space)["_image"] = None  # as a cached property that found them too large has it
    assert space.program_count == len(forms(space, allowed))
    assert len(space.representatives(1000)) == len(forms(space, allowed))


def test_too_entangled_spaces_are_not_counted_and_still_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gluonmap.constraints.counting.MOST_CELLS", 1000)
    domains = {name: tuple(range(10)) for name in NAMES}
    space = reduced_space(domains, dict.fromkeys(NAMES, 0), [Written("A + B + C + D <= 20")])
    assert (space.feasible_count, space.program_count) == (None, None)
    with pytest.raises(TooEntangled, match="--restrict"):
        space.sample(1)
    chosen = space.representatives(40)
    assert len(chosen) == 40
    assert chosen[0] == dict.fromkeys(NAMES, 0)
    assert all(sum(v for v in config.values() if isinstance(v, int)) <= 20 for config in chosen)


# ---- which to compile ----------------------------------------------------------------------------------------------


def test_a_limit_keeps_each_value_of_each_live_knob() -> None:
    space = reduced_space(
        SPACE_A, {name: values[0] for name, values in SPACE_A.items()}, [Written(r) for r in RULES_A],
        [never("kpack"), only_if("GROUP_M", Member("SPLIT_K", (1,)))],
    )  # fmt: skip
    chosen = space.representatives(40)
    assert len(chosen) == 40
    assert chosen[0] == {name: values[0] for name, values in SPACE_A.items()}
    for name, values in SPACE_A.items():
        assert {config[name] for config in chosen} == ({1} if name == "kpack" else set(values))
    assert chosen == space.representatives(40)


def test_a_value_that_no_draw_meets_is_kept_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "POOL", 10)
    domains = {"A": tuple(range(100)), "B": tuple(range(100)), "rare": (0, 1)}
    space = reduced_space(domains, {"A": 0, "B": 0, "rare": 0}, [Written("rare == 0 or (A == 7 and B == 9)")])
    assert {"A": 7, "B": 9, "rare": 1} in space.representatives(10)


def test_a_known_configuration_represents_its_program() -> None:
    space = reduced_space({"A": (1, 2), "kpack": (1, 2)}, {"A": 1, "kpack": 1}, inertness=[never("kpack")])
    assert space.representatives(5, known=[{"A": 2, "kpack": 2}]) == [{"A": 1, "kpack": 1}, {"A": 2, "kpack": 2}]


def test_known_configurations_that_are_not_of_the_space_are_left_out() -> None:
    space = reduced_space({"A": (1, 2)}, {"A": 1}, [Member("A", (1,))])
    assert space.representatives(5, known=[{"A": 2}, {"A": 64}, {}]) == [{"A": 1}]


def test_nothing_allowed_and_nothing_wanted_give_nothing() -> None:
    assert reduced_space({"A": (1, 2)}, {"A": 1}, [Member("A", (3,))]).representatives(5) == []
    assert reduced_space({"A": (1, 2)}, {"A": 1}).representatives(0) == []
    assert reduced_space({}, {}).representatives(5) == [{}]


# ---- the feasible set ------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(cases())
def test_the_feasible_configurations_are_listed_and_drawn(case: Case) -> None:
    space, _, _ = case
    allowed = feasible(space)
    assert list(space.listed()) == allowed
    assert all(config in allowed for config in space.sample(5))
    assert len(space.sample(5, seed=2)) == (5 if allowed else 0)


def test_more_than_can_be_held_are_listed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_ROWS", 7)
    domains = dict.fromkeys(NAMES, (0, 1, 2, 3))
    space = reduced_space(domains, dict.fromkeys(NAMES, 0), [Written("A + B <= C + 3")])
    assert list(space.listed()) == feasible(space)


# ---- digests -------------------------------------------------------------------------------------------------------


def test_equal_digests_and_launches_are_one_entry() -> None:
    used = Resources(threads=256, shared_bytes=0)
    one = Verified({"A": 1, "B": 1}, "aa", used, (4,))
    both_moved = Verified({"A": 2, "B": 2}, "aa", used, (4,), same=2)
    other_grid = Verified({"A": 4, "B": 1}, "aa", used, (8,))
    other_arguments = Verified({"A": 4, "B": 2}, "aa", used, (8,), arguments="split in two")
    found = one_per_launch([one, other_grid, both_moved, other_arguments])
    assert found == [Verified({"A": 1, "B": 1}, "aa", used, (4,), same=3), other_grid, other_arguments]


# ---- speed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domains", "rules", "group", "split", "count", "seconds"),
    [(SPACE_A, RULES_A, "GROUP_M", "SPLIT_K", 104_104, 0.1), (SPACE_B, RULES_B, "GM", "SK", 63_840, 0.5)],
    ids=["A", "B"],
)
def test_the_programs_of_the_two_spaces_of_the_construction_benchmark(
    domains: dict[str, tuple[int, ...]], rules: tuple[str, ...], group: str, split: str, count: int, seconds: float
) -> None:
    inertness = [never("kpack"), only_if("stages", Bound("BK", Op.AT_LEAST, 32)), only_if(group, Member(split, (1,)))]
    classes = [equal("waves_per_eu", 0, 1, where=Bound("warps", Op.AT_LEAST, 4))]
    baseline = {name: values[0] for name, values in domains.items()}

    def build() -> ReducedSpace:
        return reduced_space(domains, baseline, [Written(rule) for rule in rules], inertness, classes)

    times = []
    for _ in range(3):
        start = time.process_time()
        found = build().program_count
        times.append(time.process_time() - start)
    assert found == count
    assert min(times) < seconds
    tracemalloc.start()
    assert build().program_count == count
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_a_billion_configurations_are_counted_in_a_moment() -> None:
    domains = SPACE_B | {f"x{i}": (0, 1, 2, 3) for i in range(4)}
    start = time.process_time()
    space = reduced_space(
        domains,
        {name: values[0] for name, values in domains.items()},
        [Written(rule) for rule in RULES_B],
        [never("x3")],
    )
    assert space.program_count == 110_432 * 4**3
    assert time.process_time() - start < 1
