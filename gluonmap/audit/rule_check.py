"""The mistakes of a rule on the space of a map: feasible configurations that it drops, infeasible ones that it keeps.

Restrictions in the language of `constraints.expressions` are counted exactly, without walking the space. Anything that
has to be run (a function, other Python) is asked about a `ConfigPool`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gluonmap.audit.findings import CheckedRule, Counterexample, Tally
from gluonmap.audit.request import PruningRule
from gluonmap.audit.rule_space import ConfigPool, RuleSpace, some_of
from gluonmap.constraints import expressions
from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.relations import Relation, Written
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.feasibility import moves_of
from gluonmap.query.observations import config_key
from gluonmap.query.reduced_space import ReducedSpace

MOST_SHOWN = 3
"""Most counterexamples of one kind that are shown, each compiled."""
MOST_TRIED = 6
"""Most configurations that are examined to find `MOST_SHOWN` counterexamples."""


# ---- restrictions --------------------------------------------------------------------------------------------------


def filled_in(text: str, space: SpaceMap) -> str:
    """Return a restriction in which fixed values, sizes and derived values are filled in, so that it reads knobs alone.

    Raises:
        UsageError: bad syntax.
        UnknownKnob: it reads a name that the map does not have.
    """
    numbers = {n: v for n, v in space.recipe.args.items() if not isinstance(v, str)}
    values = {n: v for n, v in {**numbers, **space.shape, **space.recipe.fixed}.items() if n not in space.baseline}
    written = expressions.substituted(text, values, space.recipe.derive)
    for name in sorted(expressions.names_in(written) - space.baseline.keys()):
        raise UnknownKnob(f"the restriction {text!r} cannot be judged: the map", name, space.baseline)
    return written


def is_expression(text: str, space: SpaceMap) -> bool:
    """Return whether a restriction is in the language of `constraints.expressions`, so that nothing has to be run."""
    try:
        expressions.evaluate(text, space.baseline)
    except UsageError:
        return False
    return True


def count_mistakes(
    rule: PruningRule, texts: Sequence[str], ground: RuleSpace
) -> tuple[CheckedRule, tuple[int | None, ...]] | None:
    """Count the mistakes of restrictions exactly; with them, how many feasible configurations each alone drops.

    Return None if the constraints tie too many knobs together to be counted.
    """
    relations = [Written(text) for text in texts]
    good, kept = ground.reduced(), ground.reduced(*relations)
    whole, admitted = ground.reduced(feasible=False), ground.reduced(*relations, feasible=False)
    passing, passing_kept = good.feasible_count, kept.feasible_count
    size, size_kept = whole.feasible_count, admitted.feasible_count
    if passing is None or passing_kept is None or size is None or size_kept is None:
        return None
    lost, programs, missing = _lost(ground, good, kept)
    result = CheckedRule(
        rule.name,
        Tally(passing, passing, passing - passing_kept),
        Tally(size - passing, size - passing, size_kept - passing_kept),
        programs,
        missing,
        drops=tuple(ground.example(c) for c in lost[:MOST_TRIED]),
        admits=tuple(_admitted(ground, relations, admitted)),
    )
    alone = [ground.reduced(relation).feasible_count for relation in relations]
    return result, tuple(None if count is None else passing - count for count in alone)


MOST_PROGRAMS = 4096


def _lost(ground: RuleSpace, good: ReducedSpace, kept: ReducedSpace) -> tuple[list[Config], int | None, int | None]:
    """Return one configuration of each lost program, the number of programs, and the number of lost ones."""
    known = [config for config, passed in ground.known() if passed]
    forms = {config_key(kept.canonical(c)) for c in kept.representatives(MOST_PROGRAMS)}
    every = good.representatives(MOST_PROGRAMS, known=known)
    lost = [c for c in every if config_key(good.canonical(c)) not in forms]
    count = good.program_count
    complete = count is not None and count <= MOST_PROGRAMS
    lost.sort(key=lambda c: (not ground.example(c).compiled, len(moves_of(ground.space, c))))
    return lost, count, len(lost) if complete else None


def _admitted(ground: RuleSpace, relations: Sequence[Relation], admitted: ReducedSpace) -> Iterable[Counterexample]:
    """Return some infeasible configurations that the rule keeps, compiled ones first."""
    known = {config_key(c): c for c, passed in ground.known() if not passed and all(holds(r, c) for r in relations)}
    found = list(known.values())[:MOST_TRIED]
    if len(found) < MOST_SHOWN:
        drawn = some_of(admitted, admitted.feasible_count, 512, 0)
        found += [c for c in drawn if config_key(c) not in known and not ground.passes(c)][: MOST_TRIED - len(found)]
    return [ground.example(config) for config in found]


# ---- what has to be run --------------------------------------------------------------------------------------------


def check_selection(
    rule: PruningRule, pool: ConfigPool, kept: Iterable[int], ground: RuleSpace, strange: int = 0
) -> CheckedRule:
    """Return the mistakes of a rule that kept the configurations of the pool at the places `kept`.

    `strange` is the number of returned configurations that were not in the pool.
    """
    places = set(kept)
    configs = pool.configs
    first = len(pool.feasible)
    reduced = ground.reduced()

    def form(config: Config) -> object:
        return config_key(reduced.canonical(config))

    remaining = {form(configs[place]) for place in places if place < first}
    dropped = [config for place, config in enumerate(pool.feasible) if place not in places]
    lost = [config for config in dropped if form(config) not in remaining]
    admitted = [configs[place] for place in sorted(places) if place >= first]
    for wrong in (lost, admitted):
        wrong.sort(key=lambda c: (not ground.example(c).compiled, len(moves_of(ground.space, c))))
    one_of_each = list({form(config): config for config in lost}.values())
    return CheckedRule(
        rule.name,
        Tally(pool.feasible_size, first, len(dropped)),
        Tally(pool.infeasible_size, len(pool.infeasible), len(admitted)),
        len({form(config) for config in pool.feasible}),
        len(one_of_each),
        strange,
        drops=tuple(ground.example(c) for c in one_of_each[:MOST_TRIED]),
        admits=tuple(ground.example(c) for c in admitted[:MOST_TRIED]),
    )
