"""Relations: what they mean, how they are said, and what they cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gluonmap.constraints.semantics import (
    Unit,
    as_power_of_two,
    description_bits,
    folded,
    holds,
    holds_columns,
    scope_of,
    unit_of,
    words,
)
from gluonmap.model.relations import (
    AllOf,
    AnyOf,
    Bound,
    Compare,
    KnobTerm,
    Max,
    Member,
    Min,
    Nogood,
    Number,
    Op,
    Product,
    Quotient,
    Relation,
    Remainder,
    RoundUp,
    Sum,
    View,
    Written,
)

BM, BN, NW, DT = KnobTerm("BM"), KnobTerm("BN"), KnobTerm("NW"), KnobTerm("dtype", View.BYTES)
DOMAINS = {"BM": (16, 48, 64), "BN": (16, 32, 64), "NW": (1, 4, 8), "dtype": ("fp8", "bf16"), "FLAG": (False, True)}

RELATIONS: list[tuple[Relation, str]] = [
    (Compare(Product((BN, NW)), Op.AT_MOST, Number(128)), "BN * NW <= 128"),
    (Compare(BM, Op.AT_LEAST, Product((Number(16), NW))), "BM >= 16 * NW"),
    (Compare(Sum((BM, Product((BN, NW)))), Op.AT_MOST, Number(300)), "BM + BN * NW <= 300"),
    (Compare(Product((Sum((BM, BN)), NW)), Op.AT_MOST, Number(300)), "(BM + BN) * NW <= 300"),
    (Compare(Product((BN, DT)), Op.AT_LEAST, BM), "BN * bytes(dtype) >= BM"),
    (Compare(Max((BM, BN)), Op.UNEQUAL, Min((BM, Number(64)))), "max(BM, BN) != min(BM, 64)"),
    (Compare(RoundUp(BM, 32), Op.EQUAL, Number(64)), "round_up(BM, 32) = 64"),
    (Compare(Remainder(BM, BN), Op.EQUAL, Number(0)), "BN divides BM"),
    (Compare(Quotient(BM, NW), Op.AT_LEAST, Number(8)), "BM / NW >= 8"),
    (Compare(KnobTerm("BM", View.POWER), Op.EQUAL, BM), "next_power_of_2(BM) = BM"),
    (Member("dtype", ("fp8",)), "dtype = fp8"),
    (Member("BM", (16, 48), inside=False), "BM not in {16, 48}"),
    (Bound("NW", Op.AT_LEAST, 4), "NW >= 4"),
    (AnyOf((Member("FLAG", (False,)), Bound("BM", Op.AT_MOST, 48))), "FLAG = False or BM <= 48"),
    (AllOf((Bound("BM", Op.AT_LEAST, 48), Member("NW", (1, 4)))), "BM >= 48 and NW in {1, 4}"),
    (Nogood((("BM", 64), ("NW", 8))), "not (BM = 64 and NW = 8)"),
    (Written("BM % NW == 0 or FLAG"), "BM % NW == 0 or FLAG"),
]


@pytest.mark.parametrize(("relation", "said"), RELATIONS, ids=[said for _, said in RELATIONS])
def test_a_relation_is_said_as_a_person_would(relation: Relation, said: str) -> None:
    assert words(relation) == said


@pytest.mark.parametrize("relation", [relation for relation, _ in RELATIONS], ids=[said for _, said in RELATIONS])
def test_columns_say_the_same_as_single_configurations(relation: Relation) -> None:
    configs = [dict(zip(DOMAINS, values, strict=True)) for values in itertools.product(*DOMAINS.values())]
    columns = {}
    for name in DOMAINS:
        column = np.empty(len(configs), object)
        column[:] = [config[name] for config in configs]
        columns[name] = column if name in ("dtype", "FLAG") else column.astype(int)
    assert holds_columns(relation, columns).tolist() == [holds(relation, config) for config in configs]
    assert scope_of(relation) <= set(DOMAINS)


def test_true_is_not_one() -> None:
    assert not holds(Member("FLAG", (1,)), {"FLAG": True})


@pytest.mark.parametrize(
    ("name", "domain", "unit"),
    [
        ("BLOCK_SIZE_M", (16, 32), Unit.TILE),
        ("num_warps", (4, 8), Unit.WARPS),
        ("STAGES", (1, 2, 3), Unit.STAGES),
        ("NUM_KSPLIT", (1, 2, 4), Unit.COUNT),
        ("HAS_BIAS", (False, True), Unit.FLAG),
        ("dtype", ("fp8", "bf16"), Unit.ENUM),
        ("CDNA_VERSION", (2, 3, 4), Unit.ENUM),
        ("unheard_of", (64, 128), Unit.TILE),
    ],
)
def test_units_are_guessed_from_names_and_values(name: str, domain: tuple[object, ...], unit: Unit) -> None:
    assert unit_of(name, domain) is unit  # type: ignore[arg-type]


def test_a_natural_relation_is_shorter_than_a_strange_one() -> None:
    domains = {"BLOCK_N": (64, 128), "num_warps": (4, 8), "ChunkQ": (16, 32), "CDNA_VERSION": (2, 3, 4)}
    natural = Compare(Product((KnobTerm("BLOCK_N"), KnobTerm("num_warps"))), Op.AT_MOST, Number(2048))
    strange = Compare(KnobTerm("ChunkQ"), Op.AT_MOST, Product((Number(10.67), KnobTerm("CDNA_VERSION"))))
    assert description_bits(natural, domains) < description_bits(strange, domains)


# ---- words for a reader ----------------------------------------------------------------------------------------------


def test_the_largest_power_of_two_in_a_knob_is_told_as_what_divides_it() -> None:
    even = KnobTerm("BLOCK", View.EVEN_PART)
    for relation, said, step in (
        (Compare(even, Op.AT_LEAST, Number(16)), "16 divides BLOCK", 16),
        (Compare(even, Op.AT_LEAST, Number(9)), "16 divides BLOCK", 16),
    ):
        assert words(relation) == said
        assert all(holds(relation, {"BLOCK": n}) == (n % step == 0) for n in range(1, 130))
    for limit in (8, 12):
        relation = Compare(even, Op.AT_MOST, Number(limit))
        assert words(relation) == "16 does not divide BLOCK"
        assert all(holds(relation, {"BLOCK": n}) == (n % 16 != 0) for n in range(1, 130))
    assert "even_part" not in words(Compare(Product((even, KnobTerm("N"))), Op.AT_MOST, Number(64)))


def test_a_list_of_values_is_told_as_powers_of_two_where_failures_say_so_and_the_domain_agrees() -> None:
    domains = {"BLOCK": (16, 24, 32, 64), "ODD": (16, 24, 48)}
    not_24 = Member("BLOCK", (24,), inside=False)
    assert as_power_of_two(not_24, "Shape element 0 must be a power of 2", domains) == "BLOCK is a power of two"
    assert as_power_of_two(not_24, "sizePerThread must be a power of two.", domains) == "BLOCK is a power of two"
    assert as_power_of_two(not_24, "no such layout", domains) == ""
    assert as_power_of_two(Member("BLOCK", (24, 64), inside=False), "must be a power of 2", domains) == ""
    assert as_power_of_two(Member("ODD", (24,), inside=False), "must be a power of 2", domains) == ""


def test_a_knob_with_one_value_left_is_a_literal_in_a_formula_and_a_knob_elsewhere() -> None:
    product = Product((KnobTerm("M"), KnobTerm("N"), KnobTerm("num_warps")))
    budget, pin = Compare(product, Op.AT_MOST, Number(65536)), Member("num_warps", (4,))
    assert words(folded(budget, {"num_warps": 4})) == "4 * M * N <= 65536"
    assert words(folded(budget, {"num_warps": 1})) == "M * N <= 65536"
    assert words(folded(pin, {"num_warps": 4})) == "num_warps = 4"
    assert words(folded(AnyOf((Member("S", (0,)), budget)), {"num_warps": 4})) == "S = 0 or 4 * M * N <= 65536"
    alone = Compare(KnobTerm("num_warps"), Op.AT_MOST, Number(4))
    assert words(folded(alone, {"num_warps": 4})) == "num_warps <= 4"
