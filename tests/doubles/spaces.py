"""Spaces with relations whose counts are known by brute force."""

from __future__ import annotations

from hypothesis import strategies as st

from gluonmap.model.relations import AnyOf, Compare, KnobTerm, Member, Number, Op, Product, Relation

NAMES = ("A", "B", "C", "D")


@st.composite
def spaces(draw: st.DrawFn) -> tuple[dict[str, tuple[int, ...]], list[Relation]]:
    domains = {name: tuple(2**i for i in range(draw(st.integers(1, 4)))) for name in NAMES}
    knobs = st.sampled_from(NAMES)

    def product() -> Relation:
        factors = tuple(KnobTerm(name) for name in draw(st.lists(knobs, min_size=1, max_size=3, unique=True)))
        return Compare(Product(factors), draw(st.sampled_from(list(Op))), Number(2 ** draw(st.integers(0, 5))))

    def either() -> Relation:
        return AnyOf((Member(draw(knobs), (1,)), Member(draw(knobs), (2,), inside=draw(st.booleans()))))

    return domains, [product() if draw(st.booleans()) else either() for _ in range(draw(st.integers(0, 4)))]


TILE = (16, 32, 64, 128, 256)


COMMON: dict[str, tuple[int, ...]] = {
    "BM": TILE, "BN": TILE, "BK": TILE, "warps": (1, 2, 4, 8), "stages": (1, 2, 3, 4), "waves_per_eu": (0, 1, 2, 4),
    "nonkdim": (0, 16, 32), "kpack": (1, 2), "cache": (0, 1),
}  # fmt: skip


SPACE_A = COMMON | {"GROUP_M": (1, 4, 8, 16), "SPLIT_K": (1, 2, 4, 8)}


RULES_A = (
    "(BM*BK + BK*BN)*2*stages <= 65536", "warps*64 <= BM*BN", "BM*BN <= warps*8192", "nonkdim <= BM", "nonkdim <= BN",
    "SPLIT_K*BK <= 4096", "SPLIT_K == 1 or GROUP_M == 1", "kpack == 1 or BK >= 32",
)  # fmt: skip


SPACE_B = COMMON | {
    "GM": (1, 2, 4, 8, 16, 32), "SK": (1, 2, 4, 8, 16), "hint": (0, 1, 2), "chain": (0, 1), "xcd": (1, 2, 4, 8),
}  # fmt: skip


RULES_B = (
    "(BM*BK + BK*BN)*2*stages <= 32768", "BM*BN == warps*4096", "nonkdim <= BM", "nonkdim <= BN", "SK*BK <= 1024",
    "SK == 1 or GM == 1", "kpack == 1 or BK >= 64", "xcd <= GM", "chain == 0 or hint == 0", "hint == 0 or stages == 2",
)  # fmt: skip
