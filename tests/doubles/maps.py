"""Small maps made by hand: no Triton, no compile."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from gluonmap.constraints.semantics import holds, scope_of, words
from gluonmap.model.candidate import Config, Value
from gluonmap.model.joint_map import (
    Certificate,
    Constraint,
    Inertness,
    Joint,
    Sizes,
    Standing,
    Tried,
    Unstable,
    ValueClasses,
)
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.relations import Compare, KnobTerm, Number, Op, Product, Relation
from gluonmap.model.space_map import KnobMap, Recipe, SpaceMap, ValueMap

DOMAINS: dict[str, tuple[Value, ...]] = {
    "M": (16, 32, 64, 128),
    "N": (16, 32, 64, 128),
    "STAGES": (1, 2, 3, 4),
    "FLAG": (False, True),
    "MODE": (None, ".ca", ".cg"),
}
BASELINE: Config = {"M": 32, "N": 32, "STAGES": 2, "FLAG": False, "MODE": None}
BUDGET = Compare(Product((KnobTerm("M"), KnobTerm("N"), KnobTerm("STAGES"))), Op.AT_MOST, Number(8192))


def constraint(relation: Relation, standing: Standing = Standing.LEARNED, reason: str = "over budget") -> Constraint:
    """A constraint in its own words."""
    return Constraint(relation, words(relation), tuple(sorted(scope_of(relation))), standing, reason)


def value_map(value: Value, outcome: str, digest: str = "", effect: Effect = Effect.LIVE) -> ValueMap:
    return ValueMap(value, outcome, Effect.ABORTING if outcome != "PASS" else effect, digest=digest, detail="")


def single_map(
    domains: Mapping[str, Sequence[Value]] = DOMAINS,
    baseline: Config = BASELINE,
    relations: Sequence[Relation] = (BUDGET,),
    classes: Mapping[str, KnobClass] | None = None,
) -> SpaceMap:
    """A map without a joint part: each knob moved alone, an outcome by the relations."""

    def outcome(moves: Config) -> str:
        return "PASS" if all(holds(r, {**baseline, **moves}) for r in relations) else "NO_RESOURCES"

    knobs = {
        name: KnobMap(
            (classes or {}).get(name, KnobClass.LIVE),
            KnobKind.CONSTEXPR,
            baseline[name],
            "by hand",
            tuple(value_map(v, outcome({name: v})) for v in values),
        )
        for name, values in domains.items()
    }
    return SpaceMap(
        kernel="double", file="kernels/double.py", target="gfx950", triton="3.9.0", specialisation={},
        baseline=baseline, knobs=knobs, repeat="",
    )  # fmt: skip


def joint_map(
    relations: Sequence[Relation] = (BUDGET,),
    *,
    domains: Mapping[str, Sequence[Value]] = DOMAINS,
    baseline: Config = BASELINE,
    tried: Sequence[Tried] = (),
    constraints: Sequence[Constraint] | None = None,
    inertness: Sequence[Inertness] = (),
    value_classes: Sequence[ValueClasses] = (),
    unstable: Sequence[Unstable] = (),
    unknown: Sequence[Config] = (),
) -> SpaceMap:
    """A map whose constraints are the relations; every knob was moved alone."""
    from msgspec.structs import replace

    space = single_map(domains, baseline, relations)
    size = 1
    for values in domains.values():
        size *= len(values)
    joint = Joint(
        depth="joint",
        domains={name: tuple(values) for name, values in domains.items()},
        constraints=tuple(constraint(r) for r in relations) if constraints is None else tuple(constraints),
        sizes=Sizes(size),
        certificate=Certificate(0.95, 1, (), ()),
        coverage=(),
        inertness=tuple(inertness),
        value_classes=tuple(value_classes),
        tried=tuple(tried),
        unstable=tuple(unstable),
        unknown=tuple(unknown),
    )
    return replace(space, joint=joint)


PAIR = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def pair(x, A: gl.constexpr, B: gl.constexpr, C: gl.constexpr):
    gl.static_assert(A * B <= 64)
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [gl.num_warps()], [0])
    i = gl.arange(0, A * B * 4, layout=layout)
    gl.store(x + i, gl.load(x + i) * 2)
"""
"""A kernel with A * B <= 64, in which C is never read."""

PAIR_DOMAINS: dict[str, tuple[Value, ...]] = {"A": (1, 4, 16), "B": (4, 16, 64), "C": (1, 2)}
PAIR_BASELINE: Config = {"A": 4, "B": 16, "C": 1}
PAIR_RULE = Compare(Product((KnobTerm("A"), KnobTerm("B"))), Op.AT_MOST, Number(64))


def pair_map(relation: Relation, triton: str, *, joint: bool = True) -> SpaceMap:
    """A map of the kernel in kernels/pair.py that claims the relation."""
    from msgspec.structs import replace

    make = joint_map if joint else single_map
    space = make(relations=(relation,), domains=PAIR_DOMAINS, baseline=PAIR_BASELINE)
    recipe = Recipe(args={"x": "*fp16"})
    return replace(
        space, kernel="pair", file="kernels/pair.py", triton=triton, specialisation={"x": "*fp16:16"}, recipe=recipe
    )


def tried(moves: Config, outcome: str = "PASS", digest: str = "", reason: str = "", line: str = "") -> Tried:
    """The baseline with moves made, as an entry of what was asked."""
    return Tried(tuple({**BASELINE, **moves}.values()), outcome, "doubt", digest, reason, line)


def product(domains: Mapping[str, Sequence[Value]]) -> list[Config]:
    """Every configuration."""
    return [dict(zip(domains, values, strict=True)) for values in itertools.product(*domains.values())]
